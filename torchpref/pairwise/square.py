"""A value per pair of systems as a square of all systems."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


def as_square(values: Float[Tensor, "*batch pair"], pairs: Int[Tensor, "pair 2"], systems: int, sign: int) -> Tensor:
    """A value per pair as ``[*batch, system, system]``, 0 on the diagonal; ``sign`` is that of the reversed pair."""
    square = torch.zeros((*values.shape[:-1], systems, systems), dtype=values.dtype, device=values.device)
    first, second = pairs[:, 0], pairs[:, 1]
    square[..., first, second] = values
    square[..., second, first] = sign * values + 0
    return square


def missing(shape: tuple[int, ...]) -> Tensor:
    """A float64 tensor of NaN."""
    return torch.full(shape, torch.nan, dtype=torch.float64)


def mean_over_rivals(square: Float[Tensor, "system system"]) -> Float[Tensor, " system"]:
    """Mean of each row without the diagonal and without NaN; NaN where nothing is left."""
    rivals = ~torch.isnan(square) & ~torch.eye(len(square), dtype=torch.bool, device=square.device)
    count = rivals.sum(1)
    return torch.where(count > 0, torch.where(rivals, square, 0.0).sum(1) / count, torch.nan)
