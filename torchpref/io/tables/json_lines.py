"""Tables of JSON lines: one object per line, whose keys may come late and whose values may change their type."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from torchpref.errors import DataError
from torchpref.io.tables.json_value import parse
from torchpref.runs.tidy.recognise import may_be_used
from torchpref.runs.tidy.records import flat, from_records
from torchpref.runs.tidy.schema import CLOCKS, PREFIXES, REFERENCE, VALUES

#: Bytes of which the types of columns are inferred; a file of fewer is inferred as a whole.
SAMPLE_BYTES = 1 << 21
#: Columns of numbers, in which whole ones may be followed by others.
_NUMBERS = frozenset((*CLOCKS, *VALUES, "step", "max_score", REFERENCE))


@dataclass(frozen=True)
class LinesTable:
    """One file of JSON lines.

    Attributes:
        path: where it is.
        data: its text.
        columns: names of its columns, in the order in which they first appear.
        schema: types of the columns for reading them, or None where that has been done.
        frame: the columns that may be needed, where reading them took all of the file.
    """

    path: Path
    data: bytes
    columns: tuple[str, ...]
    schema: dict[str, Any] | None
    frame: pl.DataFrame | None

    @classmethod
    def open(cls, path: Path, data: bytes, mentioned: Collection[str]) -> LinesTable:
        """Find the columns; ``mentioned`` are those that may be needed.

        polars infers columns from the first lines and drops keys that come later without a word. So the rest of a large
        file is searched for the names of columns that may be needed, and if one is found the whole file is inferred.

        Raises:
            DataError: a line is damaged, cut short, or no object.
        """
        if len(data) > SAMPLE_BYTES:
            sample = data[: data.rfind(b"\n", 0, SAMPLE_BYTES) + 1]
            try:
                schema = dict(pl.read_ndjson(io.BytesIO(sample), infer_schema_length=None).schema)
                if any(isinstance(kind, pl.Struct) for kind in schema.values()) and any(
                    "." in name for name in mentioned
                ):
                    schema = {}  # a field of an object is wanted
            except (pl.exceptions.PolarsError, OverflowError):
                schema = {}
            if schema and not _appear(data, [name for name in mentioned if name not in schema]):
                return cls(path, data, tuple(schema), {name: _wide(name, kind) for name, kind in schema.items()}, None)
        frame, columns = _whole(path, data, mentioned)
        return cls(path, data, columns, None, frame)

    def read(self, columns: Sequence[str]) -> tuple[pl.DataFrame, Callable[[int], str]]:
        """Some of the columns, and what says where a row stands."""
        frame = self.frame
        if self.schema is not None:
            try:
                frame = pl.read_ndjson(self.data, schema={name: self.schema[name] for name in columns})
            except (pl.exceptions.PolarsError, OverflowError):
                frame = None
        if frame is None:
            frame, _ = _whole(self.path, self.data, columns)
        return frame.select(columns), self._line

    def _line(self, row: int) -> str:
        """Where a row stands; counted only when it is asked for."""
        seen = -1
        for number, line in enumerate(self.data.split(b"\n"), 1):
            seen += bool(line.strip())
            if seen == row:
                return f"{self.path}, line {number}"
        return f"{self.path}, row {row + 1}"


def unnested(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame with the fields of the objects in it under dotted names."""
    while structs := [name for name, kind in frame.schema.items() if isinstance(kind, pl.Struct) and kind.fields]:
        for name in structs:
            fields = frame[name].struct.unnest()
            fields.columns = [f"{name}.{field}" for field in fields.columns]
            fresh = [field for field in fields.columns if field not in frame.columns]
            frame = frame.drop(name).hstack(fields.select(fresh))
    return frame


def is_lines(data: bytes) -> bool:
    """Whether text that begins with ``{`` is one object per line, and not one object of columns."""
    data = data.lstrip()
    end = data.find(b"\n")
    first = data[: end if end >= 0 else len(data)].strip()
    if first.startswith(b"{") and first.endswith(b"}"):
        try:
            row = json.loads(first)
        except (ValueError, RecursionError):
            return True
        nested = all(isinstance(cell, list | dict) for cell in row.values())
        alone = end < 0 or data[end:].isspace()
        return not (row and nested and alone)
    if first == b"{":  # an object over several lines
        return False
    # a last line that was cut short, after others or alone
    return end < 0 or data[end:].isspace() or b"}\n{" in data.replace(b"\r", b"")


def _appear(data: bytes, names: Sequence[str]) -> bool:
    """Whether any of some names stands in quotes anywhere in the text."""
    lines = pl.read_csv(
        data,
        separator="\x01",
        quote_char=None,
        has_header=False,
        new_columns=["line"],
        infer_schema=False,
        truncate_ragged_lines=True,
    )["line"]
    quoted = [f'"{name}"' for name in names] + [f'"{prefix}' for prefix in PREFIXES]
    return bool(lines.str.contains_any(quoted).any())


def _wide(name: str, kind: Any) -> Any:
    """A type that holds what may follow: whole numbers become floats where numbers are meant, odd types become text."""
    if isinstance(kind, pl.List) and kind.inner.is_numeric():
        return pl.List(pl.Float64)
    if kind.is_integer() and name in _NUMBERS:
        return pl.Float64
    return pl.String if kind == pl.Null or (kind.is_nested() and not isinstance(kind, pl.List)) else kind


def _whole(path: Path, data: bytes, mentioned: Collection[str]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """All columns inferred from all lines, or those mentioned, line by line, where polars cannot read them."""
    try:
        frame = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
        frame = unnested(frame)
        return frame, tuple(frame.columns)
    except (pl.exceptions.PolarsError, OverflowError):
        pass  # NaN, lists among numbers, damage: with our own errors
    records: list[dict[str, Any]] = []
    names: dict[str, None] = {}
    for number, line in enumerate(io.BytesIO(data), 1):
        if line.strip():
            record = parse(line.decode(), f"{path}, line {number}")
            if not isinstance(record, dict):
                shown = str(record)[:40]
                raise DataError(f"{path}, line {number}: {shown!r} is no JSON object; give one object per line")
            record = flat(record)
            names |= dict.fromkeys(record)
            records.append({name: record[name] for name in record if name in mentioned or may_be_used(name)})
    return from_records(records), tuple(names)
