"""Contributions of instances to scores against finite differences and against sandwiches written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import torchpref as tp
from samples import preferences_of, ternary
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


def test_strata_are_centred_by_themselves_unless_one_has_a_single_instance():
    delta = ternary(20, 3, 0)
    theta = score(preferences_of(delta))
    for benchmarks, strata in ((["a"] * 8 + ["b"] * 12, 2), (["a"] + ["b"] * 19, 1)):
        prefs = preferences_of(delta, benchmarks=benchmarks)
        parts = score_contributions(prefs, theta, np.arange(3), resampling_units(benchmarks))
        assert len(parts.strata) == strata
        assert (parts.degrees() == 20 - strata).all()
        wanted = np.zeros(3)
        for first, last in [(0, 8), (8, 20)] if strata == 2 else [(0, 20)]:
            piece = parts.terms[first:last]
            wanted += len(piece) * piece.var(0, ddof=1)
        assert parts.errors() ** 2 == pytest.approx(wanted)


def test_families_add_up_and_are_counted():
    delta = ternary(20, 3, 0)
    prefs = preferences_of(delta)
    theta = score(prefs)
    alone = score_contributions(prefs, theta, np.arange(3), resampling_units(prefs.benchmarks))
    families = resampling_units(prefs.benchmarks, [i % 5 for i in range(20)])
    together = score_contributions(prefs, theta, np.arange(3), families)
    assert together.terms == pytest.approx(alone.terms.reshape(4, 5, 3).sum(0))
    assert (together.compared == 5).all() and (alone.compared == 20).all()
    decided = [
        (delta[:, [0, 1]] != 0).any(1).sum(),
        (delta[:, [0, 2]] != 0).any(1).sum(),
        (delta[:, [1, 2]] != 0).any(1).sum(),
    ]
    assert alone.decided.tolist() == decided
