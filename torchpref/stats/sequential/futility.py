"""Whether going on can still change the verdict: the chance, given what was seen, of still ending at it.

With S the sum of Δ after n of N instances, the rest is taken as normal with drift d and variance v per instance, m² the
mean square of Δ with one decided instance added. That does not bind: the error of a later verdict stays α whether one
stops or not.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int
from numpy.typing import ArrayLike, NDArray

from torchpref.stats.sequential.paths import UNIT

#: From how many instances on, and below which chance, going on is called futile.
FROM, BELOW = 10, 0.05
#: The least variance per instance that the rest is thought to have.
_LEAST_VARIANCE = 0.02


def mean_square(delta: Int[np.ndarray, " instance"], family: Int[np.ndarray, " instance"]) -> float:
    """m² = (ΣΔ² + 1)/(n + 1), the square taken of the sums of families. Δ in parts of 1/UNIT."""
    sums = np.bincount(family, weights=delta / UNIT, minlength=len(delta)) if len(delta) else np.zeros(0)
    return float(((sums**2).sum() + 1) / (len(delta) + 1))


def chance_of_worse(
    total: ArrayLike, square: ArrayLike, seen: ArrayLike, planned: int, alpha: float, effect: float, margin: float = 0.0
) -> NDArray[np.float64]:
    """The chance of ending significantly below −margin, for one look or many; NaN or 0/1 at N, where nothing is to come.

    Args:
        total: S = ΣΔ(new, base).
        square: m², see :func:`mean_square`.
        seen, planned: n < N.
        alpha: of the one-sided test.
        effect: how much worse than −margin the new system is thought to be at least, as a mean preference.
        margin: how much worse is acceptable.
    """
    from scipy.special import ndtr, ndtri

    total, square, seen = (np.asarray(each, dtype=np.float64) for each in (total, square, seen))
    drift = np.minimum(-margin - effect, total / seen)
    spread = np.sqrt(np.maximum(square - drift**2, _LEAST_VARIANCE) * (planned - seen))
    limit = -margin * planned + float(ndtri(alpha)) * np.sqrt(square * planned)
    return np.asarray(ndtr((limit - total - (planned - seen) * drift) / spread))


def chance_of_fine(total: float, square: float, seen: int, planned: int, alpha: float, margin: float) -> float:
    """The chance of ending significantly above −margin, taken generously: no drift below 0, and a normal limit."""
    from scipy.special import ndtr, ndtri

    drift = max(0.0, total / seen)
    spread = np.sqrt(max(square - drift**2, _LEAST_VARIANCE) * (planned - seen))
    limit = -margin * planned - float(ndtri(alpha)) * np.sqrt(square * planned)
    return float(ndtr((total + (planned - seen) * drift - limit) / spread))


def futile(
    delta: Int[np.ndarray, " instance"],
    family: Int[np.ndarray, " instance"],
    planned: int,
    alpha: float,
    effect: float,
    margin: float = 0.0,
) -> tuple[bool, float]:
    """Whether going on is futile, and the chance of still ending at a verdict other than "undecided".

    With a margin "fine" is a verdict too, and as long as it can be reached going on is not futile.
    """
    seen = len(delta)
    if not FROM <= seen < planned:
        return False, float("nan")
    total, square = float(delta.sum()) / UNIT, mean_square(delta, family)
    chance = float(chance_of_worse(total, square, seen, planned, alpha, effect, margin))
    if margin > 0:
        chance = max(chance, chance_of_fine(total, square, seen, planned, alpha, margin))
    return chance < BELOW, chance
