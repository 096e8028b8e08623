"""Leaving out one instance: predicted changes against refits, reversed pairs against recomputed means."""

from __future__ import annotations

import json
from importlib import import_module

import numpy as np
import pytest
import torch

import torchpref as tp
from samples import graded_runs, preferences_of, ternary
from torchpref.stats.ranking.influence import influence


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_changes_are_those_of_refits(missing):
    runs = graded_runs(instances=40, systems=4, missing=missing)
    prefs = tp.preferences(runs, "rpp")
    found = influence(prefs)
    full = tp.bradley_terry(prefs).theta
    for instance in range(0, 40, 3):
        rest = tp.preferences(runs.take(instances=[i for i in range(40) if i != instance]), "rpp")
        change = tp.bradley_terry(rest).theta - full
        assert found.change[instance].numpy() == pytest.approx(
            change.numpy(), abs=0.03 * float(change.abs().max()) + 1e-6
        )
        means = (rest.pair_means() - prefs.pair_means()).numpy()
        assert found.mean_change[instance].numpy() == pytest.approx(means, abs=1e-12, nan_ok=True)
        flips = torch.nan_to_num(rest.pair_means() * prefs.pair_means()) < -1e-18
        assert torch.equal(found.flips[instance], flips)


def test_flips_are_counted():
    # With Δ of different sizes one instance can outweigh all others; a mean of exactly 0 is no flip.
    delta = np.array([[900_000, 500_000, 0], [-300_000, -250_000, 0], [-400_000, -250_000, 0]])
    found = influence(preferences_of(delta, unit=10**6))
    assert found.flips.tolist() == [[True, False, False], [False, False, False], [False, False, False]]
    assert found.flipped_pairs == pytest.approx(1 / 3) and found.flip_rate == pytest.approx(1 / 9)
    # Every row tells of the score that changes most, and the rows come by the size of that change.
    rows = found.rows()
    assert [(row["instance"], row["system"], row["flips"]) for row in rows] == [
        ("instance-1", "system-1", ["system-1 − system-2"]),
        ("instance-3", "system-1", []),
        ("instance-2", "system-1", []),
    ]
    largest = [float(change[change.abs().argmax()]) for change in found.change[[0, 2, 1]]]
    assert [row["change"] for row in rows] == largest
    assert largest[0] < 0 < largest[2] < largest[1] < -largest[0]


def test_one_trial_of_a_ternary_measure_never_flips():
    assert not influence(preferences_of(ternary(31, 5, 0))).flips.any()


def test_many_systems_use_the_hessian_of_all_instances(monkeypatch):
    prefs = preferences_of(ternary(60, 5, 0))
    near = influence(prefs)
    monkeypatch.setattr(import_module("torchpref.stats.ranking.influence"), "_EXACT_STEP", 2)
    first_order = influence(prefs)
    assert first_order.change.numpy() == pytest.approx(near.change.numpy() * 59 / 60, abs=1e-12)


def test_an_instance_without_which_there_is_no_score():
    mask = torch.ones(20, 3, dtype=torch.bool)
    mask[1:, 1:] = False  # only the first instance connects the third system
    delta = ternary(20, 3, 1, ties=0.1)
    delta[0] = [1, 0, 0]
    found = influence(preferences_of(delta, mask=mask))
    assert torch.isnan(found.change[0]).all() and torch.isfinite(found.change[1:]).all()
    assert torch.isnan(found.mean_change[0, 1:]).all()


def test_a_change_to_infinity_is_no_number():
    # Nine wins and a loss: without the loss nobody beats the winner.
    found = influence(preferences_of(np.array([[1]] * 9 + [[-1]])))
    assert torch.isfinite(found.change[:9]).all() and torch.isnan(found.change[9]).all()
    first = found.rows()[0]
    assert first["instance"] == "instance-10" and first["change"] is None  # the most influential of all
    assert "without instance-10: " in repr(found) and "no finite score" in repr(found)


@pytest.mark.parametrize("seed", range(5))
def test_lost_scores_are_those_of_refits(seed):
    delta = ternary(8, 3, seed, ties=0.1)
    prefs = preferences_of(delta)
    if tp.bradley_terry(prefs).status != "ok":
        pytest.skip("no score to lose")
    found = influence(prefs)
    for instance in range(8):
        rest = preferences_of(np.delete(np.asarray(delta), instance, 0))
        assert bool(torch.isnan(found.change[instance]).any()) == (tp.bradley_terry(rest).status != "ok")


def test_nothing_shared_is_said_in_words():
    mask = torch.zeros(4, 1, dtype=torch.bool)
    found = influence(preferences_of(np.zeros((4, 1), dtype=int), mask=mask))
    assert "nan" not in repr(found) and found.to_dict()["flipped_pairs"] is None


def test_it_converts_and_prints():
    found = influence(tp.preferences(graded_runs(), "rpp"))
    assert json.loads(json.dumps(found.to_dict()))["measure"] == "rpp"
    assert found.to_frame().height == 20
    assert "turns round" in repr(found)
    separated = influence(preferences_of(np.ones((5, 3), dtype=int)))
    assert torch.isnan(separated.change).all() and "no finite score" in repr(separated)
