"""Discriminative power against the success rate of the instances compared."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from torchpref.meta.estimates import Estimate, around
from torchpref.meta.figures import replicate_figures
from torchpref.meta.series import Series, empty, transpose
from torchpref.meta.values import PairValues
from torchpref.pairwise.preferences import run_scores
from torchpref.runs.trajectories import Trajectories
from torchpref.stats.resampling.instances import draw_weights, resampling_units

#: Bins of equal count.
BINS = 10
_FIGURES = ("power_fwer", "power_fdr", "tie_rate")


def success_rates(runs: Trajectories) -> Float[Tensor, " instance"]:
    """Share of the runs of each instance that succeed; NaN without runs."""
    solved, present = run_scores(runs, "sr")
    count = present.sum((1, 2))
    return torch.where(count > 0, (solved * present).sum((1, 2)).double() / count, torch.nan)


def saturation(
    runs: Trajectories, values: Mapping[str, PairValues], *, draws: int, alpha: float, level: float, seed: int
) -> Series:
    """Discriminative power and tie rate in ten bins of instances, from the least to the most often solved.

    Args:
        runs: the runs, for the success rates.
        values: preferences per measure.
        draws: bootstrap replicates per bin.
        alpha: error rate of the tests.
        level: of the intervals.
        seed: whole number.
    """
    rates = success_rates(runs)
    order = torch.argsort(rates, stable=True)
    order = order[~torch.isnan(rates[order])]
    if len(order) < 2 * BINS:
        reason = f"ten bins need at least {2 * BINS} instances, there are {len(order)}"
        return empty("saturation", "success_rate", reason)
    points: list[dict[str, dict[str, Estimate]]] = []
    centres = []
    for chosen in np.array_split(order.numpy(), BINS):
        rows = torch.from_numpy(np.sort(chosen))
        centres.append(float(rates[rows].mean()))
        units = resampling_units([runs.benchmarks[i] for i in rows.tolist()])
        drawn = torch.cat(
            [torch.ones((1, len(rows)), dtype=torch.int32), draw_weights("bootstrap", units, 0, draws, seed).int()]
        )
        point = {}
        for name, each in values.items():
            figures = replicate_figures(each.take(rows), drawn, alpha=alpha).figures
            point[name] = {key: around(float(figures[key][0]), figures[key][1:], level, (0.0, 1.0)) for key in _FIGURES}
        points.append(point)
    return Series("saturation", "success_rate", tuple(centres), transpose(points))
