"""Tables that separate the measures: ladders that differ in one thing, pairs that differ, the paper's pattern, power.

    python benchmarks/separation.py [--draws 100] [--data ../shared/data] [--docs]

``benchmarks/reproduction.py`` puts the same tables on its page. With ``--docs`` the tables of docs/choosing.md are written,
between their marks. Accuracy is the share of the 55 pairs of eleven policies whose mean preference over 100 instances, one run
each, has the sign of the proved order (a tie is wrong); beside it the share that is right and significant after Benjamini and
Hochberg. Both are means over fresh data sets, with their standard errors (Monte Carlo) in the last column.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import torchpref as tp
from torchpref.meta.fast_test import count_tests
from torchpref.meta.tables import rows_markdown
from torchpref.meta.values import pair_values
from torchpref.runs.measures import JUDGE, MEASURES
from torchpref.sgrl.ladders import LADDERS, PAIRS, Bench, ladder, make, paper_setting, sweep
from torchpref.sgrl.stumbling import NEVER

ROOT = Path(__file__).resolve().parents[1]
#: Data sets that are judged in one go.
_TOGETHER = 25
DISCOUNTS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
TEMPORAL = ("spl", "lr", "rpp", "ipp")


@dataclass(frozen=True)
class Judged:
    """What a measure gets on fresh data sets of one ladder: shares in per cent, and their standard errors.

    Attributes:
        accuracy, significant, holm: right; right and significant after Benjamini and Hochberg; after Holm. Means.
        accuracy_error, significant_error: standard errors of the first two.
    """

    accuracy: float
    significant: float
    holm: float
    accuracy_error: float
    significant_error: float

    @property
    def cell(self) -> str:
        """As in the tables."""
        return f"{self.accuracy:.1f} / {self.significant:.0f}"


def judge(bench: Bench, draws: int, seed: int, horizon: int | None = None) -> dict[str, Judged]:
    """Oracle accuracy, and right and significant, of all measures on fresh data sets.

    Args:
        bench: a ladder that was made.
        draws: data sets.
        seed: of the runs.
        horizon: stops all runs earlier.
    """
    times = bench.play(draws, seed)
    if horizon is not None:
        times = np.where(times > horizon, NEVER, times)
    found: dict[str, list[np.ndarray]] = {measure: [] for measure in MEASURES}
    for start in range(0, draws, _TOGETHER):
        part = times[start : start + _TOGETHER]
        size, instances = part.shape[:2]
        runs = bench.runs(part)
        drawn = torch.eye(size, dtype=torch.int32).repeat_interleave(instances, dim=1)
        for measure, prefs in tp.all_preferences(runs, MEASURES).items():
            values = pair_values(prefs)
            signs = torch.ones(len(values.pairs), dtype=torch.float64)  # the rungs' names are in the proved order
            counts = count_tests(values, drawn, values.sums(drawn), 0.05, signs)
            part_shares = torch.stack([counts.right, counts.right_benjamini, counts.right_holm]) / counts.judged
            found[measure].append(100 * part_shares.numpy())
    result = {}
    for measure, parts in found.items():
        shares = np.concatenate(parts, axis=1)
        error = shares.std(axis=1, ddof=1) / np.sqrt(draws) if draws > 1 else np.full(3, np.nan)
        result[measure] = Judged(*shares.mean(axis=1), *error[:2])
    return result


def success(bench: Bench) -> float:
    """Mean success rate of a ladder's policies, exactly."""
    return float(bench.exact[:, :, -1, -1].mean())


def _row(title: str, found: Mapping[str, Judged], *more: str) -> list[str]:
    best = max(one.accuracy for one in found.values())
    cells = [f"**{one.cell}**" if best - one.accuracy < 0.05 else one.cell for one in found.values()]
    error = max(one.accuracy_error for one in found.values()), max(one.significant_error for one in found.values())
    return [title, *more, *cells, f"{error[0]:.1f} / {error[1]:.1f}"]


def _heads() -> list[str]:
    return [measure.upper() for measure in MEASURES]


class Separation:
    """Computes each table once."""

    def __init__(self, draws: int, data: Path, seed: int = 0) -> None:
        self.draws, self.data, self.seed = draws, data, seed
        self._kept: dict[str, Any] = {}

    def once(self, key: str, work: Callable[[], Any]) -> Any:
        """What ``work`` gives, worked out the first time only."""
        if key not in self._kept:
            self._kept[key] = work()
        return self._kept[key]

    def note(self, title: str) -> None:
        print(f"separation: {title}", file=sys.stderr, flush=True)

    # ---------------------------------------------------------------------------------------------------- regimes

    def regimes(self, levels: int) -> dict[str, dict[str, Judged]]:
        """Every ladder with so many levels."""

        def work() -> dict[str, dict[str, Judged]]:
            found = {}
            for name in LADDERS:
                self.note(f"{name}, {levels} levels")
                found[name] = judge(make(ladder(name, levels)), self.draws, self.seed)
                make.cache_clear()
            return found

        result: dict[str, dict[str, Judged]] = self.once(f"regimes {levels}", work)
        return result

    def regime_table(self, levels: int) -> str:
        """Accuracy and significance per ladder."""
        rows = [_row(name, found) for name, found in self.regimes(levels).items()]
        return rows_markdown([f"what differs, {levels} levels", *_heads(), "standard error"], rows)

    def worst(self, levels: int) -> dict[str, tuple[float, str]]:
        """Per measure its least accuracy over the regimes, and where."""
        found = self.regimes(levels)
        return {measure: min((row[measure].accuracy, name) for name, row in found.items()) for measure in MEASURES}

    def worst_table(self) -> str:
        """The least accuracy of every measure at 2, 3 and 5 levels, and their mean."""
        rows = []
        for levels in (5, 3, 2):
            worst = self.worst(levels)
            rows.append(
                [f"{levels} levels", *(f"{worst[measure][0]:.1f} ({worst[measure][1]})" for measure in MEASURES)]
            )
        means = self.mean_worst()
        rows.append(["mean of the three", *(f"{means[measure]:.1f}" for measure in MEASURES)])
        return rows_markdown(["least accuracy of the ten", *_heads()], rows)

    def mean_worst(self) -> dict[str, float]:
        """Per measure, the least accuracy, averaged over 2, 3 and 5 levels."""
        return {measure: float(np.mean([self.worst(k)[measure][0] for k in (5, 3, 2)])) for measure in MEASURES}

    def best_worst(self) -> str:
        """The measure whose worst case is best on average."""
        means = self.mean_worst()
        return max(means, key=means.__getitem__)

    def judgement(self) -> str:
        """What follows for the measure that judges."""
        best = self.best_worst()
        worst = {levels: self.worst(levels) for levels in (5, 3, 2)}
        first = {levels: max(found, key=lambda measure: found[measure][0]) for levels, found in worst.items()}
        each = ", ".join(f"{measure.upper()} at {levels}" for levels, measure in first.items())
        agrees = (
            "which is the measure that judges" if best == JUDGE else f"while {JUDGE.upper()} is the measure that judges"
        )
        return f"The best worst case on average has {best.upper()}, {agrees}; by number of levels: {each}."

    # ------------------------------------------------------------------------------------------------- other tables

    def failures(self) -> str:
        """Speed, with one common failure rate."""
        return str(self.once("failures", self._failures))

    def _failures(self) -> str:
        rows = []
        for steady in (1.0, 0.995, 0.99, 0.98, 0.95, 0.9, 0.8):
            self.note(f"failures, q = {steady}")
            bench = make(sweep(steady))
            rows.append(_row(f"{steady:g}", judge(bench, self.draws, self.seed), f"{success(bench):.3f}"))
            make.cache_clear()
        return rows_markdown(["q", "success rate", *_heads(), "standard error"], rows)

    def half(self) -> str:
        """RPP with half of the instances beside SPL with all of them."""
        ladders = [sweep(steady, horizon=600) for steady in (0.98, 0.95)]
        ladders += [ladder("detours"), *(paper_setting(name) for name in ("taxi", "fourrooms", "doorkey"))]
        rows = []
        for recipe in ladders:
            self.note(f"half of the instances, {recipe.name}")
            whole = judge(make(recipe), self.draws, self.seed)["spl"]
            make.cache_clear()
            part = judge(make(replace(recipe, instances=recipe.instances // 2)), self.draws, self.seed)["rpp"]
            make.cache_clear()
            holds = "yes" if part.accuracy >= whole.accuracy else "no"
            rows.append([f"{recipe.name}, H {recipe.horizon}", part.cell, whole.cell, holds])
        return rows_markdown(["ladder", "RPP, 50 instances", "SPL, 100 instances", "RPP at least as right"], rows)

    def pattern(self) -> str:
        """The paper's oracle figures beside ours."""
        paper = {
            "accuracy": (12.8, 12.8, 91.8, 95.6, 94.2, 95.8),
            "FWER": (0.0, 0.0, 31.6, 37.5, 37.5, 37.7),
            "FDR": (0.0, 0.0, 48.1, 61.6, 63.2, 62.5),
        }
        found = {}
        for name in ("taxi", "fourrooms", "doorkey"):
            self.note(f"paper's pattern, {name}")
            bench = make(paper_setting(name))
            found[name] = judge(bench, self.draws, self.seed)
            make.cache_clear()

        def cell(*values: float) -> str:
            return " / ".join(f"{value:.1f}" for value in values)

        def three(one: Judged) -> tuple[float, float, float]:
            return one.accuracy, one.holm, one.significant

        rows = [["paper", *(cell(*values) for values in zip(*paper.values(), strict=True))]]
        rows += [[name, *(cell(*three(one)) for one in row.values())] for name, row in found.items()]
        means = [np.mean([three(row[measure]) for row in found.values()], axis=0) for measure in MEASURES]
        rows.append(["mean of three", *(cell(*each) for each in means)])
        return rows_markdown(["accuracy / FWER / FDR", *_heads()], rows)

    def pairs(self) -> dict[str, PairFound]:
        """Expected preference of the first policy of every pair."""

        def work() -> dict[str, PairFound]:
            found = {}
            for name, recipe in PAIRS.items():
                self.note(f"pair, {name}")
                found[name] = expected(make(recipe), 2 * self.draws, self.seed)
            return found

        result: dict[str, PairFound] = self.once("pairs", work)
        return result

    def pair_table(self) -> str:
        """Pairs on which measures differ."""
        rows = []
        for name, one in self.pairs().items():
            (sr, other_sr), (pr, other_pr) = one.success, one.partial
            truth = f"SR {sr:.2f} v. {other_sr:.2f}, PR {pr:.2f} v. {other_pr:.2f}; {one.truth}"
            cells = [f"{one.means[measure]:+.2f}" for measure in MEASURES]
            rows.append([f"{name}: {PAIRS[name].about}", truth, *cells])
        return rows_markdown(["pair", "truth", *_heads()], rows)

    def budgets(self) -> str:
        """Power of the same runs cut at budgets."""
        bench = make(replace(ladder("speed and reliability"), horizon=600))
        rows = []
        for budget in (15, 22, 33, 54, 150, 300, 600):
            self.note(f"budget {budget}")
            found = judge(bench, self.draws, self.seed, horizon=budget)
            rate = float(bench.exact[:, :, -1, budget].mean())
            rows.append([str(budget), f"{rate:.2f}", *(f"{one.significant:.0f}" for one in found.values())])
        make.cache_clear()
        return rows_markdown(["budget, steps", "success rate", *_heads()], rows)

    def company(self) -> str:
        """TheAgentCompany with 14 systems."""
        path = self.data / "theagentcompany_14.csv"
        if not path.is_file():
            return f"{path.name} is absent."
        self.note("TheAgentCompany, 14 systems")
        runs = tp.read(path, columns="score=result,max_score=total")
        rows: list[list[str]] = [["paper: tie rate", "80.88", "49.78", "76.01", "32.30", "34.75", "34.75"]]
        rows.append(["14 systems: tie rate"])
        rows.append(["paper: power, FDR", "74.17", "83.33", "64.17", "79.17", "81.67", "81.67"])
        rows.append(["14 systems: power, FDR"])
        for prefs in tp.all_preferences(runs, MEASURES, clock="steps").values():
            rows[1].append(f"{100 * prefs.tie_rate():.2f}")
            p = tp.significance(prefs, correction="bh")
            rows[3].append(f"{100 * float(p.significant.double().mean()):.2f}")
        return rows_markdown(["%", *_heads()], rows)


@dataclass(frozen=True)
class PairFound:
    """A pair of policies: what is true of them, and what each measure prefers on average."""

    success: tuple[float, float]
    partial: tuple[float, float]
    truth: str
    means: dict[str, float]
    errors: dict[str, float]
    instances: int


def expected(bench: Bench, draws: int, seed: int) -> PairFound:
    """Expected preference for the first of two policies, by simulation; where it dominates on most, there.

    Args:
        bench: a pair that was made.
        draws: runs per instance.
        seed: of the runs.
    """
    kept = bench.dominated if bench.dominated.mean() > 0.75 else np.ones(len(bench.tasks), dtype=bool)
    truth = f"ahead at every level on {int(bench.dominated.sum())} of {len(bench.tasks)} maps"
    if kept.all() and not bench.dominated.all():
        truth = discounted(bench)
    exact = bench.exact[kept]
    final = exact[..., -1].mean(axis=0)
    heights = np.diff(bench.tasks[0].levels, prepend=0.0)
    runs = bench.runs(bench.play(draws, seed))
    maps = {task.instances[0] for task, inside in zip(bench.tasks, kept, strict=True) if inside}
    rows = torch.tensor([name.split()[-1] in maps for name in runs.instances])
    means, errors = {}, {}
    for measure, prefs in tp.all_preferences(runs, MEASURES).items():
        values = prefs.delta[rows, 0]
        means[measure] = float(values.mean())
        errors[measure] = float(values.std() / len(values) ** 0.5)
    partial = final @ heights
    return PairFound(
        (float(final[0, -1]), float(final[1, -1])),
        (float(partial[0]), float(partial[1])),
        truth,
        means,
        errors,
        int(kept.sum()),
    )


def discounted(bench: Bench) -> str:
    """Which policy of a pair is ahead in expected discounted return, exactly, for all discounts of a list."""
    heights = np.diff(bench.tasks[0].levels, prepend=0.0)
    earned = np.diff(bench.exact, axis=-1, prepend=0.0).mean(axis=0)
    steps = np.arange(earned.shape[-1])
    signs = set()
    for discount in DISCOUNTS:
        first, second = (heights @ (each @ discount**steps) for each in earned)
        signs.add(np.sign(first - second))
    if len(signs) > 1:
        return "who is ahead in discounted return depends on the discount"
    return (
        f"the {'first' if signs == {1.0} else 'second'} is ahead in discounted return at all discounts from .5 to .999"
    )


# ------------------------------------------------------------------------------------------------------------ pages

RECIPES = """\
All ladders have eleven policies, 100 instances with one run each, and fresh runs in every data set
(`torchpref.sgrl.ladders`, where every recipe stands in full; `torchpref.sgrl.waypoints` says how a map follows from its seed).
Waypoints: a 9 × 9 grid, 16 of the 81 cells walls, K free cells to be visited in order from a given start, four moves, level k/K
with the kth; maps of seeds 0 to 99, runs of seed 0. Policies are shortest-path planners with a chance ε per step of a random
action. *Lost*: with chance 1 − q on the way to a level all actions are random until the level is earned. *Detours*: the same,
with a chance ρ to recover after every step. H is the number of steps after which a run is stopped. Before a ladder is played,
exact dynamic programming shows for all 55 pairs and on all instances that the better policy's time to every level is dominated
in the first order.

Five recipes were set by trying a few settings until the figures were near those of an earlier trial: the two in which the first
or the last level alone differs (nine settings), *reach* (horizons of 60 to 150, three ε), *speed and reliability* (four) and
*detours* (six). They show that there are such ladders, not how common they are. At two levels the least accuracy of SPL, LR,
RPP and IPP is found on *reach*."""

FOUND = """\
The setting (detours, q = .9, ρ = .03, 200 steps) was found by trying eight. It shows what kind of data gives figures like the
paper's, not that it is the paper's."""


def sections(page: Separation) -> list[tuple[str, str]]:
    """The sections for the page of reproduction."""
    recipes = rows_markdown(["ladder", "recipe"], [[name, ladder(name).about] for name in LADDERS])
    regimes = "\n\n".join(page.regime_table(levels) for levels in (5, 3, 2))
    return [
        ("Harder oracles", f"{RECIPES}\n\n{recipes}\n\nAccuracy / right and significant after BH, %, mean of {page.draws} "
         f"data sets; the best in bold.\n\n{regimes}\n\n{page.worst_table()}\n\n{page.judgement()}"),
        ("One common failure rate", "Waypoints, five levels, ε .10 to .30, lost with chance 1 − q per level, H 150."
         f"\n\n{page.failures()}"),
        ("The paper's oracle pattern", f"{FOUND}\n\n{page.pattern()}"),
        ("Half of the instances, harder", page.half()),
        ("Pairs on which measures differ", "Expected preference for the first policy; errors below .01. On *slow start* "
         f"the first dominates on most maps, and these alone count.\n\n{page.pair_table()}"),
        ("Power by budget", "Right and significant after BH, %, of the runs of *speed and reliability* (H 600), stopped at a "
         f"budget.\n\n{page.budgets()}"),
        ("TheAgentCompany, 14 systems", "Six systems as above and eight transcribed from result tables; one counts rounds "
         f"of at most 15 steps, and one table's mean steps differ from its runs.\n\n{page.company()}"),
    ]  # fmt: skip


def docs_tables(page: Separation) -> dict[str, str]:
    """The generated parts of docs/choosing.md, by their marks."""
    rows = [
        [name, *(f"{found[measure].accuracy:.0f}" for measure in MEASURES)] for name, found in page.regimes(5).items()
    ]
    pairs = [
        [f"{name}: {PAIRS[name].about}", f"{one.success[0]:.2f} v. {one.success[1]:.2f}",
         *(f"{one.means[measure]:+.2f}" for measure in MEASURES)]
        for name, one in page.pairs().items()
    ]  # fmt: skip
    return {
        "regimes": rows_markdown(["what differs", *_heads()], rows),
        "worst": page.worst_table() + "\n\n" + page.judgement(),
        "failures": page.failures(),
        "pairs": rows_markdown(["pair", "success rates", *_heads()], pairs),
    }


def fill(text: str, parts: Mapping[str, str]) -> str:
    """Put generated parts between ``<!-- measured: NAME -->`` and ``<!-- end -->``."""
    for name, body in parts.items():
        pattern = re.compile(rf"(<!-- measured: {name} -->\n).*?(\n<!-- end -->)", re.S)
        if not pattern.search(text):
            raise SystemExit(f"no mark <!-- measured: {name} --> in the page")
        text = pattern.sub(functools.partial(_between, body), text)
    return text


def _between(body: str, found: re.Match[str]) -> str:
    return f"{found[1]}\n{body}\n{found[2]}"


def write_docs(page: Separation, path: Path = ROOT / "docs/choosing.md") -> None:
    """Write the tables of docs/choosing.md anew."""
    text = fill(path.read_text(encoding="utf-8"), docs_tables(page))
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--data", type=Path, default=ROOT / "../shared/data")
    parser.add_argument("--docs", action="store_true", help="write the tables of docs/choosing.md")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    page = Separation(options.draws, options.data)
    for title, body in sections(page):
        print(f"## {title}\n\n{body}\n", flush=True)
    if options.docs:
        write_docs(page)
    print(f"{time.perf_counter() - start:.0f} seconds")


if __name__ == "__main__":
    main()
