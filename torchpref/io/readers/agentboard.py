"""AgentBoard: ``{log}/logs/{task}.jsonl`` and ``{log}/{task}.txt``.

The records of a ``.jsonl`` file are pretty-printed, so one spans many lines. Steps count from 0 there and from 1 here. A
change of the score is logged against the previous step, so logged values can fall. The system is the name of the log
folder, the benchmark the name of the file, the instance the record's ``id``. Source: AgentBoard, NeurIPS 2024,
``agentboard/utils/logging``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.io.files.documents import read_stream, read_text
from torchpref.io.files.outline import decode_head
from torchpref.io.files.source import Source
from torchpref.io.logs.naming import folder, folder_path
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, digest, integer_of, list_at, several, text_of
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

_LINE = re.compile(
    r"\[EXP\]\s*(?P<id>[^:\n]+):\s*\[success_rate\]:\s*(?P<success>[^,\n]+),\s*\[progress_rate\]:\s*(?P<progress>[^,\n]+)"
    r"(?:,\s*\[grounding_acc\]:\s*[^,\n]+)?(?:,\s*\[score_state\]:\s*\[(?P<state>[^\n]*)\])?\s*"
)
_PAIR = re.compile(r"\(\s*(\d+)\s*,\s*(?:np\.float\d*\()?\s*([-+.\deE]+)\)?\s*\)")
_TURN = re.compile(r"Interaction Turn (\d+)")


def _is_records(source: Source) -> bool:
    keys = source.outline.keys()
    return "score_change_record" in keys or (
        "trajectory" in keys and bool(keys & {"progress_rate", "grounding_acc", "is_done"})
    )


def _is_text(source: Source) -> bool:
    return _LINE.match(decode_head(source.head).lstrip()) is not None


def detect(source: Source) -> bool:
    """Records with a ``score_change_record``, or lines that begin with ``[EXP]``."""
    return _is_records(source) or _is_text(source)


def companion(source: Source) -> bool:
    """``all_results.txt``: rates per task, no runs."""
    return {"task_name", "success_rate", "progress_rate", "grounding_acc"} <= source.outline.keys()


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per record; where a task has both files, the ``.jsonl`` counts and the ``.txt`` is compared with it."""
    READER.check_options(options)
    notes = Notes()
    runs = Runs(notes, "return")
    best: dict[tuple[str, str, str], float] = {}
    tasks: set[tuple[str, str]] = set()
    texts = [source for source in sources if _is_text(source)]
    records = [source for source in sources if source not in texts and not companion(source)]
    for source in records:
        name = (folder(source.path), source.path.stem)
        runs.reading(source.path)
        tasks.add(name)
        for number, value in read_stream(source.path):
            where = f"{source.path}, record {number}"
            record = notes.record(value, where)
            if record is not None:
                _add(record, where, name, source.path, runs, best)
    for source in texts:
        name = (folder(source.path), source.path.stem)
        runs.reading(source.path)
        _add_text(source.path, name, runs, best if name in tasks else None)
    return runs.tidy(several(sources))


def _add(
    record: dict[str, Any],
    where: str,
    name: tuple[str, str],
    path: Path,
    runs: Runs,
    best: dict[tuple[str, str, str], float],
) -> None:
    notes = runs.notes
    instance = text_of(record.get("id"))
    if instance is None:
        notes.add("records_without_instance", "records that name no instance were left out", example=where)
        return
    trajectory = dict_at(record, "trajectory")
    turns = {
        int(match[1]): turn
        for key, turn in trajectory.items()
        if (match := _TURN.fullmatch(key)) and len(match[1]) < 10
    }
    last = max(len(turns), max(turns, default=-1) + 1) or None
    points: list[dict[str, Any]] = []
    if isinstance(record.get("score_change_record"), list):
        for entry in list_at(record, "score_change_record"):
            step = integer_of(entry[0]) if isinstance(entry, list) and len(entry) == 2 else None
            value = (
                notes.number(entry[1], where, "score_change_record")
                if isinstance(entry, list) and len(entry) == 2
                else None
            )
            if step is None or value is None:
                notes.add(
                    "changes_unreadable",
                    "entries of score_change_record that cannot be read were left out",
                    example=where,
                )
                continue
            points.append({"steps": step + 1, "return": value})
    else:
        notes.add(
            "changes_not_given",
            "runs without a score_change_record are read from their turns",
            severity="note",
            example=where,
        )
        for step, turn in sorted(turns.items()):
            if isinstance(turn, dict):
                value = notes.number(turn.get("Progress Rate", turn.get("Reward")), where, "Progress Rate")
                if value is not None:
                    points.append({"steps": step + 1, "return": value})
    progress = notes.number(record.get("progress_rate"), where, "progress_rate")
    end = max([point["steps"] for point in points] + ([last] if last else []), default=None)
    if progress is not None:
        points.append({"steps": end, "return": progress})
    elif points and last and last > points[-1]["steps"]:
        points.append({"steps": last, "return": points[-1]["return"]})
    done = record.get("is_done")
    reached = max((point["return"] for point in points), default=None)
    if isinstance(done, bool) and reached is not None and done != (reached >= 1):
        notes.add(
            "success_disagrees",
            "runs whose is_done says something else than their progress, which counts",
            system=name[0],
            example=f"{where}: is_done {str(done).lower()}, progress {reached:g}",
        )
    if reached is not None:
        best[(*name, instance)] = max(reached, best.get((*name, instance), 0.0))
    goal = text_of(record.get("goal"))
    runs.add(
        name[0],
        instance,
        points or [{"steps": last, "return": None}],
        benchmark=name[1],
        identity=digest(record),
        home=folder_path(path),
        naming="folder",
        content=goal and digest(goal),
    )


def _add_text(path: Path, name: tuple[str, str], runs: Runs, best: dict[tuple[str, str, str], float] | None) -> None:
    notes = runs.notes
    for number, line in enumerate(read_text(path).split("\n"), 1):
        where = f"{path}:{number}"
        match = _LINE.fullmatch(line.strip())
        if match is None:
            if line.strip():
                notes.add("lines_unreadable", "lines that are no results were left out", example=where)
            continue
        points: list[dict[str, Any]] = [
            {"steps": step + 1, "return": value}
            for step, value in (
                (integer_of(a), notes.number(_plain(b), where, "score_state"))
                for a, b in _PAIR.findall(match["state"] or "")
            )
            if step is not None and value is not None
        ]
        progress = notes.number(_plain(match["progress"]), where, "progress_rate")
        if progress is not None and progress > max((p["return"] for p in points), default=0.0):
            points.append({"steps": None, "return": progress})
        instance = match["id"].strip()
        if best is None:
            runs.add(
                name[0],
                instance,
                points or [{"steps": None, "return": progress}],
                benchmark=name[1],
                identity=line,
                home=folder_path(path),
                naming="folder",
            )
            continue
        reached = max([progress or 0.0, *(point["return"] for point in points)])
        if abs(best.get((*name, instance), -1.0) - reached) > 1e-6:
            notes.add(
                "text_disagrees",
                "results in a .txt file that the .jsonl file of the task does not have, or has otherwise; the .jsonl counts",
                system=name[0],
                example=where,
            )


def _plain(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


READER = Reader(
    name="agentboard",
    title="AgentBoard logs",
    gives=("steps", "progress per step"),
    detect=detect,
    read=read,
    companion=companion,
)
