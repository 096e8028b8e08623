"""What an evaluation is made of: per measure the scores, ranks and means; per system what its runs did; the audit.

Results are plain data: tensors in the order of ``systems``, NaN where a value does not exist, which becomes ``null`` in
JSON and an empty cell in tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jaxtyping import Float, Int
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.runs.findings import Finding
from torchpref.runs.measures import JUDGE, describe
from torchpref.runs.plain import plain

if TYPE_CHECKING:
    import polars

    from torchpref.pairwise.preferences import Preferences
    from torchpref.runs.audit import Audit
    from torchpref.runs.trajectories import Trajectories
    from torchpref.stats.ranking.leaderboard import Leaderboard


@dataclass(frozen=True, eq=False)
class MeasureResult:
    """One measure over all instances, or over those of one benchmark.

    Attributes:
        measure: short name.
        clock: the clock compared on; None for SR and PR.
        status: ``"ok"``, or one word and after a colon why there is no full set of scores, systems named.
        theta: float64 ``[system]``, Bradley–Terry score in natural log-odds; NaN where there is none.
        interval: float64 ``[system, 2]``, its confidence interval; NaN where there is none. None if not asked for.
        rank: rank of each system from 1; None where it cannot be placed.
        mean_preference: float64 ``[system, system]``, Δ̄ of the row over the column; NaN where there is none.
        mean: float64 ``[system]``, mean preference over rivals.
        tie_rate: share of tied run pairs, NaN if nothing was compared.
        run_pairs: how many pairs of runs were compared.
        instances: how many instances there are.
        split: for LR, how much of ``mean`` is *solved more*, *sooner* and *further*: float64 ``[system]`` each.
        benchmarks: the same for each named benchmark by itself.
        preferences: the preferences behind the scores, between the systems that take part in them; None if the measure
            needs a clock that the runs do not carry.
        board: what :func:`torchpref.rank` says, if intervals were asked for.
    """

    measure: str
    clock: str | None
    status: str
    theta: Float[Tensor, " system"]
    interval: Float[Tensor, "system 2"] | None
    rank: tuple[int | None, ...]
    mean_preference: Float[Tensor, "system system"]
    mean: Float[Tensor, " system"]
    tie_rate: float
    run_pairs: int
    instances: int
    split: Mapping[str, Float[Tensor, " system"]] | None = None
    benchmarks: Mapping[str, MeasureResult] = field(default_factory=dict)
    preferences: Preferences | None = field(default=None, repr=False)
    board: Leaderboard | None = field(default=None, repr=False)

    @property
    def order(self) -> tuple[int, ...]:
        """Positions of the systems from first to last; those without a rank at the end."""
        size = len(self.rank)
        return tuple(sorted(range(size), key=lambda i: (self.rank[i] is None, self.rank[i] or 0, i)))

    @property
    def benchmark_mean_tie_rate(self) -> float:
        """Mean of the benchmarks' tie rates, each benchmark counting once; NaN without benchmarks."""
        rates = [part.tie_rate for part in self.benchmarks.values() if not math.isnan(part.tie_rate)]
        return sum(rates) / len(rates) if rates else math.nan

    def to_dict(self) -> dict[str, Any]:
        """The fields of a measure in the JSON that :meth:`Evaluation.to_dict` gives."""
        record: dict[str, Any] = {"status": self.status, "theta": plain(self.theta)}
        record["interval"] = None if self.interval is None else plain(self.interval)
        record["rank"] = list(self.rank)
        record["mean_preference"] = plain(self.mean_preference)
        record["tie_rate"] = plain(self.tie_rate)
        record["benchmarks"] = {name: part._benchmark_dict() for name, part in self.benchmarks.items()}
        return record

    def _benchmark_dict(self) -> dict[str, Any]:
        record = self.to_dict()
        del record["benchmarks"], record["interval"]
        return {**record, "n_instances": self.instances}


@dataclass(frozen=True, eq=False)
class SystemSummary:
    """What the runs of each system did, whatever its rivals did; in the order of the systems.

    Attributes:
        success_rate: float64 ``[system]``, share of its runs with a known outcome that succeed; NaN without runs.
        partial_return: float64 ``[system]``, mean return reached by those runs.
        median_time: float64 ``[system]``, median time of its successes at a known time, in the clock's unit; or None.
        instances: int64 ``[system]``, instances on which it has a run.
        runs: int64 ``[system]``, its runs.
    """

    success_rate: Float[Tensor, " system"]
    partial_return: Float[Tensor, " system"]
    median_time: Float[Tensor, " system"] | None
    instances: Int[Tensor, " system"]
    runs: Int[Tensor, " system"]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The whole of it: leaderboards of all measures, tie rates, and what to know about the data.

    Attributes:
        runs: the runs evaluated.
        clock: the clock of the measures that need one; None if the runs carry none.
        measures: a :class:`MeasureResult` per measure.
        summary: what each system's runs did.
        audit: what is in the data.
        findings: what a reader of the result must know: the audit's, and those that concern the comparison itself.
        options: what was asked for.
        seed: the seed of all random draws.
        judge: the measure that judges; the others describe.
    """

    runs: Trajectories
    clock: str | None
    measures: Mapping[str, MeasureResult]
    summary: SystemSummary
    audit: Audit
    findings: tuple[Finding, ...]
    options: Mapping[str, Any]
    seed: int
    judge: str = JUDGE

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems, in the order of all arrays."""
        return self.runs.systems

    @cached_property
    def known_times(self) -> bool:
        """Whether any run has a known time on the clock."""
        from torchpref.runs.checks import known_times

        return self.clock is not None and known_times(self.runs, self.clock)

    def __getitem__(self, measure: str) -> MeasureResult:
        """The result of one measure, by its name in any case."""
        name = describe(measure).name
        if name not in self.measures:
            raise UsageError(f"{name.upper()} was not evaluated; there is {', '.join(self.measures)}")
        return self.measures[name]

    def to_dict(self) -> dict[str, Any]:
        """The result for JSON: plain lists in the order of ``systems``, None where a value does not exist."""
        from importlib.metadata import version

        audit = self.audit.to_dict()
        audit["findings"] = [finding.to_dict() for finding in self.findings]
        return {
            "version": version("torchpref"),
            "clock": self.clock,
            "options": dict(self.options),
            "seed": self.seed,
            "systems": list(self.systems),
            "n_instances": len(self.runs.instances),
            "n_shared": self._shared().tolist(),
            "judge": self.judge,
            "measures": {name: result.to_dict() for name, result in self.measures.items()},
            "audit": audit,
        }

    def _shared(self) -> Int[Tensor, "system system"]:
        ran = self.runs.present.any(-1).long().cpu()
        return ran.t() @ ran

    def to_frame(self) -> polars.DataFrame:
        """A row per measure and system, in leaderboard order."""
        import polars as pl

        rows = [row for name in self.measures for row in self.rows(name)]
        schema = {
            "measure": pl.String,
            "rank": pl.Int64,
            "system": pl.String,
            "score": pl.Float64,
            "score_low": pl.Float64,
            "score_high": pl.Float64,
            "mean_preference": pl.Float64,
            "success_rate": pl.Float64,
            "partial_return": pl.Float64,
            "median_time": pl.Float64,
            "instances": pl.Int64,
            "tie_rate": pl.Float64,
            "status": pl.String,
        }
        return pl.DataFrame(rows, schema=schema, orient="row")

    def rows(self, measure: str) -> list[dict[str, Any]]:
        """The leaderboard of one measure from first to last, None where a value does not exist."""
        result, summary = self[measure], self.summary
        rows = []
        for i in result.order:
            low, high = (None, None) if result.interval is None else plain(result.interval[i])
            rows.append(
                {
                    "measure": result.measure,
                    "rank": result.rank[i],
                    "system": self.systems[i],
                    "score": plain(result.theta[i].item()),
                    "score_low": low,
                    "score_high": high,
                    "mean_preference": plain(result.mean[i].item()),
                    "success_rate": plain(summary.success_rate[i].item()),
                    "partial_return": plain(summary.partial_return[i].item()),
                    "median_time": None if summary.median_time is None else plain(summary.median_time[i].item()),
                    "instances": int(summary.instances[i]),
                    "tie_rate": plain(result.tie_rate),
                    "status": result.status,
                }
            )
        return rows

    def to_markdown(self) -> str:
        """Tie rates and leaderboards as Markdown tables."""
        from torchpref.report.text import evaluation_markdown

        return evaluation_markdown(self)

    def to_latex(self) -> str:
        """Tie rates and leaderboards as LaTeX tables (package booktabs)."""
        from torchpref.report.text import evaluation_latex

        return evaluation_latex(self)

    def to_html(self, title: str | None = None) -> str:
        """The result as one HTML page that needs no network: boards, heat map, instances, warnings, method.

        Raises:
            MissingExtraError: the extra ``report`` is not installed.
        """
        from torchpref.report.page import evaluation_page

        return evaluation_page(self, title)

    def __repr__(self) -> str:
        from torchpref.report.pieces import render
        from torchpref.report.tables import evaluation_tables

        return render(evaluation_tables(self))
