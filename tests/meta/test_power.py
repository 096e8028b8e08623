"""Power by budget and by success of the pair, by hand."""

from __future__ import annotations

import torch

from meta.small import partial, random_runs
from torchpref import MEASURES, Trajectories
from torchpref.meta import meta_evaluate
from torchpref.meta.power import success_budgets, system_success

FEW = {"resamples": 20, "curve_draws": 20, "alarm_draws": 1, "subgoal_draws": 0, "seed": 0}


def test_budgets_are_the_times_by_which_tenths_of_the_successes_have_come() -> None:
    runs = partial([[1.0, 1.0]] * 5 + [[0.5, 0.0]] * 5, [[k, k + 5.0] for k in range(1, 6)] * 2)
    assert success_budgets(runs, "time") == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    assert system_success(runs).tolist() == [0.5, 0.5]


def test_power_by_budget_is_that_of_the_runs_stopped_there() -> None:
    # A succeeds at 1, B at 2 on eight instances: at a budget of 1 success tells them apart, at 2 time alone does.
    runs = partial([[1.0, 1.0]] * 8, [[1.0, 2.0]] * 8)
    found = meta_evaluate(runs, ["sr", "rpp"], **FEW).power_by_budget
    assert found.points == (1.0, 2.0)
    assert [each.value for each in found["sr", "power_fdr"]] == [1.0, 0.0]
    assert [each.value for each in found["rpp", "power_fdr"]] == [1.0, 1.0]
    assert [each.value for each in found["rpp", "success_rate"]] == [0.5, 1.0]


def test_power_by_pair_is_of_all_pairs_together() -> None:
    runs = random_runs(3, instances=30, systems=6)
    found = meta_evaluate(runs, **FEW)
    assert list(found.power_by_pair.points) == sorted(found.power_by_pair.points)
    for measure in MEASURES:
        for key in ("power_fwer", "power_fdr"):
            bins = [each.value for each in found.power_by_pair[measure, key]]
            whole = float(found.efficiency[measure, key][-1].value)
            assert abs(sum(bins) / 5 - whole) < 1e-12  # fifteen pairs, three to a bin


def test_what_cannot_be_had_says_why() -> None:
    nobody = Trajectories(torch.full((4, 2, 1, 1), 0.5), systems=("A", "B"))
    found = meta_evaluate(nobody, **FEW)
    assert found.power_by_budget.reason == "no run succeeds at a known time"
    assert "at least 15 pairs" in found.power_by_pair.reason
    assert "no run succeeds" in repr(found) and "no run succeeds" in found.to_markdown()
    assert found.to_dict()["power_by_budget"] == {"reason": "no run succeeds at a known time"}


def test_tables_name_the_budget_and_who_succeeds_by_then() -> None:
    runs = random_runs(4, instances=30, systems=6)
    text = meta_evaluate(runs, **FEW).to_markdown()
    assert "by budget" in text and "% solved)" in text
    assert "by success rate of the pair" in text
