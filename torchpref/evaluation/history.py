"""A new system that ran a part, judged with the help of others' runs on all instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from torchpref.errors import UsageError
from torchpref.pairwise.preferences import preferences
from torchpref.runs.curves import Grid
from torchpref.runs.plain import plain
from torchpref.stats.sequential.history import LEAST_OTHERS, control_variate

if TYPE_CHECKING:
    from torchpref.runs.trajectories import Trajectories

#: Below this correlation the others' runs do not help.
USEFUL = 0.6


@dataclass(frozen=True)
class HistoryEstimate:
    """The mean preference over all N instances; values above 0 prefer the new system.

    Attributes:
        new, base: names.
        measure: short name.
        mean, low, high: the estimate with its interval, for this benchmark.
        low_new, high_new: the interval for new tasks like these.
        plain: the mean of the n instances alone.
        correlation: of the new system's preference with the others' mean: from .6 on history helps; NaN if undefined.
        instances, planned: n and N.
        others: names of the other systems.
        level: of the intervals.
    """

    new: str
    base: str
    measure: str
    mean: float
    low: float
    high: float
    low_new: float
    high_new: float
    plain: float
    correlation: float
    instances: int
    planned: int
    others: tuple[str, ...]
    level: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None where a value does not exist."""
        values = vars(self) | {"others": list(self.others)}
        return {key: plain(value) if isinstance(value, float) else value for key, value in values.items()}

    def __str__(self) -> str:
        if np.isnan(self.correlation):
            gain = "it does not vary together with the others', who do not help"
        else:
            gain = f"correlation {self.correlation:.2f} with the others'"
            gain += "" if self.correlation >= USEFUL else f", who help from {USEFUL:g} on"
        return (
            f"{self.measure.upper()} of {self.new} against {self.base} on all {self.planned} instances, from {self.instances} "
            f"and the runs of {len(self.others)} others: {self.mean:+.3f}, {100 * self.level:g} % interval {self.low:+.3f} to "
            f"{self.high:+.3f} (for new tasks {self.low_new:+.3f} to {self.high_new:+.3f}); {gain}"
        )


def history_estimate(
    runs: Trajectories,
    history: Trajectories,
    first: str,
    second: str,
    measure: str,
    *,
    clock: str | None = None,
    grid: Grid = "exact",
    level: float = 0.95,
) -> HistoryEstimate:
    """Estimate the mean preference over all instances that the base ran.

    Args:
        runs: the runs of both.
        history: the runs of the base and of at least three others, who ran every instance that the base ran.
        first, second: names; the one that ran fewer instances is the new system.
        measure, clock, grid: as in :func:`torchpref.preferences`.
        level: of the intervals.

    Raises:
        UsageError: fewer than three others, fewer than 15 instances, or the base is not in the history.
    """
    from scipy.special import stdtrit

    ran = runs.present.any(-1).sum(0)
    counts = {name: int(ran[runs.systems.index(name)]) for name in (first, second)}
    new, base = (first, second) if counts[first] <= counts[second] else (second, first)
    if base not in history.systems:
        raise UsageError(
            f"the history must hold the runs of {base!r} too; it holds {', '.join(history.systems[:5])}, …"
        )
    present = history.present.any(-1)
    of_base = present[:, history.systems.index(base)]
    others = [
        name
        for column, name in enumerate(history.systems)
        if name not in (new, base) and bool(present[of_base, column].all())
    ]
    if len(others) < LEAST_OTHERS:
        raise UsageError(
            f"history needs at least {LEAST_OTHERS} other systems that ran all {int(of_base.sum())} instances of {base}; "
            f"there {'is' if len(others) == 1 else 'are'} {len(others)}"
        )
    rows = of_base.nonzero().squeeze(-1).tolist()
    names = [(history.benchmarks[row], history.instances[row]) for row in rows]
    known = history.take(systems=sorted(map(history.systems.index, [*others, base])), instances=rows)
    z = np.zeros(len(rows))
    prefs = preferences(known, measure, clock=clock, grid=grid)
    for name in others:
        pair, sign = prefs.pair_index(name, base)
        z += sign * prefs.delta[:, pair].cpu().numpy()
    two = runs.take(systems=sorted((runs.systems.index(new), runs.systems.index(base))))
    prefs = preferences(two, measure, clock=clock, grid=grid)
    _, sign = prefs.pair_index(new, base)
    position = {name: place for place, name in enumerate(names)}
    shared, places = [], []
    for row in prefs.mask[:, 0].nonzero().squeeze(-1).tolist():
        place = position.get((two.benchmarks[row], two.instances[row]))
        if place is not None:
            shared.append(row)
            places.append(place)
    y = sign * prefs.delta[shared, 0].cpu().numpy()
    found = control_variate(y, z / len(others), np.array(places, dtype=np.int64))
    quantile = float(stdtrit(found.degrees, 0.5 + level / 2))

    def limits(error: float) -> tuple[float, float]:
        return max(-1.0, found.mean - quantile * error), min(1.0, found.mean + quantile * error)

    low, high = limits(found.error)
    low_new, high_new = limits(found.error_new)
    return HistoryEstimate(
        new=new,
        base=base,
        measure=prefs.measure,
        mean=found.mean,
        low=low,
        high=high,
        low_new=low_new,
        high_new=high_new,
        plain=found.plain,
        correlation=found.correlation,
        instances=len(y),
        planned=len(rows),
        others=tuple(others),
        level=level,
    )
