"""What a cell says: names, numbers, yes or no, and lists, by rules of our own rather than by guessing types.

Files are read as text where the format has no types, so ``007`` stays a name and a column may mix ``1``, ``1.5`` and
``True``. A cell is empty where it holds nothing, blanks, or one of ``null``, ``None``, ``NA``, ``N/A``, ``<NA>``, ``-``,
``unknown``, ``skipped``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import DataError
from torchpref.runs.tidy.durations import amount_of

if TYPE_CHECKING:
    import polars

EMPTY_WORDS = ("", "null", "none", "na", "n/a", "<na>", "-", "unknown", "skipped")
TRUE_WORDS = ("true", "t", "yes", "y", "pass", "passed", "success", "succeeded", "solved", "resolved", "correct")
#: A run that ran out of time is a failure of the agent.
FALSE_WORDS = (
    "false", "f", "no", "n", "fail", "failed", "failure", "unsolved", "unresolved", "incorrect", "wrong", "timeout",
    "timed out", "timed_out",
)  # fmt: skip
#: Outcomes that are none: what broke was not the agent, or nobody knows.
NO_OUTCOME = ("nan", "error", "errored", "cancelled", "canceled", "aborted", "invalid")
#: Cells of a text column that hold a list: ``[1, 2]`` or numbers with blanks between them.
LIST_CELL = r"^\s*\[.*\]\s*$|^\s*[-+0-9.][-+0-9.eE]*(\s+|;\s*|,\s+)[-+0-9.][-+0-9.eE\s;,]*$"
_MARK = r"[\[\](),;\"']"


@dataclass(frozen=True)
class Column:
    """One column of a table while its cells are read.

    Attributes:
        name: its name in the tidy table.
        cells: its cells.
        rows: the number of the row of each cell.
        locate: says where a row stands.
    """

    name: str
    cells: polars.Series
    rows: NDArray[np.int64]
    locate: Callable[[int], str]

    def refuse(self, position: int, problem: str, remedy: str) -> DataError:
        """The error for one cell: where it is, what it holds, and what to do."""
        value = self.cells[position]
        shown = repr(value if not hasattr(value, "to_list") else value.to_list())
        shown = shown if len(shown) <= 60 else shown[:57] + "…'"
        return DataError(f"{self.locate(int(self.rows[position]))}: {self.name} is {shown}, {problem}; {remedy}")


def names_expr(column: str, dtype: Any) -> polars.Expr:
    """A column as names: text as it stands, whole numbers without a point, empty where it is blank."""
    import polars as pl

    cell = pl.col(column)
    if dtype == pl.String:
        return pl.when(cell.str.strip_chars() == "").then(None).otherwise(cell).alias(column)
    if dtype == pl.Boolean:
        return pl.when(cell).then(pl.lit("true")).when(~cell).then(pl.lit("false")).alias(column)
    if dtype.is_float():
        whole = (cell == cell.floor()) & (cell.abs() < 2**53)
        text = pl.when(whole).then(cell.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(cell.cast(pl.String))
        return pl.when(cell.is_nan()).then(None).otherwise(text).alias(column)
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        return cell.map_elements(_nested_text, return_dtype=pl.String).alias(column)
    return cell.cast(pl.String).alias(column)


def _nested_text(value: Any) -> str:
    import json

    plain = value.to_list() if hasattr(value, "to_list") else value
    return plain.decode("utf-8", "replace") if isinstance(plain, bytes) else json.dumps(plain, default=str)


def is_list_column(cells: polars.Series) -> bool:
    """Whether a column holds lists: by its type, or as text."""
    import polars as pl

    if isinstance(cells.dtype, pl.List | pl.Array):
        return True
    if cells.dtype != pl.String:
        return False
    odd = cells.filter(cells.is_not_null() & cells.cast(pl.Float64, strict=False).is_null())
    return bool(odd.str.contains(LIST_CELL).any())


def numbers(column: Column, *, words: bool = False, refuse_nan: bool = False) -> NDArray[np.float64]:
    """The cells as float64, NaN where a cell is empty.

    Args:
        column: the column.
        words: whether yes and no count as 1 and 0.
        refuse_nan: whether a cell that says NaN is an error (a value) or an empty cell (a time that is not known).

    Raises:
        DataError: a cell that is no number.
    """
    import polars as pl

    cells = column.cells
    dtype = cells.dtype
    if dtype == pl.Null:
        return np.full(len(cells), np.nan)
    if dtype == pl.Duration:
        return (cells.dt.total_nanoseconds().cast(pl.Float64) / 1e9).to_numpy()
    if dtype in (pl.Categorical, pl.Enum):
        cells = cells.cast(pl.String)
    if dtype == pl.Boolean and not words:
        raise column.refuse(_first(cells.is_not_null()), "which is no number", "map another column to it")
    if dtype.is_temporal() or dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        position = _first(cells.is_not_null())
        remedy = "give the time since the start of the run" if dtype.is_temporal() else "map a column of numbers to it"
        raise column.refuse(position, f"of type {dtype}, which is no number", remedy)
    found = cells.cast(pl.Float64, strict=False)
    unread = cells.is_not_null() & found.is_null()
    explicit_nan = found.is_nan().fill_null(False).to_numpy()
    result = found.to_numpy().astype(np.float64)
    if unread.any():
        values, said_nan = _slow_numbers(column, unread, words)
        where = unread.to_numpy()
        result[where] = values
        explicit_nan = explicit_nan.copy()
        explicit_nan[where] = said_nan
    if refuse_nan and explicit_nan.any():
        remedy = "leave the cell empty if the outcome is not known, or remove the run"
        raise column.refuse(int(explicit_nan.argmax()), "not a number", remedy)
    return result


def _slow_numbers(column: Column, unread: polars.Series, words: bool) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Cells that are no plain numbers: blanks around them, empty words, yes and no; an error for anything else.

    Returns their values and which of them say NaN, as opposed to being empty.
    """
    import polars as pl

    text = column.cells.cast(pl.String).filter(unread).str.strip_chars()
    lower = text.str.to_lowercase()
    value = text.cast(pl.Float64, strict=False)
    other = value.is_null()
    if other.any():
        meant = {each: amount_of(each, column.name) for each in text.filter(other).unique().to_list()}
        said = text.replace_strict(meant, default=None, return_dtype=pl.Float64)
        value = value.fill_null(said)
    known = value.is_not_null() | lower.is_in([*EMPTY_WORDS, *(NO_OUTCOME if words else ())])
    if words:
        meaning = {**dict.fromkeys(TRUE_WORDS, 1.0), **dict.fromkeys(FALSE_WORDS, 0.0)}
        said = lower.replace_strict(meaning, default=None, return_dtype=pl.Float64)
        value = value.fill_null(said)
        known = known | said.is_not_null()
    if not known.all():
        position = int(unread.arg_true()[_first(~known)])
        shown = str(column.cells[position]).strip()
        if words and column.name != "return" and shown[:1].isalpha():
            raise column.refuse(position, "a word that is not known", _WORDS_REMEDY)
        raise column.refuse(position, "which is no number", _remedy(shown))
    return value.to_numpy(), value.is_nan().fill_null(False).to_numpy()


_WORDS_REMEDY = (
    f"write success as 1, {', '.join(TRUE_WORDS)}; failure as 0, {', '.join(FALSE_WORDS)}; an outcome that is not known as an "
    f"empty cell, {', '.join(filter(None, EMPTY_WORDS))}, {', '.join(NO_OUTCOME)}"
)


def _remedy(text: str) -> str:
    if text.endswith("%"):
        return "write percentages as fractions of 1"
    if text.startswith(("$", "€", "£")) or text[-1:].isalpha() and text[:1].isdigit():
        return "write the number without its unit"
    if "," in text:
        return "write numbers with a point and without separators, such as 1234.5"
    return "write a number, or leave the cell empty if it is not known"


def yes_or_no(column: Column) -> NDArray[np.float64]:
    """The cells as 1 or 0, NaN where a cell is empty.

    Raises:
        DataError: a cell that is neither yes nor no.
    """
    import polars as pl

    cells = column.cells
    if cells.dtype in (pl.Categorical, pl.Enum):
        cells = cells.cast(pl.String)
    if cells.dtype == pl.Boolean:
        return cells.cast(pl.Float64).to_numpy().astype(np.float64, copy=False)
    result = numbers(Column(column.name, cells, column.rows, column.locate), words=True)
    odd = ~np.isnan(result) & (result != 0) & (result != 1)
    if odd.any():
        remedy = "map a column with parts of success to return (in [0, 1]) or to score with max_score"
        raise column.refuse(int(odd.argmax()), "neither true nor false", remedy)
    return result


def lists(column: Column) -> tuple[NDArray[np.int64], Column]:
    """List cells as their lengths (-1 where a cell is empty) and one column of all their elements.

    The elements' rows are those of their cells. Text cells are split at blanks, commas and semicolons; brackets are
    optional; ``[]`` is a list without elements, a blank cell is an empty cell.
    """
    import polars as pl

    cells = column.cells
    if cells.dtype == pl.String:
        bare = cells.str.strip_chars()
        empty = bare.is_null() | bare.str.to_lowercase().is_in(EMPTY_WORDS)
        parts = bare.str.replace_all(_MARK, " ").str.extract_all(r"\S+")
        cells = pl.select(pl.when(~empty).then(parts)).to_series()
    elif isinstance(cells.dtype, pl.Array):
        cells = cells.arr.to_list()
    elif not isinstance(cells.dtype, pl.List):
        cells = pl.select(pl.when(cells.is_not_null()).then(pl.concat_list(cells))).to_series()
    lengths = cells.list.len().cast(pl.Int64).fill_null(-1).to_numpy()
    elements = cells.filter(pl.Series(lengths > 0)).explode()
    rows = np.repeat(column.rows, np.maximum(lengths, 0))
    return lengths, Column(column.name, elements, rows, column.locate)


def _first(mask: polars.Series) -> int:
    found = mask.arg_true()
    return int(found[0]) if len(found) else 0
