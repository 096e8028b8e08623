"""The figures of docs/definitions.md for many replicates at once.

A replicate is a row of whole weights over instances; the data themselves are the row of ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchpref.meta.fast_test import count_tests
from torchpref.meta.rankings import kendall, ranking_scores
from torchpref.meta.values import PairValues

_CELLS = 1 << 21


@dataclass(frozen=True, eq=False)
class Replicates:
    """What replicates of one measure are reduced to, NaN where a figure does not exist.

    Attributes:
        figures: per key float64 ``[replicate]``.
        scores: float64 ``[replicate, system]``, whose order is the ranking; None if not asked for.
    """

    figures: dict[str, Float[Tensor, " replicate"]]
    scores: Float[Tensor, "replicate system"] | None = None


def known_signs(order: Int[Tensor, " system"], pairs: Int[Tensor, "pair 2"]) -> Float[Tensor, " pair"]:
    """+1 where the first of a pair is better in the known order, −1 where the second is; 0 where it says nothing.

    Args:
        order: place of each system, smaller is better; negative for a system that is not in the order.
        pairs: positions of systems.
    """
    first, second = order[pairs[:, 0]], order[pairs[:, 1]]
    return torch.where((first >= 0) & (second >= 0), torch.sign(second - first), 0).double()


def replicate_figures(
    values: PairValues,
    drawn: Int[Tensor, "replicate instance"],
    *,
    alpha: float,
    known: Float[Tensor, " pair"] | None = None,
    ranking: bool = False,
    p: Float[Tensor, "replicate pair"] | None = None,
) -> Replicates:
    """Tie rate, leave-one-out flips, discriminative power and, with a known order, oracle accuracy of every replicate.

    Args:
        values: preferences of one measure.
        drawn: how often each instance is drawn.
        alpha: error rate.
        known: signs of the known order, see :func:`known_signs`.
        ranking: whether to rank the systems too.
        p: p-values; those of the fast test where None.
    """
    sums = values.sums(drawn)
    figures = {"tie_rate": tie_rate(values, drawn)}
    pairs, cells = leave_one_out(values, drawn, sums)
    figures |= {"leave_one_out": pairs, "leave_one_out_cells": cells}
    counts = count_tests(values, drawn, sums, alpha, known, p)
    figures["power_fwer"] = _share(counts.holm, counts.tested)
    figures["power_fdr"] = _share(counts.benjamini, counts.tested)
    if known is not None:
        figures["oracle_accuracy"] = _share(counts.right, counts.judged)
        figures["oracle_fwer"] = _share(counts.right_holm, counts.judged)
        figures["oracle_fdr"] = _share(counts.right_benjamini, counts.judged)
    scores = ranking_scores(values, sums, values.weight_sums(drawn)) if ranking else None
    return Replicates(figures, scores)


def tie_rate(values: PairValues, drawn: Int[Tensor, "replicate instance"]) -> Float[Tensor, " replicate"]:
    """Share of tied trial pairs, averaged over instances and pairs."""
    weights = drawn.double()
    return _share(weights @ values.ties.sum(1), weights @ values.mask.sum(1).double())


def leave_one_out(
    values: PairValues, drawn: Int[Tensor, "replicate instance"], sums: Float[Tensor, "replicate pair"]
) -> tuple[Float[Tensor, " replicate"], Float[Tensor, " replicate"]]:
    """Share of pairs that some instance flips when one copy of it is left out; and share of (pair, instance) that do."""
    from torchpref.meta.compiled import flip_rows, over_rows

    counts = np.zeros((len(sums), 2), dtype=np.int64)
    if values.values.numel():
        least, largest = values.values.amin(0).numpy(), values.values.amax(0).numpy()
        weights = drawn.int().contiguous().numpy()
        over_rows(flip_rows, len(sums), sums.numpy(), values.transposed, least, largest, weights, values.slack, counts)
    flipped, cells = torch.from_numpy(counts).double().unbind(1)
    compared = values.tested(drawn).sum(1).double()
    return _share(flipped, compared), _share(cells, drawn.double() @ values.mask.sum(1).double())


def split_half(
    values: PairValues,
    first: Int[Tensor, "split instance"],
    second: Int[Tensor, "split instance"],
    ranking: bool = True,
) -> dict[str, Float[Tensor, " split"]]:
    """Reliability of every split: of the pairs' mean preferences, and of the ranking.

    Args:
        values: preferences of one measure.
        first, second: the instances in either half.
        ranking: whether to compare rankings too.
    """
    from torchpref.meta.compiled import correlation_rows, over_rows

    sums = [values.sums(half) for half in (first, second)]
    weights = [values.weight_sums(half) for half in (first, second)]
    pairs = np.empty(len(first))
    over_rows(correlation_rows, len(first), *(x.numpy() for x in (*sums, *weights)), pairs)
    result = {"split_half_pairs": torch.from_numpy(pairs)}
    if ranking:
        scores = [ranking_scores(values, *half) for half in zip(sums, weights, strict=True)]
        result["split_half_ranking"] = kendall(*scores)
    return result


def in_chunks(drawn: Int[Tensor, "replicate instance"], pairs: int, work: Callable[[Tensor], Replicates]) -> Replicates:
    """The same as ``work(drawn)``, over rows at a time that keep temporaries small."""
    step = max(1, _CELLS // max(1, pairs))
    parts = [work(drawn[start : start + step]) for start in range(0, max(1, len(drawn)), step)]
    if len(parts) == 1:
        return parts[0]
    scores = [part.scores for part in parts if part.scores is not None]
    return Replicates(
        {key: torch.cat([part.figures[key] for part in parts]) for key in parts[0].figures},
        torch.cat(scores) if scores else None,
    )


def _share(part: Tensor, whole: Tensor) -> Float[Tensor, " replicate"]:
    return torch.where(whole > 0, part.double() / whole, torch.nan)
