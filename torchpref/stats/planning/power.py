"""The chance that a test finds a mean preference, at a number of instances, and the least number at which that is enough.

The instances to come are taken to be like those at hand: drawn from them with replacement. For Δ in {−1, 0, 1} the power is a
sum over the number of decided instances, exact: of sign flips, or of the exact unconditional test where there is a margin. For
other Δ it is simulated, with p-values of sign flips from moments (symmetric beta, as in :mod:`torchpref.meta.fast_test`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchpref.stats.resampling.instances import stream, units_of

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences

#: Beyond this many instances the normal approximation decides alone.
LARGEST = 2000
#: Data sets simulated, and values held at a time.
DRAWS = 4000
_CELLS = 1 << 22
#: Up to this number every smaller one is tried, so that none is overlooked where power goes up and down.
_SMALL = 60


@dataclass(frozen=True)
class Sample:
    """Δ of one pair on the instances at hand, in the direction that is to be found.

    Attributes:
        values: float64 ``[instance]``; their mean lies above ``bound``.
        bound: what the mean is tested against.
        alpha: one-sided error rate.
        spread: how much larger the variance of the mean is than that of independent, equally weighted instances.
    """

    values: NDArray[np.float64]
    bound: float
    alpha: float
    spread: float = 1.0

    @property
    def ternary(self) -> bool:
        """Whether every Δ is −1, 0 or 1."""
        return bool(np.isin(self.values, (-1.0, 0.0, 1.0)).all())

    def power(self, size: int) -> float:
        """The chance of a significant result with ``size`` instances."""
        equal = max(1, round(size / self.spread))
        if size > LARGEST:
            return self._normal(equal)
        return self._exact(equal) if self.ternary else self._simulated(equal)

    def needed(self, power: float) -> float:
        """The least number of instances with that power; infinite where the mean does not lie above the bound."""
        start = self.formula(power)
        if not math.isfinite(start) or start > LARGEST:
            return math.ceil(start * self.spread) if math.isfinite(start) else math.inf
        enough = _least(lambda size: self._sized(size) >= power, max(1, int(start)))
        return math.ceil(enough * self.spread - 1e-9)

    def about(self, power: float) -> float:
        """The number by the normal approximation where finding it takes long: with a margin, or other Δ than −1, 0 and 1."""
        if self.ternary and self.bound == 0:
            return self.needed(power)
        number = self.formula(power)
        return math.ceil(number * self.spread) if math.isfinite(number) else math.inf

    def _sized(self, size: int) -> float:
        return self._exact(size) if self.ternary else self._simulated(size)

    def formula(self, power: float) -> float:
        """The normal approximation of the number: (z_α √E[x²] + z_β sd)² / mean², x = Δ − bound."""
        from scipy.special import ndtri

        shifted = self.values - self.bound
        mean, square = float(shifted.mean()), float((shifted**2).mean())
        if not mean > 0:
            return math.inf
        root = -ndtri(self.alpha) * math.sqrt(square) + ndtri(power) * math.sqrt(max(square - mean**2, 0.0))
        return float(max(1.0, (root / mean) ** 2))

    def _normal(self, size: int) -> float:
        from scipy.special import ndtr, ndtri

        shifted = self.values - self.bound
        mean, square = float(shifted.mean()), float((shifted**2).mean())
        spread = math.sqrt(max(square - mean**2, 1e-12))
        return float(ndtr((mean * math.sqrt(size) + ndtri(self.alpha) * math.sqrt(square)) / spread))

    def _exact(self, size: int) -> float:
        from torchpref.stats.significance.margins import tail_chances

        rate = float((self.values != 0).mean())
        if rate == 0:
            return 0.0
        least = critical_signs(size, self.alpha) if self.bound == 0 else _critical_margin(size, self.bound, self.alpha)
        return float(tail_chances(size, float(self.values.mean()), np.array([rate]), least)[0])

    def _simulated(self, size: int) -> float:
        rng = stream(0, "power", size)
        found = 0
        rows = max(1, min(DRAWS, _CELLS // size))
        for start in range(0, DRAWS, rows):
            drawn = self.values[rng.integers(0, len(self.values), (min(rows, DRAWS - start), size))]
            p = flip_tail(drawn - self.bound)
            if self.bound != 0:
                p = np.maximum(p, _t_tail(drawn, self.bound))
            found += int((p <= self.alpha).sum())
        return found / DRAWS


def sample_of(prefs: Preferences, pair: int, sign: int, bound: float, alpha: float) -> Sample:
    """The instances of one pair as a :class:`Sample`, Δ turned by ``sign``.

    Weights and families leave the values as they are and widen the variance of their mean: by Kish's Σv² n / (Σv)² where
    instances count differently, by the ratio of the sums of squares over families and over instances.
    """
    from torchpref.stats.significance.pair_tests import by_family

    delta = sign * prefs.delta[:, pair].cpu().numpy()
    weight = prefs.weights.cpu().numpy()
    here = ~np.isnan(delta) & (weight > 0)
    values, weight = np.where(here, np.nan_to_num(delta), 0.0), np.where(here, weight, 0.0)
    total, count = weight.sum(), int(here.sum())
    mean = float((weight * values).sum() / total) if total > 0 else 0.0
    units = units_of(prefs)
    deviations = weight * (values - mean)
    squares = float((by_family(deviations[:, None], units) ** 2).sum())
    plain = float((values[here] - mean) @ (values[here] - mean))
    spread = squares * count**2 / (total**2 * plain) if plain > 0 and total > 0 else 1.0
    equal = units.single and bool((weight[here] == weight[here][:1]).all())
    return Sample(values[here], bound, alpha, 1.0 if equal else max(spread, 1e-6))


def _least(enough: Callable[[int], bool], start: int) -> int:
    """The least number that is enough, near ``start``; power is taken to rise with the number, except for small ones."""
    high = max(1, start)
    while not enough(high):
        if high > 4 * LARGEST:
            return high
        high = math.ceil(high * 1.15) + 1
    low = 0
    if high > _SMALL:
        low = high
        while low > 1 and enough(low):
            high, low = low, math.floor(low / 1.15)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high
    return next(size for size in range(1, high + 1) if enough(size))


@lru_cache(maxsize=4096)
def _sign_limits(size: int, alpha: float) -> NDArray[np.int64]:
    from scipy.special import bdtrc

    decided = np.arange(size + 1)
    low, high = np.zeros(size + 1, dtype=np.int64), decided + 1
    while (low < high).any():
        middle = (low + high) // 2
        tail = np.where(middle <= 0, 1.0, bdtrc(np.maximum(middle - 1.0, 0.0), np.maximum(decided, 1), 0.5))
        enough = (tail <= alpha) & (middle > 0)
        open_ = low < high
        high = np.where(open_ & enough, middle, high)
        low = np.where(open_ & ~enough, middle + 1, low)
    return low


def critical_signs(size: int, alpha: float) -> NDArray[np.int64]:
    """The least number of wins among d = 0 … n decided instances that sign flips call significant; d + 1 for none."""
    return _sign_limits(size, alpha)


@lru_cache(maxsize=4096)
def _critical_margin(size: int, bound: float, alpha: float) -> NDArray[np.int64]:
    """The least number of wins among d decided instances that the exact unconditional test calls significant."""
    from scipy.special import ndtri

    from torchpref.stats.significance.margins import critical_wins, tail_chances

    low = abs(bound)
    rates = low + (1 - low) * np.linspace(0, 1, 80) ** 2
    near, far = float(-ndtri(alpha)) - 0.4, float(-ndtri(alpha)) + 2.5
    for _ in range(12):
        middle = (near + far) / 2
        if tail_chances(size, bound, rates, critical_wins(size, bound, middle)).max() <= alpha:
            far = middle
        else:
            near = middle
    return critical_wins(size, bound, far)


def flip_tail(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """One-sided p of sign flips of each row ``[sample, instance]`` towards a positive sum, from moments."""
    from scipy.special import stdtr

    total = values.sum(-1)
    square = (values**2).sum(-1)
    fourth = (values**4).sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        even = square**2 / fourth
        share = total**2 / (square * (3 * even - 2))
        degrees = np.maximum(3 * even - 3, 1e-9)
        t = np.sqrt(share * degrees / np.maximum(1 - share, 1e-300))
        p = stdtr(degrees, -t)
    least = np.ldexp(1.0, -np.count_nonzero(values, axis=-1))
    return np.where((total > 0) & (square > 0), np.maximum(p, least), 1.0)


def _t_tail(values: NDArray[np.float64], bound: float) -> NDArray[np.float64]:
    """One-sided p of the t test with two instances of opposite sign added, as the intervals do."""
    from scipy.special import stdtr

    size = values.shape[-1]
    decided = np.maximum(np.count_nonzero(values, axis=-1), 1)
    typical = np.sqrt((values**2).sum(-1) / decided)
    centre = values.sum(-1) / (size + 2)
    squares = ((values - centre[:, None]) ** 2).sum(-1) + 2 * typical**2 + 2 * centre**2
    error = np.sqrt(squares * size / max(size - 1, 1)) / (size + 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = stdtr(float(max(size - 1, 1)), (bound - centre) / error)
    return np.where(error > 0, p, 1.0)
