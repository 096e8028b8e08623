"""Figures against the share of instances kept."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from torchpref.meta.estimates import Estimate, mean_of
from torchpref.meta.figures import replicate_figures, split_half
from torchpref.meta.rankings import kendall, ranking_scores
from torchpref.meta.series import Series, transpose
from torchpref.meta.values import PairValues
from torchpref.stats.resampling.instances import Units, draw_weights

#: Shares of instances.
SHARES = tuple(k / 10 for k in range(1, 11))


def data_efficiency(
    values: Mapping[str, PairValues],
    units: Units,
    *,
    known: Float[Tensor, " pair"] | None,
    draws: int,
    alpha: float,
    level: float,
    seed: int,
) -> Series:
    """Figures on subsets of the instances, and how far their rankings agree with that of all instances.

    Draws of a larger share contain those of a smaller one, so that neighbouring points are comparable.

    Args:
        values: preferences per measure.
        units: instances and benchmarks, within which subsets are drawn.
        known: signs of the known order, or None.
        draws: subsets per share.
        alpha: error rate of the tests.
        level: of the percentiles.
        seed: whole number.
    """
    everything = torch.ones((1, units.count), dtype=torch.int32)
    full = {
        name: ranking_scores(each, each.sums(everything), each.weight_sums(everything)) for name, each in values.items()
    }
    points: list[dict[str, dict[str, Estimate]]] = []
    for share in SHARES:
        drawn = draw_weights("subsample", units, 0, draws, seed, share).int()
        half = draw_weights("subsample", units, 0, draws, seed, share / 2).int()
        point = {}
        for name, each in values.items():
            found = replicate_figures(each, drawn, alpha=alpha, known=known, ranking=True)
            assert found.scores is not None
            figures = dict(found.figures) | split_half(each, half, drawn - half)
            figures["ranking_of_all"] = kendall(full[name], found.scores)
            point[name] = {key: mean_of(column, level, "no draw has a value") for key, column in figures.items()}
        points.append(point)
    return Series("data_efficiency", "share", SHARES, transpose(points))
