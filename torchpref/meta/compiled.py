"""Compiled loops over replicates. Every replicate is computed by itself, so the cut into threads changes no number.

Import this module where it is used: it imports numba.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from torchpref.kernels.compiled import jit, run, split, threads

#: So few terms are gone through with all signs.
_FEW = 10
#: Terms are uneven where they count as fewer than _EVEN equal ones, and as fewer than _UNEVEN of their number; then the
#: largest are looked at one by one, at most so many of them.
_EVEN, _UNEVEN, _PEEL = 12.0, 0.6, 8
_NOTHING = 1e-9
#: Scores closer than this are equal.
TIE = 1e-9


def over_rows(function: Callable[..., Any], rows: int, *arguments: Any) -> None:
    """``function(first, last, *arguments)`` for pieces of ``range(rows)``, on as many threads as torch uses."""
    if rows:
        run(function, [(first, last, *arguments) for first, last in split(rows, threads())])


@jit
def _two_sided(distance: Any, square: Any, fourth: Any) -> Any:
    """Chance that |S| is at least ``distance`` > 0, from the moments of S."""
    degrees = 3.0 * max(1.0, square * square / fourth) - 3.0
    share = distance * distance / (square * (degrees + 1.0))
    if share >= 1.0:
        return 0.0
    normal = (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0) * math.sqrt(-degrees * math.log1p(-share))
    return math.erfc(normal * 0.7071067811865476)


@jit
def _upper(distance: Any, square: Any, fourth: Any, span: Any) -> Any:
    """Chance that S is at least ``distance``, of any sign; S is 0 where ``square`` is."""
    if square <= _NOTHING:
        return 1.0 if distance <= _NOTHING else 0.0
    beyond = distance - span
    if beyond > 0.0:
        return 0.5 * _two_sided(beyond, square, fourth)
    return 1.0 - 0.5 * _two_sided(-beyond, square, fourth) if beyond < 0.0 else 0.5


@jit
def _enumerated(total: Any, values: Any, copies: Any) -> Any:
    """Two-sided tail of Σ ± values at |total| by going through all signs of at most ``_FEW`` terms."""
    terms = np.empty(_FEW)
    size = 0
    everything = 0.0
    for k in range(len(values)):
        if values[k] != 0.0:
            for _ in range(copies[k]):
                terms[size] = abs(values[k])
                everything += terms[size]
                size += 1
    # The last sign is held fixed: a pattern and its opposite have the same |sum|. One sign changes at a time (Gray code).
    limit = abs(total) - _NOTHING * everything
    hits = 0
    current = everything
    patterns = 2 ** (size - 1)
    gray = 0
    for number in range(patterns):
        hits += abs(current) >= limit
        following = (number + 1) ^ ((number + 1) >> 1)
        changed = gray ^ following
        for k in range(size - 1):
            if changed == 1 << k:
                current += 2.0 * terms[k] if gray & changed else -2.0 * terms[k]
        gray = following
    return hits / patterns


@jit
def _peeled(total: Any, values: Any, copies: Any, unit: Any, span: Any, count: Any) -> Any:
    """Two-sided tail of Σ ± values at |total|: all signs of the largest terms, and the moments of the rest."""
    left = copies.copy()
    square, fourth = 0.0, 0.0
    for k in range(len(values)):
        x = values[k] * unit
        square += left[k] * x * x
        fourth += left[k] * x * x * x * x
    top = np.zeros(_PEEL)
    size = 0
    while size < _PEEL and square * square < min(_EVEN, _UNEVEN * (count - size)) * fourth:
        best, place = 0.0, -1
        for k in range(len(values)):
            if left[k] > 0 and abs(values[k]) > best:
                best, place = abs(values[k]), k
        if place < 0:
            square, fourth = 0.0, 0.0
            break
        x = best * unit
        top[size] = x
        left[place] -= 1
        square -= x * x
        fourth -= x * x * x * x
        size += 1
    chance = 0.0
    for pattern in range(2**size):
        rest = abs(total) * unit
        for k in range(size):
            rest -= top[k] if (pattern >> k) & 1 else -top[k]
        chance += _upper(rest, square, fourth, span)
    return min(1.0, 2.0 * chance / 2**size)


@jit
def tail(total: Any, values: Any, copies: Any, unit: Any, span: Any, square: Any, fourth: Any, count: Any) -> Any:
    """Two-sided p of Σ copies · values = ``total`` under fair signs of all copies.

    Args:
        total: in the unit of the values.
        values, copies: ``[instance]``.
        unit: times which ``values`` give the x of the moments.
        span: half the distance between possible sums, in the unit of the values.
        square, fourth, count: Σx², Σx⁴ and the number of x that are not 0, over all copies.
    """
    distance = (abs(total) - span) * unit
    if square <= 0.0 or distance <= 0.0:
        return 1.0
    if count <= _FEW:
        return _enumerated(total, values, copies)
    uneven = square * square < min(_EVEN, _UNEVEN * count) * fourth
    p = _peeled(total, values, copies, unit, span * unit, count) if uneven else _two_sided(distance, square, fourth)
    return max(p, 2.0 ** (1.0 - count))


@jit
def dealt_rows(
    first: Any, last: Any, matrix: Any, present: Any, dealt: Any, pairs: Any, unit: Any, span: Any, result: Any
) -> None:
    """p-values between pseudo-systems in each draw.

    Args:
        matrix: ``[instance, trial, trial]``, vΔ of every two trials.
        present: int64 ``[instance]``, how many trials there are.
        dealt: int64 ``[draw, instance, pseudo-system]``, the trial that each gets.
        pairs: int64 ``[pair, 2]``, the second one larger.
        unit, span: numbers, as for :func:`tail`.
        result: float64 ``[draw, pair]``.
    """
    instances = matrix.shape[0]
    x = np.empty(instances)
    copies = np.empty(instances, dtype=np.int32)
    for row in range(first, last):
        for pair in range(len(pairs)):
            a, b = pairs[pair, 0], pairs[pair, 1]
            total, square, fourth, count, shared = 0.0, 0.0, 0.0, 0.0, 0
            for k in range(instances):
                there = b < present[k]
                x[k] = matrix[k, dealt[row, k, a], dealt[row, k, b]] if there else 0.0
                copies[k] = 1 if there else 0
                scaled = x[k] * unit
                total += x[k]
                square += scaled * scaled
                fourth += scaled**4
                count += scaled != 0.0
                shared += there
            result[row, pair] = tail(total, x, copies, unit, span, square, fourth, count) if shared else np.nan


@jit
def decide_rows(
    first: Any, last: Any, total: Any, values: Any, drawn: Any, unit: Any, span: Any, square: Any, fourth: Any, count: Any,
    given: Any, tested: Any, known: Any, alpha: Any, counts: Any,
) -> None:  # fmt: skip
    """How many pairs are significant, right, and both, in each row.

    Args:
        total, values, drawn, unit, span, square, fourth, count: ``values`` are ``[pair, instance]``, ``drawn`` is
            ``[row, instance]``; the rest as in :func:`tail`.
        given: p-values instead; no rows where they are to be computed.
        tested: bool ``[row or 1, pair]``, which pairs are tested.
        known: signs of the known order, 0 where nothing is judged.
        counts: int64 ``[row, 7]``: tested, Holm, BH, judged, right, right and Holm, right and BH.
    """
    pairs = total.shape[1]
    p = np.empty(pairs)
    small = np.empty(pairs)
    for row in range(first, last):
        mask = tested[row if tested.shape[0] > 1 else 0]
        found = 0
        tests = 0
        for pair in range(pairs):
            p[pair] = 2.0
            if not mask[pair]:
                continue
            tests += 1
            if given.shape[0]:
                p[pair] = given[row, pair]
            else:
                value = total[row, pair] * unit[pair]
                # A sum of fair signs exceeds its standard deviation with a chance of 3/32 at least.
                if alpha <= 0.05 and value * value < square[row, pair]:
                    continue
                p[pair] = tail(
                    total[row, pair], values[pair], drawn[row], unit[pair], span[pair],
                    square[row, pair], fourth[row, pair], count[row, pair],
                )  # fmt: skip
            if p[pair] <= alpha:
                small[found] = p[pair]
                found += 1
        ordered = np.sort(small[:found])
        holm = -1.0
        for rank in range(found):
            if ordered[rank] * (tests - rank) > alpha:
                break
            holm = ordered[rank]
        benjamini = -1.0
        for rank in range(found - 1, -1, -1):
            if ordered[rank] * tests / (rank + 1) <= alpha:
                benjamini = ordered[rank]
                break
        line = counts[row]
        line[0] = tests
        for pair in range(pairs):
            if not mask[pair]:
                continue
            by_holm, by_benjamini = p[pair] <= holm, p[pair] <= benjamini
            line[1] += by_holm
            line[2] += by_benjamini
            if known[pair] != 0.0:
                line[3] += 1
                if total[row, pair] * known[pair] > 0.0:
                    line[4] += 1
                    line[5] += by_holm
                    line[6] += by_benjamini


@jit
def flip_rows(
    first: Any, last: Any, sums: Any, values: Any, least: Any, largest: Any, drawn: Any, slack: Any, counts: Any
) -> None:
    """In each row, how many pairs some instance flips, and how many (pair, instance) do.

    Args:
        sums: ``[row, pair]``.
        values: ``[pair, instance]``.
        least, largest: ``[pair]``, extremes of the values.
        drawn: int32 ``[row, instance]``.
        slack: sums of at most this size are 0.
        counts: int64 ``[row, 2]``.
    """
    for row in range(first, last):
        for pair in range(sums.shape[1]):
            total = sums[row, pair]
            # Only a sum smaller than some single value can be reversed by leaving one out.
            if total > 0 and total < largest[pair] - slack:
                sign = 1.0
            elif total < 0 and total > least[pair] + slack:
                sign = -1.0
            else:
                continue
            limit = total * sign + slack
            hits = 0
            for instance in range(drawn.shape[1]):
                if values[pair, instance] * sign > limit:
                    hits += drawn[row, instance]
            counts[row, 0] += hits > 0
            counts[row, 1] += hits


@jit
def _sign(difference: Any) -> Any:
    if difference > TIE:
        return 1
    return -1 if difference < -TIE else 0


@jit
def kendall_rows(first: Any, last: Any, mine: Any, other: Any, result: Any) -> None:
    """Kendall's τ-b between rows of scores; a NaN ties with all. One row of ``mine`` stands for all."""
    for row in range(first, last):
        a, b = mine[row if mine.shape[0] > 1 else 0], other[row]
        together, untied_a, untied_b = 0, 0, 0
        for i in range(len(a)):
            for j in range(i + 1, len(a)):
                x, y = _sign(a[i] - a[j]), _sign(b[i] - b[j])
                together += x * y
                untied_a += x * x
                untied_b += y * y
        result[row] = together / math.sqrt(float(untied_a) * untied_b) if untied_a and untied_b else np.nan


@jit
def correlation_rows(
    first: Any, last: Any, sums: Any, other: Any, weights: Any, other_weights: Any, result: Any
) -> None:
    """Correlation of means over both orientations of every pair; pairs without weight in a half do not count."""
    for row in range(first, last):
        together, square, other_square = 0.0, 0.0, 0.0
        for pair in range(sums.shape[1]):
            column = pair if weights.shape[1] > 1 else 0
            w, v = weights[row, column], other_weights[row, column]
            if w > 0 and v > 0:
                x, y = sums[row, pair] / w, other[row, pair] / v
                together += x * y
                square += x * x
                other_square += y * y
        spread = square * other_square
        result[row] = together / math.sqrt(spread) if spread > 0 else np.nan
