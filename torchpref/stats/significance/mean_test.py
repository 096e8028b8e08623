"""A test of "the mean preference is 0" that holds for every distribution, by betting.

Sign flips are exact where two systems are exchangeable; a mean of 0 is less: nineteen small losses to one large win have a mean
of 0, and flips call them a difference. A gambler who bets on every instance in turn cannot gain on average if the mean is 0,
whatever the distribution, so p = 1 / (the most that he ever owned) holds its level (Waudby-Smith and Ramdas, arXiv
2010.09686). It has less power than flips, and p depends on the order of the instances: the order is drawn with the seed, and
the range over many orders is given with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchpref.stats.resampling.instances import Units, stream
from torchpref.stats.sequential.betting import running_log_wealth, slopes_above, slopes_below
from torchpref.stats.significance.pair_tests import by_family

#: Orders over which the range of p is taken; the first decides.
ORDERS = 99
METHOD = "betting on the mean"


@dataclass(frozen=True)
class MeanTests:
    """p-values of betting.

    Attributes:
        p: float64 ``[pair]``, two-sided, in the seeded order; NaN where a pair is not compared.
        below, above: float64 ``[pair]``, one-sided: small where the mean lies below, above the bound.
        low, high: float64 ``[pair]``, 5 % and 95 % quantiles of ``p`` over orders.
    """

    p: NDArray[np.float64]
    below: NDArray[np.float64]
    above: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def mean_tests(
    delta: NDArray[np.float64],
    weights: NDArray[np.float64],
    units: Units,
    seed: int,
    bound: float = 0.0,
    orders: int = ORDERS,
) -> MeanTests:
    """Test the mean of every pair against ``bound``.

    Weights and families: what is bet on is each family's weighted sum, divided by the largest that a family can have, so that
    it lies in [−1, 1] and its mean has the sign of Δ̄ − bound.

    Args:
        delta: float64 ``[instance, pair]``, NaN where a pair is not compared.
        weights: float64 ``[instance]``.
        units: families of the instances.
        seed: of the orders.
        bound: in (−1, 1); families and weights that differ allow 0 only in so far as the bound is scaled with them.
        orders: how many orders; the first gives p.
    """
    pairs = delta.shape[1]
    result = np.full((5, pairs), np.nan)
    for pair in range(pairs):
        here = ~np.isnan(delta[:, pair]) & (weights > 0)
        if not here.any():
            continue
        weight = np.where(here, weights, 0.0)
        size = by_family(weight[:, None], units)[:, 0]
        total = by_family((weight * np.nan_to_num(delta[:, pair]))[:, None], units)[:, 0]
        used = size > 0
        # Without weights a family's value is its sum over the largest size; what is missing to that counts as the bound.
        values = np.clip((total[used] + bound * (size.max() - size[used])) / size.max(), -1.0, 1.0)
        result[:, pair] = _one(values, bound, seed, orders)
    return MeanTests(*result)


def _one(values: NDArray[np.float64], bound: float, seed: int, orders: int) -> tuple[float, float, float, float, float]:
    rng = stream(seed, "orders", 0)
    order = np.argsort(rng.random((orders, len(values))), axis=1)
    paths = values[order]
    up = running_log_wealth(slopes_above(paths, bound))
    down = running_log_wealth(slopes_below(paths, bound))
    both = _p(np.logaddexp(up, down) - np.log(2.0))
    low, high = np.quantile(both, (0.05, 0.95))
    return float(both[0]), float(_p(down[:1])[0]), float(_p(up[:1])[0]), float(low), float(high)


def _p(log_wealth: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.exp(-np.maximum(log_wealth.max(axis=1), 0.0)))
