"""Permutations of labels against every relabelling of small samples; runs against runs; nothing but the seed matters."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import torchpref as tp
import torchpref.stats.significance.permutations as module
import torchpref.stats.significance.relabelling as exact_module
from profiles import examples
from samples import graded_runs
from torchpref.pairwise.run_sums import run_presence, run_sums
from torchpref.stats.significance.permutations import permutation_counts, unequal_trials
from torchpref.stats.significance.relabelling import relabelled


def every_relabelling(prefs, first: int, second: int) -> tuple[float, float]:
    """Two-sided and one-sided p by enumeration, from single runs: subsets where trials differ, signs where they do not."""
    parts, observed = [], 0.0
    for runs in run_sums(prefs):
        a, b = (torch.nonzero(runs.system == s).flatten().tolist() for s in (first, second))
        if not a or not b:
            continue
        each = 1 / (len(a) * len(b) * prefs.unit)

        def total(chosen, pooled=(*a, *b), matrix=runs.matrix, each=each):
            rest = [j for j in pooled if j not in chosen]
            return sum(float(matrix[i, j]) for i in chosen for j in rest) * each

        here = total(a)
        observed += here
        parts.append([here, -here] if len(a) == len(b) else [total(c) for c in combinations((*a, *b), len(a))])
    sums = np.array([sum(choice) for choice in product(*parts)])
    both = float(np.mean(np.abs(sums) >= abs(observed) - 1e-9))
    return both, float(np.mean(sums * np.sign(observed) >= abs(observed) - 1e-9))


@pytest.mark.parametrize("measure", ["sr", "pr", "spl", "lr", "rpp", "ipp"])
def test_simulated_p_agrees_with_every_relabelling(measure):
    runs = graded_runs(instances=4, systems=3, trials=3, seed=5, levels=2)
    present = runs.present.clone()
    present[:, 0, 1:] = False
    present[2, 1, 2] = False
    runs = tp.Trajectories(runs.returns.double() / 1e6, times={"steps": runs.times["steps"]}, present=present)
    prefs = tp.preferences(runs, measure)
    unequal = unequal_trials(prefs)
    counts = permutation_counts(prefs, 6000, 0)
    for pair, (a, b) in enumerate(prefs.pairs.tolist()):
        if unequal[pair]:
            wanted, _ = every_relabelling(prefs, a, b)
            assert counts.p[pair].item() == pytest.approx(wanted, abs=0.03), (a, b)
    if measure != "spl":
        assert unequal.tolist() == [True, True, True]


def few_runs(seed: int, first: int = 1, second: int = 3):
    """Four instances, three systems with so many runs each (the third as many as the first), one run gone."""
    runs = graded_runs(instances=4, systems=3, trials=max(first, second), seed=seed, levels=2)
    present = runs.present.clone()
    present[:, 0, first:] = False
    present[:, 1, second:] = False
    present[:, 2, first:] = False
    present[2, 1, second - 1] = False
    return tp.Trajectories(runs.returns.double() / 1e6, times={"steps": runs.times["steps"]}, present=present)


@settings(max_examples=examples(30))
@given(st.integers(0, 10_000), st.sampled_from(["sr", "lr"]), st.sampled_from([(1, 3), (2, 3), (3, 2)]))
def test_chances_of_wins_and_losses_are_those_of_every_relabelling(seed, measure, trials):
    prefs = tp.preferences(few_runs(seed, *trials), measure)
    unequal = unequal_trials(prefs)
    found = relabelled(prefs, unequal)
    for pair, (a, b) in enumerate(prefs.pairs.tolist()):
        if not unequal[pair]:
            assert np.isnan(found.p[pair])
            continue
        both, toward = every_relabelling(prefs, a, b)
        assert found.p[pair] == pytest.approx(both, abs=1e-9)
        assert found.one_sided[pair] == pytest.approx(1.0 if abs(prefs.pair_means()[pair]) < 1e-9 else toward, abs=1e-9)


@pytest.mark.parametrize("measure", ["pr", "spl", "rpp", "ipp"])
def test_chances_of_rounded_totals_are_near_those_of_every_relabelling(measure):
    for seed in range(5):
        prefs = tp.preferences(few_runs(seed), measure)
        unequal = unequal_trials(prefs)
        found = relabelled(prefs, unequal)
        for pair, (a, b) in enumerate(prefs.pairs.tolist()):
            if unequal[pair]:
                both, _ = every_relabelling(prefs, a, b)
                assert found.p[pair] == pytest.approx(both, abs=0.04), (seed, pair)


def test_listing_subsets_and_expanding_their_generating_function_agree(monkeypatch):
    runs = graded_runs(instances=12, systems=3, trials=5, seed=3, missing=0.3)
    for measure in ("lr", "rpp"):
        prefs = tp.preferences(runs, measure)
        listed = relabelled(prefs, unequal_trials(prefs))
        monkeypatch.setattr(exact_module, "_LISTED", 0)
        expanded = relabelled(prefs, unequal_trials(prefs))
        monkeypatch.undo()
        assert expanded.p == pytest.approx(listed.p, abs=1e-11, nan_ok=True)
        assert expanded.one_sided == pytest.approx(listed.one_sided, abs=1e-11, nan_ok=True)
        monkeypatch.setattr(exact_module, "_AT_ONCE", 1 << 14)
        assert relabelled(prefs, unequal_trials(prefs)).p == pytest.approx(listed.p, abs=1e-12, nan_ok=True)
        monkeypatch.undo()


def test_many_runs_of_a_system_are_no_obstacle():
    runs = graded_runs(instances=6, systems=2, trials=40, seed=2)
    present = runs.present.clone()
    present[:, 0, 20:] = False
    prefs = tp.preferences(tp.Trajectories(runs.returns.double() / 1e6, present=present), "lr")
    exact = relabelled(prefs, unequal_trials(prefs))
    simulated = permutation_counts(prefs, 4000, 0)
    assert exact.p[0] == pytest.approx(simulated.p[0].item(), abs=0.04)


def test_which_pairs_ran_unequally_often():
    runs = graded_runs(instances=5, systems=3, trials=2)
    present = runs.present.clone()
    present[3, 2, 1] = False
    present[4, 1, :] = False  # a missing run is no unequal number of runs
    prefs = tp.preferences(tp.Trajectories(runs.returns.double() / 1e6, present=present), "pr")
    assert unequal_trials(prefs).tolist() == [False, True, True]


def test_max_t_is_at_least_p_and_runs_over_all_pairs():
    runs = graded_runs(instances=8, systems=4, trials=3, seed=1, missing=0.2)
    counts = permutation_counts(tp.preferences(runs, "lr"), 2000, 0, max_t=True)
    assert (counts.max_t_p >= counts.p - 1e-12).all()
    assert (counts.max_t_p < 1).any()


def test_only_the_seed_matters(monkeypatch):
    prefs = tp.preferences(graded_runs(instances=6, systems=3, trials=3, missing=0.25), "rpp")
    whole = permutation_counts(prefs, 700, 3)
    torch.set_num_threads(2)
    try:
        again = permutation_counts(prefs, 700, 3)
    finally:
        torch.set_num_threads(1)
    assert torch.equal(whole.extreme, again.extreme)
    more = permutation_counts(prefs, module.FLIP_BLOCK + 500, 3)
    assert (more.extreme >= whole.extreme).all()
    assert not torch.equal(permutation_counts(prefs, 700, 4).extreme, whole.extreme)


@settings(max_examples=examples(15))
@given(st.integers(0, 1000), st.sampled_from(["sr", "pr", "spl", "lr", "rpp", "ipp"]))
def test_sums_of_single_runs_are_the_sums_of_the_preferences(seed, measure):
    runs = graded_runs(instances=5, systems=3, trials=3, seed=seed, missing=0.3)
    prefs = tp.preferences(runs, measure)
    counts = run_presence(prefs).sum(-1)
    for one in run_sums(prefs):
        assert torch.equal(one.matrix, -one.matrix.T)
        for pair, (a, b) in enumerate(prefs.pairs.tolist()):
            assert one.against[one.system == a, b].sum() == prefs.sums[one.instance, pair]
            assert (one.system == a).sum() == counts[one.instance, a]
