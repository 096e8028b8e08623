"""Spending an error of α on random paths: for graded preferences, families of tasks, and unequal numbers of runs.

The masses of :mod:`torchpref.stats.sequential.spending` become counts. Of B + 1 paths, one of them the data, after every
instance those with the lowest sums are removed as long as their number fits (α(n) − spent)·(B + 1); paths with one sum are
removed together. The data count as one path once, not once a look, so the chance that they are removed by N is at most α
exactly, whatever B.

Paths come from signs (one coin per instance, or per family of instances) or from labels permuted among the runs of an instance.
The coin of instance i in path b depends on (seed, b, i) alone: a later look sees the same paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray

from torchpref.stats.resampling.instances import stream

#: Paths behind one comparison.
PATHS = 10_000
#: Parts that make Δ = 1: means over up to 16 trial pairs of millionths are whole numbers of it, sums of 10⁷ stay in 64 bits.
UNIT = 720_720 * 1_000_000


@dataclass(frozen=True)
class Pooled:
    """The runs of two systems on one instance that they ran unequally often.

    Attributes:
        totals: int64 ``[run]``, what each run adds to Δ under the first label, in parts of 1/UNIT.
        first: how many of them get the first label; in the data the first ones.
    """

    totals: Int[np.ndarray, " run"]
    first: int


def signs(seed: int, position: int, paths: int) -> Int[np.ndarray, " path"]:
    """+1 or −1 for every path at one position of the order; path 0 is the data and keeps its sign."""
    raw = np.frombuffer(stream(seed, "looks", position).bytes(-(-paths // 8)), dtype=np.uint8)
    result = 1 - 2 * np.unpackbits(raw, count=paths).astype(np.int64)
    result[0] = 1
    return result


def sign_steps(
    delta: Int[np.ndarray, " instance"], family: Int[np.ndarray, " instance"], seed: int, paths: int
) -> Iterator[Int[np.ndarray, " path"]]:
    """Steps of all paths after every instance, signs flipped by family.

    Args:
        delta: Δ in parts of 1/UNIT.
        family: the position of the first instance of each instance's family; its own where it is of none.
        seed: whole number.
        paths: B + 1.
    """
    shared: dict[int, NDArray[np.int64]] = {}
    repeated = set(family[family != np.arange(len(family))].tolist())
    for position, value in enumerate(delta.tolist()):
        coin = int(family[position])
        if coin in shared:
            flips = shared[coin]
        else:
            flips = signs(seed, coin, paths)
            if coin in repeated:
                shared[coin] = flips
        yield flips * value


def label_steps(
    delta: Int[np.ndarray, " instance"], pooled: Sequence[Pooled | None], seed: int, paths: int
) -> Iterator[Int[np.ndarray, " path"]]:
    """Steps of all paths, labels permuted among the pooled runs; where both ran equally often the sign is flipped."""
    for position, (value, runs) in enumerate(zip(delta.tolist(), pooled, strict=True)):
        if runs is None:
            yield signs(seed, position, paths) * value
            continue
        keys = stream(seed, "relabelled", position).random((paths, len(runs.totals)))
        chosen = np.argpartition(keys, runs.first - 1, axis=1)[:, : runs.first]
        steps = runs.totals[chosen].sum(axis=1)
        steps[0] = value
        yield steps


@dataclass(frozen=True)
class PathLooks:
    """Where looks stop on random paths.

    Attributes:
        bound: float64 ``[instance]`` in units of Δ: established at a sum of at most −bound (two-sided: or at least bound); NaN
            where no path is removed.
        spent: float64 ``[instance]``, share of the paths removed so far.
        crossed: the first instance, from 1, after which the data are removed; 0 for never.
        side: sign of the sum there; 0 for never.
    """

    bound: Float[np.ndarray, " instance"]
    spent: Float[np.ndarray, " instance"]
    crossed: int
    side: int


def path_boundary(
    steps: Iterator[Int[np.ndarray, " path"]],
    budget: Float[np.ndarray, " instance"],
    looks: Bool[np.ndarray, " instance"],
    two_sided: bool,
    exact: Float[np.ndarray, " prefix"],
    exact_spent: Float[np.ndarray, " prefix"],
) -> PathLooks:
    """Spend on the paths.

    Args:
        steps: after every instance the steps of all paths; path 0 is the data.
        budget: α(n), what may have been spent.
        looks: whether one looks after this instance.
        two_sided: look for high sums too.
        exact: bounds of the first instances that were found exactly (units of Δ); paths beyond them are removed.
        exact_spent: what these spent.
    """
    count = len(budget)
    known = len(exact)
    before = float(exact_spent[-1]) if known else 0.0
    bounds, spent = np.full(count, np.nan), np.zeros(count)
    bounds[:known], spent[:known] = exact, exact_spent
    crossed = side = removed = 0
    sums: NDArray[np.int64] | None = None
    alive: NDArray[np.bool_] = np.ones(0, dtype=bool)
    for n, step in enumerate(steps):
        if sums is None:
            sums, alive = np.zeros_like(step), np.ones(len(step), dtype=bool)
        sums = sums + step
        depth = -np.abs(sums) if two_sided else sums
        if n < known:
            gone = alive & (depth <= -exact[n] * UNIT) if not np.isnan(exact[n]) else np.zeros_like(alive)
        else:
            gone = np.zeros_like(alive)
            room = int(np.floor((budget[n] - before) * len(alive))) - removed
            if looks[n] and room > 0:
                lowest = depth[alive]
                # All below the (room + 1)-th lowest sum are at most ``room``, and those with that sum would be more.
                limit = np.partition(lowest, room)[room] if room < len(lowest) else np.iinfo(np.int64).max
                limit = min(limit, 0)  # a sum of 0 or above is on no side
                gone = alive & (depth < limit)
            if gone.any():
                removed += int(gone.sum())
                bounds[n] = -float(depth[gone].max()) / UNIT
            spent[n] = before + removed / len(alive)
        if gone.any() and gone[0] and not crossed:
            crossed, side = n + 1, int(np.sign(sums[0]))
        alive = alive & ~gone
    return PathLooks(bounds, spent, crossed, side)
