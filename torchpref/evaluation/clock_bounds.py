"""Two systems on several clocks at once: what holds whatever steps and dollars are worth, and where it turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.evaluation.two_systems import two_systems
from torchpref.kernels.reference import level_sign
from torchpref.runs.curves import LEVEL_PAD, Curves, curves, time_to_level, union_levels
from torchpref.runs.measures import JUDGE, describe
from torchpref.runs.units import MILLION, NEVER, UNKNOWN

if TYPE_CHECKING:
    from torchpref.runs.trajectories import Trajectories


@dataclass(frozen=True)
class ExchangeRates:
    """What one unit of a clock may be worth on another before the sign of the mean preference turns.

    Attributes:
        first, second: names of the clocks; times are added as first + rate · second.
        rates: where the sign of the mean turns, ascending, in units of the first clock per unit of the second.
        means: the mean between them: one more than there are rates.
    """

    first: str
    second: str
    rates: tuple[float, ...]
    means: tuple[float, ...]


@dataclass(frozen=True)
class ClockBounds:
    """What :func:`clock_bounds` finds; values above 0 prefer the first system.

    Attributes:
        first, second: names of the systems.
        measure: ``"lr"`` or ``"rpp"``.
        clocks: names.
        means: the mean preference on each clock by itself.
        low, high: the mean lies between them on every combination of the clocks that grows with each.
        conflict: share of instances on which the clocks do not agree.
        instances: shared instances.
        rates: per pair of clocks where the sign turns.
    """

    first: str
    second: str
    measure: str
    clocks: tuple[str, ...]
    means: dict[str, float]
    low: float
    high: float
    conflict: float
    instances: int
    rates: tuple[ExchangeRates, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return vars(self) | {"clocks": list(self.clocks), "rates": [vars(one) for one in self.rates]}

    def __str__(self) -> str:
        clocks = " and ".join(self.clocks)
        by = ", ".join(f"{value:+.3f} by {name}" for name, value in self.means.items())
        between = f"between {self.low:+.3f} and {self.high:+.3f} whatever {clocks} are worth"
        lines = [f"{self.measure.upper()} of {self.first} against {self.second}: {by}; {between}"]
        for one in self.rates:
            turns = ", ".join(f"{rate:.6g}" for rate in one.rates) or "none"
            lines.append(f"  the sign turns where one unit of {one.second} is worth so many of {one.first}: {turns}")
        return "\n".join(lines)


def clock_bounds(
    runs: Trajectories, first: str, second: str, clocks: Sequence[str], measure: str = JUDGE
) -> ClockBounds:
    """Per level the least and the largest sign over the clocks, and the mean preference that follows.

    Args:
        runs: the runs.
        first, second: names of the systems.
        clocks: at least two clocks of the runs.
        measure: ``"lr"`` or ``"rpp"``. IPP compares stretches of time and has no such bounds; SR and PR know no clock.

    Raises:
        UsageError: fewer than two clocks, an unknown one, another measure.
    """
    name = describe(measure).name
    if name not in ("lr", "rpp"):
        raise UsageError(f"bounds over clocks exist for LR and RPP, not for {name.upper()}")
    names = list(dict.fromkeys(str(clock) for clock in clocks))
    if len(names) < 2:
        raise UsageError(f"bounds over clocks need two clocks of {', '.join(runs.clocks) or 'none'}; got {names}")
    two, _ = two_systems(runs, first, second, "instance")
    sign = 1 if two.systems[0] == first else -1
    sides = [_Times.of(curves(two, clock)) for clock in names]
    signs = torch.stack([side.signs() for side in sides])  # [clock, instance, level, trial, trial]
    least, most = signs.amin(0), signs.amax(0)
    levels, pairs = sides[0].levels, sides[0].pairs
    low, high = _value(least, levels, name), _value(most, levels, name)
    if sign < 0:
        low, high = -high, -low
    means = {
        clock: sign * float(_mean(_value(one, levels, name), pairs).mean())
        for clock, one in zip(names, signs, strict=True)
    }
    by_instance = _mean((low != high).double(), pairs)
    rates = tuple(
        _rates(names[a], names[b], sides[a], sides[b], name, sign, two) for a, b in combinations(range(len(names)), 2)
    )
    return ClockBounds(
        first=first,
        second=second,
        measure=name,
        clocks=tuple(names),
        means={clock: value + 0.0 for clock, value in means.items()},
        low=float(_mean(low, pairs).mean()) + 0.0,
        high=float(_mean(high, pairs).mean()) + 0.0,
        conflict=float((by_instance > 0).double().mean()),
        instances=len(two.instances),
        rates=rates,
    )


@dataclass(frozen=True)
class _Times:
    """Times to every level of both systems' runs, against each other.

    Attributes:
        levels: int32 ``[instance, level]``.
        a, b: int64 ``[instance, level, trial, 1]`` and ``[instance, level, 1, trial]``.
        bound_a, bound_b: the same for runs stopped by their limit, or None.
        pairs: bool ``[instance, trial, trial]``, runs that are there.
    """

    levels: Int[Tensor, "instance level"]
    a: Tensor
    b: Tensor
    bound_a: Tensor | None
    bound_b: Tensor | None
    pairs: Tensor

    @classmethod
    def of(cls, both: Curves) -> _Times:
        levels = union_levels(both)
        ticks = time_to_level(both, levels)
        bounds: list[Tensor | None] = [None, None]
        if both.bound is not None:
            bounds = [both.bound[:, 0, None, :, None], both.bound[:, 1, None, None, :]]
        return cls(
            levels=levels,
            a=ticks[:, 0].permute(0, 2, 1)[..., None],
            b=ticks[:, 1].permute(0, 2, 1)[..., None, :],
            bound_a=bounds[0],
            bound_b=bounds[1],
            pairs=both.present[:, 0, :, None] & both.present[:, 1, None, :],
        )

    def signs(self) -> Tensor:
        """int64 ``[instance, level, trial, trial]``: +1 where the first system's run is sooner."""
        return level_sign(self.a, self.b, self.bound_a, self.bound_b)


def _value(signs: Tensor, levels: Tensor, measure: str) -> Tensor:
    """Δ ``[instance, trial, trial]`` from the signs of every level.

    From the least signs the least Δ follows: RPP adds signs up, and LR takes the highest level whose sign is not 0. Where
    the least sign there is 0 the level may tie and leaves it to those below.
    """
    real = ((levels != LEVEL_PAD) & (levels > 0))[..., None, None]
    chosen = torch.where(real, signs, 0)
    if measure == "rpp":
        capped = torch.where(levels == LEVEL_PAD, 0, levels).cummax(-1).values
        steps = torch.diff(capped, dim=-1, prepend=torch.zeros_like(capped[:, :1])).double() / MILLION
        return (steps[..., None, None] * chosen).sum(1)
    result = torch.zeros((signs.shape[0], *signs.shape[2:]), dtype=torch.float64)
    for level in range(signs.shape[1]):  # ascending: a higher level overwrites
        result = torch.where(chosen[:, level] != 0, chosen[:, level].double(), result)
    return result


def _mean(values: Tensor, pairs: Tensor) -> Tensor:
    """Mean over trial pairs of each instance."""
    return torch.where(pairs, values, 0.0).sum((-2, -1)) / pairs.sum((-2, -1))


def _rates(
    first: str, second: str, one: _Times, two: _Times, measure: str, sign: int, runs: Trajectories
) -> ExchangeRates:
    """Where the mean on first + rate · second turns its sign.

    On every instance the preference changes only at rates at which two times are equal; between them it is constant.
    """
    changes: list[NDArray[np.float64]] = []
    start = 0.0
    scale = runs.resolution[first] / runs.resolution[second]
    count = len(one.levels)
    for row in range(count):
        points = _meetings(one, two, row)
        edges = np.concatenate([[0.0], points, [2 * points[-1] if len(points) else 1.0]])
        middles = (edges[1:] + edges[:-1]) / 2
        values = np.array([_at_rate(one, two, row, float(rate), measure) for rate in middles])
        start += values[0]
        changes.append(np.stack([points, np.diff(values)], axis=1))
    events = np.concatenate(changes) if changes else np.zeros((0, 2))
    events = events[np.argsort(events[:, 0], kind="stable")]
    at, inverse = np.unique(events[:, 0], return_inverse=True)
    steps = np.bincount(inverse, weights=events[:, 1], minlength=len(at)) if len(at) else np.zeros(0)
    means = sign * np.concatenate([[start], start + np.cumsum(steps)]) / max(count, 1)
    means = np.where(np.abs(means) < 1e-12, 0.0, means)
    turns = np.flatnonzero(np.sign(means[1:]) != np.sign(means[:-1]))
    kept = np.concatenate([[0], turns + 1])
    return ExchangeRates(first, second, tuple((at[turns] * scale).tolist()), tuple(means[kept].tolist()))


def _meetings(one: _Times, two: _Times, row: int) -> NDArray[np.float64]:
    """Rates above 0 at which times of the two systems, or a time and a limit, meet on one instance; ascending."""
    found = []
    meetings = (
        (one.a, one.b, two.a, two.b),
        (one.a, one.bound_b, two.a, two.bound_b),
        (one.bound_a, one.b, two.bound_a, two.b),
    )
    for times in meetings:
        raw = [each[row] for each in times if each is not None]
        if len(raw) < len(times):
            continue
        a1, b1, a2, b2 = (each.double() for each in raw)
        finite = torch.ones(1, dtype=torch.bool)
        for each in raw:
            finite = finite & (each < NEVER - 1) & (each != UNKNOWN)
        d1, d2 = a1 - b1, a2 - b2
        crosses = finite & (d1 * d2 < 0)
        found.append((-d1 / torch.where(d2 == 0, 1.0, d2))[crosses])
    rates = torch.cat(found).numpy() if found else np.zeros(0)
    return np.unique(rates)


def _at_rate(one: _Times, two: _Times, row: int, rate: float, measure: str) -> float:
    """Δ of one instance on the clock first + rate · second, in ticks."""

    def together(x: Tensor, y: Tensor) -> Tensor:
        x, y = x[row : row + 1], y[row : row + 1]
        total = x.double() + rate * y.double()
        total = torch.where((x == NEVER) | (y == NEVER), torch.inf, total)
        return torch.where((x == UNKNOWN) | (y == UNKNOWN), torch.nan, total)

    def limits(at: Tensor, x: Tensor | None, y: Tensor | None) -> tuple[Tensor, Tensor]:
        """The earliest and the latest time at which the level can have been reached."""
        earliest, latest = (
            torch.nan_to_num(at, nan=-1.0, posinf=torch.inf),
            torch.nan_to_num(at, nan=1e300, posinf=torch.inf),
        )
        if x is not None and y is not None:
            unknown = (x[row : row + 1] == 0) | (y[row : row + 1] == 0)
            earliest = torch.where(torch.isinf(at), torch.where(unknown, 0.0, together(x, y)), earliest)
        return earliest, latest

    soonest_a, latest_a = limits(together(one.a, two.a), one.bound_a, two.bound_a)
    soonest_b, latest_b = limits(together(one.b, two.b), one.bound_b, two.bound_b)
    signs = (latest_a < soonest_b).long() - (latest_b < soonest_a).long()
    value = _value(signs, one.levels[row : row + 1], measure)
    return float(_mean(value, one.pairs[row : row + 1])[0])
