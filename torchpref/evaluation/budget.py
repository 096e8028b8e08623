"""Rankings as the allowed time or cost grows: who is ahead when everybody must stop at so much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchpref.errors import DataError, UsageError
from torchpref.pairwise.preferences import Weights, preferences
from torchpref.pairwise.square import missing
from torchpref.runs.measures import describe
from torchpref.runs.plain import plain
from torchpref.runs.trajectories import Trajectories
from torchpref.runs.units import MILLION
from torchpref.stats.bradley_terry.model import bradley_terry
from torchpref.stats.ranking.ranking import places

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Crossing:
    """Two systems that change places between two budgets.

    Attributes:
        after, by: the budgets before and at the change.
        rising, falling: the system that is ahead afterwards, and the one that was before.
        rank: the rank that the rising system has afterwards.
    """

    after: float
    by: float
    rising: str
    falling: str
    rank: int


@dataclass(frozen=True, eq=False, repr=False)
class BudgetCurves:
    """Order and scores at every budget.

    Attributes:
        measure: short name of the measure.
        clock: the clock of the budget.
        systems: names.
        budgets: in the clock's unit, ascending.
        score: float64 ``[budget, system]``, Bradley–Terry scores in log-odds; NaN where there is none.
        mean_preference: float64 ``[budget, system]``, mean over rivals.
        rank: int64 ``[budget, system]``.
        solved: float64 ``[budget, system]``, share of the system's runs that succeed within the budget.
    """

    measure: str
    clock: str
    systems: tuple[str, ...]
    budgets: tuple[float, ...]
    score: Float[Tensor, "budget system"]
    mean_preference: Float[Tensor, "budget system"]
    rank: Int[Tensor, "budget system"]
    solved: Float[Tensor, "budget system"]

    @property
    def leaders(self) -> tuple[tuple[str, ...], ...]:
        """Who is first at each budget; several where they tie."""
        return tuple(
            tuple(name for name, place in zip(self.systems, row, strict=True) if place == 1)
            for row in self.rank.tolist()
        )

    @property
    def leader_changes(self) -> int:
        """How often the first place goes to another system as the budget grows."""
        leaders = [lead for lead in self.leaders if len(lead) < len(self.systems)]
        return sum(not set(now) & set(before) for before, now in zip(leaders, leaders[1:], strict=False))

    def crossings(self, within: int | None = None) -> tuple[Crossing, ...]:
        """Pairs that change places from one budget to the next.

        Args:
            within: only changes after which the rising system has at most this rank.
        """
        found = []
        for number in range(1, len(self.budgets)):
            before, now = self.rank[number - 1], self.rank[number]
            turned = (before[:, None] > before[None, :]) & (now[:, None] < now[None, :])
            for rising, falling in turned.nonzero().tolist():
                if within is None or int(now[rising]) <= within:
                    found.append(
                        Crossing(
                            self.budgets[number - 1],
                            self.budgets[number],
                            self.systems[rising],
                            self.systems[falling],
                            int(now[rising]),
                        )
                    )
        return tuple(found)

    def to_frame(self) -> polars.DataFrame:
        """A row per budget and system."""
        import polars as pl

        size = len(self.systems)
        return pl.DataFrame(
            {
                "budget": np.repeat(np.array(self.budgets), size),
                "system": list(self.systems) * len(self.budgets),
                "rank": self.rank.flatten().numpy(),
                "score": self.score.flatten().numpy(),
                "mean_preference": self.mean_preference.flatten().numpy(),
                "solved": self.solved.flatten().numpy(),
            }
        ).with_columns(pl.col(pl.Float64).fill_nan(None))

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None where there is none."""

        return {
            "measure": self.measure,
            "clock": self.clock,
            "systems": list(self.systems),
            "budgets": list(self.budgets),
            "score": plain(self.score),
            "mean_preference": plain(self.mean_preference),
            "rank": self.rank.tolist(),
            "solved": plain(self.solved),
            "crossings": [vars(crossing) for crossing in self.crossings()],
        }

    def __repr__(self) -> str:
        lines = [
            f"{self.measure.upper()} within a budget of {self.clock}: {self.leader_changes} changes of the first place"
        ]
        for budget, lead, row in zip(self.budgets, self.leaders, self.solved.tolist(), strict=True):
            best = max((value for value in row if value == value), default=float("nan"))
            shown = ", ".join(lead[:3]) + (f" and {len(lead) - 3} more" if len(lead) > 3 else "")
            lines.append(f"  {budget:>12.6g}  {shown}  (most solved {100 * best:.1f} %)")
        return "\n".join(lines)


def budget_curves(
    runs: Trajectories,
    measure: str = "sr",
    *,
    clock: str | None = None,
    budgets: Sequence[float] | int = 25,
    weights: Weights = "instance",
) -> BudgetCurves:
    """Rank systems by what they had reached within growing budgets.

    Args:
        runs: the runs.
        measure: what is compared; ``sr`` counts what is solved within the budget.
        clock: the clock of the budget, on which times are compared as well.
        budgets: in the clock's unit; or how many, spread evenly on a logarithmic scale over the times at which runs reach
            what they reach.
        weights: of instances, see :func:`torchpref.preferences`.

    Raises:
        UsageError: no such clock or measure, or budgets that are not above 0.
        DataError: no time is known.
    """
    measure = describe(measure).name
    clock = runs.clock(clock)
    limits = _budgets(runs, clock, budgets)
    size = len(runs.systems)
    score, mean, solved = (missing((len(limits), size)) for _ in range(3))
    rank = torch.zeros((len(limits), size), dtype=torch.int64)
    count = runs.present.sum((0, 2)).double().cpu()
    for number, limit in enumerate(limits):
        cut = runs.until(limit, clock)
        prefs = preferences(cut, measure, clock=clock if describe(measure).temporal else None, weights=weights)
        fit = bradley_terry(prefs)
        mean[number] = prefs.system_means().cpu()
        score[number] = fit.theta.cpu()
        rank[number], _ = places(fit, mean[number])
        reached = (cut.returns[..., -1] >= MILLION) & cut.present
        solved[number] = reached.sum((0, 2)).double().cpu() / count
    return BudgetCurves(measure, clock, runs.systems, tuple(limits), score, mean, rank, solved)


def _budgets(runs: Trajectories, clock: str, budgets: Sequence[float] | int) -> list[float]:
    if not isinstance(budgets, Integral):
        try:
            limits = sorted({float(budget) for budget in budgets})  # type: ignore[union-attr]
        except (TypeError, ValueError) as error:
            raise UsageError(f"budgets must be a whole number or several numbers, got {budgets!r:.80}") from error
        if not limits or not limits[0] > 0:
            raise UsageError(f"budgets must be above 0, got {budgets!r}")
        return limits
    budgets = int(budgets)
    if budgets < 1:
        raise UsageError(f"at least one budget is needed, got {budgets!r}")
    returns, ticks = runs.returns, runs.times[clock]
    rises = torch.diff(returns, dim=-1, prepend=torch.zeros_like(returns[..., :1])) > 0
    times = ticks[rises & (ticks > 0) & runs.present.unsqueeze(-1)].double().cpu().numpy() * runs.resolution[clock]
    if not len(times):
        raise DataError(f"no run reaches anything at a known {clock}; there is no budget to vary")
    low, high = np.quantile(times, 0.01), times.max()
    if low == high or budgets == 1:
        return [float(high)]
    return sorted({float(limit) for limit in np.geomspace(low, high, budgets)})
