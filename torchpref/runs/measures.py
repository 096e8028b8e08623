"""The six measures: their names, ranges and units.

Source: *Offline Preference-Based Trajectory Evaluation*, arXiv 2606.17541. The formulas of SR, PR and SPL, which compare
one number per run, are here as functions of that number; LR, RPP and IPP compare whole curves and are computed by the
kernels.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from torchpref.errors import UsageError

#: |Δ| up to this many millionths is a tie for PR, RPP and IPP: thirds do not add up to one in millionths.
TIE_TOLERANCE = 10


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What a measure is called, how its Δ is stored, and how it looks.

    Attributes:
        name: short name, as used in calls, tables and JSON.
        title: the name in words.
        unit: Δ is stored as a whole number of 1/unit.
        tolerance: the largest |Δ| in those parts that counts as a tie.
        temporal: whether it depends on the clock.
        ternary: whether Δ of two runs is one of -1, 0, 1.
        partial: whether a return below 1 counts.
        curve: whether it compares whole curves, by a column of the kernels' sums, instead of one number per run.
        colour: of lines and bars in every picture.
        marker: of points in every picture, as matplotlib names it.
        description: what Δ > 0 means, in a sentence.
    """

    name: str
    title: str
    unit: int
    tolerance: int
    temporal: bool
    ternary: bool
    partial: bool
    curve: bool
    colour: str
    marker: str
    description: str


#: In the order of tables. Colours are Okabe and Ito's without black and yellow, which vanish on one kind of page.
_ALL = (
    Measure(
        name="sr",
        title="success rate",
        unit=1,
        tolerance=0,
        temporal=False,
        ternary=True,
        partial=False,
        curve=False,
        colour="#E69F00",
        marker="P",
        description="A succeeds where B does not.",
    ),
    Measure(
        name="pr",
        title="partial return",
        unit=1_000_000,
        tolerance=TIE_TOLERANCE,
        temporal=False,
        ternary=False,
        partial=True,
        curve=False,
        colour="#CC79A7",
        marker="D",
        description="A ends at a higher return than B; time is ignored.",
    ),
    Measure(
        name="spl",
        title="success weighted by path length",
        unit=10**12,
        tolerance=0,
        temporal=True,
        ternary=False,
        partial=False,
        curve=False,
        colour="#56B4E9",
        marker="v",
        description="A succeeds closer to the reference time than B; what happens short of success is ignored.",
    ),
    Measure(
        name="lr",
        title="lexicographic return",
        unit=1,
        tolerance=0,
        temporal=True,
        ternary=True,
        partial=True,
        curve=True,
        colour="#D55E00",
        marker="s",
        description="at the highest level where they differ, A gets there sooner: success first, then speed, then how far.",
    ),
    Measure(
        name="rpp",
        title="return-paired preference",
        unit=1_000_000,
        tolerance=TIE_TOLERANCE,
        temporal=True,
        ternary=False,
        partial=True,
        curve=True,
        colour="#0072B2",
        marker="o",
        description="the share of the return scale on which A is sooner, less the share on which B is.",
    ),
    Measure(
        name="ipp",
        title="interval-paired preference",
        unit=1_000_000,
        tolerance=TIE_TOLERANCE,
        temporal=True,
        ternary=False,
        partial=True,
        curve=True,
        colour="#009E73",
        marker="^",
        description="like RPP, on the time taken from each level to the next; a curve that is better everywhere can still "
        "lose here.",
    ),
)
_BY_NAME = {measure.name: measure for measure in _ALL}

#: All six, in the order of tables.
MEASURES: tuple[str, ...] = tuple(_BY_NAME)
#: Those that depend on the clock.
TEMPORAL: tuple[str, ...] = tuple(measure.name for measure in _ALL if measure.temporal)
#: Those that compare whole curves, in the order in which the kernels compute them.
CURVE_MEASURES: tuple[str, ...] = tuple(measure.name for measure in _ALL if measure.curve)


#: The measure that judges where none is named: the one with the best worst case, and success comes first in it. Training
#: has a default of its own (anchored RPP).
JUDGE = "lr"


#: Level of intervals and error rate of tests where none is named.
LEVEL = 0.95
ALPHA = 0.05


def describe(name: str) -> Measure:
    """The :class:`Measure` of that name, in any case; raises :class:`UsageError` for an unknown one."""
    measure = _BY_NAME.get(str(name).strip().lower())
    if measure is None:
        raise UsageError(f"unknown measure {name!r}; the measures are {', '.join(MEASURES)}")
    return measure


def resolve_measures(measures: str | Sequence[str] = "all") -> tuple[str, ...]:
    """Measure names from ``"all"``, one name or several; lower case, in table order, without repetition."""
    wanted = set(_asked(measures) or MEASURES)
    return tuple(name for name in MEASURES if name in wanted)


def judge_of(measures: str | Sequence[str] = "all", available: Collection[str] = MEASURES) -> str | None:
    """*The* measure of a result with several: the first that was asked for, else :data:`JUDGE`.

    Args:
        measures: as asked for.
        available: those that could be computed; of the others none judges. Without a clock success rate is left.

    Returns:
        A name; None where nothing is available.
    """
    order = _asked(measures) or (JUDGE, *MEASURES)
    return next((name for name in order if name in available), None)


def _asked(measures: str | Sequence[str]) -> tuple[str, ...]:
    """The measures that were named, in the order in which they were; none for ``"all"``."""
    if isinstance(measures, str):
        if measures.strip().lower() == "all":
            return ()
        measures = [part for part in measures.replace(",", " ").split() if part]
    if not measures:
        raise UsageError(f"no measure named; the measures are {', '.join(MEASURES)}")
    return tuple(dict.fromkeys(describe(name).name for name in measures))
