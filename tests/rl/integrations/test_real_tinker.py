"""In tinker-cookbook itself: ``make test-trainers``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

types = pytest.importorskip(
    "tinker_cookbook.rl.types",
    reason="needs tinker-cookbook, which has an environment of its own: make test-trainers",
    exc_type=ImportError,
)
pytestmark = pytest.mark.filterwarnings("ignore")


def test_group_rewards_of_the_cookbook() -> None:
    from tinker_cookbook.completers import TokensWithLogprobs

    from torchpref.rl import pad_traces, preference_rewards
    from torchpref.rl.integrations.tinker_cookbook import prefer

    def trajectory(*steps: tuple[float, int]) -> Any:
        transitions = [
            types.Transition(
                ob=None,
                ac=TokensWithLogprobs(tokens=[1] * count, maybe_logprobs=None),
                reward=reward,
                episode_done=place == len(steps) - 1,
            )
            for place, (reward, count) in enumerate(steps)
        ]
        return types.Trajectory(transitions=transitions, final_ob=None)

    class Builder(types.EnvGroupBuilder):
        async def make_envs(self) -> Any:
            return []

        async def compute_group_rewards(self, trajectory_group: Any, env_group: Any) -> Any:
            return prefer(trajectory_group)

    group = [trajectory((0.5, 3), (0.5, 4)), trajectory((0.0, 2), (1.0, 2)), trajectory((0.25, 6))]
    rewards, metrics = zip(*asyncio.run(Builder().compute_group_rewards(group, [])), strict=True)
    found = types.TrajectoryGroup(group, list(rewards), list(metrics))
    timed = [
        {"returns": [0.5, 1.0], "times": [3, 7]},
        {"returns": [0.0, 1.0], "times": [2, 4]},
        {"returns": [0.25], "times": [6]},
    ]
    wanted = preference_rewards(**pad_traces(timed, 3), clock="tokens")[0].tolist()
    assert found.get_total_rewards() == pytest.approx(wanted)
