"""A check for continuous integration: is the new system worse than the one it replaces?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from torchpref.errors import UsageError
from torchpref.evaluation.comparison import FLIPS
from torchpref.evaluation.two_systems import two_systems
from torchpref.pairwise.preferences import Preferences, Weights, preferences
from torchpref.report.numbers import counted
from torchpref.runs.curves import Grid
from torchpref.runs.measures import ALPHA, JUDGE
from torchpref.runs.plain import plain
from torchpref.stats.resampling.instances import Seed, resolve_seed
from torchpref.stats.significance.effects import pair_effects
from torchpref.stats.significance.pair_tests import METHODS, sign_flip_tests

if TYPE_CHECKING:
    import polars

    from torchpref.runs.trajectories import Trajectories


@dataclass(frozen=True)
class GateResult:
    """What :func:`gate` decides. Values above 0 prefer the new system.

    Attributes:
        worse: whether the new system is worse: significantly, beyond the margin and by at least the least effect.
        line: the decision in one line.
        base, new: names.
        measure, clock: compared by.
        known_times: whether any run of the two has a known time on the clock; if not, only what was reached is compared.
        mean: Δ̄(new, base).
        low, high: its two-sided interval at level 1 − 2α, whose upper limit is the one-sided limit at 1 − α.
        level: 1 − 2α.
        p: one-sided p of "not worse than the margin".
        method: how p was found.
        instances, decided: shared instances, and those with Δ ≠ 0.
        margin, min_effect, alpha: as asked for.
    """

    worse: bool
    line: str
    base: str
    new: str
    measure: str
    clock: str | None
    mean: float
    low: float
    high: float
    level: float
    p: float
    method: str
    instances: int
    decided: int
    margin: float
    min_effect: float
    alpha: float
    known_times: bool = True

    @property
    def exit_code(self) -> int:
        """1 if the new system is worse, else 0."""
        return int(self.worse)

    def __str__(self) -> str:
        return self.line

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None where a value does not exist."""
        values = vars(self) | {"exit_code": self.exit_code}
        return {key: plain(value) if isinstance(value, float) else value for key, value in values.items()}

    def to_frame(self) -> polars.DataFrame:
        """One row, with a column per entry of :meth:`to_dict`."""
        import polars as pl

        return pl.DataFrame([self.to_dict()])


def gate(
    runs: Trajectories,
    base: str,
    new: str,
    *,
    measure: str = JUDGE,
    margin: float = 0.0,
    min_effect: float = 0.0,
    alpha: float = ALPHA,
    clock: str | None = None,
    weights: Weights = "instance",
    grid: Grid = "exact",
    seed: Seed = 0,
) -> GateResult:
    """Whether ``new`` is significantly worse than ``base``.

    Args:
        runs: the runs of both, on the same instances.
        base, new: names of the systems.
        measure: what is compared.
        margin: how much worse is acceptable, as a mean preference in [0, 1). With 0 the one-sided sign-flip test decides,
            else the upper t limit of Δ̄(new, base) must lie below −margin.
        min_effect: besides being significant, Δ̄ must be at most −min_effect; for benchmarks so large that trifles are
            significant.
        alpha: chance of failing a system that is not worse.
        clock, weights, grid: as in :func:`torchpref.preferences`.
        seed: for a simulated p-value.

    Raises:
        UsageError: an unknown system or measure, a margin or effect outside [0, 1).
        DataError: the two share no instance.
    """
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is the chance of failing a system that is not worse, between 0 and 1; got {alpha!r}")
    level = 1 - 2 * alpha if alpha < 0.5 else 0.5
    for name, value in (("margin", margin), ("min_effect", min_effect)):
        if not 0 <= value < 1:
            raise UsageError(f"{name} is a mean preference of at least 0 and below 1, got {value!r}")
    from torchpref.runs.checks import known_times

    two, values = two_systems(runs, base, new, weights)
    prefs = preferences(two, measure, clock=clock, weights=values, grid=grid)
    _, sign = prefs.pair_index(new, base)
    effects = pair_effects(prefs, level)
    mean = sign * float(effects.mean[0]) + 0.0
    low, high = sorted((sign * float(effects.low[0]), sign * float(effects.high[0])))
    decided, instances = int(effects.decided[0]), int(effects.instances[0])
    tests = sign_flip_tests(prefs, alpha, FLIPS, resolve_seed(seed))
    p, method = 1.0 if mean >= 0 else float(tests.one_sided[0]), METHODS[int(tests.methods[0])]
    if margin > 0:
        p, method = (
            _margin_p(sign * float(effects.centre[0]), float(effects.error[0]), float(effects.degrees[0]), margin),
            "t",
        )
    known = prefs.clock is not None and known_times(two, prefs.clock)
    worse = bool(p <= alpha and mean <= -min_effect and mean < -margin)
    return GateResult(
        worse=worse,
        line=_line(worse, base, new, prefs, mean, low, high, level, p, decided, margin, min_effect, alpha, known),
        base=base,
        new=new,
        measure=prefs.measure,
        clock=prefs.clock,
        mean=mean,
        low=low,
        high=high,
        level=level,
        p=p,
        method=method,
        instances=instances,
        decided=decided,
        margin=margin,
        min_effect=min_effect,
        alpha=alpha,
        known_times=known,
    )


def _margin_p(centre: float, error: float, degrees: float, margin: float) -> float:
    """One-sided p of a mean of at least −margin; 1 with fewer than two instances."""
    from scipy.special import stdtr

    if not degrees > 0:
        return 1.0
    return float(stdtr(degrees, (centre + margin) / error))


def _line(
    worse: bool,
    base: str,
    new: str,
    prefs: Preferences,
    mean: float,
    low: float,
    high: float,
    level: float,
    p: float,
    decided: int,
    margin: float,
    min_effect: float,
    alpha: float,
    known: bool,
) -> str:
    on = f" by {prefs.clock}" if known else ""
    if prefs.clock and not known:
        on = ", no times known and so only what was reached compared,"
    count = counted(len(prefs.instances), "instance")
    limits = "" if np.isnan(low) else f", {100 * level:g} % interval {low:+.3f} to {high:+.3f},"
    facts = (
        f"{prefs.measure.upper()}{on} of {new} against {base}: mean {mean:+.3f}{limits} over {count}, "
        f"{decided} decided, one-sided p = {p:.3g}"
    )
    beyond = f" beyond the margin {margin:g}" if margin else ""
    if worse:
        return f"worse{beyond}: {facts}, at most {alpha:g}"
    if p <= alpha:
        return f"not worse: {facts}; significant, but smaller than {max(margin, min_effect):g}"
    needed = int(np.ceil(-np.log2(alpha)))
    few = (
        f"; too few to tell, {needed} decided instances are the least"
        if decided < needed and mean < 0 and not margin
        else ""
    )
    return f"not significantly worse{beyond}: {facts}, above {alpha:g}{few}"
