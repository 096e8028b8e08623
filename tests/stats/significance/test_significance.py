"""Tests of all pairs: which method applies, what is corrected, what is tied, what cannot be tested."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import torchpref as tp
from profiles import examples
from samples import graded_runs, preferences_of, ternary
from torchpref.errors import UsageError
from torchpref.stats.significance.corrections import adjust
from torchpref.stats.significance.exact import binomial_p, lattice_p
from torchpref.stats.significance.flips import flip_counts
from torchpref.stats.significance.pair_tests import LARGER, METHODS
from torchpref.stats.significance.permutations import unequal_trials
from torchpref.stats.significance.relabelling import relabelled
from torchpref.stats.significance.significance import significance


def test_ternary_pairs_are_binomial():
    delta = ternary(60, 4, 0)
    tests = significance(preferences_of(delta))
    wanted = binomial_p((delta > 0).sum(0), (delta < 0).sum(0))
    assert set(tests.methods) == {"binomial"} and tests.flips == 0
    assert tests.p.numpy() == pytest.approx(wanted)
    assert tests.adjusted.numpy() == pytest.approx(adjust(wanted, "holm"))


def test_every_way_to_a_p_value_is_taken():
    rng = np.random.default_rng(0)
    columns = np.zeros((40, 6), dtype=np.int64)
    columns[:, 1] = rng.integers(-1, 3, 40).clip(-1, 1) * 500_000
    columns[:10, 2] = rng.integers(-1_000_000, 1_000_001, 10)
    columns[:, 3] = rng.integers(-3, 5, 40) * 250_000
    columns[:, 4] = rng.integers(-1_000_000, 1_000_001, 40)
    mask = torch.ones(40, 6, dtype=torch.bool)
    mask[:, 5] = False
    tests = significance(preferences_of(columns, unit=10**6, mask=mask))
    assert tests.methods == ("tied", "binomial", "enumeration", "simulation", "simulation", "not compared")
    assert tests.p[0] == 1 and torch.isnan(tests.p[5])
    assert tests.tested == 5 and tests.flips == 9_999
    without = significance(preferences_of(columns[:, [0, 1, 3]], unit=10**6))
    assert without.methods[2] == "lattice"
    assert without.p[2].item() == pytest.approx(lattice_p(columns[:, 3:4] // 250_000)[0])
    assert set(tests.methods) | set(without.methods) <= set(METHODS)


@settings(max_examples=examples(20))
@given(st.integers(0, 10_000))
def test_simulation_and_exact_ways_agree(seed):
    rng = np.random.default_rng(seed)
    columns = rng.integers(-4, 5, (30, 3)) + rng.integers(0, 2)
    exact = significance(preferences_of(columns, unit=8))
    noise = rng.integers(-3, 4, (30, 3))
    simulated = significance(preferences_of(columns * 10**6 + noise, unit=8 * 10**6), flips=20_000, seed=seed)
    assert set(exact.methods) <= {"lattice", "enumeration", "binomial"}
    assert simulated.p.numpy() == pytest.approx(exact.p.numpy(), abs=0.02) or "simulation" not in simulated.methods


def test_trials_and_weights():
    runs = graded_runs(instances=25, systems=3, trials=2)
    tests = significance(tp.preferences(runs, "lr"))
    assert set(tests.methods) == {"lattice"}
    uneven = torch.linspace(0.5, 1.5, 25).double().sqrt()
    assert set(significance(tp.preferences(runs, "lr", weights=uneven)).methods) == {"simulation"}
    one_less = runs.present.clone()
    one_less[0, 0, 1] = False
    runs = tp.Trajectories(runs.returns.double() / 1e6, times={"steps": runs.times["steps"]}, present=one_less)
    mixed = significance(tp.preferences(runs, "lr"))
    assert mixed.methods == (LARGER, LARGER, "lattice")


def families_by_hand(delta, families):
    """Two-sided p of all signs of families, by enumeration in fractions."""
    sums = {}
    for value, family in zip(delta, families, strict=True):
        sums[family] = sums.get(family, Fraction(0)) + Fraction(int(value))
    observed = abs(sum(sums.values()))
    all_signs = list(product((1, -1), repeat=len(sums)))
    hits = sum(abs(sum(s * x for s, x in zip(signs, sums.values(), strict=True))) >= observed for signs in all_signs)
    return hits / len(all_signs)


@settings(max_examples=examples(40))
@given(st.integers(0, 10_000), st.integers(2, 9), st.sampled_from([1, 3, 10]))
def test_signs_are_flipped_by_family(seed, number, unit):
    rng = np.random.default_rng(seed)
    delta = rng.integers(-unit, unit + 1, 24)
    labels = [f"f{label}" for label in rng.integers(0, number, 24)]
    prefs = preferences_of(delta[:, None], unit=unit, families=labels)
    tests = significance(prefs)
    assert tests.p[0].item() == pytest.approx(families_by_hand(delta, labels), abs=1e-12)
    alone = significance(preferences_of(delta[:, None], unit=unit, families=[None] * 24))
    assert alone.p[0] == significance(preferences_of(delta[:, None], unit=unit)).p[0]


def test_larger_of_flips_and_permutation_where_trials_differ():
    runs = graded_runs(instances=25, systems=3, trials=3, missing=0.3, seed=4)
    prefs = tp.preferences(runs, "lr")
    tests = significance(prefs)
    assert set(tests.methods) == {LARGER}
    permuted = relabelled(prefs, unequal_trials(prefs)).p
    flipped = flip_counts((prefs.delta * prefs.weights[:, None]), 20_000, 1).p
    assert (tests.p.numpy() >= permuted).all()
    assert tests.p.numpy() == pytest.approx(np.maximum(permuted, flipped.numpy()), abs=0.02)
    together = significance(prefs, "max-t").adjusted
    assert (together >= significance(prefs, "none").p * 0.9).all()


def test_max_t_has_power_where_pairs_share_few_instances():
    delta = np.zeros((200, 3), dtype=np.int64)
    delta[:30, 0] = 1
    delta[:, 1] = np.random.default_rng(0).integers(-1, 2, 200)
    mask = torch.ones(200, 3, dtype=torch.bool)
    mask[30:, 0] = False
    tests = significance(preferences_of(delta, mask=mask), "max-t")
    assert tests.significant.tolist() == [True, False, False]
    assert tests.adjusted[2] == 1 and tests.flips == 9_999


def test_max_t_with_unequal_trials_and_a_pair_that_is_not_compared():
    runs = graded_runs(instances=12, systems=4, trials=3, missing=0.3, seed=2)
    present = runs.present.clone()
    present[:6, 0] = False
    present[6:, 1] = False
    runs = tp.Trajectories(runs.returns.double() / 1e6, times={"steps": runs.times["steps"]}, present=present)
    tests = significance(tp.preferences(runs, "rpp"), "max-t")
    assert torch.isnan(tests.adjusted[0]) and torch.isnan(tests.p[0])
    rest = ~torch.isnan(tests.p)
    assert (tests.adjusted[rest] > 0).all() and (tests.adjusted[rest] <= 1).all()


def test_paired_t_goes_with_the_interval():
    tests = significance(preferences_of(ternary(50, 5, 0)), "none", test="t")
    outside = (tests.interval[:, 0] > 0) | (tests.interval[:, 1] < 0)
    assert torch.equal(outside, tests.p < 0.05)
    tied = significance(preferences_of(np.zeros((9, 1), dtype=int)), test="t")
    assert tied.p[0] == 1 and tied.methods == ("tied",)
    assert significance(preferences_of([[1]]), test="t").p[0] == 1


def test_turning_a_pair_round():
    tests = significance(preferences_of(ternary(30, 3, 0)))
    one, other = tests["system-1", "system-3"], tests["system-3", "system-1"]
    assert other["mean"] == -one["mean"] and (other["low"], other["high"]) == (-one["high"], -one["low"])
    assert one["p"] == other["p"] and other["a"] == "system-3"
    with pytest.raises(UsageError, match="no system 'x'"):
        tests["x", "system-1"]
    with pytest.raises(UsageError, match="itself"):
        tests["system-1", "system-1"]


def test_seeds():
    columns = np.random.default_rng(0).integers(-(10**6), 10**6, (40, 3))
    one, two, three = (significance(preferences_of(columns, unit=10**6), seed=s) for s in (1, 1, 2))
    assert torch.equal(one.p, two.p) and not torch.equal(one.p, three.p)
    generated = significance(preferences_of(columns, unit=10**6), seed=torch.Generator().manual_seed(1))
    assert generated.seed > 2


def test_it_converts_and_prints():
    mask = torch.ones(30, 6, dtype=torch.bool)
    mask[:, 0] = False
    tests = significance(preferences_of(ternary(30, 4, 0, spread=3), mask=mask))
    frame = tests.to_frame()
    assert frame.height == 6 and frame["p"].null_count() == 1
    assert json.loads(json.dumps(tests.to_dict()))["tested"] == 5
    assert "1 share no instance" in repr(tests) and "Holm" in repr(tests)
    assert tests.discriminative_power == int(tests.significant.sum()) / 5
    square = tests.square(tests.adjusted)
    assert torch.equal(square.nan_to_num(), square.T.nan_to_num())
    empty = significance(preferences_of(np.zeros((5, 0), dtype=int)))
    assert empty.tested == 0 and np.isnan(empty.discriminative_power) and empty.to_frame().height == 0


def test_options_are_checked():
    prefs = preferences_of([[1]])
    with pytest.raises(UsageError, match="unknown test 'z'"):
        significance(prefs, test="z")
    with pytest.raises(UsageError, match="max-T is a correction of the sign-flip test"):
        significance(prefs, "max-t", test="t")
    with pytest.raises(UsageError, match="between 0 and 1"):
        significance(prefs, alpha=0)
