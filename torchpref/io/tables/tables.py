"""Reading tables: separated text, JSON, Parquet and Arrow files, alone or many together, as one tidy table."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

import polars as pl

from torchpref.errors import DataError, MissingExtraError
from torchpref.io.files.source import Source
from torchpref.io.files.text import PACKED, PACKED_ENDINGS, NoTableError, is_workbook, read_text, refuse_foreign
from torchpref.io.tables.json_lines import LinesTable, is_lines
from torchpref.io.tables.json_value import KEY, JsonTable
from torchpref.io.tables.separated import CsvTable
from torchpref.runs.findings import Finding
from torchpref.runs.tidy.columns import listed, needed, rename, value_column
from torchpref.runs.tidy.places import FILE, FOLDER, part_of, place_words
from torchpref.runs.tidy.recognise import SEEDS, ask_for_seed, may_be_used, plain, recognise, with_units
from torchpref.runs.tidy.schema import COLUMNS, PLACE, ROW, Tidy, is_tidy
from torchpref.runs.tidy.twins import without_twin
from torchpref.runs.tidy.where import Condition, filter_rows

#: Files in a folder that are tried as tables; a file that is named by itself is always tried.
SUFFIXES = (
    ".csv",
    ".tsv",
    ".tab",
    ".jsonl",
    ".ndjson",
    ".json",
    ".parquet",
    ".pq",
    ".arrow",
    ".feather",
    ".ipc",
    ".xlsx",
)
#: What a file's rows are called where the user named their system.
NAMED = "@name"


class Opened(Protocol):
    """A file whose columns are known and whose rows are not read yet."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns."""

    def read(self, columns: Sequence[str]) -> tuple[pl.DataFrame, Callable[[int], str]]:
        """Some of its columns, and what says where a row stands."""


@dataclass(frozen=True)
class ColumnarTable:
    """A Parquet or Arrow file."""

    path: Path
    columns: tuple[str, ...]
    load: Callable[..., pl.DataFrame]

    @classmethod
    def workbook(cls, path: Path) -> ColumnarTable:
        """The first sheet of an Excel workbook."""
        try:
            frame = pl.read_excel(path)
        except ImportError as error:
            raise MissingExtraError("fastexcel", "excel") from error
        except Exception as error:  # a damaged workbook fails in many ways inside its reader
            raise DataError(
                f"{path}: the workbook cannot be read ({str(error)[:120]}); save the sheet as CSV"
            ) from error
        return cls(path, tuple(frame.columns), lambda _, columns: frame.select(columns))

    def read(self, columns: Sequence[str]) -> tuple[pl.DataFrame, Callable[[int], str]]:
        """Some of its columns, and what says where a row stands."""
        try:
            frame = self.load(self.path, columns=list(columns))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise _damaged(self.path, error) from error
        return frame, lambda row: f"{self.path}, row {row + 1}"


def open_table(source: Source, encoding: str | None = None, mentioned: Collection[str] = COLUMNS) -> Opened:
    """Look at a file's columns; what kind of table it is shows in its content.

    Raises:
        DataError: it is no table, or damaged.
    """
    path, head = source.path, source.head
    if not head:
        raise DataError(f"{path}: the file is empty")
    try:
        if head.startswith(b"PAR1"):
            return ColumnarTable(path, tuple(pl.read_parquet_schema(path)), _read_parquet)
        if head.startswith(b"ARROW1"):
            return ColumnarTable(path, tuple(pl.read_ipc_schema(path)), _read_ipc)
        if head.startswith(b"\xff\xff\xff\xff"):
            return ColumnarTable(path, tuple(pl.read_ipc_stream(path, n_rows=0).columns), pl.read_ipc_stream)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise _damaged(path, error) from error
    if not head.startswith(PACKED):
        refuse_foreign(path, head[:16])
    if head.startswith(b"PK\x03\x04") and is_workbook(path):
        return ColumnarTable.workbook(path)
    data = read_text(path, encoding)
    if data.lstrip()[:1] in (b"{", b"["):
        if data.lstrip()[:1] == b"{" and is_lines(data):
            return LinesTable.open(path, data, mentioned)
        return JsonTable.open(path, data)
    return CsvTable.open(path, data)


def _read_parquet(path: Path, columns: list[str]) -> pl.DataFrame:
    return pl.read_parquet(path, columns=columns, hive_partitioning=False)


def _read_ipc(path: Path, columns: list[str]) -> pl.DataFrame:
    return pl.read_ipc(path, columns=columns)


def _damaged(path: Path, error: BaseException) -> DataError:
    first = (str(error).splitlines() or [""])[0][:120]
    reason = f" ({first})" if first and "polars" not in first and "Result::" not in first else ""
    return DataError(f"{path}: a damaged Parquet or Arrow file{reason}; was it cut short? Copy it again")


def read_tables(
    sources: Sequence[Source],
    mapping: Mapping[str, str],
    conditions: Sequence[Condition] = (),
    encoding: str | None = None,
    hint: str = "",
    *,
    named: bool = False,
) -> Tidy:
    """One tidy table out of one or many files.

    Args:
        sources: the files; columns may differ between them.
        mapping: columns of the files for those of the tidy table.
        conditions: which rows to keep, by the columns of the files, else by those of the tidy table.
        encoding: of text files, where it is not UTF-8.
        hint: what to add to the message where columns are missing.
        named: whether the caller names the system, so that no column has to.

    Raises:
        DataError: a file is no table, or lacks a column that is needed.
    """
    chosen, left_out = _chosen(sources)
    words = [FILE, FOLDER, *place_words([*mapping.values(), *(column for column, _, _ in conditions)])]
    mentioned = {*COLUMNS, *(column for column, _, _ in conditions), *mapping.values()}
    mentioned |= {part.strip() for source in mapping.values() for part in source.split("+")}
    opened, skipped = _opened(chosen, encoding, mentioned)
    left_out = (*left_out, *skipped)
    extra = {id(source): _extra_columns(source, table.columns, words) for source, table in opened}
    available = list(dict.fromkeys(itertools.chain(*(table.columns for _, table in opened), *extra.values())))
    place = str(chosen[0].path) if len(chosen) == 1 else f"{chosen[0].path} and {len(chosen) - 1} more"
    known = recognise(available, mapping, place, named=named)
    mapping = known.mapping
    if named and "system" not in {*mapping, *available}:
        mapping = {**mapping, "system": NAMED}
        available.append(NAMED)
    own_names = list(dict.fromkeys(itertools.chain(*(table.columns for _, table in opened))))
    if "instance" not in {*mapping, *available} and KEY in available:
        mapping = {**mapping, "instance": KEY}
    try:
        wanted = needed(mapping, available, place)
        value_column(without_twin({*mapping, *filter(is_tidy, available)}), mapping, own_names, place)
    except DataError as error:
        raise DataError(f"{error}{_unnamed(own_names)}{hint}") from error
    own = [condition for condition in conditions if condition[0] in available]
    seeds = [name for name in available if plain(name) in SEEDS]
    wanted = list(dict.fromkeys([*wanted, *(column for column, _, _ in own), *seeds]))

    frames, locators, starts = [], [], []
    total = 0
    for source, table in opened:
        frame, locate = table.read([name for name in wanted if name in table.columns])
        frame = frame.with_columns(
            pl.lit(value, dtype=pl.String).alias(name) for name, value in extra[id(source)].items() if name in wanted
        )
        frame = frame.with_columns(pl.lit(str(source.path), dtype=pl.String).alias(PLACE))
        if NAMED in mapping.values():
            frame = frame.with_columns(pl.lit("", dtype=pl.String).alias(NAMED))
        starts.append(total)
        locators.append(locate)
        frames.append(frame)
        total += frame.height

    def locate_row(row: int) -> str:
        number = bisect.bisect_right(starts, row) - 1
        return locators[number](row - starts[number])

    rows = concatenated(frames).with_row_index(ROW)
    if total == 0:
        raise DataError(f"{place}: there are column names but no rows; give at least one run")
    rows = filter_rows(rows, own, place)
    others = [condition for condition in conditions if condition[0] not in available]
    tidy = with_units(rename(rows, mapping, place), known.found)
    ask_for_seed(rows, tidy, mapping, place)
    unknown = [condition for condition in others if condition[0] not in tidy.columns]
    if unknown:
        filter_rows(pl.DataFrame(schema=available), unknown, place)
    tidy = filter_rows(tidy, others, place)
    _refuse_lacking(opened, extra, mapping, tidy.columns, available)
    return Tidy(tidy, (*left_out, *known.findings()), locate_row, mapping, place, tuple(own_names))


def _opened(
    sources: Sequence[Source], encoding: str | None, mentioned: Collection[str]
) -> tuple[list[tuple[Source, Opened]], tuple[Finding, ...]]:
    """The tables among some files; in a folder, files that turn out to be none are left out if others are tables."""
    opened: list[tuple[Source, Opened]] = []
    others: list[tuple[Source, NoTableError]] = []
    for source in sources:
        try:
            opened.append((source, open_table(source, encoding, mentioned)))
        except NoTableError as error:
            if source.root in (None, source.path):
                raise
            others.append((source, error))
    if not opened:
        raise others[0][1]
    useful = [any(map(may_be_used, table.columns)) or bool(set(mentioned) & set(table.columns)) for _, table in opened]
    if not all(useful) and any(useful):
        for (source, table), good in zip(list(opened), useful, strict=True):
            if not good and source.root not in (None, source.path):
                opened.remove((source, table))
                others.append((source, NoTableError(str(source.path))))
    if not others:
        return opened, ()
    examples = tuple(str(source.path) for source, _ in others[:5])
    message = "files in the folder that hold no table like the others were left out; files"
    return opened, (Finding("files_left_out", "warning", len(others), message, (), examples),)


def _chosen(sources: Sequence[Source]) -> tuple[list[Source], tuple[Finding, ...]]:
    """The files that are tables: all that were named, and in folders those with a known ending."""
    chosen: list[Source] = []
    others: list[Source] = []
    for source in sources:
        name = source.path.name.lower()
        for ending in PACKED_ENDINGS:
            name = name.removesuffix(ending)
        is_table = source.root in (None, source.path) or name.endswith(SUFFIXES) or source.head.startswith(b"PAR1")
        (chosen if is_table else others).append(source)
    if not chosen:
        names = listed([str(source.path) for source in others], 5)
        raise DataError(
            f"no table among the files ({names}); tables end in {', '.join(SUFFIXES)}, or in .gz after that"
        )
    if not others:
        return chosen, ()
    examples = tuple(str(source.path) for source in others[:5])
    message = "files in the folder that are no tables were left out; files"
    return chosen, (Finding("files_left_out", "note", len(others), message, (), examples),)


def _extra_columns(source: Source, columns: Sequence[str], words: Sequence[str]) -> dict[str, str | None]:
    """What a file's path says: its name, its folder, and the parts ``NAME=VALUE`` of partitioned folders."""
    found: dict[str, str | None] = {}
    if source.root is not None:
        for part in source.path.parts[len(source.root.parts) : -1]:
            name, equals, value = part.partition("=")
            if equals and name not in columns:
                found[unquote(name)] = None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
    found |= {word: part_of(str(source.path.resolve()), word) for word in words if word != FILE}
    found[FILE] = part_of(str(source.path), FILE)
    return {name: value for name, value in found.items() if name not in columns}


def concatenated(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Frames one after the other; a column of several types becomes text where no type holds them all."""
    if len(frames) == 1:
        return frames[0]
    from torchpref.runs.tidy.cells import names_expr

    types: dict[str, set[Any]] = {}
    for frame in frames:
        for name, dtype in frame.schema.items():
            types.setdefault(name, set()).add(dtype)

    def is_mixed(name: str) -> bool:
        kinds = types[name] - {pl.Null}
        return len(kinds) > 1 and not all(kind.is_numeric() for kind in kinds)

    mixed = {name for name in types if is_mixed(name)}
    texts = [
        frame.with_columns(names_expr(name, frame.schema[name]) for name in frame.columns if name in mixed)
        for frame in frames
    ]
    return pl.concat(texts, how="diagonal_relaxed", rechunk=True)


def _refuse_lacking(
    opened: Sequence[tuple[Source, Opened]],
    extra: Mapping[int, Mapping[str, Any]],
    mapping: Mapping[str, str],
    tidy_columns: Sequence[str],
    available: Sequence[str],
) -> None:
    """Raise for a file among others that lacks the columns of the systems or instances."""
    for name in ("system", "instance"):
        if name not in tidy_columns:
            continue
        source = mapping.get(name, name)
        parts = [source] if source in available else [part.strip() for part in source.split("+")]
        for file, table in opened:
            lacking = [part for part in parts if part not in table.columns and part not in {NAMED, *extra[id(file)]}]
            if lacking:
                raise DataError(
                    f"{file.path}: there is no column {lacking[0]!r}, which the other files have; its columns are: "
                    f"{listed(table.columns)}; read it alone, or leave it out"
                )


def _unnamed(columns: Sequence[str]) -> str:
    return "" if any(map(is_tidy, columns)) else "; is the first line the names of the columns?"
