"""A check for continuous integration: is the new system worse than the one it replaces?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from torchpref.errors import UsageError
from torchpref.evaluation.comparison import FLIPS
from torchpref.evaluation.looking import PlannedGate, planned_gate
from torchpref.evaluation.planned import GivenUp
from torchpref.evaluation.two_systems import two_systems
from torchpref.pairwise.preferences import SPLIT_PARTS, Preferences, Weights, preferences
from torchpref.report.numbers import counted
from torchpref.runs.curves import Grid
from torchpref.runs.measures import ALPHA, JUDGE
from torchpref.runs.plain import plain
from torchpref.stats.planning.planning import LEAST_TO_PLAN
from torchpref.stats.planning.power import sample_of
from torchpref.stats.resampling.instances import Seed, resolve_seed, units_of
from torchpref.stats.significance.effects import Effects, pair_effects
from torchpref.stats.significance.margins import check_margin, margin_test
from torchpref.stats.significance.mean_test import METHOD, mean_tests
from torchpref.stats.significance.pair_tests import METHODS, sign_flip_tests

if TYPE_CHECKING:
    import polars

    from torchpref.runs.trajectories import Trajectories


Verdict = Literal["worse", "fine", "undecided"]
Test = Literal["sign-flip", "mean"]
#: What each part of LR's preference is called where it decides against the new system, and for it.
_WORDS = {
    "solved more": ("solves less", "solves more"),
    "sooner": ("slower", "faster"),
    "further": ("gets less far", "gets further"),
}
#: Exit codes of the verdicts; undecided is 0 unless it is to fail.
UNDECIDED_FAILS = 3


@dataclass(frozen=True)
class GateResult:
    """What :func:`gate` decides. Values above 0 prefer the new system.

    Attributes:
        worse: whether the new system is worse: significantly, beyond the margin and by at least the least effect.
        verdict: ``"worse"``; ``"fine"``: significantly above −margin; else ``"undecided"``.
        line: the decision in one line.
        base, new: names.
        measure, clock: compared by.
        known_times: whether any run of the two has a known time on the clock; if not, only what was reached is compared.
        mean: Δ̄(new, base).
        low, high: its two-sided interval at level 1 − 2α, whose upper limit is the one-sided limit at 1 − α.
        level: 1 − 2α.
        p: one-sided p of "not worse than the margin".
        p_fine: one-sided p of "worse than the margin or just as bad"; 1 where the margin is 0.
        method: how p was found.
        mean_verdict: the verdict of ``test="mean"``, if another test decided.
        instances, decided: shared instances, and those with Δ ≠ 0.
        needed: instances needed for power 0.8, were the difference as large as here; None with too few decided to plan,
            infinite where there is nothing to be found.
        part: which part of the preference decides (solved more, sooner, further); None where none does.
        split: LR's terms (solved more, sooner, further), else None.
        margin, min_effect, alpha: as asked for.
        undecided: ``"pass"`` or ``"fail"``: what an undecided verdict means for the exit code.
    """

    worse: bool
    verdict: Verdict
    line: str
    base: str
    new: str
    measure: str
    clock: str | None
    mean: float
    low: float
    high: float
    level: float
    p: float
    p_fine: float
    method: str
    mean_verdict: Verdict | None
    instances: int
    decided: int
    needed: float | None
    part: str | None
    split: dict[str, float] | None
    margin: float
    min_effect: float
    alpha: float
    undecided: Literal["pass", "fail"] = "pass"
    known_times: bool = True

    @property
    def exit_code(self) -> int:
        """1 if the new system is worse, 3 if that is undecided and is to fail, else 0."""
        if self.worse:
            return 1
        return UNDECIDED_FAILS if self.verdict == "undecided" and self.undecided == "fail" else 0

    def __str__(self) -> str:
        return self.line

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None where a value does not exist."""
        values = vars(self) | {"exit_code": self.exit_code}
        return {key: plain(value) if isinstance(value, float) else value for key, value in values.items()}

    def to_frame(self) -> polars.DataFrame:
        """One row, with a column per entry of :meth:`to_dict`; the terms of the split in columns of their own."""
        import polars as pl

        values = self.to_dict()
        split = values.pop("split") or {}
        return pl.DataFrame([values | {f"split_{name.replace(' ', '_')}": value for name, value in split.items()}])


@overload
def gate(
    runs: Trajectories, base: str, new: str, *, planned: None = None, measure: str = ..., margin: float = ...,
    min_effect: float = ..., alpha: float = ..., undecided: Literal["pass", "fail"] = ..., test: Test = ...,
    clock: str | None = ..., weights: Weights = ..., grid: Grid = ..., seed: Seed = ...,
) -> GateResult: ...  # fmt: skip


@overload
def gate(
    runs: Trajectories, base: str, new: str, *, planned: int, measure: str = ..., margin: float = ...,
    min_effect: float = ..., alpha: float = ..., undecided: Literal["pass", "fail"] = ..., test: Test = ...,
    clock: str | None = ..., weights: Weights = ..., grid: Grid = ..., seed: Seed = ..., effect: float = ...,
    order: Sequence[str] | None = ..., given_up: GivenUp = ..., final: bool = ..., state: str | os.PathLike[str] | None = ...,
) -> PlannedGate: ...  # fmt: skip


def gate(
    runs: Trajectories,
    base: str,
    new: str,
    *,
    measure: str = JUDGE,
    margin: float = 0.0,
    min_effect: float = 0.0,
    alpha: float = ALPHA,
    undecided: Literal["pass", "fail"] = "pass",
    test: Test = "sign-flip",
    clock: str | None = None,
    weights: Weights = "instance",
    grid: Grid = "exact",
    seed: Seed = 0,
    planned: int | None = None,
    effect: float = 0.1,
    order: Sequence[str] | None = None,
    given_up: GivenUp = (),
    final: bool = False,
    state: str | os.PathLike[str] | None = None,
) -> GateResult | PlannedGate:
    """Whether ``new`` is worse than ``base``, fine within a margin, or neither can be said.

    *Worse*: Δ̄(new, base) is significantly below −margin, and at most −min_effect. *Fine*: the margin is above 0 and Δ̄ is
    significantly above −margin. Else *undecided*. Against a margin the exact unconditional test decides where Δ is −1, 0 or 1
    (one run each), else the larger of the t test and sign flips of Δ + margin, which is approximate.

    Args:
        runs: the runs of both, on the same instances.
        base, new: names of the systems.
        measure: what is compared.
        margin: how much worse is acceptable, as a mean preference in [0, 1).
        min_effect: besides being significant, Δ̄ must be at most −min_effect; for benchmarks so large that trifles are
            significant.
        alpha: chance of failing a system that is not worse, and of passing as fine one that is.
        undecided: whether an undecided verdict is to ``"pass"`` (exit code 0) or ``"fail"`` (3).
        test: ``"sign-flip"``, or ``"mean"``: betting, which holds for every distribution of Δ and finds less.
        clock, weights, grid: as in :func:`torchpref.preferences`.
        seed: for a simulated p-value, and the order of bets and of instances.
        planned: look before all these instances have run, as often as one likes; "go on" becomes a verdict, and what follows
            is for that: see :func:`torchpref.evaluation.looking.planned_gate`.
        effect, order, given_up, final, state: as there.

    Raises:
        UsageError: an unknown system, measure or option, a margin or effect outside [0, 1).
        DataError: the two share no instance.
    """
    if planned is not None:
        return planned_gate(
            runs, base, new, planned=planned, measure=measure, margin=margin, min_effect=min_effect, effect=effect,
            alpha=alpha, test=test, undecided=undecided, clock=clock, weights=weights, grid=grid, order=order,
            given_up=given_up, final=final, state=state, seed=seed,
        )  # fmt: skip
    if order is not None or given_up or final or state is not None:
        raise UsageError("order, given_up, final and state are for a gate that looks early; say how many are planned")
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is the chance of failing a system that is not worse, between 0 and 1; got {alpha!r}")
    check_margin("margin", margin)
    check_margin("min_effect", min_effect)
    if undecided not in ("pass", "fail"):
        raise UsageError(f"undecided is to 'pass' or 'fail', got {undecided!r}")
    if test not in ("sign-flip", "mean"):
        raise UsageError(f"unknown test {test!r}; use 'sign-flip' or 'mean'")
    from torchpref.runs.checks import known_times

    level = 1 - 2 * alpha if alpha < 0.5 else 0.5
    two, values = two_systems(runs, base, new, weights)
    prefs = preferences(two, measure, clock=clock, weights=values, grid=grid)
    _, sign = prefs.pair_index(new, base)
    effects = pair_effects(prefs, level)
    mean = sign * float(effects.mean[0]) + 0.0
    low, high = sorted((sign * float(effects.low[0]), sign * float(effects.high[0])))
    number = resolve_seed(seed)
    bets = _bets(prefs, sign, margin, number)
    if test == "mean":
        p, p_fine, method = *bets, METHOD
    else:
        p, p_fine, method = _flips(prefs, effects, sign, margin, alpha, number)
    known = prefs.clock is not None and known_times(two, prefs.clock)

    def verdict(p: float, p_fine: float) -> Verdict:
        if p <= alpha and mean <= -min_effect and mean < -margin:
            return "worse"
        return "fine" if margin > 0 and p_fine <= alpha and mean > -margin else "undecided"

    found, other = verdict(p, p_fine), verdict(*bets)
    split, part = _parts(prefs, sign, mean)
    result = GateResult(
        worse=found == "worse",
        verdict=found,
        line="",
        base=base,
        new=new,
        measure=prefs.measure,
        clock=prefs.clock,
        mean=mean,
        low=low,
        high=high,
        level=level,
        p=p,
        p_fine=p_fine if margin > 0 else 1.0,
        method=method,
        mean_verdict=None if test == "mean" else other,
        instances=int(effects.instances[0]),
        decided=int(effects.decided[0]),
        needed=_needed(prefs, sign, mean, margin, alpha, int(effects.decided[0])),
        part=part,
        split=split,
        margin=margin,
        min_effect=min_effect,
        alpha=alpha,
        undecided=undecided,
        known_times=known,
    )
    return replace(result, line=_line(result))


def _flips(
    prefs: Preferences, effects: Effects, sign: int, margin: float, alpha: float, seed: int
) -> tuple[float, float, str]:
    """One-sided p-values of "not worse" and "not fine", and how they were found."""
    if not margin:
        tests = sign_flip_tests(prefs, alpha, FLIPS, seed)
        worse = sign * float(effects.mean[0]) < 0
        return float(tests.one_sided[0]) if worse else 1.0, 1.0, METHODS[int(tests.methods[0])]
    delta = sign * prefs.delta[:, 0].cpu().numpy()
    found = margin_test(delta, prefs.weights.cpu().numpy(), units_of(prefs), effects, -margin, FLIPS, seed, sign)
    return found.below, found.above, found.method


def _bets(prefs: Preferences, sign: int, margin: float, seed: int) -> tuple[float, float]:
    """The same by betting."""
    delta = sign * prefs.delta.cpu().numpy()
    found = mean_tests(delta, prefs.weights.cpu().numpy(), units_of(prefs), seed, -margin, orders=1)
    return float(found.below[0]), float(found.above[0])


def _parts(prefs: Preferences, sign: int, mean: float) -> tuple[dict[str, float] | None, str | None]:
    """LR's terms, and the one that weighs most on the side of the mean; SR and PR are one part themselves."""
    if prefs.measure in ("sr", "pr"):
        return None, (SPLIT_PARTS[0] if prefs.measure == "sr" else SPLIT_PARTS[2]) if mean else None
    lr = prefs
    if prefs.parts is None:
        lr = preferences(prefs.runs, "lr", clock=prefs.clock, weights=prefs.weights.cpu(), grid=prefs.grid)
    split = {name: sign * float(value[0]) + 0.0 for name, value in lr.pair_split().items()}
    side = {name: value * (1 if mean > 0 else -1) for name, value in split.items()}
    part = max(side, key=lambda name: side[name]) if mean else None
    return split if prefs.parts is not None else None, part if part and side[part] > 0 else None


def _needed(prefs: Preferences, sign: int, mean: float, margin: float, alpha: float, decided: int) -> float | None:
    """Instances for power 0.8, in the direction in which the data point: worse than −margin, or above it."""
    if decided < LEAST_TO_PLAN:
        return None
    side = sign if mean > -margin and margin > 0 else -sign
    sample = sample_of(prefs, 0, side, -margin if side == sign else margin, alpha)
    return sample.about(0.8)


def _line(result: GateResult) -> str:
    on = f" by {result.clock}" if result.known_times else ""
    if result.clock and not result.known_times:
        on = ", no times known and so only what was reached compared,"
    limits = ""
    if not np.isnan(result.low):
        limits = f", {100 * result.level:g} % interval {result.low:+.3f} to {result.high:+.3f},"
    verdict, against, alpha = result.verdict, f" within the margin {result.margin:g}", result.alpha
    beyond = f" beyond the margin {result.margin:g}" if result.margin else ""
    shown = result.p_fine if verdict == "fine" or (result.margin and result.mean > -result.margin) else result.p
    if verdict == "worse":
        head, tail = f"worse{beyond}", f", at most {alpha:g}"
        if result.part == "sooner":
            head += ": slower, not worse at the task"
    elif verdict == "fine":
        head, tail = f"fine{against}", f", at most {alpha:g}"
    elif result.p <= alpha:
        head, tail = "undecided", f"; significant, but smaller than {max(result.margin, result.min_effect):g}"
    else:
        head, tail = f"undecided: not significantly worse{beyond}", f", above {alpha:g}"
    facts = (
        f"{result.measure.upper()}{on} of {result.new} against {result.base}: mean {result.mean:+.3f}{limits} over "
        f"{counted(result.instances, 'instance')}, {result.decided:,} decided, one-sided p = {shown:.3g}{tail}"
    )
    notes = []
    if result.part:
        worse, better = _WORDS[result.part]
        verb = "is " if result.part == "sooner" else ""
        notes.append(f"{result.part} decides most: {result.new} {verb}{worse if result.mean < 0 else better}")
    if result.needed is None:
        notes.append("too few decided to plan")
    elif isfinite(result.needed):
        notes.append(f"power 0.8 needs about {counted(int(result.needed), 'instance')}")
    least = int(np.ceil(-np.log2(alpha)))
    if result.decided < least and result.mean < 0 and not result.margin:
        notes.append(f"too few to tell, {least} decided instances are the least")
    if result.mean_verdict not in (None, verdict):
        notes.append(f"the test of the mean alone (betting) says {result.mean_verdict}")
    if result.p <= alpha / 2 and not result.margin and result.low < 0 < result.high:
        notes.append("p and the interval disagree about 0")
    return "; ".join([f"{head}: {facts}", *notes])
