"""The runs of a log: repeated records told from further trials, and all of them as tidy rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torchpref.errors import DataError
from torchpref.io.readers.documents import printable
from torchpref.io.readers.records import Notes
from torchpref.io.tidy import CLOCKS, Tidy

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Run:
    """One run: whose, on what, and its points in order (each the value and the clocks that are known)."""

    system: str
    benchmark: str
    instance: str
    trial: int
    truncated: bool | None
    points: tuple[Mapping[str, Any], ...]
    max_score: float | None
    identity: Hashable

    def fingerprint(self) -> Hashable:
        """What two records of one run have in common."""
        points = tuple(tuple(sorted(point.items())) for point in self.points)
        return self.identity, self.truncated, self.max_score, points


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
        points: Sequence[Mapping[str, Any]],
        *,
        benchmark: str = "",
        trial: int | None = None,
        truncated: bool | None = None,
        max_score: float | None = None,
        identity: Hashable = None,
    ) -> None:
        """One run: its points in order, each with the value and the clocks that are known.

        Two records of one run are told from two trials by their points and by ``identity``, whatever names a run in
        the log.
        """
        names = (printable(system), printable(benchmark), printable(instance))
        self._runs.append(Run(*names, trial or 0, truncated, tuple(points), max_score, identity))

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
        unknown = [run for run in runs if all(point.get(self.value) is None for point in run.points)]
        if unknown:
            self.notes.add(
                "outcomes_not_given",
                "runs whose outcome the log does not give are no runs",
                count=len(unknown),
            )
            self.notes.show("outcomes_not_given", ((r.system, f"{r.system} on {r.instance}") for r in unknown))
        return Tidy(self._frame(runs), self.notes.findings(), lambda row: _where(where, runs[row]))

    def _frame(self, runs: Sequence[Run]) -> pl.DataFrame:
        """A row per run; list cells where some run has more than one point."""
        import polars as pl

        lists = any(len(run.points) != 1 for run in runs)
        clocks = [clock for clock in CLOCKS if any(p.get(clock) is not None for run in runs for p in run.points)]
        data: dict[str, pl.Series] = {
            "system": pl.Series([run.system for run in runs], dtype=pl.String),
            "benchmark": pl.Series([run.benchmark for run in runs], dtype=pl.String),
            "instance": pl.Series([run.instance for run in runs], dtype=pl.String),
            "trial": pl.Series([run.trial for run in runs], dtype=pl.Int64),
        }
        for column in (
            self.value,
            *(clocks or ["steps"]),
        ):  # where no time is known of any run, the frame has to say so
            if lists:
                cells: list[Any] = [[_float(point.get(column)) for point in run.points] for run in runs]
                data[column] = pl.Series(cells, dtype=pl.List(pl.Float64))
            else:
                cells = [_float(run.points[0].get(column)) for run in runs]
                data[column] = pl.Series(cells, dtype=pl.Float64)
        if self.value in ("score", "reward"):
            data["max_score"] = pl.Series([_float(run.max_score) for run in runs], dtype=pl.Float64)
        if any(run.truncated is not None for run in runs):
            data["truncated"] = pl.Series([bool(run.truncated) for run in runs], dtype=pl.Boolean)
        return pl.DataFrame(data)


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _where(where: object, run: Run) -> str:
    trial = f", trial {run.trial}" if run.trial else ""
    return f"{where}: {run.system} on {run.instance}{trial}"
