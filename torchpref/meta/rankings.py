"""Rankings of resampled instances, and how far two rankings agree."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from torchpref.meta.values import PairValues


def ranking_scores(
    values: PairValues, sums: Float[Tensor, "replicate pair"], weights: Float[Tensor, "replicate column"]
) -> Float[Tensor, "replicate system"]:
    """Scores whose order is the ranking of each replicate: Bradley–Terry, and mean preference without a finite fit.

    On complete data both give one order, and nothing is fitted. NaN for a system without a rival.

    Args:
        values: the preferences.
        sums, weights: of the replicates, as :class:`PairValues` gives them.
    """
    size = values.systems
    if values.complete:
        total = weights * max(1, size - 1)
        return torch.where(total > 0, (sums @ values.incidence) * values.step / total, torch.nan)
    means = values.means(sums, weights)
    known = ~torch.isnan(means)
    rivals = known.double() @ values.incidence.abs()
    by_mean = torch.where(known, means, 0.0) @ values.incidence / rivals
    if size < 2 or not len(means):
        return by_mean
    from torchpref.stats.bradley_terry.batch import STATUSES, fit_pairs

    fit = fit_pairs(((means + 1) / 2).clamp(0, 1), weights.expand_as(means), size)
    return torch.where((fit.status == STATUSES.index("ok"))[:, None], fit.theta, by_mean)


def kendall(
    mine: Float[Tensor, "#replicate system"], other: Float[Tensor, "replicate system"]
) -> Float[Tensor, " replicate"]:
    """Kendall's τ-b of the orders of scores; NaN where one of them ties all systems.

    Scores closer than 1e-9 tie, and a system without a score ties with all.
    """
    from torchpref.meta.compiled import kendall_rows, over_rows

    result = np.empty(len(other))
    rows = (x.double().contiguous().numpy() for x in (mine, other))
    over_rows(kendall_rows, len(other), *rows, result)
    return torch.from_numpy(result)
