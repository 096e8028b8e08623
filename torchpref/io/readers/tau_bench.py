"""tau-bench 1 results: a list of ``{task_id, reward, info, traj, trial}``.

``turns`` count the agent's messages and ``steps`` all but the system prompt; the file has no other clock of the agent. The
system is the name of the file. Source: sierra-research/tau-bench, ``tau_bench/types.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torchpref.errors import DataError
from torchpref.io.files.documents import kind_of, read_json
from torchpref.io.files.source import Source
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, digest, list_at, several, text_of
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy


def detect(source: Source) -> bool:
    """A list of objects with ``task_id``, ``reward`` and ``traj``."""
    below = source.outline.below("*")
    return (
        source.outline.kind == "array" and "task_id" in below and "reward" in below and bool(below & {"traj", "info"})
    )


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per record."""
    READER.check_options(options)
    notes = Notes()
    runs = Runs(notes, "return")
    for source in sources:
        records = read_json(source.path, notes.repeated(source.path))
        if not isinstance(records, list):
            raise DataError(f"{source.path}: expected a list of results, found {kind_of(records)}")
        for number, value in enumerate(records, 1):
            where = f"{source.path}, result {number}"
            record = notes.record(value, where)
            if record is None:
                continue
            task = text_of(record.get("task_id"))
            if task is None:
                notes.add("records_without_instance", "records that name no instance were left out", example=where)
                continue
            messages = [m for m in list_at(record, "traj") if isinstance(m, dict) and m.get("role") != "system"]
            point = {
                "return": notes.number(record.get("reward"), f"{where}, task {task}", "reward"),
                "steps": float(len(messages)) if messages else None,
                "turns": float(sum(m.get("role") == "assistant" for m in messages)) if messages else None,
            }
            runs.reading(source.path)
            runs.add(
                source.path.stem,
                task,
                [point],
                trial=notes.whole(record.get("trial"), where, "trial"),
                identity=digest(record),
                home=source.path.absolute(),
                naming="folder",
            )
    return runs.tidy(several([source.path for source in sources]))


READER = Reader(
    name="tau-bench",
    title="tau-bench 1 results",
    gives=("steps", "turns"),
    detect=detect,
    read=read,
)
