"""OpenHands ``output.jsonl`` with the evaluation report.

A line per instance with the history of events and the metrics. For most benchmarks the line does not say whether the instance
was resolved: that is in the report, which is looked for beside the file or named with ``report``; where a line carries its
outcome (``report.resolved``, ``test_result.resolved`` or ``.score``), that is read. Of several attempts at an instance the
last counts. The system is the run's folder. Source: OpenHands ``evaluation/utils/shared.py`` and OpenHands/benchmarks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.errors import DataError
from torchpref.io.files.documents import read_lines
from torchpref.io.files.source import Source
from torchpref.io.logs.identity import Naming
from torchpref.io.logs.naming import GENERIC, folder
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, digest, list_at, several, text_of, total
from torchpref.io.logs.reports import Reports, is_report
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

_LIMIT = re.compile(
    r"maximum iteration|max(?:imum)?[ _]?(?:iterations?|budget)|budget.{0,20}exceeded|MaxIterations", re.IGNORECASE
)
_NO_ACTIONS = {"system", "recall", "change_agent_state", "null"}


def detect(source: Source) -> bool:
    """Lines with ``instance_id`` and a ``test_result``, ``history`` or ``metrics``."""
    outline = source.outline
    keys = outline.keys()
    return (
        outline.kind == "object"
        and "instance_id" in keys
        and (
            {"test_result", "history"} <= keys
            or {"test_result", "metrics"} <= keys
            or outline.has("metrics", "accumulated_cost")
        )
        and not outline.has("info", "model_stats")
    )


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per instance of each file."""
    READER.check_options(options)
    notes = Notes()
    runs = Runs(notes, "return")
    reports = Reports(sources, options.get("report"), notes)
    logs = [source for source in sources if not is_report(source)]
    finals = {source.path.parent for source in logs if source.path.name == "output.jsonl"}
    said = False
    for source in logs:
        if source.path.parent in finals and source.path.name.startswith("output.critic_attempt_"):
            notes.add(
                "attempts_left_out",
                "files of single attempts beside the final output.jsonl were left out",
                severity="note",
                example=source.path,
            )
            continue
        runs.reading(source.path)
        for instance, (system, naming, mark, outcome, point, stopped) in _file(source.path, notes, reports).items():
            said = said or outcome is not None
            runs.add(
                system,
                instance,
                [{"return": outcome, **point}],
                truncated=stopped,
                identity=mark,
                home=source.path.absolute().parent,
                naming=naming,
            )
    if not reports.found and not said and len(runs):
        raise DataError(
            f"{several([s.path for s in logs])}: the output does not say whether an instance was resolved and no evaluation "
            "report was found beside it; put it there or name it with report="
        )
    return runs.tidy(several([source.path for source in sources]))


_Run = tuple[str, Naming, str, float | None, dict[str, float | None], bool]


def _file(path: Path, notes: Notes, reports: Reports) -> dict[str, _Run]:
    found: dict[str, tuple[int, _Run]] = {}
    for number, value in read_lines(path):
        where = f"{path}:{number}"
        record = notes.record(value, where)
        if record is None:
            continue
        instance = text_of(record.get("instance_id"))
        if instance is None:
            notes.add("records_without_instance", "records that name no instance were left out", example=where)
            continue
        system, naming = _system(path, record)
        attempt = notes.whole(record.get("attempt"), where, "attempt") or 0
        if instance in found:
            notes.add(
                "attempts_several",
                "instances with several records: the last attempt counts",
                system=system,
                example=f"{where}: {instance}",
            )
            if attempt < found[instance][0]:
                continue
        outcome = _outcome(record, where, notes)
        if outcome is None:
            resolved = reports.outcome(instance, path, system)
            outcome = None if resolved is None else float(resolved)
        stopped = bool(_LIMIT.search(str(record.get("error") or "")[:2000]))
        found[instance] = (attempt, (system, naming, digest(record), outcome, _clocks(record, where, notes), stopped))
    return {instance: run for instance, (_, run) in found.items()}


def _system(path: Path, record: Mapping[str, Any]) -> tuple[str, Naming]:
    """The run's folder; where that says nothing, the model."""
    if path.absolute().parent.name.lower() not in GENERIC:
        return path.absolute().parent.name, "folder"
    meta = dict_at(record, "metadata")
    model = text_of(dict_at(meta, "llm_config").get("model")) or text_of(dict_at(meta, "llm").get("model"))
    return (model, "whole") if model else (folder(path), "folder")


def _outcome(record: Mapping[str, Any], where: str, notes: Notes) -> float | None:
    result = dict_at(record, "test_result")
    for place in (dict_at(record, "report"), dict_at(result, "report"), result):
        if place.get("resolved") is not None:
            resolved = notes.truth(place["resolved"], where, "resolved")
            return None if resolved is None else float(resolved)
    return notes.number(result.get("score"), where, "score") if "score" in result else None


def _clocks(record: Mapping[str, Any], where: str, notes: Notes) -> dict[str, float | None]:
    metrics = dict_at(record, "metrics")
    usage = dict_at(metrics, "accumulated_token_usage")
    history = list_at(record, "history")
    events = [event for event in history if isinstance(event, dict)]
    pairs = sum(isinstance(event, list) for event in history)
    steps = pairs + sum(_is_action(event) for event in events)
    stamps = [event["timestamp"] for event in events if event.get("timestamp") is not None]
    return {
        "steps": float(steps) if steps else None,
        "seconds": notes.elapsed(stamps[0], stamps[-1], where) if len(stamps) > 1 else None,
        "tokens": total(notes.clock(usage.get(name), where, name) for name in ("prompt_tokens", "completion_tokens")),
        "cost": notes.clock(metrics.get("accumulated_cost"), where, "accumulated_cost"),
    }


def _is_action(event: Mapping[str, Any]) -> bool:
    if event.get("source") != "agent" or "observation" in event:
        return False
    action = event.get("action")
    return (isinstance(action, str) and action not in _NO_ACTIONS) or event.get("kind") == "ActionEvent"


READER = Reader(
    name="openhands",
    title="OpenHands output.jsonl with the evaluation report",
    gives=("steps", "seconds", "tokens", "cost", "success"),
    detect=detect,
    read=read,
    companion=is_report,
    options={"report": "the evaluation report, or several, if not beside the output"},
)
