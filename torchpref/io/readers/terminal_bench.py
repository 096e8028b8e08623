"""Terminal-Bench 1: the results of a run and of single trials.

A trial's score is the tests that passed out of those of that trial. Where there are no test results, ``is_resolved`` is the
outcome; where both are null, the trial is a failure if its ``failure_mode`` is one of the agent (``*_agent_error``, a timeout,
a limit), else it has no outcome. A trial that timed out may still be resolved. The system is agent and model where the run's
``run_metadata.json`` names them, with the submission's folder where it names only one; else the run's folder.
Source: laude-institute/terminal-bench,
``terminal_bench/harness/models.py``.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.io.files.documents import read_object
from torchpref.io.files.source import Source
from torchpref.io.logs.identity import Naming
from torchpref.io.logs.rates import compare_rate
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, digest, list_at, several, text_of, total
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

_TRIAL = re.compile(r"\.(\d{1,9})-of-\d+")
#: The trials of the second run of a submission are numbered from here on.
_PER_RUN = 1000
#: Failures of the agent itself, as opposed to those of its surroundings.
_FAILURE = re.compile(r"agent_error$|timeout|fatal_llm_parse_error|_length_exceeded$")
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
    seen: dict[tuple[str, str, str, str], str] = {}
    logs = [source for source in sources if not companion(source)]
    for source in sorted(logs, key=lambda source: not _is_run(source)):
        document = read_object(source.path, notes.repeated(source.path))
        runs.reading(source.path)
        if "results" not in document:
            named = _system(source, document, who, trial=True)
            _add(document, named, source.path, runs, totals, seen)
            continue
        named = _system(source, document, who, trial=False)
        system = named.name
        outcomes: list[bool | None] = []
        for number, value in enumerate(list_at(document, "results")):
            where = f"{source.path}, result {number + 1}"
            record = notes.record(value, where)
            if record is not None:
                outcomes.append(_add(record, named, where, runs, totals, seen))
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


@dataclass(frozen=True)
class _Named:
    """A system: its name, how much of it the log gives, its submission's folder, the run's, and which of its runs this is."""

    name: str
    naming: Naming
    home: Path
    run: Path
    number: int = 0


def _who(path: Path) -> tuple[str, Naming] | None:
    meta = read_object(path)
    names = [text_of(meta.get("agent_name")), text_of(meta.get("model_name"))]
    joined = " + ".join(name for name in names if name)
    return (joined, "whole" if all(names) else "partial") if joined else None


def _system(
    source: Source, document: Mapping[str, Any], who: Mapping[Path, tuple[str, Naming] | None], *, trial: bool
) -> _Named:
    path = source.path.absolute()
    run = next((parent for parent in path.parents if who.get(parent)), None)
    if run is not None and (named := who[run]):
        home = _submission(run, source.root)
        others = sorted(other for other in who if who[other] == named and other.parent == run.parent and home != run)
        return _Named(*named, home, run, others.index(run) if run in others else 0)
    above = [*path.parents, *[Path("/")] * 3]
    run = above[0]
    if trial and above[0].name and above[0].name == text_of(document.get("trial_name")):
        run = above[2]
    elif trial and "/" in (recording := text_of(document.get("recording_path")) or ""):
        return _Named(recording.split("/")[0], "folder", run, run)
    return _Named(run.name or "unnamed", "folder", run, run)


def _submission(run: Path, root: Path | None) -> Path:
    """The folder of a submission: that of the run, or the one above where that was not named by the user itself."""
    top = Path(os.path.abspath(root)) if root is not None else None
    return run.parent if top is not None and top in run.parent.parents else run


def _add(
    record: Mapping[str, Any],
    named: _Named,
    where: object,
    runs: Runs,
    totals: dict[str, set[int]],
    seen: dict[tuple[str, str, str, str], str],
) -> bool | None:
    notes = runs.notes
    system = named.name
    task = text_of(record.get("task_id"))
    if task is None:
        notes.add("records_without_instance", "records that name no instance were left out", example=where)
        return None
    name = text_of(record.get("trial_name")) or ""
    resolved = notes.truth(record.get("is_resolved"), f"{where}: {task}", "is_resolved")
    tests = dict_at(record, "parser_results")
    mark = digest(record)
    key = (str(named.run), system, task, name)
    if name and seen.get(key) == mark:
        notes.add(
            "trials_twice",
            "trials that are in two files of one run, byte for byte, count once",
            severity="note",
            system=system,
            example=f"{where}: {name}",
        )
        return resolved
    score: float | None
    failure = text_of(record.get("failure_mode")) or ""
    if resolved is None and not tests and _FAILURE.search(failure):
        resolved = False
        notes.add(
            "agent_failures",
            "trials without an outcome in which the agent crashed or ran out of time are failures",
            system=system,
            example=f"{where}: {task}, {failure}",
        )
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
    seen[key] = mark
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
        trial=_PER_RUN * named.number + int(match[1]) if match else None,
        truncated=failure in _LIMITS,
        max_score=most,
        identity=mark,
        home=named.home,
        naming=named.naming,
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
