"""All pairs of rollouts of a training batch on the CPU, from raw returns, in compiled code.

Groups are small and their curves short, so nothing is laid out or looked up first. Where the clock counts steps, RPP and
LR come from what a rollout takes at a step that its rival has not taken by then, step by step in vectors. IPP and other
clocks merge each pair of curves (:mod:`torchpref.kernels.cpu.merge`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from torchpref.kernels import compiled as numba_support
from torchpref.kernels.compiled import int32, int64, jit
from torchpref.kernels.cpu.merge import merge_any, merge_known
from torchpref.kernels.cpu.merge_long import LONG, buffers, merge_two_pairs
from torchpref.runs.curves import LEVEL_PAD
from torchpref.runs.measures import CURVE_MEASURES, TIE_TOLERANCE
from torchpref.runs.units import MILLION, NEVER, UNKNOWN

Array = np.ndarray[Any, Any]

#: Below this many steps in all, a second thread costs more than it saves.
_SINGLE_THREAD = 1 << 15


@jit
def _reach(returns: Array, lengths: Array, first: int, last: int, reached: Array) -> None:
    for group in range(first, last):
        for rollout in range(returns.shape[1]):
            highest = 0.0
            level = int32(0)
            length = lengths[group, rollout]
            for step in range(returns.shape[2]):
                if step < length:
                    value = np.float64(returns[group, rollout, step])
                    # Rounding keeps order, so only a new highest value needs to be rounded.
                    if value > highest:
                        highest = value
                        level = int32(np.rint(value * MILLION))
                reached[group, rollout, step] = level


def reach(
    returns: Float[Tensor, "batch rollout step"], lengths: Int[Tensor, "batch rollout"]
) -> Int[Tensor, "batch rollout step"]:
    """The highest return reached by each step, int32 millionths; constant behind a rollout's last step.

    Args:
        returns: real numbers of any dtype on the CPU; read as float64 and rounded once.
        lengths: int64, steps of each rollout; 0 for one that does not count.
    """
    if returns.dtype not in (torch.float32, torch.float64):
        returns = returns.float() if returns.is_floating_point() else returns.double()
    values, reached = returns.detach().contiguous().numpy(), np.empty(returns.shape, np.int32)
    _over_groups(_reach, (values, lengths.contiguous().numpy()), (reached,), values.size)
    return torch.from_numpy(reached)


@jit
def _jumps(levels: Array, ticks: Any, own_levels: Array, own_ticks: Array, counts: Array) -> bool:
    """The jumps of every rollout of a group, packed; whether every time is known."""
    known = True
    for rollout in range(levels.shape[0]):
        count = 0
        before = int32(0)
        for step in range(levels.shape[1]):
            level = levels[rollout, step]
            if level == before or level == LEVEL_PAD:
                continue
            before = level
            tick = int64(step + 1) if ticks is None else ticks[rollout, step]
            known &= tick != UNKNOWN
            own_levels[rollout, count] = level
            own_ticks[rollout, count] = tick
            count += 1
        counts[rollout] = count
    return known


@jit
def _compare(
    levels: Array,
    ticks: Any,
    bound: Any,
    valid: Array,
    other_levels: Array,
    other_ticks: Any,
    other_bound: Any,
    other_valid: Array,
    same: bool,
    measure: int,
    first: int,
    last: int,
    out: Array,
) -> None:
    rows, columns = levels.shape[1], other_levels.shape[1]
    width = max(levels.shape[2], other_levels.shape[2])
    # One array for rows and columns, so that a position tells a run and its jumps.
    own_levels, own_ticks = np.empty((rows + columns, width), np.int32), np.empty((rows + columns, width), np.int64)
    flat_levels, flat_ticks = own_levels.ravel(), own_ticks.ravel()
    counts = np.empty(rows + columns, np.int64)
    work = buffers()
    for group in range(first, last):
        known = _jumps(levels[group], None if ticks is None else ticks[group], own_levels, own_ticks, counts)
        shift = 0 if same else rows
        if not same:
            known &= _jumps(
                other_levels[group],
                None if other_ticks is None else other_ticks[group],
                own_levels[rows:],
                own_ticks[rows:],
                counts[rows:],
            )
        simple = known and bound is None and other_bound is None
        long = simple and measure > 0 and counts[: rows + shift].sum() >= LONG * (rows + shift)
        for i in range(rows):
            start = i + 1 if same else 0
            if same:
                out[group, i, i] = 0
            for j in range(start, columns):
                both = valid[group, i] and other_valid[group, j]
                delta = int64(0)
                k = j + shift
                if long and (j - start) % 2 == 0:
                    # Two at a time; the second one is fetched from the result in the next round.
                    m = min(k + 1, columns - 1 + shift)
                    starts = (i * width, k * width, i * width, m * width)
                    ends = (starts[0] + counts[i], starts[1] + counts[k], starts[2] + counts[i], starts[3] + counts[m])
                    rpp, ipp, rpp_2, ipp_2 = merge_two_pairs(flat_levels, flat_ticks, starts, ends, work)
                    delta = int64(rpp if measure == 1 else ipp)
                    out[group, i, m - shift] = rpp_2 if measure == 1 else ipp_2
                elif long:
                    delta = out[group, i, j]
                elif both and simple:
                    one, two, three = merge_known(
                        own_levels[i], own_ticks[i], counts[i], own_levels[k], own_ticks[k], counts[k]
                    )
                    delta = one if measure == 0 else (two if measure == 1 else three)
                elif both:
                    bound_a = NEVER if bound is None else bound[group, i]
                    bound_b = NEVER if other_bound is None else other_bound[group, j]
                    one, two, three = merge_any(
                        own_levels[i], own_ticks[i], counts[i], bound_a, own_levels[k], own_ticks[k], counts[k], bound_b
                    )
                    delta = one if measure == 0 else (two if measure == 1 else three)
                if not both or (measure != 0 and abs(delta) <= TIE_TOLERANCE):
                    delta = int64(0)
                out[group, i, j] = delta
                if same:
                    out[group, j, i] = -delta


@jit
def _steps(levels: Array, bound: Any, group: int, width: int, before: Array, after: Array, hurdle: Array) -> None:
    """What each rollout of a group has reached before and after every step, and what a rival must exceed to be sooner."""
    for rollout in range(levels.shape[1]):
        stopped = NEVER if bound is None else bound[group, rollout]
        level = int32(0)
        for step in range(width):
            before[rollout, step] = level
            if step < levels.shape[2]:
                level = levels[group, rollout, step]
            after[rollout, step] = level
            # What a rival takes after this rollout was stopped is not known to be sooner: nothing exceeds full return.
            hurdle[rollout, step] = level if step + 1 < stopped else int32(MILLION)


@jit
def _compare_by_step(
    levels: Array,
    bound: Any,
    valid: Array,
    other_levels: Array,
    other_bound: Any,
    other_valid: Array,
    same: bool,
    measure: int,
    first: int,
    last: int,
    out: Array,
) -> None:
    rows, columns = levels.shape[1], other_levels.shape[1]
    width = max(levels.shape[2], other_levels.shape[2])
    before, after, hurdle = (
        np.empty((rows, width), np.int32),
        np.empty((rows, width), np.int32),
        np.empty((rows, width), np.int32),
    )
    before_2, after_2, hurdle_2 = before, after, hurdle
    if not same:
        before_2, after_2 = np.empty((columns, width), np.int32), np.empty((columns, width), np.int32)
        hurdle_2 = np.empty((columns, width), np.int32)
    for group in range(first, last):
        _steps(levels, bound, group, width, before, after, hurdle)
        if not same:
            _steps(other_levels, other_bound, group, width, before_2, after_2, hurdle_2)
        for i in range(rows):
            if same:
                out[group, i, i] = 0
            for j in range(i + 1 if same else 0, columns):
                delta = int64(0)
                if valid[group, i] and other_valid[group, j]:
                    if measure == 0:
                        forth, back = int32(-1), int32(-1)
                        for step in range(width):
                            mine = after[i, step] > max(before[i, step], hurdle_2[j, step])
                            theirs = after_2[j, step] > max(before_2[j, step], hurdle[i, step])
                            forth = max(forth, after[i, step] if mine else int32(-1))
                            back = max(back, after_2[j, step] if theirs else int32(-1))
                        delta = int64(forth > back) - int64(forth < back)
                    else:
                        total = int32(0)
                        for step in range(width):
                            mine = after[i, step] - max(before[i, step], hurdle_2[j, step])
                            theirs = after_2[j, step] - max(before_2[j, step], hurdle[i, step])
                            total += max(mine, int32(0)) - max(theirs, int32(0))
                        delta = int64(total) if abs(total) > TIE_TOLERANCE else int64(0)
                out[group, i, j] = delta
                if same:
                    out[group, j, i] = -delta


def compare_groups(
    levels: Int[Tensor, "batch row step"],
    ticks: Int[Tensor, "batch row step"] | None,
    bound: Int[Tensor, "batch row"] | None,
    valid: Bool[Tensor, "batch row"],
    measure: str,
    others: tuple[Tensor, Tensor | None, Tensor | None, Tensor] | None = None,
) -> Int[Tensor, "batch row column"]:
    """Δ(row, column) of all rollouts of each group: LR in units of 1, RPP and IPP in millionths.

    Args:
        levels: int32 millionths on the CPU, not falling along a row: what is reached by each step, or by each jump; an
            entry equal to the one before it, or ``LEVEL_PAD``, is no jump.
        ticks: int64, the time of each entry, ``UNKNOWN`` where not known; None where entry t is at tick t, from 1 on.
        bound: int64 as in :class:`torchpref.runs.curves.Curves`, or None.
        valid: rollouts that count; others give 0.
        measure: ``lr``, ``rpp`` or ``ipp``.
        others: the same four for the columns; the rows themselves where None.
    """
    same = others is None
    rows = (levels, ticks, bound, valid)
    columns = rows if others is None else others

    def arrays(tensors: tuple[Tensor | None, ...]) -> list[Array | None]:
        return [None if tensor is None else tensor.contiguous().numpy() for tensor in tensors]

    out = np.empty((len(levels), levels.shape[1], columns[0].shape[1]), np.int64)
    mine, theirs = arrays(rows), arrays(columns)
    options = (same, CURVE_MEASURES.index(measure))
    size = levels.numel() + (0 if same else columns[0].numel())
    if ticks is None and columns[1] is None and measure != "ipp":
        del mine[1], theirs[1]
        _over_groups(_compare_by_step, (*mine, *theirs, *options), (out,), size)
    else:
        _over_groups(_compare, (*mine, *theirs, *options), (out,), size)
    return torch.from_numpy(out)


def _over_groups(function: Any, head: tuple[Any, ...], tail: tuple[Any, ...], size: int) -> None:
    pieces = numba_support.split(len(tail[0]), 1 if size < _SINGLE_THREAD else numba_support.threads())
    numba_support.run(function, [(*head, first, last, *tail) for first, last in pieces])
