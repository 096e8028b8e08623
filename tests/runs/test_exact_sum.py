"""Fixed-point sums do not depend on order and are as good as exact."""

from __future__ import annotations

import math
from fractions import Fraction

import torch
from hypothesis import given
from hypothesis import strategies as st

from torchpref.runs.exact_sum import exact_sum, from_limbs, power_of_two_scale, to_limbs

numbers = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=40)


@given(numbers, st.randoms(use_true_random=False))
def test_order_does_not_matter(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    one, two = (exact_sum(torch.tensor(v, dtype=torch.float64)).item() for v in (values, shuffled))
    assert one == two


@given(numbers)
def test_error_is_tiny(values):
    total = exact_sum(torch.tensor(values, dtype=torch.float64)).item()
    exact = sum(map(Fraction, values))
    scale = power_of_two_scale(max(map(abs, values)))
    assert abs(Fraction(total) - exact) <= Fraction(scale) * len(values) / 2**58 + abs(exact) / 2**52


@given(numbers, st.integers(1, 39))
def test_parts_add_up_in_limbs(values, cut):
    tensor = torch.tensor(values, dtype=torch.float64)
    scale = power_of_two_scale(float(tensor.abs().max()))
    whole = to_limbs(tensor, scale)
    parts = [to_limbs(part, scale) for part in (tensor[:cut], tensor[cut:])]
    together = [sum(part[k].sum() for part in parts) for k in (0, 1)]
    assert from_limbs(whole[0].sum(), whole[1].sum(), scale) == from_limbs(*together, scale)


def test_details():
    assert exact_sum(torch.tensor([1.0, math.nan, 2.0])).item() == 3
    assert exact_sum(torch.zeros(0, 3)).tolist() == [0, 0, 0]
    assert [power_of_two_scale(x) for x in (0.0, 1.0, 1.5, 0.5, math.inf)] == [1.0, 1.0, 2.0, 0.5, 1.0]
