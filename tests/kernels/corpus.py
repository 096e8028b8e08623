"""Curves that are hard on kernels, made from a seed: every kind of table, trials, gaps, unknown and equal times, limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from torchpref.kernels.pair_sums import FIELDS, PairSums
from torchpref.runs.curves import LEVEL_PAD, Curves
from torchpref.runs.units import MILLION, NEVER, UNKNOWN


@dataclass(frozen=True)
class Kind:
    """What makes a data set hard."""

    name: str
    missing: float = 0.0
    unknown: float = 0.0
    truncated: float = 0.0
    equal_times: bool = False
    scale: int = 1
    jitter: bool = False
    odd_levels: bool = False
    start: int = 0


KINDS = (
    Kind("plain"),
    Kind("gaps", missing=0.3),
    Kind("unknown", unknown=0.3),
    Kind("all unknown", unknown=1.0),
    Kind("truncated", truncated=0.5),
    Kind("equal times", equal_times=True),
    Kind("everything", missing=0.2, unknown=0.2, truncated=0.3, equal_times=True, odd_levels=True),
    Kind("odd levels", odd_levels=True),
    Kind("common divisor", scale=10**9),
    Kind("32 bits", scale=10**6, jitter=True),
    Kind("32 bits, everything", scale=10**6, jitter=True, missing=0.2, unknown=0.2, truncated=0.3, odd_levels=True),
    Kind("64 bits", scale=10**12, jitter=True, odd_levels=True),
    Kind("64 bits, everything", scale=10**12, jitter=True, missing=0.2, unknown=0.2, truncated=0.3),
    Kind("largest ticks", scale=10**15, jitter=True, start=2**61 - 10**18),
)
#: instances, systems, trials, jumps, levels
SHAPES = (
    (1, 2, 1, 1, 1),
    (7, 4, 1, 6, 8),
    (70, 5, 1, 10, 12),
    (3, 4, 1, 60, 90),
    (4, 3, 3, 6, 8),
    (40, 3, 2, 5, 40),
    (5, 1, 2, 3, 4),
)


def curves(kind: Kind, shape: tuple[int, int, int, int, int], seed: int = 0) -> Curves:
    """Random curves of a kind."""
    rng = np.random.default_rng([seed, *shape])
    *runs, jumps, depth = shape
    levels = np.full((*runs, jumps), LEVEL_PAD, np.int32)
    ticks = np.full((*runs, jumps), NEVER)
    bound = np.full(runs, NEVER)
    for run in np.ndindex(*runs):
        grid = np.arange(1, depth + 1) * (MILLION // depth)
        if kind.odd_levels:
            grid = np.sort(
                rng.choice(np.arange(1, 40), depth, replace=False)
                if depth < 39
                else rng.choice(MILLION, depth, replace=False) + 1
            )
            grid[-1] = MILLION if rng.random() < 0.5 else max(grid[-1], 1)
        count = rng.integers(0, min(jumps, depth) + 1)
        gaps = rng.integers(0 if kind.equal_times else 1, 4, count) * kind.scale
        if kind.jitter:
            gaps = gaps + rng.integers(0, kind.scale // 2, count)
        when = kind.start + np.cumsum(gaps)
        levels[run][:count] = np.sort(rng.choice(grid, count, replace=False))
        ticks[run][:count] = np.where(rng.random(count) < kind.unknown, UNKNOWN, when)
        if rng.random() < kind.truncated:
            stopped = (when[-1] if count else kind.start) + rng.integers(0, 6) * kind.scale
            bound[run] = 0 if rng.random() < 0.2 else stopped + 1
    return Curves(
        levels=torch.from_numpy(levels),
        ticks=torch.from_numpy(ticks),
        bound=torch.from_numpy(bound) if kind.truncated else None,
        present=torch.from_numpy(rng.random(runs) >= kind.missing),
    )


def corpus() -> Iterator[tuple[str, Curves]]:
    """Every kind in every shape, with a name."""
    for kind in KINDS:
        for shape in SHAPES:
            yield f"{kind.name} {shape}", curves(kind, shape)


def pairs_of(curves_: Curves) -> torch.Tensor:
    return torch.combinations(torch.arange(curves_.shape[1]), 2).reshape(-1, 2)


def assert_same(ours: PairSums, theirs: PairSums, what: str = "") -> None:
    for field in FIELDS:
        mine, other = getattr(ours, field), getattr(theirs, field)
        assert mine.dtype == other.dtype == torch.int64
        assert torch.equal(mine, other), f"{what}: {field} differs at {(mine != other).nonzero()[:3].tolist()}"
