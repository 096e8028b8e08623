"""Keeping only some rows of a table: ``env=bash``, ``system!=*/*``, several of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from torchpref.errors import DataError, UsageError
from torchpref.runs.tidy.columns import listed, suggest

if TYPE_CHECKING:
    import polars

#: How ``where=`` may be given: a mapping from columns to a value or several, or a list of ``"COL=VALUE"``.
WhereLike = Mapping[str, Any] | str | Sequence[str] | None
#: A condition: the column, whether it asks for equality, and the values or globs of which one must match.
Condition = tuple[str, bool, tuple[str, ...]]


class NoRowLeftError(DataError):
    """A condition that no row meets."""


def parse_where(where: WhereLike) -> list[Condition]:
    """The conditions, all of which must hold.

    Raises:
        UsageError: a condition that is neither ``COL=VALUE`` nor ``COL!=VALUE``.
    """
    if not where:
        return []
    if isinstance(where, Mapping):
        conditions: list[Condition] = []
        for column, value in where.items():
            values = value if isinstance(value, list | tuple | set | frozenset) else [value]
            texts = tuple(_text(each) for each in values)
            negated = len(texts) == 1 and texts[0].startswith("!") and isinstance(value, str)
            conditions.append((str(column), not negated, (texts[0][1:],) if negated else texts))
        return conditions
    conditions = []
    for part in [where] if isinstance(where, str) else where:
        column, equals, value = str(part).partition("=")
        negated = column.endswith("!")
        column = column[:-1] if negated else column
        if not equals or not column.strip():
            raise UsageError(f"where: {part!r} is not of the form COLUMN=VALUE or COLUMN!=VALUE, such as env=bash")
        conditions.append((column.strip(), not negated, (value.strip(),)))
    return conditions


def filter_rows(frame: polars.DataFrame, conditions: Sequence[Condition], place: str) -> polars.DataFrame:
    """The rows for which every condition holds; an empty value matches empty cells.

    Raises:
        DataError: a column that does not exist, or a condition that no row meets.
    """
    import polars as pl

    from torchpref.runs.tidy.cells import names_expr

    for column, equal, patterns in conditions:
        if column not in frame.columns:
            raise DataError(
                f"{place}: there is no column {column!r} for where {_shown(column, equal, patterns)}"
                f"{suggest(column, frame.columns)}; the columns are: {listed(frame.columns)}"
            )
        cells = frame.select(names_expr(column, frame.schema[column])).to_series().fill_null("")
        values = cells.unique().to_list()
        matching = [value for value in values if any(_matches(value, pattern) for pattern in patterns)]
        mask = cells.is_in(matching)
        kept = frame.filter(mask if equal else ~mask)
        if frame.height and not kept.height:
            shown = listed(sorted(map(repr, values)), 12)
            raise NoRowLeftError(
                f"{place}: no row is left by where {_shown(column, equal, patterns)}; its values are {shown}"
            )
        frame = kept
    return frame if conditions else frame.select(pl.all())


def _matches(value: str, pattern: str) -> bool:
    if value == pattern or fnmatchcase(value, pattern):
        return True
    try:
        return bool(value) and bool(pattern) and float(value) == float(pattern)
    except ValueError:
        return value.lower() == pattern.lower() in ("true", "false")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(column: str, equal: bool, patterns: Sequence[str]) -> str:
    return f"{column}{'=' if equal else '!='}{'|'.join(patterns)}"
