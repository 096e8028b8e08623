"""SWE-bench evaluation reports that stand alone: a summary of a run, a report per instance, or the list of an experiment.

A summary (``<model>.<run>.json``) names ids as resolved, unresolved, with an empty patch, or in error; a ``report.json`` per
instance lies in ``<model>/<instance>/`` and says which tests passed; the ``results.json`` of an experiment names what was
resolved. An empty patch is a failure, an error has no outcome. The system is the model in the file's name, or the folder. Of
an instance that is not resolved, k of n tests that have to be mended reach k / (n + 1); 1 is left to being resolved. A report
has no clock: read it with the trajectories beside it to have any. Source: swebench ``harness/reporting.py``, ``grading.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.io.files.documents import read_object
from torchpref.io.files.source import Source
from torchpref.io.logs.naming import folder, folder_path
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, digest, list_at, several, text_of
from torchpref.io.logs.reports import is_report
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

#: Lists of ids, and what they say of an instance.
_FAILED = ("unresolved_ids", "empty_patch_ids", "unresolved", "no_generation", "applied", "with_logs", "no_apply")
_UNKNOWN = ("error_ids", "no_logs", "test_errored", "install_fail", "reset_failed")


def _is_experiment(source: Source) -> bool:
    keys = source.outline.keys()
    return source.outline.kind == "object" and "resolved" in keys and bool(keys & {"no_generation", "no_logs"})


def detect(source: Source) -> bool:
    """A summary with ``resolved_ids``, a report of one instance, or an experiment's ``resolved`` and ``no_generation``."""
    return is_report(source) or _is_experiment(source)


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per instance that a report names, and in experiments per instance that any of them names."""
    READER.check_options(options)
    notes = Notes()
    runs = Runs(notes, "return")
    experiments: list[tuple[Path, dict[str, bool | None]]] = []
    for source in sources:
        report = read_object(source.path, notes.repeated(source.path))
        runs.reading(source.path)
        if "resolved_ids" in report or "unresolved_ids" in report:
            for instance, outcome in _outcomes(report, source.path, notes).items():
                _add(
                    runs,
                    source.path.stem.rpartition(".")[0] or source.path.stem,
                    instance,
                    outcome,
                    source.path.absolute(),
                )
        elif isinstance(report.get("resolved"), list):
            experiments.append((source.path, _outcomes(report, source.path, notes)))
        else:
            _instances(report, source.path, runs)
    named = sorted({instance for _, outcomes in experiments for instance in outcomes})
    for path, outcomes in experiments:
        runs.reading(path)
        for instance in named:
            _add(runs, folder(path), instance, outcomes.get(instance, False), folder_path(path))
    if experiments:
        notes.add(
            "instances_of_all_reports",
            "reports of experiments name only what was resolved or not generated: every instance that any of them names is "
            "a run of each, failed where it is not named; instances",
            severity="note",
            count=len(named),
        )
    return runs.tidy(several([source.path for source in sources]))


def _outcomes(report: Mapping[str, Any], path: Path, notes: Notes) -> dict[str, bool | None]:
    def ids(names: Sequence[str]) -> set[str]:
        return {name for key in names for value in list_at(report, key) if (name := text_of(value)) is not None}

    solved, failed = ids(("resolved_ids", "resolved")), ids(("unresolved_ids", "unresolved"))
    found: dict[str, bool | None] = dict.fromkeys(sorted(ids(_FAILED)), False)
    found |= dict.fromkeys(sorted(ids(_UNKNOWN)))
    found |= dict.fromkeys(sorted(solved), True)
    for instance in sorted(solved & failed):
        found[instance] = None
        notes.add(
            "report_contradicts_itself",
            "instances that a report lists as resolved and as unresolved are taken as unknown",
            example=f"{path}: {instance}",
        )
    return found


def _add(runs: Runs, system: str, instance: str, outcome: bool | None, home: Path) -> None:
    value = None if outcome is None else float(outcome)
    runs.add(system, instance, [{"return": value}], identity=outcome, home=home, naming="folder")


def _instances(report: Mapping[str, Any], path: Path, runs: Runs) -> None:
    """The instances of one report; a ``report.json`` lies in the instance's folder, and that in the model's."""
    notes = runs.notes
    above = path.absolute().parents
    for instance, value in report.items():
        where = f"{path}: {instance}"
        record = notes.record(value, where)
        if record is None:
            continue
        resolved = notes.truth(record.get("resolved"), where, "resolved")
        tests = dict_at(record, "tests_status", "FAIL_TO_PASS")
        good, bad = len(list_at(tests, "success")), len(list_at(tests, "failure"))
        reached = None if resolved is None else 1.0 if resolved else good / (good + bad + 1)
        home = above[1] if above[0].name == instance and len(above) > 1 else folder_path(path)
        system = home.name or "unnamed"
        runs.add(system, instance, [{"return": reached}], identity=digest(record), home=home, naming="folder")


READER = Reader(
    name="swebench-reports",
    title="SWE-bench evaluation reports",
    gives=("tests mended",),
    detect=detect,
    read=read,
)
