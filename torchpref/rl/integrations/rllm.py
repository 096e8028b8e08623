"""rLLM: an advantage estimator (written for the repository of late 2026; not run, it is not on the package index)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchpref.rl.integrations._traces import group_credit


def register(name: str = "preference", curve: Callable[[Any], Any] | None = None, **options: Any) -> None:
    """Register an estimator for ``rllm.algorithm.adv_estimator``; needs ``rllm.algorithm.use_rllm=true``.

    Args:
        name: of the estimator.
        curve: a function from a trajectory to its return curve, see :class:`torchpref.rl.Trace`; by default the rewards of its
            steps, which are then the return reached so far.
        options: as in :func:`torchpref.rl.preference_rewards`, and ``scale``.
    """
    try:
        from rllm.trainer.algorithms.advantage import register_rllm_adv_estimator
    except ImportError:  # where it was before
        from rllm.experimental.common.advantage import register_rllm_adv_estimator

    def estimator(
        rewards: Any, algorithm_config: Any = None, *, traj_groups: Any = (), **others: Any
    ) -> tuple[Any, Any]:
        import numpy as np

        read = curve or (lambda trajectory: [step.reward for step in trajectory.steps])
        advantages = [
            np.array(group_credit([read(trajectory) for trajectory in group.trajectories], **options), dtype=np.float64)
            for group in traj_groups
        ]
        return advantages, advantages

    register_rllm_adv_estimator(name)(estimator)


__all__ = ["register"]
