"""Permuting the labels of runs within an instance, for pairs of systems that ran it unequally often.

With one run of A against eight of B, A − B is not as likely to be positive as negative even if A and B are the same (the mean
of eight has another distribution than one), so flipping signs would reject too often. The labels of the nine runs are
exchangeable, however. On instances that both ran equally often the sign is flipped.

Every run gets one random key per permutation, shared by all pairs; of the pooled runs of two systems the lowest keys get the
label of the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from torchpref.pairwise.run_sums import RunSums, run_presence, run_sums
from torchpref.runs.exact_sum import power_of_two_scale
from torchpref.stats.resampling.instances import stream
from torchpref.stats.significance.flips import FLIP_BLOCK, FlipCounts, flip_signs

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences


def unequal_trials(prefs: Preferences) -> Bool[Tensor, " pair"]:
    """Pairs with an instance that both ran, but not equally often."""
    counts = run_presence(prefs).sum(-1)
    pairs = prefs.pairs.cpu()
    first, second = counts[:, pairs[:, 0]], counts[:, pairs[:, 1]]
    return ((first > 0) & (second > 0) & (first != second)).any(0)


@dataclass(frozen=True)
class _Part:
    """One instance of one pair: whole-number totals of its pooled runs, or one value whose sign is flipped.

    Attributes:
        pair: position of the pair.
        runs: positions of the pooled runs among the runs of the instance; None where the sign is flipped.
        first: how many runs get the first label.
        totals: float64 ``[run]`` whole numbers, the value of each pooled run under the first label; or one number.
    """

    pair: int
    runs: Tensor | None
    first: int
    totals: Float[Tensor, " run"]


def permutation_counts(prefs: Preferences, permutations: int, seed: int, max_t: bool = False) -> FlipCounts:
    """How often a permutation is at least as extreme as the data, for every pair.

    Args:
        prefs: the preferences.
        permutations: how many.
        seed: whole number.
        max_t: also compare with the largest statistic over pairs, each divided by its standard deviation.
    """
    pairs = len(prefs.pairs)
    wanted = torch.ones(pairs, dtype=torch.bool) if max_t else unequal_trials(prefs)
    chosen = torch.nonzero(wanted).squeeze(-1)
    column = {int(pair): place for place, pair in enumerate(chosen)}
    instances = list(_instances(prefs, wanted))
    observed = torch.zeros(len(chosen), dtype=torch.float64)
    variance = torch.zeros(len(chosen), dtype=torch.float64)
    slack = torch.zeros(len(chosen), dtype=torch.float64)
    for _, _, parts in instances:
        for part in parts:
            place = column[part.pair]
            observed[place] += part.totals[: part.first].sum() if part.runs is not None else part.totals[0]
            variance[place] += _variance(part)
            slack[place] += len(part.totals)
    count = len(prefs.instances)
    scale = torch.where(variance > 0, variance.rsqrt(), 0.0)
    # Totals are rounded to whole numbers one by one: sums that are equal may differ by as many units as there are terms.
    limit = observed.abs() - slack
    reached = torch.zeros(len(chosen), dtype=torch.int64)
    top = []
    for block, start in enumerate(range(0, permutations, FLIP_BLOCK)):
        size = min(FLIP_BLOCK, permutations - start)
        coins = torch.from_numpy(flip_signs(count, block, seed)[:size]).double() * -2 + 1
        sums = torch.zeros((len(chosen), size), dtype=torch.float64)
        for instance, runs, parts in instances:
            keys = None
            if any(part.runs is not None for part in parts):
                rng = stream(seed, "permutations", block * count + instance)
                keys = torch.from_numpy(rng.random((runs, FLIP_BLOCK))[:, :size])
            for part in parts:
                if part.runs is None:
                    sums[column[part.pair]] += coins[:, instance] * part.totals[0]
                else:
                    assert keys is not None
                    sums[column[part.pair]] += _lowest(keys[part.runs], part.first, part.totals)
        sums.abs_()
        reached += (sums >= limit[:, None]).sum(1)
        if max_t and len(chosen):
            top.append((sums * scale[:, None]).amax(0))
    extreme = torch.full((pairs,), permutations, dtype=torch.int64)
    extreme[chosen] = torch.where(limit > 0, reached, permutations)
    largest = torch.full((pairs,), permutations, dtype=torch.int64)
    if top:
        over = permutations - torch.searchsorted(torch.cat(top).sort().values, limit * scale)
        largest[chosen] = torch.where(limit > 0, over, permutations)
    return FlipCounts(permutations, extreme, largest)


def _lowest(
    keys: Float[Tensor, "run permutation"], first: int, totals: Float[Tensor, " run"]
) -> Float[Tensor, " permutation"]:
    """Sum of the totals of the ``first`` runs with the lowest keys."""
    if first == 1:
        return totals[keys.argmin(0)]
    if first == len(totals) - 1:
        return totals.sum() - totals[keys.argmax(0)]
    limit = torch.from_numpy(np.partition(keys.numpy(), first - 1, axis=0)[first - 1])
    return totals @ (keys <= limit).double()


def _variance(part: _Part) -> float:
    if part.runs is None:
        return float(part.totals[0] ** 2)
    size = len(part.totals)
    spread = float(((part.totals - part.totals.mean()) ** 2).sum())
    return part.first * (size - part.first) / size * spread / (size - 1)


def _instances(prefs: Preferences, wanted: Bool[Tensor, " pair"]) -> Iterator[tuple[int, int, list[_Part]]]:
    """Position, number of runs and parts of every instance that any wanted pair shares."""
    mask = prefs.mask.cpu() & wanted
    weights = prefs.weights.cpu()
    pairs = prefs.pairs.cpu().tolist()
    # A term is at most twice its weight, and so are sums within an instance up to a factor of its number of runs: with 44
    # bits for the sum of weights they stay below 2^53, where sums of whole numbers are exact.
    unit = power_of_two_scale(2 * float(weights.sum())) * 2.0**-44
    rows = torch.nonzero(mask.any(1) & (weights > 0)).squeeze(-1)
    for runs in run_sums(prefs, rows):
        parts = [
            _part(runs, pair, pairs[pair], float(weights[runs.instance]) / (prefs.unit * unit))
            for pair in torch.nonzero(mask[runs.instance]).squeeze(-1).tolist()
        ]
        yield runs.instance, len(runs.system), parts


def _part(runs: RunSums, pair: int, systems: list[int], scale: float) -> _Part:
    a, b = systems
    of_a = torch.nonzero(runs.system == a).squeeze(-1)
    of_b = torch.nonzero(runs.system == b).squeeze(-1)
    each = scale / (len(of_a) * len(of_b))
    if len(of_a) == len(of_b):
        return _Part(pair, None, 0, torch.round(runs.against[of_a, b].sum() * each).reshape(1))
    pooled = torch.cat([of_a, of_b])
    totals = runs.against[pooled, a] + runs.against[pooled, b]
    return _Part(pair, pooled, len(of_a), torch.round(totals * each))
