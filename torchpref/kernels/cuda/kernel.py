"""The Triton kernel: a tile of systems against a tile of systems on one instance, levels walked upwards in registers.

Each program loads a column of times per level and side and compares all with all, so that memory is read once per
tile and not once per pair. The rules at a level are those of :mod:`torchpref.kernels.cpu.lanes`.
"""

# Triton reads the source of the kernel and takes no annotations there but its own.
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from torchpref.runs.measures import TIE_TOLERANCE

OWN = tl.constexpr(1)
UNKNOWN_TIME = tl.constexpr(2)
NOT_REACHED = tl.constexpr(4)
_TOLERANCE = tl.constexpr(TIE_TOLERANCE)


@triton.jit
def compare_tiles(  # noqa: D103
    low,  # [instance, level, run] earliest time at which the level can be reached
    high,  # the latest; read where GENERAL
    flags,  # int32 [instance, level, run], OWN | UNKNOWN_TIME | NOT_REACHED
    widths,  # int32 [instance, level], millionths
    here,  # int32 [instance, run], 1 where the run exists
    solved,  # int32 [instance, run], 1 where it succeeds
    slots,  # int32 [system, system], the pair's place in the results, -1 for none
    tiles,  # int32 [tile, 2], blocks of systems that hold pairs
    lr,  # results [instance, pair]
    rpp,
    ipp,
    lr_ties,  # the rest only where TRIALS > 1
    rpp_ties,
    ipp_ties,
    lr_solved,
    lr_sooner,
    n_tiles,
    n_levels,
    n_systems,
    n_pairs,
    TRIALS: tl.constexpr,
    GENERAL: tl.constexpr,
    ALL: tl.constexpr,  # all measures, or RPP alone
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    tile = program % n_tiles
    instance = (program // n_tiles).to(tl.int64)
    system_a = tl.load(tiles + 2 * tile) * BLOCK + tl.arange(0, BLOCK)
    system_b = tl.load(tiles + 2 * tile + 1) * BLOCK + tl.arange(0, BLOCK)
    in_a, in_b = system_a < n_systems, system_b < n_systems
    inside = in_a[:, None] & in_b[None, :]
    slot = tl.load(slots + system_a[:, None] * n_systems + system_b[None, :], mask=inside, other=-1)
    n_runs = n_systems * TRIALS
    zero = tl.zeros((BLOCK, BLOCK), dtype=tl.int32)
    lr_total, lr_tied, rpp_tied, ipp_tied, one_solved, both_solved = zero, zero, zero, zero, zero, zero
    rpp_total = tl.zeros((BLOCK, BLOCK), dtype=tl.int64)
    ipp_total = tl.zeros((BLOCK, BLOCK), dtype=tl.int64)
    for trial_a in range(TRIALS):
        for trial_b in range(TRIALS):
            run_a, run_b = system_a * TRIALS + trial_a, system_b * TRIALS + trial_b
            last, rpp_sum, ipp_sum = zero, zero, zero
            interval = zero
            before = (zero + 0).to(low.dtype.element_ty)
            flags_before = zero + OWN
            for level in range(n_levels):
                row = (instance * n_levels + level) * n_runs
                low_a = tl.load(low + row + run_a, mask=in_a, other=0)[:, None]
                low_b = tl.load(low + row + run_b, mask=in_b, other=0)[None, :]
                high_a, high_b = low_a, low_b
                if GENERAL:
                    high_a = tl.load(high + row + run_a, mask=in_a, other=0)[:, None]
                    high_b = tl.load(high + row + run_b, mask=in_b, other=0)[None, :]
                width = tl.load(widths + instance * n_levels + level)
                sign = (high_a < low_b).to(tl.int32) - (high_b < low_a).to(tl.int32)
                rpp_sum += width * sign
                if ALL:
                    flags_a = tl.load(flags + row + run_a, mask=in_a, other=0)[:, None]
                    flags_b = tl.load(flags + row + run_b, mask=in_b, other=0)[None, :]
                    both = flags_a | flags_b
                    difference = low_b - low_a
                    change = (difference > before).to(tl.int32) - (difference < before).to(tl.int32)
                    if GENERAL:
                        change = tl.where(((both | flags_before) & UNKNOWN_TIME) != 0, 0, change)
                    change = tl.where((both & NOT_REACHED) != 0, sign, change)
                    interval = tl.where((flags_before & OWN) != 0, change, interval)
                    ipp_sum += width * interval
                    last = tl.where(sign != 0, sign, last)
                    before, flags_before = difference, both
            here_a = tl.load(here + instance * n_runs + run_a, mask=in_a, other=0)[:, None]
            here_b = tl.load(here + instance * n_runs + run_b, mask=in_b, other=0)[None, :]
            compared = here_a * here_b
            rpp_sum = tl.where(tl.abs(rpp_sum) <= _TOLERANCE, 0, rpp_sum) * compared
            ipp_sum = tl.where(tl.abs(ipp_sum) <= _TOLERANCE, 0, ipp_sum) * compared
            last = last * compared
            rpp_total += rpp_sum.to(tl.int64)
            ipp_total += ipp_sum.to(tl.int64)
            lr_total += last
            if TRIALS > 1:
                solved_a = tl.load(solved + instance * n_runs + run_a, mask=in_a, other=0)[:, None]
                solved_b = tl.load(solved + instance * n_runs + run_b, mask=in_b, other=0)[None, :]
                lr_tied += compared * (last == 0).to(tl.int32)
                rpp_tied += compared * (rpp_sum == 0).to(tl.int32)
                ipp_tied += compared * (ipp_sum == 0).to(tl.int32)
                one_solved += last * (solved_a ^ solved_b)
                both_solved += last * (solved_a & solved_b)
    at = instance * n_pairs + slot
    wanted = slot >= 0
    tl.store(rpp + at, rpp_total.to(rpp.dtype.element_ty), mask=wanted)
    if ALL:
        tl.store(lr + at, lr_total.to(lr.dtype.element_ty), mask=wanted)
        tl.store(ipp + at, ipp_total.to(ipp.dtype.element_ty), mask=wanted)
    if TRIALS > 1:
        tl.store(lr_ties + at, lr_tied, mask=wanted)
        tl.store(rpp_ties + at, rpp_tied, mask=wanted)
        tl.store(ipp_ties + at, ipp_tied, mask=wanted)
        tl.store(lr_solved + at, one_solved, mask=wanted)
        tl.store(lr_sooner + at, both_solved, mask=wanted)


def launch(arguments: tuple[Any, ...], programs: int, options: dict[str, Any]) -> None:
    """Start one program per (tile, instance)."""
    compare_tiles[(programs,)](*arguments, **options)
