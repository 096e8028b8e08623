"""Sample sizes: known formulas, achieved power, and trials."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

import torchpref as tp
from samples import graded_runs, preferences_of, ternary
from torchpref.errors import UsageError
from torchpref.stats.planning.planning import plan
from torchpref.stats.significance.significance import significance


def column(won: int, lost: int, tied: int) -> np.ndarray:
    return np.array([1] * won + [-1] * lost + [0] * tied)[:, None]


def test_connors_formula_for_mcnemars_test():
    from scipy.stats import norm

    planned = plan(preferences_of(column(30, 15, 55)))
    difference, discordant = 0.15, 0.45
    wanted = (
        norm.ppf(0.975) * np.sqrt(discordant) + norm.ppf(0.8) * np.sqrt(discordant - difference**2)
    ) ** 2 / difference**2
    assert planned.needed[0].item() == pytest.approx(wanted, rel=0.08)  # finished by the test's own power
    low, high = planned.interval[0].tolist()
    assert low < planned.needed[0] < high


@pytest.mark.slow
@pytest.mark.parametrize(("won", "lost", "tied"), [(40, 20, 40), (20, 5, 75)])
def test_the_planned_number_has_the_planned_power(won, lost, tied):
    needed = int(plan(preferences_of(column(won, lost, tied)), power=0.8).needed[0])
    rng = np.random.default_rng(0)
    chance = np.array([won, lost, tied]) / (won + lost + tied)
    draws = rng.choice([1, -1, 0], size=(needed, 3000), p=chance)
    from torchpref.stats.significance.exact import binomial_p

    power = (binomial_p((draws > 0).sum(0), (draws < 0).sum(0)) <= 0.05).mean()
    assert 0.74 < power < 0.86


def test_a_difference_that_may_be_zero_may_need_any_number():
    planned = plan(preferences_of(column(11, 9, 20)))
    low, high = planned.interval[0].tolist()
    assert math.isfinite(low) and math.isinf(high)
    assert math.isinf(plan(preferences_of(column(5, 5, 5))).needed[0].item())
    assert planned.rows()[0]["needed_high"] is None


def test_all_decided_alike_need_enough_for_the_test_to_reject():
    planned = plan(preferences_of(column(10, 0, 10)))
    enough = int(planned.needed[0])
    assert significance(preferences_of(column(enough // 2, 0, enough // 2))).significant[0]


def test_a_correction_costs_instances_and_success_rate_costs_more():
    runs = graded_runs(instances=80, systems=4, levels=3)
    prefs = tp.preferences(runs, "rpp")
    holm, none = plan(prefs), plan(prefs, correction="none")
    assert holm.alpha_each == pytest.approx(0.05 / 6) and (holm.needed >= none.needed).all()
    by_rate = plan(tp.preferences(runs, "sr"))
    assert holm.success_rate.tolist() == by_rate.needed.tolist() == by_rate.success_rate.tolist()


def test_more_trials_need_fewer_instances():
    planned = plan(tp.preferences(graded_runs(instances=300, systems=3, trials=4), "lr"))
    needed = [planned.trials[k] for k in (1, 2, 4, 8)]
    assert all((a >= b).all() for a, b in zip(needed, needed[1:], strict=False))
    assert planned.trials[4].numpy() == pytest.approx(planned.needed.numpy(), rel=0.12)
    assert plan(tp.preferences(graded_runs(), "lr")).trials == {}


def test_it_converts_and_prints():
    planned = plan(preferences_of(ternary(40, 6, 0)))
    assert len(json.loads(json.dumps(planned.to_dict()))["pairs"]) == 15
    assert planned.to_frame().height == 15
    assert "… and 5 more" in repr(planned)


def test_few_decided_instances_are_a_status_and_the_power_at_hand_is_told():
    planned = plan(preferences_of(column(5, 2, 20)))
    assert planned.status == ("only 7 decided instances: too few to plan by, 10 are the least",)
    enough = plan(preferences_of(column(30, 15, 55)))
    assert enough.status == ("ok",) and 0.5 < enough.power_now[0] < 0.65
    assert enough.rows()[0]["status"] == "ok" and "power with 100: 0.57" in repr(enough)


def test_pairs_that_are_not_compared_are_not_counted_in_words_either():
    delta = np.concatenate([column(30, 15, 55)] * 3, axis=1)
    mask = torch.ones(100, 3, dtype=torch.bool)
    mask[:, 1] = False
    planned = plan(preferences_of(delta, mask=mask))
    assert "0.05 / 2 pairs (Holm)" in repr(planned) and planned.alpha_each == 0.025


def test_a_margin_is_for_one_system():
    prefs = preferences_of(column(30, 30, 40))
    planned = plan(prefs, margin=0.2, new="system-2", correction="none")
    assert 80 < planned.needed[0] < 110 and "system-2 is fine within the margin 0.2" in repr(planned)
    for options in ({"margin": 0.2}, {"new": "system-1"}, {"margin": 0.2, "new": "x"}, {"trials": [0]}):
        with pytest.raises(UsageError):
            plan(prefs, **options)


def test_options_are_checked():
    prefs = preferences_of([[1]])
    for options in ({"power": 1}, {"power": 0.01}, {"correction": "bh"}, {"alpha": 2}, {"level": 0}):
        with pytest.raises(UsageError):
            plan(prefs, **options)
