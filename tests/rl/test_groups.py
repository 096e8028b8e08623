"""Whole groups: masks, pieces, and pools of past runs."""

from __future__ import annotations

import io
import json

import pytest
import torch

import torchpref as tp
from torchpref.rl import (
    GroupsInPieces,
    Pool,
    Trace,
    group_advantages,
    pool_rewards,
    preference_rewards,
    solved_groups,
    tied_groups,
)


def test_tied_groups_are_exactly_those_without_an_advantage() -> None:
    generator = torch.Generator().manual_seed(0)
    returns = torch.randint(0, 3, (500, 3, 2), generator=generator) / 2
    valid = torch.rand(500, 3, generator=generator) < 0.8
    for options in ({}, {"measure": "lr"}, {"anchor": None}, {"credit": "to-go"}):
        rewards = preference_rewards(returns, valid=valid, **options)
        tied = tied_groups(rewards, valid)
        advantages = rewards if "credit" in options else group_advantages(rewards, valid)
        assert torch.equal(tied, ~(advantages != 0).flatten(1).any(-1))
        assert 0 < tied.sum() < 500


def test_tied_groups_at_the_edges() -> None:
    rewards = torch.tensor([[0.1 + 0.2, 0.3], [1.0, torch.nan], [1.0, 0.0]], dtype=torch.float64)
    assert tied_groups(rewards).tolist() == [False, True, False]  # no threshold; one rollout is tied
    assert tied_groups(rewards, [[1, 0], [1, 1], [0, 1]]).tolist() == [True, True, True]  # type: ignore[arg-type]
    assert tied_groups(torch.zeros(2, 0)).tolist() == [True, True]
    with pytest.raises(tp.DataError, match="valid has shape"):
        tied_groups(rewards, torch.ones(3, dtype=torch.bool))
    with pytest.raises(tp.DataError, match="rewards must be"):
        tied_groups(torch.zeros(3))


def test_solved_groups() -> None:
    returns = torch.tensor([[[0.5, 1.0], [0.0, 0.5]], [[0.5, 0.5], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    assert solved_groups(returns).tolist() == [True, False, True]
    assert solved_groups(returns, how="all").tolist() == [False, False, True]
    lengths, valid = torch.tensor([[1, 2], [2, 2], [2, 2]]), torch.tensor([[True, True], [False, False], [True, True]])
    assert solved_groups(returns, lengths, valid).tolist() == [False, False, True]
    assert solved_groups(returns, lengths, valid, how="all").tolist() == [False, False, True]
    with pytest.raises(tp.UsageError, match="how must be"):
        solved_groups(returns, how="none")  # type: ignore[arg-type]


def test_groups_in_pieces_are_handed_out_whole() -> None:
    groups = GroupsInPieces(3)
    assert groups.add("a", [1.0], "first") is None
    assert groups.add("b", [0.5]) is None
    assert groups.add("a", None, "second") is None
    assert groups.waiting == {"a": 2, "b": 1}
    assert groups.add("a", [0.0, 1.0], "third") == (
        [Trace((1.0,)), None, Trace((0.0, 1.0))],
        ["first", "second", "third"],
    )
    assert groups.give_up("b") == ([Trace((0.5,)), None, None], [None] * 3)
    assert groups.waiting == {}
    with pytest.raises(tp.DataError, match="no rollout of group 'b' waits"):
        groups.give_up("b")
    with pytest.raises(tp.UsageError, match="at least two"):
        GroupsInPieces(1)


def test_a_pool_gives_the_rewards_of_pool_rewards() -> None:
    pool = Pool(2, clock="turns")
    runs = [
        {"returns": [0.5, 1.0], "times": [2, 5]},
        {"returns": [1.0], "times": [3]},
        {"returns": [0.5], "times": [1]},
    ]
    pool.add(["a", "a", "b"], runs, now=1)
    mine = [{"returns": [1.0], "times": [4]}, {"returns": [0.5], "times": [2]}, [], None]
    rewards = pool.rewards(["a", "b", "b", "c"], mine, now=2)
    one = {"lengths": None, "clock": "turns"}
    against_a = pool_rewards(
        torch.tensor([[[1.0]]]), pool_returns=torch.tensor([[0.5, 1.0], [1.0, 1.0]]), times=torch.tensor([[[4.0]]]),
        pool_times=torch.tensor([[2.0, 5.0], [3.0, 3.0]]), **one,
    )  # fmt: skip
    assert rewards.tolist() == [pytest.approx(float(against_a)), pytest.approx(-0.49 * 0.5), pytest.approx(-0.245), 0.0]
    # A task without runs: the anchor alone.
    assert pool.rewards(["new", "new"], [mine[0], mine[1]]).tolist() == [1.0, 0.0]
    assert pool.rewards([], []).shape == (0,)


def test_a_pool_forgets_and_remembers() -> None:
    pool = Pool(2, age=3)
    pool.add(["t"] * 3, [[0.25], [0.5], [0.75]], now=0)
    pool.add([torch.tensor(7), "t"], [[1.0], None], now=2)
    assert [run.returns for run in pool.runs("t")] == [(0.5,), (0.75,)]
    assert [run.returns for run in pool.runs(7, now=5)] == [(1.0,)]
    assert pool.runs("t", now=4) == []
    assert len(pool) == 3
    stored = io.BytesIO()
    torch.save(pool.state_dict(), stored)
    stored.seek(0)
    for state in (torch.load(stored, weights_only=True), json.loads(json.dumps(pool.state_dict()))):
        again = Pool(2, age=3)
        again.load_state_dict(state)
        assert again.state_dict() == pool.state_dict()
        assert torch.equal(again.rewards(["t"], [[1.0]]), pool.rewards(["t"], [[1.0]]))
    smaller = Pool(1)
    smaller.load_state_dict(pool.state_dict())
    assert [run.returns for run in smaller.runs("t")] == [(0.75,)]


def test_what_a_pool_refuses() -> None:
    with pytest.raises(tp.UsageError, match="at least one run"):
        Pool(0)
    with pytest.raises(tp.UsageError, match="outscore"):
        Pool(3, weight=0.7)
    with pytest.raises(tp.UsageError, match="did you mean"):
        Pool(3, clock="turn")
    pool = Pool(3)
    with pytest.raises(tp.DataError, match="2 tasks for 1 traces"):
        pool.add(["a", "b"], [[1.0]])
    pool.add(["a"], [{"returns": [1.0], "times": [2]}])
    with pytest.raises(tp.DataError, match="pool_times are given and times are not"):
        pool.rewards(["a"], [[1.0]])
    assert pool.rewards(["a"], [[]]).tolist() == [pytest.approx(-0.49)]


def test_several_clocks() -> None:
    """Tied in turns, told apart by seconds; and two clocks that disagree."""
    returns = torch.ones(1, 2, 1)
    turns, seconds = torch.tensor([[[3.0], [3.0]]]), torch.tensor([[[9.0], [4.0]]])
    for times, first in (({"turns": turns, "seconds": seconds}, -1.0), ({"seconds": seconds, "turns": turns}, -1.0)):
        assert preference_rewards(returns, times=times, anchor=None)[0].tolist() == [first, -first]
        assert preference_rewards(returns, times=times, anchor=None, combine="mean")[0].tolist() == [
            first / 2,
            -first / 2,
        ]
    against = {"turns": torch.tensor([[[2.0], [3.0]]]), "seconds": seconds}
    assert preference_rewards(returns, times=against, anchor=None)[0].tolist() == [1.0, -1.0]
    assert preference_rewards(returns, times=against, anchor=None, combine="mean")[0].tolist() == [0.0, 0.0]
