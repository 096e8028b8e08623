"""From paths to tidy rows: which format the files are of, and who reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torchpref.errors import DataError, UsageError
from torchpref.io.detect import detect_format, select_format
from torchpref.io.files.source import Source
from torchpref.io.files.walk import walk
from torchpref.runs.tidy.columns import parse_columns
from torchpref.runs.tidy.refine import refine
from torchpref.runs.tidy.schema import Tidy
from torchpref.runs.tidy.where import Condition, parse_where

if TYPE_CHECKING:
    from torchpref.io import PathsLike
    from torchpref.runs.tidy.columns import ColumnsLike
    from torchpref.runs.tidy.where import WhereLike

TABLE = "table"
_NO_LOG = " (read as a table, for no log format was recognised)"


def read_sources(
    paths: PathsLike,
    format: str,
    *,
    columns: ColumnsLike,
    where: WhereLike,
    encoding: str | None,
    options: Mapping[str, Any],
) -> Tidy:
    """Tidy rows of logs or tables; see :func:`torchpref.io.read`."""
    mapping, conditions = parse_columns(columns), parse_where(where)
    sources = walk(paths)
    if format == TABLE:
        return _table(sources, mapping, conditions, encoding, options)
    found = detect_format(sources) if format == "auto" else select_format(format, sources)
    if found.reader is None:
        return _table(found.sources, mapping, conditions, encoding, options, _NO_LOG)
    tidy = found.reader.read(found.sources, options)
    tidy = replace(tidy, findings=(*found.findings, *tidy.findings), place=_place(found.sources))
    return refine(tidy, mapping, conditions)


def _table(
    sources: Sequence[Source],
    mapping: Mapping[str, str],
    conditions: Sequence[Condition],
    encoding: str | None,
    options: Mapping[str, Any],
    hint: str = "",
) -> Tidy:
    from torchpref.io.tables.tables import read_tables

    if options:
        raise UsageError(f"tables have no option {', '.join(map(repr, sorted(options)))}")
    if not sources:
        raise DataError("there is no file to read; name at least one")
    return read_tables(sources, mapping, conditions, encoding, hint)


def _place(sources: Sequence[Source]) -> str:
    if not sources:
        return "the logs"
    return str(sources[0].path) if len(sources) == 1 else f"{sources[0].path} and {len(sources) - 1} more"
