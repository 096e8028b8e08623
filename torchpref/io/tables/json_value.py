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
from torchpref.io.files.text import NoTableError
from torchpref.runs.tidy.recognise import may_be_used
from torchpref.runs.tidy.records import from_records, series

#: The escape of half a character, which Python takes alone and no text file can hold.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


#: The column of keys, where an object holds a row under each.
KEY = "@key"
_AGAIN = re.compile(r"\}\s*\{")


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
        value = _whole(path, data)
        frame = _rows(path, value) if isinstance(value, list) else _object(path, value)
        return cls(frame, lambda row: f"{path}, record {row + 1}")


def _whole(path: Path, data: bytes) -> Any:
    """The value in a file; several objects that follow each other are a list."""
    text = data.decode()
    if text.lstrip()[:1] == "{" and "}" in text and _AGAIN.search(text):
        from torchpref.io.files.documents import read_stream

        return [value for _, value in read_stream(path)] if not _is_one(text) else parse(text, str(path))
    return parse(text, str(path))


def _is_one(text: str) -> bool:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return "Extra data" not in error.msg
    except (ValueError, RecursionError):
        pass
    return True


def _is_keyed(value: dict[str, dict[str, Any]]) -> bool:
    """Whether an object holds a row under each key, as opposed to a column: the keys within say which."""
    return not any(map(may_be_used, value)) and any(may_be_used(name) for cells in value.values() for name in cells)


def _is_row(value: dict[str, Any]) -> bool:
    """Whether an object is one row: it has a cell of its own under a name that a table may have."""
    return any(may_be_used(name) for name, cell in value.items() if not isinstance(cell, dict))


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
    if value and all(isinstance(cells, dict) for cells in value.values()) and _is_keyed(value):
        return from_records([{KEY: key, **cells} for key, cells in value.items()])
    if value and all(isinstance(cells, dict) and cells for cells in value.values()) and not _is_row(value):
        index = list(dict.fromkeys(key for cells in value.values() for key in cells))
        return from_records([{name: cells.get(key) for name, cells in value.items()} for key in index])
    if value and all(isinstance(cells, list) for cells in value.values()):
        sizes = {name: len(cells) for name, cells in value.items()}
        if len(set(sizes.values())) > 1:
            shown = ", ".join(f"{name}: {size}" for name, size in sizes.items())
            raise DataError(f"{path}: the columns are not of one length ({shown}); give as many cells in each")
        return pl.DataFrame([series(name, cells) for name, cells in value.items()])
    if value and (_is_row(value) or not any(isinstance(cells, dict) for cells in value.values())):
        return from_records([value])
    raise NoTableError(
        f"{path}: a JSON object with the keys {', '.join(list(value)[:12]) or '(none)'} is no table; give a list of objects, "
        "one object per line, or an object of columns"
    )
