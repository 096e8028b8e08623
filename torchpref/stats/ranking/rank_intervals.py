"""Intervals for ranks, from simultaneous intervals for the differences of all pairs of scores.

A system's rank is at least one more than the number of systems whose difference to it is certainly positive, and at most the
number of systems less those whose difference is certainly negative (Mogstad, Romano, Shaikh and Wilhelm, *Inference for ranks
with applications to mobility across neighbourhoods and academic achievement across countries*, 2024). The intervals hold for
all ranks at once. Quantiles of bootstrapped ranks do not: among near-equal systems the last one seldom stays last in a
resample, so its true rank is hardly ever covered.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from torchpref.stats.ranking.score_errors import Contributions
from torchpref.stats.resampling.instances import fixed_point
from torchpref.stats.significance.flips import flip_signs

#: Random sign patterns behind the critical value.
DRAWS = 4080
_CELLS = 1 << 20


def rank_intervals(
    scores: NDArray[np.float64], contributions: Contributions, level: float, seed: int
) -> tuple[NDArray[np.int64], float]:
    """Lowest and highest rank of each system, ``[system, 2]``, and the critical value of the differences.

    Args:
        scores: float64 ``[system]``, higher is better.
        contributions: what each cluster of instances contributes to the scores.
        level: chance that all ranks are covered.
        seed: whole number.
    """
    residuals = contributions.residuals()
    count, size = residuals.shape
    critical = critical_value(residuals, level, seed)
    product = np.einsum("ns,nt->st", residuals, residuals)
    variance = np.maximum(np.diag(product)[:, None] + np.diag(product)[None, :] - 2 * product, 0.0)
    # Where two systems differ by the same on every instance rounding is all the variance there is.
    variance[variance <= 1e-18 * (np.diag(product)[:, None] + np.diag(product)[None, :] + 1e-300)] = 0.0
    difference = scores[:, None] - scores[None, :]
    error = np.sqrt(variance)
    margin = np.where(error > 0, critical * np.where(error > 0, error, 1.0), np.inf if np.isinf(critical) else 0.0)
    better = difference > np.maximum(margin, 1e-9)
    lowest = 1 + better.sum(axis=0)
    highest = size - better.sum(axis=1)
    return np.stack([lowest, highest], axis=1).astype(np.int64), critical


def critical_value(residuals: NDArray[np.float64], level: float, seed: int, draws: int = DRAWS) -> float:
    """How many standard errors cover all pairwise differences at once.

    The residuals' signs are flipped at random, one coin per cluster for all systems, and every difference is divided by the
    standard error that it has after the flips; the level-quantile of the largest over all pairs is taken. Infinite where the
    clusters are too few to be sure of anything.
    """
    count, size = residuals.shape
    if count < 2 or size < 2:
        return float("inf")
    whole = fixed_point(torch.from_numpy(residuals), count)
    first, second = np.triu_indices(size, 1)
    norms = np.empty(len(first))
    step = max(1, _CELLS // count)
    for start in range(0, len(first), step):
        part = slice(start, start + step)
        norms[part] = ((residuals[:, first[part]] - residuals[:, second[part]]) ** 2).sum(axis=0)
    usable = norms > 1e-18 * max(norms.max(initial=0.0), 1e-300)
    if not usable.any():
        return float("inf")
    first, second = first[usable], second[usable]
    a, b, scale = (
        torch.from_numpy(first),
        torch.from_numpy(second),
        torch.from_numpy(1 / np.sqrt(norms[usable])),
    )
    largest = []
    at_once = max(1, _CELLS // len(first))
    for block in range(-(-draws // DRAWS)):
        coins = torch.from_numpy(flip_signs(count, block, seed, "multipliers"))[: draws - block * DRAWS]
        for start in range(0, len(coins), at_once):
            sums = whole.weighted_sums(1 - 2 * coins[start : start + at_once].double()).t().contiguous()
            largest.append((sums[a].sub_(sums[b]).abs_().mul_(scale[:, None])).amax(0))
    top = torch.cat(largest).sort().values.numpy()
    # s = |Σ±d| / √Σd², and the t statistic of the flipped sample is s √((n − 1) / (n − s²)); the residuals' own factor
    # √(n / (n − 1)) cancels in s.
    s = top[min(len(top) - 1, int(np.ceil(level * (len(top) + 1))) - 1)]
    left = count - s * s
    return float(s * np.sqrt((count - 1) / left)) if left > 1e-9 * count else float("inf")
