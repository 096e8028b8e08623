"""Boards while runs arrive: pairs, places, who needs more runs, and what comes next."""

from __future__ import annotations

import json
from itertools import permutations

import numpy as np
import pytest
import torch

import torchpref as tp
from torchpref.errors import DataError, UsageError
from torchpref.evaluation.monitor import without_replacement
from torchpref.stats.sequential.paths import UNIT

NAMES = [f"t{i:02}" for i in range(40)]


def board(rates, seen=40, seed=0, **options):
    """Systems that solve the first share of a shuffled list each; every one ran the first ``seen``."""
    rng = np.random.default_rng(seed)
    returns = np.stack([rng.permutation(np.arange(40) < rate * 40) for rate in rates], axis=1)[:, :, None, None]
    present = torch.zeros((40, len(rates), 1), dtype=torch.bool)
    for column, count in enumerate([seen] * len(rates) if isinstance(seen, int) else seen):
        present[:count, column] = True
    return tp.Trajectories(
        torch.from_numpy(returns.astype(float)), present=present, systems=[f"s{i}" for i in range(len(rates))],
        instances=NAMES, **options,
    )  # fmt: skip


def look(runs, **options):
    return tp.monitor(runs, **{"planned": 40, "measure": "sr", "order": NAMES, **options})


def test_all_runs_settle_this_benchmark_exactly():
    runs = board([0.9, 0.5, 0.5, 0.1])
    found = look(runs)
    mean = tp.preferences(runs, "sr").mean()
    assert torch.equal(torch.from_numpy(found.beats), mean > 0) and found.settled
    assert look(runs, goal="top1").top == ("s0",)


def test_a_clear_first_place_comes_early():
    found = look(board([1.0, 0.1, 0.05, 0.0], seen=16), goal="top1")
    assert found.inside == ("s0",) and found.top == ("s0",) and set(found.outside) == {"s1", "s2", "s3"}
    assert found.runs == 64 and found.runs_planned == 160 and not found.open
    assert "64 of 160 runs spent" in found.status
    assert [row["state"] for row in found.rows()] == ["in", "out", "out", "out"]
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.to_frame().height == 4 and "in" in repr(found)


def test_systems_that_stop_keep_their_pairs():
    """A system that is out stops; the others go on, and what was settled about it stays."""
    runs = board([1.0, 0.6, 0.55, 0.0], seen=[20, 20, 20, 12])
    found = look(runs, goal="top1")
    assert found.beats[0, 3] and found.seen.tolist() == [20, 20, 20, 12]


@pytest.mark.parametrize("claim", ["this benchmark", "new tasks"])
def test_later_runs_do_not_unsettle(claim):
    runs_at = [board([0.8, 0.5, 0.3], seen=n) for n in range(4, 41, 4)]
    before = np.zeros((3, 3), dtype=bool)
    for runs in runs_at:
        found = look(runs, claim=claim, given_up=())
        assert (found.beats | ~before).all()
        before = found.beats


def test_new_tasks_claim_less():
    runs = board([0.6, 0.5, 0.4])
    assert look(runs, claim="new tasks").beats.sum() <= look(runs).beats.sum()
    assert look(runs, claim="new tasks").method == "spending, exact"


def test_new_tasks_with_graded_preferences_and_many_pairs():
    rng = np.random.default_rng(0)
    returns = torch.from_numpy(np.clip(np.linspace(0.9, 0.1, 4) + rng.normal(0, 0.1, (40, 4)), 0, 1))[..., None, None]
    runs = tp.Trajectories(returns, instances=NAMES)
    found = look(runs, measure="pr", claim="new tasks")
    assert "random paths" in found.method and found.beats[0, 3]


def test_whatever_comes_the_sign_is_kept():
    """For every order of a small benchmark: what is settled without α by certainty is right, and bets rarely err."""
    values = np.array([1, 1, 1, -1, 0, 0])
    for order in set(permutations(values.tolist())):
        delta = np.array([order]) * UNIT
        for n in range(1, 7):
            step, side = without_replacement(delta[:, :n], np.array([n]), 6, 1e-9)
            assert side[0] in (0, 1) and (n < 6 or side[0] == 1)


def test_identical_systems_are_rarely_settled_wrongly_under_no_difference():
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(300):
        half = rng.permutation(np.repeat([1, -1, 0], [10, 10, 20]))[None] * UNIT
        step, _ = without_replacement(half, np.array([40]), 40, 0.05)
        wrong += step[0] > 0
    assert wrong <= 24


def test_goals():
    runs = board([0.9, 0.5, 0.1])
    assert look(runs, goal="top 2").goal == "top2"
    for goal in ("top0", "best", "top3"):
        with pytest.raises(UsageError):
            look(runs, goal=goal)


def test_a_cycle_is_said():
    """A beats B on 2/3, B beats C, C beats A."""
    ranks = np.array([[2, 1, 0], [0, 2, 1], [1, 0, 2]])[np.arange(39) % 3] / 2
    runs = tp.Trajectories(torch.from_numpy(ranks)[..., None, None], systems=["A", "B", "C"], instances=NAMES[:39])
    found = tp.monitor(runs, planned=39, measure="lr", order=NAMES[:39], goal="top1")
    assert sorted(found.cycle) == ["A", "B", "C"] and found.top is None and "beats" in found.status


def test_the_state_refuses_changes(tmp_path):
    state = tmp_path / "board.json"
    look(board([0.9, 0.5], seen=10), state=state)
    look(board([0.9, 0.5], seen=12), state=state)
    for changed, words in (
        ({"measure": "lr"}, "the measure"), ({"goal": "top1"}, "goal"), ({"claim": "new tasks"}, "claim"),
        ({"planned": 30}, "planned"), ({"order": NAMES[::-1]}, "order"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=words):
            look(board([0.9, 0.5], seen=12), state=state, **changed)
    with pytest.raises(DataError, match="s0: instance 't08' was used"):
        look(board([0.9, 0.5], seen=8), state=state)
    with pytest.raises(DataError, match="another result"):
        look(board([0.9, 0.5], seen=12, seed=1), state=state)
    with pytest.raises(UsageError, match="the systems may not change"):
        look(board([0.9, 0.5, 0.2], seen=12), state=state)


def test_next_runs():
    order = tp.next_runs(instances=NAMES, planned=20, seed=1).order
    assert len(order) == 20 and order == tp.next_runs(instances=NAMES[::-1], planned=20, seed=1).order
    runs = board([1.0, 0.1, 0.05, 0.0], seen=16)
    plain = tp.next_runs(runs, planned=40, order=NAMES, count=2)
    assert plain.next["s1"] == ("t16", "t17") and plain.done == ()
    settled = tp.next_runs(runs, planned=40, order=NAMES, goal="top1", measure="sr")
    assert settled.done == ("s0", "s1", "s2", "s3") and settled.to_frame().height == 0
    with pytest.raises(UsageError, match="name the instances"):
        tp.next_runs()


def test_bad_input():
    with pytest.raises(UsageError, match="at least two systems"):
        look(board([0.5]))
    with pytest.raises(UsageError, match="'this benchmark' or 'new tasks'"):
        look(board([0.5, 0.6]), claim="both")
    with pytest.raises(UsageError, match="between 0 and 1"):
        look(board([0.5, 0.6]), alpha=0)
