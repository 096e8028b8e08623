"""One pair of runs on many instances at once: the inner loop of the CPU's grid kernel, in vectors.

Instances lie along the lanes of a vector register, and the loop runs upwards over levels with all sums in registers.
numba's own vectoriser turns such a loop inside out and writes every sum to memory at each level, which costs a factor
of three to four; therefore the loop is written in LLVM's vector types, which any processor executes.

At a level, D = g_B - g_A is the difference of the times to it, or of two numbers that stand for *never*:

- RPP adds the level's width times sgn D, and LR is the last sgn D that is not 0.
- IPP needs D's change since the level before, on the grid of the *pair*. Between two levels of the pair nothing moves,
  so D's change at the first union level of an interval is that of the whole interval, and its sign is kept until a level
  that one of the two attains has been passed. In data without unknown and equal times that is exactly where one of the
  two times changes or where one run is past its highest level.

Data with unknown times, truncated runs or equal times at different levels carry two more tables: the latest time and
flags (``OWN``, ``UNKNOWN_TIME``, ``NOT_REACHED``). The code for them is only generated where they are given.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from torchpref.runs.measures import TIE_TOLERANCE


def _vector_bytes() -> int:
    features = llvmlite.binding.get_host_cpu_features()
    return 64 if features.get("avx512bw") and features.get("avx512vl") else 32


#: Bytes of a vector of times; with the width of a time it gives the number of lanes.
VECTOR_BYTES = _vector_bytes()

#: Flags of a (run, level): the run attains this level; it reached it at an unknown time; it did not reach it.
OWN, UNKNOWN_TIME, NOT_REACHED = 1, 2, 4


def never(bits: int) -> int:
    """What stands for *never* in a table of that width; real times stay below half of it."""
    return 1 << 62 if bits == 64 else (1 << (bits - 1)) - 1


def lanes(bits: int) -> int:
    """Instances per vector for times of that width."""
    return VECTOR_BYTES * 8 // bits


@intrinsic
def compare_lanes(
    typingctx: Any,
    low: Any,
    high: Any,
    flags: Any,
    run_a: Any,
    run_b: Any,
    widths: Any,
    width_at: Any,
    levels: Any,
    units: Any,
    unit_at: Any,
    present: Any,
    present_a: Any,
    present_b: Any,
    lr: Any,
    rpp: Any,
    ipp: Any,
    out: Any,
) -> Any:
    """LR, RPP and IPP of two runs on all lanes of a block; positions are offsets into flat arrays.

    Args:
        typingctx: numba's.
        low: times ``[…, level, lane]``, int16, int32 or int64: the earliest time at which the level can be reached.
        high: the latest, of the same type; None for data without unknown times and truncation.
        flags: ``OWN | UNKNOWN_TIME | NOT_REACHED`` of the same type; None with ``high``.
        run_a, run_b: where the two runs' levels start in these tables.
        widths: int16 or int32 ``[…, level, lane]``, each level less the one below it, in units.
        width_at: where the block's widths start.
        levels: number of levels, at least 1.
        units: int32 ``[…, lane]``, millionths per unit of width.
        unit_at: where the block's units start.
        present: int8 ``[…, lane]``, -1 where the run exists, else 0.
        present_a, present_b: where the two runs' start.
        lr: int8, receives LR of every lane from position ``out`` on; 0 where a run is missing.
        rpp, ipp: int32, receive millionths, 0 where at most ten.
        out: position of the first lane in them.
    """
    at = types.int64
    signature = types.void(low, high, flags, at, at, widths, at, at, units, at, present, at, at, lr, rpp, ipp, at)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _Codegen(context, builder, sig.args, args).emit()
        return context.get_dummy_value()

    return signature, codegen


class _Codegen:
    """The loop in LLVM's intermediate representation."""

    def __init__(self, context: Any, builder: Any, kinds: Any, args: Any) -> None:
        self.context, self.builder, self.kinds, self.args = context, builder, kinds, args
        bits = kinds[0].dtype.bitwidth
        self.count = lanes(bits)
        self.never = never(bits)
        self.general = not isinstance(kinds[1], types.NoneType)
        self.time = self._vector(bits)
        self.width = self._vector(kinds[5].dtype.bitwidth)
        self.wide = self._vector(32)
        self.byte = self._vector(8)

    def _vector(self, bits: int) -> Any:
        return ir.VectorType(ir.IntType(bits), self.count)

    def _splat(self, kind: Any, value: int) -> Any:
        return ir.Constant(kind, [value] * self.count)

    def _place(self, argument: int, offset: Any, kind: Any) -> Any:
        """Pointer to the vector that starts ``offset`` elements into an array argument."""
        array = self.context.make_array(self.kinds[argument])(self.context, self.builder, self.args[argument])
        return self.builder.bitcast(self.builder.gep(array.data, [offset]), kind.as_pointer())

    def _load(self, argument: int, offset: Any, kind: Any) -> Any:
        # Aligned to elements only: rows of the results start anywhere.
        return self.builder.load(self._place(argument, offset, kind), align=kind.element.width // 8)

    def _store(self, argument: int, offset: Any, value: Any) -> None:
        self.builder.store(value, self._place(argument, offset, value.type), align=value.type.element.width // 8)

    def _where(self, condition: Any, value: Any, other: int = 0) -> Any:
        return self.builder.select(condition, value, self._splat(value.type, other))

    def emit(self) -> None:
        b = self.builder
        index = ir.IntType(64)
        entry = b.block
        loop, done = b.append_basic_block("levels"), b.append_basic_block("done")
        b.branch(loop)
        b.position_at_end(loop)
        level = b.phi(index)
        level.add_incoming(ir.Constant(index, 0), entry)
        # What speaks for A and what speaks for B is added up apart: two masked additions instead of three operations.
        sums = ("rpp_for", "rpp_against", "ipp_for", "ipp_against")
        start = dict.fromkeys(sums, (self.width, 0))
        start |= dict.fromkeys(("last", "sign", "difference"), (self.time, 0))
        if self.general:
            start["flags"] = (self.time, OWN)
        else:
            start["time_a"] = (self.time, -1)
        state = {}
        for name, (kind, value) in start.items():
            state[name] = b.phi(kind)
            state[name].add_incoming(self._splat(kind, value), entry)
        offset = b.mul(level, ir.Constant(index, self.count))
        width = self._load(5, b.add(self.args[6], offset), self.width)
        step = self._general(offset, state) if self.general else self._plain(offset, state)
        cases = (step["above"], step["below"], self._positive(step["sign"]), self._negative(step["sign"]))
        following = {name: step[name] for name in start if name not in sums}
        for name, case in zip(sums, cases, strict=True):
            following[name] = b.add(state[name], self._where(case, width))
        for name, value in following.items():
            state[name].add_incoming(value, loop)
        next_level = b.add(level, ir.Constant(index, 1))
        level.add_incoming(next_level, loop)
        b.cbranch(b.icmp_signed("<", next_level, self.args[7]), loop, done)
        b.position_at_end(done)
        self._finish(following)

    def _positive(self, value: Any) -> Any:
        return self.builder.icmp_signed(">", value, self._splat(value.type, 0))

    def _negative(self, value: Any) -> Any:
        return self.builder.icmp_signed("<", value, self._splat(value.type, 0))

    def _plain(self, offset: Any, state: Any) -> dict[str, Any]:
        """All times known and rising, levels not reached are never reached."""
        b = self.builder
        time_a = self._load(0, b.add(self.args[3], offset), self.time)
        time_b = self._load(0, b.add(self.args[4], offset), self.time)
        zero = self._splat(self.time, 0)
        difference = b.sub(time_b, time_a)
        later = b.select(b.icmp_signed(">", time_a, time_b), time_a, time_b)
        beyond = b.icmp_signed("==", later, self._splat(self.time, self.never))
        change = b.select(beyond, difference, b.sub(difference, state["difference"]))
        moved = b.icmp_signed("!=", b.or_(change, b.xor(time_a, state["time_a"])), zero)
        return {
            "above": self._positive(difference),
            "below": self._negative(difference),
            "last": b.select(b.icmp_signed("!=", difference, zero), difference, state["last"]),
            "sign": b.select(b.or_(beyond, moved), change, state["sign"]),
            "difference": difference,
            "time_a": time_a,
        }

    def _general(self, offset: Any, state: Any) -> dict[str, Any]:
        """Each run has an earliest and a latest time: A is sooner if its latest lies before B's earliest."""
        b = self.builder
        a, other = b.add(self.args[3], offset), b.add(self.args[4], offset)
        low_a, low_b = self._load(0, a, self.time), self._load(0, other, self.time)
        high_a, high_b = self._load(1, a, self.time), self._load(1, other, self.time)
        flags = b.or_(self._load(2, a, self.time), self._load(2, other, self.time))
        zero, one = self._splat(self.time, 0), self._splat(self.time, 1)
        above = b.icmp_signed("<", high_a, low_b)
        below = b.icmp_signed("<", high_b, low_a)
        sign = b.select(above, one, self._where(below, self._splat(self.time, -1)))
        difference = b.sub(low_b, low_a)

        def has(value: Any, flag: int) -> Any:
            return b.icmp_signed("!=", b.and_(value, self._splat(self.time, flag)), zero)

        unknown = has(b.or_(flags, state["flags"]), UNKNOWN_TIME)
        change = b.select(unknown, zero, b.sub(difference, state["difference"]))
        change = b.select(has(flags, NOT_REACHED), sign, change)
        return {
            "above": above,
            "below": below,
            "last": b.select(b.icmp_signed("!=", sign, zero), sign, state["last"]),
            "sign": b.select(has(state["flags"], OWN), change, state["sign"]),
            "difference": difference,
            "flags": flags,
        }

    def _finish(self, state: dict[str, Any]) -> None:
        """Units to millionths, small sums to 0, missing runs to 0, and out."""
        b = self.builder
        here = b.and_(self._load(10, self.args[11], self.byte), self._load(10, self.args[12], self.byte))
        unit = self._load(8, self.args[9], self.wide)
        for name, argument in (("rpp", 14), ("ipp", 15)):
            value = b.sub(state[f"{name}_for"], state[f"{name}_against"])
            value = value if self.width == self.wide else b.sext(value, self.wide)
            value = b.mul(value, unit)
            large = b.or_(
                b.icmp_signed(">", value, self._splat(self.wide, TIE_TOLERANCE)),
                b.icmp_signed("<", value, self._splat(self.wide, -TIE_TOLERANCE)),
            )
            value = b.and_(self._where(large, value), b.sext(here, self.wide))
            self._store(argument, self.args[16], value)
        above, below = self._positive(state["last"]), self._negative(state["last"])
        sign = b.sub(b.zext(above, self.byte), b.zext(below, self.byte))
        self._store(13, self.args[16], b.and_(sign, here))
