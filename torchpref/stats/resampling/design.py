"""How instances were sampled, as far as it decides which variance is right."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from torchpref.stats.resampling.instances import Units

Design = Literal["one sample", "strata", "weights"]


def design_of(weights: NDArray[np.float64], units: Units) -> Design:
    """``weights`` where they differ within a benchmark, else ``strata`` where there are several, else ``one sample``."""
    strata = units.stratum[units.cluster] if len(units.cluster) else np.zeros(0, dtype=np.int64)
    for number in np.unique(strata):
        own = weights[strata == number]
        if own.max() - own.min() > 1e-9 * own.max():
            return "weights"
    return "strata" if len(np.unique(strata)) > 1 else "one sample"


def welch(variances: NDArray[np.float64], degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Welch's and Satterthwaite's degrees of freedom of a sum of independent variances ``[stratum, ...]``."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found: NDArray[np.float64] = variances.sum(0) ** 2 / (variances**2 / degrees).sum(0)
    return found
