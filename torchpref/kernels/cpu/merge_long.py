"""The merge of long curves: two pairs at a time, and what the steps amount to added up in vectors.

Which curve moves next depends on the step before, so a single merge waits for memory most of the time; two that do not
depend on each other hide it. Each writes levels and differences of times of some hundred steps to a buffer, from which
the sums are taken in vector registers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchpref.kernels.compiled import int32, int64, jit, uint64

Array = np.ndarray[Any, Any]

#: Steps merged before they are added up; their buffers stay in a core's first cache.
STEPS = 256
#: From this many jumps per curve on this form is the faster one.
LONG = 24


@jit
def buffers() -> tuple[Array, Array, Array, Array]:
    """Levels and differences of two merges; position 0 holds what came before."""
    width = STEPS + 1
    return np.empty(width, np.int32), np.empty(width, np.int64), np.empty(width, np.int32), np.empty(width, np.int64)


@jit
def _add_up(reached: Array, ahead: Array, steps: int) -> tuple[int, int]:
    """RPP and IPP of merged steps: levels and B's time less A's, each from position 1 on."""
    rpp, ipp = int32(0), int32(0)
    for step in range(1, steps + 1):
        width = reached[step] - reached[step - 1]
        difference = ahead[step]
        change = difference - ahead[step - 1]
        rpp += width if difference > 0 else int32(0)
        rpp -= width if difference < 0 else int32(0)
        ipp += width if change > 0 else int32(0)
        ipp -= width if change < 0 else int32(0)
    reached[0], ahead[0] = reached[steps], ahead[steps]
    return rpp, ipp


@jit
def _one(
    levels: Array, ticks: Array, i: int, end_a: int, j: int, end_b: int, reached: Array, ahead: Array
) -> tuple[int, int, int]:
    steps = 0
    while (i < end_a) & (j < end_b) & (steps < STEPS):
        # Unsigned positions spare the test whether an index counts from the end.
        level_a, level_b = levels[uint64(i)], levels[uint64(j)]
        steps += 1
        reached[uint64(steps)] = min(level_a, level_b)
        ahead[uint64(steps)] = ticks[uint64(j)] - ticks[uint64(i)]
        i += int64(level_a <= level_b)
        j += int64(level_b <= level_a)
    return i, j, steps


@jit
def _two(
    levels: Array,
    ticks: Array,
    i: int,
    end_a: int,
    j: int,
    end_b: int,
    k: int,
    end_c: int,
    m: int,
    end_d: int,
    reached: Array,
    ahead: Array,
    reached_2: Array,
    ahead_2: Array,
) -> tuple[int, int, int, int, int]:
    steps = 0
    while (i < end_a) & (j < end_b) & (k < end_c) & (m < end_d) & (steps < STEPS):
        level_a, level_b = levels[uint64(i)], levels[uint64(j)]
        level_c, level_d = levels[uint64(k)], levels[uint64(m)]
        steps += 1
        reached[uint64(steps)] = min(level_a, level_b)
        ahead[uint64(steps)] = ticks[uint64(j)] - ticks[uint64(i)]
        reached_2[uint64(steps)] = min(level_c, level_d)
        ahead_2[uint64(steps)] = ticks[uint64(m)] - ticks[uint64(k)]
        i += int64(level_a <= level_b)
        j += int64(level_b <= level_a)
        k += int64(level_c <= level_d)
        m += int64(level_d <= level_c)
    return i, j, k, m, steps


@jit
def _rest(
    levels: Array, ticks: Array, i: int, end_a: int, j: int, end_b: int, reached: Array, ahead: Array
) -> tuple[int, int]:
    """RPP and IPP of what is left of a merge; the curve that goes on alone wins all above the other's end."""
    rpp = ipp = 0
    while (i < end_a) & (j < end_b):
        i, j, steps = _one(levels, ticks, i, end_a, j, end_b, reached, ahead)
        more, more_ipp = _add_up(reached, ahead, steps)
        rpp += more
        ipp += more_ipp
    alone = 0
    if i < end_a:
        alone = levels[end_a - 1] - reached[0]
    elif j < end_b:
        alone = reached[0] - levels[end_b - 1]
    return rpp + alone, ipp + alone


@jit
def last_sign(levels: Array, ticks: Array, start_a: int, end_a: int, start_b: int, end_b: int) -> int:
    """LR of two runs with known times: from the top down, the first level that they do not reach at one time."""
    i, j = end_a - 1, end_b - 1
    top_a = levels[i] if i >= start_a else 0
    top_b = levels[j] if j >= start_b else 0
    if top_a != top_b:
        return 1 if top_a > top_b else -1
    while i >= start_a and j >= start_b:
        if ticks[i] != ticks[j]:
            return 1 if ticks[i] < ticks[j] else -1
        # The next level below is the higher of the two curves'; the other one is above it at the time it has now.
        below_a = levels[i - 1] if i > start_a else 0
        below_b = levels[j - 1] if j > start_b else 0
        if below_a == 0 and below_b == 0:
            return 0
        if below_a >= below_b:
            i -= 1
        if below_b >= below_a:
            j -= 1
    return 0


@jit
def merge_two_pairs(
    levels: Array,
    ticks: Array,
    starts: tuple[int, int, int, int],
    ends: tuple[int, int, int, int],
    work: tuple[Array, Array, Array, Array],
) -> tuple[int, int, int, int]:
    """RPP and IPP of runs (0, 1), and of (2, 3); a run is a piece of the flat ``levels`` and ``ticks``."""
    i, j, k, m = starts
    end_a, end_b, end_c, end_d = ends
    reached, ahead, reached_2, ahead_2 = work
    reached[0], ahead[0], reached_2[0], ahead_2[0] = 0, 0, 0, 0
    rpp = ipp = rpp_2 = ipp_2 = 0
    while (i < end_a) & (j < end_b) & (k < end_c) & (m < end_d):
        i, j, k, m, steps = _two(
            levels, ticks, i, end_a, j, end_b, k, end_c, m, end_d, reached, ahead, reached_2, ahead_2
        )
        more, more_ipp = _add_up(reached, ahead, steps)
        rpp += more
        ipp += more_ipp
        more, more_ipp = _add_up(reached_2, ahead_2, steps)
        rpp_2 += more
        ipp_2 += more_ipp
    more, more_ipp = _rest(levels, ticks, i, end_a, j, end_b, reached, ahead)
    more_2, more_ipp_2 = _rest(levels, ticks, k, end_c, m, end_d, reached_2, ahead_2)
    return rpp + more, ipp + more_ipp, rpp_2 + more_2, ipp_2 + more_ipp_2
