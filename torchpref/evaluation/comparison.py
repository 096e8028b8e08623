"""Two systems in depth: how often, by how much, at which levels and on which instances one is preferred."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import UsageError
from torchpref.evaluation.clock_bounds import ClockBounds, clock_bounds
from torchpref.evaluation.disagreement import disagreement
from torchpref.evaluation.effect_sizes import EffectSizes, effect_sizes
from torchpref.evaluation.history import HistoryEstimate, history_estimate
from torchpref.evaluation.two_systems import two_systems
from torchpref.pairwise.one_pair import PairPreferences
from torchpref.pairwise.preferences import Preferences, Weights, all_preferences
from torchpref.runs.curves import LEVEL_PAD, Grid
from torchpref.runs.measures import JUDGE, LEVEL, describe, judge_of, resolve_measures
from torchpref.runs.plain import plain
from torchpref.runs.units import MILLION
from torchpref.stats.resampling.instances import Seed, resolve_seed, units_of
from torchpref.stats.significance.effects import Effects, pair_effects
from torchpref.stats.significance.margins import MarginTest, check_margin, margin_test
from torchpref.stats.significance.mean_test import mean_tests
from torchpref.stats.significance.pair_tests import METHODS, sign_flip_tests

if TYPE_CHECKING:
    import polars

    from torchpref.runs.trajectories import Trajectories

#: Flips where the p-value of one pair has to be simulated.
FLIPS = 99_999
#: Up to this many different levels are listed one by one, more are put into tenths.
_LISTED_LEVELS = 12


@dataclass(frozen=True)
class LevelCount:
    """Who was sooner at one level, or at the levels of one tenth of the return scale.

    Attributes:
        level: the level, or the upper end of the tenth.
        instances: instances on which either system attains it (for a tenth: pairs of instance and level).
        first, second: on how many of them the first, the second was sooner, by the mean over trial pairs.
    """

    level: float
    instances: int
    first: int
    second: int


@dataclass(frozen=True)
class DecidingInstance:
    """An instance and what it adds to the mean preference.

    Attributes:
        benchmark, instance: its names.
        delta: Δ(first, second).
        share: what it adds to Δ̄; all of them add up to it.
    """

    benchmark: str
    instance: str
    delta: float
    share: float


@dataclass(frozen=True)
class MeasureComparison:
    """Two systems under one measure; values above 0 prefer the first.

    Attributes:
        measure: short name.
        mean: Δ̄ over the shared instances.
        low, high: its interval; NaN with fewer than two instances.
        p: two-sided p of the sign-flip test, not corrected for the number of measures.
        method: how p was found.
        instances: shared instances.
        won, lost, tied: on how many of them the first is preferred, the second is, neither is.
        split: for LR the terms of Δ̄ (solved more, sooner, further), else None.
        contradiction: for LR, whether the first system is preferred although it solves less, or the other way round.
        levels: who was sooner at which level; None for measures that know no levels.
        deciding: the instances in order of what they add to the side that is preferred, the largest first.
        reversal: without how many of these Δ̄ would no longer have its sign; 0 where Δ̄ is 0.
        mean_p: two-sided p of "the mean is 0" by betting, which holds for every distribution and finds less; with
            ``mean_p_low`` and ``mean_p_high``, its 5 and 95 % quantiles over orders of the instances.
        equivalence_p: p of "Δ̄ is not within ±margin" (two one-sided tests); NaN without a margin.
        remarks: where two ways to judge disagree, in words.
    """

    measure: str
    mean: float
    low: float
    high: float
    p: float
    method: str
    instances: int
    won: int
    lost: int
    tied: int
    split: dict[str, float] | None
    contradiction: bool
    levels: tuple[LevelCount, ...] | None
    deciding: tuple[DecidingInstance, ...]
    reversal: int
    mean_p: float = np.nan
    mean_p_low: float = np.nan
    mean_p_high: float = np.nan
    equivalence_p: float = np.nan
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Comparison:
    """What :func:`compare` finds.

    Attributes:
        first, second: names of the systems.
        clock: the clock compared on; None if only SR and PR were compared.
        known_times: whether any run of the two has a known time on it; if not, only what was reached is compared.
        level: level of the intervals.
        measures: a :class:`MeasureComparison` per measure.
        seed: of the simulation, where a p-value was simulated.
        judge: the measure that judges; the others describe.
        history: the judge's mean over all instances with the help of others' runs, if ``history`` was given.
        bounds: what holds whatever the clocks are worth, if ``clocks`` were given.
        effects: how large the difference is: in success rate, in time, in the chance to be sooner.
        margin: of the equivalence tests; 0 for none.
    """

    first: str
    second: str
    clock: str | None
    level: float
    measures: dict[str, MeasureComparison]
    seed: int
    known_times: bool = True
    judge: str = JUDGE
    history: HistoryEstimate | None = None
    bounds: ClockBounds | None = None
    effects: EffectSizes | None = None
    margin: float = 0.0

    def __getitem__(self, measure: str) -> MeasureComparison:
        """The comparison under one measure."""
        name = describe(measure).name
        if name not in self.measures:
            raise UsageError(f"{name.upper()} was not compared; there is {', '.join(self.measures)}")
        return self.measures[name]

    @property
    def disagreement(self) -> tuple[str, ...]:
        """What it means where RPP or IPP differ from LR, in words; empty where they do not."""
        return disagreement(self.first, self.second, self.measures)

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary per measure, without levels and instances; None where a value does not exist."""
        return [
            {
                "measure": one.measure,
                "mean": plain(one.mean),
                "low": plain(one.low),
                "high": plain(one.high),
                "p": plain(one.p),
                "method": one.method,
                "instances": one.instances,
                "won": one.won,
                "lost": one.lost,
                "tied": one.tied,
                "reversal": one.reversal,
                "mean_p": plain(one.mean_p),
                "mean_p_low": plain(one.mean_p_low),
                "mean_p_high": plain(one.mean_p_high),
                "equivalence_p": plain(one.equivalence_p),
                "contradiction": one.contradiction,
            }
            for one in self.measures.values()
        ]

    def to_frame(self) -> polars.DataFrame:
        """A row per measure."""
        import polars as pl

        return pl.DataFrame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        measures = {}
        for row, one in zip(self.rows(), self.measures.values(), strict=True):
            measures[one.measure] = row | {
                "split": one.split,
                "levels": None if one.levels is None else [vars(count) for count in one.levels],
                "deciding": [vars(instance) for instance in one.deciding],
                "remarks": list(one.remarks),
            }
        more = {} if self.history is None else {"history": self.history.to_dict()}
        more |= {} if self.bounds is None else {"bounds": self.bounds.to_dict()}
        return {
            "first": self.first,
            "second": self.second,
            "clock": self.clock,
            "known_times": self.known_times,
            "level": self.level,
            "seed": self.seed,
            "judge": self.judge,
            "disagreement": list(self.disagreement),
            "margin": self.margin,
            "effects": None if self.effects is None else _effects_dict(self.effects),
            "measures": measures,
            **more,
        }

    def __repr__(self) -> str:
        on = f" by {self.clock}" if self.clock and self.known_times else ", no known times" if self.clock else ""
        head = f"{self.first} − {self.second}{on}: above 0 prefers {self.first}"
        percent = f"{100 * self.level:g} % interval"
        lines = [head, f"  {'':<4}  {'mean':>7}  {percent:>18}  {'p':>8}  {'won':>5} {'lost':>5} {'tied':>5}"]
        for one in self.measures.values():
            limits = "–" if np.isnan(one.low) else f"[{one.low:+.3f}, {one.high:+.3f}]"
            lines.append(
                f"  {one.measure.upper():<4}  {one.mean:+7.4f}  {limits:>18}  {one.p:>8.3g}  "
                f"{one.won:>5} {one.lost:>5} {one.tied:>5}"
            )
        lr = self.measures.get("lr")
        if lr is not None and lr.split is not None:
            parts = ", ".join(f"{name} {value:+.4f}" for name, value in lr.split.items())
            lines.append(f"  LR is the sum of {parts}")
            if lr.contradiction:
                winner, loser = (self.first, self.second) if lr.mean > 0 else (self.second, self.first)
                lines.append(f"  beware: LR prefers {winner}, yet {loser} solves more")
        lines += [f"  {one}" for one in (self.history, self.bounds) if one is not None]
        lines += [f"  {sentence}" for sentence in self.disagreement]
        return "\n".join(lines)


def compare(
    runs: Trajectories,
    first: str,
    second: str,
    measures: str | Sequence[str] = "all",
    *,
    clock: str | None = None,
    weights: Weights = "instance",
    grid: Grid = "exact",
    level: float = LEVEL,
    seed: Seed = 0,
    history: Trajectories | None = None,
    clocks: Sequence[str] | None = None,
    margin: float = 0.0,
) -> Comparison:
    """Compare two systems on the instances that both ran.

    Args:
        runs: the runs.
        first, second: names of the systems; values above 0 prefer the first.
        measures: ``"all"``, a name or several. Runs without a clock are compared by SR and PR if all are asked for.
        clock: the clock; by the rule of :meth:`Trajectories.clock` where None.
        weights: of instances, see :func:`torchpref.preferences`.
        grid: of levels.
        level: of the intervals.
        seed: for simulated p-values, and the orders of bets.
        history: runs of the one that ran more, and of at least three others, on all instances: the mean over all of them is
            estimated from the 15 or more that the other one ran.
        clocks: two clocks or more: bounds that hold whatever they are worth, by LR or RPP.
        margin: with one above 0 each measure is also tested for equivalence: is Δ̄ within ±margin?

    Raises:
        UsageError: an unknown system, measure or clock; too little history; a margin outside [0, 1).
        DataError: the two share no instance.
    """
    from torchpref.runs.checks import known_times

    number = resolve_seed(seed)
    check_margin("margin", margin)
    names = resolve_measures(measures)
    if measures == "all" and not runs.clocks:
        names = tuple(name for name in names if not describe(name).temporal)
    two = two_systems(runs, first, second, weights)
    found = {}
    clock_used = None
    for name, prefs in all_preferences(two[0], names, clock=clock, weights=two[1], grid=grid).items():
        found[name] = _compare(prefs, first, second, level, number, margin)
        clock_used = clock_used or prefs.clock
    known = clock_used is not None and known_times(two[0], clock_used)
    judge = judge_of(measures, found) or next(iter(found))
    past = bounds = None
    if history is not None:
        past = history_estimate(runs, history, first, second, judge, clock=clock, grid=grid, level=level)
    if clocks is not None:
        bounds = clock_bounds(runs, first, second, clocks, "rpp" if judge == "rpp" else "lr")
    dated = clock_used if known else None
    effects = effect_sizes(two[0], first, second, clock=dated, weights=two[1], level=level)
    return Comparison(first, second, clock_used, level, found, number, known, judge, past, bounds, effects, margin)


def _effects_dict(effects: EffectSizes) -> dict[str, Any]:
    named = {name: getattr(effects, name) for name in ("success_difference", "time_ratio", "sooner")}
    return {
        "clock": effects.clock,
        **{name: {key: plain(value) for key, value in vars(one).items()} for name, one in named.items()},
    }


def _compare(prefs: Preferences, first: str, second: str, level: float, seed: int, margin: float) -> MeasureComparison:
    _, sign = prefs.pair_index(first, second)
    pair = prefs[first, second]
    effects = pair_effects(prefs, level)
    tests = sign_flip_tests(prefs, 0.05, FLIPS, seed)
    low, high = sorted((sign * effects.low[0], sign * effects.high[0]))
    bets = mean_tests(prefs.delta.cpu().numpy(), prefs.weights.cpu().numpy(), units_of(prefs), seed)
    equivalence = np.nan
    if margin > 0:
        sides = [_against(prefs, effects, bound, seed) for bound in (-margin, margin)]
        equivalence = max(sides[0].above, sides[1].below)
    split = None
    if prefs.parts is not None:
        split = {name: sign * float(value[0]) + 0.0 for name, value in prefs.pair_split().items()}
    delta = pair.delta.cpu().numpy()
    shares = _shares(prefs, pair)
    deciding, reversal = _deciding(pair, shares)
    return MeasureComparison(
        measure=prefs.measure,
        mean=pair.mean + 0.0,
        low=float(low) + 0.0,
        high=float(high) + 0.0,
        p=float(tests.p[0]),
        method=METHODS[int(tests.methods[0])],
        instances=len(delta),
        won=int((delta > 0).sum()),
        lost=int((delta < 0).sum()),
        tied=int((delta == 0).sum()),
        split=split,
        contradiction=bool(prefs.contradictions()[0]) if split is not None else False,
        levels=None if pair.levels is None else tuple(_levels(pair)),
        deciding=deciding,
        reversal=reversal,
        mean_p=float(bets.p[0]),
        mean_p_low=float(bets.low[0]),
        mean_p_high=float(bets.high[0]),
        equivalence_p=float(equivalence),
        remarks=_remarks(float(tests.p[0]), float(bets.p[0]), float(low), float(high), 1 - level),
    )


def _against(prefs: Preferences, effects: Effects, bound: float, seed: int) -> MarginTest:
    delta, weights = prefs.delta[:, 0].cpu().numpy(), prefs.weights.cpu().numpy()
    return margin_test(delta, weights, units_of(prefs), effects, bound, FLIPS, seed)


def _remarks(p: float, mean_p: float, low: float, high: float, alpha: float) -> tuple[str, ...]:
    """Where the test, the interval and the test of the mean alone differ in what they say of 0."""
    words = []
    if low == low and (p <= alpha) != (low > 0 or high < 0):
        words.append("the test and the interval disagree about 0")
    if (p <= alpha) != (mean_p <= alpha):
        shows = "finds a difference" if mean_p <= alpha else "finds no difference"
        words.append(f"the test of the mean alone (betting) {shows}, p = {mean_p:.3g}")
    return tuple(words)


def _shares(prefs: Preferences, pair: PairPreferences) -> NDArray[np.float64]:
    """What each shared instance adds to Δ̄."""
    weight = prefs.weights.cpu().numpy()[pair.rows.cpu().numpy()]
    total = weight.sum()
    share: NDArray[np.float64] = weight * pair.delta.cpu().numpy() / (total if total > 0 else 1.0)
    return share


def _deciding(pair: PairPreferences, shares: NDArray[np.float64]) -> tuple[tuple[DecidingInstance, ...], int]:
    direction = np.sign(pair.mean) or 1.0
    order = np.argsort(-direction * shares, kind="stable")
    instances = tuple(
        DecidingInstance(pair.benchmarks[i], pair.instances[i], float(pair.delta[i]), float(shares[i])) for i in order
    )
    if np.isnan(pair.mean) or pair.mean == 0:
        return instances, 0
    left = direction * (shares.sum() - np.cumsum(shares[order]))
    return instances, int(np.argmax(left <= 1e-12)) + 1


def _levels(pair: PairPreferences) -> Iterator[LevelCount]:
    assert pair.levels is not None and pair.signs is not None
    levels, signs = pair.levels.cpu().numpy().astype(np.int64), pair.signs.cpu().numpy()
    real = (levels != LEVEL_PAD) & (levels > 0)
    at, sign = levels[real], signs[real]
    if len(np.unique(at)) > _LISTED_LEVELS:
        at = -(-at // (MILLION // 10)) * (MILLION // 10)
    for level in np.unique(at):
        here = sign[at == level]
        yield LevelCount(float(level) / MILLION, len(here), int((here > 0).sum()), int((here < 0).sum()))
