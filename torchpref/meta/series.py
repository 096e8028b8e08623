"""Figures along something that is varied: the share of instances, the success rate, the annotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchpref.errors import UsageError
from torchpref.meta.estimates import Estimate
from torchpref.runs.measures import describe
from torchpref.runs.names import two_names

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, eq=False, repr=False)
class Series:
    """Figures per measure at several points.

    Attributes:
        name: the key of its definition.
        along: what is varied.
        points: the points, in order: numbers or words.
        figures: per measure and figure, an estimate at each point.
        reason: why there are none; empty if there are.
    """

    name: str
    along: str
    points: tuple[float | str, ...]
    figures: Mapping[str, Mapping[str, tuple[Estimate, ...]]]
    reason: str = ""

    def __getitem__(self, key: tuple[str, str]) -> tuple[Estimate, ...]:
        """The estimates of (measure, figure) at all points."""
        measure, figure = two_names(key, 'series["sr", "split_half_pairs"]')
        figures = self.figures.get(describe(measure).name, {})
        if figure not in figures:
            there = ", ".join(f"{name}: {', '.join(each)}" for name, each in self.figures.items())
            raise UsageError(
                f"no figure {figure!r} of {measure!r} in the series; there is {there or self.reason or 'none'}"
            )
        return figures[figure]

    def rows(self) -> list[dict[str, Any]]:
        """A row per point, measure and figure."""
        return [
            {self.along: point, "measure": measure, "figure": figure, **_limits(estimate)}
            for measure, figures in self.figures.items()
            for figure, estimates in figures.items()
            for point, estimate in zip(self.points, estimates, strict=True)
        ]

    def to_frame(self) -> polars.DataFrame:
        """A row per point, measure and figure."""
        import polars as pl

        kind = pl.String if any(isinstance(point, str) for point in self.points) else pl.Float64
        schema: dict[str, Any] = {self.along: kind, "measure": pl.String, "figure": pl.String}
        return pl.DataFrame(self.rows(), schema=schema | dict.fromkeys(("value", "low", "high"), pl.Float64))

    def to_dict(self) -> dict[str, Any]:
        """Points, and per measure and figure the values with their limits; the reason where there is nothing."""
        if self.reason:
            return {"reason": self.reason}
        return {
            self.along: list(self.points),
            "measures": {
                measure: {figure: [each.to_dict() for each in estimates] for figure, estimates in figures.items()}
                for measure, figures in self.figures.items()
            },
        }

    def __repr__(self) -> str:
        if self.reason:
            return f"{self.name}: {self.reason}"
        return f"{self.name} along {self.along}: {', '.join(map(str, self.points))}"


def _limits(estimate: Estimate) -> dict[str, float | None]:
    record = estimate.to_dict()
    return {key: record[key] for key in ("value", "low", "high")}


def empty(name: str, along: str, reason: str) -> Series:
    """No figures, and why."""
    return Series(name, along, (), {}, reason)


def transpose(
    points: Sequence[Mapping[str, Mapping[str, Estimate]]],
) -> dict[str, dict[str, tuple[Estimate, ...]]]:
    """Estimates per point, measure and figure as estimates per measure and figure."""
    if not points:
        return {}
    return {
        measure: {figure: tuple(point[measure][figure] for point in points) for figure in figures}
        for measure, figures in points[0].items()
    }
