"""The units of a run: levels are whole millionths of full return, times are whole ticks of a clock."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchpref.errors import DataError, UsageError

#: Levels are whole millionths of full return.
MILLION = 1_000_000
#: The tick of a time that the log does not give.
UNKNOWN = -1
#: The tick of a level that is never reached; later than every real time.
NEVER = 2**62
#: Real ticks stay below this, so that differences and bounds never overflow.
LARGEST_TICK = 2**61
#: Size of a tick, in the clock's own unit; clocks not named here tick in millionths.
DEFAULT_RESOLUTION: dict[str, float] = {"steps": 1.0, "turns": 1.0, "tokens": 1.0, "cost": 1e-9}
_OTHER_RESOLUTION = 1e-6
#: Clocks on which a level reached at exactly 0 is taken to be at an unknown time: what was never recorded is written as 0.
ZERO_IS_UNKNOWN = ("seconds", "tokens", "cost")
#: Which clock is meant where none is named, in this order.
PREFERRED_CLOCKS = ("steps", "turns")
ZeroTime = Literal["unknown", "keep"]


def default_resolution(clock: str) -> float:
    """Size of a tick of that clock, in the clock's own unit."""
    return DEFAULT_RESOLUTION.get(clock, _OTHER_RESOLUTION)


def ticks_per_unit(resolution: float) -> float:
    """How many ticks make one unit; a whole number where the resolution is one over a whole number.

    Multiplying by a whole number rounds once; dividing by 1e-6, which is not a millionth, would round twice.
    """
    if not resolution > 0 or not np.isfinite(resolution):
        raise UsageError(f"a clock's resolution must be a positive number, got {resolution!r}")
    factor = 1.0 / resolution
    whole = round(factor)
    return float(whole) if whole and abs(factor - whole) < 1e-6 * factor else factor


def to_ticks(values: Float[Tensor, "*shape"], resolution: float, clock: str = "time") -> Int[Tensor, "*shape"]:
    """Times in the clock's unit as whole ticks, rounded once; NaN becomes ``UNKNOWN``.

    Raises:
        DataError: a time is negative, infinite, or too large for the clock's resolution.
    """
    scaled = values.double() * ticks_per_unit(resolution)
    unknown = torch.isnan(scaled)
    bad = ~unknown & ((scaled < 0) | (scaled >= LARGEST_TICK))
    if bool(bad.any()):
        place = tuple(int(i) for i in bad.nonzero()[0])
        value = float(values[place]) if place else float(values)
        remedy = (
            "times start at 0 or later; subtract the start of the run"
            if value < 0
            else "leave an unknown time as NaN, or give the clock a coarser resolution"
        )
        raise DataError(f"clock {clock!r}, at index {list(place)}: time {value!r} cannot be used; {remedy}")
    return torch.where(unknown, UNKNOWN, torch.round(torch.nan_to_num(scaled)).long())


def to_millionths(returns: Tensor) -> Int[Tensor, "*shape"]:
    """Returns in [0, 1] as whole millionths, rounded once from float64."""
    return torch.round(returns.double() * MILLION).to(torch.int32)
