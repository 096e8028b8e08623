"""Ladders: policies in a proved order that differ in one thing; and pairs that measures may order differently.

A ladder is a recipe: which maps, which policies, how many steps. :func:`make` plays nothing before the order is shown:
on every instance the exact distribution of the time to every level is dominated, in the first order, for every pair.
On such a pair the expected differences of SR, PR, SPL with a fixed reference, RPP and every discounted return are at least
0. LR and IPP have no such guarantee, and IPP can really fail: see the pair ``"slow start"``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import DataError, UsageError
from torchpref.sgrl.order import ROUNDING
from torchpref.sgrl.stumbling import Policy, chances, play
from torchpref.sgrl.suites import tasks as suite_tasks
from torchpref.sgrl.tabular import FloatArray, TabularTask
from torchpref.sgrl.waypoints import waypoint_task

if TYPE_CHECKING:
    from torchpref.runs.trajectories import Trajectories

#: Chance of a random action per step: .10, .12, … .30.
SPEEDS = tuple(round(0.10 + 0.02 * i, 2) for i in range(11))
_PLAIN = 0.2


@dataclass(frozen=True)
class Ladder:
    """A recipe.

    Attributes:
        name, about: what it is called, and what differs.
        environment: ``"waypoints"``, or a set of :data:`torchpref.sgrl.SUITES` whose instances are taken.
        levels: levels of a task.
        horizon: steps after which a run is stopped.
        policies: best first where they are ordered.
        instances: maps with seeds 0, 1, …, or the first instances of the set.
        ordered: whether the policies are claimed to be in order.
    """

    name: str
    about: str
    environment: str
    levels: int
    horizon: int
    policies: tuple[Policy, ...]
    instances: int = 100
    ordered: bool = True

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the policies, best first where they are ordered."""
        return tuple(policy.name for policy in self.policies)


@dataclass(frozen=True, eq=False)
class Bench:
    """A ladder that was made: its tasks are there, and its order is shown.

    Attributes:
        ladder: the recipe.
        tasks: a task per instance.
        exact: float64 ``[instance, policy, level, step]``, the chance that a level was earned by a step.
    """

    ladder: Ladder
    tasks: tuple[TabularTask, ...]
    exact: FloatArray

    @property
    def dominated(self) -> NDArray[np.bool_]:
        """Instances on which every policy dominates all that follow, bool ``[instance]``."""
        return dominated(self.exact)

    def play(self, draws: int, seed: int = 0) -> NDArray[np.int32]:
        """Fresh data sets: times int32 ``[draw, instance, policy, level]``, −1 where a level was not earned."""
        ladder = self.ladder
        return np.stack([play(task, ladder.policies, ladder.horizon, draws, seed) for task in self.tasks], axis=1)

    def runs(self, times: NDArray[np.int32]) -> Trajectories:
        """Runs of one data set, or of several whose instances then stand one below the other.

        Args:
            times: int32 ``[instance, policy, level]`` or ``[draw, instance, policy, level]``.
        """
        import torch

        from torchpref.runs.trajectories import Trajectories

        several = times if times.ndim == 4 else times[None]
        draws, instances, policies, levels = several.shape
        names = [task.instances[0] for task in self.tasks]
        if draws > 1:
            names = [f"draw-{draw:04d} {name}" for draw in range(draws) for name in names]
        ticks = torch.from_numpy(several.reshape(draws * instances, policies, 1, levels).astype(np.int64))
        heights = torch.from_numpy(self.tasks[0].levels)
        shortest = torch.tensor([int(task.shortest[0]) for task in self.tasks], dtype=torch.float64)
        order = torch.tensor(np.argsort(names, kind="stable"))
        return Trajectories(
            heights.expand(ticks.shape)[order],
            (ticks >= 0).sum(-1)[order],
            times={"steps": ticks.clamp(min=0).double()[order]},
            systems=self.ladder.systems,
            instances=[names[i] for i in order.tolist()],
            benchmarks=self.ladder.name,
            reference_time=shortest.repeat(draws)[order],
        )


@cache
def make(ladder: Ladder) -> Bench:
    """Lay out a ladder's tasks and work out its exact times.

    Raises:
        DataError: the policies are claimed to be in order, and on some instance they are not.
    """
    tasks: Sequence[TabularTask]
    if ladder.environment == "waypoints":
        tasks = [waypoint_task(seed, ladder.levels) for seed in range(ladder.instances)]
    else:
        tasks = suite_tasks(ladder.environment, range(ladder.instances))
    exact = np.stack([chances(task, ladder.policies, ladder.horizon) for task in tasks])
    bench = Bench(ladder, tuple(tasks), exact)
    if ladder.ordered:
        failed = np.flatnonzero(~bench.dominated)
        if len(failed):
            where = tasks[failed[0]].instances[0]
            raise DataError(
                f"{ladder.name}: on {len(failed)} of {len(tasks)} instances, {where} the first, some policy is not ahead of "
                "one that follows it at every level and step; put the policies in another order, or take ordered=False"
            )
    return bench


def dominated(exact: FloatArray) -> NDArray[np.bool_]:
    """Whether each policy is ahead of every later one at all levels and steps, and really so somewhere.

    Args:
        exact: float64 ``[instance, policy, level, step]``.

    Returns:
        bool ``[instance]``.
    """
    result = np.ones(len(exact), dtype=bool)
    for first in range(exact.shape[1]):
        for second in range(first + 1, exact.shape[1]):
            gap = exact[:, first] - exact[:, second]
            result &= (gap.min(axis=(1, 2)) >= -ROUNDING) & (gap.max(axis=(1, 2)) > ROUNDING)
    return result


def ladder(name: str, levels: int = 5) -> Ladder:
    """One of :data:`LADDERS`, with so many waypoints.

    Raises:
        UsageError: no such ladder, or fewer than two levels.
    """
    if name not in LADDERS:
        raise UsageError(f"there is no ladder {name!r}; the ladders are {', '.join(LADDERS)}")
    if levels < 2:
        raise UsageError(f"a ladder takes at least two levels, got {levels}")
    return LADDERS[name](levels)


def _name(rung: int) -> str:
    return f"rung-{rung:02d}"


def _rungs(
    name: str, about: str, horizon: int, levels: int,
    epsilon: Callable[[int], Sequence[float]], steady: Callable[[int], Sequence[float]], recovery: float = 0.0,
    environment: str = "waypoints",
) -> Ladder:  # fmt: skip
    """Eleven policies, whose chances per level are functions of the rung 0, 1, … 10."""
    rungs = tuple(
        Policy(_name(i), tuple(round(x, 6) for x in epsilon(i)), tuple(round(x, 6) for x in steady(i)), recovery)
        for i in range(11)
    )
    return Ladder(name, about, environment, levels, horizon, rungs)


def _at(place: int, there: float, elsewhere: float, levels: int) -> list[float]:
    values = [elsewhere] * levels
    values[place] = there
    return values


def sweep(steady: float, levels: int = 5, horizon: int = 150) -> Ladder:
    """Policies that differ in speed, ε .10 to .30, and are lost with one common chance 1 − ``steady`` per level."""
    about = f"speed; lost with chance {1 - steady:g} per level"
    return _rungs(
        f"speed, q = {steady:g}", about, horizon, levels, lambda i: [SPEEDS[i]] * levels, lambda i: [steady] * levels
    )


#: What differs, by name: recipes for a number of levels. All on the maps of seeds 0 to 99.
LADDERS: dict[str, Callable[[int], Ladder]] = {
    "speed, no failures": lambda k: _rungs(
        "speed, no failures", "ε .10, .12, … .30 on all levels; H 300", 300, k,
        lambda i: [SPEEDS[i]] * k, lambda i: [1.0] * k,
    ),
    "speed, equal failures": lambda k: _rungs(
        "speed, equal failures", "ε .10, .12, … .30; lost, q = .9 on all levels; H 150", 150, k,
        lambda i: [SPEEDS[i]] * k, lambda i: [0.9] * k,
    ),
    "speed, first level only": lambda k: _rungs(
        "speed, first level only", "ε .10, .15, … .60 on the first level, .10 on the others; H 300", 300, k,
        lambda i: _at(0, 0.10 + 0.05 * i, 0.10, k), lambda i: [1.0] * k,
    ),
    "speed, last level only": lambda k: _rungs(
        "speed, last level only", "ε .10, .15, … .60 on the last level, .10 on the others; H 300", 300, k,
        lambda i: _at(-1, 0.10 + 0.05 * i, 0.10, k), lambda i: [1.0] * k,
    ),
    "reliability, all levels": lambda k: _rungs(
        "reliability, all levels", "lost, q 1, .98, … .80 on all levels; ε .20; H 150", 150, k,
        lambda i: [_PLAIN] * k, lambda i: [1 - 0.02 * i] * k,
    ),
    "reliability, first level": lambda k: _rungs(
        "reliability, first level", "lost, q 1, .95, … .50 on the first level, 1 on the others; ε .20; H 150", 150, k,
        lambda i: [_PLAIN] * k, lambda i: _at(0, 1 - 0.05 * i, 1.0, k),
    ),
    "reliability, last level": lambda k: _rungs(
        "reliability, last level", "lost, q 1, .95, … .50 on the last level, 1 on the others; ε .20; H 150", 150, k,
        lambda i: [_PLAIN] * k, lambda i: _at(-1, 1 - 0.05 * i, 1.0, k),
    ),
    "reach": lambda k: _rungs(
        "reach", "lost, q 1, .97, … .70 on all levels but the last, on which all act at random; ε .20; H 80", 80, k,
        lambda i: [_PLAIN] * k, lambda i: _at(-1, 0.0, 1 - 0.03 * i, k),
    ),
    "speed and reliability": lambda k: _rungs(
        "speed and reliability", "ε .10, .12, … .30 and lost, q 1, .985, … .85 on all levels; H 300", 300, k,
        lambda i: [SPEEDS[i]] * k, lambda i: [1 - 0.015 * i] * k,
    ),
    "detours": lambda k: _rungs(
        "detours", "ε .10, .12, … .30; detours, q = .9, ρ = .03 on all levels; H 600", 600, k,
        lambda i: [SPEEDS[i]] * k, lambda i: [0.9] * k, 0.03,
    ),
}  # fmt: skip


def _pair(name: str, about: str, horizon: int, *two: tuple[Sequence[float], Sequence[float]]) -> Ladder:
    first, second = (
        Policy(who, tuple(epsilon), tuple(steady))
        for who, (epsilon, steady) in zip(("first", "second"), two, strict=True)
    )
    return Ladder(name, about, "waypoints", 5, horizon, (first, second), ordered=False)


_SURE = [1.0] * 5

#: Pairs of policies on which measures differ, each with a reason of its own; five levels, maps of seeds 0 to 99.
PAIRS: dict[str, Ladder] = {
    one.name: one
    for one in (
        _pair(
            "gives up at the end", "ε .05, lost on the last level with chance .6, against ε .35 that never is lost", 150,
            ([0.05] * 5, [1.0, 1.0, 1.0, 1.0, 0.4]), ([0.35] * 5, _SURE),
        ),
        _pair(
            "fast first", "ε .05 .05 .25 .45 .45 against the reverse", 300,
            ([0.05, 0.05, 0.25, 0.45, 0.45], _SURE), ([0.45, 0.45, 0.25, 0.05, 0.05], _SURE),
        ),
        _pair(
            "fails late", "lost with chance .5 on the last level against on the first; ε .20", 150,
            ([0.2] * 5, [1.0, 1.0, 1.0, 1.0, 0.5]), ([0.2] * 5, [0.5, 1.0, 1.0, 1.0, 1.0]),
        ),
        _pair(
            "one slow stretch", "ε .60 on the first level and .10 then, against .25 throughout", 300,
            ([0.6, 0.1, 0.1, 0.1, 0.1], _SURE), ([0.25] * 5, _SURE),
        ),
        _pair(
            "slow start", "ε .05 on the first level and .25 then, against .80 and .15 then", 300,
            ([0.05, 0.25, 0.25, 0.25, 0.25], _SURE), ([0.8, 0.15, 0.15, 0.15, 0.15], _SURE),
        ),
    )
}  # fmt: skip


def paper_setting(environment: str) -> Ladder:
    """Detours on one of the real environments: ε .10 to .30, q = .9, ρ = .03, 200 steps.

    Args:
        environment: ``"taxi"``, ``"fourrooms"`` or ``"doorkey"``; needs the extra ``sgrl``.
    """
    levels = {"taxi": 2, "fourrooms": 1, "doorkey": 3}
    if environment not in levels:
        raise UsageError(f"the environments are {', '.join(levels)}, got {environment!r}")
    k = levels[environment]
    about = "ε .10, .12, … .30; detours, q = .9, ρ = .03 on all levels; H 200"
    return _rungs(
        f"{environment}, detours", about, 200, k, lambda i: [SPEEDS[i]] * k, lambda i: [0.9] * k, 0.03,
        f"{environment}-saturated",
    )  # fmt: skip
