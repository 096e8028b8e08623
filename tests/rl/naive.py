"""Rewards read off the definitions, one rollout and one level at a time, in whole numbers and fractions.

Shares nothing with the package and nothing with ``exact``: a rollout is a list of (time in ticks or None, level in
millionths), and every level that any step of the two shows, attained for a moment or not, is looked at by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

FULL = 10**6
Sign = int


@dataclass(frozen=True)
class Rollout:
    """Steps as (tick or None, level), whether it was stopped by its limit, whether it counts."""

    steps: tuple[tuple[int | None, int], ...]
    truncated: bool = False
    valid: bool = True

    def curve(self) -> list[tuple[int | None, int]]:
        best, result = 0, []
        ticks = [tick for tick, _ in self.steps]
        for k, (tick, level) in enumerate(self.steps):
            best = max(best, level)
            if tick is None:
                earlier = [t for t in ticks[:k] if t is not None]
                later = [t for t in ticks[k:] if t is not None]
                if earlier and later and earlier[-1] == later[0]:
                    tick = later[0]
            result.append((tick, best))
        return result

    @property
    def final(self) -> int:
        return max([level for _, level in self.curve()], default=0)

    def before(self, step: int) -> int:
        return max([level for _, level in self.curve()[:step]], default=0)


def reach(rollout: Rollout, level: int, zero_is_unknown: bool) -> tuple[str, int]:
    """("at", tick), ("unknown", 0), ("never", 0) or ("after", tick of the stop)."""
    for tick, best in rollout.curve():
        if best >= level:
            if tick is None or (zero_is_unknown and tick == 0):
                return "unknown", 0
            return "at", tick
    if not rollout.truncated:
        return "never", 0
    stop = rollout.steps[-1][0] if rollout.steps else None
    if stop is None or (zero_is_unknown and stop == 0):
        return "after", -1
    return "after", stop


def sooner(a: Rollout, b: Rollout, level: int, zero: bool) -> Sign:
    (how_a, tick_a), (how_b, tick_b) = reach(a, level, zero), reach(b, level, zero)
    got_a, got_b = how_a in ("at", "unknown"), how_b in ("at", "unknown")
    if got_a and got_b:
        return 0 if "unknown" in (how_a, how_b) else (tick_b > tick_a) - (tick_b < tick_a)
    if not got_a and not got_b:
        return 0
    if got_b:
        return -sooner(b, a, level, zero)
    if how_b == "never":
        return 1
    return int(how_a == "at" and tick_a <= tick_b)


def levels_of(*rollouts: Rollout) -> list[int]:
    return sorted({level for rollout in rollouts for _, level in rollout.curve()} - {0})


def tie(value: int) -> int:
    return 0 if abs(value) <= 10 else value


def attained(rollout: Rollout) -> set[int]:
    """Levels that hold for a while: of several steps at one time only the last is seen."""
    curve = rollout.curve()
    found = set()
    for k, (tick, level) in enumerate(curve):
        if k and curve[k - 1][1] == level:
            continue
        later = [t for t, value in curve[k + 1 :] if value > level and t is not None]
        if tick is None or not later or later[0] != tick:
            found.add(level)
    return found - {0}


def delta(a: Rollout, b: Rollout, measure: str, zero: bool, reference: int | None = None) -> Fraction | None:
    """Δ(a, b); None where SPL cannot compare them."""
    if measure == "sr":
        return Fraction((a.final >= FULL) - (b.final >= FULL))
    if measure == "pr":
        return Fraction(tie(a.final - b.final), FULL)
    if measure == "spl":
        scores = [spl(run, zero, reference) for run in (a, b)]
        return None if None in scores else scores[0] - scores[1]
    if measure == "lr":
        return Fraction(next((s for level in reversed(levels_of(a, b)) if (s := sooner(a, b, level, zero))), 0))
    if measure == "rpp":
        return Fraction(tie(above(a, b, 0, zero)), FULL)
    total, below = 0, 0
    for level in sorted(attained(a) | attained(b)):
        total += (level - below) * faster(a, b, below, level, zero)
        below = level
    return Fraction(tie(total), FULL)


def faster(a: Rollout, b: Rollout, below: int, level: int, zero: bool) -> Sign:
    """Who took less time from one level to the next."""
    ends = [reach(run, level, zero) for run in (a, b)]
    if any(how not in ("at", "unknown") for how, _ in ends):
        return sooner(a, b, level, zero)
    starts = [("at", 0) if below == 0 else reach(run, below, zero) for run in (a, b)]
    if any(how == "unknown" for how, _ in starts + ends):
        return 0
    one, two = (end[1] - start[1] for start, end in zip(starts, ends, strict=True))
    return (two > one) - (two < one)


def above(a: Rollout, b: Rollout, floor: int, zero: bool) -> int:
    """RPP of the levels above ``floor``, in millionths, without the tie rule."""
    total, below = 0, 0
    for level in sorted({*levels_of(a, b), floor} - {0}):
        if level > floor:
            total += (level - below) * sooner(a, b, level, zero)
        below = level
    return total


def spl(run: Rollout, zero: bool, reference: int | None) -> Fraction | None:
    if run.final < FULL:
        return Fraction(0)
    how, tick = reach(run, FULL, zero)
    if how == "unknown":
        return None
    if reference is None or tick <= reference:
        return Fraction(1)
    return Fraction(reference, tick)


def least_success(group: list[Rollout], zero: bool) -> int | None:
    """SPL's reference time where none is given: the least positive time of success."""
    ticks = [
        tick
        for run in group
        if run.valid and run.final >= FULL
        for how, tick in [reach(run, FULL, zero)]
        if how == "at"
    ]
    return min([tick for tick in ticks if tick > 0], default=None)


def anchored(final: int, preference: Fraction, output: str, anchor: str | None, weight: Fraction) -> Fraction:
    if output == "win_rate":
        preference = (preference + 1) / 2
    if anchor == "success":
        return (final >= FULL) + weight * preference
    if anchor == "return":
        return Fraction(final, FULL) + weight * preference
    return preference


def mean_delta(
    mine: list[Rollout],
    rivals: list[list[Rollout]],
    measure: str,
    zeros: list[bool],
    combine: str | None,
    references: list[int | None],
) -> Fraction:
    """Mean Δ of one rollout, given once per clock, over rivals, each given once per clock."""
    values = []
    for rival in rivals:
        deltas = [
            delta(a, b, measure, zero, reference)
            for a, b, zero, reference in zip(mine, rival, zeros, references, strict=True)
        ]
        if None in deltas:
            continue
        values.append(
            sum(deltas, Fraction(0)) / len(deltas) if combine == "mean" else next((d for d in deltas if d), 0)
        )
    return sum(values, Fraction(0)) / len(values) if values else Fraction(0)


def to_go(
    group: list[list[Rollout]], output: str, anchor: str | None, weight: Fraction, zeros: list[bool]
) -> list[list[Fraction]]:
    """Credit of every step of every rollout; ``group`` holds each rollout once per clock."""
    here = [i for i, runs in enumerate(group) if runs[0].valid]
    result = []
    for i, runs in enumerate(group):
        row = []
        for step in range(len(runs[0].steps)):
            floor = runs[0].before(step)
            if i not in here:
                row.append(Fraction(0))
                continue
            total = Fraction(0)
            for j in here:
                if j != i:
                    parts = [tie(above(a, b, floor, zero)) for a, b, zero in zip(runs, group[j], zeros, strict=True)]
                    total += Fraction(sum(parts), len(parts) * FULL)
            value = total / max(1, len(here) - 1) * (Fraction(1, 2) if output == "win_rate" else 1)
            if anchor is not None:
                value *= weight
            won = [Fraction(group[j][0].final >= FULL) for j in here]
            if anchor == "success" and floor < FULL:
                value += (runs[0].final >= FULL) - sum(won) / len(won)
            if anchor == "return":
                gains = [Fraction(max(0, group[j][0].final - floor), FULL) for j in here]
                value += Fraction(runs[0].final - floor, FULL) - sum(gains) / len(gains)
            row.append(value)
        result.append(row)
    return result
