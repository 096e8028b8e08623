"""Levels and the time at which each was reached.

A run on one clock is a step function; only its jumps matter. :func:`curves` reduces runs to their jumps, the one
integer format that all kernels take; :func:`time_to_return` reads the time to every level of a grid off them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.runs.trajectories import Trajectories
from torchpref.runs.units import MILLION, NEVER, UNKNOWN, ZERO_IS_UNKNOWN

#: Pads the levels of a run with few jumps; higher than every level.
LEVEL_PAD = 2**31 - 1

Grid = str | int | Sequence[float]


def uniform(count: int) -> tuple[float, ...]:
    """The grid 1/M, 2/M, … 1: an approximation for continuous returns."""
    if count < 1:
        raise UsageError(f"a uniform grid needs at least one level, got {count}")
    return tuple(k / count for k in range(1, count + 1))


def grid_levels(grid: Grid) -> tuple[int, ...] | None:
    """Levels of a grid in millionths, ascending and distinct; None for the exact grid.

    Accepts ``"exact"``, a whole number M or ``"uniform(M)"`` for a uniform grid, or levels in (0, 1].
    """
    if isinstance(grid, str):
        text = grid.strip().lower()
        if text == "exact":
            return None
        inner = text[len("uniform(") : -1] if text.startswith("uniform(") and text.endswith(")") else ""
        if not inner.isdigit():
            raise UsageError(f"unknown grid {grid!r}; use 'exact', 'uniform(20)' or a list of levels")
        grid = int(inner)
    if isinstance(grid, Integral | int) and grid is not True:
        grid = uniform(int(grid))
    levels = []
    try:
        given = [float(level) for level in grid]  # type: ignore[union-attr]
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"unknown grid {grid!r:.80}; use 'exact', a whole number such as 20, or a list of levels"
        ) from error
    for level in given:
        if not 0 < level <= 1:
            raise UsageError(f"a grid's levels lie above 0 and at most at 1, got {level!r}")
        levels.append(round(level * MILLION))
    result = tuple(sorted({level for level in levels if level > 0}))
    if not result:
        raise UsageError("the grid has no level")
    return result


@dataclass(frozen=True)
class Curves:
    """Runs on one clock as their jumps.

    Attributes:
        levels: int32 ``[instance, system, trial, jump]``, strictly ascending millionths, padded with ``LEVEL_PAD``.
        ticks: int64 of the same shape, the time of each jump; ``UNKNOWN`` where not known, padded with ``NEVER``.
        bound: int64 ``[instance, system, trial]`` or None: the earliest time at which a level that was not reached could
            still have been reached; ``NEVER`` for an ordinary run, T + 1 for one stopped by its limit at T, 0 where T is
            not known.
        present: bool ``[instance, system, trial]``.
    """

    levels: Int[Tensor, "instance system trial jump"]
    ticks: Int[Tensor, "instance system trial jump"]
    bound: Int[Tensor, "instance system trial"] | None
    present: Bool[Tensor, "instance system trial"]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Numbers of instances, systems, trials and jumps (padded)."""
        instances, systems, trials, jumps = self.levels.shape
        return instances, systems, trials, jumps

    def instances(self, chosen: slice) -> Curves:
        """Some of the instances."""
        return Curves(
            levels=self.levels[chosen],
            ticks=self.ticks[chosen],
            bound=None if self.bound is None else self.bound[chosen],
            present=self.present[chosen],
        )

    def to(self, device: str | torch.device) -> Curves:
        """The same curves on another device."""
        return Curves(
            levels=self.levels.to(device),
            ticks=self.ticks.to(device),
            bound=None if self.bound is None else self.bound.to(device),
            present=self.present.to(device),
        )

    def on_grid(self, grid: Grid) -> Curves:
        """The curves as seen on a grid: a jump at each grid level reached, at the time it was reached.

        On ``"exact"`` the curves themselves.
        """
        wanted = grid_levels(grid)
        if wanted is None:
            return self
        levels = torch.tensor(wanted, dtype=torch.int32, device=self.levels.device)
        ticks = time_to_level(self, levels.expand(self.levels.shape[0], -1))
        reached = ticks != NEVER
        padded = torch.where(reached, levels, LEVEL_PAD)
        return Curves(levels=padded, ticks=ticks, bound=self.bound, present=self.present)


@dataclass(frozen=True)
class TimeToReturn:
    """g(R) of every run at the levels of its instance.

    Attributes:
        levels: int32 ``[instance, level]``, ascending millionths, padded with ``LEVEL_PAD``.
        ticks: int64 ``[instance, system, trial, level]``: ticks of the clock, ``NEVER``, or ``UNKNOWN``; ``NEVER`` for
            missing runs and padded levels too.
        clock: the clock's name.
        resolution: size of a tick in the clock's unit.
    """

    levels: Int[Tensor, "instance level"]
    ticks: Int[Tensor, "instance system trial level"]
    clock: str
    resolution: float

    def times(self) -> Tensor:
        """float64 ``[instance, system, trial, level]`` in the clock's unit; inf where never reached, NaN where unknown."""
        values = self.ticks.double() * self.resolution
        values = torch.where(self.ticks == NEVER, torch.inf, values)
        return torch.where(self.ticks == UNKNOWN, torch.nan, values)


def curves(runs: Trajectories, clock: str | None = None) -> Curves:
    """The jumps of every run on a clock: points on one tick merged, times of 0 taken as the runs' ``zero_time`` says."""
    clock = runs.clock(clock)
    return _curves(
        runs.returns, runs.lengths, runs.present, runs.times[clock], runs.truncated, _zero_is_unknown(runs, clock)
    )


def _zero_is_unknown(runs: Trajectories, clock: str) -> bool:
    return runs.zero_time == "unknown" and clock in ZERO_IS_UNKNOWN


def _curves(
    returns: Tensor, lengths: Tensor, present: Tensor, ticks: Tensor, truncated: Tensor | None, zero_is_unknown: bool
) -> Curves:
    device = returns.device
    steps = returns.shape[-1]
    bound = None
    if truncated is not None:
        if steps:
            stop = ticks.gather(-1, (lengths - 1).clamp(min=0).unsqueeze(-1)).squeeze(-1)
            known = (lengths > 0) & (stop != UNKNOWN)
            if zero_is_unknown:
                known &= stop > 0
        else:
            stop = torch.zeros_like(lengths)
            known = torch.zeros_like(present)
        bound = torch.where(truncated, torch.where(known, stop + 1, 0), NEVER)
    if not steps:
        empty = (*returns.shape[:3], 0)
        return Curves(
            levels=torch.zeros(empty, dtype=torch.int32, device=device),
            ticks=torch.zeros(empty, dtype=torch.int64, device=device),
            bound=bound,
            present=present,
        )
    ticks = _enclosed(ticks)
    # A jump is a step that raises the return, and whose tick is left before the return rises again.
    before = torch.nn.functional.pad(returns[..., :-1], (1, 0))
    rises = returns > before
    # Of several points on one tick the highest counts: look at the next step at a known time that stands higher than
    # the steps at known times before it.
    known = ticks != UNKNOWN
    known_before = torch.nn.functional.pad(torch.where(known, returns, 0).cummax(-1).values[..., :-1], (1, 0))
    index = torch.arange(steps, device=device).expand_as(returns)
    following = torch.where(known & (returns > known_before), index, steps).flip(-1).cummin(-1).values.flip(-1)
    following = torch.nn.functional.pad(following[..., 1:], (0, 1), value=steps)
    next_tick = torch.nn.functional.pad(ticks, (0, 1), value=NEVER).gather(-1, following)
    jump = rises & (~known | (next_tick != ticks))
    count = jump.sum(-1)
    width = int(count.max()) if count.numel() else 0
    order = torch.argsort(~jump, dim=-1, stable=True)[..., :width]
    real = torch.arange(width, device=device) < count.unsqueeze(-1)
    when = ticks.gather(-1, order)
    if zero_is_unknown:
        when = torch.where(when == 0, UNKNOWN, when)
    return Curves(
        levels=torch.where(real, returns.gather(-1, order), LEVEL_PAD),
        ticks=torch.where(real, when, NEVER),
        bound=bound,
        present=present,
    )


def _enclosed(ticks: Int[Tensor, "instance system trial step"]) -> Int[Tensor, "instance system trial step"]:
    """Unknown times between two equal known ones are known after all: the clock does not go backwards."""
    known = ticks != UNKNOWN
    if bool(known.all()):
        return ticks
    before = ticks.cummax(-1).values
    after = torch.where(known, ticks, NEVER).flip(-1).cummin(-1).values.flip(-1)
    return torch.where(before == after, before, ticks)


def union_levels(curves_: Curves) -> Int[Tensor, "instance level"]:
    """Every level that any run of an instance attains, ascending, padded with ``LEVEL_PAD``."""
    instances = curves_.levels.shape[0]
    flat = curves_.levels.reshape(instances, -1)
    if not flat.numel():
        return flat.new_zeros((instances, 0))
    ordered = flat.sort(dim=-1).values
    fresh = torch.ones_like(ordered, dtype=torch.bool)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    fresh &= ordered != LEVEL_PAD
    count = fresh.sum(-1)
    width = int(count.max())
    order = torch.argsort(~fresh, dim=-1, stable=True)[:, :width]
    real = torch.arange(width, device=flat.device) < count.unsqueeze(-1)
    return torch.where(real, ordered.gather(-1, order), LEVEL_PAD)


def time_to_level(curves_: Curves, levels: Int[Tensor, "instance level"]) -> Int[Tensor, "instance system trial level"]:
    """g at the given levels of each instance: the tick of the first jump that reaches the level, ``NEVER`` if none does."""
    instances, systems, trials, jumps = curves_.shape
    wanted = levels[:, None, None, :].expand(instances, systems, trials, levels.shape[-1]).contiguous()
    if not jumps:
        return torch.full(wanted.shape, NEVER, dtype=torch.int64, device=levels.device)
    first = torch.searchsorted(curves_.levels.contiguous(), wanted)
    padded = torch.nn.functional.pad(curves_.ticks, (0, 1), value=NEVER)
    return torch.where(wanted == LEVEL_PAD, NEVER, padded.gather(-1, first))


def time_to_return(runs: Trajectories, grid: Grid = "exact", clock: str | None = None) -> TimeToReturn:
    """g(R) = min{t : f(t) ≥ R} of every run.

    Args:
        runs: the runs.
        grid: ``"exact"``: every level that a run of the instance attains; or a uniform or explicit grid, see
            :func:`grid_levels`.
        clock: the clock; by the rule of :meth:`Trajectories.clock` where None.
    """
    clock = runs.clock(clock)
    jumps = curves(runs, clock)
    wanted = grid_levels(grid)
    if wanted is None:
        levels = union_levels(jumps)
    else:
        levels = torch.tensor(wanted, dtype=torch.int32, device=runs.device).expand(len(runs.instances), -1)
    return TimeToReturn(
        levels=levels, ticks=time_to_level(jumps, levels), clock=clock, resolution=runs.resolution[clock]
    )
