"""Mean preferences of a Parquet data set that is larger than memory.

Instances are read a bounded number of rows at a time, compared, added up and forgotten. For that the rows of an instance
must stand together; where they do not, they are first dealt into folders on disk, once, so that they do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.errors import DataError, UsageError
from torchpref.pairwise.means import MeanPreferences, MeanTotals, total_of
from torchpref.report.progress import reporting
from torchpref.runs.curves import Grid
from torchpref.runs.measures import describe, resolve_measures
from torchpref.runs.trajectories import Trajectories
from torchpref.runs.units import PREFERRED_CLOCKS, ZeroTime

if TYPE_CHECKING:
    import polars

    from torchpref.runs.tidy.columns import ColumnsLike
    from torchpref.runs.tidy.where import WhereLike

#: Rows in memory at a time; a row of a log takes some hundred bytes on its way into tensors.
CHUNK_ROWS = 1_000_000

#: Called with (rows done, rows in all).
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Survey:
    """What one look at the names in a data set shows.

    Attributes:
        rows: rows in all.
        grouped: whether the rows of every instance stand together.
        per_benchmark: number of instances of each benchmark.
        keys: a 64-bit number per instance, made of benchmark and name; sorted.
        clocks: the clocks whose columns are not empty.
        cells: steps per row, more than one where cells are lists.
    """

    rows: int
    grouped: bool
    per_benchmark: Mapping[str, int]
    keys: polars.Series
    clocks: tuple[str, ...]
    cells: float


@dataclass(frozen=True)
class Options:
    """How the tables are to be read; see :func:`torchpref.io.read`.

    Attributes:
        share: (number, of how many): only the instances whose key leaves that rest; all where None.
    """

    clock: str | None = None
    columns: ColumnsLike = None
    where: WhereLike = None
    strict: bool = False
    zero_time: ZeroTime = "unknown"
    resolution: Mapping[str, float] | None = None
    share: tuple[int, int] | None = None


def parquet_files(paths: str | Path | Sequence[str | Path]) -> list[Path]:
    """The Parquet files that are meant, in order of their names.

    Raises:
        DataError: there is none.
    """
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    files: list[Path] = []
    for entry in map(Path, listed):
        if entry.is_dir():
            files += sorted(path for ending in ("*.parquet", "*.pq") for path in entry.rglob(ending))
        elif entry.is_file():
            files.append(entry)
        else:
            files += sorted(entry.parent.glob(entry.name))
    if not files:
        raise DataError(f"there is no Parquet file in {', '.join(map(str, listed))}; give a folder or files")
    return files


def stream_preferences(
    paths: str | Path | Sequence[str | Path],
    measures: str | Sequence[str] = "all",
    *,
    clock: str | None = None,
    columns: ColumnsLike = None,
    where: WhereLike = None,
    strict: bool = False,
    zero_time: ZeroTime = "unknown",
    resolution: Mapping[str, float] | None = None,
    weights: str | Mapping[str, float] = "instance",
    grid: Grid = "exact",
    chunk_rows: int = CHUNK_ROWS,
    scratch: str | Path | None = None,
    progress: bool | Progress | None = None,
) -> dict[str, MeanPreferences]:
    """Mean preferences of a Parquet data set in bounded memory.

    Equal, to the bit, to those of all data at once.

    Args:
        paths: a folder of Parquet files, a file, a pattern, or several of them; tidy tables in any of the three layouts.
        measures: ``"all"``, one name or several.
        clock, columns, where, strict, zero_time, resolution: as in :func:`torchpref.io.read`.
        weights: ``"instance"``, ``"benchmark"``, or a mapping as in :func:`torchpref.preferences`.
        grid: levels, see :func:`torchpref.preferences`.
        chunk_rows: steps read at a time; an instance with more is read whole.
        scratch: folder for the copy that is made where the rows of an instance do not stand together; a temporary one
            where None.
        progress: show a bar (True), or call a function with (rows done, rows in all); by default a bar on a terminal.

    Raises:
        DataError: no file, or a cell that cannot be used.
        UsageError: an unknown measure, clock or option.
    """
    names = resolve_measures(measures)
    options = Options(clock, columns, where, strict, zero_time, resolution)
    files = parquet_files(paths)
    survey = survey_of(files, options)
    chosen = needed_clock(names, survey.clocks, clock)
    given = benchmark_weights(weights, survey.per_benchmark)
    with row_bar(progress) as tell, grouped(files, survey, options, chunk_rows, scratch) as ready:
        totals = add_all(ready, survey, options, names, chosen, given, weight_limit(given), grid, chunk_rows, tell)
    return totals.preferences(chosen)


def needed_clock(measures: Sequence[str], found: Sequence[str], named: str | None) -> str | None:
    """The clock for these measures: the named one, else steps, turns or the only one."""
    if not any(describe(name).temporal for name in measures):
        return None
    preferred = [name for name in PREFERRED_CLOCKS if name in found]
    if named is None and not preferred and len(found) != 1:
        several = f"several clocks ({', '.join(found)})" if found else "no clock"
        raise UsageError(
            f"the tables have {several}; name one with clock=, or use the measures sr and pr, which need none"
        )
    return named or (preferred or list(found))[0]


def benchmark_weights(weights: str | Mapping[str, float], per_benchmark: Mapping[str, int]) -> str | dict[str, float]:
    """Weights that hold for every part of the data: those by benchmark from the numbers of instances of the whole."""
    if isinstance(weights, Mapping):
        return dict(weights)
    if weights == "benchmark":
        count = sum(per_benchmark.values())
        return {name: count / (len(per_benchmark) * size) for name, size in per_benchmark.items()}
    if weights != "instance":
        raise UsageError(f"unknown weights {weights!r}; use 'instance', 'benchmark' or a mapping")
    return weights


def weight_limit(weights: str | Mapping[str, float]) -> float:
    """The largest weight, which fixes the scale of the sums."""
    return max(map(float, weights.values()), default=1.0) if isinstance(weights, Mapping) else 1.0


def add_all(
    files: Sequence[Path],
    survey: Survey,
    options: Options,
    measures: Sequence[str],
    clock: str | None,
    weights: str | Mapping[str, float],
    largest_weight: float,
    grid: Grid,
    chunk_rows: int,
    tell: Progress,
) -> MeanTotals:
    """Sums over all instances of files in which the rows of each stand together."""
    from torchpref.pairwise.preferences import instance_weights
    from torchpref.runs.exact_sum import power_of_two_scale

    scale = power_of_two_scale(largest_weight)
    totals = MeanTotals.nothing(measures, scale)
    done = 0
    rows = max(1, int(chunk_rows / survey.cells))
    for frame in whole_instances(files, options, rows):
        runs = _runs(frame, options, clock)
        if runs is not None:
            totals = totals + total_of(runs, measures, clock, instance_weights(runs, weights), grid, scale)
        done += frame.height
        tell(min(done, survey.rows), survey.rows)
    tell(survey.rows, survey.rows)
    return totals


def _runs(frame: polars.DataFrame, options: Options, clock: str | None) -> Trajectories | None:
    """The runs of some rows; None where no row is wanted."""
    from torchpref.runs.tidy.build import build
    from torchpref.runs.tidy.refine import refine
    from torchpref.runs.tidy.schema import Tidy
    from torchpref.runs.tidy.where import NoRowLeftError

    mapping, conditions = _sources(options)
    try:
        tidy = refine(Tidy(frame.drop(_KEY), place=_PLACE), mapping, conditions)
    except NoRowLeftError:
        return None
    fields = build(tidy, clock=clock, strict=options.strict, zero_time=options.zero_time, resolution=options.resolution)
    return Trajectories.from_integers(**fields)


# ------------------------------------------------------------------------------------------------------ reading

_KEY = "__instance_key__"
_PLACE = "the data set"


def _sources(options: Options) -> tuple[dict[str, str], list[tuple[str, Any, Any]]]:
    from torchpref.runs.tidy.columns import parse_columns
    from torchpref.runs.tidy.where import parse_where

    return dict(parse_columns(options.columns)), list(parse_where(options.where))


def _key_columns(mapping: Mapping[str, str], present: Sequence[str]) -> list[str]:
    """The columns of the files that make up an instance's identity."""
    found: list[str] = []
    for name in ("benchmark", "instance"):
        for part in mapping.get(name, name).split("+"):
            if part in present:
                found.append(part)
            elif name == "instance" or name in mapping:
                raise DataError(
                    f"there is no column {part!r}; there is {', '.join(present)}; map one with columns={{...}}"
                )
    return found


def _wanted(
    mapping: Mapping[str, str], conditions: Sequence[tuple[str, Any, Any]], present: Sequence[str]
) -> list[str]:
    from torchpref.runs.tidy.schema import is_tidy

    mapped = {part for source in mapping.values() for part in source.split("+")}
    conditioned = {column for column, _, _ in conditions}
    return [name for name in present if is_tidy(name) or name in mapped or name in conditioned]


def _batches(
    files: Sequence[Path], options: Options, rows: int, columns: Sequence[str] | None
) -> Iterator[polars.DataFrame]:
    """Rows of all files in order, with the instance's key."""
    import polars as pl

    mapping, conditions = _sources(options)
    schema = _schema(files)
    present = list(schema)
    chosen = _wanted(mapping, conditions, present) if columns is None else [name for name in columns if name in present]
    keys = _key_columns(mapping, present)
    for path in files:
        scan = pl.scan_parquet(path, hive_partitioning=True)
        lacking = [name for name in (*chosen, *keys) if name not in scan.collect_schema()]
        scan = scan.with_columns(pl.lit(None, schema[name]).alias(name) for name in dict.fromkeys(lacking))
        parts = [pl.col(name).cast(pl.String).fill_null("") for name in keys]
        scan = scan.select(*chosen, pl.concat_str(parts, separator="\x1f").hash(0).alias(_KEY))
        if options.share is not None:
            number, of_how_many = options.share
            scan = scan.filter(pl.col(_KEY) % of_how_many == number)
        yield from scan.collect_batches(chunk_size=rows, maintain_order=True)


def _schema(files: Sequence[Path]) -> dict[str, polars.DataType]:
    """The columns of all files, in order of appearance; one that a file lacks is empty there, as when all are read at once."""
    import polars as pl

    found: dict[str, pl.DataType] = {}
    for path in files:
        for name, kind in pl.scan_parquet(path, hive_partitioning=True).collect_schema().items():
            if found.get(name, pl.Null()) == pl.Null():
                found[name] = kind
    return found


def survey_of(files: Sequence[Path], options: Options) -> Survey:
    """Look at names and clocks only: how many rows, which instances, and whether their rows stand together."""
    import polars as pl

    from torchpref.runs.tidy.refine import refine
    from torchpref.runs.tidy.schema import NAMES, ROW, VALUES, Tidy, clock_columns
    from torchpref.runs.tidy.where import NoRowLeftError

    mapping, conditions = _sources(options)
    present = list(_schema(files))
    asked = [mapping.get(column, column) for column, _, _ in conditions]
    sources = [part for name in (*NAMES, *asked) for part in mapping.get(name, name).split("+")]
    columns = [name for name in dict.fromkeys(sources) if name in present]
    named = {name: source for name, source in mapping.items() if set(source.split("+")) <= set(columns)}
    rows = 0
    starts: list[pl.Series] = []
    wanted: list[pl.DataFrame] = []
    nothing_left: DataError | None = None
    for batch in _batches(files, options, CHUNK_ROWS, columns):
        rows += batch.height
        key = batch[_KEY]
        starts.append(key.filter((key != key.shift(1)).fill_null(True)))
        try:
            chosen = refine(Tidy(batch, place=_PLACE), named, conditions).frame
        except NoRowLeftError as error:
            nothing_left = error
            continue
        chosen = chosen.with_columns(key[chosen[ROW]])
        kept = [name for name in ("benchmark", _KEY) if name in chosen.columns]
        wanted.append(chosen.select(kept).unique(_KEY))
    if nothing_left is not None and not wanted:
        raise nothing_left
    keys = pl.concat(starts) if starts else pl.Series(_KEY, [], dtype=pl.UInt64)
    # An instance may end one batch and begin the next.
    keys = keys.filter((keys != keys.shift(1)).fill_null(True))
    chosen = pl.concat(wanted, how="diagonal_relaxed").unique(_KEY) if wanted else pl.DataFrame({_KEY: keys})
    per_benchmark = {"": chosen.height}
    if "benchmark" in chosen.columns:
        per_benchmark = dict(chosen["benchmark"].cast(pl.String).fill_null("").value_counts().iter_rows())
    clocks = {mapping.get(name, source): name for name, source in clock_columns([*present, *mapping]).items()}
    values = [mapping.get(name, name) for name in VALUES if mapping.get(name, name) in present]
    return Survey(
        rows=rows,
        grouped=keys.n_unique() == len(keys),
        per_benchmark=per_benchmark,
        keys=keys.unique().sort(),
        clocks=(*_derived_clocks(files, options, clocks), *_usable(files, clocks)),
        cells=_cells_per_row(files, values),
    )


def _derived_clocks(files: Sequence[Path], options: Options, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Clocks that are made from the order of rows or cells, not read from a column; by the first rows."""
    frame = next(_batches(files, options, 1000, None), None)
    try:
        runs = None if frame is None else _runs(frame.head(1000), replace(options, clock=None, strict=False), None)
    except DataError:
        return ()  # what is wrong is said, with its place, when the rows are read
    return () if runs is None else tuple(name for name in runs.clocks if name not in columns.values())


def _usable(files: Sequence[Path], available: Mapping[str, str]) -> tuple[str, ...]:
    """The clocks, given by column, that are not empty throughout."""
    import polars as pl

    usable: set[str] = set()
    for path in files:
        scan = pl.scan_parquet(path, hive_partitioning=True)
        there = [column for column in available if column not in usable and column in scan.collect_schema().names()]
        if there:
            counts = scan.select(pl.col(there).count()).collect()
            usable |= {column for column in there if counts[column][0]}
    return tuple(name for column, name in available.items() if column in usable)


def _cells_per_row(files: Sequence[Path], values: Sequence[str]) -> float:
    """How many steps a row holds, by the first rows of the first file that says."""
    import polars as pl

    for path in files if values else ():
        scan = pl.scan_parquet(path, hive_partitioning=True)
        if values[0] in scan.collect_schema():
            head = scan.select(values[0]).head(1000).collect()[values[0]]
            if isinstance(head.dtype, pl.List) and head.len():
                return max(1.0, float(head.list.len().mean() or 1.0))  # type: ignore[arg-type]
            return 1.0
    return 1.0


def whole_instances(files: Sequence[Path], options: Options, rows: int) -> Iterator[polars.DataFrame]:
    """Rows a bounded number at a time, no instance cut in two; its rows stand together."""
    import polars as pl

    held: list[pl.DataFrame] = []
    for batch in _batches(files, options, rows, None):
        if not batch.height:
            continue
        key = batch[_KEY]
        before = (key != key[-1]).arg_true()
        if not len(before):
            # The last instance goes on through the whole batch; whether it began before does not matter.
            held.append(batch)
            continue
        cut = int(before[-1]) + 1
        held.append(batch.slice(0, cut))
        yield pl.concat(held, how="diagonal_relaxed")
        held = [batch.slice(cut)]
    if held:
        yield pl.concat(held, how="diagonal_relaxed")


@contextmanager
def grouped(
    files: Sequence[Path], survey: Survey, options: Options, chunk_rows: int, scratch: str | Path | None
) -> Iterator[list[Path]]:
    """Files in which the rows of an instance stand together: these, or copies dealt by instance into a scratch folder."""
    if survey.grouped:
        yield list(files)
        return
    with tempfile.TemporaryDirectory(prefix="torchpref-", dir=scratch) as folder:
        rows = max(1, int(chunk_rows / survey.cells))
        yield list(_deal(files, options, rows, max(1, -(-survey.rows // rows)), Path(folder)))


def _deal(files: Sequence[Path], options: Options, rows: int, heaps: int, folder: Path) -> Iterator[Path]:
    """Deal rows by instance into heaps on disk, then sort one heap after another."""
    import polars as pl

    for number, batch in enumerate(_batches(files, options, rows, None)):
        for heap, part in _heaps(batch, heaps):
            target = folder / f"{heap:05d}"
            target.mkdir(exist_ok=True)
            part.write_parquet(target / f"{number:06d}.parquet", compression="lz4")
    for target in sorted(folder.iterdir()):
        parts = sorted(target.glob("*.parquet"))
        frame = pl.concat([pl.read_parquet(part) for part in parts], how="diagonal_relaxed")
        path = target / "sorted.parquet"
        frame.sort(_KEY, maintain_order=True).drop(_KEY).write_parquet(path, compression="lz4")
        for stored in parts:
            stored.unlink()
        yield path


def _heaps(batch: polars.DataFrame, heaps: int) -> Iterator[tuple[int, polars.DataFrame]]:
    import polars as pl

    marked = batch.with_columns((pl.col(_KEY) % heaps).alias("__heap__"))
    for key, part in marked.partition_by("__heap__", as_dict=True, include_key=False).items():
        yield int(key[0]), part


@contextmanager
def row_bar(progress: bool | Progress | None) -> Iterator[Progress]:
    """What is told how many rows are done: the caller's own function, a bar, or nothing."""
    if callable(progress):
        yield progress
        return
    with reporting(progress) as report:
        yield lambda done, total: report("rows", done, total) if report else None
