"""Do the intervals cover, and do the tests keep their error rates? Simulated samples whose truth is known.

    python benchmarks/trust_coverage.py [intervals] [nulls] [families] [many] [--scale 1] [--json trust.json]
    python benchmarks/trust_coverage.py --page docs/how-sure.md --json trust.json [MORE.json]    (the page's tables)

``--scale 1`` is the full size: 1,000 samples with two and five systems, 300 with twenty, 2,000 for tests of two systems;
``--scale 0.1`` takes a tenth of each. Every share stands with its Monte Carlo standard error.

*Intervals*: performance on an instance is θ plus independent normal noise, a system is preferred where it is ahead by more
than c, which sets the share of ties; or, where trials are named, each run succeeds with a chance of its instance and system.
*Nulls*: two systems whose mean preference is 0 although they may differ on every instance.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from scipy.special import expit, ndtr, ndtri

import torchpref as tp
from torchpref.io.files.whole import written_whole
from torchpref.pairwise.between import all_pairs
from torchpref.pairwise.preferences import Preferences
from torchpref.stats.bradley_terry.batch import fit_pairs
from torchpref.stats.ranking.rank_intervals import rank_intervals
from torchpref.stats.ranking.score_errors import mean_contributions
from torchpref.stats.resampling.instances import units_of
from torchpref.stats.significance import flips
from torchpref.stats.significance.effects import pair_effects

INSTANCES, SYSTEMS = (12, 30, 100), (2, 5, 20)
SAMPLES = {2: 1000, 5: 1000, 20: 300}
SIZES = ((3, 27, 70), (9, 81, 210), (10,) * 10, (2, 98), (1, 99))
#: Trials of the systems in turn; None draws one to five for every run.
TRIALS: dict[str, tuple[int, ...] | None] = {"1 v 8": (1, 8), "4 v 5": (4, 5), "1–5": None}
TASK_SD, OWN_SD = 1.5, 0.7


@dataclass(frozen=True)
class Setting:
    """What is simulated."""

    name: str
    instances: int
    systems: int
    spread: float = 1.0
    ties: float = 0.35
    missing: str = ""
    trials: str = ""
    own_sd: float = 0.0
    sizes: tuple[int, ...] = ()
    families: tuple[int, int] | None = None
    skewed: bool = False
    required: bool = True

    @property
    def theta(self) -> np.ndarray:
        return np.linspace(-self.spread / 2, self.spread / 2, self.systems)


@dataclass
class Share:
    """A share over data sets: the mean of one number per data set, and its standard error."""

    values: list[float] = field(default_factory=list)

    def shown(self) -> list[float] | None:
        """Percent and its Monte Carlo error."""
        if not self.values:
            return None
        found = np.array(self.values)
        mean = found.mean()
        error = max(found.std(ddof=1) if len(found) > 1 else 0.0, np.sqrt(0.5 / len(found) / (len(found) + 1)))
        return [round(100 * mean, 1), round(100 * error / np.sqrt(len(found)), 1)]


def tie_width(rate: float, variance: float = 2.0) -> float:
    """c with P(|N(0, variance)| < c) = rate."""
    return float(ndtri((1 + rate) / 2) * np.sqrt(variance))


def preferences(
    delta: np.ndarray, runs: tp.Trajectories, weights: np.ndarray | None = None, unit: int = 1
) -> Preferences:
    """Preferences from Δ in whole parts of 1/unit [instance, pair]; NaN is missing."""
    here = torch.from_numpy(~np.isnan(delta)).long()
    whole = torch.from_numpy(np.nan_to_num(delta)).long()
    return Preferences(
        measure="lr",
        runs=runs,
        clock="steps",
        pairs=all_pairs(len(runs.systems)),
        sums=whole,
        unit=unit,
        trial_pairs=here,
        ties=((whole == 0) & (here > 0)).long(),
        weights=torch.ones(len(delta), dtype=torch.float64) if weights is None else torch.from_numpy(weights),
    )


@cache
def template(instances: int, systems: int, sizes: tuple[int, ...], families: tuple[int, int] | None) -> tp.Trajectories:
    """Names for n instances and S systems; the preferences are simulated, not the runs."""
    benchmarks = [f"b{h}" for h, size in enumerate(sizes) for _ in range(size)] or None
    labels = [f"f{f}" for f in range(families[0]) for _ in range(families[1])] if families else None
    return tp.Trajectories(torch.zeros(instances, systems, 1, 1), benchmarks=benchmarks, families=labels)


def present(setting: Setting, rng: np.random.Generator) -> np.ndarray:
    """Which runs there are [instance, system]."""
    here = np.ones((setting.instances, setting.systems), dtype=bool)
    if setting.missing == "at random":
        here = rng.random(here.shape) >= 0.3
    elif setting.missing == "by block":  # half of the systems never ran the last third of the instances
        here[-(setting.instances // 3) :, ::2] = False
    return here


def run_trials(chance: np.ndarray, trials: str, rng: np.random.Generator) -> Preferences:
    """Preferences by success rate of runs that succeed with a chance [instance, system]."""
    counts = TRIALS.get(trials, (3,))
    most = max(counts) if counts else 5
    number = rng.integers(1, 6, chance.shape) if counts is None else np.resize(counts, chance.shape[1])[None, :]
    there = np.arange(most) < np.broadcast_to(number, chance.shape)[:, :, None]
    returns = rng.random(there.shape) < chance[:, :, None]
    runs = tp.Trajectories(torch.from_numpy(returns[..., None].astype(float)), present=torch.from_numpy(there))
    return tp.preferences(runs, "sr")


def draw(setting: Setting, rng: np.random.Generator) -> Preferences:
    """One data set."""
    n, size = setting.instances, setting.systems
    if setting.trials:
        logits = setting.theta + TASK_SD * rng.standard_normal((n, 1)) + OWN_SD * rng.standard_normal((n, size))
        return run_trials(expit(logits), setting.trials, rng)
    runs = template(n, size, setting.sizes, setting.families)
    first, second = np.triu_indices(size, 1)
    if setting.skewed:  # nineteen small losses to one large win: mean 0
        delta = np.where(rng.random((n, len(first))) < 0.05, 19.0, -1.0)
        return preferences(delta, runs, unit=20)
    performance = setting.theta + rng.standard_normal((n, size))
    width = tie_width(setting.ties)
    if setting.families:
        performance += np.repeat(rng.standard_normal((setting.families[0], size)), setting.families[1], axis=0)
        width = tie_width(setting.ties, 4.0)
    ahead = performance[:, first] - performance[:, second]
    delta = (ahead > width).astype(float) - (ahead < -width)
    here = present(setting, rng)
    delta[~(here[:, first] & here[:, second])] = np.nan
    weights = None
    if setting.own_sd:
        weights = np.exp(setting.own_sd * rng.standard_normal(n))
    elif setting.sizes:
        weights = np.concatenate([np.full(size, n / (len(setting.sizes) * size)) for size in setting.sizes])
    return preferences(delta, runs, weights)


@cache
def truth(setting: Setting) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean of every pair, score of every system, and lowest and highest true rank (systems alike share their ranks)."""
    first, second = np.triu_indices(setting.systems, 1)
    gap = setting.theta[first] - setting.theta[second]
    weight = np.ones(len(first))
    if setting.skewed:
        mean = np.zeros(len(first))
    elif setting.trials:
        nodes, parts = np.polynomial.hermite_e.hermegauss(80)
        rate = expit(setting.theta[:, None] + np.hypot(TASK_SD, OWN_SD) * nodes) @ parts / parts.sum()
        mean = rate[first] - rate[second]
    else:
        variance = 4.0 if setting.families else 2.0
        width, spread = tie_width(setting.ties, variance), np.sqrt(variance)
        mean = ndtr((gap - width) / spread) - ndtr((-gap - width) / spread)
    if setting.missing == "by block":
        weight = np.where((first % 2 == 0) | (second % 2 == 0), 1 - (setting.instances // 3) / setting.instances, 1.0)
    fit = fit_pairs(torch.from_numpy((mean[None] + 1) / 2), torch.from_numpy(weight[None]), setting.systems)
    score = fit.theta[0].numpy()
    lowest = 1 + (score[None, :] > score[:, None] + 1e-9).sum(1)
    highest = setting.systems - (score[None, :] < score[:, None] - 1e-9).sum(1)
    return mean, score, np.stack([lowest, highest], 1)


def settings() -> Iterator[Setting]:
    """Every cell of the intervals."""
    for systems in SYSTEMS:
        for n in INSTANCES:
            yield Setting("identical systems", n, systems, spread=0.0)
            yield Setting("plain", n, systems)
            yield Setting("30 % missing at random", n, systems, missing="at random")
            yield Setting("missing by block", n, systems, missing="by block")
            yield Setting("95 % ties", n, systems, ties=0.95)
            yield Setting("nearly separated", n, systems, spread=5.0)
            for trials in TRIALS:
                yield Setting(f"trials {trials}", n, systems, trials=trials)
            for sd in (0.7, 1.5):
                yield Setting(f"own weights, sd {sd}", n, systems, own_sd=sd)
            yield Setting("skewed", n, systems, skewed=True, required=False)
        for sizes in SIZES:
            named = "ten of 10" if len(sizes) == 10 else "/".join(map(str, sizes))
            for spread, what in ((0.0, ", identical"), (1.0, "")):
                yield Setting(f"benchmarks {named}{what}", sum(sizes), systems, spread=spread, sizes=sizes)
        for families in ((10, 10), (40, 5)):
            name = f"families {families[0]}×{families[1]}"
            yield Setting(name, families[0] * families[1], systems, families=families)


def samples(full: int, scale: float) -> int:
    """How many data sets, at least 20."""
    return max(20, round(full * scale))


def intervals(scale: float, systems: tuple[int, ...] = SYSTEMS) -> list[dict[str, Any]]:
    """Coverage of the intervals of pairs, scores and all ranks together."""
    print(
        "\nCoverage at 95 %, in per cent ± Monte Carlo error; shown = share of intervals that are not withheld; widths of ranks"
    )
    print(
        f"{'case':<32}{'S':>3}{'n':>5} {'R':>5} | {'pairs':>11} {'shown':>6} {'width':>6} | {'scores':>11} {'shown':>6} | ",
        end="",
    )
    print(f"{'all ranks':>11} {'stepwise':>8} {'one step':>8}")
    chosen = (setting for setting in settings() if setting.systems in systems)
    return [interval_cell(setting, samples(SAMPLES[setting.systems], scale)) for setting in chosen]


def interval_cell(setting: Setting, datasets: int) -> dict[str, Any]:
    """One line of :func:`intervals`."""
    rng = np.random.default_rng([1, setting.systems, setting.instances, *setting.name.encode()])
    mean, score, true_ranks = truth(setting)
    pairs, scores, ranks = Share(), Share(), Share()
    pair_shown, score_shown, width, stepwise, one_step = [], [], [], [], []
    for number in range(datasets):
        prefs = draw(setting, rng)
        effects = pair_effects(prefs)
        there = ~np.isnan(effects.low)
        pair_shown.append(there.mean())
        if there.any():
            pairs.values.append(((effects.low <= mean + 1e-12) & (mean <= effects.high + 1e-12))[there].mean())
            width.append((effects.high - effects.low)[there].mean())
        board = tp.rank(prefs, bootstrap=0, seed=number)
        limits = board.interval.numpy()
        there = ~np.isnan(limits[:, 0])
        score_shown.append(there.mean())
        if there.any():
            scores.values.append(((limits[:, 0] <= score) & (score <= limits[:, 1]))[there].mean())
        found = board.rank_interval.numpy()
        ranks.values.append(float(((found[:, 0] <= true_ranks[:, 0]) & (true_ranks[:, 1] <= found[:, 1])).all()))
        stepwise.append((found[:, 1] - found[:, 0] + 1).mean())
        parts = mean_contributions(prefs, units_of(prefs))
        wide, _ = rank_intervals(
            np.nan_to_num(prefs.system_means().numpy(), nan=-2.0), parts, 0.95, number, stepwise=False
        )
        one_step.append((wide[:, 1] - wide[:, 0] + 1).mean())
    row = {
        "case": setting.name,
        "systems": setting.systems,
        "instances": setting.instances,
        "samples": datasets,
        "required": setting.required,
        "pairs": pairs.shown(),
        "pairs shown": round(100 * float(np.mean(pair_shown)), 1),
        "width": round(float(np.mean(width)), 3) if width else None,
        "scores": scores.shown(),
        "scores shown": round(100 * float(np.mean(score_shown)), 1),
        "ranks": ranks.shown(),
        "rank width": round(float(np.mean(stepwise)), 2),
        "one-step width": round(float(np.mean(one_step)), 2),
    }
    print(
        f"{row['case']:<32}{row['systems']:>3}{row['instances']:>5} {datasets:>5} | {percent(row['pairs'])} "
        f"{row['pairs shown']:>6} {row['width'] or '–':>6} | {percent(row['scores'])} {row['scores shown']:>6} | "
        f"{percent(row['ranks'])} {row['rank width']:>8} {row['one-step width']:>8}",
        flush=True,
    )
    return row


def percent(share: list[float] | None) -> str:
    """A share and its error in a column."""
    return f"{'–':>11}" if share is None else f"{share[0]:>5.1f} ± {share[1]:.1f}".rjust(11)


NULLS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "exchangeable, success .05": lambda rng, n: np.full((n, 2), 0.05),
    "exchangeable, success .9": lambda rng, n: np.full((n, 2), 0.9),
    "each task solved by one of the two": lambda rng, n: (rng.random((n, 1)) < 0.5) ^ np.array([[False, True]]),
    "success rates uniform per task": lambda rng, n: rng.random((n, 2)),
    "mild task effects": lambda rng, n: expit(rng.standard_normal((n, 1)) + 0.7 * rng.standard_normal((n, 2))),
    "few surely, many rarely": lambda rng, n: np.where(
        rng.random((n, 1)) < 0.1, np.array([[1.0, 0.0]]), np.array([[0.0, 1 / 9]])
    ),
    "power: a shift of 1 logit": lambda rng, n: expit(rng.standard_normal((n, 1)) + np.array([[0.5, -0.5]])),
}


def nulls(scale: float) -> list[dict[str, Any]]:
    """Rejections of the tests of two systems by success rate."""
    print("\nRejections at 5 %, two systems, in per cent ± Monte Carlo error (nulls: wanted at most 6; last: power)")
    print(f"{'null':<38}{'trials':>7}{'n':>5} {'R':>5} | {'sign flips':>11} {'the default':>11} {'t':>11} {'mean':>11}")
    rows = []
    for name, chances in NULLS.items():
        for trials in ("3 v 3", *TRIALS):
            rows += [null_cell(name, chances, trials, n, samples(2000, scale)) for n in INSTANCES]
    return rows


Chances = Callable[[np.random.Generator, int], np.ndarray]


def null_cell(name: str, chances: Chances, trials: str, n: int, datasets: int) -> dict[str, Any]:
    """One line of :func:`nulls`."""
    rng = np.random.default_rng([2, n, *trials.encode(), *name.encode()])
    found = {test: Share() for test in ("flips", "default", "t", "mean")}
    for number in range(datasets):
        prefs = run_trials(np.asarray(chances(rng, n), dtype=float), trials, rng)
        found["flips"].values.append(float(flips.flip_counts(prefs.delta, 999, number).p[0] <= 0.05))
        for test, option in (("default", "sign-flip"), ("t", "t"), ("mean", "mean")):
            if test == "mean" and number % 10:  # its integrals over orders take most of the time
                continue
            try:
                tests = tp.significance(prefs, "none", test=option, seed=number)
            except tp.TorchPrefError:
                continue
            found[test].values.append(float(tests.p[0] <= 0.05))
    row = {"case": name, "trials": trials, "instances": n, "samples": datasets} | {
        k: v.shown() for k, v in found.items()
    }
    shown = " ".join(percent(row[test]) for test in found)
    print(f"{name:<38}{trials:>7}{n:>5} {datasets:>5} | {shown}", flush=True)
    return row


def families(scale: float) -> list[dict[str, Any]]:
    """Rejections where tasks of a family share their luck, with the families known and not."""
    print("\nRejections at 5 % of two equal systems, families of tasks with a common effect of sd 1")
    print(f"{'families':<12} {'R':>5} | {'known':>11} {'not known':>11}")
    rows = []
    for shape in ((10, 10), (40, 5)):
        setting = Setting(f"{shape[0]}×{shape[1]}", shape[0] * shape[1], 2, spread=0.0, families=shape)
        rng, datasets = np.random.default_rng([3, *shape]), samples(2000, scale)
        known, unknown = Share(), Share()
        for number in range(datasets):
            prefs = draw(setting, rng)
            known.values.append(float(tp.significance(prefs, "none", seed=number).p[0] <= 0.05))
            bare = preferences(prefs.delta.numpy(), template(setting.instances, 2, (), None))
            unknown.values.append(float(tp.significance(bare, "none", seed=number).p[0] <= 0.05))
        row = {"case": setting.name, "samples": datasets, "known": known.shown(), "unknown": unknown.shown()}
        print(f"{setting.name:<12} {datasets:>5} | {percent(row['known'])} {percent(row['unknown'])}", flush=True)
        rows.append(row)
    return rows


def many(scale: float) -> list[dict[str, Any]]:
    """Any false rejection of Holm and max-T; share of false among the rejections of Benjamini–Hochberg; power."""
    print(
        "\nTests of all pairs at 5 %: any false rejection (Holm, max-T) with identical systems; false discoveries (BH) and"
    )
    print("power (Holm) where the first half of the systems is better by 1; wanted at most 6")
    print(f"{'case':<22}{'S':>3}{'n':>5} {'R':>5} | {'Holm':>11} {'max-T':>11} {'BH':>11} {'power':>11}")
    rows = []
    cases = [(5, name) for name in ("plain", "3/27/70", *(f"trials {trials}" for trials in TRIALS))]
    for systems, name in cases + [(20, name) for name in ("plain", "3/27/70", "trials 1–5")]:
        number = samples(SAMPLES[systems], scale)
        rows += [many_cell(name, systems, n, number) for n in ((100,) if "/" in name else INSTANCES)]
    return rows


class Halves(Setting):
    """The first half of the systems is better than the second by ``spread``."""

    @property
    def theta(self) -> np.ndarray:
        return np.where(np.arange(self.systems) < self.systems // 2, self.spread, 0.0)


def many_cell(name: str, systems: int, n: int, datasets: int) -> dict[str, Any]:
    """One line of :func:`many`."""
    options: dict[str, Any] = {"trials": name.removeprefix("trials ")} if name.startswith("trials") else {}
    if "/" in name:
        options = {"sizes": tuple(map(int, name.split("/")))}
    same, halves = Halves(name, n, systems, spread=0.0, **options), Halves(name, n, systems, spread=1.0, **options)
    rng = np.random.default_rng([4, systems, n, *name.encode()])
    first, second = np.triu_indices(systems, 1)
    null = halves.theta[first] == halves.theta[second]
    found = {test: Share() for test in ("holm", "max-t", "bh", "power")}
    for number in range(datasets):
        prefs = draw(same, rng)
        found["holm"].values.append(float(tp.significance(prefs, "holm", seed=number).significant.any()))
        with patch.object(flips, "enough_flips", lambda *_: 999):  # a test of its level too, and ten times as fast
            found["max-t"].values.append(float(tp.significance(prefs, "max-t", seed=number).significant.any()))
        prefs = draw(halves, rng)
        rejected = tp.significance(prefs, "bh", seed=number).significant.numpy()
        found["bh"].values.append(rejected[null].sum() / max(1, rejected.sum()))
        found["power"].values.append(tp.significance(prefs, "holm", seed=number).significant.numpy()[~null].mean())
    row = {"case": name, "systems": systems, "instances": n, "samples": datasets} | {
        k: v.shown() for k, v in found.items()
    }
    print(f"{name:<22}{systems:>3}{n:>5} {datasets:>5} | {' '.join(percent(row[test]) for test in found)}", flush=True)
    return row


PARTS: dict[str, Callable[..., list[dict[str, Any]]]] = {
    "intervals": intervals,
    "nulls": nulls,
    "families": families,
    "many": many,
}
#: Columns of each table on the page, and their heads.
COLUMNS = {
    "intervals": {
        "case": "case",
        "systems": "systems",
        "instances": "instances",
        "samples": "samples",
        "pairs": "pairs",
        "pairs shown": "shown",
        "width": "width",
        "scores": "scores",
        "scores shown": "shown",
        "ranks": "all ranks",
        "rank width": "ranks, mean width",
        "one-step width": "in one step",
    },
    "nulls": {
        "case": "truth",
        "trials": "trials",
        "instances": "instances",
        "samples": "samples",
        "flips": "sign flips alone",
        "default": "the test used",
        "t": "t",
        "mean": "betting",
    },
    "families": {"case": "families", "samples": "samples", "known": "families known", "unknown": "not known"},
    "many": {
        "case": "case",
        "systems": "systems",
        "instances": "instances",
        "samples": "samples",
        "holm": "Holm",
        "max-t": "max-T",
        "bh": "BH",
        "power": "power, Holm",
    },
}


def write_text(path: Path, text: str) -> None:
    with written_whole(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_page(page: Path, results: dict[str, list[dict[str, Any]]]) -> None:
    """Replace what stands between the marks ``<!-- trust NAME -->`` and ``<!-- end -->``."""
    text = page.read_text(encoding="utf-8")
    for part, rows in results.items():
        heads = {key: head for key, head in COLUMNS[part].items() if any(row[key] is not None for row in rows)}
        lines = ["| " + " | ".join(heads.values()) + " |", "|" + "---|" * len(heads)]
        for row in rows:
            cells = (row[key] for key in heads)
            shown = ("–" if c is None else f"{c[0]:.1f} ± {c[1]:.1f}" if isinstance(c, list) else str(c) for c in cells)
            lines.append("| " + " | ".join(shown) + " |")
        table = "\n".join(lines)
        text = re.sub(
            rf"(<!-- trust {part} -->\n).*?(<!-- end -->)",
            lambda m, t=table: f"{m[1]}\n{t}\n\n{m[2]}",
            text,
            flags=re.DOTALL,
        )
    write_text(page, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full number of samples")
    parser.add_argument(
        "--systems", type=int, nargs="+", default=SYSTEMS, help="only these numbers of systems in intervals"
    )
    parser.add_argument(
        "--json", type=Path, nargs="+", default=[], help="write the figures (one file), or with --page read them"
    )
    parser.add_argument("--page", type=Path, help="write the tables of this page from the files of --json")
    options = parser.parse_args()
    results: dict[str, list[dict[str, Any]]] = {}
    if options.page:
        for path in options.json:
            for part, rows in json.loads(path.read_text(encoding="utf-8")).items():
                results.setdefault(part, []).extend(rows)
        write_page(options.page, results)
        return
    for part in options.parts:
        start = time.perf_counter()
        if part == "intervals":  # parts of it may run side by side, with files that are joined afterwards
            results[part] = intervals(options.scale, tuple(options.systems))
        else:
            results[part] = PARTS[part](options.scale)
        print(f"({part}: {time.perf_counter() - start:.0f} s)", flush=True)
        for path in options.json:
            write_text(path, json.dumps(results, indent=0, ensure_ascii=False))


if __name__ == "__main__":
    main()
