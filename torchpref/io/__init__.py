"""Readers: a log format or a table in, :class:`torchpref.Trajectories` out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from torchpref.runs.tidy.columns import ColumnsLike
    from torchpref.runs.tidy.schema import Tidy
    from torchpref.runs.tidy.where import WhereLike
    from torchpref.runs.trajectories import Trajectories
    from torchpref.runs.units import ZeroTime

__all__ = ["read", "read_tidy"]

PathsLike = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def read(
    paths: PathsLike,
    format: str = "auto",
    *,
    clock: str | None = None,
    columns: ColumnsLike = None,
    where: WhereLike = None,
    strict: bool = False,
    zero_time: ZeroTime = "unknown",
    resolution: Mapping[str, float] | None = None,
    missing: Literal["exclude", "failure"] = "exclude",
    encoding: str | None = None,
    **options: Any,
) -> Trajectories:
    """Read runs from logs or tables.

    Args:
        paths: files, folders or patterns such as ``"logs/*.jsonl"``; one or several.
        format: ``"auto"`` recognises the format by content; ``"table"`` for CSV, TSV, JSON, JSON lines, Parquet and Arrow; or
            the name of a log format.
        clock: the clock that is meant where none is named later.
        columns: names of columns in the words of the tidy table: ``{"system": "model", "instance": "split+task_id"}``, where
            ``+`` joins columns, or the same as text, ``"system=model,instance=split+task_id"``. ``@file`` and ``@folder`` stand
            for the names of the file and its folder; ``max_score`` may be a number.
        where: rows to keep: ``{"env": "bash"}`` or ``["env=bash", "system!=*/*"]``; all must hold.
        strict: raise where a value would be repaired (clipped, held, filled).
        zero_time: ``"unknown"`` takes a level at exactly 0 seconds, tokens or cost to be at an unknown time; ``"keep"`` does
            not.
        resolution: size of a tick per clock, in the clock's unit.
        missing: ``"exclude"`` leaves out missing runs and unknown outcomes; ``"failure"`` counts them as failures.
        encoding: of text tables, where it is neither UTF-8 nor marked.
        options: further options of a log format.

    Raises:
        DataError: the data cannot be used; the message names the place, the value and the remedy.
        UsageError: a wrong option, an unknown format, column or clock.
    """
    from torchpref.runs.tidy.build import build

    tidy = read_tidy(paths, format, columns=columns, where=where, encoding=encoding, **options)
    return build(tidy, clock=clock, strict=strict, zero_time=zero_time, resolution=resolution, missing=missing)


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
    from torchpref.io.reading import read_sources

    return read_sources(paths, format, columns=columns, where=where, encoding=encoding, options=options)
