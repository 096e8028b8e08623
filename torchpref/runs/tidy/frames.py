"""Runs from data frames (pandas, polars, Arrow), and runs as a polars data frame again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from torchpref.errors import DataError, UsageError
from torchpref.runs.fields import best_times
from torchpref.runs.tidy.columns import ColumnsLike, needed, parse_columns
from torchpref.runs.tidy.recognise import ask_for_seed, recognise, with_units
from torchpref.runs.tidy.schema import BEST, CLOCKS, FAMILIES, OTHER_CLOCK, REFERENCE, Tidy
from torchpref.runs.tidy.where import WhereLike, parse_where
from torchpref.runs.units import UNKNOWN, ticks_per_unit

if TYPE_CHECKING:
    import polars
    from torch import Tensor

    from torchpref.runs.units import ZeroTime


def fields_of_frame(
    frame: Any,
    *,
    clock: str | None,
    columns: ColumnsLike,
    where: WhereLike,
    strict: bool,
    zero_time: ZeroTime,
    resolution: Mapping[str, float] | None,
    missing: Literal["exclude", "failure"],
    clip: bool = False,
) -> dict[str, Any]:
    """The fields of the runs in a table; see :meth:`torchpref.Trajectories.from_frame`."""
    from torchpref.runs.tidy.build import build
    from torchpref.runs.tidy.refine import refine

    mapping, conditions = parse_columns(columns), parse_where(where)
    frame = _as_table(frame)
    wanted = [column for column, _, _ in conditions]
    known = recognise(_names_of(frame), mapping, "the frame")
    table = _as_polars(frame, known.mapping, wanted)
    tidy = Tidy(table, known.findings(), place="the frame")
    tidy = refine(tidy, known.mapping, conditions)
    tidy = replace(tidy, frame=with_units(tidy.frame, known.found))
    if {"system", "instance"} <= set(tidy.frame.columns) and not conditions:
        ask_for_seed(table, tidy.frame, known.mapping, "the frame")
    return build(
        tidy, clock=clock, strict=strict, zero_time=zero_time, resolution=resolution, missing=missing, clip=clip
    )


def _names_of(frame: Any) -> list[str]:
    """The names of the columns of a table in memory, as far as they can be seen without reading it."""
    if isinstance(frame, Mapping):
        return list(map(str, frame))
    if isinstance(frame, list | tuple):
        from torchpref.runs.tidy.records import flat

        return list(dict.fromkeys(name for row in frame if isinstance(row, Mapping) for name in flat(row)))
    if hasattr(frame, "collect_schema"):
        names = frame.collect_schema().names()
    else:
        names = getattr(frame, "column_names", None)
        names = getattr(frame, "columns", None) if names is None else names
    index = [name for name in getattr(getattr(frame, "index", None), "names", ()) if name is not None]
    try:
        return [str(name) for name in (*index, *(names if names is not None else ()))]
    except TypeError:
        return []


def frame_of_fields(runs: Mapping[str, Any]) -> polars.DataFrame:
    """The fields of runs as a table; see :meth:`torchpref.Trajectories.to_frame`."""
    import polars as pl

    present = runs["present"].cpu().numpy()
    listed = present | _stand_ins(present)
    instance, system, trial = np.nonzero(listed)
    here = present[listed]
    lengths = runs["lengths"].cpu().numpy()[listed]
    columns: dict[str, Any] = {}
    if any(runs["benchmarks"]):
        columns["benchmark"] = np.asarray(runs["benchmarks"], dtype=object)[instance]
    columns["instance"] = np.asarray(runs["instances"], dtype=object)[instance]
    columns["system"] = np.asarray(runs["systems"], dtype=object)[system]
    series = [pl.Series(name, values.tolist(), dtype=pl.String) for name, values in columns.items()]
    if present.shape[2] > 1:
        series.append(pl.Series("trial", trial + 1))
    if not here.all():
        series.append(pl.Series("present", here))
    series.append(_lists("return", runs["returns"].cpu().numpy()[listed] / 1e6, lengths))
    for clock, tensor in runs["times"].items():
        name = clock if clock in CLOCKS else OTHER_CLOCK + clock
        ticks = tensor.cpu().numpy()
        series.append(
            _lists(name, _in_units(ticks[listed], runs["resolution"][clock]), lengths, ticks[listed] == UNKNOWN)
        )
    if runs["truncated"] is not None:
        series.append(pl.Series("truncated", runs["truncated"].cpu().numpy()[listed]))
    if runs["families"] is not None:
        labels = [runs["families"][i] for i in instance.tolist()]
        series.append(pl.Series(FAMILIES, labels, dtype=pl.String))
    per_instance = {f"{REFERENCE}_{clock}": (clock, tensor) for clock, tensor in runs["reference_times"].items()}
    if _is_selection(runs):
        per_instance |= {f"{BEST}_{clock}": (clock, tensor) for clock, tensor in runs["best_times"].items()}
    for name, (clock, tensor) in per_instance.items():
        ticks = tensor.cpu().numpy()[instance]
        values = ticks / ticks_per_unit(runs["resolution"][clock])
        series.append(pl.Series(name, np.where(ticks == UNKNOWN, np.nan, values), nan_to_null=True))
    return pl.DataFrame(series)


def _stand_ins(present: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Cells without a run that have to be listed so that every system, instance and trial is named somewhere."""
    shown = np.zeros_like(present)
    if not present.size:
        return shown
    if present.shape[2] > 1 and not present.all(-1).any():
        shown[0, 0, :] = True
    shown[~present.any((1, 2)), 0, 0] = True
    shown[0, ~present.any((0, 2)), 0] = True
    return np.asarray(shown & ~present)


def _in_units(ticks: np.ndarray[Any, Any], resolution: float) -> np.ndarray[Any, Any]:
    return ticks if resolution == 1 else ticks / ticks_per_unit(resolution)


def _lists(
    name: str, values: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any], unknown: np.ndarray[Any, Any] | None = None
) -> polars.Series:
    """Rows of a dense array as lists of given lengths, with null where a value is unknown."""
    import polars as pl

    count, width = values.shape
    dtype = pl.Int64 if values.dtype.kind == "i" else pl.Float64
    if not count or not width:
        return pl.Series(name, [[] for _ in range(count)], dtype=pl.List(dtype))
    flat = pl.Series(values.reshape(-1), dtype=dtype)
    if unknown is not None and unknown.any():
        flat = flat.set(pl.Series(unknown.reshape(-1)), None)
    lists = flat.reshape((count, width)).arr.to_list()
    return (
        pl.DataFrame({"lists": lists, "length": lengths})
        .select(pl.col("lists").list.head("length").alias(name))
        .to_series()
    )


def _is_selection(runs: Mapping[str, Any]) -> bool:
    """Whether the best times are those of more runs than these."""
    import torch

    returns, present = runs["returns"], runs["present"]
    own = {clock: best_times(returns, present, ticks) for clock, ticks in runs["times"].items()}
    return any(not torch.equal(ticks, own[clock]) for clock, ticks in runs["best_times"].items())


def _as_table(frame: Any) -> Any:
    """What only a conversion of its own makes a table: a relation of DuckDB, a data set of ``datasets``."""
    module = type(frame).__module__.partition(".")[0]
    if module in ("duckdb", "_duckdb") and hasattr(frame, "arrow"):
        found = frame.arrow()
        return found.read_all() if hasattr(found, "read_all") else found
    if module == "datasets":
        if isinstance(frame, Mapping):
            raise UsageError(f"a DatasetDict holds several tables ({', '.join(map(str, frame))}); give one of them")
        return frame.with_format("arrow")[:]
    return frame


def _as_polars(frame: Any, mapping: Mapping[str, str], where: Sequence[str]) -> polars.DataFrame:
    """The columns that are needed of any table in memory."""
    import polars as pl

    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, Mapping):
        return _from_columns(frame)
    if isinstance(frame, list | tuple) and frame and all(isinstance(row, Mapping) for row in frame):
        from torchpref.runs.tidy.records import from_records

        return from_records([dict(row) for row in frame])
    if hasattr(frame, "columns") and hasattr(frame, "dtypes") and hasattr(frame, "reset_index"):
        return _from_pandas(frame, mapping, where)
    if hasattr(frame, "__arrow_c_stream__") or type(frame).__module__.startswith("pyarrow"):
        try:
            return pl.DataFrame(frame)
        except Exception as error:
            raise DataError(
                f"the {type(frame).__name__} cannot be read as a table ({error}); convert it to polars"
            ) from error
    raise UsageError(
        f"a {type(frame).__name__} is no table; give a pandas, polars or Arrow table, a dict of columns or a list of rows"
    )


def _from_columns(columns: Mapping[Any, Any]) -> polars.DataFrame:
    import polars as pl

    from torchpref.runs.tidy.records import from_records

    sizes = {str(name): len(cells) for name, cells in columns.items()}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise DataError(f"the columns are not of one length ({shown}); give as many cells in each")
    parts = [_python_series(str(name), cells) for name, cells in columns.items()]
    return pl.DataFrame(parts) if parts else from_records([])


def _from_pandas(frame: Any, mapping: Mapping[str, str], where: Sequence[str]) -> polars.DataFrame:
    """A pandas frame column by column, so that pyarrow is not needed; a named index counts as columns."""
    import polars as pl

    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    labels = {str(name): name for name in frame.columns}
    available = list(labels)
    wanted = [*needed(mapping, available, "the frame"), *(name for name in where if name in labels)]
    chosen = list(dict.fromkeys(wanted)) or available
    parts = []
    for name in chosen:
        cells = frame[labels[name]]
        if getattr(cells, "ndim", 1) != 1:
            raise DataError(f"the frame: the column {name!r} stands twice; rename one of them")
        parts.append(_pandas_series(name, cells))
    missing = [pl.lit(None).alias(name) for name in available if name not in chosen]
    return pl.DataFrame(parts).with_columns(missing) if len(frame) else pl.DataFrame(schema=available)


def _pandas_series(name: str, cells: Any) -> polars.Series:
    import polars as pl

    kind = getattr(cells.dtype, "kind", "O")
    if kind == "m":
        cells, kind = cells.dt.total_seconds(), "f"
    values: Any
    if kind in "iufb" and isinstance(cells.dtype, np.dtype):
        return pl.Series(name, cells.to_numpy(), nan_to_null=True)
    if kind in "iuf" and hasattr(cells.dtype, "na_value"):
        return pl.Series(name, cells.to_numpy(dtype=np.float64, na_value=np.nan), nan_to_null=True)
    if kind == "M":
        return pl.Series(name, cells.astype(str).tolist(), dtype=pl.String)
    empty = cells.isna().to_numpy()
    values = cells.astype(object).to_numpy().copy()
    values[empty] = None
    return _python_series(name, values)


def _python_series(name: str, cells: Any) -> polars.Series:
    """Any sequence of Python or NumPy values as a column; mixed ones as text."""
    import polars as pl

    from torchpref.runs.tidy.records import series

    if isinstance(cells, pl.Series):
        return cells.alias(name)
    if hasattr(cells, "detach"):
        cells = _numpy(cells)
    if isinstance(cells, np.ndarray) and cells.ndim == 1 and cells.dtype.kind in "iufb":
        return pl.Series(name, cells)
    return series(name, [_plain(cell) for cell in cells])


def _numpy(tensor: Tensor) -> Any:
    return tensor.detach().cpu().numpy()


def _plain(cell: Any) -> Any:
    """A cell as plain Python: NumPy values, arrays and tensors become numbers and lists."""
    if cell is None or isinstance(cell, str | bool | int | float):
        return cell
    if hasattr(cell, "tolist"):
        return cell.tolist()
    if isinstance(cell, list | tuple):
        return [_plain(element) for element in cell]
    return str(cell)
