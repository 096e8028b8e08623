"""The three layouts of a tidy table: a row per step, a row per run, a row per run with list cells."""

from __future__ import annotations

import numpy as np

from torchpref.runs.tidy.cells import Column, is_list_column, lists, numbers, yes_or_no
from torchpref.runs.tidy.columns import value_column
from torchpref.runs.tidy.names import encode
from torchpref.runs.tidy.notes import Notes
from torchpref.runs.tidy.points import Floats, Points, Rough, Table, apart, arrange
from torchpref.runs.tidy.schema import ROW, Tidy


def points(tidy: Tidy, notes: Notes, clock: str | None = None) -> Points:
    """The points of a tidy table.

    Args:
        tidy: the table.
        notes: where to note what is noticed.
        clock: the clock that was asked for; ``steps`` counts the elements of list cells where nothing else does.

    Raises:
        DataError: a column is missing, there are two value columns, a cell cannot be read, a run stands twice.
    """
    frame = tidy.frame
    kind = value_column(frame.columns, tidy.mapped, tidy.columns or frame.columns, tidy.place)
    rows = frame[ROW].to_numpy().astype(np.int64) if ROW in frame.columns else np.arange(frame.height)
    names = encode(tidy, rows)
    notes.systems = names.systems

    table = Table(tidy, kind, rows, names)
    if any(is_list_column(frame[name]) for name in (kind, "step", *table.clocks.values()) if name in frame.columns):
        rough = _from_lists(table, clock)
    elif table.has_steps:
        rough = _from_steps(table)
    else:
        rough = _from_runs(table)
    return arrange(table, rough, notes)


def _values(column: Column) -> Floats:
    if column.name == "success":
        return yes_or_no(column)
    return numbers(column, words=column.name == "return", refuse_nan=True)


def _from_runs(table: Table) -> Rough:
    """A row per run: one point, what was reached and when; at an unknown time where there is no clock."""
    values = _values(table.column(table.kind))
    clocks = {name: numbers(table.column(source)) for name, source in table.clocks.items()}
    every = np.arange(len(values))
    clocks = clocks or {"steps": np.full(len(values), np.nan)}
    return Rough(every, np.ones_like(every), every, values, clocks, ~np.isnan(values))


def _from_steps(table: Table) -> Rough:
    """A row per step; ``step`` orders them and is the clock ``steps`` unless there is one of that name."""
    names = table.names
    column = table.column("step")
    step = numbers(column)
    key = names.cells * (len(names.trials) if names.trials else 1) + names.trial
    rank = np.where(np.isnan(step), -np.inf, step)
    order = np.arange(len(key))
    ahead = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & (rank[1:] > rank[:-1]))
    if not ahead.all():
        order = np.lexsort((rank, key))
        key, rank = key[order], rank[order]
    same = key[1:] == key[:-1]
    unordered = np.flatnonzero(same & np.isneginf(rank[:-1]))
    if len(unordered):
        raise column.refuse(int(order[unordered[0]]), "so nobody knows its place in its run", "number every step")
    twice = np.flatnonzero(same & (rank[1:] == rank[:-1]))
    if len(twice):
        one, other = sorted((int(order[twice[0]]), int(order[twice[0] + 1])))
        run = names.run(int(names.system[one]), int(names.instance[one]))
        raise column.refuse(
            other,
            f"which {table.locate(one)} has already for {run}",
            apart(table, one, other) or "remove one of them, or tell runs apart by a trial column",
        )
    starts = np.flatnonzero(np.r_[True, ~same]) if len(key) else np.zeros(0, dtype=np.int64)
    lengths = np.diff(np.r_[starts, len(key)])
    values = _values(table.column(table.kind))[order]
    clocks = {} if "steps" in table.clocks else {"steps": step[order]}
    clocks |= {name: numbers(table.column(source))[order] for name, source in table.clocks.items()}
    known = np.logical_or.reduceat(~np.isnan(values), starts) if len(starts) else np.zeros(0, dtype=bool)
    return Rough(order[starts], lengths, order, values, clocks, known)


def _from_lists(table: Table, clock: str | None) -> Rough:
    """A row per run with list cells: one element per step; an empty list is a run without a step."""
    column = table.column(table.kind)
    lengths, elements = lists(column)
    values = _values(elements)
    given = np.maximum(lengths, 0)
    at = np.repeat(np.arange(len(given)), given)
    clocks: dict[str, Floats] = {}
    sources = table.clocks
    if table.has_steps and "steps" not in sources:
        sources = {"steps": "step", **sources}
    for name, source in sources.items():
        times = table.column(source)
        counts, ticks = lists(times)
        both = (lengths >= 0) & (counts >= 0)
        odd = np.flatnonzero(both & (lengths != counts))
        if len(odd):
            position = int(odd[0])
            raise times.refuse(
                position,
                f"{counts[position]} in number, but {table.kind} has {lengths[position]}",
                f"give one {name} for each {table.kind}, or leave the cell empty",
            )
        clocks[name] = np.full(len(values), np.nan)
        clocks[name][both[at]] = numbers(ticks)[np.repeat(both, np.maximum(counts, 0))]
    if not clocks or (clock == "steps" and "steps" not in clocks):
        clocks = {"steps": np.arange(len(at)) - (np.cumsum(given) - given)[at] + 1.0, **clocks}
    told = np.bincount(at[~np.isnan(values)], minlength=len(given)) > 0
    return Rough(np.arange(len(given)), given, at, values, clocks, told | (lengths == 0))
