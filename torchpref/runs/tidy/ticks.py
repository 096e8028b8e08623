"""Clocks as whole ticks: negative times are refused, a clock that runs backwards is held, merged times are counted."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from torchpref.errors import DataError
from torchpref.runs.tidy.levels import running_maximum
from torchpref.runs.tidy.notes import Notes
from torchpref.runs.tidy.points import Floats, Points
from torchpref.runs.units import LARGEST_TICK, UNKNOWN, ticks_per_unit

#: From here on float64, in which times are read, does not hold every whole number.
_EXACT = 2.0**53


def ticks(points: Points, clock: str, resolution: float, notes: Notes) -> NDArray[np.int64]:
    """The ticks of one clock per point, UNKNOWN where the time is not known, never falling within a run.

    Raises:
        DataError: a time is negative, infinite or too large.
    """
    run = points.run
    times = points.clocks[clock]
    known = ~np.isnan(times)
    with np.errstate(over="ignore"):
        scaled = np.where(known, times, 0.0) * ticks_per_unit(resolution)
    bad = np.flatnonzero((scaled < 0) | (scaled >= LARGEST_TICK))
    if len(bad):
        point = int(bad[0])
        place = points.table.tidy.locate(int(points.rows[point]))
        remedy = (
            "times start at 0 or later: subtract the start of the run"
            if times[point] < 0
            else "leave a time that is not known empty, or give the clock a coarser resolution"
        )
        value = f"{times[point]:.15g}"
        raise DataError(
            f"{place} ({points.say(int(run[point]))}): the time {value} of clock {clock!r} cannot be used; {remedy}"
        )
    large = known & (scaled >= _EXACT)
    notes.add(
        "rounded_times",
        f"times on clock {clock!r} of 2**53 ticks or more are rounded, so that those close together may become one (subtract "
        "the start of the run, or give a coarser resolution); points",
        int(large.sum()),
        systems=points.system[run[large]],
        rows=points.rows[large],
    )
    result = np.where(known, np.rint(scaled), UNKNOWN).astype(np.int64)
    held = running_maximum(run, result)
    back = known & (result < held)
    notes.add(
        "clock_backwards",
        f"the clock {clock!r} runs backwards within a run and is held at its highest reading; points",
        int(back.sum()),
        systems=points.system[run[back]],
        rows=points.rows[back],
        repair=True,
    )
    _note_merged(points, clock, np.where(known, scaled, np.nan), run, notes)
    return np.where(known, held, UNKNOWN)


def _note_merged(points: Points, clock: str, scaled: Floats, run: NDArray[np.int64], notes: Notes) -> None:
    """Distinct times of one instance on one tick; times that are whole ticks but for float noise are not distinct."""
    with np.errstate(invalid="ignore"):
        broken = np.abs(scaled - np.rint(scaled)) > 1e-3
    if not broken.any():
        return
    frame = pl.DataFrame(
        {
            "instance": points.instance[run],
            "system": points.system[run],
            "tick": np.rint(scaled),
            "time": np.round(scaled, 3),
        }
    ).filter(pl.lit(~np.isnan(scaled)))
    times = frame.group_by("instance", "tick").agg(pl.col("time").n_unique().alias("times"), pl.col("system").unique())
    merged = times.filter(pl.col("times") > 1)
    if merged.height:
        notes.add(
            "merged_times",
            f"distinct times of one instance fall on one tick of clock {clock!r} (give a finer resolution); times",
            int((merged["times"] - 1).sum()),
            systems=merged["system"].explode().to_numpy().astype(np.int64),
        )
