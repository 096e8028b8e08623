"""The rewards of one group, from curves as trainers keep them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def group_rewards(curves: Sequence[Any], **options: Any) -> list[float | None]:
    """The reward of each rollout of one group; None for one that cannot be scored, [] for an empty group.

    A curve is anything that :meth:`torchpref.rl.Trace.of` takes, or that as JSON.
    """
    from torchpref.rl.rewards import preference_rewards
    from torchpref.rl.traces import Trace, pad_traces

    if not curves:
        return []
    traces = [Trace.of(json.loads(curve) if isinstance(curve, str) else curve) for curve in curves]
    padded = pad_traces(traces, len(traces))
    rewards = preference_rewards(**padded, **options)[0].tolist()  # type: ignore[arg-type]
    return [None if trace is None else reward for trace, reward in zip(traces, rewards, strict=True)]


def group_credit(curves: Sequence[Any], scale: str = "none", **options: Any) -> list[Any]:
    """The advantage of each rollout of one group; 0 for one that cannot be scored."""
    import torch

    from torchpref.rl.advantages import group_advantages

    rewards = group_rewards(curves, **options)
    if not rewards:
        return []
    values = torch.tensor([[0.0 if reward is None else reward for reward in rewards]], dtype=torch.float64)
    valid = torch.tensor([[reward is not None for reward in rewards]])
    return group_advantages(values, valid, scale=scale)[0].tolist()  # type: ignore[arg-type]


__all__ = ["group_credit", "group_rewards"]
