"""Preferences as data sets for offline training: DPO, reward models and KTO, in TRL's column names (TRL 1.16).

Systems are then the sources of completions: samples of one model, models, or agents; an instance is a prompt. Tied pairs
teach nothing and are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Literal

from torchpref.errors import MissingExtraError, UsageError
from torchpref.pairwise.preferences import Preferences

Prompts = Mapping[str, Any] | Callable[[str], Any]
Completions = Mapping[tuple[str, str], Any] | Callable[[str, str], Any]


def preference_pairs(
    prefs: Preferences, prompts: Prompts, completions: Completions, *, least: float = 0.0
) -> list[dict[str, Any]]:
    """A row per instance and pair of systems that is not tied: ``prompt``, ``chosen``, ``rejected`` and ``margin`` = |Δ|.

    These are the columns of TRL's DPOTrainer, which ignores the margin, and of its RewardTrainer, which asks the scores to
    differ by it.

    Args:
        prefs: preferences of any measure, with one run per system and instance (``runs.split_trials()`` makes it so).
        prompts: the prompt of an instance, text or messages: a mapping from its name (``benchmark/instance`` where a name
            stands in several benchmarks), or a function of that.
        completions: the completion of (instance, system), likewise.
        least: pairs with |Δ| at most this are left out; 0 leaves out ties.

    Raises:
        UsageError: several trials, or a prompt or completion that is not there.
    """
    _check_trials(prefs)
    delta = prefs.delta.cpu()
    names = _instance_names(prefs)
    rows = []
    for row, instance in enumerate(names):
        decided = (prefs.mask[row].cpu() & (delta[row].abs() > least)).nonzero().flatten().tolist()
        for pair in decided:
            first, second = (prefs.systems[i] for i in prefs.pairs[pair].tolist())
            value = float(delta[row, pair])
            better, worse = (first, second) if value > 0 else (second, first)
            rows.append(
                {
                    "prompt": _look_up(prompts, instance),
                    "chosen": _look_up(completions, instance, better),
                    "rejected": _look_up(completions, instance, worse),
                    "margin": abs(value),
                }
            )
    return rows


def desirable_runs(
    prefs: Preferences, prompts: Prompts, completions: Completions, *, least: float = 0.0
) -> list[dict[str, Any]]:
    """A row per run that is not undecided: ``prompt``, ``completion`` and ``label``, the columns of TRL's KTOTrainer.

    A run is desirable if its mean Δ over its rivals on the instance is above ``least``, undesirable if it is below
    -``least``; in between it is left out. Arguments as in :func:`preference_pairs`.
    """
    _check_trials(prefs)
    delta = prefs.delta.cpu()
    first, second = prefs.pairs[:, 0].cpu(), prefs.pairs[:, 1].cpu()
    rows = []
    for row, instance in enumerate(_instance_names(prefs)):
        for number, system in enumerate(prefs.systems):
            mine = (first == number) | (second == number)
            here = mine & prefs.mask[row].cpu()
            if not bool(here.any()):
                continue
            signed = delta[row].where(first == number, -delta[row])[here]
            mean = float(signed.mean())
            if abs(mean) > least:
                rows.append(
                    {
                        "prompt": _look_up(prompts, instance),
                        "completion": _look_up(completions, instance, system),
                        "label": mean > 0,
                    }
                )
    return rows


def preference_dataset(
    prefs: Preferences,
    prompts: Prompts,
    completions: Completions,
    kind: Literal["dpo", "reward", "kto"] = "dpo",
    *,
    least: float = 0.0,
) -> Any:
    """A ``datasets.Dataset`` for TRL's DPOTrainer, RewardTrainer (with ``margin``) or KTOTrainer. Needs the extra ``trl``."""
    if kind not in ("dpo", "reward", "kto"):
        raise UsageError(f"kind must be 'dpo', 'reward' or 'kto', got {kind!r}")
    try:
        from datasets import Dataset
    except ImportError as error:
        raise MissingExtraError("datasets", "trl") from error
    if kind == "kto":
        rows = desirable_runs(prefs, prompts, completions, least=least)
    else:
        rows = preference_pairs(prefs, prompts, completions, least=least)
    if not rows:
        raise UsageError(f"all comparisons are tied or within {least}; there is nothing to learn from")
    made = Dataset.from_list(rows)
    return made.remove_columns("margin") if kind == "dpo" else made


def _check_trials(prefs: Preferences) -> None:
    trials = int(prefs.runs.present.sum(-1).max()) if prefs.runs.present.numel() else 0
    if trials > 1:
        raise UsageError(
            f"there are up to {trials} trials per system and instance; a completion belongs to one run: "
            "compute the preferences from runs.split_trials()"
        )


def _instance_names(prefs: Preferences) -> list[str]:
    count = Counter(prefs.instances)
    return [
        f"{benchmark}/{name}" if count[name] > 1 else name
        for benchmark, name in zip(prefs.benchmarks, prefs.instances, strict=True)
    ]


def _look_up(source: Any, *key: str) -> Any:
    if callable(source):
        return source(*key)
    wanted = key[0] if len(key) == 1 else key
    if wanted not in source:
        raise UsageError(f"no {'prompt' if len(key) == 1 else 'completion'} is given for {wanted!r}")
    return source[wanted]


__all__ = ["desirable_runs", "preference_dataset", "preference_pairs"]
