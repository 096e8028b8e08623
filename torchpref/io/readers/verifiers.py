"""Evaluations of verifiers and prime-rl: ``results.jsonl`` with its ``metadata.json``.

A line per rollout; the rollouts of one example are its trials, in their order. The system is the model, and the benchmark the
environment, that ``metadata.json`` names. ``seconds`` are those of generation, without scoring; ``tokens`` prompt and
completion. A rollout with an error has no outcome. Source: verifiers ``utils/save_utils.py``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torchpref.io.files.documents import read_lines, read_object
from torchpref.io.files.source import Source
from torchpref.io.logs.naming import folder
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, digest, positive_option, several, text_of, total
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy


def detect(source: Source) -> bool:
    """Lines with ``example_id`` and ``reward``."""
    keys = source.outline.keys()
    return source.outline.kind == "object" and {"example_id", "reward"} <= keys


def companion(source: Source) -> bool:
    """``metadata.json``: which model, in which environment."""
    return {"env_id", "model"} <= source.outline.keys()


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per rollout."""
    READER.check_options(options)
    notes = Notes()
    most = positive_option(options, "max_score") or 1.0
    runs = Runs(notes, "score")
    about = {s.path.absolute().parent: read_object(s.path) for s in sources if companion(s) and not detect(s)}
    for source in sources:
        if source.path.absolute().parent in about and companion(source) and not detect(source):
            continue
        meta = about.get(source.path.absolute().parent, {})
        model = text_of(meta.get("model"))
        runs.reading(source.path)
        seen: Counter[str] = Counter()
        for number, value in read_lines(source.path):
            where = f"{source.path}:{number}"
            record = notes.record(value, where)
            if record is None:
                continue
            example = text_of(record.get("example_id"))
            if example is None:
                notes.add("records_without_instance", "records that name no instance were left out", example=where)
                continue
            task = text_of(record.get("task"))
            instance = f"{task}/{example}" if task and task != "default" else example
            reward = notes.number(record.get("reward"), where, "reward")
            if record.get("error") is not None:
                notes.add(
                    "rollouts_with_errors",
                    "rollouts that ended with an error have no outcome",
                    system=model,
                    example=f"{where}: {str(record['error'])[:80]}",
                )
                reward = None
            runs.add(
                model or folder(source.path),
                instance,
                [{"score": reward, **_clocks(record, where, notes)}],
                benchmark=text_of(meta.get("env_id")) or "",
                trial=seen[instance],
                truncated=record.get("is_truncated") is True or None,
                max_score=most,
                identity=digest(record),
                home=source.path.absolute().parent,
                naming="whole" if model else "folder",
                details={"sampling_args": _short(meta.get("sampling_args"))},
                setting={"env_args": _short(meta.get("env_args"))},
                content=digest(record["prompt"]) if record.get("prompt") else None,
            )
            seen[instance] += 1
    return runs.tidy(several([source.path for source in sources]))


def _short(value: Any) -> str | None:
    return json.dumps(value, sort_keys=True)[:80] if isinstance(value, dict) and value else None


def _clocks(record: Mapping[str, Any], where: str, notes: Notes) -> dict[str, float | None]:
    usage = dict_at(record, "token_usage")
    timing = dict_at(record, "timing")
    tokens = [
        notes.clock(record.get(f"{name}_tokens", usage.get(f"{other}_tokens")), where, "tokens")
        for name, other in (("prompt", "input"), ("completion", "output"))
    ]
    took = notes.clock(record.get("generation_ms", timing.get("generation_ms")), where, "generation_ms")
    return {
        "turns": notes.clock(record.get("turns", record.get("num_turns")), where, "turns"),
        "tokens": total(tokens),
        "seconds": None if took is None else took / 1000,
    }


READER = Reader(
    name="verifiers",
    title="verifiers and prime-rl evaluations",
    gives=("turns", "tokens", "seconds"),
    detect=detect,
    read=read,
    companion=companion,
    options={"max_score": "what a full reward is, where rewards are not in [0, 1]"},
)
