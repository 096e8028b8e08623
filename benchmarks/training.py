"""Does it train? Group-relative policy gradient on Taxi, DoorKey and FourRooms under seven rewards.

A softmax policy, one table entry per state and action, starts from the shortest-path planner that acts at random in
``START`` of all steps, and learns from groups of rollouts of one start at horizon 100. Every seed is an instance of its
own. All rewards and seeds of a task advance side by side in one batch, so that the whole table takes minutes on a core.

    python benchmarks/training.py [--seeds 10] [--updates 1000] [--write benchmarks/TRAINING.md]

Needs the extra ``sgrl``.
"""

from __future__ import annotations

import argparse
import math
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

import torchpref as tp
from torchpref.rl import group_advantages, preference_rewards
from torchpref.sgrl.rollouts import Rollouts, Tables, rollouts
from torchpref.sgrl.suites import environment
from torchpref.sgrl.tabular import TabularTask, concatenate

TASKS = ("taxi", "doorkey", "fourrooms")
HORIZON = 100
GROUP = 16
START = 0.8
#: Step sizes tried for every reward; the table shows the one at which that reward ends with the shortest paths.
STEP_SIZES = (0.3, 1.0, 3.0)
SCALES = ("none", "group")
DISCOUNT = 0.95


@dataclass(frozen=True)
class Reward:
    """A reward of the table: its name, and rewards ``[batch, group]`` of rollouts with that shape."""

    name: str
    of: Callable[[Rollouts], Tensor]


def _preference(measure: str, anchor: str | None) -> Callable[[Rollouts], Tensor]:
    return lambda runs: preference_rewards(runs.returns, runs.lengths, measure, anchor=anchor)


REWARDS = (
    Reward("success", lambda runs: runs.solved.float()),
    Reward("subgoal fraction", lambda runs: runs.returns[..., -1]),
    Reward(f"success × {DISCOUNT}^t", lambda runs: runs.solved * DISCOUNT ** runs.lengths.float()),
    Reward("RPP", _preference("rpp", None)),
    Reward("LR", _preference("lr", None)),
    Reward("IPP", _preference("ipp", None)),
    Reward("success + 0.49·RPP", _preference("rpp", "success")),
)


@dataclass(frozen=True)
class Arm:
    """One way to train: a reward, whether advantages are divided by the group's deviation, and a step size."""

    reward: Reward
    scale: str
    step_size: float


def arms() -> list[Arm]:
    return [Arm(reward, scale, size) for reward in REWARDS for scale in SCALES for size in STEP_SIZES]


def instances(name: str, seeds: int) -> TabularTask:
    """One instance per training seed, side by side in one table."""
    kind = environment(name)
    env = kind.make(1_000)
    return concatenate([kind.task(seed, env) for seed in kind.seeds(seeds)])


def repeat(tables: Tables, times: int) -> Tables:
    """Copies of the same states, each with policies of its own."""
    states = len(tables.level)
    offset = torch.arange(times) * states
    return Tables(
        successors=(tables.successors + offset[:, None, None]).flatten(0, 1),
        level=tables.level.repeat(times),
        starts=(tables.starts + offset[:, None]).flatten(),
        shortest=tables.shortest.repeat(times),
    )


def policy_gradient(logits: Tensor, runs: Rollouts, advantages: Tensor) -> Tensor:
    """Gradient of the mean over the group of A · log-probability of its actions, by ``logits`` ``[state, action]``."""
    actions = logits.shape[1]
    weight = (advantages[..., None] * runs.mask / advantages.shape[-1]).flatten()
    taken = (runs.states * actions + runs.actions).flatten()
    gradient = torch.zeros(logits.numel(), dtype=logits.dtype).index_add_(0, taken, weight).view_as(logits)
    return gradient - logits.softmax(1) * gradient.sum(1, keepdim=True)


@dataclass(frozen=True)
class Outcome:
    """Success rate and path length over the shortest, ``[arm, seed]``, by update ``[update, arm, seed]`` too."""

    success: Tensor
    length: Tensor


def train(task: TabularTask, chosen: list[Arm], updates: int, generator: torch.Generator) -> Outcome:
    """Train every arm on every instance; the figures of the rollouts of each update."""
    seeds = len(task.instances)
    tables = repeat(Tables.of(task), len(chosen))
    logits = torch.as_tensor(task.policy(START)).float().log().repeat(len(chosen), 1)
    states = len(task.level)
    size = torch.tensor([arm.step_size for arm in chosen]).repeat_interleave(states)[:, None]
    start = torch.arange(len(chosen) * seeds)[:, None].expand(-1, GROUP)
    success = torch.empty(updates, len(chosen), seeds)
    length = torch.empty_like(success)
    for update in range(updates):
        runs = rollouts(tables, logits, start, HORIZON, generator)
        advantages = torch.empty(len(chosen), seeds, GROUP)
        for reward in REWARDS:
            mine = [i for i, arm in enumerate(chosen) if arm.reward is reward]
            if not mine:
                continue
            rows = torch.cat([torch.arange(i * seeds, (i + 1) * seeds) for i in mine])
            part = Rollouts(*(getattr(runs, name)[rows] for name in ("states", "actions", "returns", "lengths", "solved")))
            values = reward.of(part).view(len(mine), seeds, GROUP)
            for place, i in enumerate(mine):
                advantages[i] = group_advantages(values[place], scale=chosen[i].scale)
        logits += size * policy_gradient(logits, runs, advantages.flatten(0, 1))
        won = runs.solved.view(len(chosen), seeds, GROUP)
        success[update] = won.float().mean(-1)
        steps = (runs.lengths.view_as(won) * won).sum(-1) / won.sum(-1)
        length[update] = steps / torch.as_tensor(task.shortest)
    return Outcome(success, length)
