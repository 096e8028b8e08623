"""Suspicious things that show in the integers: each check gives findings with a count and the systems concerned."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from torchpref.findings import Finding, Severity
from torchpref.grid import LEVEL_PAD, Curves, curves
from torchpref.trajectories import MILLION, UNKNOWN, ZERO_IS_UNKNOWN, Trajectories

Array = NDArray[np.int64]
Flags = NDArray[np.bool_]
#: Levels closer than this, in millionths, that are not equal look like one level written in two ways.
CLOSE = 10_000
#: Where instances have more levels than this, returns are taken for continuous and close levels for ordinary.
MANY_LEVELS = 20
EXAMPLES = 3


@dataclass(frozen=True)
class Seen:
    """Runs with what several checks need, worked out once."""

    runs: Trajectories

    @cached_property
    def present(self) -> Flags:
        """``[instance, system, trial]``."""
        return np.asarray(self.runs.present.cpu().numpy())

    @cached_property
    def returns(self) -> NDArray[np.int32]:
        """``[instance, system, trial, step]`` in millionths."""
        return np.asarray(self.runs.returns.cpu().numpy())

    @cached_property
    def final(self) -> NDArray[np.int32]:
        """``[instance, system, trial]``: what each run reached."""
        if not self.returns.shape[-1]:
            return np.zeros(self.present.shape, dtype=np.int32)
        return self.returns[..., -1]

    @cached_property
    def rises(self) -> Flags:
        """Points at which a run reaches a level it had not reached before."""
        before = np.zeros((*self.returns.shape[:-1], 1), dtype=np.int32)
        risen = np.diff(self.returns, axis=-1, prepend=before) > 0
        return np.asarray(risen & self.present[..., None])

    def ticks(self, clock: str) -> Array:
        """``[instance, system, trial, step]`` of a clock."""
        return np.asarray(self.runs.times[clock].cpu().numpy())

    def curves(self, clock: str) -> Curves:
        """The jumps on a clock."""
        return curves(self.runs, clock).to("cpu")

    def names(self, system: Iterable[int] | NDArray[np.bool_]) -> tuple[str, ...]:
        """Names of systems by a mask or by positions."""
        if isinstance(system, np.ndarray) and system.dtype == np.bool_:
            system = np.flatnonzero(system)
        return tuple(self.runs.systems[int(i)] for i in sorted({int(i) for i in system}))

    def instance(self, position: int) -> str:
        """An instance in words."""
        benchmark = self.runs.benchmarks[position]
        return f"{benchmark} {self.runs.instances[position]}" if benchmark else self.runs.instances[position]

    def examples(self, mask: Flags) -> tuple[str, ...]:
        """The first instances of a mask over instances."""
        return tuple(self.instance(int(i)) for i in np.flatnonzero(mask)[:EXAMPLES])


def coverage(seen: Seen) -> Iterator[Finding]:
    """Instances that some systems lack, systems without a run, unequal numbers of trials."""
    trials = seen.present.sum(-1)
    there = trials > 0
    lacking = ~there & there.any(1)[:, None] & there.any(0)[None, :]
    some = lacking.any(1)
    yield from _finding(
        "missing_runs",
        "instances that some systems lack (a pair is compared on the instances that both ran); instances",
        int(some.sum()),
        seen.names(lacking.any(0)),
        seen.examples(some),
    )
    empty = ~there.any(0)
    yield from _finding(
        "systems_without_runs", "systems without a run of known outcome; systems", int(empty.sum()), seen.names(empty)
    )
    if there.any():
        sizes, counts = np.unique(trials[there], return_counts=True)
        usual = sizes[counts.argmax()]
        odd = there & (trials != usual)
        yield from _finding(
            "unequal_trials",
            f"the number of trials differs ({sizes[0]} to {sizes[-1]}, mostly {usual}); (instance, system) cells",
            int(odd.sum()),
            seen.names(odd.any(0)),
            seen.examples(odd.any(1)),
        )


def unknown_times(seen: Seen) -> Iterator[Finding]:
    """Levels reached at times that are not known or exactly 0, by clock and by outcome."""
    solved = seen.final >= MILLION
    outcomes: tuple[tuple[str, str, Flags], ...] = (
        ("solved", "successful runs", solved),
        ("partial", "runs without success that reached something", ~solved & (seen.final > 0)),
    )
    steps = np.arange(seen.returns.shape[-1]) < seen.runs.lengths.cpu().numpy()[..., None]
    for clock in seen.runs.clocks:
        ticks = seen.ticks(clock)
        unknown = (seen.rises & (ticks == UNKNOWN)).any(-1)
        zero = (seen.rises & (ticks == 0)).any(-1)
        for outcome, what, mask in outcomes:
            hit = unknown & mask
            yield from _finding(
                f"unknown_times_{outcome}",
                f"clock {clock!r}: {what} with a level reached at a time that is not known; runs",
                int(hit.sum()),
                seen.names(hit.any((0, 2))),
                seen.examples(hit.any((1, 2))),
            )
        for kind, value, what in (("unknown", UNKNOWN, "that is not known"), ("zero", 0, "of exactly 0")):
            nothing = seen.present & (seen.final == 0) & (steps & (ticks == value)).any(-1)
            yield from _finding(
                f"{kind}_times_nothing",
                f"clock {clock!r}: runs that reached nothing, at a time {what} (they need none); runs",
                int(nothing.sum()),
                seen.names(nothing.any((0, 2))),
                seen.examples(nothing.any((1, 2))),
                severity="note",
            )
        counted = clock in ZERO_IS_UNKNOWN and seen.runs.zero_time == "unknown"
        rule = "counted as unknown times" if counted else "kept"
        for outcome, what, mask in outcomes:
            hit = zero & mask
            yield from _finding(
                f"zero_times_{outcome}",
                f"clock {clock!r}: {what} with a level reached at exactly 0 ({rule}); runs",
                int(hit.sum()),
                seen.names(hit.any((0, 2))),
                seen.examples(hit.any((1, 2))),
            )


def unusable_clock(runs: Trajectories, clock: str | None = None) -> tuple[str, ...]:
    """Systems that reached something, but nothing at a known time on this clock: their temporal scores say nothing.

    A level at exactly 0 seconds, tokens or cost counts as ``runs.zero_time`` says.
    """
    seen = Seen(runs)
    return seen.names(_unusable(seen, runs.clock(clock)))


def _unusable(seen: Seen, clock: str) -> Flags:
    ticks = seen.ticks(clock)
    known = ticks != UNKNOWN
    if clock in ZERO_IS_UNKNOWN and seen.runs.zero_time == "unknown":
        known &= ticks != 0
    return np.asarray(seen.rises.any((0, 2, 3)) & ~(seen.rises & known).any((0, 2, 3)))


def clocks(seen: Seen) -> Iterator[Finding]:
    """Systems without a usable clock."""
    meant = _meant(seen.runs)
    for clock in seen.runs.clocks:
        hit = _unusable(seen, clock)
        yield from _finding(
            "unusable_clock",
            f"clock {clock!r}: systems that reached something, but nothing at a known time (no temporal scores); systems",
            int(hit.sum()),
            seen.names(hit),
            severity="warning" if clock in (meant, None) or meant is None else "note",
        )


def _meant(runs: Trajectories) -> str | None:
    from torchpref.errors import UsageError

    try:
        return runs.clock()
    except UsageError:
        return None


def identical(seen: Seen) -> Iterator[Finding]:
    """Systems with the same runs, and trials of one system that are the same run."""
    tracks = [seen.returns, *(seen.ticks(clock) for clock in seen.runs.clocks)]
    lengths = seen.runs.lengths.cpu().numpy()
    groups: dict[bytes, list[int]] = defaultdict(list)
    for system in range(len(seen.runs.systems)):
        if (seen.final[:, system] > 0).any():
            digest = hashlib.blake2b(digest_size=16)
            for track in (seen.present, lengths, *tracks):
                digest.update(np.ascontiguousarray(track[:, system]).tobytes())
            groups[digest.digest()].append(system)
    same = [group for group in groups.values() if len(group) > 1]
    yield from _finding(
        "identical_systems",
        "systems with exactly the same runs as another; systems",
        sum(map(len, same)),
        seen.names(system for group in same for system in group),
        tuple(" = ".join(seen.names(group)) for group in same[:EXAMPLES]),
    )
    if seen.present.shape[2] < 2:
        return
    timed = [seen.ticks(clock) for clock in seen.runs.clocks if clock not in ("steps", "turns")]
    repeated = np.zeros(seen.present.shape[:2], dtype=np.int64)
    for instance, system in np.argwhere(seen.present.sum(-1) > 1) if timed else ():
        found: set[bytes] = set()
        for trial in np.flatnonzero(seen.present[instance, system]):
            place = (instance, system, trial)
            if seen.final[place] == 0 or all((ticks[place] <= 0).all() for ticks in timed):
                continue
            content = b"".join(track[place].tobytes() for track in tracks) + lengths[place].tobytes()
            repeated[instance, system] += content in found
            found.add(content)
    yield from _finding(
        "identical_trials",
        "trials of one system on one instance with the same levels at the same times (the same run twice?); runs",
        int(repeated.sum()),
        seen.names((repeated > 0).any(0)),
        seen.examples((repeated > 0).any(1)),
    )


def levels(seen: Seen) -> Iterator[Finding]:
    """Levels that are nearly equal, and levels that every system has at its first step."""
    instance, system, trial, step = np.nonzero(seen.rises)
    level = seen.returns[instance, system, trial, step].astype(np.int64)
    points = np.unique(np.c_[instance, level, system], axis=0) if len(level) else np.zeros((0, 3), dtype=np.int64)
    if len(points):
        fresh = np.r_[True, (points[1:, :2] != points[:-1, :2]).any(1)]
        group = np.cumsum(fresh) - 1
        at = points[fresh]
        least = np.minimum.reduceat(points[:, 2], np.flatnonzero(fresh))
        most = np.maximum.reduceat(points[:, 2], np.flatnonzero(fresh))
        near = (at[1:, 0] == at[:-1, 0]) & (at[1:, 1] - at[:-1, 1] < CLOSE)
        one = (least[1:] == most[1:]) & (least[:-1] == most[:-1]) & (least[1:] == least[:-1])
        hit = near & ~one
        either = np.r_[hit, False] | np.r_[False, hit]
        per_instance = np.bincount(at[:, 0], minlength=len(seen.runs.instances))
        many = np.median(per_instance[per_instance > 0]) > MANY_LEVELS
        some = np.zeros(len(seen.runs.instances), dtype=bool)
        some[at[either, 0]] = True
        yield from _finding(
            "close_levels",
            "levels of one instance that differ by less than 0.01 between systems"
            + (" (returns look continuous)" if many else " (one level written in two ways?)")
            + "; pairs of levels",
            int(hit.sum()),
            seen.names(np.unique(points[either[group], 2])),
            seen.examples(some),
            severity="note" if many else "warning",
        )
    yield from _first_steps(seen)


def _first_steps(seen: Seen) -> Iterator[Finding]:
    lengths = seen.runs.lengths.cpu().numpy()
    if not seen.returns.shape[-1]:
        return
    first = np.where(seen.present & (lengths > 0), seen.returns[..., 0], np.where(seen.present, 0, LEVEL_PAD))
    floor = first.min((1, 2))
    several = seen.present.any(2).sum(1) > 1
    hit = several & (floor > 0) & (floor < LEVEL_PAD) & (lengths > 1).any((1, 2))
    yield from _finding(
        "first_step_levels",
        "instances with a level that every system reaches at its first step (a floor that tells nothing apart?); instances",
        int(hit.sum()),
        (),
        tuple(f"{seen.instance(int(i))}: {floor[i] / MILLION:g}" for i in np.flatnonzero(hit)[:EXAMPLES]),
    )


def ties(seen: Seen) -> Iterator[Finding]:
    """Instances on which every comparison is a tie, on the clock that is meant."""
    clock = _meant(seen.runs)
    several = seen.present.any(2).sum(1) > 1
    if clock is None or not several.any():
        return
    found = seen.curves(clock)
    level, tick = found.levels.numpy(), found.ticks.numpy()
    here = seen.present[..., None]
    same = np.where(here, level, -1).max((1, 2)) == np.where(here, level, LEVEL_PAD).min((1, 2))
    known = here & (level != LEVEL_PAD) & (tick != UNKNOWN)
    latest = np.where(known, tick, -1).max((1, 2))
    soonest = np.where(known, tick, np.iinfo(np.int64).max).min((1, 2))
    tied = several & (same & ((latest == soonest) | (latest == -1))).all(-1)
    nothing = tied & (seen.final.max((1, 2)) == 0)
    everything = bool(tied[several].all())
    yield from _finding(
        "nothing_but_ties",
        f"instances on which every comparison is a tie on clock {clock!r}, {int(nothing.sum())} of them because no run reached "
        "anything" + (": nothing in these data tells the systems apart" if everything else "") + "; instances",
        int(tied.sum()),
        (),
        seen.examples(tied),
        severity="warning" if everything else "note",
    )


def names(seen: Seen) -> Iterator[Finding]:
    """Names of systems that differ only in case or blanks."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in seen.runs.systems:
        groups["".join(name.lower().split())].append(name)
    same = [group for group in groups.values() if len(group) > 1]
    yield from _finding(
        "similar_names",
        "systems whose names differ only in case or blanks; systems",
        sum(map(len, same)),
        tuple(sorted(name for group in same for name in group)),
        tuple(" = ".join(map(repr, group)) for group in same[:EXAMPLES]),
    )


CHECKS: tuple[Callable[[Seen], Iterator[Finding]], ...] = (
    coverage,
    unknown_times,
    clocks,
    identical,
    levels,
    ties,
    names,
)


def _finding(
    kind: str,
    message: str,
    count: int,
    systems: tuple[str, ...] = (),
    examples: tuple[str, ...] = (),
    severity: Severity = "warning",
) -> Iterator[Finding]:
    if count:
        yield Finding(kind, severity, count, message, systems, examples)
