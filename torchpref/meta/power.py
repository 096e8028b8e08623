"""Discriminative power where systems succeed more or less often, with all instances: by budget, and by pair.

A tenth of the instances has less power than all of them, whatever its success rate (:mod:`torchpref.meta.saturation`). Here
every test has all instances: the same runs stopped earlier or later, or pairs of systems that succeed more or less often.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchpref.meta.estimates import Estimate, around
from torchpref.meta.fast_test import count_tests
from torchpref.meta.series import Series, empty, transpose
from torchpref.meta.values import PairValues, pair_values
from torchpref.pairwise.preferences import Weights, all_pairs, all_preferences, run_scores
from torchpref.runs.curves import Grid
from torchpref.runs.trajectories import Trajectories
from torchpref.runs.units import MILLION, NEVER, UNKNOWN, ticks_per_unit
from torchpref.stats.resampling.instances import draw_weights, resampling_units

#: Budgets, each within which one more tenth of the successes has come.
BUDGETS = 10
#: Bins of pairs, of equal count, and the fewest pairs in one.
PAIR_BINS, FEWEST = 5, 3


def power_by_budget(
    runs: Trajectories, measures: tuple[str, ...], *, clock: str | None, weights: Weights, grid: Grid, draws: int,
    alpha: float, level: float, seed: int,
) -> Series:  # fmt: skip
    """Power, tie rate and success rate of the same runs, stopped when the first tenth of the successes has come, the second, …

    Args:
        runs: the runs.
        measures: their names.
        clock: of the budget.
        weights, grid: as for :func:`torchpref.preferences`.
        draws: bootstrap replicates per budget.
        alpha: error rate of the tests.
        level: of the intervals.
        seed: whole number.
    """
    limits = [] if clock is None else success_budgets(runs, clock)
    if not limits:
        return empty("power_by_budget", "budget", "no run succeeds at a known time")
    drawn = _drawn(runs, draws, seed)
    points: list[dict[str, dict[str, Estimate]]] = []
    for limit in limits:
        cut = runs.until(limit, clock)
        rate = Estimate(float(system_success(cut).nanmean()))
        point = {}
        for name, prefs in all_preferences(cut, measures, clock=clock, weights=weights, grid=grid).items():
            values = pair_values(prefs)
            counts = count_tests(values, drawn, values.sums(drawn), alpha)
            point[name] = {
                "power_fwer": _share(counts.holm, counts.tested, level),
                "power_fdr": _share(counts.benjamini, counts.tested, level),
                "success_rate": rate,
            }
        points.append(point)
    return Series("power_by_budget", "budget", tuple(limits), transpose(points))


def power_by_pair(
    runs: Trajectories, values: Mapping[str, PairValues], *, draws: int, alpha: float, level: float, seed: int
) -> Series:
    """Power among pairs of systems in bins by the mean success rate of the two; corrected for all pairs of all bins.

    Args:
        runs: the runs, for the success rates.
        values: preferences per measure.
        draws: bootstrap replicates.
        alpha: error rate of the tests.
        level: of the intervals.
        seed: whole number.
    """
    pairs = all_pairs(len(runs.systems))
    if len(pairs) < PAIR_BINS * FEWEST:
        reason = f"{PAIR_BINS} bins need at least {PAIR_BINS * FEWEST} pairs of systems, there are {len(pairs)}"
        return empty("power_by_pair", "pair_success", reason)
    rates = system_success(runs)[pairs].mean(1)
    order = torch.argsort(rates, stable=True)
    order = order[~torch.isnan(rates[order])]
    drawn = _drawn(runs, draws, seed)
    points: list[dict[str, dict[str, Estimate]]] = []
    centres = []
    for chosen in np.array_split(order.numpy(), PAIR_BINS):
        centres.append(float(rates[chosen].mean()))
        inside = torch.zeros(len(pairs), dtype=torch.float64)
        inside[chosen] = 1.0
        point = {}
        for name, each in values.items():
            sums = each.sums(drawn)
            # A significant pair has a sign: those of either sign together are all that are significant in the bin.
            up, down = (count_tests(each, drawn, sums, alpha, sign * inside) for sign in (1, -1))
            point[name] = {
                "power_fwer": _share(up.right_holm + down.right_holm, up.judged, level),
                "power_fdr": _share(up.right_benjamini + down.right_benjamini, up.judged, level),
            }
        points.append(point)
    return Series("power_by_pair", "pair_success", tuple(centres), transpose(points))


def success_budgets(runs: Trajectories, clock: str) -> list[float]:
    """Times, in the clock's unit, by which one tenth of the successes with a known time has come, two tenths, … all."""
    solved = (runs.returns >= MILLION) & runs.present.unsqueeze(-1)
    first = torch.where(solved, runs.times[clock], NEVER).amin(-1)
    times = first[(first != NEVER) & (first != UNKNOWN) & (first > 0)].cpu().numpy()
    if not len(times):
        return []
    ticks = np.quantile(times, np.arange(1, BUDGETS + 1) / BUDGETS, method="inverted_cdf")
    return [float(tick) / ticks_per_unit(runs.resolution[clock]) for tick in np.unique(ticks)]


def system_success(runs: Trajectories) -> Float[Tensor, " system"]:
    """Share of the runs of each system that succeed; NaN without runs."""
    solved, present = run_scores(runs, "sr")
    count = present.sum((0, 2))
    return torch.where(count > 0, (solved * present).sum((0, 2)).double() / count, torch.nan).cpu()


def _drawn(runs: Trajectories, draws: int, seed: int) -> Int[Tensor, "replicate instance"]:
    """A row of ones, the data, and bootstrap replicates below it."""
    units = resampling_units(list(runs.benchmarks))
    ones = torch.ones((1, len(runs.instances)), dtype=torch.int32)
    return torch.cat([ones, draw_weights("bootstrap", units, 0, draws, seed).int()])


def _share(part: Tensor, whole: Tensor, level: float) -> Estimate:
    share = torch.where(whole > 0, part / whole, torch.nan)
    return around(float(share[0]), share[1:], level, (0.0, 1.0))
