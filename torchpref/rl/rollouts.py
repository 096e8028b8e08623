"""Rollouts of training as return curves in integers, without waiting for the device.

The same rounding as :class:`torchpref.Trajectories` (levels in millionths from float64, times in ticks), but in fixed
shapes: nothing here asks a tensor for a value, so a training step is never held up and ``torch.compile`` sees one graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from torchpref.errors import DataError, UsageError
from torchpref.kernels import choice
from torchpref.runs.curves import LEVEL_PAD
from torchpref.runs.units import (
    LARGEST_TICK,
    MILLION,
    NEVER,
    PREFERRED_CLOCKS,
    UNKNOWN,
    ZERO_IS_UNKNOWN,
    default_resolution,
    ticks_per_unit,
)

#: A return outside [0, 1] by less than this rounds to a level inside: what float32 sums of a perfect score do.
ROUNDING = 0.5 / MILLION
#: Clocks with a meaning of their own; a name that is nearly one of these is a slip, not a clock of one's own.
KNOWN_CLOCKS = (*dict.fromkeys((*PREFERRED_CLOCKS, *ZERO_IS_UNKNOWN, "time")),)


@dataclass(frozen=True)
class Rollouts:
    """Return curves of the rollouts of a batch of groups.

    Attributes:
        reached: int32 ``[batch, rollout, step]``, the highest return reached by each step, in millionths.
        ticks: int64 of the same shape, the time of each step, ``UNKNOWN`` where not known; None where the clock counts
            steps, so that step t is at tick t for all rollouts.
        zero_is_unknown: whether a level at tick 0 is at an unknown time.
        bound: int64 ``[batch, rollout]`` or None, as in :class:`torchpref.runs.curves.Curves`.
        valid: bool ``[batch, rollout]``, rollouts that count.
    """

    reached: Int[Tensor, "batch rollout step"]
    ticks: Int[Tensor, "batch rollout step"] | None
    zero_is_unknown: bool
    bound: Int[Tensor, "batch rollout"] | None
    valid: Bool[Tensor, "batch rollout"]

    def rows(self, chosen: slice) -> Rollouts:
        """Some of the groups."""
        return Rollouts(
            reached=self.reached[chosen],
            ticks=None if self.ticks is None else self.ticks[chosen],
            zero_is_unknown=self.zero_is_unknown,
            bound=None if self.bound is None else self.bound[chosen],
            valid=self.valid[chosen],
        )

    @property
    def final(self) -> Int[Tensor, "batch rollout"]:
        """The highest return reached, in millionths."""
        if not self.reached.shape[-1]:
            return torch.zeros(self.valid.shape, dtype=torch.int32, device=self.valid.device)
        return self.reached[..., -1]

    @property
    def solved(self) -> Bool[Tensor, "batch rollout"]:
        """Whether full return was reached."""
        return self.final >= MILLION

    def jumps(self, merge: bool = True) -> tuple[Int[Tensor, "batch rollout step"], Int[Tensor, "batch rollout step"]]:
        """At each step the level and the time of the next jump, the step's own included.

        Points on one tick are merged, as :func:`torchpref.runs.curves.curves` does for runs, unless every step that rises is
        wanted. Levels are int32 and ascend along each row, ``LEVEL_PAD`` behind the last jump; ticks are int64, ``UNKNOWN``
        where not known and ``NEVER`` behind it.
        """
        pad = torch.nn.functional.pad
        reached, steps = self.reached, self.reached.shape[-1]
        if not steps:
            return reached, reached.long()
        rises = reached > pad(reached[..., :-1], (1, 0))
        index = torch.arange(steps, device=reached.device).expand(reached.shape)
        if self.ticks is None:
            ticks = index + 1
            jump = rises
        else:
            # An unknown time between two equal known ones is known: the clock does not go backwards.
            ticks = self.ticks
            following = torch.where(ticks != UNKNOWN, ticks, NEVER).flip(-1).cummin(-1).values.flip(-1)
            latest = ticks.cummax(-1).values
            ticks = torch.where(latest == following, latest, ticks)
            jump = rises
            if merge:
                # Of several rises on one tick the last one counts: look at the next rise whose time is known.
                known = ticks != UNKNOWN
                later = _next(rises & known, index)
                later = pad(later[..., 1:], (0, 1), value=steps)
                jump = rises & (~known | (pad(ticks, (0, 1), value=NEVER).gather(-1, later) != ticks))
            if self.zero_is_unknown:
                ticks = torch.where(ticks == 0, UNKNOWN, ticks)
        at = _next(jump, index)
        levels = pad(reached, (0, 1), value=LEVEL_PAD).gather(-1, at)
        return levels, pad(ticks, (0, 1), value=NEVER).gather(-1, at)


def _next(marks: Bool[Tensor, "batch rollout step"], index: Int[Tensor, "batch rollout step"]) -> Tensor:
    """The first marked step at or behind each step; the number of steps where there is none."""
    return torch.where(marks, index, marks.shape[-1]).flip(-1).cummin(-1).values.flip(-1)


@dataclass(frozen=True)
class Inputs:
    """What :func:`check_inputs` hands on: the tensors as given, shapes agreed, nothing converted yet.

    Attributes:
        returns: any real dtype ``[batch, rollout, step]``.
        lengths: int64 ``[batch, rollout]``.
        times: any real dtype ``[batch, rollout, step]`` in the clock's unit, or None for the clock that counts steps.
        per_unit: ticks per unit of the clock.
        zero_is_unknown: whether a time of exactly 0 says that the time was not recorded.
        truncated: bool ``[batch, rollout]`` or None.
        valid: bool ``[batch, rollout]``.
    """

    returns: Tensor
    lengths: Int[Tensor, "batch rollout"]
    times: Tensor | None
    per_unit: float
    zero_is_unknown: bool
    truncated: Bool[Tensor, "batch rollout"] | None
    valid: Bool[Tensor, "batch rollout"]


def numbers(values: Any, what: str) -> Tensor:
    """A tensor as it is; NumPy arrays and nested lists as a tensor, lists of fractions in float64.

    Raises:
        DataError: anything else, and lists of different lengths.
    """
    if isinstance(values, Tensor):
        return values
    import numpy as np

    try:
        return torch.as_tensor(np.asarray(values))
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            f"{what} must be a tensor, or an array or nested lists of numbers that all have one length; "
            f"got {type(values).__name__} ({error}); pad_traces takes lists of different lengths"
        ) from error


def check_inputs(
    returns: Tensor,
    lengths: Tensor | None,
    times: Tensor | None,
    clock: str | None,
    resolution: float | None,
    truncated: Tensor | None,
    valid: Tensor | None,
    what: str = "returns",
) -> Inputs:
    """Shapes and options; values too where that costs no waiting, that is on the CPU outside ``torch.compile``.

    Raises:
        DataError: shapes that do not fit; on the CPU also a return outside [0, 1] by half a millionth or more, or NaN, a
            length out of range, a time that is negative or goes backwards. Elsewhere such a rollout gets the reward NaN.
    """
    if returns.dim() != 3:
        raise DataError(f"{what} must be [batch, group, step], got shape {list(returns.shape)}")
    if returns.is_complex():
        raise DataError(f"{what} must be real numbers, got {returns.dtype}")
    shape, device = tuple(returns.shape), returns.device

    def per_run(tensor: Tensor | None, name: str, default: int | bool) -> Tensor:
        if tensor is None:
            return torch.full(shape[:2], default, device=device)
        tensor = numbers(tensor, name).to(device)
        if tuple(tensor.shape) != shape[:2]:
            raise DataError(f"{name} has shape {list(tensor.shape)}; {what} ask for [batch, group] = {list(shape[:2])}")
        return tensor

    length = per_run(lengths, "lengths", shape[2])
    if length.is_floating_point() or length.dtype is torch.bool:
        raise DataError(f"lengths must be whole numbers, got {length.dtype}")
    name = clock_name(clock) or ("steps" if times is None else "time")
    if times is None and (name != "steps" or resolution is not None):
        raise UsageError("a clock or a resolution needs times; without times the steps are counted 1, 2, 3, …")
    if times is not None:
        times = numbers(times, "times")
        if times.dtype in (torch.float16, torch.bfloat16):
            raise DataError(
                f"times in {str(times.dtype).removeprefix('torch.')} lose ticks (257 and 258 are one number there); "
                "give float32, float64 or whole numbers"
            )
    if times is not None and tuple(times.shape) != shape:
        raise DataError(f"times have shape {list(times.shape)}; {what} ask for {list(shape)}")
    inputs = Inputs(
        returns=returns,
        lengths=length.long(),
        times=None if times is None else times.to(device),
        per_unit=_per_unit(name, resolution),
        zero_is_unknown=times is not None and name in ZERO_IS_UNKNOWN,
        truncated=None if truncated is None else per_run(truncated, "truncated", False).bool(),
        valid=per_run(valid, "valid", True).bool(),
    )
    if device.type == "cpu" and not torch.compiler.is_compiling():
        _check_values(inputs, what)
    return inputs


@torch.compiler.assume_constant_result
def clock_name(clock: str | None) -> str | None:
    """The clock's name in lower case; any name will do, but not one that is nearly a known clock's."""
    if clock is None:
        return None
    if not isinstance(clock, str) or not clock.strip():
        raise UsageError(f"a clock is named by a text such as 'tokens', got {clock!r}")
    import difflib

    name = clock.strip().lower()
    close = difflib.get_close_matches(name, KNOWN_CLOCKS, n=1, cutoff=0.85)
    if close and name not in KNOWN_CLOCKS:
        raise UsageError(
            f"clock {clock!r}: did you mean {close[0]!r}? A clock of another name ticks in millionths, and takes a time of 0 "
            "for a time"
        )
    return name


@torch.compiler.assume_constant_result
def _per_unit(clock: str, resolution: float | None) -> float:
    return ticks_per_unit(default_resolution(clock) if resolution is None else resolution)


def _inside(inputs: Inputs) -> Bool[Tensor, "batch rollout step"]:
    lengths = torch.where(inputs.valid, inputs.lengths, 0)
    return torch.arange(inputs.returns.shape[-1], device=lengths.device) < lengths.unsqueeze(-1)


def _scaled(inputs: Inputs) -> Float[Tensor, "batch rollout step"]:
    assert inputs.times is not None
    return inputs.times.double() * inputs.per_unit


def _bad_times(scaled: Tensor, inside: Tensor) -> Tensor:
    """Times that are negative, too large, or before an earlier one of the rollout; NaN is a time that is not known."""
    known = torch.where(inside & ~torch.isnan(scaled), scaled, -torch.inf)
    bad = inside & ((scaled < 0) | (scaled >= LARGEST_TICK))
    if known.shape[-1] > 1:
        ticks = torch.round(known)
        bad[..., 1:] |= (
            inside[..., 1:] & (ticks[..., 1:] > -torch.inf) & (ticks[..., 1:] < ticks.cummax(-1).values[..., :-1])
        )
    return bad


def _check_values(inputs: Inputs, what: str) -> None:
    steps = inputs.returns.shape[-1]
    bad = inputs.valid & ((inputs.lengths < 0) | (inputs.lengths > steps))
    if bool(bad.any()):
        place = bad.nonzero()[0].tolist()
        raise DataError(f"lengths{place} is {int(inputs.lengths[tuple(place)])}; a length lies between 0 and {steps}")
    values = inputs.returns
    if values.dtype is not torch.bool and not _all_in_range(values):
        bad = _inside(inputs) & _outside(values)
        if bool(bad.any()):
            place = bad.nonzero()[0].tolist()
            raise DataError(
                f"{what}{place} is {values[tuple(place)].item()!r}, not in [0, 1]; give the return reached so far, that is "
                "summed rewards divided by the maximum score; mark rollouts that do not count with valid="
            )
    if inputs.times is not None:
        bad = _bad_times(_scaled(inputs), _inside(inputs))
        if bool(bad.any()):
            place = bad.nonzero()[0].tolist()
            raise DataError(
                f"times{place} is {inputs.times[tuple(place)].item()!r}; times are at least 0 and never fall within a rollout; "
                "NaN where not known"
            )


def _outside(values: Tensor) -> Bool[Tensor, "batch rollout step"]:
    """Returns that round to no level; NaN too."""
    values = values.double()
    return ~((values >= -ROUNDING) & (values <= 1 + ROUNDING))


def _all_in_range(values: Tensor) -> bool:
    """Whether every value, padding too, lies in [0, 1]: one pass over the data, which nearly always suffices."""
    if not values.numel():
        return True
    if values.dtype in (torch.float32, torch.float64):
        # Not by torch: waking its threads for one short pass costs up to ten times the whole reward on a busy machine.
        plain = values.detach().numpy()
        return bool(plain.min() >= 0) and bool(plain.max() <= 1)
    low, high = torch.aminmax(values)
    return bool(low >= 0) and bool(high <= 1)


def broken(inputs: Inputs) -> Bool[Tensor, "batch rollout"]:
    """Valid rollouts with values that cannot be used; what :func:`check_inputs` raises for where it may look."""
    inside = _inside(inputs)
    values = inputs.returns
    bad = torch.zeros_like(inside) if values.dtype is torch.bool else inside & _outside(values)
    if inputs.times is not None:
        bad = bad | _bad_times(_scaled(inputs), inside)
    length = (inputs.lengths < 0) | (inputs.lengths > inputs.returns.shape[-1])
    return inputs.valid & (bad.any(-1) | length)


def rollouts(inputs: Inputs) -> Rollouts:
    """The curves of the rollouts: levels in millionths, times in ticks, what a truncated rollout may still have reached."""
    steps = inputs.returns.shape[-1]
    reached = _reached(inputs)
    ticks = None
    if inputs.times is not None:
        scaled = _scaled(inputs)
        known = _inside(inputs) & ~torch.isnan(scaled)
        ticks = torch.where(known, torch.round(torch.nan_to_num(scaled)).long(), UNKNOWN)

    bound = None
    if inputs.truncated is not None:
        lengths = torch.where(inputs.valid, inputs.lengths, 0).clamp(0, steps)
        if ticks is None:
            stop = lengths
        elif steps:
            stop = ticks.gather(-1, (lengths - 1).clamp(min=0).unsqueeze(-1)).squeeze(-1)
        else:
            stop = torch.full_like(lengths, UNKNOWN)
        timed = (lengths > 0) & (stop != UNKNOWN)
        if inputs.zero_is_unknown:
            timed = timed & (stop > 0)
        bound = torch.where(inputs.truncated, torch.where(timed, stop + 1, 0), NEVER)
    return Rollouts(reached, ticks, inputs.zero_is_unknown, bound, inputs.valid)


def _reached(inputs: Inputs) -> Int[Tensor, "batch rollout step"]:
    """The highest return reached by each step in millionths, rounded once from float64."""
    values = inputs.returns
    batch, count, steps = values.shape
    if choice.groups_compiled(values.device, batch * count, steps, by_step=True):
        from torchpref.kernels.cpu.groups import reach

        return reach(values, torch.where(inputs.valid, inputs.lengths, 0))
    reached = torch.round(torch.where(_inside(inputs), values, 0).double() * MILLION).to(torch.int32)
    return reached.cummax(-1).values if steps else reached
