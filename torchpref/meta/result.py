"""What a meta-evaluation returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchpref.errors import UsageError
from torchpref.meta.definitions import DEFINITIONS, explain
from torchpref.meta.estimates import Estimate
from torchpref.meta.series import Series
from torchpref.runs.measures import describe
from torchpref.runs.names import two_names

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, eq=False, repr=False)
class MetaTable:
    """The figures of all measures on one set of instances.

    Attributes:
        scope: name of the benchmark; empty for all instances.
        instances: number of instances.
        pairs: number of pairs of systems.
        excluded: per measure, pairs that share no instance and count nowhere.
        figures: per measure and key of :data:`torchpref.meta.FIGURES`, the figure.
        convergence: per two measures, Kendall's τ-b of their rankings.
    """

    scope: str
    instances: int
    pairs: int
    excluded: Mapping[str, int]
    figures: Mapping[str, Mapping[str, Estimate]]
    convergence: Mapping[tuple[str, str], Estimate]

    def __getitem__(self, key: tuple[str, str]) -> Estimate:
        """The estimate of (measure, figure)."""
        measure, figure = two_names(key, 'table["sr", "split_half_pairs"]')
        name = describe(measure).name
        if name not in self.figures:
            raise UsageError(f"{measure!r} was not evaluated; there is {', '.join(self.figures)}")
        if figure not in self.figures[name]:
            raise UsageError(f"no figure {figure!r} in the table; there is {', '.join(self.figures[name])}")
        return self.figures[name][figure]

    def rows(self) -> list[dict[str, Any]]:
        """A row per figure and measure."""
        return [
            {
                "scope": self.scope,
                "group": DEFINITIONS[key].group,
                "figure": key,
                "measure": measure,
                "reason": None,
                **estimate.to_dict(),
            }
            for measure, figures in self.figures.items()
            for key, estimate in figures.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None where a figure does not exist, with the reason."""
        return {
            "n_instances": self.instances,
            "n_pairs": self.pairs,
            "excluded_pairs": dict(self.excluded),
            "figures": {
                measure: {key: estimate.to_dict() for key, estimate in figures.items()}
                for measure, figures in self.figures.items()
            },
            "convergence": [
                {"measures": list(names), **estimate.to_dict()} for names, estimate in self.convergence.items()
            ],
        }

    def to_markdown(self) -> str:
        """The table in Markdown, intervals in parentheses; then why figures are missing."""
        from torchpref.meta.tables import markdown_table

        return markdown_table(self)

    def __repr__(self) -> str:
        from torchpref.meta.tables import text_table

        return text_table(self)


@dataclass(frozen=True, eq=False, repr=False)
class MetaEvaluation:
    """Validity, reliability, sensitivity and bias of measures on data.

    Attributes:
        systems: names.
        measures: short names, in the order of the table.
        clock: the clock compared on; None if no measure needed one.
        overall: the table over all instances.
        benchmarks: a table per named benchmark, if there are several.
        mean: the mean over benchmarks of those tables, if there are several; None otherwise.
        efficiency: figures against the share of instances kept.
        saturation: discriminative power against the success rate of tenths of the instances.
        power_by_budget: the same with all instances, runs stopped at a budget.
        power_by_pair: the same with all instances, by the success rate of the pair of systems.
        subgoals: figures under changed annotations of partial return.
        options: what was asked for, and the seed.
    """

    systems: tuple[str, ...]
    measures: tuple[str, ...]
    clock: str | None
    overall: MetaTable
    benchmarks: Mapping[str, MetaTable]
    mean: MetaTable | None
    efficiency: Series
    saturation: Series
    power_by_budget: Series
    power_by_pair: Series
    subgoals: Series
    options: Mapping[str, Any]

    def __getitem__(self, key: tuple[str, str]) -> Estimate:
        """The estimate of (measure, figure) over all instances."""
        return self.overall[key]

    def explain(self, figure: str) -> str:
        """What a figure means, and what its interval covers; see :func:`torchpref.meta.explain`."""
        return explain(figure)

    def rows(self) -> list[dict[str, Any]]:
        """A row per scope, figure and measure."""
        tables = [self.overall, *self.benchmarks.values(), *([self.mean] if self.mean else [])]
        return [row for table in tables for row in table.rows()]

    def to_frame(self) -> polars.DataFrame:
        """A row per scope (empty: all instances), figure and measure, with its interval and why there is none."""
        import polars as pl

        text = ("scope", "group", "figure", "measure")
        schema: dict[str, Any] = dict.fromkeys(text, pl.String)
        schema |= dict.fromkeys(("value", "low", "high"), pl.Float64) | {"reason": pl.String}
        return pl.DataFrame([{key: row[key] for key in schema} for row in self.rows()], schema=schema)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None where a figure does not exist, with the reason."""
        from importlib.metadata import version

        return {
            "version": version("torchpref"),
            "clock": self.clock,
            "options": dict(self.options),
            "seed": self.options["seed"],
            "systems": list(self.systems),
            "measures": list(self.measures),
            **self.overall.to_dict(),
            "benchmarks": {name: table.to_dict() for name, table in self.benchmarks.items()},
            "mean_over_benchmarks": None if self.mean is None else self.mean.to_dict(),
            "data_efficiency": self.efficiency.to_dict(),
            "saturation": self.saturation.to_dict(),
            "power_by_budget": self.power_by_budget.to_dict(),
            "power_by_pair": self.power_by_pair.to_dict(),
            "subgoals": self.subgoals.to_dict(),
            "definitions": {key: definition.text for key, definition in DEFINITIONS.items()},
        }

    def to_markdown(self) -> str:
        """All tables in Markdown."""
        from torchpref.meta.tables import markdown

        return markdown(self)

    def __repr__(self) -> str:
        from torchpref.meta.tables import text

        return text(self)
