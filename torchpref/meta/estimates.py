"""A figure with its interval, or the reason why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from torchpref.runs.plain import plain


@dataclass(frozen=True, eq=False)
class Estimate:
    """One number of the table.

    Attributes:
        value: the figure; NaN where the data cannot give it.
        low, high: its interval; NaN where there is none.
        reason: why there is no value; empty if there is one.
        draws: float64 ``[draw]``, the figure in each replicate, split or draw; None where nothing is drawn.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    reason: str = ""
    draws: Float[Tensor, " draw"] | None = field(default=None, repr=False)

    @property
    def exists(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)

    def to_dict(self) -> dict[str, Any]:
        """Value and interval, None where there is none; and the reason if there is no value."""
        record: dict[str, Any] = {key: plain(getattr(self, key)) for key in ("value", "low", "high")}
        if self.reason:
            record["reason"] = self.reason
        return record


def missing(reason: str) -> Estimate:
    """No figure, and why."""
    return Estimate(math.nan, reason=reason)


def quantiles(draws: Float[Tensor, " draw"], level: float) -> tuple[float, float]:
    """Percentiles that hold ``level`` of the draws; NaN without two draws."""
    known = draws[~torch.isnan(draws)]
    if len(known) < 2:
        return math.nan, math.nan
    edges = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    low, high = torch.quantile(known, edges).tolist()
    return low, high


def mean_of(draws: Float[Tensor, " draw"], level: float, reason: str) -> Estimate:
    """The mean of draws with their percentiles; missing for ``reason`` where no draw has a value."""
    value = float(torch.nanmean(draws)) if len(draws) else math.nan
    if math.isnan(value):
        return missing(reason)
    return Estimate(value, *quantiles(draws, level), draws=draws)


def around(value: float, draws: Float[Tensor, " draw"], level: float, bounds: tuple[float, float]) -> Estimate:
    """A value on the data, with percentiles of replicates moved by the difference between their mean and the value."""
    low, high = quantiles(draws, level)
    shift = value - float(torch.nanmean(draws)) if len(draws) else math.nan
    low, high = (min(max(limit + shift, bounds[0]), bounds[1]) for limit in (low, high))
    return Estimate(value, min(low, value), max(high, value), draws=draws)


def share_of(hits: float, trials: int, level: float) -> tuple[float, float]:
    """Wilson's interval of a share of ``trials`` (*Probable inference*, 1927)."""
    from scipy.special import ndtri

    z = float(ndtri((1 + level) / 2))
    share = hits / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    width = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return max(0.0, centre - width), min(1.0, centre + width)
