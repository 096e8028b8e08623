"""Power by drawing data sets and testing them, and the number of instances that it takes."""

import numpy as np
import pytest

from samples import preferences_of
from torchpref.stats.planning.power import Sample, critical_signs, sample_of
from torchpref.stats.significance.exact import binomial_p
from torchpref.stats.significance.margins import unconditional_p


def outcomes(wins, losses, ties):
    return np.r_[np.ones(wins), -np.ones(losses), np.zeros(ties)]


def simulated(sample, size, draws=3000, seed=1):
    drawn = np.random.default_rng(seed).choice(sample.values, (draws, size))
    wins, losses = (drawn > 0).sum(1), (drawn < 0).sum(1)
    if sample.bound == 0:
        return ((binomial_p(wins, losses) / 2 <= sample.alpha) & (wins > losses)).mean()
    known = {}
    for pair in zip(wins.tolist(), losses.tolist(), strict=True):
        known.setdefault(pair, None)
    p = {pair: unconditional_p(*pair, size, sample.bound) for pair in known}
    return np.mean([p[pair] <= sample.alpha for pair in zip(wins.tolist(), losses.tolist(), strict=True)])


@pytest.mark.parametrize("counts", [(8, 2, 0), (9, 1, 2), (30, 20, 50), (20, 14, 10)])
@pytest.mark.parametrize("alpha", [0.05, 0.025])
def test_signs_reach_the_power_at_that_number_and_not_before(counts, alpha):
    sample = Sample(outcomes(*counts), 0.0, alpha)
    needed = int(sample.needed(0.8))
    assert sample.power(needed) >= 0.8
    assert simulated(sample, needed) == pytest.approx(sample.power(needed), abs=0.025)
    below = range(1, needed) if needed <= 50 else (int(0.9 * needed),)
    assert all(sample.power(size) < 0.8 for size in below)


def test_margins_reach_the_power_at_that_number():
    sample = Sample(outcomes(14, 14, 30), -0.2, 0.05)
    needed = int(sample.needed(0.8))
    assert simulated(sample, needed, 400) == pytest.approx(sample.power(needed), abs=0.07)
    assert sample.power(int(0.88 * needed)) < 0.8 <= sample.power(needed) + 0.02


def test_least_wins_are_those_that_the_sign_test_calls_significant():
    least = critical_signs(40, 0.025)
    for decided in range(41):
        for wins in range(decided + 1):
            p = binomial_p(np.array([wins]), np.array([decided - wins]))[0]
            assert (wins >= least[decided]) == (wins * 2 > decided and p <= 0.05)


def test_real_values_are_simulated_and_large_numbers_approximated():
    values = np.random.default_rng(0).normal(0.1, 0.3, 60).clip(-1, 1)
    sample = Sample(values, 0.0, 0.025)
    needed = int(sample.needed(0.8))
    assert sample.power(needed) == pytest.approx(0.8, abs=0.02)
    assert needed == pytest.approx(sample.formula(0.8), rel=0.12)
    small = Sample(values - values.mean() + 0.01, 0.0, 0.025)
    assert small.needed(0.8) > 2000
    assert small.power(int(small.needed(0.8))) == pytest.approx(0.8, abs=0.01)
    assert Sample(-values, 0.0, 0.025).needed(0.8) == np.inf


def test_families_widen_and_weights_too():
    delta = outcomes(30, 15, 15).astype(int)
    plain = sample_of(preferences_of(delta[:, None]), 0, 1, 0.0, 0.025)
    # Copies of twenty instances: sixty tell as much as twenty.
    order = np.argsort(delta, kind="stable")
    labels = [""] * 60
    for place, instance in enumerate(order):
        labels[instance] = f"f{place // 3}"
    shared = sample_of(preferences_of(delta[:, None], families=labels), 0, 1, 0.0, 0.025)
    assert plain.spread == 1 and shared.spread == pytest.approx(3, rel=0.01)
    assert shared.needed(0.8) == pytest.approx(3 * plain.needed(0.8), rel=0.02)
