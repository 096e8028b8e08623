"""Scores and first places under resampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchpref.pairwise.square import as_square, missing
from torchpref.stats.resampling.instances import Resampler, Scheme, Units, fixed_point, largest_total, replicate_blocks
from torchpref.stats.resampling.runs import TrialResampler

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences

#: Replicates handled at a time, which never changes a number.
CHUNK = 2048
_CELLS = 1 << 23
#: Scores closer than this are equal.
TIE = 1e-9


@dataclass(frozen=True)
class Replicates:
    """What resampling gave.

    Attributes:
        theta: float64 ``[replicate, member]``, scores of the systems that have a finite one on the whole data; −∞ (+∞) for a
            system that lost (won) without exception in the replicate, NaN for one that cannot be placed in it.
        statuses: how many replicates ended with each status; empty where nothing was fitted.
        share_first: float64 ``[system]``, ties split.
    """

    theta: Float[Tensor, "replicate member"]
    statuses: dict[str, int]
    share_first: Float[Tensor, " system"]

    def limits(self, level: float) -> Float[Tensor, "member 2"]:
        """Percentile limits of each score: order statistics, so that infinite scores count; NaN where one is infinite.

        A score that cannot be placed counts as low for the lower and as high for the upper limit.
        """
        count = self.theta.shape[0]
        k = int(np.floor((count + 1) * (1 - level) / 2 + 1e-9))
        if k < 1:
            return torch.full((self.theta.shape[1], 2), torch.nan, dtype=torch.float64)
        low = torch.nan_to_num(self.theta, nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf).sort(0).values[k - 1]
        high = (
            torch.nan_to_num(self.theta, nan=torch.inf, posinf=torch.inf, neginf=-torch.inf).sort(0).values[count - k]
        )
        limits = torch.stack([low, high], 1)
        return torch.where(torch.isinf(limits), torch.nan, limits)


def replicate_scores(
    prefs: Preferences,
    units: Units,
    replicates: int,
    seed: int,
    *,
    scheme: Scheme = "bootstrap",
    members: Int[Tensor, " member"],
    theta: Float[Tensor, " member"],
    by_mean: bool,
    trials: bool = False,
    chunk: int = CHUNK,
) -> Replicates:
    """Refit every replicate.

    Args:
        prefs: the preferences.
        units: clusters and strata of instances.
        replicates: how many.
        seed: whole number.
        scheme: ``bootstrap`` or ``bayesian``.
        members: positions of the systems whose scores are refitted (those with a finite score); none for no refits.
        theta: their scores on the whole data, from where the refits start.
        by_mean: whether first places go by mean preference; otherwise by score, and by mean preference in replicates
            without a finite solution.
        trials: whether runs are drawn anew within each instance as well.
        chunk: replicates at a time.
    """
    from torchpref.stats.bradley_terry.batch import STATUSES, fit_pairs

    size = len(prefs.systems)
    total = largest_total(scheme, units)
    resampler = TrialResampler(prefs, seed, total) if trials else Resampler(prefs, total)
    pairs = prefs.pairs.cpu()
    complete = resampler.complete
    inside = torch.isin(pairs, members).all(1)
    chunk = max(1, min(chunk, _CELLS // max(1, size * size)))
    refit = len(members) > 1
    # On complete data the sum of Δ over rivals orders systems as their scores do, and a column per system will do.
    points = (
        fixed_point(as_square(prefs.delta * prefs.weights[:, None], pairs, size, -1).sum(-1), total)
        if complete and not trials
        else None
    )
    thetas, codes = [], []
    firsts = torch.zeros((size + 1, size), dtype=torch.int64)
    start = 0
    for weights in replicate_blocks(scheme, units, replicates, seed, chunk):
        drawn = resampler.means(weights, start) if refit or points is None else None
        start += len(weights)
        fit = None
        if refit:
            assert drawn is not None
            y = (drawn.means[:, inside] + 1) / 2
            # Where all pairs have the same weight its size does not matter.
            fit = fit_pairs(y, None if complete else drawn.weights[:, inside], len(members), theta)
            thetas.append(fit.theta)
            codes.append(fit.status)
        if points is not None:
            scores = points.weighted_sums(weights) / total
        else:
            assert drawn is not None
            scores = missing((len(weights), size))
            by_score = torch.zeros(len(weights), dtype=torch.bool)
            if not by_mean and fit is not None and len(members) == size:
                by_score = fit.status == 0
                scores[by_score] = fit.theta[by_score]
            scores[~by_score] = _rival_means(drawn.means[~by_score], drawn.weights[~by_score], pairs, size)
        firsts += _count_firsts(scores)
    ways = torch.arange(1, size + 1, dtype=torch.float64)
    share = (firsts[1:].double() / ways[:, None]).sum(0) / max(1, replicates)
    statuses = torch.bincount(torch.cat(codes), minlength=len(STATUSES)).tolist() if codes else []
    return Replicates(
        theta=torch.cat(thetas) if thetas else torch.zeros((replicates, len(members)), dtype=torch.float64),
        statuses={name: count for name, count in zip(STATUSES, statuses, strict=False) if count},
        share_first=share if replicates else torch.full((size,), torch.nan, dtype=torch.float64),
    )


def _rival_means(
    means: Float[Tensor, "replicate pair"],
    weights: Float[Tensor, "replicate pair"],
    pairs: Int[Tensor, "pair 2"],
    systems: int,
) -> Float[Tensor, "replicate system"]:
    """Mean over the rivals that a system was compared with; below everything where there is none."""
    compared = as_square(weights, pairs, systems, 1) > 0
    rivals = compared.sum(-1)
    total = torch.where(compared, as_square(means, pairs, systems, -1), 0.0).sum(-1)
    return torch.where(rivals > 0, total / rivals.clamp(min=1), -2.0)


def _count_firsts(scores: Float[Tensor, "replicate system"]) -> Int[Tensor, "tied system"]:
    """How often each system shares the first place with how many (itself included)."""
    size = scores.shape[1]
    counts = torch.zeros((size + 1, size), dtype=torch.int64)
    if size:
        best = scores >= scores.amax(1, keepdim=True) - TIE
        counts.index_add_(0, best.sum(1), best.long())
    return counts
