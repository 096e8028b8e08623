"""Mean preferences of pairs with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from torchpref.errors import UsageError
from torchpref.runs.measures import LEVEL
from torchpref.stats.resampling.instances import Units, resampling_units

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences


@dataclass(frozen=True)
class Effects:
    """Mean preference of every pair.

    Attributes:
        mean: float64 ``[pair]``, Δ̄; NaN where a pair shares no instance.
        low, high: float64 ``[pair]``, limits of the interval; NaN where a pair shares fewer than two instances.
        centre, error, degrees: float64 ``[pair]``, the interval is centre ± t · error with so many degrees of freedom, cut to
            [−1, 1] and widened to hold the mean.
        instances: int64 ``[pair]``, instances that both ran.
        decided: int64 ``[pair]``, those on which Δ is not 0.
    """

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    centre: NDArray[np.float64]
    error: NDArray[np.float64]
    degrees: NDArray[np.float64]
    instances: NDArray[np.int64]
    decided: NDArray[np.int64]


def check_level(level: float) -> float:
    """The level of an interval, strictly between 0 and 1."""
    if not 0 < level < 1:
        raise UsageError(f"a level lies between 0 and 1, such as 0.95; got {level!r}")
    return float(level)


def critical_t(level: float, degrees: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Two-sided critical value of Student's t; infinite without a degree of freedom."""
    from scipy.special import stdtrit

    degrees = np.asarray(degrees, dtype=float)
    return np.where(degrees > 0, stdtrit(np.maximum(degrees, 1e-9), (1 + level) / 2), np.inf)


def pair_effects(prefs: Preferences, level: float = LEVEL, units: Units | None = None) -> Effects:
    """Δ̄ of every pair with a t interval over instances.

    Two instances of the pair's average weight are added to the variance and the centre, one with +m and one with −m, where m
    is the root mean square of the Δ that are not 0 (1 where all are tied): for Δ in {−1, 0, 1} the interval of Bonett and
    Price, *Adjusted Wald confidence interval for a difference of binomial proportions based on paired data* (2012), which
    keeps its coverage with few instances and many ties, where the plain interval has no width. Limits are cut to [−1, 1].

    Args:
        prefs: the preferences.
        level: chance that the interval covers the mean over the population of instances.
        units: clusters of instances that were drawn together; every instance by itself by default.
    """
    check_level(level)
    delta = prefs.delta.cpu().numpy()
    weight = prefs.weights.cpu().numpy()[:, None] * prefs.mask.cpu().numpy()
    clean = np.nan_to_num(delta)
    total = weight.sum(0)
    mean = prefs.pair_means().cpu().numpy()
    decided = ((clean != 0) & (weight > 0)).sum(0)
    instances = prefs.mask.sum(0).cpu().numpy()

    units = units or resampling_units(prefs.benchmarks)
    count = _clusters(weight, units)
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.where(decided > 0, np.sqrt((clean**2 * (weight > 0)).sum(0) / np.maximum(decided, 1)), 1.0)
        average = total / count
        centre = total * mean / (total + 2 * average)
        residual = weight * (clean - centre)
        squares = (_by_cluster(residual, units) ** 2).sum(0) + average**2 * (
            (size - centre) ** 2 + (size + centre) ** 2
        )
        error = np.sqrt(squares * count / (count - 1)) / (total + 2 * average)
        width = critical_t(level, count - 1.0) * error
        known = (count > 1) & (total > 0)
        low = np.where(known, np.maximum(np.minimum(centre - width, mean), -1.0), np.nan)
        high = np.where(known, np.minimum(np.maximum(centre + width, mean), 1.0), np.nan)
    return Effects(mean, low, high, centre, error, count - 1.0, instances, decided)


def _by_cluster(values: NDArray[np.float64], units: Units) -> NDArray[np.float64]:
    if units.single:
        return values
    sums = np.zeros((units.count, values.shape[1]))
    np.add.at(sums, units.cluster, values)
    return sums


def _clusters(weight: NDArray[np.float64], units: Units) -> NDArray[np.float64]:
    """Clusters with any weight in each pair."""
    present = (weight > 0).astype(float)
    count: NDArray[np.float64] = (_by_cluster(present, units) > 0).sum(0).astype(float)
    return count


def to_tensor(values: NDArray[np.float64]) -> torch.Tensor:
    """A float64 tensor of its own memory."""
    return torch.from_numpy(np.ascontiguousarray(values))
