"""The real environments: what the suite needs to know of each, and how an episode is played.

Success is the event (passenger delivered, goal reached), never the reward, which MiniGrid discounts by time,
nor ``done``, which a time limit sets too. Needs the extra ``sgrl``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchpref.sgrl.tabular import IntArray, TabularTask


@dataclass(frozen=True)
class Environment:
    """One environment of the suite.

    ``benchmark`` is its registered name, ``subgoals`` name its levels in order, ``actions`` and
    ``environment_actions`` are the actions a random policy draws from (name, the environment's number),
    ``features`` name what identifies a state. ``make(horizon)`` gives the environment with that time limit,
    ``label(env, reached)`` its present state, ``reached(env, terminated, reward)`` how many subgoals hold
    after a step, ``layout(env)`` what tells two instances apart after a reset, and ``tables(env)``
    successors, labels and subgoals reached of every state that matters from there, the first being the
    present one.
    """

    name: str
    benchmark: str
    subgoals: tuple[str, ...]
    actions: tuple[str, ...]
    environment_actions: tuple[int, ...]
    features: tuple[str, ...]
    make: Callable[[int], Any]
    label: Callable[[Any, int], tuple[int, ...]]
    reached: Callable[[Any, bool, float], int]
    layout: Callable[[Any], object]
    tables: Callable[[Any], tuple[IntArray, IntArray, IntArray]]

    def task(self, seed: int, env: Any = None) -> TabularTask:
        """The instance that the environment deals under ``seed``, as tables read off the environment."""
        env = self.make(1_000) if env is None else env
        env.reset(seed=seed)
        successors, labels, reached = self.tables(env)
        return TabularTask(
            successors=successors,
            level=reached / len(self.subgoals),
            starts=np.zeros(1, dtype=np.int64),
            instances=(instance_name(seed),),
            actions=self.actions,
            environment_actions=self.environment_actions,
            labels=labels,
            features=self.features,
        )

    def seeds(self, count: int) -> tuple[int, ...]:
        """The first ``count`` seeds, from 0 on, that deal different instances."""
        env = self.make(1_000)
        seen: set[object] = set()
        chosen: list[int] = []
        seed = 0
        while len(chosen) < count:
            env.reset(seed=seed)
            layout = self.layout(env)
            if layout not in seen:
                seen.add(layout)
                chosen.append(seed)
            seed += 1
        return tuple(chosen)


@dataclass(frozen=True)
class Episode:
    """What one run reached, and when: a point per subgoal, and one for the last step if it was none."""

    returns: tuple[float, ...]
    steps: tuple[int, ...]
    truncated: bool


class Player:
    """Plays episodes of one instance: a shortest-path planner that is told where to act at random."""

    def __init__(self, environment: Environment, task: TabularTask, seed: int, env: Any) -> None:
        """``env`` comes from ``environment.make`` and may serve many players, one after another."""
        self.environment, self.seed, self.env = environment, seed, env
        self.planned = {tuple(row): int(a) for row, a in zip(task.labels.tolist(), task.planner, strict=True)}

    def play(self, random_actions: IntArray) -> Episode:
        """One episode of at most ``len(random_actions)`` steps; -1 means that the planner chooses.

        The first action is step 1. Subgoals are latched. The episode ends with the last subgoal or with the
        horizon, and is truncated exactly if it ended without the last subgoal.
        """
        env, kind = self.env, self.environment
        env.reset(seed=self.seed)
        total, reached = len(kind.subgoals), 0
        returns: list[float] = []
        steps: list[int] = []
        for step, drawn in enumerate(random_actions.tolist(), start=1):
            action = drawn if drawn >= 0 else self.planned[kind.label(env, reached)]
            _, reward, terminated, _, _ = env.step(kind.environment_actions[action])
            now = kind.reached(env, terminated, reward)
            if now > reached:
                reached = now
                returns.append(now / total)
                steps.append(step)
                if now == total:
                    break
        if reached < total and (not steps or steps[-1] < len(random_actions)):
            returns.append(reached / total)
            steps.append(len(random_actions))
        return Episode(tuple(returns), tuple(steps), truncated=reached < total)


def instance_name(seed: int) -> str:
    """Name of the instance that an environment deals under a seed."""
    return f"seed-{seed:04d}"
