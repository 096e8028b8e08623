"""Names of systems, instances and trials as whole numbers, in the order in which they will stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from torchpref.errors import DataError
from torchpref.runs.tidy.cells import names_expr
from torchpref.runs.tidy.schema import Tidy

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Named:
    """The names of a table and, per row, their positions.

    Attributes:
        systems: names, sorted.
        instances: names, sorted by (benchmark, name).
        benchmarks: the benchmark of each instance, ``""`` where there is none.
        trials: labels in natural order (``2`` before ``10``), or None where the table has no such column.
        system, instance, trial: positions per row; trial is 0 without labels.
    """

    systems: tuple[str, ...]
    instances: tuple[str, ...]
    benchmarks: tuple[str, ...]
    trials: tuple[str, ...] | None
    system: Codes
    instance: Codes
    trial: Codes

    @property
    def cells(self) -> Codes:
        """One number per row for its (instance, system), in the order in which cells will stand."""
        return self.instance * len(self.systems) + self.system

    def run(self, system: int, instance: int, label: str = "") -> str:
        """A run in words."""
        benchmark = self.benchmarks[instance]
        where = f"{benchmark} " if benchmark else ""
        return f"system {self.systems[system]!r}, instance {where}{self.instances[instance]!r}{label}"


def encode(tidy: Tidy, rows: Codes) -> Named:
    """The names in the columns ``system``, ``instance``, ``benchmark`` and ``trial``.

    Raises:
        DataError: a name is empty; the message says in which row.
    """
    frame = tidy.frame
    system, systems = _codes(_filled(tidy, "system", rows))
    instance, instances = _codes(_filled(tidy, "instance", rows))
    benchmarks = [""] * len(instances)
    if "benchmark" in frame.columns and frame["benchmark"].null_count() < frame.height:
        names = frame.select(names_expr("benchmark", frame.schema["benchmark"])).to_series().fill_null("")
        benchmark, groups = _codes(names)
        pairs, instance = np.unique(benchmark * len(instances) + instance, return_inverse=True)
        benchmarks = [groups[pair // len(instances)] for pair in pairs]
        instances = [instances[pair % len(instances)] for pair in pairs]
    trial, trials = np.zeros(frame.height, dtype=np.int64), None
    if "trial" in frame.columns and (frame["trial"].null_count() < frame.height or not frame.height):
        labels = _filled(tidy, "trial", rows)
        trial, trials = _trial_codes(labels)
    return Named(tuple(systems), tuple(instances), tuple(benchmarks), trials, system, instance, trial)


def _filled(tidy: Tidy, name: str, rows: Codes) -> pl.Series:
    frame = tidy.frame
    cells = frame.select(names_expr(name, frame.schema[name])).to_series()
    if cells.null_count():
        position = int(cells.is_null().arg_true()[0])
        called = f" (column {tidy.mapped[name]})" if tidy.mapped.get(name, name) != name else ""
        place = tidy.locate(int(rows[position]))
        raise DataError(f"{place}: {name}{called} is empty; every row needs one: fill it, or leave the row out")
    return cells


def _codes(cells: pl.Series) -> tuple[Codes, list[str]]:
    """Position of each cell among the sorted distinct ones."""
    distinct = cells.unique().sort()
    return _positions(cells, distinct), distinct.to_list()


def _trial_codes(cells: pl.Series) -> tuple[Codes, tuple[str, ...]]:
    from torchpref.runs.names import natural_key

    distinct = sorted(cells.unique().to_list(), key=natural_key)
    return _positions(cells, pl.Series(distinct, dtype=pl.String)), tuple(distinct)


def _positions(cells: pl.Series, distinct: pl.Series) -> Codes:
    return cells.cast(pl.Enum(distinct)).to_physical().to_numpy().astype(np.int64)


def compact_trials(cells: Codes, trial: Codes, n_labels: int) -> Codes:
    """Positions of trials that leave few gaps.

    Labels that are shared between runs (seeds 0 to 9) keep their positions, so that trial k is the same seed everywhere.
    Labels that are not (identifiers of runs) would make one position each; there the trials of every cell are counted.

    Args:
        cells: the (instance, system) of each run.
        trial: position of its label; a (cell, trial) stands only once.
        n_labels: how many labels there are.
    """
    if not len(cells):
        return trial
    most = int(np.bincount(np.unique(cells, return_inverse=True)[1]).max())
    if n_labels <= 2 * most:
        return trial
    order = np.lexsort((trial, cells))
    sorted_cells = cells[order]
    first = np.r_[True, sorted_cells[1:] != sorted_cells[:-1]]
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    result = np.empty_like(trial)
    result[order] = np.arange(len(order)) - start
    return result
