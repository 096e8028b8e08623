"""Tests of a mean preference against a margin: is Δ̄ below −M, above −M, or within ±M?

For one run each, so that Δ is −1, 0 or 1, the exact unconditional test: with wins w, losses l of n the statistic is Tango's
score statistic (*Equivalence test and confidence interval for the difference in proportions for the paired-sample design*,
1998), and p is the largest chance of one as extreme over all rates at which instances can be decided, win and loss rates being
(q ∓ M)/2. Sign flips of Δ + M alone reject far too often there: they test symmetry around −M, and Δ has three values.

For any other Δ the larger of the t test that goes with the interval and sign flips of Δ + M, which is approximate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import UsageError
from torchpref.stats.resampling.instances import Units
from torchpref.stats.significance.effects import Effects
from torchpref.stats.significance.pair_tests import flipped

#: How the p-value of a margin was found.
UNCONDITIONAL = "exact unconditional (Tango's score)"
APPROXIMATE = "larger of t and sign flips, approximate"
#: Decided rates that are tried, and the finer ones around the best of them.
_RATES = 600
_CLOSER = 60


@dataclass(frozen=True)
class MarginTest:
    """One-sided p-values against a bound.

    Attributes:
        below: p of "Δ̄ is at least the bound"; small where Δ̄ lies below it.
        above: p of "Δ̄ is at most the bound"; small where Δ̄ lies above it.
        method: how they were found.
    """

    below: float
    above: float
    method: str


def check_margin(name: str, value: float) -> float:
    """A mean preference in [0, 1)."""
    if not 0 <= value < 1:
        raise UsageError(f"{name} is a mean preference of at least 0 and below 1, got {value!r}")
    return float(value)


def margin_test(
    delta: NDArray[np.float64],
    weights: NDArray[np.float64],
    units: Units,
    effects: Effects,
    bound: float,
    flips: int,
    seed: int,
    sign: int = 1,
) -> MarginTest:
    """Test the mean of ``delta`` against ``bound``.

    Args:
        delta: float64 ``[instance]``, Δ of one pair; NaN where it is not compared.
        weights: float64 ``[instance]``.
        units: families of the instances.
        effects: of the pair (its only one), for the t test; ``sign`` turns them to the side of ``delta``.
        bound: in (−1, 1).
        flips: where flips have to be simulated.
        seed: whole number.
        sign: −1 if the effects are those of −delta.
    """
    here = ~np.isnan(delta) & (weights > 0)
    values, own = delta[here], weights[here]
    if units.single and len(values) and np.isin(values, (-1.0, 0.0, 1.0)).all() and (own == own[0]).all():
        wins, losses, size = int((values > 0).sum()), int((values < 0).sum()), len(values)
        # "Below" is "above" with the sides changed.
        above = unconditional_p(wins, losses, size, bound)
        below = unconditional_p(losses, wins, size, -bound)
        return MarginTest(below, above, UNCONDITIONAL)
    from scipy.special import stdtr

    degrees = float(effects.degrees[0])
    below_t = above_t = 1.0
    if degrees > 0 and float(effects.error[0]) > 0:
        t = (sign * float(effects.centre[0]) - bound) / float(effects.error[0])
        below_t, above_t = float(stdtr(degrees, t)), float(stdtr(degrees, -t))
    shifted = np.where(here, (np.nan_to_num(delta) - bound) * weights, 0.0)[:, None]
    p, _ = flipped(shifted, np.array([True]), units, flips, seed)
    total = float(shifted.sum())
    half = float(p[0]) / 2
    below_flip, above_flip = (half, 1.0) if total < 0 else (1.0, half) if total > 0 else (1.0, 1.0)
    return MarginTest(max(below_t, below_flip), max(above_t, above_flip), APPROXIMATE)


def tango_score(wins: NDArray[np.float64], losses: NDArray[np.float64], size: int, bound: float) -> NDArray[np.float64]:
    """Tango's score statistic of "the mean is ``bound``": (wins − losses − n·bound) over its deviation under that."""
    margin = -bound
    linear = wins * (1 - margin) + losses * (1 + margin) - 2 * size * margin
    constant = wins * margin * (1 - margin)
    # The win rate of greatest likelihood under win rate − loss rate = bound; both rates lie in [0, 1].
    rate = (linear + np.sqrt(np.maximum(linear**2 + 8 * size * constant, 0.0))) / (4 * size)
    rate = np.clip(rate, max(0.0, bound), (1 + bound) / 2)
    variance = np.maximum(size * (2 * rate - bound - bound**2), 0.0)
    excess = wins - losses - size * bound
    certain = np.where(np.abs(excess) <= 1e-9, 0.0, np.where(excess > 0, np.inf, -np.inf))
    return np.where(variance > 1e-12, excess / np.sqrt(np.maximum(variance, 1e-12)), certain)


def critical_wins(size: int, bound: float, score: float) -> NDArray[np.int64]:
    """The least number of wins among d = 0 … n decided instances whose score is at least ``score``; d + 1 if there is none."""
    decided = np.arange(size + 1)
    low, high = np.zeros(size + 1, dtype=np.int64), decided + 1
    while (low < high).any():
        middle = (low + high) // 2
        enough = tango_score(middle.astype(float), (decided - middle).astype(float), size, bound) >= score - 1e-9
        open_ = low < high
        high = np.where(open_ & enough, middle, high)
        low = np.where(open_ & ~enough, middle + 1, low)
    return low


def unconditional_p(wins: int, losses: int, size: int, bound: float) -> float:
    """One-sided p of "the mean is at most ``bound``": the largest chance of a score at least as large, over decided rates.

    Args:
        wins, losses: instances with Δ = 1 and −1.
        size: all instances.
        bound: in (−1, 1).
    """
    score = float(tango_score(np.array([float(wins)]), np.array([float(losses)]), size, bound)[0])
    least = critical_wins(size, bound, score)
    low = abs(bound)
    rates = low + (1 - low) * np.linspace(0, 1, _RATES) ** 2
    chances = tail_chances(size, bound, rates, least)
    best = int(chances.argmax())
    closer = np.linspace(rates[max(best - 1, 0)], rates[min(best + 1, _RATES - 1)], _CLOSER)
    return float(min(1.0, max(chances[best], tail_chances(size, bound, closer, least).max())))


def tail_chances(size: int, mean: float, rates: NDArray[np.float64], least: NDArray[np.int64]) -> NDArray[np.float64]:
    """The chance of at least ``least[d]`` wins, d instances being decided, for a mean and each rate of decided instances."""
    from scipy.special import bdtrc, gammaln, xlog1py, xlogy

    every = np.arange(size + 1)
    ways = gammaln(size + 1) - gammaln(every + 1) - gammaln(size - every + 1)
    result = np.empty(len(rates))
    for place, rate in enumerate(rates):
        reach = 9 * np.sqrt(size * rate * (1 - rate)) + 20  # numbers farther off have a chance below 1e-15
        near = slice(max(0, int(size * rate - reach)), min(size, int(size * rate + reach)) + 1)
        decided = every[near]
        chance = np.exp(ways[near] + xlogy(decided, rate) + xlog1py(size - decided, -rate))
        up = min(max((rate + mean) / (2 * rate), 0.0), 1.0) if rate > 0 else 0.5
        # The chance of more than least − 1 wins; certain where none is needed.
        wins = least[near]
        tail = np.where(wins > decided, 0.0, np.where(wins <= 0, 1.0, bdtrc(np.maximum(wins - 1.0, 0.0), decided, up)))
        result[place] = float((chance * tail).sum())
    return result
