"""prime-rl: groups of episodes credited by preference (written for the repository of late 2026; not run)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchpref.rl.integrations._traces import group_credit


def score_group(
    episodes: Sequence[Any],
    curve: str | Callable[[Any], Any] = "curve",
    *,
    assign: Callable[[Any, float], None] | None = None,
    **options: Any,
) -> None:
    """Give every trainable trace of a group of episodes its advantage; for the method of that name of an ``Algorithm``.

    ``async def score_group(self, episodes): score_group(episodes)``, the class named in ``ALGORITHM_CLASSES``.

    Args:
        episodes: of one task, with verifiers' traces.
        curve: where a trace keeps its return curve: a key of its ``info``, or a function of the trace.
        assign: sets a trace's advantage; prime-rl's own ``assign_advantages`` by default.
        options: as in :func:`torchpref.rl.preference_rewards`, and ``scale``.
    """
    give = _assign_advantages() if assign is None else assign
    traces = [trace for episode in episodes for trace in episode.traces if trace.agent.trainable]
    read = curve if callable(curve) else lambda trace: trace.info.get(curve)
    advantages = group_credit([read(trace) for trace in traces], **options)
    for trace, advantage in zip(traces, advantages, strict=True):
        give(trace, advantage)


def _assign_advantages() -> Callable[[Any, float], None]:
    from prime_rl.orchestrator.algo.routing import assign_advantages

    return assign_advantages  # type: ignore[no-any-return]


__all__ = ["score_group"]
