"""From a tidy table to the integer fields of :class:`torchpref.Trajectories`: the one place where rows become tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from torchpref.errors import DataError, UsageError
from torchpref.runs.tidy.cells import names_expr, numbers
from torchpref.runs.tidy.layout import points as all_points
from torchpref.runs.tidy.levels import levels, running_maximum
from torchpref.runs.tidy.notes import Notes
from torchpref.runs.tidy.points import Points, Table
from torchpref.runs.tidy.schema import BEST, CLOCKS, FAMILIES, REFERENCE, Tidy
from torchpref.runs.tidy.ticks import ticks
from torchpref.runs.tidy.twins import settled_twin
from torchpref.runs.units import LARGEST_TICK, PREFERRED_CLOCKS, UNKNOWN, ZeroTime, default_resolution, ticks_per_unit

Missing = Literal["exclude", "failure"]
#: Elements of one dense tensor above which points at which nothing is gained are left out.
DENSE_ELEMENTS = 1 << 27
#: Elements of one dense tensor above which building is refused.
MOST_ELEMENTS = 1 << 32


def build(
    tidy: Tidy,
    *,
    clock: str | None = None,
    strict: bool = False,
    zero_time: ZeroTime = "unknown",
    resolution: Mapping[str, float] | None = None,
    missing: Missing = "exclude",
    clip: bool = False,
) -> dict[str, Any]:
    """The arguments of :meth:`torchpref.Trajectories.from_integers` from tidy rows in any order and layout.

    Args:
        tidy: the rows.
        clock: the clock that is meant where none is named later.
        strict: raise where a value would be repaired (clipped, held, filled).
        zero_time: whether a level at exactly 0 on seconds, tokens and cost is at an unknown time.
        resolution: size of a tick per clock, in the clock's unit.
        missing: ``"exclude"`` leaves out runs that are missing or have no known outcome; ``"failure"`` makes them runs
            that reached nothing. A system that has no row at all in a benchmark did not take part in it.
        clip: whether returns above 1 count as 1; an error otherwise.

    Raises:
        DataError: a cell that cannot be used; the message names its place, its value and the remedy.
        UsageError: an unknown clock or option.
    """
    if missing not in ("exclude", "failure"):
        raise UsageError(f"missing must be 'exclude' or 'failure', got {missing!r}")
    if not tidy.frame.height:
        raise DataError(f"{tidy.place}: there are no rows; give a table with at least one run")
    notes = Notes(strict, tidy.locate)
    tidy = settled_twin(tidy)
    points = all_points(tidy, notes, clock)
    if clock is not None and clock not in points.clocks:
        raise UsageError(
            f"{tidy.place}: there is no clock {clock!r}; there is {', '.join(points.clocks)}; "
            f"map a column to it with columns, such as {clock}=COLUMN"
            + ("" if clock in CLOCKS else f" (clocks are named {', '.join(CLOCKS)})")
        )
    strange = [name for name in resolution or () if name not in points.clocks]
    if strange:
        raise UsageError(
            f"{tidy.place}: a resolution is given for the clock {strange[0]!r}, which is not there; there is "
            f"{', '.join(points.clocks)}"
        )
    default = clock or _usable_clock(points)
    sizes = {name: (resolution or {}).get(name, default_resolution(name)) for name in points.clocks}
    reached = levels(points, notes, clip=clip)
    times = {name: ticks(points, name, size, notes) for name, size in sizes.items()}
    _note_unknown(points, missing, notes)
    points, reached, times = _condensed(points, reached, times, notes)

    shape = (len(points.table.names.instances), len(points.table.names.systems), int(points.trial.max()) + 1)
    cell = (points.instance * shape[1] + points.system) * shape[2] + points.trial
    counted = ~points.absent & (points.known | (missing == "failure"))
    present = np.zeros(shape, dtype=bool)
    present.reshape(-1)[cell] = counted
    lengths = np.zeros(shape, dtype=np.int64)
    lengths.reshape(-1)[cell] = np.where(points.known & ~points.absent, points.lengths, 0)
    truncated = None
    if points.truncated is not None:
        truncated = np.zeros(shape, dtype=bool)
        truncated.reshape(-1)[cell] = points.truncated & counted
    if missing == "failure":
        _fill_missing(points, present, notes)
    width = int(lengths.max())
    inside = np.repeat(points.known & ~points.absent, points.lengths)
    step = np.arange(len(reached)) - points.starts[points.run]
    place = (cell[points.run] * width + step)[inside]

    def dense(values: NDArray[np.int64], dtype: type) -> torch.Tensor:
        tensor: NDArray[Any] = np.zeros((*shape, width), dtype=dtype)
        tensor.reshape(-1)[place] = values[inside]
        return torch.from_numpy(tensor)

    return {
        "returns": dense(reached, np.int32),
        "lengths": torch.from_numpy(lengths),
        "present": torch.from_numpy(present),
        "times": {name: dense(tick, np.int64) for name, tick in times.items()},
        "truncated": None if truncated is None else torch.from_numpy(truncated),
        "systems": points.table.names.systems,
        "instances": points.table.names.instances,
        "benchmarks": points.table.names.benchmarks,
        "resolution": sizes,
        "reference_times": _references(points.table, sizes, default),
        "best_times": _best_times(points.table, sizes),
        "findings": (*tidy.findings, *notes.findings),
        "default_clock": default,
        "zero_time": zero_time,
        "families": _families(points.table) if points.table.has(FAMILIES) else None,
    }


def _usable_clock(points: Points) -> str | None:
    """The clock that is meant where some columns of clocks are empty; None where the usual rule decides."""
    usable = [name for name, times in points.clocks.items() if not np.isnan(times).all()]
    if len(usable) in (0, len(points.clocks)):
        return None
    preferred = [name for name in PREFERRED_CLOCKS if name in usable]
    return preferred[0] if preferred else usable[0] if len(usable) == 1 else None


def _note_unknown(points: Points, missing: Missing, notes: Notes) -> None:
    """Runs without a known outcome."""
    unknown = ~points.known & ~points.absent
    what = "counted as failures" if missing == "failure" else "left out, neither failure nor tie"
    notes.add(
        "unknown_outcomes",
        f"the outcome of a run is not known ({what}); runs",
        int(unknown.sum()),
        systems=points.system[unknown],
        rows=points.first[unknown],
    )
    if not (points.known & ~points.absent).any() and missing == "exclude":
        raise DataError(
            f"{points.table.tidy.place}: no run has a known outcome: {points.table.kind} is empty in every row; map "
            f"another column to it, or read with missing='failure'"
        )


def _condensed(
    points: Points, reached: NDArray[np.int64], times: dict[str, NDArray[np.int64]], notes: Notes
) -> tuple[Points, NDArray[np.int64], dict[str, NDArray[np.int64]]]:
    """Leave out points at which nothing is gained, where dense tensors would be too large.

    The last point of a run stays, so that it is known when the run ended; no preference changes.
    """
    names = points.table.names
    cells = len(names.instances) * len(names.systems) * (int(points.trial.max()) + 1)
    if cells * int(points.lengths.max()) > DENSE_ELEMENTS:
        run = points.run
        highest = running_maximum(run, reached)
        gained = np.r_[True, highest[1:] > highest[:-1]] | (points.first_of_run & (highest > 0))
        gained &= highest > 0
        last = np.zeros(len(run), dtype=bool)
        last[(points.starts + points.lengths - 1)[points.lengths > 0]] = True
        keep = gained | last
        notes.add(
            "condensed_steps",
            "the runs are too long for one table of steps: steps at which nothing was gained were left out; steps",
            int((~keep).sum()),
            severity="note",
        )
        points = replace(
            points,
            lengths=np.bincount(run[keep], minlength=len(points.lengths)),
            values=points.values[keep],
            maximum=None,
            clocks={},
            rows=points.rows[keep],
        )
        reached, times = highest[keep], {name: tick[keep] for name, tick in times.items()}
    if cells * int(points.lengths.max()) > MOST_ELEMENTS:
        raise DataError(
            f"{points.table.tidy.place}: {len(names.instances)} instances × {len(names.systems)} systems × "
            f"{int(points.trial.max()) + 1} trials × {int(points.lengths.max())} steps do not fit into memory; read fewer "
            "systems or instances at a time with where"
        )
    return points, reached, times


def _fill_missing(points: Points, present: NDArray[np.bool_], notes: Notes) -> None:
    """Make a failure of every (instance, system) without a run, in the benchmarks in which the system took part."""
    names = points.table.names
    _, benchmark = np.unique(np.asarray(names.benchmarks), return_inverse=True)
    took_part = np.zeros((int(benchmark.max()) + 1, len(names.systems)), dtype=bool)
    took_part[benchmark[points.instance], points.system] = True
    lacking = took_part[benchmark] & ~present.any(-1)
    present[..., 0] |= lacking
    notes.add(
        "missing_runs_as_failures",
        "a system has no run on an instance: counted as a failure; runs",
        int(lacking.sum()),
        severity="note",
        systems=np.nonzero(lacking)[1],
    )


def _references(table: Table, sizes: Mapping[str, float], clock: str | None) -> dict[str, torch.Tensor] | None:
    """Reference times per clock; ``reference_time`` itself is on the clock that is meant where none is named."""
    meant = clock or next((name for name in PREFERRED_CLOCKS if name in sizes), None)
    if meant is None and len(sizes) == 1:
        meant = next(iter(sizes))
    found: dict[str, torch.Tensor] = {}
    if table.has(REFERENCE):
        if meant is None:
            raise UsageError(
                f"{table.tidy.place}: reference_time is on one clock, but there are several ({', '.join(sizes)}); "
                "name the clock, or map the column to reference_time_CLOCK"
            )
        found[meant] = _per_instance(table, REFERENCE, sizes[meant])
    for name in sizes:
        if table.has(f"{REFERENCE}_{name}"):
            found[name] = _per_instance(table, f"{REFERENCE}_{name}", sizes[name])
    return found or None


def _best_times(table: Table, sizes: Mapping[str, float]) -> dict[str, torch.Tensor] | None:
    """Best times as a table carries them that was written from a selection of runs; for all clocks or none."""
    if not all(table.has(f"{BEST}_{name}") for name in sizes):
        return None
    return {name: _per_instance(table, f"{BEST}_{name}", size) for name, size in sizes.items()}


def _families(table: Table) -> tuple[str | None, ...]:
    """The family of each instance; None where every row of it is empty.

    Raises:
        DataError: two rows of an instance disagree.
    """
    frame = table.tidy.frame
    labels = frame.select(names_expr(FAMILIES, frame.schema[FAMILIES])).to_series()
    said = np.flatnonzero(labels.is_not_null().to_numpy())
    known = labels.drop_nulls()
    distinct = known.unique().sort()
    code = known.cast(pl.Enum(distinct)).to_physical().to_numpy().astype(np.int64) if len(distinct) else said
    instance = table.names.instance[said]
    result = np.full(len(table.names.instances), -1, dtype=np.int64)
    result[instance] = code
    odd = np.flatnonzero(result[instance] != code)
    if len(odd):
        first = int(odd[0])
        other = int(np.flatnonzero((instance == instance[first]) & (code == result[instance[first]]))[0])
        raise table.column(FAMILIES).refuse(
            int(said[first]),
            f"but {known[other]!r} in {table.locate(int(said[other]))} for the same instance "
            f"{table.names.instances[int(instance[first])]!r}",
            "give one family per instance",
        )
    return tuple(None if label < 0 else distinct[int(label)] for label in result)


def _per_instance(table: Table, column: str, resolution: float) -> torch.Tensor:
    """Ticks of a time that belongs to an instance; UNKNOWN where every row of it is empty.

    Raises:
        DataError: it is not positive, or two rows of an instance disagree.
    """
    values = numbers(table.column(column))
    instance = table.names.instance
    said = np.flatnonzero(~np.isnan(values))
    bad = said[~((values[said] > 0) & (values[said] < LARGEST_TICK * resolution))]
    if len(bad):
        remedy = "give a positive number, or leave it empty"
        raise table.column(column).refuse(int(bad[0]), "which is no length of time", remedy)
    tick = np.rint(values[said] * ticks_per_unit(resolution)).astype(np.int64)
    result = np.full(len(table.names.instances), UNKNOWN, dtype=np.int64)
    result[instance[said]] = tick
    odd = np.flatnonzero(result[instance[said]] != tick)
    if len(odd):
        position = int(said[odd[0]])
        other = int(
            said[np.flatnonzero((instance[said] == instance[position]) & (tick == result[instance[position]]))[0]]
        )
        name = table.names.instances[int(instance[position])]
        raise table.column(column).refuse(
            position,
            f"but {values[other]:g} in {table.locate(other)} for the same instance {name!r}",
            "give one reference time per instance",
        )
    return torch.from_numpy(result)
