"""The CPU's merge kernel: two step functions walked upwards together, each pair on its own levels.

The cost is the steps of the two curves compared, whatever the levels of all others: the form for continuous returns,
and for data of which few (system, trial) exist. A step does the same few operations whichever curve moves, without a
branch that the processor would have to guess.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchpref.kernels.compiled import int64, jit
from torchpref.kernels.cpu.merge_long import LONG, buffers, last_sign, merge_two_pairs
from torchpref.runs.curves import LEVEL_PAD
from torchpref.runs.measures import TIE_TOLERANCE
from torchpref.runs.units import MILLION, NEVER, UNKNOWN

Array = np.ndarray[Any, Any]


@jit
def count_jumps(levels: Array) -> Array:
    """int64 ``[instance, run]``: how many jumps each run has, ``levels`` being padded with ``LEVEL_PAD``."""
    instances, runs, width = levels.shape
    counts = np.empty((instances, runs), np.int64)
    for instance in range(instances):
        for run in range(runs):
            low, high = 0, width
            while low < high:
                middle = (low + high) // 2
                if levels[instance, run, middle] == LEVEL_PAD:
                    high = middle
                else:
                    low = middle + 1
            counts[instance, run] = low
    return counts


@jit
def merge_known(
    levels_a: Array, ticks_a: Array, count_a: int, levels_b: Array, ticks_b: Array, count_b: int
) -> tuple[int, int, int]:
    """LR, RPP and IPP (in millionths) of two runs whose times are all known and which no limit stopped."""
    i = j = 0
    below = 0
    before = 0
    lr = rpp = ipp = 0
    while i < count_a and j < count_b:
        level_a, level_b = int64(levels_a[i]), int64(levels_b[j])
        difference = ticks_b[j] - ticks_a[i]
        level = min(level_a, level_b)
        width = level - below
        sign = int64(difference > 0) - int64(difference < 0)
        change = int64(difference > before) - int64(difference < before)
        rpp += width * sign
        ipp += width * change
        lr = sign if sign != 0 else lr
        below = level
        before = difference
        i += int64(level_a <= level_b)
        j += int64(level_b <= level_a)
    # One curve has ended: the other alone reaches what is left.
    if i < count_a:
        rest = int64(levels_a[count_a - 1]) - below
        lr, rpp, ipp = 1, rpp + rest, ipp + rest
    elif j < count_b:
        rest = int64(levels_b[count_b - 1]) - below
        lr, rpp, ipp = -1, rpp - rest, ipp - rest
    return lr, rpp, ipp


@jit
def merge_any(
    levels_a: Array,
    ticks_a: Array,
    count_a: int,
    bound_a: int,
    levels_b: Array,
    ticks_b: Array,
    count_b: int,
    bound_b: int,
) -> tuple[int, int, int]:
    """As :func:`merge_known`, for any runs; ``bound`` as in :class:`torchpref.runs.curves.Curves`."""
    i = j = 0
    below = 0
    since_a = since_b = 0
    lr = rpp = ipp = 0
    while i < count_a or j < count_b:
        level_a = int64(levels_a[i]) if i < count_a else LEVEL_PAD
        level_b = int64(levels_b[j]) if j < count_b else LEVEL_PAD
        at_a = ticks_a[i] if i < count_a else NEVER
        at_b = ticks_b[j] if j < count_b else NEVER
        level = min(level_a, level_b)
        width = level - below
        latest_a = NEVER - 1 if at_a == UNKNOWN else at_a
        latest_b = NEVER - 1 if at_b == UNKNOWN else at_b
        earliest_a = bound_a if at_a == NEVER else at_a
        earliest_b = bound_b if at_b == NEVER else at_b
        sign = int64(latest_a < earliest_b) - int64(latest_b < earliest_a)
        change = sign
        if at_a != NEVER and at_b != NEVER:
            if at_a == UNKNOWN or at_b == UNKNOWN or since_a == UNKNOWN or since_b == UNKNOWN:
                change = 0
            else:
                took_a, took_b = at_a - since_a, at_b - since_b
                change = int64(took_a < took_b) - int64(took_b < took_a)
        rpp += width * sign
        ipp += width * change
        lr = sign if sign != 0 else lr
        below, since_a, since_b = level, at_a, at_b
        i += int64(level_a <= level_b)
        j += int64(level_b <= level_a)
    return lr, rpp, ipp


@jit
def compare_runs(
    levels: Array, ticks: Array, bound: Array, counts: Array, general: bool, instance: int, a: int, b: int
) -> tuple[int, int, int]:
    """LR, RPP and IPP of two runs of an instance, sums of at most ten millionths taken as 0."""
    if general:
        bound_a, bound_b = NEVER, NEVER
        if bound.shape[0]:
            bound_a, bound_b = bound[instance, a], bound[instance, b]
        lr, rpp, ipp = merge_any(
            levels[instance, a],
            ticks[instance, a],
            counts[instance, a],
            bound_a,
            levels[instance, b],
            ticks[instance, b],
            counts[instance, b],
            bound_b,
        )
    else:
        lr, rpp, ipp = merge_known(
            levels[instance, a],
            ticks[instance, a],
            counts[instance, a],
            levels[instance, b],
            ticks[instance, b],
            counts[instance, b],
        )
    if abs(rpp) <= TIE_TOLERANCE:
        rpp = 0
    if abs(ipp) <= TIE_TOLERANCE:
        ipp = 0
    return lr, rpp, ipp


@jit
def compare_one_trial(
    levels: Array,
    ticks: Array,
    bound: Array,
    present: Array,
    counts: Array,
    general: Array,
    instances: Array,
    pairs: Array,
    first: int,
    last: int,
    lr: Array,
    rpp: Array,
    ipp: Array,
    column: int,
) -> None:
    """Pairs ``first`` to ``last`` on the listed instances; results ``[pair, column + position in the list]``."""
    for place in range(instances.size):
        instance = instances[place]
        at = column + place
        steps = 0
        for run in range(counts.shape[1]):
            steps += counts[instance, run]
        if not general[instance] and steps >= LONG * counts.shape[1]:
            _one_trial_long(levels, ticks, present, counts, instance, pairs, first, last, lr, rpp, ipp, at)
            continue
        for pair in range(first, last):
            a, b = pairs[pair, 0], pairs[pair, 1]
            if present[instance, a] and present[instance, b]:
                one, two, three = compare_runs(levels, ticks, bound, counts, general[instance], instance, a, b)
            else:
                one, two, three = 0, 0, 0
            lr[pair, at] = one
            rpp[pair, at] = two
            ipp[pair, at] = three


@jit
def _one_trial_long(
    levels: Array,
    ticks: Array,
    present: Array,
    counts: Array,
    instance: int,
    pairs: Array,
    first: int,
    last: int,
    lr: Array,
    rpp: Array,
    ipp: Array,
    at: int,
) -> None:
    width = levels.shape[2]
    flat_levels, flat_ticks = levels[instance].ravel(), ticks[instance].ravel()
    work = buffers()
    for pair in range(first, last, 2):
        # The last pair of an odd number is done twice.
        other = min(pair + 1, last - 1)
        a, b, c, d = pairs[pair, 0], pairs[pair, 1], pairs[other, 0], pairs[other, 1]
        starts = (a * width, b * width, c * width, d * width)
        ends = (
            starts[0] + counts[instance, a],
            starts[1] + counts[instance, b],
            starts[2] + counts[instance, c],
            starts[3] + counts[instance, d],
        )
        x, y, x_2, y_2 = merge_two_pairs(flat_levels, flat_ticks, starts, ends, work)
        sign = last_sign(flat_levels, flat_ticks, starts[0], ends[0], starts[1], ends[1])
        sign_2 = last_sign(flat_levels, flat_ticks, starts[2], ends[2], starts[3], ends[3])
        here = present[instance, a] and present[instance, b]
        lr[pair, at] = sign if here else 0
        rpp[pair, at] = x if here and abs(x) > TIE_TOLERANCE else 0
        ipp[pair, at] = y if here and abs(y) > TIE_TOLERANCE else 0
        here = present[instance, c] and present[instance, d]
        lr[other, at] = sign_2 if here else 0
        rpp[other, at] = x_2 if here and abs(x_2) > TIE_TOLERANCE else 0
        ipp[other, at] = y_2 if here and abs(y_2) > TIE_TOLERANCE else 0


@jit
def add_present_trials(
    levels: Array,
    ticks: Array,
    bound: Array,
    present: Array,
    counts: Array,
    general: bool,
    instance: int,
    a: int,
    b: int,
    trials: int,
    total: Array,
) -> None:
    """Add up the present trial pairs of systems a and b; ``total`` is int64 in order of ``SUMS``."""
    total[:] = 0
    for i in range(a * trials, (a + 1) * trials):
        if not present[instance, i]:
            continue
        a_solved = counts[instance, i] > 0 and levels[instance, i, counts[instance, i] - 1] == MILLION
        for j in range(b * trials, (b + 1) * trials):
            if not present[instance, j]:
                continue
            b_solved = counts[instance, j] > 0 and levels[instance, j, counts[instance, j] - 1] == MILLION
            lr, rpp, ipp = compare_runs(levels, ticks, bound, counts, general, instance, i, j)
            total[0] += lr
            total[1] += rpp
            total[2] += ipp
            total[3] += lr == 0
            total[4] += rpp == 0
            total[5] += ipp == 0
            if a_solved != b_solved:
                total[6] += lr
            elif a_solved:
                total[7] += lr
            total[8] += 1


@jit
def compare_several_trials(
    levels: Array,
    ticks: Array,
    bound: Array,
    present: Array,
    counts: Array,
    general: Array,
    instances: Array,
    pairs: Array,
    first: int,
    last: int,
    trials: int,
    out: Array,
    column: int,
) -> None:
    """As :func:`compare_one_trial` for several trials; ``out`` is int64 ``[8, pair, column]``."""
    total = np.empty(9, np.int64)
    for place in range(instances.size):
        instance = instances[place]
        for pair in range(first, last):
            add_present_trials(
                levels,
                ticks,
                bound,
                present,
                counts,
                general[instance],
                instance,
                pairs[pair, 0],
                pairs[pair, 1],
                trials,
                total,
            )
            for field in range(out.shape[0]):
                out[field, pair, column + place] = total[field]
