"""ATIF trajectories (Agent Trajectory Interchange Format 1.x) that stand alone.

A trajectory has no reward. Beside a Harbor ``result.json`` the format ``harbor`` reads both; alone, the outcomes come from a
report: SWE-bench's shapes, or an object from the name of a trial, a task or a session to a truth value or a number in
[0, 1]. The system is agent and model, the instance the part of the trial folder's name before ``__``, else the session.
Source: harbor ``models/trajectories``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.errors import DataError, UsageError
from torchpref.io.files.documents import read_object
from torchpref.io.files.source import Source
from torchpref.io.logs.naming import GENERIC, folder, folder_path
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, digest, several, text_of
from torchpref.io.logs.reports import is_report, read_report
from torchpref.io.logs.runs import Runs
from torchpref.io.logs.trajectory_steps import clocks

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

_PASSING = GENERIC | {"agent", "trajectories"}


def detect(source: Source) -> bool:
    """A ``schema_version`` that begins with ATIF."""
    version = source.outline.values.get(("schema_version",), "")
    return version.startswith("ATIF") and "steps" in source.outline.keys() | {"steps"}


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per trajectory whose outcome a report gives."""
    READER.check_options(options)
    notes = Notes()
    runs = Runs(notes, "return")
    logs = [source for source in sources if not is_report(source)]
    outcomes = _outcomes(sources, options.get("report"), notes)
    if not outcomes:
        raise DataError(
            f"{several([source.path for source in logs or sources])}: ATIF trajectories hold no reward; keep them beside "
            "Harbor's result.json, or name a report with the outcomes with report="
        )
    names = sorted({folder(source.path, _PASSING) for source in logs})
    for source in logs:
        record = read_object(source.path)
        trial = folder(source.path, _PASSING)
        task = trial.split("__")[0] if "__" in trial else ""
        session = text_of(record.get("session_id")) or ""
        known = [name for name in (trial, task, session, source.path.stem) if name]
        value = next((outcomes[name] for name in known if name in outcomes), None)
        system = system_of(record)
        if value is None:
            notes.add(
                "runs_without_report",
                "trajectories that no report names: their outcome is not known",
                system=system,
                example=source.path,
            )
        instance = next(
            (name for name in (task, session, source.path.stem, trial) if name and name in outcomes),
            task or session or source.path.stem,
        )
        agent = dict_at(record, "agent")
        runs.reading(source.path)
        runs.add(
            system,
            instance,
            [{"return": value, **clocks(record, source.path, notes)}],
            trial=names.index(trial) if task == instance else None,  # <task>__<trial> numbers the trials of a task
            identity=digest(record),
            home=folder_path(source.path, _PASSING).parent,
            naming="whole" if text_of(agent.get("name")) and text_of(agent.get("model_name")) else "partial",
            details={"version": text_of(agent.get("version"))},
        )
    return runs.tidy(several([source.path for source in sources]))


def system_of(record: Mapping[str, Any]) -> str:
    """Agent and model of a trajectory."""
    agent = dict_at(record, "agent")
    names = [text_of(agent.get("name")), text_of(agent.get("model_name"))]
    return " + ".join(name for name in names if name) or "unnamed"


def _outcomes(sources: Sequence[Source], named: Any, notes: Notes) -> dict[str, float]:
    paths = [source.path for source in sources if is_report(source)]
    if named:
        paths = (
            [Path(named)]
            if isinstance(named, str | Path)
            else [Path(path) for path in named]
            if isinstance(named, list | tuple)
            else []
        )
        if not paths:
            raise UsageError(f"report has to be a path or a list of paths, not {named!r}")
    outcomes: dict[str, float] = {}
    for path in paths:
        outcomes |= {name: float(value) for name, value in read_report(path, notes).items() if value is not None}
        if named:
            for name, value in read_object(path).items():
                number = (
                    notes.number(value, f"{path}: {name}", "outcome") if isinstance(value, int | float | str) else None
                )
                if number is not None:
                    outcomes[name] = number
    return outcomes


READER = Reader(
    name="atif",
    title="ATIF trajectories with a report",
    gives=("steps", "seconds", "tokens", "cost"),
    detect=detect,
    read=read,
    companion=is_report,
    options={"report": "a JSON object with the outcome of each trial, task or session, or an evaluation report"},
)
