"""AReaL: a workflow whose groups are rewarded by preference (written for AReaL 1.0; not run)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def prefer(
    batch: dict[str, Any], curve: Callable[[dict[str, Any], int], Any] | None = None, **options: Any
) -> dict[str, Any]:
    """The tensors of one whole group, as a ``GroupedRolloutWorkflow`` returns them, with ``rewards`` replaced.

    Subclass it: ``async def arun_episode(self, engine, data): batch = await super().arun_episode(engine, data); return batch if
    batch is None else prefer(batch)``, and take the trainer's own normalisation of rewards by the group's deviation off.

    Args:
        batch: with ``rewards`` ``[row]`` and ``loss_mask`` ``[row, token]``; rows are the rollouts of one group.
        curve: a function of the batch and a row's number to its return curve, see :class:`torchpref.rl.Trace`; by default the
            reward, at the time of the last own token: the final score in token time.
        options: as in :func:`torchpref.rl.preference_rewards`.
    """
    import torch

    from torchpref.rl.integrations._traces import group_rewards

    rows = range(len(batch["rewards"]))
    if curve is None:
        own = (batch["loss_mask"] != 0).sum(-1).tolist()
        score = batch["rewards"].double().clamp(0, 1).tolist()
        curves: list[Any] = [{"returns": [score[row]], "times": [own[row]]} for row in rows]
        options.setdefault("clock", "tokens")
    else:
        curves = [curve(batch, row) for row in rows]
    rewards = [0.0 if reward is None else reward for reward in group_rewards(curves, **options)]
    replaced = torch.tensor(rewards, dtype=batch["rewards"].dtype, device=batch["rewards"].device)
    return {**batch, "rewards": replaced}


__all__ = ["prefer"]
