"""In ART itself: ``make test-trainers``."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

art = pytest.importorskip("art", reason="needs openpipe-art, which has an environment of its own: make test-trainers")
pytestmark = pytest.mark.filterwarnings("ignore")

CURVES = [[0.0, 0.5, 1.0], [0.5, 1.0], [0.5], []]


def test_gather_with_after_each() -> None:
    from torchpref.rl import pad_traces, preference_rewards
    from torchpref.rl.integrations.art import prefer

    async def rollout(curve: list[float]) -> Any:
        return art.Trajectory(messages_and_choices=[], reward=7.0, metadata={"curve": json.dumps(curve)})

    async def failing() -> Any:
        raise RuntimeError("the sandbox is gone")

    async def main() -> Any:
        groups = [
            art.TrajectoryGroup(rollout(curve) for curve in CURVES),
            art.TrajectoryGroup([rollout([1.0]), failing(), rollout([0.0, 1.0])]),
        ]
        return await art.gather_trajectory_groups(groups, after_each=prefer(), max_exceptions=5)

    whole, part = asyncio.run(main())
    wanted = preference_rewards(**pad_traces(CURVES, 4))[0].tolist()
    # ART hands trajectories over in the order in which they ended.
    found = {one.metadata["curve"]: one.reward for one in whole.trajectories}
    assert [found[json.dumps(curve)] for curve in CURVES] == pytest.approx(wanted)
    assert sorted(one.reward for one in part.trajectories) == pytest.approx([0.51, 1.49])
    assert len(part.exceptions) == 1
