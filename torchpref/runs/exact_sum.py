"""Sums of float64 numbers that do not depend on their order.

Each number is written once as two whole numbers (a fixed-point value of 60 bits relative to a scale that is a power of
two); whole numbers add up to the same total in any order, chunking, thread or process. The error per number is at most
2⁻⁶⁰ of the scale.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

_BITS = 30


def power_of_two_scale(largest: float) -> float:
    """The least power of two that is at least ``largest`` (1.0 for 0, and never so small that its inverse overflows)."""
    if largest <= 0 or not math.isfinite(largest):
        return 1.0
    largest = max(largest, 2.0**-900)
    mantissa, exponent = math.frexp(largest)
    return math.ldexp(1.0, exponent - 1 if mantissa == 0.5 else exponent)


def to_limbs(values: Float[Tensor, "*shape"], scale: float) -> tuple[Int[Tensor, "*shape"], Int[Tensor, "*shape"]]:
    """High and low whole numbers with value = scale · (high · 2⁻³⁰ + low · 2⁻⁶⁰); |values| must not exceed ``scale``."""
    scaled = values.double() * (2.0**_BITS / scale)
    high = torch.round(scaled)
    low = torch.round((scaled - high) * 2.0**_BITS)
    return high.long(), low.long()


def from_limbs(high: Int[Tensor, "*shape"], low: Int[Tensor, "*shape"], scale: float) -> Float[Tensor, "*shape"]:
    """The float64 value of summed limbs."""
    carry = torch.div(low, 2**_BITS, rounding_mode="floor")
    rest = low - carry * 2**_BITS
    total: Tensor = (high + carry).double() + rest.double() * 2.0**-_BITS
    return total * (scale * 2.0**-_BITS)


def exact_sum(values: Float[Tensor, "*shape"], dim: int = 0, scale: float | None = None) -> Float[Tensor, "*reduced"]:
    """Sum along ``dim``, the same in any order; NaN counts as nothing.

    Args:
        values: float64, any shape.
        dim: the dimension to sum.
        scale: a power of two not below the largest |value|; found from the values where None. Parts that are summed
            apart and added later must use one scale.
    """
    clean = torch.nan_to_num(values.double(), nan=0.0)
    if scale is None:
        scale = power_of_two_scale(float(clean.abs().max()) if clean.numel() else 0.0)
    high, low = to_limbs(clean, scale)
    return from_limbs(high.sum(dim), low.sum(dim), scale)
