"""Mean preferences of pairs with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from torchpref.errors import UsageError
from torchpref.report.numbers import counted
from torchpref.runs.measures import LEVEL
from torchpref.stats.resampling.design import design_of, welch
from torchpref.stats.resampling.instances import Units, units_of

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences


#: A t interval needs so many decided instances, and so many on the side that has fewer.
LEAST_DECIDED, LEAST_LESSER = 10, 3


@dataclass(frozen=True)
class Effects:
    """Mean preference of every pair.

    Attributes:
        mean: float64 ``[pair]``, Δ̄; NaN where a pair shares no instance.
        low, high: float64 ``[pair]``, limits of the interval; NaN where it is withheld.
        reasons: per pair why the interval is withheld; ``""`` where it is not.
        centre, error, degrees: float64 ``[pair]``, a t interval is centre ± t · error with so many degrees of freedom, cut to
            [−1, 1] and widened to hold the mean.
        instances: int64 ``[pair]``, instances that both ran.
        decided: int64 ``[pair]``, those on which Δ is not 0.
    """

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    reasons: tuple[str, ...]
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
    """Δ̄ of every pair with an interval over instances; which one depends on how instances were sampled.

    *One sample*: two instances of the pair's average weight are added to the variance and the centre, one with +m and one with
    −m, m the root mean square of the Δ that are not 0: for Δ in {−1, 0, 1} the interval of Bonett and Price, *Adjusted Wald
    confidence interval for a difference of binomial proportions based on paired data* (2012). *Strata* (several benchmarks,
    equal weights within each): Σ w² s²/n over benchmarks, with s² = (Σ(x − x̄)² + 2m²)/(n + 1), which stays honest where a
    benchmark has one instance, and Welch's degrees of freedom. *Own weights*: residuals of the jackknife, and as many degrees
    of freedom as instances of equal weight would give.

    One sample, and own weights, need ten decided instances and three on the lesser side for a t interval. With fewer, the
    interval is that of two exact binomial ones (Clopper and Pearson) for the share won and the share lost, where every Δ is
    −1, 0 or 1 of equal weight, else it is withheld.

    Args:
        prefs: the preferences.
        level: chance that the interval covers the mean over the population of instances.
        units: clusters of instances that were drawn together; the families of the runs by default.
    """
    check_level(level)
    units = units or units_of(prefs)
    delta = np.nan_to_num(prefs.delta.cpu().numpy())
    weights = prefs.weights.cpu().numpy()
    mask = prefs.mask.cpu().numpy() & (weights > 0)[:, None]
    mean = prefs.pair_means().cpu().numpy()
    wins, losses = ((delta > 0) & mask).sum(0), ((delta < 0) & mask).sum(0)
    decided, instances = wins + losses, prefs.mask.sum(0).cpu().numpy()
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.where(decided > 0, np.sqrt((delta**2 * mask).sum(0) / np.maximum(decided, 1)), 1.0)
        design = design_of(weights, units)
        spread = {"one sample": _one_sample, "strata": _strata, "weights": _own_weights}[design]
        centre, error, degrees = spread(delta, weights[:, None] * mask, mean, size, units)
        width = critical_t(level, degrees) * error
        low, high = np.minimum(centre - width, mean), np.maximum(centre + width, mean)
    known = (degrees > 0) & np.isfinite(width) & (instances > 0)
    if design == "strata":
        known &= decided > 0
        reasons = ["" if there else _why_no_strata(count) for there, count in zip(known, decided, strict=True)]
    else:
        enough = (decided >= LEAST_DECIDED) & (np.minimum(wins, losses) >= LEAST_LESSER)
        exact = ~enough & (instances > 0) & units.single & (design == "one sample")
        exact &= ((delta == np.rint(delta)) | ~mask).all(0)
        low[exact], high[exact] = _exact_limits(wins, losses, instances, level)[:, exact]
        known = (known & enough) | exact
        reasons = [
            "" if there else _why_few(*numbers) for there, *numbers in zip(known, decided, wins, losses, strict=True)
        ]
    low = np.where(known, np.maximum(low, -1.0), np.nan)
    high = np.where(known, np.minimum(high, 1.0), np.nan)
    return Effects(mean, low, high, tuple(reasons), centre, error, degrees, instances, decided)


Spread = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def _one_sample(
    delta: NDArray[np.float64],
    weight: NDArray[np.float64],
    mean: NDArray[np.float64],
    size: NDArray[np.float64],
    units: Units,
) -> Spread:
    """Centre, error and degrees of freedom of every pair, of equal weights and one stratum."""
    total, count = weight.sum(0), _clusters(weight, units)
    average = total / count
    centre = total * mean / (total + 2 * average)
    residual = _by_cluster(weight * (delta - centre), units)
    squares = (residual**2).sum(0) + average**2 * ((size - centre) ** 2 + (size + centre) ** 2)
    return centre, np.sqrt(squares * count / (count - 1)) / (total + 2 * average), count - 1.0


def _strata(
    delta: NDArray[np.float64],
    weight: NDArray[np.float64],
    mean: NDArray[np.float64],
    size: NDArray[np.float64],
    units: Units,
) -> Spread:
    """The same for a sample from each benchmark; no degrees of freedom where the pair shares no instance of one."""
    total = weight.sum(0)
    clusters = _by_cluster((weight > 0).astype(float), units)
    parts, degrees = [], []
    for first, last in units.strata():
        inside = (units.cluster >= first) & (units.cluster < last)
        here = (weight[inside] > 0).astype(float)
        number, count = here.sum(0), (clusters[first:last] > 0).sum(0)
        residual = here * (delta[inside] - (here * delta[inside]).sum(0) / number)
        sums = np.zeros((last - first, delta.shape[1]))
        np.add.at(sums, units.cluster[inside] - first, residual)
        square = ((sums**2).sum(0) + 2 * (size * number / count) ** 2) / (count + 1)
        parts.append((weight[inside].sum(0) / total) ** 2 * square * count / number**2)
        degrees.append(count + 1.0)
    variances = np.stack(parts)
    return mean, np.sqrt(variances.sum(0)), np.nan_to_num(welch(variances, np.stack(degrees)))


def _own_weights(
    delta: NDArray[np.float64],
    weight: NDArray[np.float64],
    mean: NDArray[np.float64],
    size: NDArray[np.float64],
    units: Units,
) -> Spread:
    """The same with weights that differ within a benchmark: a heavy instance is a sample of little more than itself."""
    total, count = weight.sum(0), _clusters(weight, units)
    average = total / count
    whole = total + 2 * average
    centre = total * mean / whole
    heavy = _by_cluster(weight, units)
    residual = _by_cluster(weight * (delta - centre), units) / (1 - heavy / whole)
    added = average / (1 - average / whole)
    squares = (residual**2).sum(0) + added**2 * ((size - centre) ** 2 + (size + centre) ** 2)
    effective = whole**2 / ((heavy**2).sum(0) + 2 * average**2)
    return centre, np.sqrt(squares) / whole, effective - 1.0


def _exact_limits(
    wins: NDArray[np.int64], losses: NDArray[np.int64], instances: NDArray[np.int64], level: float
) -> NDArray[np.float64]:
    """Limits of (share won − share lost) ``[2, pair]`` from one-sided binomial limits, each wrong in a quarter of the error."""
    from scipy.special import betaincinv

    share = (1 - level) / 4

    def limits(hits: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rest = instances - hits
        low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), rest + 1, share), 0.0)
        return low, np.where(rest > 0, betaincinv(hits + 1, np.maximum(rest, 1), 1 - share), 1.0)

    (won_low, won_high), (lost_low, lost_high) = limits(wins), limits(losses)
    return np.stack([won_low - lost_high, won_high - lost_low])


def _why_few(decided: int, wins: int, losses: int) -> str:
    if not decided:
        return "no instance is decided"
    if decided < LEAST_DECIDED:
        return f"only {counted(decided, 'instance')} decided, at least {LEAST_DECIDED} are needed"
    return f"only {min(wins, losses)} of {decided} decided instances on the lesser side, at least {LEAST_LESSER} are needed"


def _why_no_strata(decided: int) -> str:
    return "the two share no instance of some benchmark" if decided else "no instance is decided"


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
