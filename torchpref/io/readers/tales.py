"""TALES (text adventure) rollouts ``a{0|1}_s{seed}[_steps{n}].jsonl`` and their summaries ``.json``.

A rollout has a row per step with the score of the game so far, which drops when the player dies or restarts. The system is
the agent's folder, the instance the game's folder, the trial the seed in the name of the file; ``a1`` (the agent was shown
the admissible commands) is part of the system. ``turns`` are the game's own moves, added up over restarts; ``tokens`` are
``Token Usage``, which is per step, added up. A summary tells the high score but not when it was reached, and is read where
its rollout is missing. Source: microsoft/tale-suite, ``benchmark.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import DataError
from torchpref.io.files.documents import read_lines, read_object
from torchpref.io.files.source import Source
from torchpref.io.logs.naming import folders
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, file_digest, integer_of, several, text_of
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

_NAME = re.compile(r"(?:(?P<agent>.+)__(?P<game>[^_]+)__)?a(?P<admissible>[01])_s(?P<seed>\d{1,18})(?:_steps\d+)?")
_COLUMNS = ("Step", "Score", "Max Score", "Moves", "Token Usage")
Floats = NDArray[np.float64]


def detect(source: Source) -> bool:
    """Rows with ``Step``, ``Score`` and ``Max Score``, or a summary with ``highscore`` and ``max_score``."""
    keys = source.outline.keys()
    return source.outline.kind == "object" and ({"Step", "Score", "Max Score"} <= keys or _is_summary(source))


def _is_summary(source: Source) -> bool:
    return {"highscore", "max_score"} <= source.outline.keys()


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per rollout, and one per summary whose rollout is not among the files."""
    READER.check_options(options)
    notes = Notes()
    runs = Runs(notes, "score")
    rollouts = {source.path.with_suffix("") for source in sources if not _is_summary(source)}
    for source in sources:
        runs.reading(source.path)
        if not _is_summary(source):
            _rollout(source.path, runs)
        elif source.path.with_suffix("") not in rollouts:
            _summary(source.path, runs)
    return runs.tidy(several([source.path for source in sources]))


def _named(path: Path) -> tuple[str, str, int | None]:
    """System, game and seed, from where the file is and what it is called."""
    above = [*folders(path), "", ""]
    match = _NAME.fullmatch(path.stem)
    if match is None:
        return above[1] or above[0] or "unnamed", above[0] or path.stem, None
    game, system = (match["game"], match["agent"]) if match["game"] else (above[0] or path.stem, above[1] or "unnamed")
    return system + (" (admissible commands)" if match["admissible"] == "1" else ""), game, int(match["seed"])


def _rollout(path: Path, runs: Runs) -> None:
    system, game, seed = _named(path)
    read = _fast(path) or _slow(path, runs.notes)
    step, score, best, moves, used = read
    if not len(step):
        raise DataError(f"{path}: no step can be read; delete the file if the run never began")
    order = np.argsort(step, kind="stable")
    step, score, best, moves, used = (column[order] for column in (step, score, best, moves, used))
    repeated = np.r_[step[1:] == step[:-1], False]
    if repeated.any():
        runs.notes.add(
            "steps_repeated",
            "steps that a rollout has twice: the last record counts",
            system=system,
            example=f"{path}: step {int(step[repeated][0])}",
            count=int(repeated.sum()),
        )
        step, score, best, moves, used = (column[~repeated] for column in (step, score, best, moves, used))
    if step[0] == 0:
        runs.notes.add(
            "steps_from_zero",
            "rollouts whose steps count from 0: the first is step 1 here",
            severity="note",
            system=system,
            example=path,
        )
        step = step + 1
    turns = _running(moves)
    tokens = np.cumsum(used)
    columns = {"steps": step, "turns": turns, "tokens": tokens, "score": score}
    known = best[~np.isnan(best)]
    limit = float(known.max()) if len(known) else 0.0
    if limit <= 0:
        runs.notes.add(
            "max_score_not_given",
            "runs without a positive maximum score cannot be put in [0, 1]",
            system=system,
            example=path,
        )
        columns["score"] = np.full(len(step), np.nan)
    most = limit if limit > 0 else None
    runs.add(
        system, game, columns, trial=seed, max_score=most, identity=file_digest(path), home=_home(path), naming="folder"
    )


def _home(path: Path) -> Path:
    """The agent's folder, above that of the game."""
    above = path.absolute().parents
    return above[1] if len(above) > 1 else above[0]


def _running(moves: Floats) -> Floats:
    """Moves added up: after a restart the game counts from the beginning again."""
    fell = np.r_[False, moves[1:] < moves[:-1]]
    total: Floats = moves + np.cumsum(np.where(fell, np.r_[0.0, moves[:-1]], 0.0))
    return total


def _fast(path: Path) -> tuple[Floats, Floats, Floats, Floats, Floats] | None:
    """The columns read by polars, which is strict; None where anything is odd, for the slow way to name it."""
    import polars as pl

    schema = dict.fromkeys(_COLUMNS, pl.Float64())
    try:
        frame = pl.read_ndjson(path, schema=schema)
    except pl.exceptions.PolarsError:
        return None
    if frame.select(pl.any_horizontal(pl.col("Step", "Score").is_null()).any()).item() or not frame.height:
        return None
    columns = [frame[name].to_numpy().astype(np.float64) for name in _COLUMNS]
    if not (np.isfinite(columns[0]).all() and (columns[0] >= 0).all() and (columns[0] % 1 == 0).all()):
        return None
    if any((column < 0).any() for column in columns[2:]):
        return None
    return columns[0], columns[1], columns[2], columns[3], columns[4]


def _slow(path: Path, notes: Notes) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    rows = list(_rows(path, notes))
    step, score, best, moves, used = (np.asarray(rows, dtype=np.float64).reshape(-1, 5)).T
    return step, score, best, moves, used


def _rows(path: Path, notes: Notes) -> Iterator[tuple[float, ...]]:
    for number, value in read_lines(path):
        where = f"{path}:{number}"
        record = notes.record(value, where)
        if record is None:
            continue
        step = integer_of(record.get("Step"))
        score = notes.number(record.get("Score"), where, "Score")
        if step is None or score is None or step >= 2**53:
            notes.add("steps_unreadable", "steps without a number or a score were left out", example=where)
            continue
        rest = (notes.clock(record.get(name), where, name) for name in _COLUMNS[2:])
        yield float(step), score, *(np.nan if x is None else x for x in rest)


def _summary(path: Path, runs: Runs) -> None:
    notes = runs.notes
    record = read_object(path)
    system, game, seed = _named(path)
    game = game if game else text_of(record.get("env_name")) or "unnamed"
    best = notes.clock(record.get("max_score"), path, "max_score")
    high = notes.number(record.get("highscore"), path, "highscore")
    notes.add(
        "summaries_only",
        "runs of which there is only a summary: what they reached is known, but not when (a high score starts at 0)",
        system=system,
        example=path,
    )
    score = high if best else None
    runs.add(
        system,
        game,
        [{"score": score, "steps": None}],
        trial=seed,
        max_score=best or None,
        identity=file_digest(path),
        home=_home(path),
        naming="folder",
    )


READER = Reader(
    name="tales",
    title="TALES rollouts and summaries",
    gives=("steps", "turns", "tokens", "score per step"),
    detect=detect,
    read=read,
)
