"""Rollouts of stochastic policies in tabular tasks, as torch tensors.

This is the simulator for training: a whole batch advances with one look-up per step, on any device, and gives
the return curves that rewards need.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from torchpref.sgrl.tabular import TabularTask


@dataclass(frozen=True)
class Tables:
    """A :class:`~torchpref.sgrl.tabular.TabularTask` as tensors on one device."""

    successors: Int64[Tensor, "state action"]
    level: Float[Tensor, " state"]
    starts: Int64[Tensor, " instance"]
    shortest: Int64[Tensor, " instance"]

    @classmethod
    def of(cls, task: TabularTask, device: torch.device | str | None = None) -> Tables:
        """The tables of a task, on a device."""
        return cls(
            successors=torch.as_tensor(task.successors, device=device),
            level=torch.as_tensor(task.level, device=device, dtype=torch.float32),
            starts=torch.as_tensor(task.starts, device=device),
            shortest=torch.as_tensor(task.shortest, device=device),
        )


@dataclass(frozen=True)
class Rollouts:
    """What a batch of rollouts did. Step s of the last axis is time s + 1: the first action is at time 1.

    ``states``   int64: state in which each action was taken
    ``actions``  int64: the action
    ``returns``  float32: level earned after the action
    ``lengths``  int64, without the step axis: steps until level 1, or the horizon
    ``solved``   bool, without the step axis: whether level 1 was earned
    """

    states: Int64[Tensor, "*batch step"]
    actions: Int64[Tensor, "*batch step"]
    returns: Float[Tensor, "*batch step"]
    lengths: Int64[Tensor, "*batch"]
    solved: Tensor

    @property
    def mask(self) -> Tensor:
        """bool ``[*batch, step]``: steps that were taken; what follows level 1 is not."""
        return torch.arange(self.states.shape[-1], device=self.states.device) < self.lengths[..., None]


def rollouts(
    tables: Tables,
    logits: Float[Tensor, "state action"],
    instance: Int64[Tensor, "*batch"],
    horizon: int,
    generator: torch.Generator | None = None,
) -> Rollouts:
    """Let the softmax policy with these ``logits`` act for ``horizon`` steps from the start of each instance.

    ``instance`` says which start each rollout of the batch has, for example ``[group, rollout]``. No gradient
    flows through the sampling; the log-probabilities of ``states`` and ``actions`` give the policy gradient.
    """
    with torch.no_grad():
        cumulative = logits.softmax(dim=1).cumsum(dim=1)[:, :-1].contiguous()
        state = tables.starts[instance]
        shape = (horizon, *instance.shape)
        uniform = torch.rand(shape, generator=generator, device=logits.device, dtype=logits.dtype)
        states = torch.empty(shape, dtype=torch.int64, device=logits.device)
        actions, after = torch.empty_like(states), torch.empty_like(states)
        for step in range(horizon):
            states[step] = state
            actions[step] = (uniform[step][..., None] >= cumulative[state]).sum(dim=-1)
            state = tables.successors[state, actions[step]]
            after[step] = state
        returns = tables.level[after].movedim(0, -1)
        done = returns >= 1
        solved = done[..., -1]
        lengths = torch.where(solved, horizon - done.sum(dim=-1) + 1, horizon)
    return Rollouts(states.movedim(0, -1), actions.movedim(0, -1), returns, lengths, solved)
