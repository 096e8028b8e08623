"""Planners that stumble, level by level: simulated, and the exact distribution of the time to every level.

A policy plans and acts at random with chance ε per step. On the way to each level it may stumble: with chance 1 − q, drawn
when that way begins, all its steps are random; after each of them it recovers with chance ρ, and it recovers when the level
is earned. With ρ = 0 it is *lost* until the level is earned by accident, with ρ > 0 it makes a *detour*. ε, q and ρ may
differ from level to level. A random action is any action with equal chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import UsageError
from torchpref.sgrl.tabular import FloatArray, IntArray, TabularTask

#: Time of a level that was not earned.
NEVER = -1


@dataclass(frozen=True)
class Policy:
    """A planner that stumbles.

    Attributes:
        name: the system's name.
        epsilon: per level, the chance of a random action per step while it plans.
        steady: per level, q: the chance not to stumble on the way to it.
        recovery: ρ, the chance to recover after each random step; 0 where it stays lost until the level is earned.
    """

    name: str
    epsilon: tuple[float, ...]
    steady: tuple[float, ...]
    recovery: float = 0.0

    def __post_init__(self) -> None:
        if len(self.epsilon) != len(self.steady):
            raise UsageError(f"{self.name}: {len(self.epsilon)} levels have an epsilon, {len(self.steady)} a chance")
        for chance in (*self.epsilon, *self.steady, self.recovery):
            if not 0 <= chance <= 1:
                raise UsageError(f"{self.name}: chances lie between 0 and 1, got {chance}")


def chances(task: TabularTask, policies: Sequence[Policy], horizon: int, instance: int = 0) -> FloatArray:
    """Chance that each level was earned by each step, by propagating the distribution over states.

    Returns float64 ``[policy, level, step]`` for steps 0, 1, … horizon.

    Raises:
        UsageError: a policy of another number of levels.
    """
    from torchpref.sgrl.compiled import propagate

    epsilon, steady, recovery = _arrays(task, policies)
    at = np.zeros((len(policies), len(task.levels), horizon + 1))
    propagate(
        task.successors, task.planner, _earned(task), task.starts[instance], epsilon, steady, recovery, horizon, at
    )
    result: FloatArray = at.cumsum(axis=2)
    return result


def play(
    task: TabularTask, policies: Sequence[Policy], horizon: int, runs: int, seed: int, instance: int = 0
) -> NDArray[np.int32]:
    """Times at which each of ``runs`` runs earned each level, int32 ``[run, policy, level]``; NEVER where it did not.

    A run depends on the seed, the instance's name, its number and the position of the policy alone.

    Raises:
        UsageError: a policy of another number of levels.
    """
    from hashlib import blake2b

    from torchpref.sgrl.compiled import roll

    epsilon, steady, recovery = _arrays(task, policies)
    key = blake2b(f"{seed}/{task.instances[instance]}".encode(), digest_size=8).digest()
    times = np.full((runs, len(policies), len(task.levels)), NEVER, dtype=np.int32)
    roll(
        task.successors, task.planner, _earned(task), task.starts[instance], epsilon, steady, recovery, horizon,
        np.uint64(int.from_bytes(key, "little")), times,
    )  # fmt: skip
    return times


def _earned(task: TabularTask) -> IntArray:
    """Levels earned in each state."""
    earned: IntArray = np.searchsorted(task.levels, task.level, side="right").astype(np.int64)
    return earned


def _arrays(task: TabularTask, policies: Sequence[Policy]) -> tuple[Any, Any, Any]:
    for policy in policies:
        if len(policy.epsilon) != len(task.levels):
            raise UsageError(f"{policy.name} is made for {len(policy.epsilon)} levels, the task has {len(task.levels)}")
    return (
        np.array([policy.epsilon for policy in policies], dtype=np.float64),
        np.array([policy.steady for policy in policies], dtype=np.float64),
        np.array([policy.recovery for policy in policies], dtype=np.float64),
    )
