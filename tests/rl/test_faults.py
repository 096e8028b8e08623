"""What crashed, was silent or was lost in training, one test each."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import torchpref as tp
from torchpref.rl import (
    PreferenceReward,
    curve_of_rewards,
    group_advantages,
    pad_traces,
    pool_rewards,
    preference_rewards,
    ragged_advantages,
    ragged_rewards,
)
from torchpref.rl.traces import Trace

TURNS = {"returns": [0.5, 1.0], "times": [1, 2]}


# ----------------------------------------------------------------------------------------------- batches without traces


@pytest.mark.parametrize("clock", ["turns", "steps", "seconds"])
def test_a_batch_without_a_tool_call_keeps_its_clock(clock: str) -> None:
    """The first batch in which nobody calls a tool used to end the training."""
    reward = PreferenceReward("trace", 2, clock=clock, resolution=1.0)
    logged: dict[str, float] = {}
    empty = {"returns": [], "times": []}
    for traces in ([[], []], [None, None], [empty, empty], [[], None]):
        values = reward(["a"] * 2, [""] * 2, trace=traces, log_metric=logged.__setitem__)
        assert values == [None if trace is None else 0.0 for trace in traces]
    assert logged == {"preference/success": 0.0, "preference/tied_groups": 1.0}
    assert reward(["a"] * 2, [""] * 2, trace=[TURNS, []]) == [1.49, -0.49]


def test_empty_traces_go_with_any_clock() -> None:
    padded = pad_traces([[], None, [], []], 2)
    assert padded["times"] is not None and padded["times"].shape == (2, 2, 0)
    assert preference_rewards(**padded, clock="tokens").tolist() == [[0.0, 0.0], [0.0, 0.0]]
    with pytest.raises(tp.UsageError, match="needs times"):
        preference_rewards(**pad_traces([[1.0], []], 2), clock="tokens")


# --------------------------------------------------------------------------------------------------------- rounding, NaN


def test_a_float32_sum_of_tenths_is_success() -> None:
    above = float(torch.full((10,), 0.1).sum())
    assert above > 1
    returns = torch.tensor([[[0.5, above], [0.5, 0.5]]])
    assert preference_rewards(returns).tolist() == [[pytest.approx(1.245), pytest.approx(-0.245)]]
    assert preference_rewards(-1e-7 * torch.ones(1, 2, 1)).tolist() == [[0.0, 0.0]]
    assert Trace((above,)).returns == (above,)
    for wrong in (1.000001, -1e-6, math.inf):
        with pytest.raises(tp.DataError, match="not in"):
            preference_rewards(torch.full((1, 2, 1), wrong, dtype=torch.float64))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_rounding_is_tolerated_where_nothing_may_be_looked_at() -> None:
    returns = torch.tensor([[[0.5, 1.0000001], [0.5, 0.5], [0.5, 1.5]]])
    compiled = torch.compile(preference_rewards, fullgraph=True, backend="eager")
    rewards = compiled(returns)
    assert rewards[0, :2].tolist() == [pytest.approx(1.245), pytest.approx(-0.245)]
    assert rewards[0, 2].isnan()
    advantages = group_advantages(rewards)
    assert advantages[0, 2].isnan()
    torch.testing.assert_close(advantages[0, :2], torch.tensor([0.745, -0.745]))
    assert ragged_advantages(rewards.flatten(), ["a"] * 3)[0] == advantages[0, 0]


# ------------------------------------------------------------------------------------------------ clocks, ids, and dtypes


def test_one_sided_times_are_refused() -> None:
    returns, pool = torch.ones(1, 2, 3), torch.ones(4, 3)
    times = torch.arange(1.0, 4.0).expand(1, 2, 3)
    with pytest.raises(tp.DataError, match="times are given and pool_times are not"):
        pool_rewards(returns, None, pool, times=times)
    with pytest.raises(tp.DataError, match="pool_times are given and times are not"):
        pool_rewards(returns, None, pool, pool_times=torch.ones(4, 3))


def test_group_ids_are_told_apart_by_value() -> None:
    returns = torch.tensor([[1.0], [0.0], [1.0], [0.0]])
    ids = torch.tensor([3, 3, 8, 8])
    wanted = ragged_rewards(returns, None, ids)
    for group in (list(ids), ids.numpy(), list(ids.numpy()), ids.tolist(), ["a", "a", "b", "b"], np.array([*"aabb"])):
        assert torch.equal(ragged_rewards(returns, None, group), wanted)
        assert ragged_advantages(wanted, group).tolist() == pytest.approx([0.99, -0.99] * 2)
    with pytest.raises(tp.DataError, match="rollout 0 is \\[1\\], which cannot be told apart"):
        ragged_rewards(returns, None, [[1], [1], [2], [2]])  # type: ignore[list-item]
    with pytest.raises(tp.DataError, match="tensor of shape \\[2\\]"):
        ragged_rewards(returns, None, [torch.zeros(2)] * 4)


def test_clock_names_are_checked_and_folded() -> None:
    returns = torch.tensor([[[1.0], [1.0]]])
    times = torch.tensor([[[0.0], [4.0]]])
    for name in ("tokens", "Tokens", " TOKENS "):  # a time of 0 is an unknown one, and ties
        assert preference_rewards(returns, times=times, clock=name, anchor=None).tolist() == [[0.0, 0.0]]
    assert preference_rewards(returns, times=times, clock="characters", anchor=None).tolist() == [[1.0, -1.0]]
    for name, meant in (("token", "tokens"), ("Turn", "turns"), ("second", "seconds"), ("costs", "cost")):
        with pytest.raises(tp.UsageError, match=f"did you mean '{meant}'"):
            preference_rewards(returns, times=times, clock=name)
    for bad in ("", 3):
        with pytest.raises(tp.UsageError, match="named by a text"):
            preference_rewards(returns, times=times, clock=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_times_that_lose_ticks_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(tp.DataError, match=f"times in {str(dtype)[6:]} lose ticks"):
        preference_rewards(torch.ones(1, 2, 1), times=torch.ones(1, 2, 1, dtype=dtype), clock="tokens")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ragged_rewards_of_a_known_shape_compile_into_one_graph() -> None:
    returns = torch.rand(6, 4).cummax(-1).values
    group = torch.tensor([0, 1, 0, 1, 2, 0])

    def both(returns: torch.Tensor, group: torch.Tensor) -> torch.Tensor:
        return ragged_advantages(ragged_rewards(returns, None, group, shape=(3, 3)), group, shape=(3, 3))

    wanted = both(returns, group)
    assert torch.equal(torch.compile(both, fullgraph=True, backend="eager")(returns, group), wanted)


def test_arrays_and_lists_are_taken() -> None:
    rows = [[[0.0, 1 / 3, 1.0], [1 / 3, 0.5, 0.5]]]
    wanted = preference_rewards(torch.tensor(rows, dtype=torch.float64), torch.tensor([[3, 2]]))
    assert torch.equal(preference_rewards(rows, [[3, 2]]), wanted)  # type: ignore[arg-type]
    assert torch.equal(preference_rewards(np.array(rows), np.array([[3, 2]]), valid=[[1, 1]]), wanted)  # type: ignore[arg-type]
    assert torch.equal(ragged_rewards(rows[0], [3, 2], ["a", "a"]), wanted[0])  # type: ignore[arg-type]
    pool = pool_rewards(torch.tensor(rows), None, torch.tensor(rows[0]))
    assert torch.equal(pool_rewards(np.array(rows, np.float32), None, np.array(rows[0], np.float32)), pool)  # type: ignore
    for bad in ([[[0.1], [0.1, 0.2]]], [[["a"]]], "text", None):
        with pytest.raises(tp.DataError, match="returns must be a tensor, or an array|returns must be \\[batch"):
            preference_rewards(bad)  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize("score", [0, -1, math.nan, math.inf])
def test_a_maximum_score_is_positive(score: float) -> None:
    with pytest.raises(tp.UsageError, match="must be positive"):
        curve_of_rewards(torch.ones(3), max_score=score)


def test_advantages_take_the_mask_that_rewards_take() -> None:
    rewards = torch.tensor([[1.0, 0.0, 5.0]])
    for valid in (torch.tensor([[1, 1, 0]]), [[True, True, False]], np.array([[1, 1, 0]])):
        assert group_advantages(rewards, valid).tolist() == [[0.5, -0.5, 0.0]]  # type: ignore[arg-type]
        preference_rewards(torch.ones(1, 3, 1), valid=valid)  # type: ignore[arg-type]
    with pytest.raises(tp.DataError, match="valid has shape"):
        group_advantages(rewards, torch.ones(3))
    assert group_advantages([[1, 0]]).tolist() == [[0.5, -0.5]]  # type: ignore[arg-type]


def test_options_that_would_be_ignored_are_errors() -> None:
    returns = torch.ones(1, 2, 1)
    with pytest.raises(tp.UsageError, match="weight=0.3 weighs the preference against an anchor"):
        preference_rewards(returns, anchor=None, weight=0.3)
    with pytest.raises(tp.UsageError, match="RPP has no use"):
        preference_rewards(returns, reference_time=torch.ones(1))
    with pytest.raises(tp.UsageError, match="LR has no use"):
        pool_rewards(returns, None, returns, measure="lr", reference_time=torch.ones(1))
    with pytest.raises(tp.UsageError, match="epsilon"):
        group_advantages(torch.ones(1, 2), epsilon=1e-3)
    with pytest.raises(tp.UsageError, match="combine needs several clocks"):
        preference_rewards(returns, combine="mean")
    with pytest.raises(tp.UsageError, match="weight"):
        PreferenceReward("trace", 2, anchor=None, weight=0.1)
