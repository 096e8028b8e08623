"""A gate that may stop: after every instance of a planned order, is the new system worse, fine, or is going on futile?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from torchpref.errors import UsageError
from torchpref.evaluation.looks_state import LooksState, check_named, check_used, read_state, write_state
from torchpref.evaluation.planned import (
    GivenUp,
    Plan,
    check_names,
    check_unit_weights,
    family_means,
    ordered_pair,
    plan_of,
    progress_of,
    shown,
)
from torchpref.pairwise.preferences import Preferences, preferences
from torchpref.report.numbers import counted
from torchpref.runs.curves import Grid
from torchpref.runs.measures import ALPHA, JUDGE
from torchpref.runs.plain import plain
from torchpref.stats.resampling.instances import Seed, resolve_seed
from torchpref.stats.sequential.betting import running_log_wealth, slopes_above, slopes_below
from torchpref.stats.sequential.futility import futile
from torchpref.stats.sequential.looks import OrderedPair, look
from torchpref.stats.sequential.paths import UNIT

if TYPE_CHECKING:
    import polars

    from torchpref.runs.trajectories import Trajectories

Verdict = Literal["worse", "fine", "undecided", "go on"]
#: Exit code of "go on".
GO_ON = 4


@dataclass(frozen=True)
class PlannedGate:
    """What a look of :func:`torchpref.gate` with ``planned`` decides. Values above 0 prefer the new system.

    Attributes:
        verdict: ``"worse"``, ``"fine"``, ``"undecided"`` (final: nothing more is to come, or going on is futile) or
            ``"go on"``.
        line: the decision in one line.
        base, new, measure, clock: what is compared, by what.
        planned, seen, waiting: N; how many instances of the planned order count; how many results wait behind a gap.
        stopped: after which instance the verdict was reached, counted from 1; 0 where it was not.
        mean: Δ̄(new, base) over what was seen; NaN for nothing.
        decided: instances with Δ ≠ 0.
        spent: how much of α was spent.
        chance: of still reaching a verdict; NaN where nobody asked.
        futile: whether that chance is below 5 %.
        agrees: where Δ is graded, whether ``test="mean"`` has the same verdict; else None.
        method: how "worse" was tested.
        sums: S after every instance seen.
        worse_below: the sum at or below which looks stop, after every instance seen; NaN where none does.
        margin, effect, min_effect, alpha, test, undecided: as asked for.
        next: the instances that come next.
    """

    verdict: Verdict
    line: str
    base: str
    new: str
    measure: str
    clock: str | None
    planned: int
    seen: int
    waiting: int
    stopped: int
    mean: float
    decided: int
    spent: float
    chance: float
    futile: bool
    agrees: bool | None
    method: str
    sums: tuple[float, ...]
    worse_below: tuple[float, ...]
    margin: float
    effect: float
    min_effect: float
    alpha: float
    test: str
    undecided: str
    next: tuple[str, ...]

    @property
    def worse(self) -> bool:
        """Whether the new system is worse."""
        return self.verdict == "worse"

    @property
    def exit_code(self) -> int:
        """1 for worse, 4 for go on, 3 for undecided if that is to fail, else 0."""
        if self.verdict == "undecided":
            return 3 if self.undecided == "fail" else 0
        return {"worse": 1, "fine": 0, "go on": GO_ON}[self.verdict]

    def __str__(self) -> str:
        return self.line

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None where a value does not exist."""
        values = vars(self) | {"exit_code": self.exit_code, "next": list(self.next)}
        values |= {"sums": list(self.sums), "worse_below": plain(list(self.worse_below))}
        return {key: plain(value) if isinstance(value, float) else value for key, value in values.items()}

    def to_frame(self) -> polars.DataFrame:
        """A row per instance seen: its number, S and the sum at which looks stop."""
        import polars as pl

        numbers = range(1, self.seen + 1)
        frame = {"instance": list(numbers), "sum": list(self.sums), "worse_below": plain(list(self.worse_below))}
        return pl.DataFrame(frame, schema={"instance": pl.Int64, "sum": pl.Float64, "worse_below": pl.Float64})


def planned_gate(
    runs: Trajectories,
    base: str,
    new: str,
    *,
    planned: int,
    measure: str = JUDGE,
    margin: float = 0.0,
    min_effect: float = 0.0,
    effect: float = 0.1,
    alpha: float = ALPHA,
    test: str = "sign-flip",
    undecided: str = "pass",
    clock: str | None = None,
    weights: object = "instance",
    grid: Grid = "exact",
    order: Sequence[str] | None = None,
    given_up: GivenUp = (),
    final: bool = False,
    state: str | os.PathLike[str] | None = None,
    seed: Seed = 0,
) -> PlannedGate:
    """Look at the new system while its runs arrive; see :func:`torchpref.gate` for what is not explained here.

    The claim is about new tasks like these. Every call begins at the first instance, so that it does not matter how often one
    looks.

    Args:
        runs: the runs so far.
        base, new: names.
        planned: N, fixed beforehand. Later instances are not looked at.
        measure, margin, min_effect, alpha, clock, grid: as in :func:`torchpref.gate`.
        effect: how much worse the new system would have to be to be of interest: "futile" reckons with it.
        test: ``"sign-flip"``: spending α over the looks; ``"mean"``: bets, valid for every distribution whose mean is 0.
        undecided: ``"pass"`` or ``"fail"``.
        weights: instances count once.
        order: names of all planned instances in their order, random before the first run; a random order by the seed if None.
        given_up: instances that will not be run, which count as Δ = 0; or ``"gaps"``.
        final: no run is to come, for a reason that does not depend on results: all of α may be spent.
        state: a file that keeps later looks to what was named at the first.
        seed: of the order and of random signs.

    Raises:
        UsageError, DataError: options out of range, a change of what the state file names, results that changed.
    """
    _check_options(margin, min_effect, effect, alpha, test, undecided)
    check_names(runs, (base, new))
    check_unit_weights(weights)
    number = resolve_seed(seed)
    plan = plan_of(runs, planned, order, number)
    two = runs.take(systems=sorted((runs.systems.index(base), runs.systems.index(new))))
    progress = progress_of(two, plan, given_up, final)
    seen = int(progress.reach.min())
    prefs = preferences(two, measure, clock=clock, grid=grid)
    pair = ordered_pair(prefs, plan, new, base, seen)
    closed = final or seen == plan.planned
    if state is not None:
        before = read_state(state)
        named = _named(plan, prefs, base, new, number, runs.families, alpha, margin, min_effect, test)
        used = _used(two, plan, pair, base, new)
        if before is not None:
            check_named(state, before.named, named)
            check_used(state, f"{new} against {base}", named["order"], before.used.get("pair", []), used)

    step, side, below, spent, method = _first_verdict(
        pair, plan, alpha, margin, min_effect, test, closed, final, number
    )
    hopeless, chance = futile(pair.delta, pair.family, plan.planned, alpha, effect, margin)
    verdict: Verdict
    if step:
        verdict = "worse" if side < 0 else "fine"
    elif closed or hopeless:
        verdict = "undecided"
    else:
        verdict = "go on"
    agrees = None
    if seen and bool(pair.graded[-1]) and test != "mean" and not (margin > 0):
        other = _by_betting(pair, plan, alpha, 0.0, min_effect, closed)
        agrees = (other[0] > 0) == (step > 0)
    waiting = int(progress.waiting.sum())
    mean = float(pair.delta.mean()) / UNIT if seen else float("nan")
    decided = int(np.count_nonzero(pair.delta))
    ahead = tuple(shown(instance) for instance in plan.order[seen : seen + 10])
    result = PlannedGate(
        verdict=verdict,
        line=_line(
            verdict,
            base,
            new,
            prefs,
            plan.planned,
            seen,
            step,
            mean,
            decided,
            chance,
            hopeless,
            agrees,
            waiting,
            margin,
            final,
        ),
        base=base,
        new=new,
        measure=prefs.measure,
        clock=prefs.clock,
        planned=plan.planned,
        seen=seen,
        waiting=waiting,
        stopped=step,
        mean=mean,
        decided=decided,
        spent=spent,
        chance=chance,
        futile=hopeless,
        agrees=agrees,
        method=method,
        sums=tuple((np.cumsum(pair.delta) / UNIT).tolist()),
        worse_below=tuple(below.tolist()),
        margin=margin,
        effect=effect,
        min_effect=min_effect,
        alpha=alpha,
        test=test,
        undecided=undecided,
        next=ahead if verdict == "go on" else (),
    )
    if state is not None:
        looks = [] if before is None else list(before.looks)
        entry = {"seen": seen, "spent": spent, "verdict": verdict}
        if not looks or looks[-1] != entry:
            looks.append(entry)
        write_state(state, LooksState(named, {"pair": used}, looks))
    return result


def _check_options(margin: float, min_effect: float, effect: float, alpha: float, test: str, undecided: str) -> None:
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is the chance of failing a system that is not worse, between 0 and 1; got {alpha!r}")
    for name, value in (("margin", margin), ("min_effect", min_effect), ("effect", effect)):
        if not 0 <= value < 1:
            raise UsageError(f"{name} is a mean preference of at least 0 and below 1, got {value!r}")
    if test not in ("sign-flip", "mean"):
        raise UsageError(f"a planned gate tests by 'sign-flip' or 'mean', got {test!r}")
    if undecided not in ("pass", "fail"):
        raise UsageError(f"undecided is 'pass' or 'fail', got {undecided!r}")


def _first_verdict(
    pair: OrderedPair,
    plan: Plan,
    alpha: float,
    margin: float,
    min_effect: float,
    test: str,
    closed: bool,
    final: bool,
    seed: int,
) -> tuple[int, int, np.ndarray, float, str]:
    """After which instance there is a verdict and on which side; where looks stop; what was spent; the method."""
    if margin > 0 or test == "mean":
        step, side = _by_betting(pair, plan, alpha, margin, min_effect, closed)
        return step, side, np.full(len(pair.delta), np.nan), float("nan"), "betting"
    found = look(pair, plan.planned, alpha, final=final, seed=seed)
    step = found.crossed
    if step:
        running = np.cumsum(pair.delta) / UNIT / np.arange(1, len(pair.delta) + 1)
        enough = np.flatnonzero(running[step - 1 :] <= -min_effect)
        step = step + int(enough[0]) if len(enough) else 0
    spent = float(found.spent[-1]) if len(found.spent) else 0.0
    return step, -1 if step else 0, -found.bound, spent, found.method


def _by_betting(
    pair: OrderedPair, plan: Plan, alpha: float, margin: float, min_effect: float, complete: bool
) -> tuple[int, int]:
    """After which instance bets establish worse (−1) or, with a margin, fine (+1)."""
    values, when = family_means(pair, plan, complete)
    if not len(values):
        return 0, 0
    limit = np.log(1 / alpha)
    running = np.cumsum(pair.delta) / UNIT / np.arange(1, len(pair.delta) + 1)
    worse = (running_log_wealth(slopes_below(values, -margin)) >= limit) & (running[when - 1] <= -min_effect)
    fine = (
        running_log_wealth(slopes_above(values, -margin)) >= limit if margin > 0 else np.zeros(len(worse), dtype=bool)
    )
    for at in range(len(values)):
        if worse[at] or fine[at]:
            return int(when[at]), -1 if worse[at] else 1
    return 0, 0


def _named(
    plan: Plan,
    prefs: Preferences,
    base: str,
    new: str,
    seed: int,
    families: Sequence[str | None] | None,
    alpha: float,
    margin: float,
    min_effect: float,
    test: str,
) -> dict[str, Any]:
    return {
        "systems": [base, new],
        "measure": prefs.measure,
        "clock": prefs.clock,
        "grid": str(prefs.grid),
        "planned": plan.planned,
        "alpha": alpha,
        "margin": margin,
        "min_effect": min_effect,
        "test": test,
        "seed": seed,
        "families": families is not None,
        "order": [instance[1] for instance in plan.order],
    }


def _used(two: Trajectories, plan: Plan, pair: OrderedPair, base: str, new: str) -> list[list[int]]:
    """Per instance seen: runs of the base, runs of the new system, the family, Δ."""
    counts = two.present.sum(-1).cpu().numpy()
    columns = [two.systems.index(base), two.systems.index(new)]
    result = []
    for position, value in enumerate(pair.delta.tolist()):
        row = int(plan.row[position])
        runs = counts[row, columns].tolist() if row >= 0 else [0, 0]
        result.append([*runs, int(plan.family[position]), int(value)])
    return result


def _line(
    verdict: Verdict,
    base: str,
    new: str,
    prefs: Preferences,
    planned: int,
    seen: int,
    step: int,
    mean: float,
    decided: int,
    chance: float,
    hopeless: bool,
    agrees: bool | None,
    waiting: int,
    margin: float,
    final: bool,
) -> str:
    on = f" by {prefs.clock}" if prefs.clock else ""
    facts = f"{prefs.measure.upper()}{on} of {new} against {base}"
    facts += (
        f": mean {mean:+.3f} over {seen} of {counted(planned, 'planned instance')}, {decided} decided" if seen else ""
    )
    beyond = f" than the margin {margin:g}" if margin else ""
    words = {"worse": f"worse{beyond}", "fine": f"fine within the margin {margin:g}"}.get(verdict, verdict)
    if verdict == "undecided" and hopeless:
        words += f", going on is futile (chance of a verdict {100 * chance:.1f} %)"
    elif verdict == "undecided" and final and seen < planned:
        words += ", and no run is to come"
    ending = f"; established after {counted(step, 'instance')}" if step else ""
    if waiting:
        ending += f"; {counted(waiting, 'result')} behind a gap in the order {'waits' if waiting == 1 else 'wait'}"
    if agrees is not None:
        ending += f"; preferences are graded, and the test of the mean {'agrees' if agrees else 'does not agree'}"
    return f"{words}: {facts}{ending}"
