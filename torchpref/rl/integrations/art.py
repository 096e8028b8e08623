"""ART: the preference as the reward of each trajectory of a group (run against openpipe-art 0.5.18)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from torchpref.rl.integrations._traces import group_rewards


def prefer(
    curve: str | Callable[[Any], Any] = "curve", *, drop_tied: bool = False, **options: Any
) -> Callable[[Any], Awaitable[Any]]:
    """What goes into ``art.gather_trajectory_groups(groups, after_each=prefer())``.

    Args:
        curve: where a trajectory keeps its return curve: a key of its ``metadata``, as JSON, because metadata are plain
            values; or a function of the trajectory. See :class:`torchpref.rl.Trace` for its form; one without a curve cannot
            be scored and leaves the group.
        drop_tied: drop groups without any difference, which have no gradient.
        options: as in :func:`torchpref.rl.preference_rewards`.
    """

    def read(trajectory: Any) -> Any:
        return curve(trajectory) if callable(curve) else trajectory.metadata.get(curve)

    async def after_each(group: Any) -> Any:
        # A group whose rollouts all failed is empty.
        rewards = group_rewards([read(trajectory) for trajectory in group.trajectories], **options)
        scored = []
        for trajectory, reward in zip(group.trajectories, rewards, strict=True):
            if reward is not None:
                trajectory.reward = reward
                scored.append(trajectory)
        group.trajectories = scored
        if drop_tied and len({trajectory.reward for trajectory in scored}) < 2:
            return None
        return group

    return after_each


__all__ = ["prefer"]
