"""Whole groups: those without a signal, those that succeed, and those whose rollouts arrive one by one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from torchpref.errors import DataError, UsageError
from torchpref.rl.ragged import value_of
from torchpref.rl.rollouts import check_inputs, numbers, rollouts
from torchpref.rl.traces import Trace


def tied_groups(
    rewards: Float[Tensor, "batch group ..."], valid: Bool[Tensor, "batch group"] | None = None
) -> Bool[Tensor, " batch"]:
    """Groups without a signal: all valid rollouts have the same reward, so that every advantage is 0.

    Exact, without a threshold: preferences are sums of whole numbers, and rollouts that are tied get the same number to the
    last bit. With rewards ``[batch, group, step]``, as ``credit="to-go"`` gives them, groups in which every step has 0. A
    group with fewer than two valid rollouts is tied; a rollout whose reward is NaN is left out.
    """
    rewards = numbers(rewards, "rewards")
    if rewards.dim() not in (2, 3):
        raise DataError(f"rewards must be [batch, group] or [batch, group, step], got shape {list(rewards.shape)}")
    here = torch.ones(rewards.shape[:2], dtype=torch.bool, device=rewards.device)
    if valid is not None:
        here = numbers(valid, "valid").to(rewards.device).bool()
        if here.shape != rewards.shape[:2]:
            raise DataError(f"valid has shape {list(here.shape)}, rewards ask for {list(rewards.shape[:2])}")
    if rewards.dim() == 3:
        lost = rewards.isnan().any(-1)
        return ~((rewards != 0).any(-1) & here & ~lost).any(-1)
    here = here & ~rewards.isnan()
    if not rewards.shape[-1]:
        return torch.ones(len(rewards), dtype=torch.bool, device=rewards.device)
    low = torch.where(here, rewards, torch.inf).amin(-1)
    high = torch.where(here, rewards, -torch.inf).amax(-1)
    return low >= high


def solved_groups(
    returns: Float[Tensor, "batch group step"],
    lengths: Int[Tensor, "batch group"] | None = None,
    valid: Bool[Tensor, "batch group"] | None = None,
    *,
    how: Literal["any", "all"] = "any",
) -> Bool[Tensor, " batch"]:
    """Groups in which any rollout, or all, reached full return; False where no rollout counts.

    An anchored reward ranks failures among themselves: a group in which all fail has a signal, and trains on who failed
    later or further. ``solved_groups(...)`` leaves such groups out; ``~solved_groups(..., how="all")`` those that success
    alone would call too easy. Arguments as in :func:`torchpref.rl.preference_rewards`.
    """
    if how not in ("any", "all"):
        raise UsageError(f"how must be 'any' or 'all', got {how!r}")
    runs = rollouts(check_inputs(numbers(returns, "returns"), lengths, None, None, None, None, valid))
    won = runs.solved & runs.valid
    if how == "any":
        return won.any(-1)
    return runs.valid.any(-1) & (won | ~runs.valid).all(-1)


@dataclass
class GroupsInPieces:
    """Rollouts that arrive one by one, in any order, handed out group by group once a group is whole.

    For trainers whose rollouts end at different times: a rollout is compared with its whole group, never with the part that
    happened to be there.

    Args:
        size: rollouts per group.
    """

    size: int
    _waiting: dict[Hashable, list[tuple[Trace | None, Any]]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.size < 2:
            raise UsageError(f"a group needs at least two rollouts to compare, got size={self.size}")

    @property
    def waiting(self) -> dict[Hashable, int]:
        """How many rollouts of each group are there that wait for others."""
        return {group: len(pieces) for group, pieces in self._waiting.items()}

    def add(self, group: Hashable, trace: Any, item: Any = None) -> tuple[list[Trace | None], list[Any]] | None:
        """Add a rollout; the traces and items of its group, in the order of arrival, if that makes it whole, else None.

        ``trace`` is anything that :meth:`Trace.of` takes, None for a rollout that cannot be scored, ``item`` whatever is to
        come back with it. After a group was handed out its id may be used again.
        """
        group = value_of(group)
        pieces = self._waiting.setdefault(group, [])
        pieces.append((Trace.of(trace), item))
        if len(pieces) < self.size:
            return None
        return self._hand_out(group)

    def give_up(self, group: Hashable) -> tuple[list[Trace | None], list[Any]]:
        """A group whose missing rollouts will not come: what is there, filled up with None, which counts for nobody."""
        pieces = self._waiting.get(group)
        if pieces is None:
            raise DataError(f"no rollout of group {group!r} waits; waiting are {list(self._waiting)[:8]}")
        pieces += [(None, None)] * (self.size - len(pieces))
        return self._hand_out(group)

    def _hand_out(self, group: Hashable) -> tuple[list[Trace | None], list[Any]]:
        pieces = self._waiting.pop(group)
        return [trace for trace, _ in pieces], [item for _, item in pieces]


__all__ = ["GroupsInPieces", "solved_groups", "tied_groups"]
