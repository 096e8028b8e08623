"""Tables for the CPU's grid kernel: the time of every run to every level of its instance, instances along lanes.

Two passes over the jumps. :func:`scan` looks at each instance: which levels occur (in a bitmap of the million possible
ones), the range of its times, and whether anything in it is unknown or truncated. :func:`fill` then writes the tables
of a block of instances. Times are shifted and divided per instance, widths of levels divided by their common divisor:
neither changes a sign of a difference, and both then mostly fit into 16 bits, twice as many lanes as 32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchpref.kernels.compiled import int64, jit, uint64
from torchpref.kernels.cpu.lanes import NOT_REACHED, OWN, UNKNOWN_TIME
from torchpref.runs.curves import LEVEL_PAD
from torchpref.runs.units import MILLION, NEVER, UNKNOWN

Array = np.ndarray[Any, Any]

_WORDS = MILLION // 64 + 1
_ONE = uint64(1)
#: int64 words of memory that :func:`scan` and :func:`fill` need for themselves: the bitmap, and which words are in use.
WORKSPACE = _WORDS + _WORDS // 64 + 1

#: Columns of what :func:`scan` writes per instance.
LEVELS, JUMPS, GENERAL, FIRST, LAST, DIVISOR, UNIT, TOP = range(8)
COLUMNS = 8


@jit
def _trailing_zeros(word: Any) -> Any:
    """Position of the lowest bit of a word that is not 0."""
    below = (word & (~word + _ONE)) - _ONE
    below = below - ((below >> uint64(1)) & uint64(0x5555555555555555))
    below = (below & uint64(0x3333333333333333)) + ((below >> uint64(2)) & uint64(0x3333333333333333))
    below = (below + (below >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return int64((below * uint64(0x0101010101010101)) >> uint64(56))


@jit
def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


@jit
def _mark(levels: Array, present: Array, bits: Array) -> int:
    """Set the bit of every level of an instance's runs; the number of jumps, or -1 for a level out of range."""
    jumps = 0
    for run in range(levels.shape[0]):
        if not present[run]:
            continue
        for jump in range(levels.shape[1]):
            level = levels[run, jump]
            if level == LEVEL_PAD:
                break
            if level < 1 or level > MILLION:
                return -1
            word = level >> 6
            bits[word] |= _ONE << uint64(level & 63)
            bits[_WORDS + (word >> 6)] |= _ONE << uint64(word & 63)
            jumps += 1
    return jumps


@jit
def _take(bits: Array, union: Array) -> int:
    """The marked levels in ascending order into ``union``; clears the bitmap and returns how many they are."""
    count = 0
    for group in range(_WORDS, bits.size):
        used = bits[group]
        while used:
            word = ((group - _WORDS) << 6) + _trailing_zeros(used)
            used &= used - _ONE
            rest = bits[word]
            while rest:
                union[count] = (word << 6) + _trailing_zeros(rest)
                rest &= rest - _ONE
                count += 1
            bits[word] = 0
        bits[group] = 0
    return count


@jit
def scan(
    levels: Array, ticks: Array, bound: Array, present: Array, first: int, last: int, limit: int, found: Array
) -> int:
    """Describe instances ``first`` to ``last``.

    Args:
        levels: int32 ``[instance, run, jump]``.
        ticks: int64 of the same shape.
        bound: int64 ``[instance, run]``, or with no instance for data without truncation.
        present: bool ``[instance, run]``.
        first, last: the instances to look at.
        limit: times up to here need no common divisor.
        found: int64 ``[instance, COLUMNS]``, receives the description.

    Returns:
        -1, or an instance with a level that is not between 1 and a million.
    """
    bits = np.zeros(WORKSPACE, np.uint64)
    union = np.empty(min(MILLION, levels.shape[1] * levels.shape[2]) + 1, np.int32)
    for instance in range(first, last):
        jumps = _mark(levels[instance], present[instance], bits)
        if jumps < 0:
            return instance
        count = _take(bits, union)
        unit = 0
        for k in range(count):
            unit = _gcd(union[k], unit)
            if unit == 1:
                break
        general = 0
        low, high = NEVER, -1
        for run in range(levels.shape[1]):
            if not present[instance, run]:
                continue
            if bound.shape[0] and bound[instance, run] != NEVER:
                general = 1
            before = -1
            for jump in range(levels.shape[2]):
                if levels[instance, run, jump] == LEVEL_PAD:
                    break
                tick = ticks[instance, run, jump]
                if tick <= before or tick == UNKNOWN:
                    general = 1
                if tick != UNKNOWN:
                    low, high, before = min(low, tick), max(high, tick), tick
        low = min(low, max(high, 0))
        divisor = 1
        if high - low > limit:
            divisor = _divisor(levels[instance], ticks[instance], present[instance], low)
        found[instance, LEVELS] = count
        found[instance, JUMPS] = jumps
        found[instance, GENERAL] = general
        found[instance, FIRST] = low
        found[instance, LAST] = (max(high, low) - low) // divisor
        found[instance, DIVISOR] = divisor
        found[instance, UNIT] = max(unit, 1)
        found[instance, TOP] = union[count - 1] // max(unit, 1) if count else 0
    return -1


@jit
def _divisor(levels: Array, ticks: Array, present: Array, low: int) -> int:
    """Greatest common divisor of an instance's times, counted from the first."""
    divisor = 0
    for run in range(levels.shape[0]):
        if not present[run]:
            continue
        for jump in range(levels.shape[1]):
            if levels[run, jump] == LEVEL_PAD:
                break
            if ticks[run, jump] == UNKNOWN:
                continue
            rest = ticks[run, jump] - low
            if divisor == 0 or rest % divisor != 0:
                divisor = _gcd(rest, divisor)
                if divisor == 1:
                    return 1
    return max(divisor, 1)


@jit
def fill(
    levels: Array,
    ticks: Array,
    bound: Array,
    present: Array,
    found: Array,
    order: Array,
    first: int,
    last: int,
    never: int,
    low: Array,
    high: Array,
    flags: Array,
    widths: Array,
    units: Array,
    here: Array,
    solved: Array,
) -> None:
    """Write the tables of blocks ``first`` to ``last``.

    Args:
        levels, ticks, bound, present, found: as for :func:`scan`.
        order: int64 ``[block, lane]``, the instance on each lane, -1 for none.
        first, last: the blocks to write.
        never: what stands for *never*.
        low: times ``[block, run, level, lane]``; the earliest possible ones where ``high`` has blocks.
        high, flags: of the same shape for data with unknown times, truncation or equal times; else without blocks.
        widths: ``[block, level, lane]``, levels' differences in units.
        units: int32 ``[block, lane]``, millionths per unit.
        here: int8 ``[block, run, lane]``, -1 where the run exists.
        solved: int8 ``[block, run, lane]``, -1 where the run reaches a million.
    """
    runs, depth, width = low.shape[1], low.shape[2], low.shape[3]
    general = high.shape[0] > 0
    bits = np.zeros(WORKSPACE, np.uint64)
    union = np.empty(min(MILLION, levels.shape[1] * levels.shape[2]) + 1, np.int32)
    for block in range(first, last):
        for lane in range(width):
            instance = order[block, lane]
            if instance < 0:
                units[block, lane] = 1
                widths[block, :, lane] = 0
                here[block, :, lane] = 0
                solved[block, :, lane] = 0
                low[block, :, :, lane] = never
                if general:
                    high[block, :, :, lane] = never
                    flags[block, :, :, lane] = NOT_REACHED
                continue
            _mark(levels[instance], present[instance], bits)
            count = _take(bits, union)
            unit, shift, divisor = found[instance, UNIT], found[instance, FIRST], found[instance, DIVISOR]
            units[block, lane] = unit
            below = 0
            for k in range(count):
                widths[block, k, lane] = (union[k] - below) // unit
                below = union[k]
            widths[block, count:, lane] = 0
            for run in range(runs):
                jumps = 0
                if present[instance, run]:
                    here[block, run, lane] = -1
                    jumps = levels.shape[2]
                else:
                    here[block, run, lane] = 0
                jump = 0
                k = 0
                while jump < jumps and levels[instance, run, jump] != LEVEL_PAD:
                    tick = ticks[instance, run, jump]
                    level = levels[instance, run, jump]
                    time = tick - shift
                    if divisor > 1:
                        time //= divisor
                    start = k
                    while union[k] < level:
                        low[block, run, k, lane] = time
                        k += 1
                    low[block, run, k, lane] = time
                    k += 1
                    if general:
                        late, flag = time, 0
                        if tick == UNKNOWN:
                            late, flag = never - 1, UNKNOWN_TIME
                            low[block, run, start:k, lane] = -1
                        for other in range(start, k):
                            high[block, run, other, lane] = late
                            flags[block, run, other, lane] = flag
                        flags[block, run, k - 1, lane] = flag | OWN
                    jump += 1
                solved[block, run, lane] = -1 if k > 0 and union[k - 1] == MILLION else 0
                open_from = never
                if general and bound.shape[0] and bound[instance, run] != NEVER:
                    # Later than every real time is as good as any later one, and fits the table.
                    left = -((shift - bound[instance, run]) // divisor)
                    open_from = max(0, min(left, found[instance, LAST] + 1))
                for other in range(k, depth):
                    low[block, run, other, lane] = open_from
                if general:
                    for other in range(k, depth):
                        high[block, run, other, lane] = never
                        flags[block, run, other, lane] = NOT_REACHED
