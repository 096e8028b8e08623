"""How figures move when the annotation of partial return is changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from torchpref.meta.estimates import Estimate
from torchpref.meta.figures import replicate_figures, split_half
from torchpref.meta.rankings import kendall, ranking_scores
from torchpref.meta.series import Series, empty, transpose
from torchpref.meta.subgoals import CHANGES, annotated_levels, change_subgoals, has_subgoals
from torchpref.meta.values import PairValues, pair_values
from torchpref.pairwise.preferences import Weights, all_preferences
from torchpref.runs.curves import Grid
from torchpref.runs.measures import describe
from torchpref.runs.trajectories import Trajectories
from torchpref.stats.resampling.instances import Units, draw_weights

_SPLITS = 100


def subgoal_robustness(
    runs: Trajectories,
    values: Mapping[str, PairValues],
    units: Units,
    *,
    clock: str | None,
    weights: Weights,
    grid: Grid,
    known: Float[Tensor, " pair"] | None,
    draws: int,
    alpha: float,
    seed: int,
    step: Callable[[], None] = lambda: None,
) -> Series:
    """Figures as annotated, and after dropping, merging and jittering levels.

    Every point holds the mean over draws, and the least and largest draw as its limits.

    Args:
        runs: the runs.
        values: their preferences per measure.
        units: instances and benchmarks, for random halves.
        clock, weights, grid: as the preferences were computed.
        known: signs of the known order, or None.
        draws: random changes of each kind.
        alpha: error rate of the tests.
        seed: whole number.
        step: called after every draw.
    """
    levels = annotated_levels(runs)
    if not has_subgoals(levels):
        return empty(
            "subgoals", "annotation", "no run attains a return between 0 and 1, there are no subgoals to change"
        )
    halves = draw_weights("halves", units, 0, _SPLITS, seed).int()
    everything = torch.ones((1, units.count), dtype=torch.int32)

    def figures(each: PairValues) -> dict[str, float]:
        found = replicate_figures(each, everything, alpha=alpha, known=known).figures
        result = {key: float(column[0]) for key, column in found.items()}
        result |= {key: float(torch.nanmean(column)) for key, column in split_half(each, halves, 1 - halves).items()}
        sums = each.sums(everything)
        scores = ranking_scores(each, sums, each.weight_sums(everything))
        result["ranking_as_annotated"] = float(kendall(rankings.setdefault(each.measure, scores), scores)[0])
        same = torch.sign(sums) == signs.setdefault(each.measure, torch.sign(sums))
        result["same_sign"] = float(same[:, each.compared].double().mean())
        return result

    rankings: dict[str, Tensor] = {}
    signs: dict[str, Tensor] = {}
    annotated = {name: figures(each) for name, each in values.items()}
    moving = [name for name in values if describe(name).partial]  # no change touches success
    points = [{name: {key: _spread([value]) for key, value in each.items()} for name, each in annotated.items()}]
    for number, change in enumerate(CHANGES):
        collected: dict[str, list[dict[str, float]]] = {name: [] for name in values}
        for draw in range(draws):
            changed = change_subgoals(runs, change, _seed(seed, number, draw), levels)
            prefs = all_preferences(changed, moving, clock=clock, weights=weights, grid=grid) if moving else {}
            for name in values:
                new = figures(pair_values(prefs[name])) if name in prefs else annotated[name]
                collected[name].append(new)
            step()
        points.append(
            {
                name: {key: _spread([one[key] for one in ones]) for key in annotated[name]}
                for name, ones in collected.items()
            }
        )
    return Series("subgoals", "annotation", ("as annotated", *CHANGES), transpose(points))


def _seed(seed: int, number: int, draw: int) -> int:
    return (seed * 1_000_003 + number * 10_007 + draw) % 2**62


def _spread(found: list[float]) -> Estimate:
    known = [value for value in found if not math.isnan(value)]
    if not known:
        return Estimate(math.nan, reason="no draw has a value")
    return Estimate(sum(known) / len(known), min(known), max(known))
