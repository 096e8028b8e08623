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

    delta = np.array([1, 1, 1, 0, -1, 1, 0, 1, 1, 0])
    effects = pair_effects(preferences_of(delta[:, None]), 0.9)
    more = np.concatenate([delta, [1, -1]])
    error = np.sqrt(((more - more.mean()) ** 2).sum() * 10 / 9) / 12
    half = stats.t.ppf(0.95, 9) * error
    assert effects.mean[0] == 0.5
    assert (effects.low[0], effects.high[0]) == pytest.approx((more.mean() - half, more.mean() + half))
    assert (effects.instances[0], effects.decided[0]) == (10, 7)


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
    assert effects.mean[0] == 1 and np.isnan(effects.low[0])
    assert np.isnan([effects.mean[1], effects.low[1], effects.high[1]]).all()


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
