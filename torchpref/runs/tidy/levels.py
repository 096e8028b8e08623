"""What was reached, as whole millionths: rewards summed, scores divided, values outside [0, 1] clipped and counted."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from torchpref.errors import DataError
from torchpref.runs.tidy.notes import Notes
from torchpref.runs.tidy.points import Floats, Points
from torchpref.runs.units import MILLION


def levels(points: Points, notes: Notes, *, clip: bool = False) -> NDArray[np.int64]:
    """The level of each point in millionths, not yet its running maximum.

    Raises:
        DataError: an infinite value, a maximum score that is missing, not positive, or not the same within a run.
    """
    run = points.run
    values = points.values
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise _refuse(points, int(infinite[0]), points.table.kind, values, "infinite", "give a finite number")
    empty = np.isnan(values)
    gaps = empty & points.known[run]
    notes.add(
        "missing_values",
        "empty cells within runs whose outcome is known were read as nothing gained; cells",
        int(gaps.sum()),
        systems=points.system[run[gaps]],
        rows=points.rows[gaps],
        repair=True,
    )
    values = np.where(empty, 0.0, values)
    if points.table.kind == "reward":
        values = (
            pl.DataFrame({"run": run, "value": values})
            .select(pl.col("value").cum_sum().over("run"))["value"]
            .to_numpy()
        )
    if points.table.kind in ("reward", "score"):
        maximum = _maximum(points, run, notes)[run]
        with np.errstate(over="ignore"):  # too large for a float is above 1 all the same
            values = values / maximum
    with np.errstate(over="ignore"):
        scaled = np.rint(values * MILLION)
    if not clip and (scaled > MILLION).any():
        raise _above(points, scaled)
    above = f"returns above 1 were clipped to 1 (the highest is {scaled.max(initial=0) / MILLION:g}); points"
    for kind, mask, what in (
        ("returns_above_one", scaled > MILLION, above),
        ("returns_below_zero", scaled < 0, "returns below 0 were clipped to 0; points"),
    ):
        notes.add(kind, what, int(mask.sum()), systems=points.system[run[mask]], rows=points.rows[mask], repair=True)
    whole = np.clip(scaled, 0, MILLION).astype(np.int64)
    _note_falls(points, run, np.where(empty, np.nan, scaled), notes)
    return whole


def _above(points: Points, scaled: Floats) -> DataError:
    """The error for returns above 1, with what they probably are."""
    tidy, kind = points.table.tidy, points.table.kind
    high = scaled > MILLION
    point = int(high.argmax())
    most = float(scaled.max()) / MILLION
    where = f"{tidy.locate(int(points.rows[point]))} ({points.say(int(points.run[point]))})"
    said = f"{kind} is {points.values[point]:g}"
    column = tidy.mapped.get(kind, kind)
    if kind == "return":
        said += ", above 1"
        remedy = (
            f"if 100 is full, use score={column},max_score=100"
            if 1.5 < most <= 100
            else f"give the highest score possible: score={column},max_score=COLUMN or a number"
        )
    else:
        given = f"{points.maximum[point]:g}" if points.maximum is not None else "1"
        said += f", above its max_score {given}" if kind == "score" else f", with which the sum is above {given}"
        remedy = "give the highest score possible as max_score, a column or a number"
    if "__place__" in tidy.frame.columns and not tidy.mapped:
        remedy += " (of logs: --option max_score=NUMBER, where the format has it)"
    return DataError(
        f"{where}: {said}; {int(high.sum())} such points, the highest reaches {most:g}; {remedy}; or let them count as 1 with "
        "--clip (clip=True)"
    )


def running_maximum(run: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The highest value so far within each run; runs stand together."""
    if not ((values[1:] < values[:-1]) & (run[1:] == run[:-1])).any():
        return values
    frame = pl.DataFrame({"run": run, "value": values})
    return frame.select(pl.col("value").cum_max().over("run"))["value"].to_numpy()


def _maximum(points: Points, run: NDArray[np.int64], notes: Notes) -> Floats:
    """The maximum score of each run; 1 where rewards come without one."""
    if points.maximum is None:
        everyone = np.arange(len(points.lengths))
        notes.add(
            "rewards_without_maximum",
            "rewards come without max_score and are taken as parts of 1; runs",
            len(everyone),
            severity="note",
        )
        return np.ones(len(everyone))
    given = points.maximum
    bad = np.flatnonzero(~np.isnan(given) & ~((given > 0) & np.isfinite(given)))
    if len(bad):
        raise _refuse(
            points, int(bad[0]), "max_score", given, "not a positive number", "give the highest score possible"
        )
    said = ~np.isnan(given)
    highest = np.full(len(points.lengths), -np.inf)
    lowest = np.full(len(points.lengths), np.inf)
    np.maximum.at(highest, run[said], given[said])
    np.minimum.at(lowest, run[said], given[said])
    differing = np.flatnonzero(said & (given != highest[run]))
    if len(differing):
        point = int(differing[0])
        raise _refuse(
            points,
            point,
            "max_score",
            given,
            f"but {highest[run[point]]:g} in the same run",
            "give one max_score per run",
        )
    lacking = np.flatnonzero(np.isinf(highest[run]) & points.known[run])
    if len(lacking):
        raise _refuse(
            points, int(lacking[0]), "max_score", given, "empty", "give the highest score that the run could reach"
        )
    highest[np.isinf(highest)] = 1.0
    _note_differing(points, highest, notes)
    return highest


def _note_differing(points: Points, maximum: Floats, notes: Notes) -> None:
    """Instances whose runs do not agree on the maximum score; the systems are those off the most frequent one."""
    some = points.known & (points.lengths > 0)
    pairs, count = np.unique(np.c_[points.instance[some], maximum[some]], axis=0, return_counts=True)
    if not len(pairs):
        return
    order = np.lexsort((pairs[:, 1], count, pairs[:, 0]))
    last = np.r_[pairs[order][1:, 0] != pairs[order][:-1, 0], True]
    usual = np.full(len(points.table.names.instances), np.nan)
    usual[pairs[order][last][:, 0].astype(np.int64)] = pairs[order][last][:, 1]
    odd = some & (maximum != usual[points.instance])
    notes.add(
        "differing_maximum_scores",
        "the maximum score of an instance differs between runs (each run is divided by its own); instances",
        len(np.unique(points.instance[odd])),
        systems=points.system[odd],
        rows=points.first[odd],
    )


def _note_falls(points: Points, run: NDArray[np.int64], scaled: Floats, notes: Notes) -> None:
    """Runs whose return falls after it had risen."""
    said = ~np.isnan(scaled)
    order = np.where(said, np.clip(scaled, -MILLION, 2 * MILLION), -2 * MILLION).astype(np.int64)
    falls = said & (order < running_maximum(run, order))
    some = np.unique(run[falls])
    notes.add(
        "returns_falling",
        "the return falls again within a run (what had been reached is kept); runs",
        len(some),
        systems=points.system[some],
        rows=points.rows[falls],
    )


def _refuse(points: Points, point: int, name: str, values: Floats, problem: str, remedy: str) -> DataError:
    run = int(points.run[point])
    place = points.table.tidy.locate(int(points.rows[point]))
    return DataError(f"{place} ({points.say(run)}): {name} is {values[point]:g}, {problem}; {remedy}")
