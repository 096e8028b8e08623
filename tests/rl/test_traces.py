"""Traces as users have them, and as tensors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import torchpref as tp
from torchpref.rl import Trace, curve_of_rewards, pad_traces


@pytest.mark.parametrize(
    "value",
    [
        [0.5, 1.0],
        (0.5, 1),
        torch.tensor([0.5, 1.0]),
        np.array([0.5, 1.0]),
        {"returns": [0.5, 1.0], "times": None, "truncated": None},  # a struct column of a data set
        Trace((0.5, 1.0)),
    ],
)
def test_forms_of_a_trace(value: object) -> None:
    assert Trace.of(value) == Trace((0.5, 1.0))


def test_other_forms() -> None:
    assert Trace.of(None) is None
    assert Trace.of(True) == Trace((1.0,))
    assert Trace.of([]) == Trace(())
    timed = Trace.of({"returns": [0.5, 1], "times": [None, 3], "truncated": True})
    assert timed is not None and timed.truncated and timed.times is not None
    assert math.isnan(timed.times[0]) and timed.times[1] == 3.0


def test_padding() -> None:
    padded = pad_traces(
        [{"returns": [0.5, 1], "times": [2, 3]}, None, [], {"returns": [0.25], "times": [9], "truncated": True}], 2
    )
    assert padded["returns"].tolist() == [[[0.5, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.25, 0.0]]]
    assert padded["times"].tolist() == [[[2.0, 3.0], [0.0, 0.0]], [[0.0, 0.0], [9.0, 0.0]]]
    assert padded["lengths"].tolist() == [[2, 0], [0, 1]]
    assert padded["valid"].tolist() == [[True, False], [True, True]]
    assert padded["truncated"].tolist() == [[False, False], [False, True]]
    plain = pad_traces([[1.0], [0.5]], 2)
    assert plain["times"] is None and plain["truncated"] is None
    assert pad_traces([], 2)["returns"].shape == (0, 2, 0)
    with pytest.raises(tp.DataError, match="3 rollouts cannot be put into groups of 2"):
        pad_traces([[1.0]] * 3, 2)


def test_rewards_become_curves() -> None:
    assert curve_of_rewards(torch.full((10, 1), 0.1))[-1] == 1.0  # float32 sums to a little more
    assert curve_of_rewards(torch.tensor([-5.0, 5.0, 10.0]), 10.0).tolist() == [0.0, 0.0, 1.0]
    assert curve_of_rewards(torch.tensor([2.0])).tolist() == [2.0]  # for preference_rewards to refuse


def test_a_divisor_of_the_group_is_noticed_once():
    """Groups of four that are halves of groups of eight; the same prompt with other columns is another group."""
    from torchpref.errors import TorchPrefWarning
    from torchpref.rl import PreferenceReward

    prompts, ones = ["a"] * 8 + ["b"] * 8, [[1.0]] * 16
    half = PreferenceReward("curve", group_size=4)
    seeds = {"seed": [0] * 8 + [1] * 8}
    with pytest.warns(TorchPrefWarning, match="all 4 groups of 4 completions .* larger than group_size=4"):
        half(prompts, prompts, curve=ones, **seeds)
    half(prompts, prompts, curve=ones, **seeds)
    whole = PreferenceReward("curve", group_size=8)
    whole(prompts, prompts, curve=ones)
    whole(["a"] * 16, ["a"] * 16, curve=ones, **seeds)
