"""Harbor trials: ``<trial>/result.json``, with ``<trial>/agent/trajectory.json`` (ATIF) for the steps.

The reward is ``verifier_result.rewards``, a number per name; a trial without one has no outcome. A task of several steps has a
verifier result per step: these are progress, by the task's own rule, which the trial's reward shows (their mean, or the
last). Tokens are input, cache included, and output. The system is agent and model, trials are told apart by their names.
Source: harbor ``models/trial/result.py``.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.errors import UsageError
from torchpref.io.files.documents import read_object
from torchpref.io.files.source import Source
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, digest, list_at, several, text_of, total
from torchpref.io.logs.runs import Runs
from torchpref.io.logs.trajectory_steps import clocks
from torchpref.io.readers import atif

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

_LIMITS = ("AgentTimeoutError", "TimeLimit", "MaxTurns", "ContextLength", "OutputLength", "ContextWindow")


def detect(source: Source) -> bool:
    """An object with ``task_name``, ``trial_name`` and what the agent or the verifier gave."""
    keys = source.outline.keys()
    return {"task_name", "trial_name"} <= keys and bool(
        keys & {"verifier_result", "agent_result", "agent_info", "step_results"}
    )


def companion(source: Source) -> bool:
    """The trial's trajectory, or the job's own ``result.json``."""
    return atif.detect(source) or {"n_total_trials", "stats"} <= source.outline.keys()


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per trial."""
    READER.check_options(options)
    notes = Notes()
    runs = Runs(notes, "return")
    reward = options.get("reward")
    trajectories = {_trial_folder(source.path): source.path for source in sources if atif.detect(source)}
    trials: dict[tuple[str, str, str], list[tuple[str, Path, dict[str, Any]]]] = defaultdict(list)
    for source in sources:
        if companion(source) and not detect(source):
            continue
        record = read_object(source.path, notes.repeated(source.path))
        task = text_of(record.get("task_name"))
        if task is None:
            notes.add("records_without_instance", "records that name no instance were left out", example=source.path)
            continue
        name = text_of(record.get("trial_name")) or source.path.absolute().parent.name
        trials[(_system(record), text_of(record.get("source")) or "", task)].append((name, source.path, record))
    for (system, benchmark, task), found in trials.items():
        numbers = {name: number for number, name in enumerate(sorted({name for name, _, _ in found}))}
        for name, path, record in found:
            trajectory = trajectories.get(path.absolute().parent)
            points = _points(record, reward, trajectory, path, system, notes)
            stopped = any(
                limit in (text_of(dict_at(part, "exception_info").get("exception_type")) or "")
                for part in (record, *list_at(record, "step_results"))
                for limit in _LIMITS
            )
            info, config = dict_at(record, "agent_info"), dict_at(record, "config", "agent")
            settled = text_of(info.get("name")) or text_of(config.get("name"))
            model = text_of(dict_at(info, "model_info").get("name")) or text_of(config.get("model_name"))
            settings = {key: value for key, value in dict_at(config, "kwargs").items() if value is not None}
            runs.reading(path)
            runs.add(
                system,
                task,
                points,
                benchmark=benchmark,
                trial=numbers[name],
                truncated=stopped,
                identity=digest(record),
                home=path.absolute().parent.parent,
                naming="whole" if settled and model else "partial",
                details={
                    "version": text_of(info.get("version")),
                    "kwargs": json.dumps(settings, sort_keys=True)[:80] if settings else None,
                },
                content=text_of(record.get("task_checksum")),
            )
    return runs.tidy(several([source.path for source in sources]))


def _trial_folder(path: Path) -> Path:
    parent = path.absolute().parent
    return parent.parent if parent.name == "agent" else parent


def _system(record: Mapping[str, Any]) -> str:
    info, config = dict_at(record, "agent_info"), dict_at(record, "config", "agent")
    model_info = dict_at(info, "model_info")
    provider, model = text_of(model_info.get("provider")), text_of(model_info.get("name"))
    model = f"{provider}/{model}" if provider and model else model or text_of(config.get("model_name"))
    names = [text_of(info.get("name")) or text_of(config.get("name")), model]
    return " + ".join(name for name in names if name) or "unnamed"


def _reward(result: Any, chosen: str | None, where: object, notes: Notes) -> float | None:
    rewards = dict_at(result, "rewards")
    if not rewards:
        return None
    if chosen is not None:
        if chosen not in rewards:
            notes.add(
                "rewards_without_name",
                f"trials whose verifier gives no reward {chosen!r} have no outcome",
                example=where,
            )
        return notes.number(rewards.get(chosen), where, chosen)
    if "reward" in rewards or len(rewards) == 1:
        name = "reward" if "reward" in rewards else next(iter(rewards))
        return notes.number(rewards[name], where, name)
    raise UsageError(
        f"{where}: the verifier gives several rewards ({', '.join(sorted(rewards))}); choose one with reward="
    )


def _points(
    record: Mapping[str, Any], chosen: str | None, trajectory: Path | None, path: Path, system: str, notes: Notes
) -> list[dict[str, Any]]:
    final = _reward(record.get("verifier_result"), chosen, path, notes)
    steps = [step for step in list_at(record, "step_results") if isinstance(step, dict)]
    if record.get("reward_valid") is False and final is not None:
        notes.add(
            "rewards_not_valid",
            "trials whose reward Harbor itself marks as not valid have no outcome",
            system=system,
            example=path,
        )
        final, steps = None, []
    used = [{"seconds": _took(step, path, notes), **_clocks(step, path, notes)} for step in steps]
    end = {"seconds": _took(record, path, notes), **_clocks(record, path, notes)}
    if steps:  # a trial of several steps has no clocks of its own
        whole = _added_up(used)[-1]
        end = {name: whole[name] if own is None else own for name, own in end.items()}
    if trajectory is not None:
        told = clocks(read_object(trajectory), trajectory, notes)
        end["steps"] = told["steps"]
        end |= {name: told[name] for name in ("tokens", "cost") if end[name] is None}
    points = [] if final is None or len(steps) < 2 else _progress(steps, used, chosen, final, path, notes)
    return [*points[:-1], {"return": final, **end}]


def _took(part: Mapping[str, Any], path: Path, notes: Notes) -> float | None:
    phase = dict_at(part, "agent_execution")
    return notes.elapsed(phase.get("started_at"), phase.get("finished_at"), path)


def _clocks(part: Mapping[str, Any], where: object, notes: Notes) -> dict[str, float | None]:
    result = dict_at(part, "agent_result")
    tokens = (notes.clock(result.get(name), where, name) for name in ("n_input_tokens", "n_output_tokens"))
    return {"tokens": total(tokens), "cost": notes.clock(result.get("cost_usd"), where, "cost_usd")}


def _added_up(used: Sequence[Mapping[str, float | None]]) -> list[dict[str, float | None]]:
    """The clocks after each step; unknown from the first step of which they are not known."""
    sums: list[dict[str, float | None]] = []
    for number in range(1, len(used) + 1):
        parts = {name: [step[name] for step in used[:number]] for name in used[0]}
        sums.append({name: None if None in values else total(values) for name, values in parts.items()})
    return sums


def _progress(
    steps: Sequence[Mapping[str, Any]],
    used: Sequence[Mapping[str, float | None]],
    chosen: str | None,
    final: float,
    path: Path,
    notes: Notes,
) -> list[dict[str, Any]]:
    """What had been reached after each step, by the rule that gives the trial's reward; nothing where neither does."""
    rewards = [_reward(step.get("verifier_result"), chosen, path, notes) or 0.0 for step in steps]
    means = [math.fsum(rewards[:number]) / len(steps) for number in range(1, len(steps) + 1)]
    if abs(means[-1] - final) < 1e-9:
        values = means
    elif abs(rewards[-1] - final) < 1e-9:
        values = rewards
    else:
        notes.add(
            "steps_disagree",
            "trials whose steps' rewards do not give the trial's: only the latter is read",
            example=path,
        )
        return []
    return [{"return": value, **clocks} for value, clocks in zip(values, _added_up(used), strict=True)]


READER = Reader(
    name="harbor",
    title="Harbor trials",
    gives=("steps", "seconds", "tokens", "cost", "rewards per step of a task"),
    detect=detect,
    read=read,
    companion=companion,
    options={"reward": "which of the verifier's rewards to read, where there are several"},
)
