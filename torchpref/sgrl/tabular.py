"""Deterministic tasks as tables: the successor of every state under every action, and every state's level.

States carry the events that happened, so that a state's level never falls along a path: a run's return curve
is simply the level of the states it visits. States of level 1 are absorbing. One table may hold many
instances (:func:`concatenate`); a whole batch of rollouts then advances with one look-up per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

#: Distance of a state from which a level cannot be reached.
UNREACHABLE = 2**31 - 1


@dataclass(frozen=True)
class TabularTask:
    """A deterministic task, or several side by side, as tables.

    ``successors``  int64 ``[state, action]``: the state that an action leads to
    ``level``       float64 ``[state]``: return earned on the way to the state; 1 in absorbing states only
    ``starts``      int64 ``[instance]``: start state of each instance
    ``instances``   one name per start
    ``actions``     names of the actions, in the order of the columns of ``successors``
    ``environment_actions``  the environment's own number of each action
    ``labels``      int64 ``[state, feature]``: what the state is in the environment's terms
    ``features``    names of the columns of ``labels``
    """

    successors: IntArray
    level: FloatArray
    starts: IntArray
    instances: tuple[str, ...]
    actions: tuple[str, ...]
    environment_actions: tuple[int, ...]
    labels: IntArray = field(repr=False)
    features: tuple[str, ...]

    def __post_init__(self) -> None:
        states, actions = self.successors.shape
        if len(self.actions) != actions or len(self.environment_actions) != actions:
            raise ValueError(f"{actions} columns of successors, but {len(self.actions)} action names")
        if self.level.shape != (states,) or self.labels.shape != (states, len(self.features)):
            raise ValueError(f"{states} states, level {self.level.shape}, labels {self.labels.shape}")
        if bool((self.level[self.successors] < self.level[:, None]).any()):
            raise ValueError("the level falls along a transition: events must be latched in the state")
        solved = np.flatnonzero(self.level >= 1)
        if bool((self.successors[solved] != solved[:, None]).any()):
            raise ValueError("a state of level 1 must be absorbing")

    @cached_property
    def levels(self) -> FloatArray:
        """The positive levels of the task, ascending, float64 ``[level]``."""
        values = np.unique(self.level)
        return values[values > 0]

    @cached_property
    def distance(self) -> IntArray:
        """Fewest steps from each state to level 1, int64 ``[state]``; ``UNREACHABLE`` if there is no way."""
        return steps_to(self.successors, self.level >= 1)

    @cached_property
    def subgoal_distance(self) -> IntArray:
        """Fewest steps from each state to any state of a higher level, int64 ``[state]``; 0 at level 1."""
        result = np.zeros(len(self.level), dtype=np.int64)
        for value in np.unique(self.level[self.level < 1]):
            here = self.level == value
            result[here] = steps_to(self.successors, self.level > value)[here]
        return result

    @cached_property
    def shortest(self) -> IntArray:
        """Length of the shortest successful path of each instance, in steps, int64 ``[instance]``."""
        return self.distance[self.starts]

    @cached_property
    def planner(self) -> IntArray:
        """The shortest-path planner's action in each state, int64 ``[state]``.

        It takes an action that lies on a shortest path to success; among those one that is also nearest to
        the next subgoal; among those the first. At level 1 it is 0 and means nothing.
        """
        behind = np.maximum(self.distance[self.successors], 0)
        soonest = behind == behind.min(axis=1, keepdims=True)
        higher = self.level[self.successors] > self.level[:, None]
        subgoal = np.where(higher, 0, self.subgoal_distance[self.successors])
        subgoal = np.where(soonest, subgoal, UNREACHABLE)
        choice: IntArray = np.argmin(subgoal, axis=1)
        return choice

    def policy(self, epsilon: float) -> FloatArray:
        """The planner that acts uniformly at random with chance ``epsilon``, float64 ``[state, action]``."""
        states, actions = self.successors.shape
        result = np.full((states, actions), epsilon / actions)
        result[np.arange(states), self.planner] += 1 - epsilon
        return result

    def rollout(self, actions: IntArray, instance: IntArray | None = None) -> IntArray:
        """States visited when given actions are taken.

        ``actions`` int64 ``[run, step]`` are columns of ``successors``, ``instance`` int64 ``[run]`` says
        where each run starts (default: run r is instance r). Returns int64 ``[run, step]``: the state after
        each action.
        """
        index = np.arange(actions.shape[0]) if instance is None else instance
        state = self.starts[index]
        visited = np.empty(actions.shape, dtype=np.int64)
        for step in range(actions.shape[1]):
            state = self.successors[state, actions[:, step]]
            visited[:, step] = state
        return visited


def steps_to(successors: IntArray, target: NDArray[np.bool_]) -> IntArray:
    """Backward breadth-first search: fewest steps from each state into ``target``, int64 ``[state]``."""
    distance = np.where(target, 0, UNREACHABLE).astype(np.int64)
    steps = 0
    while True:
        steps += 1
        reached = (distance[successors] == steps - 1).any(axis=1) & (distance == UNREACHABLE)
        if not reached.any():
            return distance
        distance[reached] = steps


def concatenate(tasks: Sequence[TabularTask]) -> TabularTask:
    """One table that holds all ``tasks`` side by side; they must share actions and features."""
    first = tasks[0]
    if any(t.actions != first.actions or t.features != first.features for t in tasks):
        raise ValueError("tasks with different actions or features cannot share a table")
    offsets = np.cumsum([0] + [len(t.level) for t in tasks])
    return TabularTask(
        successors=np.concatenate([t.successors + o for t, o in zip(tasks, offsets, strict=False)]),
        level=np.concatenate([t.level for t in tasks]),
        starts=np.concatenate([t.starts + o for t, o in zip(tasks, offsets, strict=False)]),
        instances=tuple(name for t in tasks for name in t.instances),
        actions=first.actions,
        environment_actions=first.environment_actions,
        labels=np.concatenate([t.labels for t in tasks]),
        features=first.features,
    )


def noise(key: str, steps: int) -> FloatArray:
    """Uniform numbers in [0, 1) that depend on ``key`` alone, float64 ``[step, 2]``.

    They come from the raw stream of PCG64, which numpy keeps unchanged between versions.
    """
    from hashlib import blake2b

    seed = int.from_bytes(blake2b(key.encode(), digest_size=16).digest(), "little")
    raw = np.random.PCG64(seed).random_raw(2 * steps)
    uniform: FloatArray = (np.asarray(raw, dtype=np.uint64) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return uniform.reshape(steps, 2)


def random_actions(key: str, epsilon: float, n_actions: int, steps: int) -> IntArray:
    """The random part of an epsilon-policy, int64 ``[step]``: a drawn action, or -1 where it plans."""
    uniform = noise(key, steps)
    action = np.minimum((uniform[:, 1] * n_actions).astype(np.int64), n_actions - 1)
    return np.where(uniform[:, 0] < epsilon, action, -1)
