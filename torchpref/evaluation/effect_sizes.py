"""How large a difference between two systems is, in words that need no preference: solved more, so many times as fast, sooner.

All are paired by instance (by family where families are known: of a family's instances the mean, or the median, counts once).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from torchpref.pairwise.preferences import preferences
from torchpref.runs.curves import curves, time_to_level
from torchpref.runs.units import MILLION, NEVER, UNKNOWN
from torchpref.stats.resampling.instances import Units, resampling_units
from torchpref.stats.significance.effects import critical_t, pair_effects

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Weights
    from torchpref.runs.trajectories import Trajectories


@dataclass(frozen=True)
class Estimated:
    """A number with its interval; NaN where the data give none.

    Attributes:
        value: the estimate.
        low, high: its interval.
        instances: how many instances it rests on.
    """

    value: float
    low: float
    high: float
    instances: int


@dataclass(frozen=True)
class EffectSizes:
    """Effects of the first system against the second.

    Attributes:
        success_difference: difference in success rate, over shared instances.
        time_ratio: median over the instances that both solve of the first's time divided by the second's (medians over
            successful trials); below 1 the first is faster. The interval is of order statistics, exact for a median.
        sooner: the chance that the first is sooner on an instance that both solve, a tie counting half.
        clock: the clock of the times; None without known times.
    """

    success_difference: Estimated
    time_ratio: Estimated
    sooner: Estimated
    clock: str | None


def effect_sizes(
    runs: Trajectories, first: str, second: str, *, clock: str | None, weights: Weights, level: float
) -> EffectSizes:
    """The effects between two systems of ``runs``, which holds these two alone."""
    rate = preferences(runs, "sr", weights=weights)
    sign = rate.pair_index(first, second)[1]
    effects = pair_effects(rate, level)
    low, high = sorted((sign * float(effects.low[0]), sign * float(effects.high[0])))
    difference = Estimated(sign * float(effects.mean[0]) + 0.0, low + 0.0, high + 0.0, int(effects.instances[0]))
    none = Estimated(np.nan, np.nan, np.nan, 0)
    if clock is None:
        return EffectSizes(difference, none, none, None)
    times = _times(runs, clock)
    both = np.asarray(~np.isnan(times).any(1) & (times > 0).all(1), dtype=np.bool_)
    one, other = runs.systems.index(first), runs.systems.index(second)
    units = resampling_units(runs.benchmarks, runs.families)
    logs = _per_family(np.log(times[both, one] / times[both, other]), units, both)
    signs = _per_family(np.sign(times[both, other] - times[both, one]), units, both)
    count = int(both.sum())
    return EffectSizes(difference, _median_ratio(logs, level, count), _chance(signs, level, count), clock)


def _times(runs: Trajectories, clock: str) -> NDArray[np.float64]:
    """Median time of the successes of each system on each instance ``[instance, system]``; NaN where there is none."""
    full = torch.full((len(runs.instances), 1), MILLION, dtype=torch.int32, device=runs.device)
    ticks = time_to_level(curves(runs, clock), full).squeeze(-1).cpu().numpy()
    known = runs.present.cpu().numpy() & (ticks != UNKNOWN) & (ticks != NEVER)
    result = np.full(known.shape[:2], np.nan)
    for place in np.argwhere(known.any(-1)):
        cell = tuple(place)
        result[cell] = np.median(ticks[cell][known[cell]]) * runs.resolution[clock]
    return result


def _per_family(values: NDArray[np.float64], units: Units, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    if units.single:
        return values
    family = units.cluster[chosen]
    return np.array([values[family == number].mean() for number in np.unique(family)])


def _median_ratio(logs: NDArray[np.float64], level: float, instances: int) -> Estimated:
    """Median with the narrowest pair of order statistics that covers it with that chance for every distribution."""
    from scipy.special import bdtr

    count = len(logs)
    if not count:
        return Estimated(np.nan, np.nan, np.nan, instances)
    ordered = np.exp(np.sort(logs))
    value = float(np.exp(np.median(logs)))
    outside = bdtr(np.arange(count), count, 0.5)
    rank = int(np.count_nonzero(2 * outside[: (count + 1) // 2] <= 1 - level))
    if not rank:
        return Estimated(value, np.nan, np.nan, instances)
    return Estimated(value, float(ordered[rank - 1]), float(ordered[count - rank]), instances)


def _chance(signs: NDArray[np.float64], level: float, instances: int) -> Estimated:
    """(1 + mean sign)/2, with the interval of a mean preference: two values of opposite sign are added."""
    count = len(signs)
    if not count:
        return Estimated(np.nan, np.nan, np.nan, instances)
    mean = float(signs.mean())
    if count < 2:
        return Estimated((1 + mean) / 2, np.nan, np.nan, instances)
    centre = signs.sum() / (count + 2)
    squares = float(((signs - centre) ** 2).sum() + (1 - centre) ** 2 + (1 + centre) ** 2)
    width = float(critical_t(level, count - 1.0)) * np.sqrt(squares * count / (count - 1)) / (count + 2)
    low, high = max(min(centre - width, mean), -1.0), min(max(centre + width, mean), 1.0)
    return Estimated((1 + mean) / 2, (1 + low) / 2, (1 + high) / 2, instances)
