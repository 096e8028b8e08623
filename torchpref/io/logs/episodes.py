"""An episode of reinforcement learning as a run: rewards per step, and what counts as success."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import DataError, UsageError
from torchpref.io.logs.records import Notes, positive_option
from torchpref.io.logs.runs import Runs

MAX_STEPS = 50_000_000
"""The longest episode that is read."""
SUCCESS_KEYS = ("success", "is_success", "goal_achieved", "solved")
OUTCOMES = ("auto", "reward", "success", "terminated")
OPTIONS = {
    "max_score": "the sum of rewards that is a full score; needed to read rewards as return",
    "outcome": "'success' (a flag in infos), 'terminated' (the episode ended by itself with a reward above 0), 'reward' "
    "(their sum over max_score), or 'auto': success if there is such a flag, else reward",
    "system": "the name of the system, if not that of the data set or folder",
}


@dataclass(frozen=True)
class Episode:
    """One episode of T steps; each array has shape [T]."""

    rewards: NDArray[np.float64]
    terminated: bool | None
    truncated: bool | None
    success: NDArray[np.bool_] | None


@dataclass(frozen=True)
class Rule:
    """How episodes become returns."""

    outcome: str
    max_score: float | None
    system: str | None


def rule_of(options: Mapping[str, Any]) -> Rule:
    """The rule that options ask for."""
    outcome = options.get("outcome", "auto")
    if outcome not in OUTCOMES:
        raise UsageError(f"outcome is one of {', '.join(OUTCOMES)}, not {outcome!r}")
    most = positive_option(options, "max_score")
    system = options.get("system")
    if system is not None and (not isinstance(system, str) or not system.strip()):
        raise UsageError(f"system has to be a name, not {system!r}")
    return Rule(str(outcome), most, system)


def of_length(values: Any, length: int, where: object, name: str) -> NDArray[Any]:
    """Per-step values that may be one longer than the rewards: observations and infos begin with those of the reset."""
    array = np.asarray(values).reshape(-1)
    if len(array) == length + 1:
        return array[1:]
    if len(array) != length:
        raise DataError(
            f"{where}: {name} has {len(array)} entries for {length} rewards; it should have {length} or {length + 1}"
        )
    return array


def floats(values: Any, where: object, name: str) -> NDArray[np.float64]:
    """Finite float64 values; anything else raises ``DataError``."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{where}: {name} holds {array.dtype}, not numbers")
    result = array.astype(np.float64)
    if not np.isfinite(result).all():
        raise DataError(f"{where}: {name} holds NaN or infinity; correct or remove the episode")
    return result


def flags(values: Any, where: object, name: str) -> NDArray[np.bool_]:
    """Truth values; anything else raises ``DataError``."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{where}: {name} holds {array.dtype}, not truth values")
    result: NDArray[np.bool_] = np.nan_to_num(array.astype(np.float64)) != 0
    return result


def episode_of(arrays: Mapping[str, Any], where: object) -> Episode:
    """The episode in a mapping with ``rewards`` and, if known, ``terminations``, ``truncations`` and a success flag."""
    rewards = floats(arrays["rewards"], where, "rewards").reshape(-1)
    length = len(rewards)

    def last(*names: str) -> bool | None:
        for name in names:
            if arrays.get(name) is not None:
                values = flags(of_length(arrays[name], length, where, name), where, name)
                return bool(values.any()) if length else None
        return None

    success = None
    for name in SUCCESS_KEYS:
        if arrays.get(name) is not None:
            success = flags(of_length(arrays[name], length, where, name), where, name)
            break
    return Episode(rewards, last("terminations", "terminated"), last("truncations", "truncated"), success)


def add_episode(
    runs: Runs, rule: Rule, system: str, instance: str, episode: Episode, where: object, **more: Any
) -> None:
    """One run of the value column ``return``; only the steps at which the return rises, and the last, are kept."""
    notes: Notes = runs.notes
    length = len(episode.rewards)
    outcome = rule.outcome
    if outcome == "auto":
        outcome = "success" if episode.success is not None and rule.max_score is None else "reward"
    if outcome == "success":
        if episode.success is None:
            raise DataError(
                f"{where}: no success flag in infos ({', '.join(SUCCESS_KEYS)}); choose outcome='terminated' or 'reward'"
            )
        level = np.maximum.accumulate(episode.success).astype(np.float64)
    elif outcome == "terminated":
        if episode.terminated is None:
            raise DataError(f"{where}: no terminations; choose outcome='reward' with max_score")
        level = np.zeros(length)
        if length and episode.terminated and episode.rewards[-1] > 0:
            level[-1] = 1.0
    else:
        if rule.max_score is None:
            raise UsageError(
                f"{where}: rewards are increments of unknown scale; give max_score= (the sum that is a full score), or "
                "outcome='terminated' where an episode that ends by itself with a reward above 0 is a success"
            )
        level = np.maximum.accumulate(np.cumsum(episode.rewards) / rule.max_score) if length else np.zeros(0)
        below = int((level < 0).sum())
        if below:
            notes.add(
                "returns_below_zero",
                "steps at which the sum of rewards was below 0 count as 0",
                severity="note",
                count=below,
                example=where,
            )
            level = np.maximum(level, 0.0)
    rises = np.flatnonzero(np.r_[True, level[1:] > level[:-1]]) if length else np.zeros(0, dtype=np.int64)
    kept = np.unique(np.r_[rises, length - 1]) if length else rises
    points = [{"steps": float(step + 1), "return": float(level[step])} for step in kept]
    stopped = None if episode.truncated is None else episode.truncated and not episode.terminated
    runs.add(system, instance, points, truncated=stopped, **more)
