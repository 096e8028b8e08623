"""TheAgentCompany: ``eval_<task>.json`` and the result table of a run.

The evaluation file has checkpoints and a final score, but no clock: steps and cost come from the table
``| Filename | Total | Result | Score | Steps | Cost |`` of the run, joined by task. The return is result / total of that
run; the table's own ``Score`` halves partial credit and is not used. The system is the run's folder. Source:
TheAgentCompany/experiments.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.io.files.documents import read_object, read_text
from torchpref.io.files.outline import decode_head
from torchpref.io.files.source import Source
from torchpref.io.logs.naming import folder, folder_path
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, digest, list_at, positive_option, several, text_of
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

_HEADER = re.compile(
    r"^[ \t]*\|[ \t]*Filename[ \t]*\|[ \t]*Total[ \t]*\|[ \t]*Result[ \t]*\|[ \t]*Score[ \t]*\|[ \t]*Steps[ \t]*\|",
    re.MULTILINE,
)
_FILE = re.compile(r"(?:^|_)eval_(?P<task>.+)$")


def _is_table(source: Source) -> bool:
    text = decode_head(source.head)
    return "Filename" in text and _HEADER.search(text) is not None


def detect(source: Source) -> bool:
    """An evaluation with ``final_score`` or ``checkpoints``, or a page with the result table."""
    outline = source.outline
    evaluation = (outline.has("final_score", "result") and outline.has("final_score", "total")) or (
        "final_score" in outline.keys() and "checkpoints" in outline.keys()
    )
    return evaluation or _is_table(source)


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per task of a system, from its evaluation file, its table, or both."""
    READER.check_options(options)
    notes = Notes()
    cap = positive_option(options, "max_steps")
    tables: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for source in sources:
        if _is_table(source):
            tables[folder(source.path)].update(_table(source.path, notes))
    runs = Runs(notes, "score")
    seen: set[tuple[str, str]] = set()
    totals: dict[str, dict[float, str]] = defaultdict(dict)
    homes = {folder(source.path): folder_path(source.path) for source in sources}
    for source in sources:
        runs.reading(source.path)
        if not _is_table(source):
            system = folder(source.path)
            record = read_object(source.path, notes.repeated(source.path))
            task = _task(text_of(record.get("task_id")) or source.path.stem)
            seen.add((system, task))
            result, whole = _outcome(record, source.path, system, notes)
            totals[task].setdefault(whole or 0.0, system)
            more = {"identity": digest(record), "home": folder_path(source.path)}
            _add(runs, system, task, result, whole, tables[system].get(task), source.path, cap, **more)
    for system, rows in sorted(tables.items()):
        for task, row in sorted(rows.items()):
            if (system, task) not in seen:
                where = f"table of {system}, {task}"
                result, whole = notes.number(row["Result"], where, "Result"), notes.clock(row["Total"], where, "Total")
                totals[task].setdefault(whole or 0.0, system)
                _add(runs, system, task, result, whole, row, where, cap, home=homes[system])
    for task, found in sorted(totals.items()):
        if len(found) > 1:
            shown = ", ".join(f"{total:g} for {system}" for total, system in sorted(found.items()))
            notes.add(
                "totals_differ",
                "tasks whose total differs between systems: each run is divided by its own",
                example=f"{task}: {shown}",
            )
    return runs.tidy(several([source.path for source in sources]))


def _task(name: str) -> str:
    match = _FILE.search(name)
    return (match["task"] if match else name).removesuffix("-image")


def _outcome(record: dict[str, Any], path: Path, system: str, notes: Notes) -> tuple[float | None, float | None]:
    final = dict_at(record, "final_score")
    result = notes.number(final.get("result", record.get("score")), path, "result")
    whole = notes.clock(final.get("total", record.get("total")), path, "total")
    parts = [
        notes.number(part.get("result"), path, "checkpoint")
        for part in list_at(record, "checkpoints")
        if isinstance(part, dict)
    ]
    if result is not None and parts and sum(part or 0 for part in parts) != result:
        notes.add(
            "checkpoints_disagree",
            "evaluations whose checkpoints add up to something else than the final score, which counts",
            severity="note",
            system=system,
            example=path,
        )
    if record.get("error"):
        notes.add(
            "evaluation_errors",
            "evaluations that report an error",
            system=system,
            example=f"{path}: {str(record['error'])[:80]}",
        )
    return result, whole


def _add(
    runs: Runs,
    system: str,
    task: str,
    result: float | None,
    whole: float | None,
    row: dict[str, str] | None,
    where: object,
    cap: float | None,
    **more: Any,
) -> None:
    notes = runs.notes
    steps = cost = None
    if row is None:
        notes.add(
            "runs_without_table",
            "evaluations that no result table gives steps and cost for: when they got there is not known",
            system=system,
            example=where,
        )
    else:
        steps = notes.clock(_given(row.get("Steps")), where, "Steps")
        cost = notes.clock(_given(row.get("Cost")), where, "Cost")
    if not whole:
        notes.add(
            "totals_not_given", "runs without a positive total cannot be put in [0, 1]", system=system, example=where
        )
        result = None
    stopped = None if cap is None else steps is not None and steps >= cap
    point = {"score": result, "steps": steps, "cost": cost}
    runs.add(system, task, [point], truncated=stopped, max_score=whole or None, naming="folder", **more)


def _given(cell: str | None) -> float | str | None:
    """A table cell as a number where it is one (all cells are text in a table, which is nothing odd)."""
    text = (cell or "").strip().lstrip("$")
    if text.lower() in ("", "-", "n/a", "none", "null", "nan"):
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _table(path: Path, notes: Notes) -> dict[str, dict[str, Any]]:
    """The rows of the result table by task."""
    rows: dict[str, dict[str, Any]] = {}
    header: list[str] | None = None
    for number, line in enumerate(read_text(path).split("\n"), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "Filename" in cells and "Result" in cells:
            header = cells
        elif header is None or not line.strip().startswith("|"):
            header = header if line.strip().startswith("|") else None
        elif set("".join(cells)) <= set("-: "):
            continue
        elif len(cells) != len(header):
            notes.add(
                "rows_unreadable",
                "rows of a result table with too few or too many cells were left out",
                example=f"{path}:{number}",
            )
        else:
            row: dict[str, Any] = dict(zip(header, cells, strict=True))
            row["Result"], row["Total"] = _given(row["Result"]), _given(row.get("Total"))
            task = _task(row["Filename"])
            if task in rows:
                notes.add(
                    "rows_repeated",
                    "tasks that a result table has twice: the last row counts",
                    example=f"{path}:{number}",
                )
            rows[task] = row
    return rows


READER = Reader(
    name="theagentcompany",
    title="TheAgentCompany evaluations and result tables",
    gives=("steps", "cost", "partial credit"),
    detect=detect,
    read=read,
    options={"max_steps": "runs with this many steps were stopped by their limit (the benchmark's cap is 100)"},
)
