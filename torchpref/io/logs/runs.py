"""The runs of a log: repeated records told from further trials, and all of them as tidy rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import DataError
from torchpref.io.files.documents import printable
from torchpref.io.logs.records import Notes
from torchpref.runs.tidy.schema import CLOCKS, Tidy

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """One run: whose, on what, and its points in order, as columns (the value and the clocks; NaN is unknown)."""

    system: str
    benchmark: str
    instance: str
    trial: int
    truncated: bool | None
    length: int
    columns: Mapping[str, Floats]
    max_score: float | None
    identity: Hashable

    def fingerprint(self) -> Hashable:
        """What two records of one run have in common."""
        given = {name: column.tobytes() for name, column in self.columns.items() if not np.isnan(column).all()}
        return self.identity, self.truncated, self.max_score, self.length, tuple(sorted(given.items()))


class Runs:
    """The runs of a log, in the order read.

    Args:
        notes: counts what is odd about them.
        value: the column that carries the outcome: ``return``, ``reward``, ``score`` (with ``max_score``) or ``success``.
    """

    def __init__(self, notes: Notes, value: str) -> None:
        self.notes = notes
        self.value = value
        self._runs: list[Run] = []

    def __len__(self) -> int:
        return len(self._runs)

    def add(
        self,
        system: str,
        instance: str,
        points: Sequence[Mapping[str, Any]] | Mapping[str, Floats],
        *,
        benchmark: str = "",
        trial: int | None = None,
        truncated: bool | None = None,
        max_score: float | None = None,
        identity: Hashable = None,
    ) -> None:
        """One run: its points in order, each with the value and the clocks that are known, or as columns of these.

        Two records of one run are told from two trials by their points and by ``identity``, whatever names a run in
        the log.
        """
        names = (printable(system), printable(benchmark), printable(instance))
        columns = points if isinstance(points, Mapping) else _columns(points)
        length = len(next(iter(columns.values()))) if columns else len(points)
        self._runs.append(Run(*names, trial or 0, truncated, length, columns, max_score, identity))

    def told_apart(self) -> list[Run]:
        """Records that are there twice once, and different runs under one name as further trials of it."""
        seen: dict[tuple[str, str, str, int], set[Hashable]] = {}
        taken: dict[tuple[str, str, str], int] = {}
        kept: list[Run] = []
        for run in self._runs:
            name = (run.system, run.benchmark, run.instance)
            before = seen.setdefault((*name, run.trial), set())
            mark = run.fingerprint()
            where = f"{run.system} on {run.instance}"
            if mark in before:
                self.notes.add(
                    "records_repeated",
                    "records that are there twice, word for word, count once",
                    system=run.system,
                    example=where,
                )
                continue
            before.add(mark)
            if len(before) > 1:
                self.notes.add(
                    "runs_under_one_name",
                    "different records of one system on one instance are taken as further trials",
                    system=run.system,
                    example=where,
                )
                trial = max(taken.get(name, 0), run.trial + 1)
                while (*name, trial) in seen:
                    trial += 1
                taken[name] = trial
                seen[(*name, trial)] = {mark}
                run = replace(run, trial=trial)
            kept.append(run)
        return kept

    def tidy(self, where: object) -> Tidy:
        """The tidy rows, one per run; a log without any run raises ``DataError``."""
        runs = self.told_apart()
        if not runs:
            noted = "; ".join(f"{f.message} ({f.count})" for f in self.notes.findings())
            raise DataError(f"{where}: no run found{f' ({noted})' if noted else ''}")
        unknown = [run for run in runs if run.length and self._unknown(run)]
        if unknown:
            self.notes.add(
                "outcomes_not_given",
                "runs whose outcome the log does not give are no runs",
                count=len(unknown),
            )
            self.notes.show("outcomes_not_given", ((r.system, f"{r.system} on {r.instance}") for r in unknown))
        return Tidy(self._frame(runs), self.notes.findings(), lambda row: _where(where, runs[row]))

    def _unknown(self, run: Run) -> bool:
        return self.value not in run.columns or bool(np.isnan(run.columns[self.value]).all())

    def _frame(self, runs: Sequence[Run]) -> pl.DataFrame:
        """A row per run; list cells where some run has more than one point."""
        import polars as pl

        clocks = [
            clock for clock in CLOCKS if any(clock in r.columns and not np.isnan(r.columns[clock]).all() for r in runs)
        ]
        names = (self.value, *(clocks or ["steps"]))  # where no time is known of any run, the frame has to say so
        nothing = {length: np.full(length, np.nan) for length in {run.length for run in runs}}
        flat = pl.DataFrame(
            {name: np.concatenate([run.columns.get(name, nothing[run.length]) for run in runs]) for name in names}
        ).fill_nan(None)
        frame = pl.DataFrame(
            {
                "system": pl.Series([run.system for run in runs], dtype=pl.String),
                "benchmark": pl.Series([run.benchmark for run in runs], dtype=pl.String),
                "instance": pl.Series([run.instance for run in runs], dtype=pl.String),
                "trial": pl.Series([run.trial for run in runs], dtype=pl.Int64),
            }
        )
        if any(run.length != 1 for run in runs):
            frame = frame.hstack(_cells(flat, [run.length for run in runs]))
        else:
            frame = frame.hstack(flat)
        if self.value in ("score", "reward"):
            most = [None if run.max_score is None else float(run.max_score) for run in runs]
            frame = frame.with_columns(pl.Series("max_score", most, dtype=pl.Float64))
        if any(run.truncated is not None for run in runs):
            marks = [bool(run.truncated) for run in runs]
            frame = frame.with_columns(pl.Series("truncated", marks, dtype=pl.Boolean))
        return frame


def _columns(points: Sequence[Mapping[str, Any]]) -> dict[str, Floats]:
    names = {name for point in points for name in point}
    return {
        name: np.asarray([np.nan if (value := point.get(name)) is None else float(value) for point in points])
        for name in sorted(names)
    }


def _cells(flat: pl.DataFrame, lengths: Sequence[int]) -> pl.DataFrame:
    """List cells of the given lengths out of the points of all runs."""
    import polars as pl

    owner = pl.Series("run", np.repeat(np.arange(len(lengths)), lengths))
    lists = flat.with_columns(owner).group_by("run", maintain_order=True).agg(pl.all())
    if 0 in lengths:  # runs without a step have empty lists
        every = pl.DataFrame({"run": np.arange(len(lengths))})
        empty = pl.lit([], dtype=pl.List(pl.Float64))
        lists = every.join(lists, on="run", how="left", maintain_order="left").with_columns(
            pl.exclude("run").fill_null(empty)
        )
    return lists.drop("run")


def _where(where: object, run: Run) -> str:
    trial = f", trial {run.trial}" if run.trial else ""
    return f"{where}: {run.system} on {run.instance}{trial}"
