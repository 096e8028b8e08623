"""Contributions of instances to scores against finite differences and against sandwiches written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import torchpref as tp
from samples import preferences_of, ternary
from torchpref.stats.bradley_terry.batch import fit_pairs
from torchpref.stats.ranking.score_errors import inverse_hessian, mean_contributions, score_contributions
from torchpref.stats.resampling.instances import resampling_units

MASK = torch.from_numpy(np.random.default_rng(3).random((30, 6)) > 0.25)


def score(prefs):
    return tp.bradley_terry(prefs).theta.numpy()


@pytest.mark.parametrize("mask", [None, MASK])
def test_terms_are_derivatives_with_respect_to_the_weight_of_an_instance(mask):
    weights = torch.linspace(0.5, 1.5, 30).double()
    prefs = preferences_of(ternary(30, 4, 0), mask=mask, weights=weights)
    units = resampling_units(prefs.benchmarks)
    scores = score_contributions(prefs, score(prefs), np.arange(4), units)
    means = mean_contributions(prefs, units)
    step = 1e-5
    for instance in (0, 7, 29):
        moved = weights.clone()
        moved[instance] *= 1 + step
        other = prefs.with_weights(moved)
        assert (score(other) - score(prefs)) / step == pytest.approx(scores.terms[instance], rel=1e-3, abs=1e-7)
        change = (other.system_means() - prefs.system_means()).numpy() / step
        assert change == pytest.approx(means.terms[instance], rel=1e-3, abs=1e-7)
    assert scores.terms.sum(0) == pytest.approx(0, abs=1e-9)
    assert means.terms.sum(0) == pytest.approx(0, abs=1e-9)


def test_some_of_the_systems():
    delta = ternary(40, 4, 0)
    members = np.array([0, 2, 3])
    kept = [1, 2, 5]  # the pairs (0, 2), (0, 3), (2, 3)
    inner = preferences_of(delta[:, kept])
    theta = score(inner)
    units = resampling_units(inner.benchmarks)
    part = score_contributions(preferences_of(delta), theta, members, units)
    assert part.terms == pytest.approx(score_contributions(inner, theta, np.arange(3), units).terms)


def test_pseudo_inverse():
    curvature = np.abs(np.random.default_rng(0).standard_normal((5, 5)))
    curvature = np.triu(curvature, 1) + np.triu(curvature, 1).T
    laplacian = np.diag(curvature.sum(1)) - curvature
    assert inverse_hessian(curvature) == pytest.approx(np.linalg.pinv(laplacian), abs=1e-12)


def test_one_sample_is_the_sandwich():
    delta = ternary(20, 3, 0)
    prefs = preferences_of(delta)
    parts = score_contributions(prefs, score(prefs), np.arange(3), resampling_units(prefs.benchmarks))
    assert parts.design == "one sample" and (parts.degrees() == 19).all()
    assert parts.errors() ** 2 == pytest.approx(20 * parts.terms.var(0, ddof=1))


def test_strata_are_centred_by_themselves_and_hold_two_more_instances_of_average_size():
    delta = ternary(20, 3, 0)
    theta = score(preferences_of(delta))
    for benchmarks, cut in ((["a"] * 8 + ["b"] * 12, 8), (["a"] + ["b"] * 19, 1)):
        prefs = preferences_of(delta, benchmarks=benchmarks)
        parts = score_contributions(prefs, theta, np.arange(3), resampling_units(benchmarks))
        assert parts.design == "strata"
        decided = parts.won | parts.lost
        square = np.array([(parts.terms[decided[:, s], s] ** 2).mean() for s in range(3)])
        variances, degrees = [], []
        for piece in (parts.terms[:cut], parts.terms[cut:]):
            n = len(piece)
            variances.append(n / (n + 1) * (((piece - piece.mean(0)) ** 2).sum(0) + 2 * square))
            degrees.append(n + 1)
        assert parts.errors() ** 2 == pytest.approx(sum(variances))
        welch = sum(variances) ** 2 / sum(v**2 / d for v, d in zip(variances, degrees, strict=True))
        assert parts.degrees() == pytest.approx(welch)


@pytest.mark.slow
def test_families_agree_with_a_bootstrap_of_families():
    """On 200 data sets: √(G/(G − 1)) times the spread of scores over 10,000 resamples of families, within 5 %."""
    rng = np.random.default_rng(0)
    off = []
    for _ in range(200):
        families = np.repeat(np.arange(40), 5)
        luck = rng.standard_normal((40, 3)) * 0.5
        performance = luck[families] + np.array([0.2, 0.0, -0.2]) + rng.standard_normal((200, 3))
        ahead = performance[:, [0, 0, 1]] - performance[:, [1, 2, 2]]
        prefs = preferences_of((ahead > 0.4).astype(int) - (ahead < -0.4))
        units = resampling_units(prefs.benchmarks, families.tolist())
        parts = score_contributions(prefs, score(prefs), np.arange(3), units)
        sums = np.zeros((40, 3))
        np.add.at(sums, families, prefs.delta.numpy())
        drawn = rng.multinomial(40, np.full(40, 1 / 40), 10_000)
        y = torch.from_numpy((drawn @ sums / 200 + 1) / 2)
        found = fit_pairs(y, None, 3).theta.numpy().std(0) * np.sqrt(40 / 39)
        off.append(np.abs(parts.errors() / found - 1).max())
    assert np.mean(np.array(off) < 0.05) > 0.9 and np.median(off) < 0.03


def test_families_add_up_and_are_counted():
    delta = ternary(20, 3, 0)
    prefs = preferences_of(delta)
    theta = score(prefs)
    alone = score_contributions(prefs, theta, np.arange(3), resampling_units(prefs.benchmarks))
    families = resampling_units(prefs.benchmarks, [i % 5 for i in range(20)])
    together = score_contributions(prefs, theta, np.arange(3), families)
    assert together.terms == pytest.approx(alone.terms.reshape(4, 5, 3).sum(0))
    assert (together.compared.sum(0) == 5).all() and (alone.compared.sum(0) == 20).all()
    decided = [
        (delta[:, [0, 1]] != 0).any(1).sum(),
        (delta[:, [0, 2]] != 0).any(1).sum(),
        (delta[:, [1, 2]] != 0).any(1).sum(),
    ]
    assert alone.decided.tolist() == decided
