"""Others' histories as a control variate: what is known of the instances that a new system did not run.

The base ran all N instances, others too; the new system ran n. Where the others do well against the base the new system is
likely to, so the mean of the n is moved by how much easier or harder for the others these n are than all N. Cochran, *Sampling
Techniques*, 1977, chapter 7 (regression estimates); compare PPI++, arXiv 2311.01453.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from torchpref.errors import UsageError

#: Fewest instances of the new system, and fewest others, from which the slope is worth anything.
LEAST_INSTANCES, LEAST_OTHERS = 15, 3


@dataclass(frozen=True)
class ControlVariate:
    """A mean preference over all N instances, estimated from n.

    Attributes:
        mean: the estimate, cut to [−1, 1].
        error, error_new: standard errors: for these N instances, and for new tasks like them.
        degrees: of the t distribution.
        slope: b.
        correlation: between y and z on the n instances; NaN where one of them does not vary.
        plain: the mean of the n instances.
        ratio: residual standard deviation as a share of that of y, √(1 − correlation²): below 1 where history helps.
    """

    mean: float
    error: float
    error_new: float
    degrees: int
    slope: float
    correlation: float
    plain: float
    ratio: float


def control_variate(
    y: Float[np.ndarray, " instance"], z: Float[np.ndarray, " all"], ran: Int[np.ndarray, " instance"]
) -> ControlVariate:
    """ȳ + b(z̄_N − z̄_n), b by least squares; se² = (Σr² + 2m₂)/n · (1/n − 1/N), r the residuals.

    m₂ is the mean square of the y that are not 0 (1 where none is): two pseudo-instances, so that few and equal values do not
    give an error of 0. For new tasks se² gains the variance of y over N.

    Args:
        y: Δ(new, base) on the instances that the new system ran.
        z: mean Δ(other, base) over the others, on all N.
        ran: positions of the former among all.

    Raises:
        UsageError: fewer than 15 instances.
    """
    n, everything = len(y), len(z)
    if n < LEAST_INSTANCES:
        raise UsageError(
            f"histories are of use from {LEAST_INSTANCES} instances on; the new system ran {n}. Compare without history"
        )
    at = z[ran]
    dz, dy = at - at.mean(), y - y.mean()
    varies = float(dz @ dz) > 1e-12 * n
    slope = float(dz @ dy) / float(dz @ dz) if varies else 0.0
    residuals = dy - slope * dz
    squares = y[np.abs(y) > 0] ** 2
    decided = float(squares.mean()) if len(squares) else 1.0
    spread = float(dy @ dy)
    correlates = varies and spread > 1e-12 * n
    correlation = float(dz @ dy) / np.sqrt(float(dz @ dz) * spread) if correlates else float("nan")
    square = (float(residuals @ residuals) + 2 * decided) / n * (1 / n - 1 / everything)
    return ControlVariate(
        mean=float(np.clip(y.mean() + slope * (z.mean() - at.mean()), -1.0, 1.0)),
        error=float(np.sqrt(square)),
        error_new=float(np.sqrt(square + (spread + 2 * decided) / n / everything)),
        degrees=n,
        slope=slope,
        correlation=correlation,
        plain=float(y.mean()),
        ratio=float(np.sqrt(max(0.0, 1 - correlation**2))) if correlates else 1.0,
    )
