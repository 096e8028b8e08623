"""The runs of a log: repeated records told from further trials, and all of them as tidy rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torchpref.errors import DataError
from torchpref.io.files.documents import printable
from torchpref.io.logs.identity import Floats, Naming, Run, systems_apart, tasks_apart
from torchpref.io.logs.records import Notes
from torchpref.runs.findings import Finding
from torchpref.runs.tidy.schema import CLOCKS, MARK, PLACE, Tidy

if TYPE_CHECKING:
    import polars as pl


class Runs:
    """The runs of a log, in the order read.

    Args:
        notes: counts what is odd about them.
        value: the column that carries the outcome: ``return``, ``reward``, ``score`` (with ``max_score``) or ``success``.
    """

    def __init__(self, notes: Notes, value: str) -> None:
        self.notes = notes
        self.value = value
        self._place: Path | None = None
        self._runs: list[Run] = []

    def __len__(self) -> int:
        return len(self._runs)

    def reading(self, path: Path) -> None:
        """The file that the runs added from now on are in."""
        self._place = path

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
        home: Path | None = None,
        naming: Naming = "whole",
        details: Mapping[str, str | None] | None = None,
        setting: Mapping[str, str | None] | None = None,
        content: str | None = None,
    ) -> None:
        """One run: its points in order, each with the value and the clocks that are known, or as columns of these.

        Two records are one run that is there twice only if their points and their ``identity`` are the same: give
        :func:`torchpref.io.logs.records.digest` of the whole record. The other arguments are those of :class:`Run`.
        """
        names = (printable(system), printable(benchmark), printable(instance))
        columns = points if isinstance(points, Mapping) else _columns(points)
        length = len(next(iter(columns.values()))) if columns else len(points)
        columns = self._recorded(columns, system, instance)
        self._runs.append(
            Run(
                *names, trial, truncated, length, columns, max_score, identity, self._place, home, naming,
                _said(details), _said(setting), content,
            )
        )  # fmt: skip

    def _recorded(self, columns: Mapping[str, Floats], system: str, instance: str) -> Mapping[str, Floats]:
        """The columns, with calls and tokens that are 0 at the end of a run taken as not recorded."""
        empty = [
            name for name in ("turns", "tokens") if name in columns and len(columns[name]) and columns[name][-1] == 0
        ]
        if not empty:
            return columns
        steps = columns.get("steps")
        worked = steps is not None and len(steps) and steps[-1] > 0
        self.notes.add(
            "calls_contradict_steps" if worked else "calls_not_recorded",
            "runs with steps but 0 calls or tokens: these are taken as not recorded"
            if worked
            else "runs with 0 calls or tokens: these are taken as not recorded",
            severity="warning" if worked else "note",
            system=system,
            example=f"{system} on {instance}: {' and '.join(empty)} 0",
        )
        return {**columns, **{name: np.full(len(columns[name]), np.nan) for name in empty}}

    def told_apart(self) -> list[Run]:
        """Systems and tasks told apart by all that names them.

        Different records of one file that have no trial in the log are further trials of it.
        """
        runs = tasks_apart(systems_apart(self._runs, self.notes), self.notes)
        taken: dict[tuple[Hashable, ...], dict[int, Hashable]] = {}
        kept: list[Run] = []
        for run in runs:
            if run.trial is None:
                mark = run.fingerprint()
                here = taken.setdefault((run.system, run.benchmark, run.instance, run.place), {})
                trial = 0
                while here.get(trial, mark) != mark:
                    trial += 1
                if trial and trial not in here:
                    self.notes.add(
                        "runs_under_one_name",
                        "different records of one system on one instance in one file are taken as further trials",
                        system=run.system,
                        example=f"{run.system} on {run.instance}",
                    )
                here[trial] = mark
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
        return Tidy(self._frame(runs), self.notes.findings(), lambda row: _where(runs[row].place or where, runs[row]))

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
                MARK: pl.Series([_marked(run) for run in runs], dtype=pl.String),
                PLACE: pl.Series(
                    [None if run.place is None else printable(str(run.place)) for run in runs], dtype=pl.String
                ),
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


def settled(tidy: Tidy) -> Tidy:
    """The rows of logs with records that are there twice once; done when their systems have the names that the user gave."""
    import polars as pl

    if MARK not in tidy.frame.columns:
        return tidy
    keys = [name for name in ("system", "benchmark", "instance", "trial", MARK) if name in tidy.frame.columns]
    again = ~tidy.frame.select(pl.struct(keys).is_first_distinct()).to_series()
    findings = tidy.findings
    if again.any():
        repeated = tidy.frame.filter(again)
        rows = repeated.select("system", "instance").rows()
        findings = (
            *findings,
            Finding(
                "records_repeated",
                "warning",
                len(rows),
                "records that are there twice, byte for byte, count once",
                tuple(sorted({str(system) for system, _ in rows})),
                tuple(f"{system} on {instance}" for system, instance in rows[:5]),
            ),
        )
    return replace(tidy, frame=tidy.frame.filter(~again).drop(MARK), findings=findings)


def _marked(run: Run) -> str:
    return blake2b(repr(run.fingerprint()).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _said(fields: Mapping[str, str | None] | None) -> dict[str, str]:
    return {name: printable(value) for name, value in (fields or {}).items() if value is not None}


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
