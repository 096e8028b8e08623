"""Simulated runs and preferences for tests of what rests on samples of instances."""

from __future__ import annotations

import numpy as np
import torch

import torchpref as tp
from torchpref.pairwise.preferences import Preferences, all_pairs


def template(
    instances: int, systems: int, benchmarks: list[str] | None = None, families: list[str | None] | None = None
) -> tp.Trajectories:
    """Names for n instances and S systems; their runs do not matter."""
    return tp.Trajectories(torch.zeros(instances, systems, 1, 1), benchmarks=benchmarks, families=families)


def preferences_of(
    sums: np.ndarray | torch.Tensor,
    unit: int = 1,
    mask: torch.Tensor | None = None,
    weights: torch.Tensor | None = None,
    benchmarks: list[str] | None = None,
    families: list[str | None] | None = None,
) -> Preferences:
    """Preferences with one trial pair each from whole numbers ``[instance, pair]``."""
    sums = torch.as_tensor(sums).long()
    instances, pairs = sums.shape
    systems = int(round((1 + np.sqrt(1 + 8 * pairs)) / 2))
    here = torch.ones_like(sums) if mask is None else mask.long()
    return Preferences(
        measure="lr" if unit == 1 else "rpp",
        runs=template(instances, systems, benchmarks, families),
        clock="steps",
        pairs=all_pairs(systems),
        sums=sums * here,
        unit=unit,
        trial_pairs=here,
        ties=((sums == 0) & (here > 0)).long(),
        weights=torch.ones(instances, dtype=torch.float64) if weights is None else weights.double(),
    )


def ternary(instances: int, systems: int, seed: int, spread: float = 1.0, ties: float = 0.5) -> np.ndarray:
    """Δ in {-1, 0, 1} ``[instance, pair]`` of systems of which later ones are better."""
    rng = np.random.default_rng(seed)
    ahead = rng.standard_normal((instances, systems)) + np.linspace(0, spread, systems)
    first, second = np.triu_indices(systems, 1)
    gap = ahead[:, first] - ahead[:, second]
    return np.where(np.abs(gap) <= ties, 0, np.sign(gap)).astype(np.int64)


def graded_runs(
    instances: int = 20,
    systems: int = 4,
    trials: int = 1,
    seed: int = 0,
    levels: int = 4,
    missing: float = 0.0,
    **options: object,
) -> tp.Trajectories:
    """Runs with a few levels and random times; later systems reach more."""
    rng = np.random.default_rng(seed)
    chance = np.linspace(0.35, 0.65, systems)[None, :, None]
    reached = rng.binomial(levels, chance, (instances, systems, trials))
    step = np.arange(1, levels + 1)
    returns = np.minimum(step, reached[..., None]) / levels
    times = np.cumsum(rng.integers(1, 5, (instances, systems, trials, levels)), axis=-1)
    present = rng.random((instances, systems, trials)) >= missing
    return tp.Trajectories(
        torch.from_numpy(returns),
        times={"steps": torch.from_numpy(times)},
        present=torch.from_numpy(present),
        **options,
    )
