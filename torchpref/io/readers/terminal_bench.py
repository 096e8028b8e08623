"""Terminal-Bench 1: the results of a run and of single trials.

A trial's score is the tests that passed out of those of that trial. Where there are no test results, ``is_resolved`` is the
outcome; where both are null, there is none. A trial that timed out may still be resolved. The system is the run's folder, or
agent and model where the run's ``run_metadata.json`` names them. Source: laude-institute/terminal-bench,
``terminal_bench/harness/models.py``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.io.files.documents import read_object
from torchpref.io.files.source import Source
from torchpref.io.logs.naming import folders
from torchpref.io.logs.rates import compare_rate
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, list_at, several, text_of, total
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

_TRIAL = re.compile(r"\.(\d{1,9})-of-\d+")
_LIMITS = {"agent_timeout", "context_length_exceeded", "output_length_exceeded"}


def _is_run(source: Source) -> bool:
    return source.outline.has("results", "*", "is_resolved") or (
        source.outline.has("results", "*", "trial_name")
        or {"n_resolved", "n_unresolved", "results"} <= source.outline.keys()
    )


def detect(source: Source) -> bool:
    """A run with ``results``, or a trial with ``task_id`` and ``is_resolved``."""
    keys = source.outline.keys()
    return source.outline.kind == "object" and (_is_run(source) or {"task_id", "is_resolved", "trial_name"} <= keys)


def companion(source: Source) -> bool:
    """``run_metadata.json``: who ran."""
    return {"run_id", "agent_name"} <= source.outline.keys()


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per trial; a trial that is in its run's results and in a file of its own counts once."""
    READER.check_options(options)
    notes = Notes()
    runs = Runs(notes, "score")
    who = {source.path.absolute().parent: _who(source.path) for source in sources if companion(source)}
    totals: dict[str, set[int]] = defaultdict(set)
    seen: set[tuple[str, str, str]] = set()
    logs = [source for source in sources if not companion(source)]
    for source in sorted(logs, key=lambda source: not _is_run(source)):
        document = read_object(source.path, notes.repeated(source.path))
        if "results" not in document:
            system = _system(source.path, document, who, trial=True)
            _add(document, system, source.path, runs, totals, seen)
            continue
        system = _system(source.path, document, who, trial=False)
        outcomes: list[bool | None] = []
        for number, value in enumerate(list_at(document, "results")):
            where = f"{source.path}, result {number + 1}"
            record = notes.record(value, where)
            if record is not None:
                outcomes.append(_add(record, system, where, runs, totals, seen))
        rate = notes.number(document.get("accuracy"), source.path, "accuracy")
        compare_rate(notes, system, system, None if rate is None else 100 * rate, outcomes, tolerance=0.051)
    for task, found in sorted(totals.items()):
        if len(found) > 1:
            notes.add(
                "totals_differ",
                "tasks whose number of tests differs between trials: each is divided by its own",
                example=f"{task}: {', '.join(map(str, sorted(found)))}",
            )
    return runs.tidy(several([source.path for source in sources]))


def _who(path: Path) -> str | None:
    meta = read_object(path)
    names = [text_of(meta.get("agent_name")), text_of(meta.get("model_name"))]
    return " + ".join(name for name in names if name) or None


def _system(path: Path, document: Mapping[str, Any], who: Mapping[Path, str | None], *, trial: bool) -> str:
    named = next((who[parent] for parent in path.absolute().parents if who.get(parent)), None)
    if named:
        return named
    above = [*folders(path), "", "", ""]
    if not trial:
        return above[0] or "unnamed"
    if above[0] and above[0] == text_of(document.get("trial_name")):
        return above[2] or "unnamed"
    recording = text_of(document.get("recording_path"))
    return recording.split("/")[0] if recording and "/" in recording else above[0] or "unnamed"


def _add(
    record: Mapping[str, Any],
    system: str,
    where: object,
    runs: Runs,
    totals: dict[str, set[int]],
    seen: set[tuple[str, str, str]],
) -> bool | None:
    notes = runs.notes
    task = text_of(record.get("task_id"))
    if task is None:
        notes.add("records_without_instance", "records that name no instance were left out", example=where)
        return None
    name = text_of(record.get("trial_name")) or ""
    resolved = notes.truth(record.get("is_resolved"), f"{where}: {task}", "is_resolved")
    tests = dict_at(record, "parser_results")
    if name and (system, task, name) in seen:
        notes.add(
            "trials_twice",
            "trials that are in two files count once",
            severity="note",
            system=system,
            example=f"{where}: {name}",
        )
        return resolved
    seen.add((system, task, name))
    score: float | None
    if tests:
        score, most = float(sum(result == "passed" for result in tests.values())), float(len(tests))
        totals[task].add(len(tests))
        if resolved is not None and resolved != (score == most):
            notes.add(
                "outcome_disagrees",
                "trials whose is_resolved says something else than their tests, which count",
                system=system,
                example=f"{where}: {task}, {score:g} of {most:g} passed, is_resolved {str(resolved).lower()}",
            )
    else:
        score, most = (None if resolved is None else float(resolved)), 1.0
    failure = text_of(record.get("failure_mode")) or ""
    tokens = total(
        notes.clock(record.get(key), f"{where}: {task}", key) for key in ("total_input_tokens", "total_output_tokens")
    )
    match = _TRIAL.search(name)
    runs.add(
        system,
        task,
        [
            {
                "score": score,
                "seconds": notes.elapsed(
                    record.get("agent_started_at"), record.get("agent_ended_at"), f"{where}: {task}"
                ),
                "tokens": tokens,
            }
        ],
        trial=int(match[1]) if match else None,
        truncated=failure in _LIMITS,
        max_score=most,
        identity=name,
    )
    return resolved


READER = Reader(
    name="terminal-bench",
    title="Terminal-Bench results",
    gives=("seconds", "tokens", "tests passed"),
    detect=detect,
    read=read,
    companion=companion,
)
