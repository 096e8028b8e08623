"""The planned order of instances, how far each system has come in it, and Δ of a pair along it.

Only the unbroken stretch from the first instance counts: a result that arrives before an earlier one waits. A run that was
given up counts as Δ = 0 and lets the stretch go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray

from torchpref.errors import DataError, UsageError
from torchpref.pairwise.preferences import Preferences
from torchpref.pairwise.run_sums import RunSums, run_presence, run_sums
from torchpref.stats.sequential.looks import OrderedPair
from torchpref.stats.sequential.order import random_order
from torchpref.stats.sequential.paths import UNIT, Pooled

if TYPE_CHECKING:
    from torchpref.runs.trajectories import Trajectories

#: An instance by its benchmark and name; the benchmark is empty where there is none or nothing of it was read yet.
Instance = tuple[str, str]
#: Names of instances, or "gaps": whatever a system lacks before the last instance that it finished.
GivenUp = Sequence[str] | Literal["gaps"]


def shown(instance: Instance) -> str:
    """The name of an instance as it is written in messages and state files."""
    benchmark, name = instance
    return f"{benchmark}/{name}" if benchmark else name


@dataclass(frozen=True, eq=False)
class Plan:
    """The planned instances in their order.

    Attributes:
        order: all N of them.
        row: int64 ``[position]``, where each stands among the runs' instances; −1 for one that nobody has run yet.
        family: int64 ``[position]``, position of the first instance of the same family, its own where it is of none.
        unknown: bool ``[position]``, instances of which the family is not known yet, because nobody has run them.
    """

    order: tuple[Instance, ...]
    row: Int[np.ndarray, " position"]
    family: Int[np.ndarray, " position"]
    unknown: Bool[np.ndarray, " position"]

    @property
    def planned(self) -> int:
        """N."""
        return len(self.order)


def plan_of(runs: Trajectories, planned: int, order: Sequence[str] | None, seed: int) -> Plan:
    """The planned order: the one that is given, else a random order of the instances in the runs by the seed.

    Args:
        runs: the runs.
        planned: N; of a longer order only the first N are ever looked at.
        order: names of instances, or benchmark/name.
        seed: of the random order.

    Raises:
        UsageError: fewer instances than planned, an instance named twice, a name that stands in several benchmarks.
    """
    if isinstance(planned, bool) or not isinstance(planned, int) or planned < 1:
        raise UsageError(f"planned is the number of instances that will be run at most, at least 1; got {planned!r}")
    known = list(zip(runs.benchmarks, runs.instances, strict=True))
    if order is None:
        names = random_order(known, seed)
        if len(names) < planned:
            raise UsageError(
                f"{planned} instances are planned and the logs name {len(names)}: which come next is not known. Give the "
                f"order of all of them (order=, --order FILE), or plan at most {len(names)}"
            )
    else:
        names = _resolved(order, known)
        if len(names) < planned:
            raise UsageError(f"{planned} instances are planned, but the order names {len(names)}")
    names = names[:planned]
    rows = {name: row for row, name in enumerate(known)}
    row = np.array([rows.get(name, -1) for name in names], dtype=np.int64)
    family, first = np.arange(planned), dict[tuple[str, str], int]()
    if runs.families is not None:
        for position, at in enumerate(row.tolist()):
            label = runs.families[at] if at >= 0 else None
            if label is not None:
                family[position] = first.setdefault((runs.benchmarks[at], label), position)
    unknown = (row < 0) & (runs.families is not None)
    return Plan(tuple(names), row, family, unknown)


def _resolved(order: Sequence[str], known: list[Instance]) -> list[Instance]:
    by_name: dict[str, list[Instance]] = {}
    for instance in known:
        by_name.setdefault(instance[1], []).append(instance)
    whole = {shown(instance): instance for instance in known}
    names: list[Instance] = []
    for text in map(str, order):
        found = by_name.get(text, [])
        if text in whole:
            names.append(whole[text])
        elif len(found) > 1:
            raise UsageError(f"instance {text!r} of the order stands in several benchmarks; write benchmark/{text}")
        else:
            names.append(found[0] if found else ("", text))
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise UsageError(f"instance {shown(twice[0])!r} stands {names.count(twice[0])} times in the order; wanted once")
    return names


@dataclass(frozen=True, eq=False)
class Progress:
    """How far each system has come.

    Attributes:
        finished: bool ``[position, system]``, whether it has a run.
        done: bool ``[position, system]``, whether it has a run or it was given up.
        reach: int64 ``[system]``, length of the unbroken stretch of what is done.
    """

    finished: Bool[np.ndarray, "position system"]
    done: Bool[np.ndarray, "position system"]
    reach: Int[np.ndarray, " system"]

    @property
    def waiting(self) -> NDArray[np.int64]:
        """``[system]``: runs behind a gap, which wait for an earlier one."""
        position = np.arange(len(self.done))[:, None]
        return np.asarray((self.finished & (position >= self.reach)).sum(axis=0))


def progress_of(runs: Trajectories, plan: Plan, given_up: GivenUp = (), final: bool = False) -> Progress:
    """How far each system has come in the planned order.

    Args:
        runs: the runs.
        plan: the order.
        given_up: instances that no system will run, or ``"gaps"``.
        final: no run is to come: gaps are given up.

    Raises:
        UsageError: an instance that was given up is not planned.
    """
    ran = runs.present.any(-1).cpu().numpy()
    finished = np.zeros((plan.planned, len(runs.systems)), dtype=bool)
    here = plan.row >= 0
    finished[here] = ran[plan.row[here]]
    done = finished.copy()
    if given_up == "gaps" or final:
        done |= np.logical_or.accumulate(finished[::-1], axis=0)[::-1]
    if not isinstance(given_up, str):
        places: dict[str, list[int]] = {}
        for position, instance in enumerate(plan.order):
            for text in {shown(instance), instance[1]}:
                places.setdefault(text, []).append(position)
        for text in given_up:
            if text not in places:
                raise UsageError(f"instance {text!r} was given up but is not among the {plan.planned} planned ones")
            done[places[text]] = True
    elif given_up != "gaps":
        raise UsageError(f"given_up is a list of instances or 'gaps', got {given_up!r}")
    reach = np.where(done.all(axis=0), plan.planned, np.argmin(done, axis=0))
    return Progress(finished, done, reach.astype(np.int64))


def ordered_pair(prefs: Preferences, plan: Plan, first: str, second: str, seen: int) -> OrderedPair:
    """Δ(first, second) on the first ``seen`` planned instances, with families and runs that were unequally many.

    Args:
        prefs: of these two systems at least.
        plan: the order.
        first, second: names.
        seen: how many instances to look at.
    """
    pair, sign = prefs.pair_index(first, second)
    return next(ordered_pairs(prefs, plan, [(pair, sign, seen)]))


def ordered_pairs(prefs: Preferences, plan: Plan, wanted: Iterable[tuple[int, int, int]]) -> Iterator[OrderedPair]:
    """Δ of some pairs along the order.

    Args:
        prefs: the preferences.
        plan: the order.
        wanted: per pair its position, the sign that its Δ is turned by, and how many instances to look at.
    """
    whole, counts = scaled(prefs), run_presence(prefs).sum(-1).numpy()
    ends = prefs.pairs.cpu().numpy()
    for pair, sign, seen in wanted:
        rows = plan.row[:seen]
        a, b = ends[pair] if sign > 0 else ends[pair][::-1]
        delta = np.where(rows >= 0, sign * whole[rows, pair], 0)
        first, second = counts[rows, a], counts[rows, b]
        unequal = np.flatnonzero((rows >= 0) & (first > 0) & (second > 0) & (first != second))
        pooled: list[Pooled | None] = [None] * seen
        if len(unequal):
            position = dict(zip(rows[unequal].tolist(), unequal.tolist(), strict=True))
            for runs in run_sums(prefs, torch.tensor(sorted(position))):
                place = position[runs.instance]
                together = _pooled(runs, int(a), int(b), prefs.unit)
                pooled[place], delta[place] = together, together.totals[: together.first].sum()
        yield OrderedPair(delta, plan.family[:seen], tuple(pooled))


def _pooled(runs: RunSums, a: int, b: int, unit: int) -> Pooled:
    """The runs of two systems on one instance, those of the first before those of the second."""
    of_a = torch.nonzero(runs.system == a).squeeze(-1)
    of_b = torch.nonzero(runs.system == b).squeeze(-1)
    both = torch.cat([of_a, of_b])
    totals = (runs.against[both, a] + runs.against[both, b]).numpy()
    return Pooled(np.rint(totals * (UNIT / unit / (len(of_a) * len(of_b)))).astype(np.int64), len(of_a))


def scaled(prefs: Preferences) -> Int[np.ndarray, "instance pair"]:
    """Δ in parts of 1/UNIT, rounded as an odd function; 0 where a pair is not compared."""
    sums, pairs = prefs.sums.cpu().numpy(), np.maximum(prefs.trial_pairs.cpu().numpy(), 1)
    if UNIT % prefs.unit:
        return np.asarray(np.rint(sums / (pairs * float(prefs.unit)) * UNIT), dtype=np.int64)
    whole = np.abs(sums) * (UNIT // prefs.unit)
    return np.asarray(np.sign(sums) * ((2 * whole + pairs) // (2 * pairs)), dtype=np.int64)


def family_means(pair: OrderedPair, plan: Plan, complete: bool) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Mean Δ of every family, in the order in which families become complete, and after how many instances each is.

    Args:
        pair: Δ of the instances seen.
        plan: all planned instances with their families.
        complete: no instance is to come, so that every family that has begun is complete.
    """
    seen = len(pair.delta)
    last, planned_family = dict[int, int](), plan.family
    for position, first in enumerate(planned_family.tolist()):
        last[first] = position
    means, when = [], []
    if complete or not plan.unknown.any():
        for first in sorted(set(pair.family.tolist()), key=lambda one: min(last[one], seen - 1)):
            if last[first] < seen or complete:
                means.append(pair.delta[pair.family == first].mean() / UNIT)
                when.append(min(last[first], seen - 1) + 1)
    return np.array(means), np.array(when, dtype=np.int64)


def check_unit_weights(weights: object) -> None:
    """Looks count every instance once.

    Raises:
        UsageError: other weights are asked for.
    """
    if not (isinstance(weights, str) and weights == "instance"):
        raise UsageError("looks while runs arrive count every instance once; weights are for results that are complete")


def check_names(runs: Trajectories, names: Sequence[str]) -> None:
    """Raises DataError where a system has no run at all."""
    for name in names:
        if name not in runs.systems:
            from torchpref.runs.names import name_hint

            raise UsageError(f"no system {name!r}; {name_hint(name, runs.systems, 'system')}")
    if len(set(names)) < len(names):
        raise UsageError(f"a system is not compared with itself: {names[0]!r}")
    if not len(runs.instances):
        raise DataError("the logs hold no instance")
