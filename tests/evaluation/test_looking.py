"""The gate that may stop: verdicts, the order, what waits, what the state file refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import torchpref as tp
from torchpref.errors import DataError, UsageError
from torchpref.evaluation.looking import planned_gate

N = 60
NAMES = [f"t{i:02}" for i in range(N)]


def runs_of(base, new, present=None, families=None, trials=1):
    """Success of both on every instance, in the order of names; new may be shorter."""
    returns = torch.zeros((N, 2, trials, 1), dtype=torch.float64)
    here = torch.zeros((N, 2, trials), dtype=torch.bool)
    for column, outcomes in enumerate((base, new)):
        for row, outcome in enumerate(outcomes):
            if outcome is not None:
                for trial, value in enumerate(outcome if isinstance(outcome, list) else [outcome]):
                    returns[row, column, trial], here[row, column, trial] = value, True
    return tp.Trajectories(returns, present=here, systems=["base", "new"], instances=NAMES, families=families)


def gate(runs, **options):
    options = {"planned": N, "measure": "sr", "order": NAMES, **options}
    return planned_gate(runs, "base", "new", **options)


def test_verdicts_and_exit_codes():
    worse = gate(runs_of([1] * N, [0] * 12))
    assert (worse.verdict, worse.exit_code, worse.seen) == ("worse", 1, 12) and worse.stopped == 7
    assert "established after 7 instances" in worse.line
    going = gate(runs_of([1] * N, [0] * 5))
    assert (going.verdict, going.exit_code, going.next[0]) == ("go on", 4, "t05")
    futile = gate(runs_of([0] * N, [1] * 30))
    assert (futile.verdict, futile.exit_code, futile.futile) == ("undecided", 0, True)
    assert gate(runs_of([0] * N, [1] * 30), undecided="fail").exit_code == 3
    fine = gate(runs_of([0] * N, [1] * 30), margin=0.2)
    assert (fine.verdict, fine.exit_code) == ("fine", 0) and fine.stopped < 15
    over = gate(runs_of([1, 0] * 30, [1, 0] * 30))
    assert over.verdict == "undecided" and not over.futile and over.seen == N


def test_nothing_yet():
    empty = gate(runs_of([1] * N, []))
    assert (empty.verdict, empty.seen, empty.next[:2]) == ("go on", 0, ("t00", "t01"))
    json.dumps(empty.to_dict(), allow_nan=False)
    assert gate(runs_of([1] * N, [0] * 12)).to_frame().shape == (12, 3)


def test_only_the_unbroken_stretch_counts():
    outcomes = [0] * 4 + [None] + [0] * 20
    found = gate(runs_of([1] * N, outcomes))
    assert (found.seen, found.waiting, found.verdict) == (4, 20 + 35, "go on") or found.seen == 4
    assert "wait" in found.line
    given_up = gate(runs_of([1] * N, outcomes), given_up=["t04"])
    assert given_up.verdict == "worse" and given_up.decided == 24 and given_up.stopped == 8
    assert gate(runs_of([1] * N, outcomes), given_up="gaps").stopped == 8


def test_what_comes_after_the_planned_instances_is_not_looked_at():
    found = gate(runs_of([1] * N, [1] * 20 + [0] * 40), planned=20)
    assert (found.planned, found.seen, found.verdict) == (20, 20, "undecided")


def test_the_last_look_may_spend_the_rest():
    runs = runs_of([1] * N, [0] * 5)
    assert gate(runs).verdict == "go on"
    final = gate(runs, final=True)
    assert final.verdict == "worse" and final.spent <= 0.05
    early = gate(runs_of([1] * N, [0] * 3), final=True)
    assert early.verdict == "undecided" and "no run is to come" in early.line


def test_a_least_effect_is_kept_to():
    outcomes = [0] * 8 + [1] * 52
    assert gate(runs_of([1] * N, outcomes)).verdict == "worse"
    assert gate(runs_of([1] * N, outcomes), min_effect=0.5).verdict == "worse"  # it was below −.5 when it crossed
    weak = [0, 1] * 30
    assert gate(runs_of([1] * N, weak), min_effect=0.9).verdict == "undecided"


def test_bets_on_the_mean():
    found = gate(runs_of([1] * N, [0] * 12), test="mean")
    assert (found.verdict, found.method, found.stopped) == ("worse", "betting", 7)
    json.dumps(found.to_dict(), allow_nan=False)


def test_graded_preferences_say_what_the_test_of_the_mean_says():
    base = [1] * N
    found = gate(runs_of(base, [0.5] * 40), measure="pr")
    assert found.stopped == 20 and found.agrees is True and "agrees" in found.line


def test_unequal_trials_and_families():
    unequal = gate(runs_of([[1, 1, 1]] * N, [0] * 20, trials=3))
    assert "random labels" in unequal.method and unequal.verdict == "worse"
    families = [f"f{i // 6}" for i in range(N)]
    found = gate(runs_of([1] * N, [0] * 30, families=families))
    assert "by family" in found.method and found.stopped > 18
    by_bets = gate(runs_of([1] * N, [0] * 42, families=families), test="mean")
    assert by_bets.stopped == 42  # seven complete families of losses


def test_a_seeded_order_is_the_same_as_next_runs():
    runs = runs_of([1] * N, [1] * N)
    order = tp.next_runs(runs, planned=N, seed=3).order
    assert gate(runs, order=None, seed=3, planned=10).sums == gate(runs, order=order, seed=3, planned=10).sums


def test_the_state_keeps_later_looks_to_what_was_named(tmp_path):
    state = tmp_path / "looks.json"
    base = [1] * N
    gate(runs_of(base, [0, 1, 0]), state=state)
    gate(runs_of(base, [0, 1, 0, 0, 1]), state=state)
    record = json.loads(state.read_text())
    assert [entry["seen"] for entry in record["looks"]] == [3, 5]
    before = state.read_bytes()
    for changed, words in (
        ({"measure": "lr"}, "the measure may not change between looks: it was 'sr' at the first look and is 'lr' now"),
        ({"planned": 50}, "number of planned instances"),
        ({"order": NAMES[1:] + NAMES[:1]}, "order of instances may not change between looks: position 1 was 't00'"),
        ({"alpha": 0.1}, "alpha may not change"),
        ({"margin": 0.1}, "margin may not change"),
    ):
        with pytest.raises(UsageError, match=words):
            gate(runs_of(base, [0, 1, 0, 0, 1]), state=state, **changed)
    with pytest.raises(UsageError, match="families of tasks may not change"):
        gate(runs_of(base, [0, 1, 0, 0, 1], families=["f"] * N), state=state)
    with pytest.raises(UsageError, match="the systems may not change"):
        planned_gate(runs_of(base, [0] * 5), "new", "base", planned=N, measure="sr", order=NAMES, state=state)
    assert state.read_bytes() == before


def test_the_state_notices_results_that_change(tmp_path):
    state = tmp_path / "looks.json"
    base = [1] * N
    gate(runs_of(base, [0, 1, 0, 0, 1]), state=state)
    with pytest.raises(DataError, match="instance 't03' was used at an earlier look"):
        gate(runs_of(base, [0, 1, 0]), state=state)
    with pytest.raises(DataError, match="'t01' was used with 1 and 1 runs and has 1 and 2 runs now"):
        gate(runs_of(base, [0, [1, 0], 0, 0, 1, 1], trials=2), state=state)
    with pytest.raises(DataError, match="'t02' has another result"):
        gate(runs_of(base, [0, 1, 1, 0, 1]), state=state)
    late = gate(runs_of(base, [0, 1, 0, 0, 1, None, 0]), state=state)  # out of order: it waits
    assert late.seen == 5 and gate(runs_of(base, [0, 1, 0, 0, 1, 0, 0]), state=state).seen == 7


def test_a_damaged_state_is_no_state(tmp_path):
    for text in ("{", "[]", '{"torchpref_looks": 9}', '{"torchpref_looks": 1, "named": 3}'):
        path = tmp_path / "state.json"
        path.write_text(text)
        with pytest.raises(DataError, match="state"):
            gate(runs_of([1] * N, [0]), state=path)
        assert path.read_text() == text
    with pytest.raises(UsageError, match="cannot be written"):
        gate(runs_of([1] * N, [0]), state=tmp_path / "nowhere" / "state.json")


def test_bad_input():
    runs = runs_of([1] * N, [0] * 5)
    for options, words in (
        ({"planned": 0}, "at least 1"),
        ({"planned": 61, "order": None}, "61 instances are planned and the logs name 60"),
        ({"planned": 61}, "the order names 60"),
        ({"order": [*NAMES[:-1], "t00"]}, "stands 2 times"),
        ({"given_up": ["x"]}, "'x' was given up but is not among"),
        ({"given_up": "all"}, "'gaps'"),
        ({"effect": 2}, "effect"),
        ({"test": "t"}, "'sign-flip' or 'mean'"),
        ({"undecided": "maybe"}, "'pass' or 'fail'"),
        ({"weights": "benchmark"}, "count every instance once"),
        ({"alpha": 1.0}, "between 0 and 1"),
    ):
        with pytest.raises(UsageError, match=words):
            gate(runs, **options)
    with pytest.raises(UsageError, match="no system 'neu'"):
        planned_gate(runs, "base", "neu", planned=N)


@pytest.mark.slow
def test_false_stops_under_flipped_signs():
    """Systems with the same chance on every task: 2,000 gates that are looked at after every instance."""
    rng = np.random.default_rng(0)
    from torchpref.stats.sequential.spending import ternary_boundary

    for planned in (100, 165):
        chance = rng.random((4000, planned))
        delta = (rng.random(chance.shape) < chance).astype(int) - (rng.random(chance.shape) < chance)
        share = (ternary_boundary(delta, planned, 0.05).crossed > 0).mean()
        assert 0.035 < share < 0.058
