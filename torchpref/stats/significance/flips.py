"""Sign flips by simulation, for all pairs at once: one coin per instance, shared by all pairs.

Values are whole numbers, so that sums are exact, ties between sums are recognised, and the counts do not depend on how the
flips are cut into chunks. p = (k + 1) / (B + 1) for k of B flips at least as extreme as the data (Phipson and Smyth,
*Permutation p-values should never be zero*, 2010).

Single-step max-T (Westfall and Young, 1993) compares every pair with the largest statistic over all pairs under the same
flips, T = |Σwx| / √(Σw²x²); without the denominator pairs with few instances would have no power.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from torchpref.runs.exact_sum import power_of_two_scale
from torchpref.stats.resampling.instances import stream

#: Flips that share a random stream.
FLIP_BLOCK = 16 * 255
#: Flips summed at a time: their sums stay in the processor's cache, and a byte can count 255 of them.
_AT_ONCE = 2 * 255


def enough_flips(pairs: int, alpha: float, flips: int | None) -> int:
    """How many flips: at least 10 · pairs / α, or a smallest possible p could not survive a correction for all pairs."""
    least = max(9_999, math.ceil(10 * max(1, pairs) / alpha))
    return least if flips is None else max(int(flips), least)


def flip_signs(instances: int, block: int, seed: int, purpose: str = "flips") -> Int[np.ndarray, "flip instance"]:
    """One block of coins, 0 or 1, for every flip and instance."""
    width = -(-instances // 8)
    raw = np.frombuffer(stream(seed, purpose, block).bytes(FLIP_BLOCK * width), dtype=np.uint8)
    return np.unpackbits(raw.reshape(FLIP_BLOCK, width), axis=1, count=instances)


@dataclass(frozen=True)
class FlipCounts:
    """What the flips gave.

    Attributes:
        flips: how many there were.
        extreme: int64 ``[pair]``, flips with |sum| at least that of the data.
        largest: int64 ``[pair]``, flips whose largest T over all pairs is at least the pair's own T.
    """

    flips: int
    extreme: Int[Tensor, " pair"]
    largest: Int[Tensor, " pair"]

    @property
    def p(self) -> Float[Tensor, " pair"]:
        """p-value of each pair."""
        return (self.extreme + 1).double() / (self.flips + 1)

    @property
    def max_t_p(self) -> Float[Tensor, " pair"]:
        """Single-step max-T adjusted p-value of each pair."""
        return (self.largest + 1).double() / (self.flips + 1)


def flip_counts(values: Float[Tensor, "instance pair"], flips: int, seed: int, max_t: bool = False) -> FlipCounts:
    """Flip the signs of ``values`` (vₓΔₓ, NaN where a pair is not compared) ``flips`` times.

    Args:
        values: float64 ``[instance, pair]``.
        flips: how many flips.
        seed: whole number.
        max_t: also compare with the largest statistic over pairs.
    """
    instances, pairs = values.shape
    whole = _whole(values)
    matrix = whole.float()
    total = matrix.sum(0)
    observed = total.abs()
    norm = torch.sqrt((whole * whole).sum(0)) if max_t else torch.ones(pairs, dtype=torch.float64)
    usable = norm > 0
    scale = torch.where(usable, 1 / norm, 0.0)
    statistic = observed * scale.to(observed)
    extreme = torch.zeros(pairs, dtype=torch.int64)
    top = []
    with full_float32():
        for block, start in enumerate(range(0, flips, FLIP_BLOCK)):
            coins = torch.from_numpy(flip_signs(instances, block, seed)[: flips - start])
            for first in range(0, len(coins), _AT_ONCE):
                piece = coins[first : first + _AT_ONCE]
                sums = torch.addmm(total, piece.to(matrix), matrix, alpha=-2).abs_()
                extreme += count_columns(sums >= observed)
                if max_t and pairs:
                    top.append((sums * scale.to(sums)).amax(1))
    largest = torch.zeros(pairs, dtype=torch.int64)
    if top:
        ordered = torch.cat(top).sort().values
        largest = len(ordered) - torch.searchsorted(ordered, statistic)
    extreme = torch.where(observed > 0, extreme, flips)
    largest = torch.where(statistic > 0, largest, flips)
    return FlipCounts(flips, extreme, largest)


@contextmanager
def full_float32() -> Iterator[None]:
    """Float32 products in float32, whatever lower precision training code has allowed."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def count_columns(hits: Bool[Tensor, "row column"]) -> Int[Tensor, " column"]:
    """How often each column is True; eight columns are added in one 64-bit number, 255 rows before a byte is full."""
    rows, columns = hits.shape
    if not rows or not columns:
        return torch.zeros(columns, dtype=torch.int64)
    padded = torch.nn.functional.pad(hits, (0, -columns % 8, 0, -rows % 255))
    bytes_ = padded.view(torch.int64).reshape(-1, 255, padded.shape[1] // 8).sum(1).view(torch.uint8)
    return bytes_.sum(0, dtype=torch.int64)[:columns]


def _whole(values: Float[Tensor, "instance pair"]) -> Float[Tensor, "instance pair"]:
    """Whole numbers in proportion to the values, of which no sum exceeds 2^23: float32 adds them exactly, in any order.

    Where the values are multiples of one step and the numbers small enough nothing is lost. Otherwise each value is rounded,
    to about 1/40,000 with 500 instances. Rounding is an odd function, so the test of the rounded values is as exact as that
    of the values.
    """
    from torchpref.stats.significance.exact import lattice_steps

    clean = torch.nan_to_num(values.double(), nan=0.0)
    steps = lattice_steps(clean.cpu().numpy())
    if steps is not None and int(np.abs(steps).sum(0).max(initial=0)) <= 2**23:
        return torch.from_numpy(steps).double().to(values.device)
    largest = float(clean.abs().sum(0).max()) if clean.numel() else 0.0
    unit = power_of_two_scale(largest) / (2.0**23 - len(clean)) if largest else 1.0
    return torch.round(clean / unit)
