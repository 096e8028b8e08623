"""Evaluation reports that stand beside trajectories: which instances were resolved.

Three shapes are known: SWE-bench's summary of a run (``resolved_ids``, ``unresolved_ids``, ...), its older one (``resolved``,
``applied``, ...), and one object per instance (``{id: {"resolved": true, "patch_exists": ...}}``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torchpref.errors import UsageError
from torchpref.io.files.documents import read_json
from torchpref.io.files.source import Source
from torchpref.io.logs.records import Notes, list_at, text_of

_FAILED = (
    "unresolved_ids", "completed_ids", "error_ids", "empty_patch_ids", "unresolved", "applied", "with_logs", "no_apply",
    "no_generation", "generated", "no_logs", "install_fail", "reset_failed", "test_errored", "test_timeout",
)  # fmt: skip
_OLD = {"resolved", "applied", "no_generation"}


def is_report(source: Source) -> bool:
    """Whether a file is an evaluation report."""
    outline = source.outline
    keys = outline.keys()
    if outline.kind != "object":
        return False
    return "resolved_ids" in keys and "results" not in keys or _OLD <= keys or _per_instance(outline.below("?"))


def _per_instance(below: set[str]) -> bool:
    return "resolved" in below and bool(below & {"patch_exists", "patch_successfully_applied", "tests_status"})


def read_report(path: Path, notes: Notes) -> dict[str, bool | None]:
    """The outcome of each instance that a report names."""
    report = read_json(path, notes.repeated(path))
    outcomes: dict[str, bool | None] = {}
    if not isinstance(report, dict):
        notes.add("records_unreadable", "records that are no objects were left out", example=path)
        return outcomes
    resolved = list_at(report, "resolved_ids") or list_at(report, "resolved")
    lists = {name: list_at(report, name) for name in _FAILED}
    if resolved or any(lists.values()) or "resolved_ids" in report or _OLD <= report.keys():
        for ids in lists.values():
            outcomes |= {name: False for value in ids if (name := text_of(value)) is not None}
        solved = {name for value in resolved if (name := text_of(value)) is not None}
        both = solved & {text_of(value) for value in lists["unresolved_ids"]}
        if both:
            notes.add(
                "report_contradicts_itself",
                "instances that a report lists as resolved and as unresolved are taken as unknown",
                count=len(both),
                example=f"{path}: {min(both)}",
            )
        return outcomes | {name: None if name in both else True for name in solved}
    for instance, value in report.items():
        if isinstance(value, dict):
            outcomes[instance] = notes.truth(value.get("resolved"), f"{path}: {instance}", "resolved")
        elif isinstance(value, bool):
            outcomes[instance] = value
    return outcomes


class Reports:
    """The reports among some files, or those named by the user, matched to runs by where they are.

    Args:
        sources: the files read.
        named: what the option ``report`` says: a path or several.
        notes: counts what is odd.
    """

    def __init__(self, sources: Iterable[Source], named: Any, notes: Notes) -> None:
        self.notes = notes
        self._everywhere: dict[str, bool | None] = {}
        self._by_folder: dict[Path, dict[str, bool | None]] = {}
        self._names: list[tuple[str, dict[str, bool | None]]] = []
        self.found = bool(named)
        if named:
            paths = [named] if isinstance(named, str | Path) else list(named) if isinstance(named, Sequence) else None
            if paths is None or not all(isinstance(path, str | Path) for path in paths):
                raise UsageError(f"report has to be a path or a list of paths, not {named!r}")
            for path in map(Path, paths):
                self._merge(self._everywhere, read_report(path, notes), path)
            return
        for source in sources:
            if is_report(source):
                outcomes = read_report(source.path, notes)
                self.found = True
                folder = source.path.absolute().parent
                self._names.append((source.path.name, outcomes))
                self._merge(self._by_folder.setdefault(folder, {}), outcomes, source.path)

    def _merge(self, into: dict[str, bool | None], new: Mapping[str, bool | None], path: Path) -> None:
        for instance, outcome in new.items():
            if instance in into and into[instance] != outcome:
                self.notes.add(
                    "reports_disagree",
                    "instances on which two reports of one run disagree are taken as unknown",
                    example=f"{path}: {instance}",
                )
                outcome = None
            into[instance] = outcome

    def outcome(self, instance: str, run: Path, system: str) -> bool | None:
        """Whether a run resolved its instance; None where no report says.

        Looked up in the reports that were named; else in the folder of the run or the nearest one above it that has a
        report; else in a report whose file name holds the system's name.
        """
        if self._everywhere:
            return self._everywhere.get(instance)
        for folder in run.absolute().parents:
            if instance in self._by_folder.get(folder, {}):
                named = [found for name, found in self._names if system in name and instance in found]
                several = len([1 for _, found in self._names if instance in found]) > 1
                return (named[0] if named and several else self._by_folder[folder])[instance]
        named = [found for name, found in self._names if system in name and instance in found]
        return named[0][instance] if named else None
