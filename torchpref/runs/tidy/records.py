"""Python records and cells as columns of a frame."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl


def from_records(records: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Rows as a frame; keys may be missing and types may be mixed, which makes the column text."""
    records = [flat(record) for record in records]
    names = list(dict.fromkeys(key for record in records for key in record))
    return pl.DataFrame([series(name, [record.get(name) for record in records]) for name in names])


def flat(record: Mapping[Any, Any]) -> dict[str, Any]:
    """A record with the fields of the objects in it under dotted names."""
    if not any(isinstance(value, dict) for value in record.values()):
        return record if isinstance(record, dict) else dict(record)
    found: dict[str, Any] = {}
    pending: list[tuple[str, Any]] = [(str(name), value) for name, value in reversed(list(record.items()))]
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict) and value:
            pending.extend((f"{name}.{key}", below) for key, below in reversed(value.items()))
        else:
            found.setdefault(name, value)
    return found


def series(name: str, cells: list[Any]) -> pl.Series:
    """Cells as a column: numbers, truth values, text or lists of them; a mix of types as text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {bool}:
        return pl.Series(name, cells, dtype=pl.Boolean if kinds else pl.Null)
    if kinds <= {int, float}:
        return pl.Series(name, [None if cell is None else float(cell) for cell in _floats(cells)], dtype=pl.Float64)
    if kinds == {str}:
        return pl.Series(name, cells, dtype=pl.String)
    if kinds == {list}:
        inner = {type(element) for cell in cells if cell is not None for element in cell if element is not None}
        if inner <= {int, float, bool}:
            numbers = [
                None if cell is None else [None if e is None else float(e) for e in _floats(cell)] for cell in cells
            ]
            return pl.Series(name, numbers, dtype=pl.List(pl.Float64))
        texts = [None if cell is None else [_text(element) for element in cell] for cell in cells]
        return pl.Series(name, texts, dtype=pl.List(pl.String))
    return pl.Series(name, [_text(cell) for cell in cells], dtype=pl.String)


def _floats(cells: Sequence[Any]) -> Iterator[Any]:
    """Numbers that a float can hold; integers of hundreds of digits are infinite."""
    for cell in cells:
        try:
            yield None if cell is None else float(cell)
        except OverflowError:
            yield float("inf")


def _text(cell: Any) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    return json.dumps(cell)
