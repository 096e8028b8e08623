"""tau2-bench results: one file, or a folder with ``simulations/``.

The outcome is ``reward_info.reward``; ``seconds`` the duration and ``cost`` the agent's, both often null or 0, which are times
that are not known; ``turns`` count the agent's messages, ``steps`` all of them, ``tokens`` what the agent used. With
``progress="actions"`` each action check that matched is a level, reached at the message that made the call: of n checks the
k-th match reaches k / (n + 1), and 1 is left to the reward. Source: sierra-research/tau2-bench,
``src/tau2/data_model/simulation.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.errors import UsageError
from torchpref.io.files.documents import read_object
from torchpref.io.files.source import Source
from torchpref.io.logs.naming import folder
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, digest, list_at, several, text_of, total
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

_LIMITS = {"max_steps", "timeout", "max_errors_timeout"}
_SIMULATION = {"task_id", "reward_info", "messages"}


def _is_simulation(source: Source) -> bool:
    keys = source.outline.keys()
    return _SIMULATION <= keys or {"task_id", "termination_reason", "trial"} <= keys


def _is_settings(source: Source) -> bool:
    return (
        source.outline.has("info", "agent_info")
        and {"tasks", "simulations", "timestamp"} & source.outline.keys() != set()
    )


def detect(source: Source) -> bool:
    """An object with ``simulations``, or with ``info`` about agent and environment, or one simulation."""
    outline = source.outline
    return outline.kind == "object" and (
        outline.has("simulations", "*", "task_id")
        or outline.has("simulations", "*", "reward_info")
        or _is_settings(source)
        or ({"info", "simulations"} <= outline.keys())
        or _is_simulation(source)
    )


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per simulation."""
    READER.check_options(options)
    progress = options.get("progress", "none")
    if progress not in ("none", "actions"):
        raise UsageError(f"progress is 'none' or 'actions', not {progress!r}")
    notes = Notes()
    runs = Runs(notes, "return")
    documents = [(source.path, read_object(source.path, notes.repeated(source.path))) for source in sources]
    settings = {
        path.absolute().parent: record for path, record in documents if "info" in record and "messages" not in record
    }
    for path, record in documents:
        if "simulations" not in record and "info" in record and "messages" not in record:
            continue
        whose = record if "simulations" in record else _settings(path, settings)
        for number, value in enumerate(list_at(record, "simulations") if "simulations" in record else [record], 1):
            where = f"{path}, simulation {number}"
            simulation = notes.record(value, where)
            if simulation is not None:
                _simulation(simulation, whose, path, where, progress == "actions", runs)
    return runs.tidy(several([source.path for source in sources]))


def _settings(path: Path, settings: Mapping[Path, dict[str, Any]]) -> dict[str, Any]:
    return next((settings[parent] for parent in path.absolute().parents if parent in settings), {})


def _system(record: Mapping[str, Any], path: Path) -> str:
    agent = dict_at(record, "info", "agent_info")
    model, kind = text_of(agent.get("llm")), text_of(agent.get("implementation"))
    names = [model, kind if kind != "llm_agent" or not model else None]
    return " + ".join(name for name in names if name) or folder(path, {"simulations", "results", "data", ""})


def _simulation(
    record: dict[str, Any], whose: Mapping[str, Any], path: Path, where: str, actions: bool, runs: Runs
) -> None:
    notes = runs.notes
    task = text_of(record.get("task_id"))
    if task is None:
        notes.add("records_without_instance", "records that name no instance were left out", example=where)
        return
    where = f"{where}, task {task}"
    described = next((t for t in list_at(whose, "tasks") if isinstance(t, dict) and text_of(t.get("id")) == task), None)
    messages = [message for message in list_at(record, "messages") if isinstance(message, dict)]
    info = dict_at(record, "reward_info")
    reward = notes.number(info.get("reward"), where, "reward")
    duration = notes.clock(record.get("duration"), where, "duration")
    end = _so_far(messages, where, notes) | {
        "seconds": duration
        if duration is not None
        else notes.elapsed(record.get("start_time"), record.get("end_time"), where),
        "cost": notes.clock(record.get("agent_cost"), where, "agent_cost"),
    }
    points = _matched(info, messages, where, notes) if actions and reward is not None else []
    if points and reward is not None and reward < 1:
        reward = max(reward, points[-1]["return"])
    points.append({**end, "return": reward})
    runs.reading(path)
    agent, user = dict_at(whose, "info", "agent_info"), dict_at(whose, "info", "user_info")
    story = (described or {}).get("user_scenario")
    runs.add(
        _system(whose, path),
        task,
        points,
        benchmark=text_of(dict_at(whose, "info", "environment_info").get("domain_name")) or "",
        trial=notes.whole(record.get("trial"), where, "trial"),
        truncated=(text_of(record.get("termination_reason")) or "").lower().rpartition(".")[2] in _LIMITS,
        identity=digest(record),
        home=path.absolute() if "simulations" in record or "info" in record else path.absolute().parent,
        naming="whole" if text_of(agent.get("llm")) else "partial",
        details={"llm_args": _args(agent.get("llm_args"))},
        setting={"user": text_of(user.get("llm")), "split": text_of(dict_at(whose, "info").get("task_split"))},
        content=digest(story) if story else None,
    )


def _args(value: Any) -> str | None:
    return json.dumps(value, sort_keys=True)[:80] if isinstance(value, dict) and value else None


def _so_far(messages: Sequence[Mapping[str, Any]], where: str, notes: Notes) -> dict[str, float | None]:
    """Steps, turns and tokens after some messages; nothing is known without any."""
    if not messages:
        return {"steps": None, "turns": None, "tokens": None}
    own = [message for message in messages if message.get("role") == "assistant"]
    used = (
        notes.clock(dict_at(message, "usage").get(name), where, name)
        for message in own
        for name in ("prompt_tokens", "completion_tokens")
    )
    return {"steps": float(len(messages)), "turns": float(len(own)), "tokens": total(used)}


def _matched(
    info: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], where: str, notes: Notes
) -> list[dict[str, Any]]:
    """A point for each action check that matched, at the first message that made its call."""
    checks = [check for check in list_at(info, "action_checks") if isinstance(check, dict)]
    places: list[int] = []
    for check in checks:
        if check.get("action_match") is not True:
            continue
        place = next((n for n, message in enumerate(messages, 1) if _calls(message, dict_at(check, "action"))), None)
        if place is None:
            notes.add(
                "actions_not_placed",
                "action checks that matched, but no message makes their call: no level",
                example=where,
            )
        else:
            places.append(place)
    return [
        {**_so_far(messages[:place], where, notes), "return": number / (len(checks) + 1)}
        for number, place in enumerate(sorted(places), 1)
    ]


def _calls(message: Mapping[str, Any], action: Mapping[str, Any]) -> bool:
    if message.get("role") != action.get("requestor", "assistant"):
        return False
    compared = action.get("compare_args")
    wanted = dict_at(action, "arguments")
    for call in list_at(message, "tool_calls"):
        if not isinstance(call, dict) or call.get("name") != action.get("name"):
            continue
        given = dict_at(call, "arguments")
        names = compared if isinstance(compared, list) else wanted.keys() | given.keys()
        if all(given.get(name) == wanted.get(name) for name in names if isinstance(name, str)):
            return True
    return False


READER = Reader(
    name="tau2",
    title="tau2-bench results",
    gives=("steps", "turns", "seconds", "tokens", "cost", "progress by action checks"),
    detect=detect,
    read=read,
    options={"progress": "'actions' makes each matched action check a level of return (default 'none')"},
)
