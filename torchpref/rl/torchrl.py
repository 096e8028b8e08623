"""Group-relative advantages from preferences as a TorchRL transform, in the manner of its ``MCAdvantage`` (TorchRL 0.14).

``MCAdvantage`` keeps finished trajectories in a queue per group and writes a group to the replay buffer once it is
complete. That part is used as it is; how a complete group gets its advantages is replaced.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchpref.errors import MissingExtraError, UsageError
from torchpref.rl.advantages import Scale, group_advantages
from torchpref.rl.rewards import Anchor, Output, preference_rewards
from torchpref.rl.traces import curve_of_rewards
from torchpref.runs.measures import describe

try:
    from torchrl.objectives.llm import MCAdvantage
except ImportError as error:
    raise MissingExtraError("torchrl", "torchrl") from error


class PreferenceAdvantage(MCAdvantage):
    """A replay-buffer transform that compares the trajectories of a group and writes each one's advantage on its steps.

    ``ReplayBuffer(storage=..., transform=PreferenceAdvantage(8, group_key="task"))``, then ``extend`` with finished
    trajectories. The advantage is the reward of :func:`torchpref.rl.preference_rewards` less the group's mean.

    Args:
        group_size: trajectories per group.
        group_key: where the group's identifier is, a string or a whole number; all trajectories of a group must start in
            the same state.
        measure: ``sr``, ``pr``, ``spl``, ``lr``, ``rpp`` or ``ipp``.
        max_score: what the rewards of a perfect trajectory sum to; they are divided by it.
        time_key: where the time of each step is, in units of ``clock``; steps are counted from 1 where None.
        clock, resolution: as in :func:`torchpref.rl.preference_rewards`; need ``time_key``.
        truncated_key: where the truncation mark is, ``("next", "truncated")`` in TorchRL's environments; where None, a
            level that was not reached counts as never reached, also in trajectories that were stopped by their limit.
        drop_tied: write no group without any difference; it would have no gradient.
        reward_key, done_key, advantage_key: as in ``MCAdvantage``.
        output, anchor, weight: as in :func:`torchpref.rl.preference_rewards`.
        scale: as in :func:`torchpref.rl.group_advantages`.
    """

    def __init__(
        self,
        group_size: int,
        group_key: Any = "query",
        measure: str = "rpp",
        *,
        max_score: float = 1.0,
        time_key: Any = None,
        clock: str | None = None,
        resolution: float | None = None,
        truncated_key: Any = None,
        drop_tied: bool = False,
        reward_key: Any = ("next", "reward"),
        done_key: Any = ("next", "done"),
        advantage_key: Any = "advantage",
        output: Output = "signed",
        anchor: Anchor = "success",
        weight: float | None = None,
        scale: Scale = "none",
    ) -> None:
        super().__init__(
            group_size,
            prompt_key=group_key,
            rewards_key=reward_key,
            advantage_key=advantage_key,
            done_key=done_key,
            trajectory_return="sum",
        )
        if not max_score > 0:
            raise UsageError(f"max_score must be positive, got {max_score!r}")
        if time_key is None and (clock not in (None, "steps") or resolution is not None):
            raise UsageError("a clock or a resolution needs time_key, the place of the times")
        self.max_score = float(max_score)
        self.time_key = time_key
        self.truncated_key = truncated_key
        self.drop_tied = drop_tied
        self.scale = scale
        self.options = {
            "measure": describe(measure).name,
            "clock": clock,
            "resolution": resolution,
            "output": output,
            "anchor": anchor,
            "weight": weight,
        }
        group_advantages(
            preference_rewards(torch.zeros(0, 2, 1), output=output, anchor=anchor, weight=weight), scale=scale
        )

    def _trajectory_advantage(self, trajs: list[Any]) -> Any:
        """Called by ``MCAdvantage`` with the trajectories of a complete group; None drops the group."""
        rewards = [traj.get(self.rewards_key) for traj in trajs]
        curves = [curve_of_rewards(reward, self.max_score) for reward in rewards]
        lengths = torch.tensor([[len(curve) for curve in curves]], device=curves[0].device)
        values = preference_rewards(
            _padded(curves),
            lengths,
            times=None
            if self.time_key is None
            else _padded([traj.get(self.time_key).flatten().double() for traj in trajs]),
            truncated=self._truncated(trajs),
            **self.options,  # type: ignore[arg-type]
        )
        if self.drop_tied and bool((values == values[:, :1]).all()):
            return None
        advantages = group_advantages(values, scale=self.scale).squeeze(0)
        self.selected_trajectories += len(trajs)
        for traj, reward, advantage in zip(trajs, rewards, advantages.unbind(0), strict=True):
            traj.set(self.advantage_key, advantage.to(reward.dtype).expand(reward.shape).clone())
        return self._cat_tensordicts(trajs, -1)

    def _truncated(self, trajs: list[Any]) -> Tensor | None:
        """Which trajectories were stopped by their limit: marked at the last step, and not there by their own end."""
        if self.truncated_key is None:
            return None
        return torch.stack([traj.get(self.truncated_key).flatten()[-1].bool() for traj in trajs]).unsqueeze(0)


def _padded(rows: list[Tensor]) -> Tensor:
    """float64 ``[1, trajectory, step]``."""
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).unsqueeze(0)


__all__ = ["PreferenceAdvantage"]
