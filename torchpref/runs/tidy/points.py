"""Every point of every run as flat arrays: runs told apart by trial, with their marks, in the order of names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import DataError
from torchpref.runs.tidy.cells import Column, numbers, yes_or_no
from torchpref.runs.tidy.names import Codes, Named, compact_trials
from torchpref.runs.tidy.notes import Notes
from torchpref.runs.tidy.places import telling_apart
from torchpref.runs.tidy.schema import PLACE, Tidy, clock_columns

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Table:
    """A tidy table while it is taken apart.

    Attributes:
        tidy: the table.
        kind: its value column.
        rows: per row its number, for messages.
        names: its names.
    """

    tidy: Tidy
    kind: str
    rows: Codes
    names: Named

    def has(self, name: str) -> bool:
        """Whether it has a column."""
        return name in self.tidy.frame.columns

    @property
    def has_steps(self) -> bool:
        """Whether it has a column ``step`` in which anything stands."""
        return self.has("step") and self.tidy.frame["step"].null_count() < self.tidy.frame.height

    def column(self, name: str) -> Column:
        """One of its columns."""
        return Column(name, self.tidy.frame[name], self.rows, self.tidy.locate)

    def locate(self, position: int) -> str:
        """Where a row, by its position, stands in what was read."""
        return self.tidy.locate(int(self.rows[position]))

    @property
    def clocks(self) -> dict[str, str]:
        """Its clocks with their columns, but for ``step``."""
        return clock_columns(self.tidy.frame.columns)


@dataclass(frozen=True)
class Rough:
    """Runs as one of the layouts gives them.

    Attributes:
        first: position in the table of a row of each run.
        lengths: points of each run.
        at: position in the table of the row of each point.
        values: per point, NaN where empty.
        clocks: per clock and point, NaN where not known.
        known: runs whose outcome is known.
    """

    first: Codes
    lengths: Codes
    at: Codes
    values: Floats
    clocks: dict[str, Floats]
    known: Flags


@dataclass(frozen=True)
class Points:
    """Every point of every run, runs sorted by (instance, system, trial).

    Attributes:
        table: where they come from.
        system, instance, trial: positions per run; a (system, instance, trial) stands once.
        lengths: points of each run; the points of run r follow those of run r - 1.
        known: runs whose outcome is known.
        absent: runs of which the table says that they do not exist.
        truncated: runs stopped by their limit, or None.
        first: number of a row of each run, for messages.
        values: as read, per point; NaN where empty.
        maximum: ``max_score`` per point, or None; NaN where empty.
        clocks: per clock and point, NaN where not known.
        rows: number of the row of each point, for messages.
    """

    table: Table
    system: Codes
    instance: Codes
    trial: Codes
    lengths: Codes
    known: Flags
    absent: Flags
    truncated: Flags | None
    first: Codes
    values: Floats
    maximum: Floats | None
    clocks: dict[str, Floats]
    rows: Codes

    @property
    def run(self) -> Codes:
        """The run of each point."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def starts(self) -> Codes:
        """Position of the first point of each run."""
        return np.asarray(np.cumsum(self.lengths) - self.lengths)

    @property
    def first_of_run(self) -> Flags:
        """Whether a point is the first of its run."""
        mask = np.zeros(len(self.values), dtype=bool)
        mask[self.starts[self.lengths > 0]] = True
        return mask

    def say(self, run: int) -> str:
        """A run in words."""
        return self.table.names.run(int(self.system[run]), int(self.instance[run]))


def arrange(table: Table, rough: Rough, notes: Notes) -> Points:
    """Put runs in order and give each its trial.

    Raises:
        DataError: a run stands twice.
    """
    names = table.names
    system, instance = names.system[rough.first], names.instance[rough.first]
    cells = names.cells[rough.first]
    if names.trials is not None:
        trial = names.trial[rough.first]
        _refuse_twice(table, rough, cells, trial)
        trial = compact_trials(cells, trial, len(names.trials))
    else:
        trial = None
    truncated = _marked(table, rough, "truncated")
    absent = np.zeros(len(cells), dtype=bool)
    if table.has("present"):
        absent = yes_or_no(table.column("present"))[rough.first] == 0
    maximum = None
    if table.kind in ("score", "reward") and table.has("max_score"):
        maximum = numbers(table.column("max_score"), refuse_nan=True)[rough.at]

    if trial is None:
        more = [mark for mark in (truncated, absent) if mark is not None]
        tracks = [rough.values, *([] if maximum is None else [maximum]), *rough.clocks.values()]
        trial = _count_trials(table, rough, cells, tracks, more, notes)
    order = np.lexsort((trial, cells))
    sorted_already = bool((order[1:] > order[:-1]).all())
    point = slice(None) if sorted_already else _points_of(rough.lengths, order)
    return Points(
        table=table,
        system=system[order],
        instance=instance[order],
        trial=trial[order],
        lengths=rough.lengths[order],
        known=rough.known[order],
        absent=absent[order],
        truncated=None if truncated is None else truncated[order],
        first=table.rows[rough.first][order],
        values=rough.values[point],
        maximum=None if maximum is None else maximum[point],
        clocks={name: times[point] for name, times in rough.clocks.items()},
        rows=table.rows[rough.at][point],
    )


def _points_of(lengths: Codes, order: Codes) -> Codes:
    """Positions of the points when their runs are put in another order."""
    starts = np.cumsum(lengths) - lengths
    wanted = lengths[order]
    ends = np.cumsum(wanted)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.arange(total) + np.repeat(starts[order] - (ends - wanted), wanted))


def _marked(table: Table, rough: Rough, name: str) -> Flags | None:
    """Runs of which some row carries a mark."""
    if not table.has(name):
        return None
    mark = yes_or_no(table.column(name)) == 1
    run = np.repeat(np.arange(len(rough.first)), rough.lengths)
    return np.asarray(mark[rough.first] | (np.bincount(run[mark[rough.at]], minlength=len(rough.first)) > 0))


def _refuse_twice(table: Table, rough: Rough, cells: Codes, trial: Codes) -> None:
    order = np.lexsort((rough.first, trial, cells))
    twice = np.flatnonzero((cells[order][1:] == cells[order][:-1]) & (trial[order][1:] == trial[order][:-1]))
    if not len(twice):
        return
    one, other = int(rough.first[order[twice[0]]]), int(rough.first[order[twice[0] + 1]])
    names = table.names
    run = names.run(int(names.system[one]), int(names.instance[one]))
    label = (names.trials or ("",))[int(names.trial[one])]
    raise DataError(
        f"{table.locate(other)}: {run}, trial {label!r} stands already in {table.locate(one)} ({len(twice)} such rows); "
        + (
            apart(table, one, other)
            or "remove one of them, number the trials, or give a step column if the rows are steps of one run"
        )
    )


def apart(table: Table, one: int, other: int) -> str:
    """How to name apart two rows that lie in two files; nothing for rows of one file."""
    if not table.has(PLACE):
        return ""
    cells = table.tidy.frame[PLACE]
    word = telling_apart(cells[one], cells[other]) if cells[one] and cells[other] else None
    if word is None:
        return ""
    return (
        f"if these are two systems, name them by where they lie: columns system={word} (--columns system={word}), or "
        f"NAME=PATH for each; if they are further trials of one system: columns trial={word}"
    )


def _count_trials(
    table: Table, rough: Rough, cells: Codes, tracks: list[Floats], marks: list[Flags], notes: Notes
) -> Codes:
    """Repeated rows of one (instance, system) as trials, in an order that does not depend on that of the rows."""
    _, where, count = np.unique(cells, return_inverse=True, return_counts=True)
    repeated = count[where] > 1
    trial = np.zeros(len(cells), dtype=np.int64)
    if not repeated.any():
        return trial
    some = np.flatnonzero(repeated)
    rank = np.empty(len(some), dtype=np.int64)
    rank[_content_order(rough, some, tracks, [rough.known, *marks])] = np.arange(len(some))
    trial[some] = rank
    notes.add(
        "repeated_rows",
        "the same system and instance stand in several rows without a trial or step column: taken as trials; runs",
        len(some),
        systems=table.names.system[rough.first[some]],
        rows=table.rows[rough.first[some]],
    )
    return compact_trials(cells, trial, len(cells) + 1 + 2 * int(count.max()))


def _content_order(rough: Rough, some: Codes, tracks: list[Floats], marks: list[Flags]) -> Codes:
    """Order of some runs by what they hold."""
    lengths = rough.lengths
    starts = np.cumsum(lengths) - lengths
    tracks = [np.where(np.isnan(track), -1.0, track) for track in tracks]
    if int(lengths[some].max(initial=0)) <= 1:
        full = lengths[some] > 0
        keys = [np.full(len(some), -1.0) for _ in tracks]
        for key, track in zip(keys, tracks, strict=True):
            key[full] = track[starts[some[full]]]
        return np.lexsort((*(mark[some] for mark in marks), *keys[::-1], full))
    content = [
        (
            *(tuple(track[starts[run] : starts[run] + lengths[run]]) for track in tracks),
            *(bool(mark[run]) for mark in marks),
        )
        for run in some
    ]
    return np.asarray(sorted(range(len(some)), key=content.__getitem__), dtype=np.int64)
