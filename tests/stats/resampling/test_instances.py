"""Weights over instances: what they sum to, that seeds and chunks do as told, and that products with them are exact."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samples import preferences_of, ternary
from torchpref.errors import UsageError
from torchpref.stats.resampling.instances import (
    BAYESIAN_PARTS,
    BLOCK,
    Resampler,
    draw_weights,
    fixed_point,
    replicate_blocks,
    resampling_units,
    resolve_seed,
)

SCHEMES = ("bootstrap", "bayesian", "halves", "subsample")
BENCHMARKS = ["b"] * 7 + ["a"] * 4


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_same_seed_gives_the_same_weights_in_any_chunks(scheme):
    units = resampling_units(BENCHMARKS)
    whole = draw_weights(scheme, units, 0, 2 * BLOCK + 9, 3)
    for chunk in (1, 100, BLOCK, 2 * BLOCK + 9):
        if chunk == 1:
            parts = [draw_weights(scheme, units, i, i + 1, 3) for i in (0, BLOCK - 1, BLOCK, 2 * BLOCK + 8)]
            assert torch.equal(torch.cat(parts), whole[[0, BLOCK - 1, BLOCK, 2 * BLOCK + 8]])
        else:
            assert torch.equal(torch.cat(list(replicate_blocks(scheme, units, len(whole), 3, chunk))), whole)
    assert not torch.equal(draw_weights(scheme, units, 0, 50, 4), whole[:50])


def test_bootstrap_draws_as_many_as_there_are_within_every_benchmark():
    weights = draw_weights("bootstrap", resampling_units(BENCHMARKS), 0, 500, 0)
    assert (weights[:, :7].sum(1) == 7).all() and (weights[:, 7:].sum(1) == 4).all()
    assert weights.double().mean(0).numpy() == pytest.approx(1, abs=0.15)
    assert weights[:, 0].double().var().item() == pytest.approx(6 / 7, rel=0.25)


def test_families_are_drawn_together_within_their_benchmark():
    families = ["x", "x", "y", "y", "y", "z", "x", "x", "p", "p", "q"]
    weights = draw_weights("bootstrap", resampling_units(BENCHMARKS, families), 0, 300, 0)
    for label, rows in (("x", [0, 1, 6]), ("y", [2, 3, 4]), ("a's p", [8, 9])):
        assert (weights[:, rows] == weights[:, rows[:1]]).all(), label
    assert not torch.equal(weights[:, 0], weights[:, 7])  # x of b and x of a are two families
    assert (weights[:, [0, 2, 5]].sum(1) == 3).all()
    with pytest.raises(UsageError, match="2 labels; wanted one per instance, 11"):
        resampling_units(BENCHMARKS, ["x", "y"])


def test_bayesian_weights_are_exponential():
    weights = draw_weights("bayesian", resampling_units([""] * 5), 0, 4000, 0).double() / BAYESIAN_PARTS
    assert weights.mean().item() == pytest.approx(1, rel=0.02)
    assert weights.var().item() == pytest.approx(1, rel=0.05)


def test_halves_split_every_benchmark_and_an_odd_instance_goes_either_way():
    weights = draw_weights("halves", resampling_units(BENCHMARKS), 0, 400, 0)
    assert set(weights.unique().tolist()) == {0, 1}
    assert (weights[:, 7:].sum(1) == 2).all()
    sizes, counts = weights[:, :7].sum(1).unique(return_counts=True)
    assert sizes.tolist() == [3, 4] and (counts > 150).all()


def test_subsamples_keep_their_share_of_every_benchmark():
    weights = draw_weights("subsample", resampling_units(BENCHMARKS), 0, 300, 0, share=0.3)
    assert (weights[:, :7].sum(1) == 2).all() and (weights[:, 7:].sum(1) == 1).all()
    with pytest.raises(UsageError, match="above 0 and at most 1"):
        draw_weights("subsample", resampling_units(BENCHMARKS), 0, 1, 0, share=0.0)


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 2**31), st.sampled_from([1, 3, 1 << 20]))
def test_products_with_whole_weights_are_exact_in_any_order(instances, columns, seed, largest):
    rng = np.random.default_rng(seed)
    values = torch.from_numpy(rng.uniform(-1, 1, (instances, columns)))
    weights = torch.from_numpy(rng.integers(0, largest + 1, (3, instances)))
    total = float(instances * largest)
    fixed = fixed_point(values, total)
    product = fixed.weighted_sums(weights)
    order = torch.from_numpy(rng.permutation(instances))
    assert torch.equal(fixed_point(values[order], total).weighted_sums(weights[:, order]), product)
    for row in range(3):
        for column in range(columns):
            terms = zip(weights[row].tolist(), values[:, column].tolist(), strict=True)
            wanted = sum((Fraction(w) * Fraction(v) for w, v in terms), Fraction(0))
            assert product[row, column].item() == pytest.approx(float(wanted), abs=1e-9 * max(1, largest))


def test_weights_of_one_give_the_means_of_the_preferences():
    mask = torch.from_numpy(np.random.default_rng(1).random((30, 6)) > 0.3)
    for prefs in (
        preferences_of(ternary(30, 4, 0)),
        preferences_of(ternary(30, 4, 0), mask=mask, weights=torch.linspace(0.1, 2, 30)),
    ):
        drawn = Resampler(prefs).means(torch.ones(1, 30))
        assert torch.allclose(drawn.means[0], prefs.pair_means(), atol=1e-12, rtol=0)
        assert torch.allclose(drawn.weights[0], prefs.pair_weights(), atol=1e-10, rtol=0)


def test_a_replicate_without_a_shared_instance_has_no_mean():
    mask = torch.ones(4, 1, dtype=torch.bool)
    mask[2:] = False
    drawn = Resampler(preferences_of([[1], [0], [1], [1]], mask=mask)).means(torch.tensor([[0, 0, 2, 2], [2, 0, 2, 0]]))
    assert torch.isnan(drawn.means[0, 0]) and drawn.weights[0, 0] == 0
    assert drawn.means[1, 0] == 1


def test_seeds():
    assert resolve_seed(7) == 7
    one, two = (resolve_seed(torch.Generator().manual_seed(1)) for _ in range(2))
    assert one == two
    generator = torch.Generator().manual_seed(1)
    assert resolve_seed(generator) != resolve_seed(generator)
    for bad in (-1, 0.5, True, "0"):
        with pytest.raises(UsageError, match="a seed is a whole number"):
            resolve_seed(bad)
