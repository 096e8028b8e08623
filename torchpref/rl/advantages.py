"""From rewards to advantages: what a rollout has over the mean of its group."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from torchpref.errors import DataError, UsageError
from torchpref.rl.rollouts import numbers

Scale = Literal["none", "group"]


def group_advantages(
    rewards: Float[Tensor, "batch group"],
    valid: Bool[Tensor, "batch group"] | None = None,
    *,
    scale: Scale = "none",
    epsilon: float | None = None,
) -> Float[Tensor, "batch group"]:
    """Rewards less the mean of their group; 0 for rollouts that are not valid.

    ``scale="group"`` divides by the group's standard deviation (n - 1) plus ``epsilon`` (1e-6 by default), as GRPO does by
    default: a group that differs in one step of one rollout gets advantages of full size.

    Equal rewards give exactly 0, whatever their value. ``valid`` is what :func:`preference_rewards` takes. A rollout whose
    reward is NaN has the advantage NaN, and is left out for the others.
    """
    if scale not in ("none", "group"):
        raise UsageError(f"scale must be 'none' or 'group', got {scale!r}")
    if epsilon is not None and scale != "group":
        raise UsageError("epsilon is added to the group's deviation; it needs scale='group'")
    rewards = numbers(rewards, "rewards")
    if not rewards.is_floating_point():
        rewards = rewards.float()
    here = torch.ones_like(rewards, dtype=torch.bool)
    if valid is not None:
        here = numbers(valid, "valid").to(rewards.device).bool()
        if here.shape != rewards.shape:
            raise DataError(f"valid has shape {list(here.shape)}, rewards have {list(rewards.shape)}")
    if not rewards.shape[-1]:
        return torch.zeros_like(rewards)
    lost = here & rewards.isnan()
    here = here & ~lost
    count = here.sum(-1, keepdim=True).clamp(min=1)
    top = torch.where(here, rewards, -torch.inf).amax(-1, keepdim=True)
    offset = torch.where(here, rewards - top, 0)
    centred = torch.where(here, offset - offset.sum(-1, keepdim=True) / count, 0)
    if scale == "group":
        deviation = (centred.square().sum(-1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
        centred = centred / (deviation + (1e-6 if epsilon is None else epsilon))
    return torch.where(lost, torch.nan, centred)


__all__ = ["Scale", "group_advantages"]
