"""verifiers: the preference as a reward of each trace of an episode (run against verifiers 0.4.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchpref.rl.integrations._traces import group_rewards


def prefer(
    episode: Any, curve: str | Callable[[Any], Any] = "curve", *, name: str = "preference", **options: Any
) -> None:
    """Compare the traces of an episode with each other and record each one's reward; for ``Env.finalize``.

    ``async def finalize(self, task, episode): prefer(episode)``. A trace's ``reward`` is the sum of what was recorded: give
    other rewards the weight 0, or use this one alone.

    Args:
        episode: whose ``traces`` are rollouts of one task; those of an agent that is not trainable are left alone.
        curve: where a trace keeps its return curve: a key of its ``info``, or a function of the trace. See
            :class:`torchpref.rl.Trace` for its form; None for one that cannot be scored, which gets no reward.
        name: under which the reward is recorded.
        options: as in :func:`torchpref.rl.preference_rewards`.
    """
    traces = [trace for trace in episode.traces if getattr(getattr(trace, "agent", None), "trainable", True)]
    read = curve if callable(curve) else lambda trace: trace.info.get(curve)
    for trace, reward in zip(traces, group_rewards([read(trace) for trace in traces], **options), strict=True):
        if reward is not None:
            trace.record_reward(name, reward)


__all__ = ["prefer"]
