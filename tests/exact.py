"""The judge: the definitions of docs/definitions.md read aloud, slow and exact, in whole numbers and fractions.

Nothing here is shared with the package. A run is given as its points (time, return) in the order of its steps, a time of
None being one that the log does not give; a truncated run was stopped by its limit at the time of its last point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

MILLION = 10**6
Point = tuple[int | None, float]


@dataclass(frozen=True)
class Run:
    """One run on one clock: points (tick or None, return in [0, 1])."""

    points: tuple[Point, ...]
    truncated: bool = False

    def curve(self) -> list[tuple[int | None, int]]:
        """(tick, level reached so far) after every step, in millionths."""
        reached, result = 0, []
        for k, (tick, value) in enumerate(self.points):
            reached = max(reached, round(value * MILLION))
            if tick is None:
                # A clock that reads the same before and after has read the same in between.
                before = [t for t, _ in self.points[:k] if t is not None]
                after = [t for t, _ in self.points[k:] if t is not None]
                if before and after and before[-1] == after[0]:
                    tick = before[-1]
            result.append((tick, reached))
        return result

    def attained(self) -> set[int]:
        """Every value that f takes: several points at one time are one point, the highest."""
        by_tick: dict[int, int] = {}
        values = set()
        for tick, level in self.curve():
            if tick is None:
                # It was reached at a time of its own, wherever that lies.
                values.add(level) if self.time_to(level) is None else None
            else:
                by_tick[tick] = max(by_tick.get(tick, 0), level)
        return (values | set(by_tick.values())) - {0}

    def reached(self, level: int) -> bool:
        return self.final() >= level

    def final(self) -> int:
        return max((level for _, level in self.curve()), default=0)

    def time_to(self, level: int) -> int | None:
        """The tick at which a level that was reached was reached; None where the log does not say. g(0) = 0."""
        if level == 0:
            return 0
        return next(tick for tick, value in self.curve() if value >= level)

    def stopped(self) -> int | None:
        """When a truncated run was stopped, if that is known."""
        return self.points[-1][0] if self.points else None


def sgn(value: int | Fraction) -> int:
    return (value > 0) - (value < 0)


def sooner(a: Run, b: Run, level: int) -> int:
    """+1 if A reaches the level sooner, -1 if B does, 0 if neither is known to."""
    if a.reached(level) and b.reached(level):
        when_a, when_b = a.time_to(level), b.time_to(level)
        return 0 if when_a is None or when_b is None else sgn(when_b - when_a)
    if a.reached(level):
        return beats_unreached(a.time_to(level), b)
    if b.reached(level):
        return -beats_unreached(b.time_to(level), a)
    return 0


def beats_unreached(when: int | None, other: Run) -> int:
    """1 if a run that reached a level at ``when`` beats one that did not reach it, else 0."""
    if not other.truncated:
        return 1
    stopped = other.stopped()
    if stopped is None or when is None:
        return 0  # nobody can say whether the level was reached before the other run was stopped
    return 1 if when <= stopped else 0


def grid_of(a: Run, b: Run) -> list[int]:
    return sorted(a.attained() | b.attained())


def tie_rule(value: int) -> Fraction:
    return Fraction(0) if abs(value) <= 10 else Fraction(value, MILLION)


def sr(a: Run, b: Run) -> Fraction:
    return Fraction((a.final() >= MILLION) - (b.final() >= MILLION))


def pr(a: Run, b: Run) -> Fraction:
    return tie_rule(a.final() - b.final())


def lr(a: Run, b: Run) -> Fraction:
    signs = [sooner(a, b, level) for level in grid_of(a, b)]
    return Fraction(next((sign for sign in reversed(signs) if sign), 0))


def rpp(a: Run, b: Run, grid: Sequence[int] | None = None) -> Fraction:
    total, below = 0, 0
    for level in grid_of(a, b) if grid is None else grid:
        total += (level - below) * sooner(a, b, level)
        below = level
    return tie_rule(total)


def ipp(a: Run, b: Run, grid: Sequence[int] | None = None) -> Fraction:
    total, below = 0, 0
    for level in grid_of(a, b) if grid is None else grid:
        if a.reached(level) and b.reached(level):
            times = [a.time_to(level), a.time_to(below), b.time_to(level), b.time_to(below)]
            sign = 0
            if None not in times:
                sign = sgn((times[2] - times[3]) - (times[0] - times[1]))
        else:
            sign = sooner(a, b, level)  # an interval whose upper level is not reached lasts for ever
        total += (level - below) * sign
        below = level
    return tie_rule(total)


def spl_of(run: Run, reference: int | None) -> Fraction | None:
    """s of one run; None for a success at an unknown time, which has no SPL."""
    if run.final() < MILLION:
        return Fraction(0)
    when = run.time_to(MILLION)
    if when is None:
        return None
    if reference is None or when <= reference:
        return Fraction(1)
    return Fraction(reference, when)


MEASURES: dict[str, Callable[[Run, Run], Fraction]] = {"sr": sr, "pr": pr, "lr": lr, "rpp": rpp, "ipp": ipp}


def compare_trials(
    ours: Sequence[Run], theirs: Sequence[Run], measure: Callable[[Run, Run], Fraction]
) -> tuple[Fraction, int, int]:
    """Sum of Δ over all pairs of trials, the number of ties, the number of pairs."""
    values = [measure(a, b) for a in ours for b in theirs]
    return sum(values, Fraction(0)), sum(value == 0 for value in values), len(values)
