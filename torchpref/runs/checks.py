"""Suspicious things that show in the integers: each check gives findings with a count and the systems concerned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from torchpref.runs.curves import LEVEL_PAD
from torchpref.runs.findings import Finding, Severity
from torchpref.runs.seen import EXAMPLES, Flags, Seen, finding
from torchpref.runs.trajectories import Trajectories
from torchpref.runs.units import MILLION, PREFERRED_CLOCKS, UNKNOWN, ZERO_IS_UNKNOWN

#: Levels closer than this, in millionths, that are not equal look like one level written in two ways.
CLOSE = 10_000
#: Where instances have more levels than this, returns are taken for continuous and close levels for ordinary.
MANY_LEVELS = 20
#: Elements of a tensor that are worked on at once.
CHUNK = 1 << 22


def coverage(seen: Seen) -> Iterator[Finding]:
    """Instances that some systems lack, systems without a run, unequal numbers of trials."""
    trials = seen.present.sum(-1)
    there = trials > 0
    lacking = ~there & there.any(1)[:, None] & there.any(0)[None, :]
    some = lacking.any(1)
    yield from finding(
        "missing_runs",
        "instances that some systems lack (a pair is compared on the instances that both ran); instances",
        int(some.sum()),
        seen.names(lacking.any(0)),
        seen.examples(some),
    )
    empty = ~there.any(0)
    yield from finding(
        "systems_without_runs", "systems without a run of known outcome; systems", int(empty.sum()), seen.names(empty)
    )
    if there.any():
        sizes, counts = np.unique(trials[there], return_counts=True)
        usual = sizes[counts.argmax()]
        odd = there & (trials != usual)
        yield from finding(
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
        severity: Severity = "warning" if seen.clock in (clock, None) else "note"
        for outcome, what, mask in outcomes:
            hit = unknown & mask
            yield from finding(
                f"unknown_times_{outcome}",
                f"clock {clock!r}: {what} with a level reached at a time that is not known; runs",
                int(hit.sum()),
                seen.names(hit.any((0, 2))),
                seen.examples(hit.any((1, 2))),
                severity=severity,
            )
        for kind, value, what in (("unknown", UNKNOWN, "that is not known"), ("zero", 0, "of exactly 0")):
            nothing = seen.present & (seen.final == 0) & (steps & (ticks == value)).any(-1)
            yield from finding(
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
            yield from finding(
                f"zero_times_{outcome}",
                f"clock {clock!r}: {what} with a level reached at exactly 0 ({rule}); runs",
                int(hit.sum()),
                seen.names(hit.any((0, 2))),
                seen.examples(hit.any((1, 2))),
                severity=severity,
            )


def unusable_clock(runs: Trajectories, clock: str | None = None) -> tuple[str, ...]:
    """Systems that reached something, but nothing at a known time on this clock: their temporal scores say nothing.

    A level at exactly 0 seconds, tokens or cost counts as ``runs.zero_time`` says.
    """
    seen = Seen(runs)
    return seen.names(_unusable(seen, runs.clock(clock)))


def known_times(runs: Trajectories, clock: str) -> bool:
    """Whether any step of any run is at a known time on this clock; 0 counts as ``runs.zero_time`` says."""
    ticks = runs.times[clock]
    known = ticks != UNKNOWN
    if clock in ZERO_IS_UNKNOWN and runs.zero_time == "unknown":
        known &= ticks != 0
    inside = torch.arange(ticks.shape[-1], device=ticks.device) < runs.lengths.unsqueeze(-1)
    return bool((known & inside).any())


def _unusable(seen: Seen, clock: str) -> Flags:
    ticks = seen.ticks(clock)
    known = ticks != UNKNOWN
    if clock in ZERO_IS_UNKNOWN and seen.runs.zero_time == "unknown":
        known &= ticks != 0
    return np.asarray(seen.rises.any((0, 2, 3)) & ~(seen.rises & known).any((0, 2, 3)))


def clocks(seen: Seen) -> Iterator[Finding]:
    """Systems without a usable clock."""
    meant = seen.clock
    for clock in seen.runs.clocks:
        hit = _unusable(seen, clock)
        yield from finding(
            "unusable_clock",
            f"clock {clock!r}: systems that reached something, but nothing at a known time (no temporal scores); systems",
            int(hit.sum()),
            seen.names(hit),
            severity="warning" if meant in (clock, None) else "note",
        )


def identical(seen: Seen) -> Iterator[Finding]:
    """Systems with the same runs, and trials of one system that are the same run."""
    prints = _fingerprints(seen)
    n_instances, n_systems, n_trials = prints.shape
    weights = _weights(n_instances * n_trials, 1).reshape(n_instances, 1, n_trials)
    groups: dict[int, list[int]] = defaultdict(list)
    for system, whole in enumerate((prints * weights).sum((0, 2))):
        if (seen.final[:, system] > 0).any():
            groups[int(whole)].append(system)
    same = [group for group in groups.values() if len(group) > 1]
    yield from finding(
        "identical_systems",
        "systems with exactly the same runs as another; systems",
        sum(map(len, same)),
        seen.names(system for group in same for system in group),
        tuple(" = ".join(seen.names(group)) for group in same[:EXAMPLES]),
    )
    timed = np.zeros(prints.shape, dtype=bool)
    for clock in seen.runs.clocks:
        if clock not in ("steps", "turns"):
            timed |= (seen.ticks(clock) > 0).any(-1)
    runs = np.argwhere(timed & seen.present & (seen.final > 0))
    cells, same_run = runs[:, 0] * n_systems + runs[:, 1], prints[tuple(runs.T)].view(np.int64)
    _, position, count = np.unique(np.c_[cells, same_run], axis=0, return_inverse=True, return_counts=True)
    twice = np.zeros(prints.shape, dtype=np.bool_)
    twice[tuple(runs.T)] = count[position.reshape(-1)] > 1
    yield from finding(
        "identical_trials",
        "trials of one system on one instance with the same levels at the same times (the same run twice?); runs",
        int(twice.sum()),
        seen.names(np.asarray(twice.any((0, 2)))),
        seen.examples(np.asarray(twice.any((1, 2)))),
    )


def _fingerprints(seen: Seen) -> NDArray[np.uint64]:
    """A number per run that is equal for equal runs (levels, times on all clocks, length), and otherwise hardly ever."""
    tracks: list[NDArray[Any]] = [seen.returns, *(seen.ticks(clock) for clock in seen.runs.clocks)]
    lengths = seen.runs.lengths.cpu().numpy()
    steps = seen.returns.shape[-1]
    found = (lengths.astype(np.uint64) + np.uint64(2)) * seen.present
    chunk = max(1, CHUNK // max(1, seen.returns[:1].size))
    for number, track in enumerate(tracks):
        weights = _weights(steps, number + 2)
        for start in range(0, len(track), chunk):
            some = slice(start, start + chunk)
            found[some] += (track[some].astype(np.int64).view(np.uint64) * weights).sum(-1, dtype=np.uint64)
    return np.where(seen.present, found, np.uint64(0))


def _weights(count: int, seed: int) -> NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64, endpoint=False) | np.uint64(1)


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
        yield from finding(
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
    # A log that holds only changes begins with the first of them, which need not be the first step.
    counted = next((clock for clock in PREFERRED_CLOCKS if clock in seen.runs.clocks), None)
    if counted is not None:
        late = seen.ticks(counted)[..., 0] * seen.runs.resolution[counted] > 1
        first = np.where(seen.present & late, 0, first)
    floor = first.min((1, 2))
    several = seen.present.any(2).sum(1) > 1
    hit: Flags = several & (floor > 0) & (floor < LEVEL_PAD) & (lengths > 1).any((1, 2))
    yield from finding(
        "first_step_levels",
        "instances with a level that every system reaches at its first step (a floor that tells nothing apart?); instances",
        int(hit.sum()),
        (),
        tuple(f"{seen.instance(int(i))}: {floor[i] / MILLION:g}" for i in np.flatnonzero(hit)[:EXAMPLES]),
    )


def ties(seen: Seen) -> Iterator[Finding]:
    """Instances on which every comparison is a tie, on the clock that is meant."""
    clock = seen.clock
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
    tied: Flags = several & (same & ((latest == soonest) | (latest == -1))).all(-1)
    nothing = tied & (seen.final.max((1, 2)) == 0)
    everything = bool(tied[several].all())
    yield from finding(
        "nothing_but_ties",
        f"instances on which every comparison is a tie on clock {clock!r}"
        + (f", {int(nothing.sum())} of them because no run reached anything" if nothing.any() else "")
        + (": nothing in these data tells the systems apart" if everything else "")
        + "; instances",
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
    yield from finding(
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
