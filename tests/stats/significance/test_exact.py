"""Exact p-values against enumeration and against distributions computed with whole numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchpref.stats.significance.exact import binomial_p, enumerated_p, lattice_p, lattice_steps


def enumerate_signs(values: list[int]) -> float:
    """Every sign pattern, one by one."""
    observed = abs(sum(values))
    patterns = list(product((1, -1), repeat=len(values)))
    hits = sum(abs(sum(s * v for s, v in zip(signs, values, strict=True))) >= observed for signs in patterns)
    return hits / len(patterns)


def by_convolution(values: list[int]) -> Fraction:
    """The distribution of the sum, in whole numbers."""
    ways = {0: 1}
    for value in values:
        step: dict[int, int] = {}
        for total, count in ways.items():
            for signed in (total + value, total - value):
                step[signed] = step.get(signed, 0) + count
        ways = step
    observed = abs(sum(values))
    return Fraction(sum(count for total, count in ways.items() if abs(total) >= observed), sum(ways.values()))


SMALL = st.lists(st.integers(-6, 6), min_size=1, max_size=9)


@given(SMALL)
def test_lattice_and_enumeration_agree_with_counting(values):
    wanted = enumerate_signs(values)
    column = np.array(values)[:, None]
    assert lattice_p(column)[0] == pytest.approx(wanted, rel=1e-10)
    assert enumerated_p(column / 7)[0] == pytest.approx(wanted, rel=1e-12)


@given(st.integers(0, 300), st.integers(0, 300))
def test_binomial(wins, losses):
    column = np.array([1] * wins + [-1] * losses + [0])[:, None]
    p = binomial_p(np.array([wins]), np.array([losses]))[0]
    assert p == pytest.approx(float(by_convolution(column[:, 0].tolist())), rel=1e-9)
    assert lattice_p(column)[0] == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize("shift", [0, 1, 2, 3])
def test_small_tails_keep_their_relative_precision(shift):
    rng = np.random.default_rng(shift)
    columns = np.clip(rng.integers(-4, 5, (400, 6)) + shift, -4, 4)
    for column, p in zip(columns.T, lattice_p(columns), strict=True):
        assert p == pytest.approx(float(by_convolution(column.tolist())), rel=1e-9)
    assert shift < 3 or lattice_p(columns).max() < 1e-60


def test_all_decided_alike_and_all_tied():
    columns = np.array([[1, 0], [2, 0], [3, 0]])
    assert lattice_p(columns).tolist() == [0.25, 1.0]
    assert enumerated_p(columns * 0.1).tolist() == [0.25, 1.0]
    assert binomial_p(np.array([0]), np.array([0])).tolist() == [1.0]


def test_what_would_take_too_long_is_left_open():
    wide = np.random.default_rng(0).integers(1, 10**6, (60, 1))
    wide[0] *= -1
    assert np.isnan(lattice_p(wide)).all()
    assert lattice_p(np.abs(wide))[0] == pytest.approx(2.0**-59)


def test_steps_of_thirds_in_millionths():
    values = np.array([[0.333333, -0.666667], [0.333334, 1.0], [0.0, 0.25]])
    assert lattice_steps(values).tolist() == [[4, -8], [4, 12], [0, 3]]
    assert lattice_steps(np.random.default_rng(0).random((50, 3))) is None
    assert lattice_steps(np.zeros((0, 3))).shape == (0, 3)
