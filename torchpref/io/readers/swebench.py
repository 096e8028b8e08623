"""SWE-bench ``leaderboards.json``: ``leaderboards[].results[].per_instance_details``.

Each detail is ``{"api_calls": int, "cost": dollars, "resolved": bool}``. The rate that a result reports and the one of its
instances can differ by far; the instances count and the difference is noted. Source: swe-bench/swe-bench.github.io.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torchpref.io.files.documents import read_object
from torchpref.io.files.source import Source
from torchpref.io.logs.rates import compare_rate
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, digest, list_at, several, text_of
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy


def detect(source: Source) -> bool:
    """An object with ``leaderboards`` that hold ``results``."""
    return source.outline.has("leaderboards", "*", "results") or source.outline.has("leaderboards", "*", "name")


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per instance of each result; the benchmark is the leaderboard."""
    READER.check_options(options)
    notes = Notes()
    runs = Runs(notes, "success")
    for source in sources:
        page = read_object(source.path, notes.repeated(source.path))
        for number, value in enumerate(list_at(page, "leaderboards")):
            board = notes.record(value, f"{source.path}, leaderboard {number + 1}")
            if board is not None:
                _board(board, text_of(board.get("name")) or f"leaderboard {number + 1}", source, runs)
    return runs.tidy(several([source.path for source in sources]))


def _board(board: dict[str, Any], name: str, source: Source, runs: Runs) -> None:
    notes = runs.notes
    results = [
        record
        for number, value in enumerate(list_at(board, "results"))
        if (record := notes.record(value, f"{source.path}, {name}, result {number + 1}")) is not None
    ]
    uses = Counter(text_of(result.get("name")) for result in results)
    for number, result in enumerate(results):
        title = text_of(result.get("name")) or text_of(result.get("folder")) or f"result {number + 1}"
        system = (
            f"{title} ({text_of(result.get('folder')) or number + 1})"
            if uses[text_of(result.get("name"))] > 1
            else title
        )
        details = dict_at(result, "per_instance_details")
        if not details:
            notes.add(
                "systems_without_instances",
                "results that give no outcome per instance were left out",
                system=system,
                example=f"{name}: {system}",
            )
            continue
        outcomes: list[bool | None] = []
        for instance, value in details.items():
            where = f"{source.path}, {name}, {system}, {instance}"
            record = notes.record(value, where)
            if record is None:
                continue
            resolved = notes.truth(record.get("resolved"), where, "resolved")
            outcomes.append(resolved)
            point = {
                "success": resolved,
                "turns": notes.clock(record.get("api_calls"), where, "api_calls"),
                "cost": notes.clock(record.get("cost"), where, "cost"),
            }
            runs.add(system, instance, [point], benchmark=name, identity=digest(record))
        reported = notes.number(result.get("resolved"), f"{source.path}, {system}", "resolved")
        compare_rate(notes, system, f"{name}: {system}", reported, outcomes, tolerance=0.1)


READER = Reader(
    name="swebench",
    title="SWE-bench leaderboard with per-instance details",
    gives=("turns", "cost", "success"),
    detect=detect,
    read=read,
)
