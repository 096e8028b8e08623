"""The part of the runs that concerns two systems, and a plan for these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchpref.errors import DataError, UsageError
from torchpref.pairwise.preferences import Weights
from torchpref.runs.names import name_hint

if TYPE_CHECKING:
    from torchpref.runs.curves import Grid
    from torchpref.runs.trajectories import Trajectories
    from torchpref.stats.planning.planning import Plan


def two_systems(runs: Trajectories, first: str, second: str, weights: Weights) -> tuple[Trajectories, Weights]:
    """The runs of two systems on the instances that both ran, and the weights of these instances."""
    from torchpref.pairwise.preferences import instance_weights

    places = []
    for name in (first, second):
        if name not in runs.systems:
            raise UsageError(f"no system {name!r}; {name_hint(str(name), runs.systems, 'system')}")
        places.append(runs.systems.index(name))
    if places[0] == places[1]:
        raise UsageError(f"a system is not compared with itself: {first!r}")
    here = runs.present.any(-1)
    shared = (here[:, places[0]] & here[:, places[1]]).nonzero().squeeze(-1)
    if not len(shared):
        raise DataError(f"{first!r} and {second!r} share no instance; nothing can be compared")
    values = instance_weights(runs, weights)[shared.cpu()]
    return runs.take(systems=sorted(places), instances=shared.tolist()), values


def plan_two(
    runs: Trajectories,
    first: str,
    second: str,
    *,
    measure: str,
    power: float,
    margin: float,
    alpha: float,
    trials: Sequence[int] | None,
    clock: str | None,
    weights: Weights,
    grid: Grid,
) -> Plan:
    """:func:`torchpref.plan` for two systems; with a margin, to show that ``second`` is fine.

    Raises:
        DataError: fewer than ten instances are decided, or none is shared.
    """
    from torchpref.pairwise.preferences import preferences
    from torchpref.stats.planning.planning import LEAST_TO_PLAN, TRIALS, plan

    two, values = two_systems(runs, first, second, weights)
    prefs = preferences(two, measure, clock=clock, weights=values, grid=grid)
    decided = int((prefs.delta.nan_to_num() != 0).sum())
    if decided < LEAST_TO_PLAN:
        raise DataError(
            f"{first!r} and {second!r} differ on {decided} of {len(prefs.instances)} instances by {prefs.measure.upper()}: too "
            f"few to plan by, {LEAST_TO_PLAN} are the least; run more instances first"
        )
    new = second if margin > 0 else None
    return plan(prefs, power=power, alpha=alpha, correction="none", margin=margin, new=new, trials=trials or TRIALS)
