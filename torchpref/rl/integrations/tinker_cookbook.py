"""tinker-cookbook: the preference as the final reward of each trajectory of a group (run against tinker-cookbook 0.6.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from torchpref.rl.integrations._traces import group_rewards


def prefer(
    trajectories: Sequence[Any],
    curve: Callable[[Any], Any] | None = None,
    *,
    max_score: float = 1.0,
    clock: Literal["turns", "tokens"] = "tokens",
    **options: Any,
) -> list[tuple[float, dict[str, float]]]:
    """What ``EnvGroupBuilder.compute_group_rewards`` returns: a reward and metrics per trajectory.

    ``async def compute_group_rewards(self, trajectory_group, env_group): return prefer(trajectory_group)``. The cookbook adds
    the rewards of a trajectory's transitions to it, so these are subtracted: what the trainer sees is the preference.

    Args:
        trajectories: of the group, with transitions that hold ``reward`` and ``ac.tokens``.
        curve: a function from a trajectory to its return curve, see :class:`torchpref.rl.Trace`; by default the rewards of
            its transitions, negative ones as 0, summed and divided by ``max_score``.
        clock: ``"tokens"`` that the model wrote, or ``"turns"``, its transitions.
        options: as in :func:`torchpref.rl.preference_rewards`.
    """
    curves = [_curve(one, max_score, clock) if curve is None else curve(one) for one in trajectories]
    if curve is None:
        options["clock"] = clock
    result = []
    for trajectory, found, reward in zip(trajectories, curves, group_rewards(curves, **options), strict=True):
        steps = sum(float(step.reward) for step in trajectory.transitions)
        metrics = {} if reward is None else {"preference": reward}
        if curve is None:
            metrics["solved"] = float(max(found["returns"], default=0.0) >= 1)
        result.append(((0.0 if reward is None else reward) - steps, metrics))
    return result


def _curve(trajectory: Any, max_score: float, clock: str) -> dict[str, list[float]]:
    import torch

    from torchpref.rl.traces import curve_of_rewards

    rewards = torch.tensor([max(0.0, float(step.reward)) for step in trajectory.transitions], dtype=torch.float64)
    lengths = [1 if clock == "turns" else len(step.ac.tokens) for step in trajectory.transitions]
    times = torch.tensor(lengths, dtype=torch.float64).cumsum(0)
    return {"returns": curve_of_rewards(rewards, max_score).clamp(max=1).tolist(), "times": times.tolist()}


__all__ = ["prefer"]
