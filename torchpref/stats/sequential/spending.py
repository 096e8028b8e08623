"""Spending an error of α over looks: a difference is established once the walk of the sums leaves a region, at any look.

Given the sizes |Δ| the sum S is, under the null, a walk with random signs. Up to instance n of N planned at most
α(n) = α·ln(1 + (e − 1)·n/N) may have been spent (Lan and DeMets, *Discrete sequential boundaries for clinical trials*, 1983,
with the function that spends early). After every instance the largest tail of the walk is removed whose mass still fits
α(n) less what was spent; the data are significant once they lie in it. For Δ in {−1, 0, 1} the masses are found exactly, by
dynamic programming over the walk that is still alive; :mod:`torchpref.stats.sequential.paths` takes over where Δ is graded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike, NDArray

from torchpref.errors import UsageError

#: Columns by which the array of sums grows when the walk reaches its edge.
_GROW = 16


def spent_by(seen: ArrayLike, planned: int, alpha: float) -> NDArray[np.float64]:
    """α(n) = α·ln(1 + (e − 1)·n/N), what may have been spent after ``seen`` of ``planned`` instances."""
    return np.asarray(alpha * np.log1p((np.e - 1) * np.asarray(seen, dtype=np.float64) / planned))


@dataclass(frozen=True)
class Boundary:
    """Where looks stop, for every path after every instance.

    Attributes:
        bound: float64 ``[path, instance]``: established at a sum of at most −bound (two-sided: or at least bound); NaN where
            nothing that can be reached is removed.
        spent: float64 ``[path, instance]``, mass removed so far, at most α(n).
        crossed: int64 ``[path]``, the first instance, counted from 1, after which the data lie in the tail; 0 for never.
        side: int64 ``[path]``, +1 or −1, the sign of the sum there; 0 for never.
        alive: float64 ``[path, sum]``, the mass of the walk that was not removed, after the last instance.
    """

    bound: Float[np.ndarray, "path instance"]
    spent: Float[np.ndarray, "path instance"]
    crossed: Int[np.ndarray, " path"]
    side: Int[np.ndarray, " path"]
    alive: Float[np.ndarray, "path sum"]


def ternary_boundary(
    delta: Int[np.ndarray, "path instance"], planned: int, alpha: float, two_sided: bool = False, final: bool = False
) -> Boundary:
    """Spend α over the looks at paths of −1, 0 and 1, exactly.

    Args:
        delta: ``[path, instance]`` in the order in which instances were run. One-sided, a low sum is what is looked for.
        planned: N, at least the number of instances.
        alpha: what may be spent up to N.
        two_sided: look for high sums too; α is spent on both tails together.
        final: the last look may spend all that is left, because no run is to come.

    Raises:
        UsageError: more instances than planned, or values that are not −1, 0 or 1.
    """
    values = np.asarray(delta, dtype=np.int64)
    paths, count = values.shape
    if count > planned:
        raise UsageError(f"{count} instances were seen of {planned} planned; later instances are not looked at")
    if values.size and np.abs(values).max() > 1:
        raise UsageError("paths of -1, 0 and 1 are needed; graded preferences are looked at by random signs")
    budget = spent_by(np.arange(1, count + 1), planned, alpha)
    if final and count:
        budget[-1] = alpha
    half = _GROW
    mass = np.zeros((paths, 2 * half + 1))
    mass[:, half] = 1.0
    spent = np.zeros(paths)
    bounds, spent_at = np.full((paths, count), np.nan), np.zeros((paths, count))
    crossed, side = np.zeros(paths, dtype=np.int64), np.zeros(paths, dtype=np.int64)
    sums, decided = np.cumsum(values, axis=1), np.cumsum(values != 0, axis=1)
    for n in range(count):
        if mass[:, :3].any() or mass[:, -3:].any():  # the outermost column stays empty
            mass = np.pad(mass, ((0, 0), (_GROW, _GROW)))
            half += _GROW
        moves = values[:, n] != 0
        if moves.all():
            mass = _step(mass)
        elif moves.any():
            mass[moves] = _step(mass[moves])
        tail = np.cumsum(mass[:, : half + 1], axis=1)
        if two_sided:
            tail *= 2.0
        room = np.maximum(budget[n] - spent, 0.0)
        levels = (tail <= room[:, None]).sum(axis=1) - 1  # the highest column that fits; the outermost always does
        removed = np.take_along_axis(tail, levels[:, None], axis=1)[:, 0]
        rows = np.flatnonzero(removed > 0)
        if len(rows):
            gone = np.arange(half + 1)[None, :] <= levels[rows, None]
            low = mass[rows]
            low[:, : half + 1][gone] = 0.0
            if two_sided:
                low[:, half:][gone[:, ::-1]] = 0.0
            mass[rows] = low
            spent = spent + removed
        spent_at[:, n] = spent
        bound = half - levels
        bound = bound + (bound + decided[:, n]) % 2  # a sum has the parity of the number of decided instances
        reachable = (bound <= decided[:, n]) & (bound > 0)
        bounds[reachable, n] = bound[reachable]
        beyond = reachable & (crossed == 0)
        hit = beyond & ((np.abs(sums[:, n]) if two_sided else -sums[:, n]) >= bound)
        crossed[hit] = n + 1
        side[hit] = np.sign(sums[hit, n])
    return Boundary(bounds, spent_at, crossed, side, mass)


def _step(mass: NDArray[np.float64]) -> NDArray[np.float64]:
    """One fair step; nothing lies in the outermost column."""
    moved = np.zeros_like(mass)
    moved[:, 1:] += mass[:, :-1]
    moved[:, :-1] += mass[:, 1:]
    moved *= 0.5
    return moved
