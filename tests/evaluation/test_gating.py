"""The check for continuous integration: what fails, what passes, and the line that says why."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import torchpref as tp
from torchpref.errors import DataError, UsageError
from torchpref.evaluation.gating import gate


def versions(won: int, lost: int, tied: int = 0) -> tp.Trajectories:
    """``new`` solves ``won`` instances that ``base`` does not, and the other way round."""
    returns = torch.zeros(won + lost + tied, 2, 1, 1)
    returns[:won, 1] = 1
    returns[won : won + lost, 0] = 1
    return tp.Trajectories(returns, systems=["base", "new"])


def test_a_new_system_that_is_worse_fails():
    result = gate(versions(3, 15, 20), "base", "new")
    assert result.exit_code == 1 and result.worse
    assert result.p == pytest.approx(988 / 2**18)  # 1 + 18 + 153 + 816 of 2^18 patterns
    assert result.mean == pytest.approx(-12 / 38) and result.low < result.mean < result.high < 0
    assert result.line.startswith("worse: LR by steps of new against base: mean -0.316, 90 % interval -0.473 to")


@pytest.mark.parametrize(("won", "lost"), [(15, 3), (9, 9), (8, 10), (0, 0), (1, 4)])
def test_one_that_is_not_passes(won, lost):
    result = gate(versions(won, lost, 10), "base", "new")
    assert result.exit_code == 0
    assert result.verdict == "undecided" and result.line.startswith("undecided: not significantly worse")
    assert (result.p == 1) == (won >= lost)


def test_too_few_decided_instances_are_pointed_out():
    result = gate(versions(0, 4, 10), "base", "new")
    assert "too few to tell, 5 decided instances are the least" in result.line
    assert gate(versions(0, 5, 10), "base", "new").exit_code == 1


def test_a_margin_lets_small_losses_pass():
    runs = versions(100, 150, 250)
    assert gate(runs, "base", "new").exit_code == 1
    assert gate(runs, "base", "new", margin=0.02).exit_code == 1
    assert gate(runs, "base", "new", margin=0.09).exit_code == 0
    result = gate(runs, "base", "new", margin=0.02)
    assert result.method == "exact unconditional (Tango's score)" and "beyond the margin 0.02" in result.line
    assert (result.p <= 0.05) == (result.high < -0.02)
    fine = gate(runs, "base", "new", margin=0.25)
    assert fine.verdict == "fine" and fine.line.startswith("fine within the margin 0.25") and fine.exit_code == 0
    assert fine.p_fine <= 0.05 and gate(runs, "base", "new", margin=0.11).verdict == "undecided"


def test_undecided_fails_where_that_is_asked_for():
    for options, code in (({}, 0), ({"undecided": "fail"}, 3)):
        result = gate(versions(8, 10, 10), "base", "new", **options)
        assert (result.verdict, result.exit_code) == ("undecided", code)
    assert gate(versions(0, 20), "base", "new", undecided="fail").exit_code == 1
    assert gate(versions(150, 100, 250), "base", "new", margin=0.1, undecided="fail").exit_code == 0
    with pytest.raises(UsageError, match="'pass' or 'fail'"):
        gate(versions(1, 2), "base", "new", undecided="no")


def test_which_part_decides_is_said():
    late = torch.ones(40, 2, 1, 3)
    late[:30, 1, 0, :2] = 0
    late[30:, 0, 0, :2] = 0
    slower = gate(tp.Trajectories(late, systems=["base", "new"]), "base", "new")
    assert slower.part == "sooner" and slower.line.startswith("worse: slower, not worse at the task: LR")
    assert "sooner decides most: new is slower" in slower.line
    less = gate(versions(3, 15, 20), "base", "new")
    assert less.part == "solved more" and less.split["solved more"] == pytest.approx(less.mean)
    assert gate(versions(3, 15, 20), "base", "new", measure="rpp").part == "solved more"
    assert gate(versions(4, 4, 9), "base", "new").part is None


def test_how_many_instances_it_takes_is_said():
    assert gate(versions(3, 6), "base", "new").needed is None
    assert "too few decided to plan" in gate(versions(3, 6), "base", "new").line
    result = gate(versions(20, 30, 50), "base", "new")
    assert 200 < result.needed < 400 and f"power 0.8 needs about {result.needed} instances" in result.line
    assert gate(versions(9, 9), "base", "new").to_dict()["needed"] is None


def test_betting_on_the_mean():
    losses = gate(versions(5, 40, 20), "base", "new", test="mean")
    assert losses.worse and losses.method == "betting on the mean" and losses.mean_verdict is None
    # Nineteen small losses to one large win have a mean of 0: flips call them worse far too often, bets do not.
    rng = np.random.default_rng(0)
    flipped = bets = 0
    for seed in range(200):
        delta = torch.where(torch.from_numpy(rng.random(20)) < 0.05, 0.95, -0.05)
        returns = torch.stack([torch.where(delta < 0, -delta, 0), torch.where(delta > 0, delta, 0)], 1)[..., None, None]
        runs = tp.Trajectories(returns, systems=["base", "new"])
        result = gate(runs, "base", "new", measure="pr", seed=seed)
        flipped += result.worse
        bets += gate(runs, "base", "new", measure="pr", test="mean", seed=seed).worse
        assert result.mean_verdict == "undecided" or result.worse
    assert flipped > 60 and bets <= 10


def test_a_least_effect_lets_trifles_pass():
    runs = versions(100, 150, 250)
    result = gate(runs, "base", "new", min_effect=0.2)
    assert result.exit_code == 0 and "significant, but smaller than 0.2" in result.line
    assert gate(runs, "base", "new", min_effect=0.05).exit_code == 1


@pytest.mark.slow
def test_false_alarms_stay_below_alpha():
    rng = np.random.default_rng(0)
    alarms = {0.0: 0, 0.1: 0}
    for _ in range(400):
        coins = rng.random(60)
        runs = versions(
            int((coins < 0.25).sum()), int(((coins >= 0.25) & (coins < 0.5)).sum()), int((coins >= 0.5).sum())
        )
        alarms[0.0] += gate(runs, "base", "new").worse
        shifted = versions(
            int((coins < 0.2).sum()), int(((coins >= 0.2) & (coins < 0.5)).sum()), int((coins >= 0.5).sum())
        )
        alarms[0.1] += gate(shifted, "base", "new", margin=0.1).worse
    assert 0 < alarms[0.0] <= 29 and 0 < alarms[0.1] <= 29  # 5 % and two standard errors


def test_it_converts_and_its_options_are_checked():
    assert json.loads(json.dumps(gate(versions(1, 2), "base", "new", measure="SR").to_dict()))["exit_code"] == 0
    one = gate(versions(0, 1), "base", "new", margin=0.1)
    assert one.to_frame().height == 1
    assert one.exit_code == 0 and one.to_dict()["low"] == -1.0
    for options in ({"margin": -0.1}, {"margin": 1}, {"min_effect": 2}, {"alpha": 0}):
        with pytest.raises(UsageError):
            gate(versions(1, 2), "base", "new", **options)
    with pytest.raises(UsageError, match="no system 'bse'; did you mean 'base'"):
        gate(versions(1, 2), "bse", "new")
    apart = tp.Trajectories(torch.zeros(2, 2, 1, 1), present=torch.eye(2).bool().unsqueeze(-1), systems=["base", "new"])
    with pytest.raises(DataError, match="share no instance"):
        gate(apart, "base", "new")


def uneven(first_runs: int, second_runs: int, gone: int = 0) -> tp.Trajectories:
    """Thirty tasks of which each system solves others surely and a third of the rest; ``gone`` runs of the new one miss."""
    rng = np.random.default_rng(20)
    chance = np.where(rng.random((30, 2)) < 0.45, 1.0, 0.0)
    returns = torch.zeros(30, 2, 5, 1)
    draws = rng.random((30, 2, 5))
    returns[..., 0] = torch.from_numpy((draws < chance[..., None] * 0.9 + 0.05).astype(float))
    present = torch.zeros(30, 2, 5, dtype=torch.bool)
    present[:, 0, :first_runs] = True
    present[:, 1, :second_runs] = True
    present.flatten(0, 1)[1 : 1 + 2 * gone : 2, 0] = False
    return tp.Trajectories(returns, present=present, systems=["base", "new"])


@pytest.mark.parametrize("measure", ["sr", "lr"])
def test_one_missing_run_does_not_turn_the_verdict(measure):
    even = gate(uneven(5, 5), "base", "new", measure=measure)
    for runs in (uneven(5, 5, gone=1), uneven(4, 5), uneven(5, 4)):
        result = gate(runs, "base", "new", measure=measure)
        assert result.worse == even.worse and not result.worse
        assert result.method == "larger of sign flips and label permutation"
        assert abs(result.p - even.p) < 0.2 or result.mean * even.mean <= 0


def test_thirty_tasks_four_runs_against_five_of_the_shared_case():
    path = Path(__file__).parents[2] / "../shared/cases/20-trials-unequal/runs.csv"
    if not path.exists():
        pytest.skip("needs ../shared/cases/20-trials-unequal/runs.csv")
    runs = tp.read(path)
    for base, new in (("A", "B"), ("B", "A")):
        assert not gate(runs, base, new, measure="sr").worse
