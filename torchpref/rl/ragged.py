"""Groups of different sizes: rollouts in any order, told apart by the id of their group."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from torchpref.errors import DataError
from torchpref.rl.advantages import Scale, group_advantages
from torchpref.rl.rewards import Times, preference_rewards
from torchpref.rl.rollouts import numbers

GroupIds = Int[Tensor, " rollout"] | Sequence[Hashable]


def ragged_rewards(
    returns: Float[Tensor, "rollout step"],
    lengths: Int[Tensor, " rollout"] | None,
    group: GroupIds,
    measure: str = "rpp",
    *,
    times: Times = None,
    truncated: Tensor | None = None,
    valid: Tensor | None = None,
    shape: tuple[int, int] | None = None,
    **options: Any,
) -> Float[Tensor, "rollout ..."]:
    """Rewards of rollouts in groups of any size, told apart by an id; ``[rollout, step]`` with ``credit="to-go"``.

    Args:
        returns, lengths, measure, times, truncated, valid: as in :func:`preference_rewards`, without the batch axis.
        group: the group of each rollout, whole numbers or a list of anything that can be hashed; in any order.
        shape: (groups, rollouts of the largest group) or upper bounds of both, if known: spares waiting for the device.
        options: those of :func:`preference_rewards`.
    """
    returns = numbers(returns, "returns")
    if returns.dim() != 2:
        raise DataError(f"returns must be [rollout, step], got shape {list(returns.shape)}")
    layout = _Layout.of(group, len(returns), returns.device, shape)
    if lengths is None:
        lengths = torch.full((len(returns),), returns.shape[1], device=returns.device)

    def spread(values: Tensor | None) -> Tensor | None:
        return None if values is None else layout.spread(numbers(values, "what is given per rollout"))

    rewards = preference_rewards(
        layout.spread(returns),
        layout.spread(numbers(lengths, "lengths")),
        measure,
        times={name: spread(value) for name, value in times.items()} if isinstance(times, Mapping) else spread(times),
        truncated=spread(truncated),
        valid=layout.valid(valid),
        **options,
    )
    return layout.collect(rewards)


def ragged_advantages(
    rewards: Float[Tensor, " rollout"],
    group: GroupIds,
    valid: Bool[Tensor, " rollout"] | None = None,
    *,
    scale: Scale = "none",
    shape: tuple[int, int] | None = None,
) -> Float[Tensor, " rollout"]:
    """:func:`torchpref.rl.group_advantages` for rollouts told apart by group id; arguments as there and above."""
    rewards = numbers(rewards, "rewards")
    layout = _Layout.of(group, len(rewards), rewards.device, shape)
    return layout.collect(group_advantages(layout.spread(rewards), layout.valid(valid), scale=scale))


@dataclass(frozen=True)
class _Layout:
    """Where each rollout stands in a padded ``[group, rollout of the group]``."""

    place: Int[Tensor, " rollout"]
    groups: int
    size: int

    @classmethod
    def of(cls, group: GroupIds, count: int, device: torch.device, shape: tuple[int, int] | None) -> _Layout:
        """Groups in the order of their ids, rollouts in their own order."""
        if not isinstance(group, Tensor):
            group = torch.tensor(_numbered(group), dtype=torch.long)
        group = group.to(device)
        if tuple(group.shape) != (count,):
            raise DataError(f"group ids have shape {list(group.shape)}; wanted one per rollout, [{count}]")
        if not count:
            return cls(torch.zeros(0, dtype=torch.long, device=device), 0, 0)
        order = torch.argsort(group, stable=True)
        ids = group[order]
        index = torch.arange(count, device=device)
        fresh = torch.cat([torch.ones_like(ids[:1], dtype=torch.bool), ids[1:] != ids[:-1]])
        row = fresh.long().cumsum(0) - 1
        column = index - torch.where(fresh, index, 0).cummax(0).values
        if shape is None:
            shape = (int(row[-1]) + 1, int(column.max()) + 1)
        groups, size = shape
        looking = device.type == "cpu" and not torch.compiler.is_compiling()
        if looking and not (int(row[-1]) < groups and int(column.max()) < size):
            raise DataError(
                f"shape says {groups} groups of at most {size} rollouts, but there are {int(row[-1]) + 1} groups of up to "
                f"{int(column.max()) + 1}"
            )
        return cls(torch.empty_like(index).scatter_(0, order, row * size + column), groups, size)

    def spread(self, tensor: Tensor) -> Tensor:
        """``[rollout, ...]`` to ``[group, rollout of the group, ...]``, zeros where there is no rollout."""
        full = torch.zeros((self.groups * self.size, *tensor.shape[1:]), dtype=tensor.dtype, device=self.place.device)
        full[self.place] = tensor.to(self.place.device)
        return full.view(self.groups, self.size, *tensor.shape[1:])

    def valid(self, valid: Tensor | None) -> Tensor:
        """Where there is a rollout that counts."""
        return self.spread(
            torch.ones_like(self.place, dtype=torch.bool) if valid is None else numbers(valid, "valid").bool()
        )

    def collect(self, values: Tensor) -> Tensor:
        """``[group, rollout of the group, ...]`` to ``[rollout, ...]``."""
        return values.flatten(0, 1)[self.place]


def value_of(name: Hashable) -> Hashable:
    """An id by its value: tensors of one value are equal only to themselves in a dictionary."""
    if isinstance(name, Tensor):
        if name.numel() != 1:
            raise DataError(f"an id is a tensor of shape {list(name.shape)}; wanted one value per rollout")
        return name.item()
    return name


def _numbered(group: Sequence[Hashable]) -> list[int]:
    """The number of each rollout's group, in the order in which groups appear."""
    known: dict[Hashable, int] = {}
    result = []
    for place, name in enumerate(group):
        try:
            result.append(known.setdefault(value_of(name), len(known)))
        except TypeError as error:
            raise DataError(
                f"the group id of rollout {place} is {name!r}, which cannot be told apart from others; give numbers or text"
            ) from error
    return result


__all__ = ["GroupIds", "ragged_advantages", "ragged_rewards", "value_of"]
