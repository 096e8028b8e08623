"""How long an epsilon-policy takes to each level, exactly: by propagating the distribution over states.

The policy takes the planner's action with probability 1 - epsilon and any action with equal probability
otherwise. A state's level never falls, so the states fall into bands, one per level, that are passed in
order; the mass that enters a band at a step is the chance that its level is earned at that step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import UsageError
from torchpref.sgrl.tabular import FloatArray, TabularTask


@dataclass(frozen=True)
class ExactTimes:
    """Distributions of times, in steps, up to a horizon.

    ``levels``   float64 ``[level]``, ascending
    ``reached``  float64 ``[policy, level, step]``: chance that the level was earned by step 0, 1, ... horizon
    ``waited``   float64 ``[policy, level, step]``: chance that the level was earned within the horizon and
                 at most so many steps after the level before it (for the first level: after the start)
    """

    levels: FloatArray
    reached: FloatArray
    waited: FloatArray


@dataclass(frozen=True)
class _Band:
    """The states of one level: both policies' transitions inside it, and to where the next is entered.

    ``inside`` and ``onward`` hold the planner's matrix above that of the random policy, ``[2 x to, from]``;
    ``backward`` is ``inside`` the other way round, ``leaving`` ``[2, state]`` the chance to leave for the
    next band; ``leave`` int64 ``[entry]`` are the positions of its entry states in the next band.
    """

    size: int
    inside: Any
    onward: Any
    backward: Any
    leaving: FloatArray
    leave: NDArray[np.int64]


def exact_times(task: TabularTask, epsilons: Sequence[float], horizon: int, instance: int = 0) -> ExactTimes:
    """Distributions of the time to every level, and of the waiting time between levels, under each epsilon.

    Raises ValueError if a step can earn several levels at once, which no step of the suite's tasks does.
    """
    levels = task.levels
    chance = np.asarray(epsilons, dtype=np.float64)
    rank = np.searchsorted(levels, task.level, side="right")
    if bool((rank[task.successors] > rank[:, None] + 1).any()):
        raise ValueError("one step earns several levels at once: waiting times between them are not defined")
    members = [np.flatnonzero(rank == k) for k in range(len(levels) + 1)]
    bands = _bands(task, members)

    start = task.starts[instance]
    if rank[start] != 0:
        raise ValueError(f"instance {task.instances[instance]} starts with level {task.level[start]}, not with 0")
    mass = [np.zeros((band.size, len(chance))) for band in bands]
    mass[0][np.searchsorted(members[0], start)] = 1.0
    arrived = [np.zeros((horizon + 1, len(band.leave), len(chance))) for band in bands]
    for step in range(1, horizon + 1):
        for k in reversed(range(len(bands))):
            moved = _mix(bands[k].onward @ mass[k], chance)
            mass[k] = _mix(bands[k].inside @ mass[k], chance)
            arrived[k][step] = moved
            if k + 1 < len(bands):
                mass[k + 1][bands[k].leave] += moved

    shape = (len(chance), len(levels), horizon + 1)
    reached, waited = np.empty(shape), np.zeros(shape)
    for k, come in enumerate(arrived):
        reached[:, k] = come.sum(axis=1).cumsum(axis=0).T
        if k == 0:
            waited[:, 0] = reached[:, 0]
            continue
        within = _left_within(bands[k], chance, horizon)[:, bands[k - 1].leave]
        for step in range(1, horizon + 1):
            rest = horizon - step
            gained = np.einsum("nep,ep->pn", within[: rest + 1], arrived[k - 1][step])
            waited[:, k, : rest + 1] += gained
            waited[:, k, rest + 1 :] += gained[:, -1:]
    return ExactTimes(levels, reached, waited)


def _bands(task: TabularTask, members: list[NDArray[np.int64]]) -> list[_Band]:
    from scipy import sparse

    states, actions = task.successors.shape
    every = np.arange(states)
    planned = sparse.csr_array((np.ones(states), (every, task.successors[every, task.planner])), (states, states))
    share = np.full(states * actions, 1.0 / actions)
    drawn = sparse.csr_array((share, (every.repeat(actions), task.successors.ravel())), (states, states))
    bands = []
    for here, beyond in zip(members[:-1], members[1:], strict=True):
        stay = [matrix[here][:, here] for matrix in (planned, drawn)]
        go = [matrix[here][:, beyond] for matrix in (planned, drawn)]
        leave = np.flatnonzero(go[1].sum(axis=0) > 0)
        bands.append(
            _Band(
                size=len(here),
                inside=sparse.vstack([matrix.T for matrix in stay], format="csr"),
                onward=sparse.vstack([matrix[:, leave].T for matrix in go], format="csr"),
                backward=sparse.vstack(stay, format="csr"),
                leaving=np.stack([np.asarray(matrix.sum(axis=1)).ravel() for matrix in go]),
                leave=leave,
            )
        )
    return bands


def _mix(both: FloatArray, chance: FloatArray) -> FloatArray:
    """The planner's part stacked on the random one, ``[2 x row, policy]``, mixed to ``[row, policy]``."""
    half = len(both) // 2
    result: FloatArray = both[:half] * (1 - chance) + both[half:] * chance
    return result


def _left_within(band: _Band, chance: FloatArray, horizon: int) -> FloatArray:
    """Chance to have left the band within n steps, ``[n = 0 ... horizon, state, policy]``."""
    out = band.leaving[0][:, None] * (1 - chance) + band.leaving[1][:, None] * chance
    result = np.zeros((horizon + 1, band.size, len(chance)))
    for step in range(1, horizon + 1):
        result[step] = out + _mix(band.backward @ result[step - 1], chance)
    return result


def sooner(chances: FloatArray) -> FloatArray:
    """Chance that one policy gets there sooner than another, less the chance that it gets there later.

    ``chances`` float64 ``[policy, level, step]`` are distributions as in :class:`ExactTimes`; what is left at
    the horizon never gets there. Returns float64 ``[policy, policy, level]``, antisymmetric in the policies,
    for independent runs.
    """
    at = np.diff(chances, axis=2, prepend=0.0)
    later = np.einsum("alt,blt->abl", at, 1.0 - chances)
    result: FloatArray = later - later.swapaxes(0, 1)
    return result


def expected_preference(times: ExactTimes, measure: str) -> FloatArray:
    """Expected RPP or IPP between policies on an instance, float64 ``[policy, policy]``; positive prefers the
    first.

    The levels of the suite are earned in order, so both measures are sums over levels of the level's height
    times the sign of a difference of times, or of waiting times, and their expectation needs no joint
    distribution.
    """
    chances = {"rpp": times.reached, "ipp": times.waited}.get(measure.lower())
    if chances is None:
        raise UsageError(f"the exact expectation is there for rpp and ipp, not for {measure!r}")
    result: FloatArray = sooner(chances) @ np.diff(times.levels, prepend=0.0)
    return result
