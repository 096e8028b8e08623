"""Compiled loops over replicates. Every replicate is computed by itself, so the cut into threads changes no number.

Import this module where it is used: it imports numba.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from torchpref.kernels.numba_support import run, split, threads

#: Below this |S| / √Σx² of at least four equal terms no p-value is 0.05 or less.
_HARMLESS = 1.7
#: Scores closer than this are equal.
TIE = 1e-9


def _compiled(function: Callable[..., Any]) -> Any:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to keep compiled code in: compile in every process
        return numba.njit(**options)(function)


def over_rows(function: Callable[..., Any], rows: int, *arguments: Any) -> None:
    """``function(first, last, *arguments)`` for pieces of ``range(rows)``, on as many threads as torch uses."""
    if rows:
        run(function, [(first, last, *arguments) for first, last in split(rows, threads())])


@_compiled
def tail(total: Any, square: Any, fourth: Any, count: Any, span: Any) -> Any:
    """Two-sided tail of Σ ± x at |total|, see :mod:`torchpref.meta.fast_test`."""
    distance = abs(total) - span
    if square <= 0.0 or distance <= 0.0:
        return 1.0
    terms = max(1.0, square * square / fourth)
    degrees = 3.0 * terms - 3.0
    share = min(distance * distance / (square * (degrees + 1.0)), 1.0 - 1e-12)
    normal = (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0) * math.sqrt(-degrees * math.log1p(-share))
    return max(math.erfc(normal * 0.7071067811865476), 2.0 ** (1.0 - count))


@_compiled
def p_rows(
    first: Any, last: Any, total: Any, square: Any, fourth: Any, count: Any, span: Any, unit: Any, result: Any
) -> None:
    """p-values of rows; ``total`` and ``span`` times ``unit`` ``[pair]`` are what the powers are sums of."""
    for row in range(first, last):
        for pair in range(total.shape[1]):
            result[row, pair] = tail(
                total[row, pair] * unit[pair], square[row, pair], fourth[row, pair], count[row, pair],
                span[pair] * unit[pair],
            )  # fmt: skip


@_compiled
def decide_rows(
    first: Any, last: Any, total: Any, square: Any, fourth: Any, count: Any, span: Any, unit: Any, given: Any, tested: Any,
    known: Any, alpha: Any, counts: Any,
) -> None:  # fmt: skip
    """How many pairs are significant, right, and both, in each row.

    Args:
        total, square, fourth, count, span, unit: as for :func:`p_rows`.
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
                even = square[row, pair] * square[row, pair] > 4.0 * fourth[row, pair]
                if even and alpha <= 0.05 and value * value < _HARMLESS * _HARMLESS * square[row, pair]:
                    continue
                p[pair] = tail(value, square[row, pair], fourth[row, pair], count[row, pair], span[pair] * unit[pair])
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


@_compiled
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


@_compiled
def _sign(difference: Any) -> Any:
    if difference > TIE:
        return 1
    return -1 if difference < -TIE else 0


@_compiled
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


@_compiled
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
