"""From paths to tidy rows: which format the files are of, and who reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from torchpref.errors import DataError, UsageError
from torchpref.io.detect import detect_format, select_format
from torchpref.io.files.source import Source
from torchpref.io.files.walk import PathsLike, named_paths, walk
from torchpref.io.joining import joined, under_name
from torchpref.runs.tidy.columns import parse_columns
from torchpref.runs.tidy.refine import refine
from torchpref.runs.tidy.schema import Tidy
from torchpref.runs.tidy.where import Condition, parse_where

if TYPE_CHECKING:
    from torchpref.runs.tidy.columns import ColumnsLike
    from torchpref.runs.tidy.where import WhereLike
    from torchpref.runs.trajectories import Trajectories
    from torchpref.runs.units import ZeroTime

TABLE = "table"
_NO_LOG = " (read as a table, for no log format was recognised)"


def read(
    paths: PathsLike | Any,
    format: str = "auto",
    *,
    clock: str | None = None,
    columns: ColumnsLike = None,
    where: WhereLike = None,
    strict: bool = False,
    zero_time: ZeroTime = "unknown",
    resolution: Mapping[str, float] | None = None,
    missing: Literal["exclude", "failure"] = "exclude",
    clip: bool = False,
    encoding: str | None = None,
    **options: Any,
) -> Trajectories:
    """Read runs from logs or tables.

    Args:
        paths: files, folders or patterns such as ``"logs/*.jsonl"``, one or several; ``{"base": path, "new": path}`` or
            ``"base=path"`` names the system of what lies there. A table in memory is read as
            :meth:`torchpref.Trajectories.from_frame` reads it.
        format: ``"auto"`` recognises the format by content; ``"table"`` for CSV, TSV, JSON, JSON lines, Parquet and Arrow; or
            the name of a log format.
        clock: the clock that is meant where none is named later.
        columns: names of columns in the words of the tidy table: ``{"system": "model", "instance": "split+task_id"}``, where
            ``+`` joins columns, or the same as text, ``"system=model,instance=split+task_id"``. ``@file`` and ``@folder`` stand
            for the names of the file and its folder, ``@folder-1`` for the folder one higher; ``max_score`` may be a number.
        where: rows to keep: ``{"env": "bash"}`` or ``["env=bash", "system!=*/*"]``; all must hold.
        strict: raise where a value would be repaired (clipped, held, filled).
        zero_time: ``"unknown"`` takes a level at exactly 0 seconds, tokens or cost to be at an unknown time; ``"keep"`` does
            not.
        resolution: size of a tick per clock, in the clock's unit.
        missing: ``"exclude"`` leaves out missing runs and unknown outcomes; ``"failure"`` counts them as failures.
        clip: returns above 1 count as 1, and are counted; without it they are an error that says what they may be.
        encoding: of text tables, where it is neither UTF-8 nor marked.
        options: further options of a log format.

    Raises:
        DataError: the data cannot be used; the message names the place, the value and the remedy.
        UsageError: a wrong option, an unknown format, column or clock.
    """
    from torchpref.runs.tidy.build import build
    from torchpref.runs.trajectories import Trajectories

    if not is_paths(paths):
        if options or encoding is not None or format not in ("auto", TABLE):
            raise UsageError(
                f"a {type(paths).__name__} in memory is a table, and has no format, encoding or further options"
            )
        return Trajectories.from_frame(
            paths,
            clock=clock,
            columns=columns,
            where=where,
            strict=strict,
            zero_time=zero_time,
            resolution=resolution,
            missing=missing,
            clip=clip,
        )
    tidy = read_tidy(paths, format, columns=columns, where=where, encoding=encoding, **options)
    fields = build(
        tidy, clock=clock, strict=strict, zero_time=zero_time, resolution=resolution, missing=missing, clip=clip
    )
    return Trajectories.from_integers(**fields)


def read_tidy(
    paths: PathsLike,
    format: str = "auto",
    *,
    columns: ColumnsLike = None,
    where: WhereLike = None,
    encoding: str | None = None,
    **options: Any,
) -> Tidy:
    """The tidy rows of logs or tables, before they become runs; arguments as for :func:`read`."""
    return read_sources(paths, format, columns=columns, where=where, encoding=encoding, options=options)


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
    groups = named_paths(paths)
    if any(name is not None for name, _ in groups) and "system" in mapping:
        raise UsageError(
            f"the system is named twice, by NAME=PATH and by columns system={mapping['system']}; leave one of them out"
        )
    read = [_group(name, walk(given), format, mapping, conditions, encoding, options) for name, given in groups]
    return read[0] if len(read) == 1 else joined(read)


def is_paths(paths: Any) -> bool:
    """Whether what is to be read is paths, as opposed to a table in memory."""
    if isinstance(paths, str | os.PathLike):
        return True
    if isinstance(paths, Mapping):
        given = list(paths.values())
        if not given or not all(isinstance(value, str | os.PathLike | list | tuple) for value in given):
            return False
        one = [path for value in given for path in (value if isinstance(value, list | tuple) else [value])]
        several = any(isinstance(value, list | tuple) for value in given)
        return all(isinstance(path, str | os.PathLike) for path in one) and (
            not several or all(os.path.lexists(os.path.expanduser(path)) for path in one)
        )
    return isinstance(paths, list | tuple | set | frozenset) and all(isinstance(p, str | os.PathLike) for p in paths)


def _group(
    name: str | None,
    sources: Sequence[Source],
    format: str,
    mapping: Mapping[str, str],
    conditions: Sequence[Condition],
    encoding: str | None,
    options: Mapping[str, Any],
) -> Tidy:
    """The tidy rows of what lies under one name, or of what has none."""
    found = None
    if format != TABLE:
        found = detect_format(sources) if format == "auto" else select_format(format, sources)
    if found is None or found.reader is None:
        files, hint = (sources, "") if found is None else (found.sources, _NO_LOG)
        tidy = _table(files, mapping, conditions, encoding, options, hint, named=name is not None)
    else:
        from torchpref.io.logs.runs import settled

        tidy = found.reader.read(found.sources, options)
        tidy = replace(tidy, findings=(*found.findings, *tidy.findings), place=_place(found.sources))
        tidy = settled(refine(tidy, mapping, conditions))
    return tidy if name is None else under_name(tidy, name)


def _table(
    sources: Sequence[Source],
    mapping: Mapping[str, str],
    conditions: Sequence[Condition],
    encoding: str | None,
    options: Mapping[str, Any],
    hint: str = "",
    *,
    named: bool = False,
) -> Tidy:
    from torchpref.io.tables.tables import read_tables

    if options:
        raise UsageError(f"tables have no option {', '.join(map(repr, sorted(options)))}")
    if not sources:
        raise DataError("there is no file to read; name at least one")
    return read_tables(sources, mapping, conditions, encoding, hint, named=named)


def _place(sources: Sequence[Source]) -> str:
    if not sources:
        return "the logs"
    return str(sources[0].path) if len(sources) == 1 else f"{sources[0].path} and {len(sources) - 1} more"
