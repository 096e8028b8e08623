"""Tables of comma- or tab-separated text, all cells as text, with the line of every row."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from torchpref.errors import DataError
from torchpref.runs.tidy.columns import listed

#: A number with a decimal comma, or a whole one.
_COMMA = r"^[-+]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$"
SEPARATORS = (",", "\t", ";", "|")


@dataclass(frozen=True)
class CsvTable:
    """One file of separated text.

    Attributes:
        path: where it is.
        data: its text.
        columns: the names in its first line.
        separator: what stands between cells.
        above: blank lines above the first.
    """

    path: Path
    data: bytes
    columns: tuple[str, ...]
    separator: str
    above: int = 0

    @classmethod
    def open(cls, path: Path, data: bytes) -> CsvTable:
        """Look at the first line that is not blank.

        Raises:
            DataError: a column name stands twice, or there is no line with column names.
        """
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        whole = data
        data = whole.lstrip(b"\n")
        while data.startswith(b"#") and b"\n" in data and not _is_header(data):  # comments above the names
            data = data[data.find(b"\n") + 1 :].lstrip(b"\n")
        above = whole.count(b"\n", 0, len(whole) - len(data))
        end = data.find(b"\n")
        line = (data if end < 0 else data[:end]).decode()
        separator = max(SEPARATORS, key=line.count)
        try:
            names = next(csv.reader(io.StringIO(_first_record(data)), delimiter=separator, skipinitialspace=True), [])
        except csv.Error as error:
            raise DataError(
                f"{path}, line {above + 1}: no names of columns ({error}); is a quote opened there and not closed?"
            ) from error
        columns = tuple(name.strip() for name in names)
        if not any(columns):
            raise DataError(f"{path}, line {above + 1}: no names of columns; give them in the first line")
        twice = sorted({name for name in columns if name and columns.count(name) > 1})
        if twice:
            raise DataError(f"{path}, line {above + 1}: the column {twice[0]!r} stands twice; rename one of them")
        return cls(path, data, columns, separator, above)

    def read(self, columns: Sequence[str]) -> tuple[pl.DataFrame, Callable[[int], str]]:
        """Some of the columns, as text, and what says where a row stands.

        Raises:
            DataError: a line has too many or too few cells, or a quote is not closed.
        """
        names = list(self.columns)
        last = len(names) - 1  # read along, for it is empty where a line is short
        wanted = sorted({*map(names.index, columns), last})
        try:
            frame = pl.read_csv(self.data, infer_schema=False, separator=self.separator, columns=wanted)
        except pl.exceptions.PolarsError as error:
            raise self._explain() or DataError(
                f"{self.path}: not a table of separated text; quote cells that hold the separator or a line break"
            ) from error
        frame.columns = [f"{number}" for number in wanted]
        self._refuse_short(frame[f"{last}"])
        frame = frame.select(pl.col(f"{names.index(name)}").alias(name) for name in columns)
        if self.separator == ";":
            frame = _with_points(frame)
        blank = b"\n\n" in self.data
        if blank:
            filled = ~frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
            kept = filled.arg_true().to_list()
            return frame.filter(filled), lambda row: self._line(kept[row])
        return frame, self._line

    def _line(self, row: int) -> str:
        """Where a row stands; counted only when it is asked for."""
        if b'"' not in self.data:
            return f"{self.path}, line {self.above + row + 2}"
        for number, (line, _) in enumerate(self._records()):
            if number == row + 1:
                return f"{self.path}, line {line}"
        return f"{self.path}, row {row + 1}"

    def _records(self) -> Iterator[tuple[int, str]]:
        """Line at which each record begins, and its text; a record goes on while a quote is open."""
        record, quotes, begun = [], 0, self.above + 1
        for line, text in enumerate(self.data.decode().split("\n"), self.above + 1):
            record.append(text)
            quotes += text.count('"')
            if quotes % 2 == 0:
                yield begun, "\n".join(record)
                record, quotes, begun = [], 0, line + 1
        if record:
            yield begun, "\n".join(record)

    def _cells(self, record: str) -> list[str]:
        """The cells of a record; none where one is longer than the standard library reads."""
        try:
            return next(csv.reader(io.StringIO(record, newline=""), delimiter=self.separator), [])
        except csv.Error:
            return []

    def _refuse_short(self, last: pl.Series) -> None:
        """Raise for a line with too few cells, which polars fills up in silence; ``last`` is the last column."""
        if not last.null_count():
            return
        if b'"' not in self.data and b"\n\n" not in self.data:
            body = self.data.rstrip(b"\n")
            if body.count(self.separator.encode()) == (body.count(b"\n") + 1) * (len(self.columns) - 1):
                return
        error = self._explain()
        if error:
            raise error

    def _explain(self) -> DataError | None:
        """The first line that has another number of cells than the first, in words."""
        width = len(self.columns)
        total = self.above + self.data.rstrip(b"\n").count(b"\n") + 1
        last = 1
        for line, text in self._records():
            last, record = line, self._cells(text)
            if record and len(record) != width:
                if any("\n" in cell and cell.count("\n") > 20 for cell in record):
                    return DataError(f"{self.path}, line {line}: a quote that is opened here is not closed; close it")
                few = len(record) < width
                hint = "was the file cut short?" if few and line >= total else "quote cells that hold the separator"
                shown = f"({listed(map(repr, record), 4)})"
                return DataError(
                    f"{self.path}, line {line}: {len(record)} cells {shown}, but the first line names {width} columns; {hint}"
                )
        if self.data.count(b'"') % 2:
            return DataError(f"{self.path}, line {last}: a quote that is opened here is not closed; close it")
        return None


def _is_header(data: bytes) -> bool:
    """Whether a first line that begins with ``#`` names columns, as ``#model,task`` does: it has as many as the next."""
    lines = data.split(b"\n", 2)
    counts = [max(line.count(each.encode()) for each in SEPARATORS) for line in lines[:2]]
    return len(counts) < 2 or (counts[0] > 0 and counts[0] == counts[1] and not lines[1].startswith(b"#"))


def _with_points(frame: pl.DataFrame) -> pl.DataFrame:
    """Decimal commas as points, in columns that hold nothing but numbers."""
    found = []
    for name in frame.columns:
        cells = frame[name].drop_nulls().str.strip_chars()
        if len(cells) and cells.str.contains(",").any() and cells.str.contains(_COMMA).all():
            found.append(pl.col(name).str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True))
    return frame.with_columns(found)


def _first_record(data: bytes) -> str:
    """Text that holds the first record, whose cells may hold line breaks."""
    end = 0
    while True:
        end = data.find(b"\n", end)
        if end < 0:
            return data.decode()
        if data.count(b'"', 0, end) % 2 == 0:
            return data[:end].decode()
        end += 1
