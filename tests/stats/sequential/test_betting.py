"""Betting integrals against exact fractions, worked examples, and the laws that make them tests."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from torchpref.errors import UsageError
from torchpref.stats.sequential.betting import (
    log_wealth,
    running_log_wealth,
    slopes_above,
    slopes_below,
    slopes_without_replacement,
)


def integral(slopes: list[Fraction], most: Fraction = Fraction(1)) -> Fraction:
    """1/most ∫₀^most ∏(1 + f s) df, by multiplying the polynomial out."""
    coefficients = [Fraction(1)]
    for slope in slopes:
        longer = [*coefficients, Fraction(0)]
        for power, value in enumerate(coefficients):
            longer[power + 1] += slope * value
        coefficients = longer
    return sum((value * most**power / (power + 1) for power, value in enumerate(coefficients)), Fraction(0))


def counts(wins: int, losses: int) -> list[int]:
    return [1] * wins + [-1] * losses


@pytest.mark.parametrize(
    ("slopes", "value"),
    [
        (counts(5, 0), Fraction(21, 2)),
        (counts(7, 0), Fraction(255, 8)),
        (counts(8, 0), Fraction(511, 9)),
        (counts(3, 1), Fraction(13, 10)),
        (counts(9, 1), Fraction(1018, 55)),
        ([0.5, -0.25], Fraction(13, 12)),
        ([0.5, 0.5, 0.5], Fraction(65, 32)),
    ],
)
def test_worked_examples(slopes, value):
    assert integral([Fraction(s) for s in slopes]) == value
    assert np.exp(log_wealth(slopes)) == pytest.approx(float(value), rel=1e-12)


@pytest.mark.parametrize(("evidence", "wins"), [(40, [8, 11, 14, 16]), (20, [7, 10, 12, 14])])
def test_wins_needed(evidence, wins):
    for losses, least in enumerate(wins):
        assert np.exp(log_wealth(counts(least, losses))) >= evidence > np.exp(log_wealth(counts(least - 1, losses)))


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.fractions(-1, 3, max_denominator=12), min_size=1, max_size=14),
    st.sampled_from([Fraction(1), Fraction(1, 2)]),
)
def test_prefixes_agree_with_the_exact_integral(slopes, most):
    found = np.exp(running_log_wealth([float(s) for s in slopes], float(most)))
    exact = [float(integral(slopes[: n + 1], most)) for n in range(len(slopes))]
    assert found == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("size", [100, 200, 500, 2000, 5000])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.25, 0.5, 0.75, 0.98, 1.0])
def test_long_paths_of_wins_and_losses(size, share):
    """Against ∫(1+f)^w (1−f)^l df in whole numbers: by parts, I(w, l) = 1/(l+1) + w/(l+1) · I(w−1, l+1)."""
    wins = round(share * size)
    losses = size - wins
    value, factor = Fraction(0), Fraction(1)
    for k in range(wins + 1):
        step = factor / (losses + k + 1)
        value += step
        factor = step * (wins - k)
    path = np.random.default_rng(0).permutation(counts(wins, losses))
    assert log_wealth(path) == pytest.approx(_log(value), rel=1e-11, abs=1e-11)


def _log(value: Fraction) -> float:
    bits = max(0, value.numerator.bit_length() - value.denominator.bit_length() - 60)
    return float(np.log(float(value / 2**bits)) + bits * np.log(2.0))


def test_many_paths_at_once_are_the_paths_one_by_one():
    rng = np.random.default_rng(1)
    paths = rng.uniform(-1, 1, (3, 4, 70))
    together = running_log_wealth(paths)
    assert together.shape == paths.shape
    for place in np.ndindex(3, 4):
        assert np.array_equal(together[place], running_log_wealth(paths[place])) or np.allclose(
            together[place], running_log_wealth(paths[place]), rtol=1e-13, atol=1e-13
        )
    assert np.allclose(log_wealth(paths), together[..., -1], atol=0)
    assert log_wealth(np.zeros((2, 0))).tolist() == [0.0, 0.0]


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(1, 7), st.integers(-3, 3))
def test_a_fair_game_keeps_its_expectation(bets, tenths):
    """The mean of the wealth over all equally likely paths of a mean at the bound is 1; exactly, as fractions."""
    bound = Fraction(tenths, 10)
    up = [(x - bound) / (1 + bound) for x in (Fraction(1), Fraction(-1))]
    chance = [(1 + bound) / 2, (1 - bound) / 2]
    total = Fraction(0)
    for path in product((0, 1), repeat=bets):
        weight = Fraction(1)
        for side in path:
            weight *= chance[side]
        total += weight * integral([up[side] for side in path])
    assert total == 1
    assert slopes_above([1.0, -1.0], float(bound)) == pytest.approx([float(s) for s in up])
    assert slopes_below([-1.0, 1.0], -float(bound)) == pytest.approx([float(s) for s in up])


@pytest.mark.parametrize(("margin", "ties"), [(0.02, 224), (0.05, 88), (0.1, 43), (0.2, 20)])
def test_ties_needed_for_fine(margin, ties):
    """A run of ties establishes "fine within the margin" after exactly this many."""
    wealth = running_log_wealth(slopes_above(np.zeros(ties), -margin))
    assert (wealth >= np.log(20)).nonzero()[0].tolist() == [ties - 1]


# ------------------------------------------------------------------------------------------- without replacement


def at_half(delta, planned):
    """The wealth of the upward bet at the stake ½, step by step."""
    up, _ = slopes_without_replacement(np.array(delta), planned, 1)
    return np.cumprod(1 + up / 2).tolist()


def test_without_replacement_worked_examples():
    assert at_half([1, 0, -1, 0], 4) == pytest.approx([1.5, 1.875, 0.9375, 0.9375], rel=1e-12)
    assert at_half([1, 1, -1, -1], 4) == pytest.approx([1.5, 3, 3, 3], rel=1e-12)
    up, _ = slopes_without_replacement(np.ones(10, dtype=int), 10, 1)
    wealth = running_log_wealth(up)
    assert int(np.argmax(wealth >= np.log(2 / 0.05))) + 1 == 5
    assert np.isinf(wealth[5:]).all() and not np.isinf(wealth[:5]).any()


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=2, max_size=7))
def test_without_replacement_expectation(values):
    """Over all orders of values that add up to 0 the mean wealth of either bet is at most 1 after every draw."""
    from itertools import permutations

    values = values + [-4 if sum(values) > 0 else 4] * (abs(sum(values)) // 4)
    if sum(values):
        values.append(-sum(values))
    if len(values) > 7:
        values = values[:3] + [-v for v in values[:3]]
    orders = np.array(list(set(permutations(values))))
    for slopes in slopes_without_replacement(orders, len(values), 4):
        assert np.isfinite(slopes).all()
        mean = np.exp(running_log_wealth(slopes)).mean(axis=0)
        assert (mean <= 1 + 1e-9).all()


def test_without_replacement_mirrors():
    rng = np.random.default_rng(2)
    delta = rng.integers(-10, 11, (5, 30))
    up, down = slopes_without_replacement(delta, 40, 10)
    mirrored_up, mirrored_down = slopes_without_replacement(-delta, 40, 10)
    assert np.array_equal(up, mirrored_down) and np.array_equal(down, mirrored_up)


def test_bad_input():
    with pytest.raises(UsageError, match="at least -1"):
        log_wealth([0.2, -1.5])
    with pytest.raises(UsageError, match="at least -1"):
        log_wealth([0.2, np.nan])
    with pytest.raises(UsageError, match="stake"):
        log_wealth([0.2], most=2.0)
    with pytest.raises(UsageError, match="3 instances were seen of 2"):
        slopes_without_replacement(np.zeros(3, dtype=int), 2, 1)
    with pytest.raises(UsageError, match="between -1 and 1"):
        slopes_above([0.0], 1.0)
