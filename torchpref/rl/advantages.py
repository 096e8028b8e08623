"""From rewards to advantages: what a rollout has over the mean of its group."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from torchpref.errors import UsageError

Scale = Literal["none", "group"]


def group_advantages(
    rewards: Float[Tensor, "batch group"],
    valid: Bool[Tensor, "batch group"] | None = None,
    *,
    scale: Scale = "none",
    epsilon: float = 1e-6,
) -> Float[Tensor, "batch group"]:
    """Rewards less the mean of their group; 0 for rollouts that are not valid.

    ``scale="group"`` divides by the group's standard deviation (n - 1) plus ``epsilon``, as GRPO does by default. Not
    recommended here: a group that differs in one step of one rollout gets advantages of full size.

    Equal rewards give exactly 0, whatever their value.
    """
    if scale not in ("none", "group"):
        raise UsageError(f"scale must be 'none' or 'group', got {scale!r}")
    if not rewards.shape[-1]:
        return torch.zeros_like(rewards)
    here = torch.ones_like(rewards, dtype=torch.bool) if valid is None else valid
    count = here.sum(-1, keepdim=True).clamp(min=1)
    top = torch.where(here, rewards, -torch.inf).amax(-1, keepdim=True)
    offset = torch.where(here, rewards - top, 0)
    centred = torch.where(here, offset - offset.sum(-1, keepdim=True) / count, 0)
    if scale == "none":
        return centred
    deviation = (centred.square().sum(-1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
    return centred / (deviation + epsilon)


__all__ = ["Scale", "group_advantages"]
