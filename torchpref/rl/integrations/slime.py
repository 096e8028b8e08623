"""slime: rewards of a batch by preference (written for the repository of late 2026; not run).

``--custom-reward-post-process-path torchpref.rl.integrations.slime.post_process_rewards``
"""

from __future__ import annotations

from typing import Any

from torchpref.rl.integrations._traces import group_credit


def post_process_rewards(args: Any, samples: list[Any]) -> tuple[list[float], list[float]]:
    """The raw rewards, and for training what each sample has over the mean of its group.

    Samples of one ``group_index`` are one group. A sample keeps its return curve in ``metadata["curve"]``, see
    :class:`torchpref.rl.Trace`; without one its reward, clamped to [0, 1], is what it reached, at its last own token.
    Options of :func:`torchpref.rl.preference_rewards` may stand in ``args.torchpref``, a mapping.
    """
    key = getattr(args, "reward_key", None)
    raw = [float(sample.reward[key] if key else sample.reward) for sample in samples]
    options = dict(getattr(args, "torchpref", None) or {})
    groups: dict[Any, list[int]] = {}
    for place, sample in enumerate(samples):
        groups.setdefault(sample.group_index, []).append(place)
    result = [0.0] * len(samples)
    for places in groups.values():
        kept = [(samples[place].metadata or {}).get("curve") for place in places]
        own = dict(options)
        if all(curve is None for curve in kept):
            kept = [
                {"returns": [min(1.0, max(0.0, raw[place]))], "times": [_own_tokens(samples[place])]}
                for place in places
            ]
            own.setdefault("clock", "tokens")
        for place, advantage in zip(places, group_credit(kept, **own), strict=True):
            result[place] = advantage
    return raw, result


def _own_tokens(sample: Any) -> float:
    mask = getattr(sample, "loss_mask", None)
    return float(sample.response_length if mask is None else sum(mask))


__all__ = ["post_process_rewards"]
