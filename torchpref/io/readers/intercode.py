"""InterCode trajectories: ``{id: {environment, task_id, turn_history: {rewards, ...}, summary}}``, also within ``logs``.

The k-th reward is what had been reached at turn k; it may fall again and be negative, which is 0 here. The instance is data
set and task together, because task ids start again in each part of a data set. A run that took all its turns without a
reward of 1 was stopped by its limit. The system is the name of the file without environment and data set, after the name of
its folder where several folders are read. Source: princeton-nlp/intercode, ``experiments``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.io.files.documents import read_object
from torchpref.io.files.source import Source
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, digest, list_at, several, text_of
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

_SPLIT = re.compile(r"_(?:fs|split)_\d+$")


def detect(source: Source) -> bool:
    """Objects with a ``turn_history``, at the top or within ``logs``."""
    outline = source.outline
    return outline.kind == "object" and (
        any(
            outline.has(*above, "turn_history", name)
            for above in (("?",), ("logs", "?"))
            for name in ("rewards", "actions")
        )
        or outline.has("?", "turn_history")
        or outline.has("logs", "?", "turn_history")
    )


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per task of each file."""
    READER.check_options(options)
    notes = Notes()
    runs = Runs(notes, "return")
    first: dict[str, Counter[float]] = defaultdict(Counter)
    crowded = len({source.path.absolute().parent for source in sources}) > 1
    for source in sources:
        document = read_object(source.path, notes.repeated(source.path))
        logs = document["logs"] if isinstance(document.get("logs"), dict) else document
        for key, value in logs.items():
            where = f"{source.path}: {key}"
            record = notes.record(value, where)
            if record is not None:
                _add(record, key, source.path, crowded, where, runs, first)
    for environment, values in sorted(first.items()):
        value, count = values.most_common(1)[0]
        if 0 < value < 1 and count >= 0.25 * values.total() and count > 1:
            notes.add(
                "floor_at_first_turn",
                "runs whose first reward is the one that most get for any action: a level that says little",
                severity="note",
                count=count,
                example=f"{environment}: {value:g} at turn 1 in {count} of {values.total()} runs",
            )
    return runs.tidy(several([source.path for source in sources]))


def _add(
    record: Mapping[str, Any],
    key: str,
    path: Path,
    crowded: bool,
    where: str,
    runs: Runs,
    first: dict[str, Counter[float]],
) -> None:
    notes = runs.notes
    environment = text_of(record.get("environment")) or ""
    dataset = Path(text_of(record.get("dataset")) or "").stem
    task = text_of(record.get("task_id")) or key
    stem = path.stem.removeprefix(f"{environment}_") if environment else path.stem
    system = _SPLIT.sub("", stem) or path.stem
    if crowded:
        system = f"{path.absolute().parent.name}/{system}"
    rewards = list_at(record, "turn_history", "rewards")
    summary = dict_at(record, "summary")
    most = notes.whole(summary.get("turns_max"), where, "turns_max")
    points: list[dict[str, Any]] = []
    for turn, given in enumerate(rewards, 1):
        reward = notes.number(given, f"{where}, turn {turn}", "reward")
        if reward is None:
            notes.add(
                "rewards_unreadable",
                "turns whose reward cannot be read were left out",
                system=system,
                example=f"{where}, turn {turn}",
            )
            continue
        if reward < 0:
            notes.add(
                "rewards_negative",
                "negative rewards count as 0",
                severity="note",
                system=system,
                example=f"{where}, turn {turn}: {reward:g}",
            )
            reward = 0.0
        points.append({"steps": float(turn), "turns": float(turn), "return": reward})
    if points:
        first[environment][points[0]["return"]] += 1
    best = max((point["return"] for point in points), default=0.0)
    said = notes.number(summary.get("max_reward"), where, "max_reward")
    if said is not None and points and abs(max(said, 0.0) - best) > 1e-9:
        notes.add(
            "summary_disagrees",
            "runs whose summary states another best reward than their turns, which count",
            system=system,
            example=where,
        )
    if most is not None and len(rewards) > most:
        notes.add(
            "more_turns_than_stated",
            "runs with more rewards than turns_max",
            severity="note",
            system=system,
            example=f"{where}: {len(rewards)} of {most}",
        )
    if not points:
        points = [{"steps": None, "turns": None, "return": None}]
    instance = f"{dataset}/{task}" if dataset else task
    stopped = None if most is None else len(rewards) >= most and best < 1
    query = text_of(record.get("query"))
    runs.reading(path)
    runs.add(
        system,
        instance,
        points,
        benchmark=environment,
        truncated=stopped,
        identity=digest(record),
        home=path.absolute(),
        naming="folder",
        content=query and digest(query),
    )


READER = Reader(
    name="intercode",
    title="InterCode trajectories",
    gives=("steps", "turns", "reward per turn"),
    detect=detect,
    read=read,
)
