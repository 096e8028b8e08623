"""PreferenceAdvantage in TorchRL's replay buffer."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import torchpref as tp

pytest.importorskip("torchrl", reason="needs the extra torchrl")
pytestmark = pytest.mark.filterwarnings("ignore")  # torchrl warns of its extension and of torch's own future

from tensordict import TensorDict  # noqa: E402

from torchpref.rl import PreferenceAdvantage, group_advantages, preference_rewards  # noqa: E402


def trajectory(
    group: int | str, rewards: list[float], times: list[float] | None = None, truncated: bool = False
) -> Any:
    steps = len(rewards)
    last = [False] * (steps - 1) + [True]
    inner = TensorDict(
        reward=torch.tensor(rewards).reshape(steps, 1),
        done=torch.tensor(last).reshape(steps, 1),
        truncated=torch.tensor([flag and truncated for flag in last]).reshape(steps, 1),
        batch_size=[steps],
    )
    if times is not None:
        inner["seconds"] = torch.tensor(times, dtype=torch.float64).reshape(steps, 1)
    return TensorDict(group_id=torch.full((steps,), group), next=inner, batch_size=[steps])


GROUP = [[0.0, 0.5, 0.5], [0.5, 0.0, 0.0, 0.5], [0.5, 0.0]]
CURVES = [[0.0, 0.5, 1.0, 0.0], [0.5, 0.5, 0.5, 1.0], [0.5, 0.5, 0.0, 0.0]]
LENGTHS = torch.tensor([[3, 4, 2]])


def run(transform: Any, trajectories: list[Any]) -> Any:
    results = [transform.inv(each) for each in trajectories]
    assert all(result is None for result in results[:-1])
    return results[-1]


@pytest.mark.parametrize("measure", ["rpp", "lr", "ipp", "pr"])
@pytest.mark.parametrize("scale", ["none", "group"])
def test_equal_to_the_core(measure: str, scale: Any) -> None:
    out = run(PreferenceAdvantage(3, "group_id", measure, scale=scale), [trajectory(7, rewards) for rewards in GROUP])
    wanted = group_advantages(preference_rewards(torch.tensor([CURVES]), LENGTHS, measure), scale=scale)[0]
    steps = torch.repeat_interleave(wanted, LENGTHS[0])
    torch.testing.assert_close(out["advantage"].squeeze(-1), steps.to(out["advantage"].dtype))


def test_scores_times_and_truncation() -> None:
    """Rewards in points, a clock of seconds, and a trajectory that its limit stopped."""
    points = [[10 * reward for reward in rewards] for rewards in GROUP]
    seconds = [[0.5, 1.5, 9.0], [2.0, 2.5, 3.0, 3.5], [1.0, 1.25]]
    transform = PreferenceAdvantage(
        3, "group_id", "lr", max_score=10.0, time_key=("next", "seconds"), clock="seconds",
        truncated_key=("next", "truncated"), anchor=None,
    )  # fmt: skip
    out = run(
        transform,
        [trajectory(1, p, s, truncated=k == 2) for k, (p, s) in enumerate(zip(points, seconds, strict=True))],
    )
    times = torch.tensor([[row + [0.0] * (4 - len(row)) for row in seconds]], dtype=torch.float64)
    cut = torch.tensor([[False, False, True]])
    rewards = preference_rewards(
        torch.tensor([CURVES]), LENGTHS, "lr", times=times, clock="seconds", truncated=cut, anchor=None
    )
    wanted = torch.repeat_interleave(group_advantages(rewards)[0], LENGTHS[0])
    torch.testing.assert_close(out["advantage"].squeeze(-1), wanted.float())
    assert not math.isclose(float(out["advantage"][0]), float(out["advantage"][3]))


def test_in_a_replay_buffer() -> None:
    from torchrl.data import LazyTensorStorage, ReplayBuffer

    buffer = ReplayBuffer(storage=LazyTensorStorage(100), transform=PreferenceAdvantage(3, "group_id"), batch_size=4)
    for group in (1, 2):
        for rewards in GROUP[:2]:
            buffer.extend(trajectory(group, rewards))
        assert len(buffer) == 9 * (group - 1)  # nothing is written until the group is complete
        buffer.extend(trajectory(group, GROUP[2]))
    assert len(buffer) == 18
    assert "advantage" in buffer.sample().keys()


def test_tied_groups() -> None:
    kept = run(PreferenceAdvantage(2, "group_id"), [trajectory(1, [0.0, 1.0])] * 2)
    assert not kept["advantage"].any()
    dropping = PreferenceAdvantage(2, "group_id", drop_tied=True)
    assert run(dropping, [trajectory(1, [0.0, 1.0])] * 2) is None
    assert dropping.dropped_groups == 1
    assert run(dropping, [trajectory(1, [0.0, 1.0]), trajectory(1, [1.0])]) is not None


def test_refusals() -> None:
    with pytest.raises(tp.UsageError, match="time_key"):
        PreferenceAdvantage(2, clock="seconds")
    with pytest.raises(tp.UsageError, match="max_score"):
        PreferenceAdvantage(2, max_score=0)
    with pytest.raises(tp.UsageError, match="outscore"):
        PreferenceAdvantage(2, weight=0.6)
    with pytest.raises(tp.DataError, match="maximum score"):
        run(PreferenceAdvantage(2, "group_id"), [trajectory(1, [1.0, 1.0])] * 2)
