"""Logs of any format as one tidy table in a file, and the list of formats.

The table holds what :func:`torchpref.io.read` would make runs of, so evaluating it gives what evaluating the logs gives, to the
bit. What the reader noticed about the logs does not travel with the table.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.errors import DataError, UsageError
from torchpref.io.files.whole import written_whole
from torchpref.runs.findings import Finding

if TYPE_CHECKING:
    import polars as pl

    from torchpref.io.files.walk import PathsLike
    from torchpref.runs.tidy.columns import ColumnsLike
    from torchpref.runs.tidy.where import WhereLike

OUTPUTS = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson")
"""The endings that an output file may have."""
_HEAD = ("system", "benchmark", "instance", "trial", "step")


@dataclass(frozen=True)
class Format:
    """A format that can be read.

    Attributes:
        name: the word for ``--format``.
        title: what people call it.
        gives: its clocks, and what else it tells.
        options: the options that it takes, with what each does.
        extra: the extra of torchpref that it may need, or None.
    """

    name: str
    title: str
    gives: tuple[str, ...]
    options: Mapping[str, str]
    extra: str | None

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and values, ready for JSON."""
        return {**asdict(self), "gives": list(self.gives), "options": dict(self.options)}


def formats() -> tuple[Format, ...]:
    """All formats that can be read, those of other packages among them; tables first."""
    from torchpref.io.readers import readers

    table = Format(
        "table", "tables: CSV, TSV, JSON, JSON lines, Parquet, Arrow", ("any clock that is a column",), {}, None
    )
    return (table, *(Format(r.name, r.title, r.gives, r.options, r.extra) for r in readers()))


@dataclass(frozen=True)
class Converted:
    """What was written.

    Attributes:
        path: the file.
        rows: its rows.
        systems: how many systems they are of.
        columns: its columns.
        findings: what was noticed while reading.
    """

    path: Path
    rows: int
    systems: int
    columns: tuple[str, ...]
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        noted = "".join(f"\n  {finding}" for finding in self.findings)
        return f"{self.path}: {self.rows:,} rows, {self.systems:,} systems, columns {', '.join(self.columns)}{noted}"


def convert(
    paths: PathsLike,
    output: str | os.PathLike[str],
    format: str = "auto",
    *,
    columns: ColumnsLike = None,
    where: WhereLike = None,
    encoding: str | None = None,
    **options: Any,
) -> Converted:
    """Write the tidy table of logs or tables.

    The file appears under its name only when it is whole; one that was there before is replaced.

    Args:
        paths: files, folders or patterns.
        output: the file to write; its ending chooses Parquet, CSV, TSV or JSON lines.
        format: as for :func:`torchpref.io.read`, like the arguments after it.
        columns: names of columns in the words of the tidy table.
        where: rows to keep.
        encoding: of text tables.
        options: further options of a log format.

    Raises:
        UsageError: an ending that is not known, or an output that is among the inputs.
        DataError: the logs cannot be used, or the file cannot be written.
    """
    from torchpref.io.files.walk import named_paths, walk
    from torchpref.io.reading import read_tidy

    target = Path(os.path.expanduser(os.fspath(output)))
    ending = target.suffix.lower()
    if ending not in OUTPUTS:
        raise UsageError(f"{target}: the ending chooses the kind of table; use one of {', '.join(OUTPUTS)}")
    if target.is_dir():
        raise UsageError(f"{target}: a folder; name the file to write")
    if target.exists() and any(
        os.path.samefile(source.path, target) for _, given in named_paths(paths) for source in walk(given)
    ):
        raise UsageError(f"{target}: is one of the files to read; write to another name")
    tidy = read_tidy(paths, format, columns=columns, where=where, encoding=encoding, **options)
    frame = _arranged(tidy.frame)
    _write(frame, target, ending)
    return Converted(target, frame.height, frame["system"].n_unique(), tuple(frame.columns), tidy.findings)


def _arranged(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns in the order of the tidy table's description, without those that only reading needs or that say nothing."""
    from torchpref.runs.tidy.schema import COLUMNS

    dull = {"benchmark"} if "benchmark" in frame.columns and (frame["benchmark"].fill_null("") == "").all() else set()
    first = [name for name in _HEAD if name in frame.columns and name not in dull]
    rest = [name for name in frame.columns if name in COLUMNS and name not in first and name not in dull]
    return frame.select([*first, *rest])


def _write(frame: pl.DataFrame, target: Path, ending: str) -> None:
    try:
        with written_whole(target) as partial:
            if ending == ".parquet":
                frame.write_parquet(partial)
            elif ending in (".csv", ".tsv"):
                _flat(frame).write_csv(partial, separator="\t" if ending == ".tsv" else ",")
            else:
                frame.write_ndjson(partial)
    except OSError as error:
        raise DataError(f"{target}: cannot be written ({error.strerror or error})") from error


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """List cells as text: numbers with blanks between them, ``nan`` for a time that is not known."""
    import polars as pl

    def text(cells: Sequence[float | None] | None) -> str | None:
        if cells is None or (cells and all(cell is None for cell in cells)):
            return None
        return " ".join("nan" if cell is None else repr(cell) for cell in cells) or "[]"

    flat = [
        pl.Series(name, [text(cells) for cells in frame[name].to_list()], dtype=pl.String)
        for name, dtype in frame.schema.items()
        if isinstance(dtype, pl.List)
    ]
    return frame.with_columns(flat)
