"""Intervals of mean preferences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from samples import preferences_of, ternary
from torchpref.errors import UsageError
from torchpref.stats.resampling.instances import resampling_units
from torchpref.stats.significance.effects import pair_effects


def test_it_is_the_t_interval_with_two_more_instances():
    from scipy import stats

    delta = np.array([1, 1, 1, 0, -1, 1, 0, 1, 1, 0, -1, 1, 1, -1, 1, 1])
    effects = pair_effects(preferences_of(delta[:, None]), 0.9)
    more = np.concatenate([delta, [1, -1]])
    error = np.sqrt(((more - more.mean()) ** 2).sum() * 16 / 15) / 18
    half = stats.t.ppf(0.95, 15) * error
    assert effects.mean[0] == 0.4375
    assert (effects.low[0], effects.high[0]) == pytest.approx((more.mean() - half, more.mean() + half))
    assert (effects.instances[0], effects.decided[0]) == (16, 13)


def test_the_added_instances_are_as_large_as_those_that_are_decided():
    small, large = (pair_effects(preferences_of(ternary(40, 3, 0) * k, unit=100)) for k in (1, 50))
    assert large.high - large.low == pytest.approx(50 * (small.high - small.low))


def test_all_tied_still_has_a_width_and_limits_stay_within_one():
    tied = pair_effects(preferences_of(np.zeros((20, 1), dtype=int)))
    assert tied.low[0] == -tied.high[0] < 0
    sure = pair_effects(preferences_of(np.ones((20, 1), dtype=int)))
    assert sure.low[0] < sure.high[0] == 1.0


def test_one_instance_has_no_interval_and_none_has_no_mean():
    mask = torch.tensor([[True, False], [False, False]]).repeat(1, 2)[:, :3]
    effects = pair_effects(preferences_of(np.ones((2, 3), dtype=int), mask=mask))
    # One win of one instance: the exact limits of a share of 1 in 1.
    assert effects.mean[0] == 1 and effects.high[0] == 1 and effects.low[0] < -0.9
    assert np.isnan([effects.mean[1], effects.low[1], effects.high[1]]).all()
    assert effects.reasons == ("", "no instance is decided", "") or effects.reasons[1]


def test_weights_count_an_instance_in_parts():
    delta = ternary(30, 3, 0)
    plain, heavy = (
        pair_effects(preferences_of(delta)),
        pair_effects(preferences_of(delta, weights=torch.full((30,), 2.5))),
    )
    assert heavy.low == pytest.approx(plain.low) and heavy.high == pytest.approx(plain.high)


def test_families_widen_the_interval():
    delta = np.repeat(ternary(20, 2, 1), 5, axis=0)
    prefs = preferences_of(delta)
    units = resampling_units(prefs.benchmarks, [i // 5 for i in range(100)])
    alone, together = pair_effects(prefs), pair_effects(prefs, units=units)
    assert (together.high - together.low)[0] > 1.8 * (alone.high - alone.low)[0]


def test_levels():
    with pytest.raises(UsageError, match=r"between 0 and 1, such as 0.95; got 95"):
        pair_effects(preferences_of([[1]]), 95)


def test_strata_are_the_formula_of_their_own():
    """Σ w² s²/n with s² = (Σ(x − x̄)² + 2m²)/(n + 1), degrees by Welch and Satterthwaite; one instance in one of them."""
    from scipy import stats

    delta = np.array([1] + [1, -1, 0, 1, 1, 0, -1, 1, 0, 1, 1, 1])
    benchmarks = ["a"] + ["b"] * 12
    weights = torch.tensor([6.5] + [6.5 / 12] * 12, dtype=torch.float64)
    effects = pair_effects(preferences_of(delta[:, None], weights=weights, benchmarks=benchmarks))
    m = 1.0
    parts = []
    for piece in (delta[:1], delta[1:]):
        n = len(piece)
        square = (((piece - piece.mean()) ** 2).sum() + 2 * m) / (n + 1)
        parts.append((0.25 * square / n, n + 1))
    variance = sum(part for part, _ in parts)
    degrees = variance**2 / sum(part**2 / n for part, n in parts)
    half = stats.t.ppf(0.975, degrees) * np.sqrt(variance)
    mean = (delta[0] + delta[1:].mean()) / 2
    assert effects.mean[0] == pytest.approx(mean)
    assert effects.low[0] == pytest.approx(max(-1, mean - half)) and effects.high[0] == pytest.approx(min(1, mean + half))


def test_benchmarks_that_differ_do_not_widen_the_interval_of_their_mean():
    delta = np.r_[np.where(np.arange(50) % 4 == 0, -1, 1), np.where(np.arange(50) % 4 == 0, 1, -1)][:, None]
    apart = pair_effects(preferences_of(delta, benchmarks=["a"] * 50 + ["b"] * 50))
    mixed = pair_effects(preferences_of(delta))
    assert (apart.high - apart.low)[0] < 0.9 * (mixed.high - mixed.low)[0]


def test_own_weights_count_what_they_are_worth():
    """A heavy instance is a sample of little more than itself: the interval widens, and the degrees of freedom fall."""
    delta = ternary(60, 2, 0, ties=0.1)
    delta[:3, 0] = 1, -1, 1
    heavy = torch.ones(60, dtype=torch.float64)
    heavy[:3] = 20.0
    plain, weighted = pair_effects(preferences_of(delta)), pair_effects(preferences_of(delta, weights=heavy))
    assert weighted.degrees[0] < 12 < plain.degrees[0]
    assert (weighted.high - weighted.low)[0] > 1.5 * (plain.high - plain.low)[0]
    nearly = pair_effects(preferences_of(delta, weights=1 + 1e-6 * torch.arange(60, dtype=torch.float64)))
    assert nearly.low == pytest.approx(plain.low, abs=0.02) and nearly.high == pytest.approx(plain.high, abs=0.02)


def test_few_decided_instances_give_exact_limits_or_none():
    from scipy import stats

    delta = np.array([1] * 6 + [-1] + [0] * 13)[:, None]
    effects = pair_effects(preferences_of(delta))
    won, lost = (stats.beta.ppf([0.0125, 0.9875], [k, k + 1], [21 - k, 20 - k]) for k in (6, 1))
    assert (effects.low[0], effects.high[0]) == pytest.approx((won[0] - lost[1], won[1] - lost[0]))
    graded = pair_effects(preferences_of(delta * 50, unit=100))
    assert np.isnan(graded.low[0]) and graded.reasons == ("only 7 instances decided, at least 10 are needed",)
    lopsided = pair_effects(preferences_of(np.array([50] * 20 + [-50] * 2)[:, None], unit=100))
    assert "2 of 22 decided instances on the lesser side" in lopsided.reasons[0]
    with_pair_missing = preferences_of(
        np.ones((6, 1), dtype=int), benchmarks=["a"] * 3 + ["b"] * 3, mask=torch.tensor([[True]] * 3 + [[False]] * 3)
    )
    assert pair_effects(with_pair_missing).reasons == ("the two share no instance of some benchmark",)
