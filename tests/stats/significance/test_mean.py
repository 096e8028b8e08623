"""Betting on the mean: its level where sign flips fail, its range over orders, weights and families."""

import numpy as np
import pytest

import torchpref as tp
from samples import preferences_of, ternary
from torchpref.errors import UsageError


def test_level_where_nineteen_small_losses_balance_one_large_win():
    rng = np.random.default_rng(0)
    columns = np.where(rng.random((12, 300)) < 0.05, 19, -1)
    tests = tp.significance(preferences_of(columns, unit=19), "none", test="mean")
    flips = tp.significance(preferences_of(columns, unit=19), "none")
    assert float((flips.p <= 0.05).double().mean()) > 0.4
    assert float((tests.p <= 0.05).double().mean()) <= 0.05
    assert set(tests.methods) == {"betting on the mean"}


def test_orders_give_a_range_and_the_seed_fixes_one():
    column = np.array([1] * 40 + [-1] * 20 + [0] * 40)[:, None]
    tests = tp.significance(preferences_of(column), test="mean", seed=3)
    low, high = tests.order_range[0].tolist()
    assert 0 < low < high <= 1 and low < 0.03 and high > 0.1
    assert tests.p[0] == tp.significance(preferences_of(column), test="mean", seed=3).p[0]
    assert tp.significance(preferences_of(column)).order_range is None


def test_weights_and_families_keep_the_sign_and_bound():
    delta = ternary(40, 3, 0)
    weights = np.linspace(0.1, 3, 40)
    import torch

    tests = tp.significance(preferences_of(delta, weights=torch.from_numpy(weights)), test="mean")
    assert ((tests.p > 0) & (tests.p <= 1)).all()
    one = tp.significance(preferences_of(np.ones((40, 1), dtype=int), families=["x"] * 40), test="mean")
    assert one.p[0] == pytest.approx(1 / (0.5 * (1.5 + 0.5)))  # a single family is a single bet
    with pytest.raises(UsageError, match="max-T"):
        tp.significance(preferences_of(delta), "max-t", test="mean")
