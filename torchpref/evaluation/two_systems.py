"""The part of the runs that concerns two systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchpref.errors import DataError, UsageError
from torchpref.pairwise.preferences import Weights
from torchpref.runs.names import name_hint

if TYPE_CHECKING:
    from torchpref.runs.trajectories import Trajectories


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
