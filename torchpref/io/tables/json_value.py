"""Tables in one JSON value: a list of objects, or an object of columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from torchpref.errors import DataError
from torchpref.runs.tidy.records import from_records, series

#: The escape of half a character, which Python takes alone and no text file can hold.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class JsonTable:
    """One file of JSON as a frame with all of its columns.

    Attributes:
        frame: its rows.
        locate: says where a row stands.
    """

    frame: pl.DataFrame
    locate: Callable[[int], str]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns, in the order in which they first appear."""
        return tuple(self.frame.columns)

    def read(self, columns: Sequence[str]) -> tuple[pl.DataFrame, Callable[[int], str]]:
        """Some of the columns, and what says where a row stands."""
        return self.frame.select(columns), self.locate

    @classmethod
    def open(cls, path: Path, data: bytes) -> JsonTable:
        """Read a file that begins with ``{`` or ``[``.

        Raises:
            DataError: the JSON is damaged or cut short, or is no table.
        """
        if data.lstrip()[:1] == b"[":
            return cls(_rows(path, _whole(path, data)), lambda row: f"{path}, record {row + 1}")
        return cls(_object(path, _whole(path, data)), lambda row: f"{path}, record {row + 1}")


def _whole(path: Path, data: bytes) -> Any:
    return parse(data.decode(), str(path))


def parse(text: str, place: str) -> Any:
    """One JSON value; NaN and Infinity are taken as Python's own writer writes them.

    Raises:
        DataError: it is damaged, cut short, or nested too deeply.
    """
    try:
        value = json.loads(text)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise DataError(f"{place}: {half} is half of a character and no text; correct it") from error
    except json.JSONDecodeError as error:
        at = f", line {error.lineno}" if "\n" in text.rstrip() else ""
        cut = error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg
        hint = "was the file cut short?" if cut else "is the file damaged?"
        shown = text[max(0, error.pos - 20) : error.pos + 10].strip()
        raise DataError(f"{place}{at}: not valid JSON near {shown!r} ({error.msg}); {hint}") from error
    except RecursionError as error:
        raise DataError(f"{place}: JSON nested too deeply to be a table; give rows of plain cells") from error
    except ValueError as error:
        raise DataError(f"{place}: a number that cannot be read ({error}); correct it") from error


def _rows(path: Path, rows: Any) -> pl.DataFrame:
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise DataError(f"{path}, record {number}: {str(row)[:40]!r} is no JSON object; give one object per row")
    if not rows:
        raise DataError(f"{path}: the list is empty; give at least one row")
    return from_records(rows)


def _object(path: Path, value: Any) -> pl.DataFrame:
    """An object of columns, as pandas writes it (by column, split, or table), or one row."""
    if isinstance(value.get("data"), list) and value["data"]:
        data = value["data"]
        if isinstance(value.get("columns"), list) and all(isinstance(row, list) for row in data):
            return from_records([dict(zip(map(str, value["columns"]), row, strict=False)) for row in data])
        if all(isinstance(row, dict) for row in data):
            return _rows(path, data)
    for key in ("rows", "records"):
        if isinstance(value.get(key), list) and value[key]:
            return _rows(path, value[key])
    if value and all(isinstance(cells, dict) for cells in value.values()):
        index = list(dict.fromkeys(key for cells in value.values() for key in cells))
        return from_records([{name: cells.get(key) for name, cells in value.items()} for key in index])
    if value and all(isinstance(cells, list) for cells in value.values()):
        sizes = {name: len(cells) for name, cells in value.items()}
        if len(set(sizes.values())) > 1:
            shown = ", ".join(f"{name}: {size}" for name, size in sizes.items())
            raise DataError(f"{path}: the columns are not of one length ({shown}); give as many cells in each")
        return pl.DataFrame([series(name, cells) for name, cells in value.items()])
    if value and not any(isinstance(cells, dict) for cells in value.values()):
        return from_records([value])
    raise DataError(
        f"{path}: a JSON object with the keys {', '.join(list(value)[:12]) or '(none)'} is no table; give a list of objects, "
        "one object per line, or an object of columns"
    )
