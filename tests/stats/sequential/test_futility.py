"""Futility: the formula in plain numbers, and that it is the chance it says it is."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from torchpref.stats.sequential.futility import chance_of_fine, chance_of_worse, futile, mean_square
from torchpref.stats.sequential.paths import UNIT


def test_the_formula():
    normal = NormalDist()
    total, square, n, planned = 2.0, 0.4, 40, 100
    drift = min(-0.1, total / n)
    spread = (max(square - drift**2, 0.02) * (planned - n)) ** 0.5
    wanted = normal.cdf((-normal.inv_cdf(0.95) * (square * planned) ** 0.5 - total - (planned - n) * drift) / spread)
    assert chance_of_worse(total, square, n, planned, 0.05, 0.1) == pytest.approx(wanted, rel=1e-12)


def test_mean_square_by_family():
    delta = np.array([1, 1, 0, -1]) * UNIT
    assert mean_square(delta, np.arange(4)) == pytest.approx(4 / 5)
    assert mean_square(delta, np.array([0, 0, 2, 2])) == pytest.approx((4 + 1 + 1) / 5)


def test_only_from_ten_and_before_the_end():
    wins = np.full(100, UNIT)
    assert futile(wins[:9], np.arange(9), 100, 0.05, 0.1)[0] is False
    assert futile(wins[:10], np.arange(10), 100, 0.05, 0.1)[0] is True
    assert futile(wins, np.arange(100), 100, 0.05, 0.1)[0] is False


def test_a_chance_by_simulation():
    """Among paths that continue as assumed, so many end below the fixed limit."""
    rng = np.random.default_rng(0)
    total, square, n, planned = -4.0, 0.3, 60, 150
    drift = -0.1
    rest = rng.normal(drift, np.sqrt(square - drift**2), (40_000, planned - n)).sum(axis=1)
    limit = -1.6448536 * np.sqrt(square * planned)
    assert chance_of_worse(total, square, n, planned, 0.05, 0.1) == pytest.approx(
        (total + rest < limit).mean(), abs=0.01
    )


def test_with_a_margin_going_on_for_fine_is_not_futile():
    better = np.repeat([1, -1, 0], [35, 10, 15]) * UNIT
    assert futile(better, np.arange(60), 300, 0.05, 0.1)[0] is True
    assert futile(better, np.arange(60), 300, 0.05, 0.1, margin=0.1)[0] is False
    assert chance_of_fine(0.0, 0.1, 60, 300, 0.05, 0.1) > 0.9
