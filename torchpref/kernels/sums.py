"""What every kernel returns: integer sums over trial pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True)
class PairSums:
    """Sums over the present trial pairs of each (instance, pair of systems); int64 ``[instance, pair]`` each.

    Attributes:
        lr: sum of LR.
        rpp, ipp: sums of RPP and IPP in millionths, where |Δ| ≤ 10 millionths of a trial pair was set to 0 first.
        lr_ties, rpp_ties, ipp_ties: how many trial pairs are tied.
        lr_solved: the part of ``lr`` from trial pairs of which exactly one run succeeds.
        lr_sooner: the part from trial pairs of which both runs succeed. What is left is from those where neither does.
    """

    lr: Int[Tensor, "instance pair"]
    rpp: Int[Tensor, "instance pair"]
    ipp: Int[Tensor, "instance pair"]
    lr_ties: Int[Tensor, "instance pair"]
    rpp_ties: Int[Tensor, "instance pair"]
    ipp_ties: Int[Tensor, "instance pair"]
    lr_solved: Int[Tensor, "instance pair"]
    lr_sooner: Int[Tensor, "instance pair"]

    @classmethod
    def zeros(cls, instances: int, pairs: int, device: torch.device | str) -> PairSums:
        """Sums to be filled."""
        return cls(*(torch.zeros((instances, pairs), dtype=torch.int64, device=device) for _ in fields(cls)))

    @classmethod
    def cat(cls, parts: Sequence[PairSums], dim: int) -> PairSums:
        """Parts put together along instances (0) or pairs (1)."""
        return cls(*(torch.cat([getattr(part, field.name) for part in parts], dim) for field in fields(cls)))

    def to(self, device: str | torch.device) -> PairSums:
        """The sums on another device."""
        return PairSums(*(getattr(self, field.name).to(device) for field in fields(self)))
