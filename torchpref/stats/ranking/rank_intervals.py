"""Intervals for ranks, from simultaneous tests of the differences of all pairs of scores.

A system's rank is at least one more than the number of systems whose difference to it is certainly positive, and at most the
number of systems less those whose difference is certainly negative (Mogstad, Romano, Shaikh and Wilhelm, *Inference for ranks
with applications to mobility across neighbourhoods and academic achievement across countries*, 2024). The intervals hold for
all ranks at once. Quantiles of bootstrapped ranks do not: among near-equal systems the last one seldom stays last in a
resample, so its true rank is hardly ever covered.

Differences are decided stepwise (Romano and Wolf, *Stepwise multiple testing as formalized data snooping*, 2005): what has been
decided no longer counts against what has not, which narrows the intervals of systems that are well apart.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from torchpref.stats.ranking.score_errors import Contributions
from torchpref.stats.resampling.design import welch
from torchpref.stats.resampling.instances import fixed_point
from torchpref.stats.significance.flips import flip_signs

#: Random sign patterns behind the critical value.
DRAWS = 4080
#: With more pairs of systems than this all differences are decided in one step.
STEPWISE_PAIRS = 20_000
_CELLS = 1 << 20


def rank_intervals(
    scores: NDArray[np.float64],
    contributions: Contributions,
    level: float,
    seed: int,
    *,
    certain: Bool[Tensor, "system system"] | None = None,
    stepwise: bool = True,
) -> tuple[NDArray[np.int64], float]:
    """Lowest and highest rank of each system, ``[system, 2]``, and the critical value of the differences in the first step.

    Args:
        scores: float64 ``[system]``, higher is better.
        contributions: what each cluster of instances contributes to the scores.
        level: chance that all ranks are covered.
        seed: whole number.
        certain: where exact tests, corrected for all pairs, tell the row's system above the column's; nothing else counts.
        stepwise: decide differences step by step where pairs are few enough.
    """
    parts = contributions.parts
    size = contributions.terms.shape[1]
    variances = np.stack([_differences(rows) for rows, _ in parts])
    variance = variances.sum(0)
    error = np.sqrt(variance)
    difference = scores[:, None] - scores[None, :]
    residuals = np.concatenate([rows for rows, _ in parts])
    flipped = FlippedDifferences(residuals, seed)
    open_ = np.ones((size, size), dtype=bool)
    np.fill_diagonal(open_, False)
    better = np.zeros((size, size), dtype=bool)
    sure = None if certain is None else certain.cpu().numpy()
    first_critical = 0.0
    while True:
        quantile = flipped.quantile(level, open_)
        critical = _critical(quantile, contributions, parts, variances)
        if not better.any():
            first_critical = float(critical.max(initial=0.0, where=error > 0)) if (error > 0).any() else np.inf
        margin = np.where(error > 0, critical * np.where(error > 0, error, 1.0), np.inf if np.isinf(quantile) else 0.0)
        found = open_ & (difference > np.maximum(margin, 1e-9))
        better |= found
        open_ &= ~found
        wanted = open_ if sure is None else open_ & sure  # what no further step could add need not be looked for
        if not stepwise or not found.any() or not wanted.any() or size * (size - 1) // 2 > STEPWISE_PAIRS:
            break
    if sure is not None:
        better &= sure
    return np.stack([1 + better.sum(axis=0), size - better.sum(axis=1)], axis=1).astype(np.int64), first_critical


def _differences(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variance of every difference of two scores, from residuals."""
    product = np.einsum("ns,nt->st", rows, rows)
    own = np.diag(product)
    variance: NDArray[np.float64] = np.maximum(own[:, None] + own[None, :] - 2 * product, 0.0)
    # Where two systems differ by the same on every instance rounding is all the variance there is.
    variance[variance <= 1e-18 * (own[:, None] + own[None, :] + 1e-300)] = 0.0
    return variance


def _critical(
    quantile: float,
    contributions: Contributions,
    parts: list[tuple[NDArray[np.float64], NDArray[np.float64] | float]],
    variances: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Standard errors that a difference must exceed, per pair.

    Of one sample the flipped statistic s = |Σ±d| / √Σd² belongs to t = s √((n − 1) / (n − s²)); elsewhere its tail is
    matched by Student's t of the pair's degrees of freedom.
    """
    from scipy.special import ndtr, stdtrit

    shape = variances.shape[1:]
    if np.isinf(quantile):
        return np.full(shape, np.inf)
    if contributions.design == "one sample":
        count = len(contributions.terms)
        left = count - quantile * quantile
        return np.full(shape, quantile * np.sqrt((count - 1) / left) if left > 1e-9 * count else np.inf)
    degrees = welch(variances, np.array([degrees for _, degrees in parts])[:, None, None])
    critical: NDArray[np.float64] = stdtrit(np.maximum(np.nan_to_num(degrees, nan=1.0), 0.5), ndtr(quantile))
    return critical


class FlippedDifferences:
    """Differences of all pairs of systems under random signs of the residuals, one coin per cluster for all systems.

    Every difference is divided by the norm of its residuals. The sums under the signs are drawn once for all steps.

    Args:
        residuals: float64 ``[cluster, system]``.
        seed: whole number.
        draws: random sign patterns.
    """

    def __init__(self, residuals: NDArray[np.float64], seed: int, draws: int = DRAWS) -> None:
        count, size = residuals.shape
        self._first, self._second = np.triu_indices(size, 1)
        self._norms = np.empty(len(self._first))
        step = max(1, _CELLS // max(1, count))
        for start in range(0, len(self._first), step):
            part = slice(start, start + step)
            apart = residuals[:, self._first[part]] - residuals[:, self._second[part]]
            self._norms[part] = (apart**2).sum(axis=0)
        self._usable = self._norms > 1e-18 * max(self._norms.max(initial=0.0), 1e-300)
        if count < 2:
            self._usable[:] = False
        self._sums = list(_flipped_sums(residuals, seed, draws, int(self._usable.sum()))) if self._usable.any() else []

    def quantile(self, level: float, open_: NDArray[np.bool_] | None = None) -> float:
        """What the largest difference stays below with chance ``level`` if no two systems differ; infinite where the clusters
        are too few to be sure of anything.

        Args:
            level: the chance.
            open_: bool ``[system, system]``, which differences count, that of the row above the column; all by default.
        """
        if not self._sums:
            return float("inf")
        every = np.ones(len(self._first), dtype=bool)
        up = every if open_ is None else open_[self._first, self._second]
        down = every if open_ is None else open_[self._second, self._first]
        chosen = []
        for counted, sign in ((up & down, 0), (up & ~down, 1), (~up & down, -1)):
            counted = counted & self._usable
            if counted.any():
                scale = torch.from_numpy((sign or 1) / np.sqrt(self._norms[counted]))[:, None]
                a, b = torch.from_numpy(self._first[counted]), torch.from_numpy(self._second[counted])
                chosen.append((a, b, scale, sign == 0))
        largest = []
        for sums in self._sums:
            top = torch.full((sums.shape[1],), -torch.inf, dtype=torch.float64)
            for a, b, scale, both in chosen:
                ahead = sums[a].sub_(sums[b]).mul_(scale)
                top = torch.maximum(top, (ahead.abs_() if both else ahead).amax(0))
            largest.append(top)
        ordered = torch.cat(largest).sort().values.numpy()
        return float(ordered[min(len(ordered) - 1, int(np.ceil(level * (len(ordered) + 1))) - 1)])


def _flipped_sums(
    residuals: NDArray[np.float64], seed: int, draws: int, pairs: int
) -> Iterator[Float[Tensor, "system draw"]]:
    """Sums of the residuals under random signs, some draws at a time."""
    count = len(residuals)
    whole = fixed_point(torch.from_numpy(residuals), count)
    at_once = max(1, _CELLS // pairs)
    for block in range(-(-draws // DRAWS)):
        coins = torch.from_numpy(flip_signs(count, block, seed, "multipliers"))[: draws - block * DRAWS]
        for start in range(0, len(coins), at_once):
            yield whole.weighted_sums(1 - 2 * coins[start : start + at_once].double()).t().contiguous()
