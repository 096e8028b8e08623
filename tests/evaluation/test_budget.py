"""Rankings within growing budgets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import torchpref as tp
from samples import graded_runs
from torchpref.errors import DataError, UsageError
from torchpref.evaluation.budget import budget_curves


def race() -> tp.Trajectories:
    """``fast`` solves 3 of 10 at 1, ``slow`` 6 of 10 at 5, ``late`` 9 of 10 at 20."""
    returns, times = torch.zeros(10, 3, 1, 1), torch.ones(10, 3, 1, 1)
    for system, (solved, when) in enumerate(((3, 1), (9, 20), (6, 5))):
        returns[:solved, system] = 1
        times[:, system] = when
    return tp.Trajectories(returns, times={"cost": times}, systems=["fast", "late", "slow"])


def test_the_lead_changes_as_the_budget_grows():
    curves = budget_curves(race(), budgets=[0.5, 1, 4, 5, 19, 20, 100])
    assert curves.leaders[1:] == (("fast",), ("fast",), ("slow",), ("slow",), ("late",), ("late",))
    assert curves.leader_changes == 2
    assert curves.solved[:, 1].tolist() == pytest.approx([0, 0, 0, 0, 0, 0.9, 0.9])
    crossings = curves.crossings(within=1)
    assert [(c.rising, c.falling, c.by) for c in crossings] == [
        ("slow", "fast", 5),
        ("late", "fast", 20),
        ("late", "slow", 20),
    ]
    assert curves.mean_preference[-1].tolist() == pytest.approx([-0.45, 0.45, 0])


def test_each_budget_is_the_ranking_of_runs_cut_there():
    runs = graded_runs(instances=30, systems=4)
    curves = budget_curves(runs, "rpp", budgets=6)
    for budget, score in zip(curves.budgets, curves.score, strict=True):
        fit = tp.bradley_terry(tp.preferences(runs.until(budget), "rpp"))
        assert torch.equal(score.nan_to_num(), fit.theta.nan_to_num())
    assert len(curves.budgets) == 6 and torch.equal(runs.until(curves.budgets[-1]).returns, runs.returns)


def test_it_converts_and_prints():
    curves = budget_curves(race(), budgets=3)
    assert json.loads(json.dumps(curves.to_dict()))["clock"] == "cost"
    assert curves.to_frame().height == 9
    assert "changes of the first place" in repr(curves)


def test_options_are_checked():
    for budgets in ([], [0], 0):
        with pytest.raises(UsageError):
            budget_curves(race(), budgets=budgets)
    nothing = tp.Trajectories(torch.zeros(2, 2, 1, 1))
    with pytest.raises(DataError, match="there is no budget to vary"):
        budget_curves(nothing)


def test_number_one_on_swe_bench_changes_twice():
    path = Path(__file__).parents[2] / "../shared/data/openhands_index.csv"
    if not path.exists():
        pytest.skip("the data in shared/data are not there")
    import polars as pl

    frame = pl.read_csv(path).filter(pl.col("benchmark") == "swe-bench", ~pl.col("system").str.contains("/"))
    frame = frame.filter(pl.col("resolved").is_not_null())
    systems, instances = (sorted(frame[name].unique().to_list()) for name in ("system", "instance"))
    shape = (len(instances), len(systems), 1)
    returns, present = torch.zeros(*shape, 1), torch.zeros(shape, dtype=torch.bool)
    cost = torch.full((*shape, 1), float("nan"), dtype=torch.float64)
    for system, instance, resolved, price in frame.select("system", "instance", "resolved", "cost_usd").iter_rows():
        place = instances.index(instance), systems.index(system)
        present[place], returns[place] = True, resolved
        cost[place] = float("nan") if price is None else price
    runs = tp.Trajectories(returns, times={"cost": cost}, present=present, systems=systems, instances=instances)
    solved = budget_curves(runs, budgets=[0.5, 1.0, 1.5, 1.9, 2.2, 3.0])
    assert [lead[0] for lead in solved.leaders] == ["MiniMax-M3"] * 3 + ["claude-opus-4-8"] + ["claude-fable-5"] * 2
