"""A ranking of systems and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jaxtyping import Float, Int
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.runs.plain import plain

if TYPE_CHECKING:
    import polars

#: Names of the score scales and what they are called in tables.
SCALES = {"log-odds": "log-odds", "elo": "Elo"}


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard:
    """Systems with scores, intervals and ranks. Arrays are in the order of ``systems``; ``order`` ranks them.

    Attributes:
        measure: short name of the measure.
        clock: the clock compared on, or None.
        systems: names.
        order: positions from first to last.
        score: float64 ``[system]``, Bradley–Terry score; NaN where there is no finite one.
        interval: float64 ``[system, 2]``, sandwich interval with Student's t; NaN where there is none.
        percentile: float64 ``[system, 2]``, bootstrap percentile interval; NaN where a limit is infinite or not known.
        rank: int64 ``[system]``, from 1; equal scores share the smallest.
        rank_interval: int64 ``[system, 2]``, all ranks at once at ``level``.
        share_first: float64 ``[system]``, bootstrap share: in how much of the resamples the system comes first, ties split.
            Not the chance that it is the best.
        mean_preference: float64 ``[system]``, mean over rivals of Δ̄ (Borda); NaN without a rival.
        copeland: int64 ``[system]``, rivals it is preferred to less rivals preferred to it.
        instances: int64 ``[system]``, instances on which it was compared.
        groups: maximal runs in rank order in which no pair is significant after Holm; names.
        status: status of the Bradley–Terry fit, a word.
        message: the status in words.
        reasons: per system why its interval is missing; ``""`` where it is not.
        rank_reason: why no rank interval could be narrower than all ranks, whatever the data; ``""`` where one could.
        ranked_by: ``"score"`` or ``"mean preference"``.
        replicates: how many resamples ended with each status; empty where scores were not refitted.
        bootstrap: number of resamples.
        level, alpha, seed: as asked for.
        scale: ``"log-odds"`` or ``"elo"``.
    """

    measure: str
    clock: str | None
    systems: tuple[str, ...]
    order: tuple[int, ...]
    score: Float[Tensor, " system"]
    interval: Float[Tensor, "system 2"]
    percentile: Float[Tensor, "system 2"]
    rank: Int[Tensor, " system"]
    rank_interval: Int[Tensor, "system 2"]
    share_first: Float[Tensor, " system"]
    mean_preference: Float[Tensor, " system"]
    copeland: Int[Tensor, " system"]
    instances: Int[Tensor, " system"]
    groups: tuple[tuple[str, ...], ...]
    status: str
    message: str
    reasons: tuple[str, ...]
    rank_reason: str
    ranked_by: str
    replicates: Mapping[str, int]
    bootstrap: int
    level: float
    alpha: float
    seed: int
    scale: str

    def __getitem__(self, name: str) -> dict[str, Any]:
        """The row of one system."""
        if name not in self.systems:
            raise UsageError(f"no system {name!r} among {len(self.systems)}: {', '.join(self.systems[:5])} …")
        return self._row(self.systems.index(name))

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary per system, first to last; None where a value does not exist."""
        return [self._row(i) for i in self.order]

    def _row(self, i: int) -> dict[str, Any]:
        name = self.systems[i]
        return {
            "rank": int(self.rank[i]),
            "system": name,
            "score": plain(self.score[i]),
            "low": plain(self.interval[i, 0]),
            "high": plain(self.interval[i, 1]),
            "percentile_low": plain(self.percentile[i, 0]),
            "percentile_high": plain(self.percentile[i, 1]),
            "rank_low": int(self.rank_interval[i, 0]),
            "rank_high": int(self.rank_interval[i, 1]),
            "share_first": plain(self.share_first[i]),
            "groups": [number + 1 for number, group in enumerate(self.groups) if name in group],
            "mean_preference": plain(self.mean_preference[i]),
            "copeland": int(self.copeland[i]),
            "instances": int(self.instances[i]),
            "reason": self.reasons[i],
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values, arrays in the order of ``systems``; None where a value does not exist."""
        rows = [self._row(i) for i in range(len(self.systems))]
        return {
            "measure": self.measure,
            "clock": self.clock,
            "systems": list(self.systems),
            "status": self.status,
            "message": self.message,
            "scale": self.scale,
            "level": self.level,
            "alpha": self.alpha,
            "bootstrap": self.bootstrap,
            "seed": self.seed,
            "ranked_by": self.ranked_by,
            "replicates": dict(self.replicates),
            "theta": [row["score"] for row in rows],
            "interval": [[row["low"], row["high"]] for row in rows],
            "percentile_interval": [[row["percentile_low"], row["percentile_high"]] for row in rows],
            "rank": [row["rank"] for row in rows],
            "rank_interval": [[row["rank_low"], row["rank_high"]] for row in rows],
            "share_first": [row["share_first"] for row in rows],
            "mean_preference_over_rivals": [row["mean_preference"] for row in rows],
            "copeland": [row["copeland"] for row in rows],
            "instances": [row["instances"] for row in rows],
            "reasons": list(self.reasons),
            "rank_reason": self.rank_reason,
            "groups": [list(group) for group in self.groups],
        }

    def to_frame(self) -> polars.DataFrame:
        """A row per system, first to last."""
        import polars as pl

        reals = (
            "score",
            "low",
            "high",
            "percentile_low",
            "percentile_high",
            "share_first",
            "mean_preference",
        )
        types: dict[str, Any] = dict.fromkeys(reals, pl.Float64) | {
            "system": pl.String,
            "groups": pl.List(pl.Int64),
            "reason": pl.String,
        }
        rows = self.rows()
        names = list(self._row(0)) if self.systems else ["rank", "system", "score"]
        return pl.DataFrame(
            {name: pl.Series([row[name] for row in rows], dtype=types.get(name, pl.Int64)) for name in names}
        )

    def __repr__(self) -> str:
        on = f" by {self.clock}" if self.clock else ""
        width = max([6, *map(len, self.systems)])
        percent = f"{100 * self.level:g} %"
        lines = [
            f"{self.measure.upper()}{on}: {len(self.systems)} systems, ranked by {self.ranked_by}",
            f"rank  {'ranks':>7}  {'system':<{width}}  {SCALES[self.scale]:>9}  {percent + ' interval':>20}  first  group",
        ]
        for row in self.rows():
            lines.append(
                f"{row['rank']:>4}  {row['rank_low']}–{row['rank_high']:<5}".ljust(13)
                + f"  {row['system']:<{width}}  {_shown(row['score'], self.scale):>9}"
                + f"  {_range(row['low'], row['high'], self.scale):>20}"
                + f"  {'' if row['share_first'] is None else format(row['share_first'], '5.0%')}"
                + f"  {_letters(row['groups'])}"
            )
        if self.status != "ok":
            lines.append(f"{self.status}: {self.message}")
        if self.rank_reason:
            lines.append(f"no interval of ranks: {self.rank_reason}")
        for reason in dict.fromkeys(filter(None, self.reasons)):
            names = [name for name, why in zip(self.systems, self.reasons, strict=True) if why == reason]
            shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            lines.append(f"no interval for {shown}: {reason}")
        return "\n".join(lines)


def _shown(value: float | None, scale: str) -> str:
    return "–" if value is None else f"{value:.0f}" if scale == "elo" else f"{value:+.3f}"


def _range(low: float | None, high: float | None, scale: str) -> str:
    return "–" if low is None or high is None else f"[{_shown(low, scale)}, {_shown(high, scale)}]"


def _letters(groups: list[int]) -> str:
    return "".join(chr(96 + number) if number <= 26 else f"({number})" for number in groups)
