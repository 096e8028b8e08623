"""OpenHands Index: ``results/<model>/instance_results/<benchmark>.json`` and ``alternative_agents/<agent>/<model>/...``.

Each file is ``{instance: {"resolved": true | false | null, "cost": dollars | null}}``. A null outcome is no run. Costs of
null or 0 are times that are not known. ``scores.json`` beside the folder reports the rates, which are compared. Source:
OpenHands/openhands-index-results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.io.files.documents import read_json, read_object
from torchpref.io.files.source import Source
from torchpref.io.logs.naming import folders
from torchpref.io.logs.rates import compare_rate
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, digest, several, text_of
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

_ALLOWED = {"resolved", "cost"}


def detect(source: Source) -> bool:
    """An object of objects with ``resolved`` and ``cost`` and nothing else."""
    outline = source.outline
    below = outline.below("?")
    return outline.kind == "object" and "resolved" in below and below <= _ALLOWED and not outline.more


def companion(source: Source) -> bool:
    """``scores.json`` and ``metadata.json`` of a model."""
    outline = source.outline
    return (outline.has("*", "benchmark") and outline.has("*", "score")) or {
        "agent_name",
        "model",
        "directory_name",
    } <= outline.keys()


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per instance of each file."""
    READER.check_options(options)
    notes = Notes()
    runs = Runs(notes, "success")
    outcomes: dict[tuple[str, str], list[bool | None]] = {}
    for source in sources:
        if companion(source):
            continue
        runs.reading(source.path)
        system, benchmark = _named(source.path)
        found = outcomes.setdefault((system, benchmark), [])
        for instance, value in read_object(source.path, notes.repeated(source.path)).items():
            where = f"{source.path}: {instance}"
            record = notes.record(value, where)
            if record is None:
                continue
            resolved = notes.truth(record.get("resolved"), where, "resolved")
            found.append(resolved)
            cost = notes.clock(record.get("cost"), where, "cost")
            runs.add(
                system,
                instance,
                [{"success": resolved, "cost": cost}],
                benchmark=benchmark,
                identity=digest(record),
                home=_home(source.path),
                naming="folder",
            )
    for source in sources:
        if source.outline.kind == "array" and companion(source):
            _compare(source.path, outcomes, notes)
    return runs.tidy(several([source.path for source in sources]))


def _named(path: Path) -> tuple[str, str]:
    """System and benchmark: from the folders, or from a name ``<model>__<benchmark>`` where the file was moved."""
    above = [*folders(path), "", ""]
    if above[0] == "instance_results":
        agent = f"{above[2]}/" if len(above) > 3 and above[3] == "alternative_agents" else ""
        return f"{agent}{above[1] or 'unnamed'}", path.stem
    system, joint, benchmark = path.stem.rpartition("__")
    return (system, benchmark) if joint and system else (above[0] or "unnamed", path.stem)


def _home(path: Path) -> Path:
    """The model's folder."""
    parent = path.absolute().parent
    return parent.parent if parent.name == "instance_results" else parent


def _compare(path: Path, outcomes: Mapping[tuple[str, str], list[bool | None]], notes: Notes) -> None:
    above = folders(path)
    agent = f"{above[1]}/" if len(above) > 2 and above[2] == "alternative_agents" else ""
    moved = path.stem.removesuffix("__scores")
    system = moved if moved != path.stem else agent + above[0]
    records = read_json(path)
    for record in records if isinstance(records, list) else []:
        if isinstance(record, dict) and record.get("metric") == "accuracy":
            benchmark = text_of(record.get("benchmark")) or ""
            reported = notes.number(record.get("score"), path, "score")
            found = outcomes.get((system, benchmark), [])
            compare_rate(notes, system, f"{system} on {benchmark}", reported, found, tolerance=0.051)


READER = Reader(
    name="openhands-index",
    title="OpenHands Index instance results",
    gives=("cost", "success"),
    detect=detect,
    read=read,
    companion=companion,
)
