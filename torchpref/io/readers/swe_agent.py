"""SWE-agent ``.traj`` and mini-swe-agent ``.traj.json`` trajectories with the evaluation report.

A trajectory tells steps, time, tokens and cost, not whether the instance was resolved: that is in the evaluation report,
which is looked for beside the trajectories or named with ``report``. The system is the run's folder. ``seconds`` of
SWE-agent are those spent executing actions; of mini-swe-agent those between the first and the last message. Source:
SWE-agent 1.x ``sweagent/agent/agents.py``, mini-swe-agent ``minisweagent/run``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.errors import DataError
from torchpref.io.files.documents import read_object
from torchpref.io.files.source import Source
from torchpref.io.logs.naming import GENERIC, bare
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, digest, list_at, several, text_of, total
from torchpref.io.logs.reports import Reports, is_report
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

_LIMIT = re.compile(
    r"limit|exit_cost|exit_context|exit_total|max_step|timeexceeded|total_execution_time", re.IGNORECASE
)
_PASSING = GENERIC | {"trajectories", "trajs"}


def detect(source: Source) -> bool:
    """An object with a ``trajectory`` of actions, or with ``messages`` and ``info`` that holds ``model_stats``."""
    outline = source.outline
    if outline.kind != "object":
        return False
    keys = outline.keys()
    agent = "trajectory" in keys and (
        outline.has("trajectory", "*", "action")
        or outline.has("trajectory", "*", "execution_time")
        or outline.has("info", "model_stats")
    )
    mini = outline.has("info", "model_stats") and (
        "messages" in keys or outline.has("info", "mini_version") or "trajectory_format" in keys
    )
    return (agent or mini) and "score_change_record" not in keys


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per trajectory."""
    READER.check_options(options)
    notes = Notes()
    runs = Runs(notes, "success")
    reports = Reports(sources, options.get("report"), notes)
    logs = [source for source in sources if not is_report(source)]
    if not reports.found:
        raise DataError(
            f"{several([s.path for s in logs or sources])}: trajectories do not say whether the instance was resolved and no "
            "evaluation report was found beside them; put it there or name it with report="
        )
    for source in logs:
        record = read_object(source.path)
        runs.reading(source.path)
        instance, system, home = _named(source.path, record)
        info = dict_at(record, "info")
        point = (
            _mini(record, info, source.path, notes)
            if "messages" in record
            else _agent(record, info, source.path, notes)
        )
        outcome = reports.outcome(instance, source.path, system)
        if outcome is None:
            notes.add(
                "runs_without_report",
                "trajectories that no report names: their outcome is not known",
                system=system,
                example=source.path,
            )
        status = text_of(info.get("exit_status")) or ""
        truncated = bool(_LIMIT.search(status))
        points = [{"success": outcome, **point}]
        mark = digest(record)
        runs.add(system, instance, points, truncated=truncated, identity=mark, home=home, naming="folder")
    return runs.tidy(several([source.path for source in sources]))


def _named(path: Path, record: Mapping[str, Any]) -> tuple[str, str, Path]:
    stem = bare(path, ".traj.json", ".traj")
    instance = text_of(record.get("instance_id")) or stem
    above = path.absolute().parents
    home = next((p for p in above if p.name.lower() not in _PASSING and p.name not in (instance, stem)), above[0])
    return instance, home.name if home.name.lower() not in _PASSING else "unnamed", home


def _stats(info: Mapping[str, Any], where: Path, notes: Notes) -> dict[str, float | None]:
    stats = dict_at(info, "model_stats")
    sent = notes.clock(stats.get("tokens_sent"), where, "tokens_sent")
    received = notes.clock(stats.get("tokens_received"), where, "tokens_received")
    return {
        "turns": notes.clock(stats.get("api_calls"), where, "api_calls"),
        "tokens": total([sent, received]),
        "cost": notes.clock(stats.get("instance_cost"), where, "instance_cost"),
    }


def _agent(record: Mapping[str, Any], info: Mapping[str, Any], where: Path, notes: Notes) -> dict[str, float | None]:
    steps = list_at(record, "trajectory")
    spent = [
        notes.clock(step.get("execution_time"), where, "execution_time") for step in steps if isinstance(step, dict)
    ]
    return {"steps": float(len(steps)), "seconds": total(spent), **_stats(info, where, notes)}


def _mini(record: Mapping[str, Any], info: Mapping[str, Any], where: Path, notes: Notes) -> dict[str, float | None]:
    messages = [message for message in list_at(record, "messages") if isinstance(message, dict)]
    answers = [
        message for message in messages if message.get("role") == "assistant" or message.get("object") == "response"
    ]
    stamps = [stamp for message in messages if (stamp := dict_at(message, "extra").get("timestamp")) is not None]
    costs = [notes.clock(dict_at(message, "extra").get("cost"), where, "cost") for message in answers]
    stats = _stats(info, where, notes)
    if stats["cost"] is None:
        stats["cost"] = total(costs)
    seconds = notes.elapsed(stamps[0], stamps[-1], where) if len(stamps) > 1 else None
    steps = float(len(answers)) if answers else stats["turns"]
    return {"steps": steps, "seconds": seconds, **stats}


READER = Reader(
    name="swe-agent",
    title="SWE-agent and mini-swe-agent trajectories with the evaluation report",
    gives=("steps", "turns", "seconds", "tokens", "cost", "success"),
    detect=detect,
    read=read,
    companion=is_report,
    options={"report": "the evaluation report, or several, if not beside the trajectories"},
)
