"""The paper's tables beside what this package gets, written to benchmarks/REPRODUCTION.md.

    python benchmarks/reproduction.py [--resamples 1000] [--draws 100] [--seed 0] [--data ../shared/data] [--docs]
        [--write benchmarks/REPRODUCTION.md]

SGRL and the oracle come from the sets that ship with the package. OpenHands Index, TheAgentCompany, InterCode, TALES and METR
are public numbers in ``../shared/data`` (relative to the repository); where they are absent, the page says so.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
import separation

import torchpref as tp
from torchpref.meta import MetaEvaluation, MetaTable, false_alarms, meta_evaluate
from torchpref.meta.tables import markdown_series, markdown_table, number, rows_markdown
from torchpref.runs.measures import MEASURES
from torchpref.sgrl import SUITES, known_order

ROOT = Path(__file__).resolve().parents[1]
TEMPORAL = ("lr", "rpp", "ipp")
SETS = ("taxi", "fourrooms", "doorkey")


def _row(*values: float) -> dict[str, float]:
    return dict(zip(MEASURES, values, strict=True))


#: The paper's figures (arXiv 2606.17541): per cent, except split-half.
PAPER: dict[str, dict[str, float]] = {
    "oracle accuracy": _row(12.8, 12.8, 91.8, 95.6, 94.2, 95.8),
    "oracle, right and significant, FWER": _row(0, 0, 31.6, 37.5, 37.5, 37.7),
    "oracle, right and significant, FDR": _row(0, 0, 48.1, 61.6, 63.2, 62.5),
    "split-half, pairs": _row(0.75, 0.82, 0.71, 0.83, 0.83, 0.78),
    "split-half, ranking": _row(0.73, 0.82, 0.70, 0.85, 0.85, 0.81),
    "leave-one-out flips": _row(0.00, 2.14, 5.50, 0.00, 1.88, 2.83),
    "tie rate": _row(74.90, 49.71, 63.42, 33.90, 34.82, 35.09),
    "discriminative power, FWER": _row(44.98, 56.53, 39.02, 66.16, 61.51, 53.34),
    "discriminative power, FDR": _row(58.47, 73.37, 60.20, 77.81, 78.35, 73.76),
    "A/A false positives": _row(0, 0, 0, 0, 0, 0),
}
PAPER_TIES = {
    "AgentBoard": _row(78.88, 43.49, 75.87, 33.27, 34.93, 36.11),
    "TheAgentCompany": _row(80.88, 49.78, 76.01, 32.30, 34.75, 34.75),
    "OpenHands Index": _row(74.56, 74.56, 36.77, 36.77, 36.77, 36.77),
    "TALES": _row(84.05, 27.61, 80.73, 22.66, 23.04, 23.18),
    "SGRL": _row(56.10, 53.08, 47.74, 44.49, 44.63, 44.66),
}
PAPER_POWER = {
    "AgentBoard": _row(59.09, 71.46, 55.81, 69.44, 71.97, 71.21),
    "TheAgentCompany": _row(74.17, 83.33, 64.17, 79.17, 81.67, 81.67),
    "OpenHands Index": _row(55.57, 55.57, 77.08, 77.98, 77.98, 77.98),
    "TALES": _row(27.98, 80.91, 25.87, 83.80, 80.41, 58.74),
    "SGRL": _row(75.54, 75.57, 78.09, 78.68, 79.74, 79.20),
}
#: Rows of the main table and the figures they are.
ROWS = {
    "split-half, pairs": "split_half_pairs",
    "split-half, ranking": "split_half_ranking",
    "leave-one-out flips": "leave_one_out",
    "tie rate": "tie_rate",
    "discriminative power, FWER": "power_fwer",
    "discriminative power, FDR": "power_fdr",
}
ORACLE_ROWS = {
    "oracle accuracy": "oracle_accuracy",
    "oracle, right and significant, FWER": "oracle_fwer",
    "oracle, right and significant, FDR": "oracle_fdr",
}


@dataclass(frozen=True)
class Source:
    """Public numbers in a file of ../shared/data."""

    title: str
    file: str
    about: str
    options: dict[str, Any]
    clock: str
    meta: dict[str, int]


SOURCES = {
    source.title: source
    for source in (
        Source(
            "OpenHands Index", "openhands_index.csv",
            "34 models on five benchmarks, clock cost; the nine other agents in the file are left out, as their prices are "
            "almost all 0. A price of exactly 0 counts as unknown.",
            {"columns": "success=resolved,cost=cost_usd", "where": ["system!=*/*"]}, "cost", {"subgoal_draws": 0},
        ),
        Source(
            "TheAgentCompany", "theagentcompany.csv",
            "6 systems on 175 tasks, clock steps. The file gives the checkpoints reached at the end of a run and its steps: "
            "all of a run's return comes at its last step.",
            {"columns": "score=result,max_score=total,cost=cost_usd"}, "steps", {},
        ),
        Source(
            "InterCode bash", "intercode.csv",
            "10 systems on 200 tasks, clock steps (turns); the reward after every turn.",
            {"columns": "instance=split+task_id,return=rewards", "where": "env=bash"}, "steps", {},
        ),
        Source(
            "InterCode sql", "intercode.csv",
            "16 systems on 1,034 tasks, clock steps (turns).",
            {"columns": "instance=split+task_id,return=rewards", "where": "env=sql"}, "steps", {},
        ),
        Source(
            "TALES", "tales_rollouts.csv",
            "10 agent settings, most of them on one of two games only, clock steps. Two instances say nothing about "
            "reliability or significance; the table is here to show what the command then says.",
            {"columns": "instance=game,turns=moves,tokens=token_usage"}, "steps", {"curve_draws": 0, "subgoal_draws": 0},
        ),
        Source(
            "METR", "metr_runs.csv",
            "10 models and humans on 83 tasks, 1 to 96 trials, clock seconds; success or failure only.",
            {"columns": "success=score_binarized,seconds=duration_s"}, "seconds", {"curve_draws": 0, "subgoal_draws": 0},
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """A statement, on what, what was measured, and whether it holds there."""

    text: str
    where: str
    measured: str
    holds: bool


class Page:
    """Computes each part once and keeps the claims."""

    def __init__(self, data: Path, resamples: int, seed: int) -> None:
        self.data, self.resamples, self.seed = data, resamples, seed
        self.claims: list[Claim] = []
        self.found: dict[str, MetaEvaluation] = {}
        self.seconds: dict[str, float] = {}

    def evaluate(self, title: str, runs: tp.Trajectories, **options: Any) -> MetaEvaluation:
        print(f"{title}: {runs!r}", file=sys.stderr, flush=True)
        start = time.process_time()
        self.found[title] = meta_evaluate(runs, resamples=self.resamples, seed=self.seed, **options)
        self.seconds[title] = time.process_time() - start
        return self.found[title]

    def claim(self, text: str, where: str, measured: str, holds: bool) -> None:
        self.claims.append(Claim(text, where, measured, holds))

    # ---------------------------------------------------------------------------------------------------- parts

    def suite(self, kind: str) -> MetaEvaluation:
        """One trial of each set of a kind, all sets as benchmarks of one evaluation."""
        runs = tp.read([SUITES[f"{name}-{kind}"].path for name in SETS], where="trial=0")
        order = known_order(f"{SETS[0]}-{kind}")
        assert all(known_order(f"{name}-{kind}") == order for name in SETS)
        return self.evaluate(f"SGRL {kind}", runs, known_order=order)

    def public(self) -> None:
        for title, source in SOURCES.items():
            path = self.data / source.file
            if path.is_file():
                self.evaluate(title, tp.read(path, **source.options), clock=source.clock, **source.meta)

    def alarms(self) -> str:
        """A/A tests on all five trials of every set, and on METR."""
        rows = []
        for name in (f"{each}-{kind}" for kind in ("saturated", "mixed") for each in SETS):
            rows.append([name, *self._alarm_cells(name, false_alarms(tp.sgrl.load(name), MEASURES, seed=self.seed))])
        metr = self.found.get("METR")
        if metr is not None:
            cells = []
            for measure in MEASURES:
                share = metr[measure, "bias_draws"].value
                self._alarm_claim("METR", measure, share)
                cells.append(f"{100 * share:.1f}")
            rows.append(["METR, 1 to 96 trials", *cells])
        return rows_markdown(["share of 200 draws with any rejection after Holm, %", *_heads()], rows)

    def _alarm_cells(self, name: str, found: Mapping[str, Any]) -> list[str]:
        cells = []
        for measure in MEASURES:
            share = float(found[measure].draws.mean())
            self._alarm_claim(name, measure, share)
            cells.append(f"{100 * share:.1f}")
        return cells

    def _alarm_claim(self, name: str, measure: str, share: float) -> None:
        text = "A/A: any rejection after Holm in at most 8.1 % of 200 draws"
        self.claim(text, f"{name}, {measure.upper()}", f"{100 * share:.1f} %", share <= 0.081)


def _heads() -> list[str]:
    return [measure.upper() for measure in MEASURES]


def _values(table: MetaTable, figure: str) -> dict[str, float]:
    """A figure as the paper prints it: shares in per cent."""
    scale = 1 if figure.startswith("split_half") else 100
    return {measure: scale * table[measure, figure].value for measure in MEASURES}


def _table(found: MetaEvaluation) -> MetaTable:
    """The mean over benchmarks where there are several, else the one table."""
    return found.mean if found.mean is not None else found.overall


def _mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {measure: sum(row[measure] for row in rows) / len(rows) for measure in MEASURES}


def _cells(row: Mapping[str, float]) -> list[str]:
    return [number(row[measure], percent=False) for measure in MEASURES]


def _difference(ours: Mapping[str, float], paper: Mapping[str, float]) -> list[str]:
    gaps = {measure: ours[measure] - paper[measure] for measure in MEASURES}
    return ["–" if math.isnan(gap) else f"{gap:+.2f}" for gap in gaps.values()]


# ------------------------------------------------------------------------------------------------------ sections


def main_table(page: Page) -> str:
    """The paper's main table beside ours."""
    parts = {"SGRL": page.found["SGRL mixed"]}
    parts |= {name: page.found[name] for name in ("OpenHands Index", "TheAgentCompany") if name in page.found}
    names = ", ".join(sorted(parts))
    rows = []
    oracle = _table(page.found["SGRL saturated"])
    for title, figure in ORACLE_ROWS.items():
        ours = _values(oracle, figure)
        rows += [[title, "paper", *_cells(PAPER[title])], ["", "SGRL saturated", *_cells(ours)]]
    for title, figure in ROWS.items():
        ours = _mean([_values(_table(found), figure) for found in parts.values()])
        rows.append([title, "paper", *_cells(PAPER[title])])
        per_benchmark = {"tie_rate": PAPER_TIES, "power_fdr": PAPER_POWER}.get(figure)
        if per_benchmark is not None:
            rows.append(["", f"paper, mean of {names}", *_cells(_mean([per_benchmark[name] for name in parts]))])
        rows.append(["", f"mean of {names}", *_cells(ours)])
    return rows_markdown(["figure", "whose", *_heads()], rows)


def benchmark_table(page: Page, paper: Mapping[str, Mapping[str, float]], figure: str) -> str:
    """One figure per benchmark, the paper's line, ours, and the difference."""
    source = {"SGRL": "SGRL mixed"}
    rows = []
    for name, theirs in paper.items():
        rows.append([name, "paper", *_cells(theirs)])
        found = page.found.get(source.get(name, name))
        if found is None:
            why = "no public run data" if name == "AgentBoard" else f"{SOURCES[name].file} is absent"
            rows.append(["", f"ours: {why}", *["–"] * len(MEASURES)])
            continue
        ours = _values(_table(found), figure)
        whose = f"ours, mean of {len(found.benchmarks)}" if found.benchmarks else "ours"
        rows += [["", whose, *_cells(ours)], ["", "difference", *_difference(ours, theirs)]]
        if found.benchmarks:
            rows.append(["", "ours, all instances together", *_cells(_values(found.overall, figure))])
    return rows_markdown(["benchmark", "whose", *_heads()], rows)


def tie_claims(page: Page) -> None:
    for name in ("OpenHands Index", "TheAgentCompany"):
        found = page.found.get(name)
        if found is None:
            continue
        ours = _values(_table(found), "tie_rate")
        for measure in MEASURES:
            limit = 1.0 if measure in ("sr", "pr") else 5.0
            gap = ours[measure] - PAPER_TIES[name][measure]
            text = "tie rate within one point of the paper's (SR, PR), within five (SPL, LR, RPP, IPP)"
            page.claim(text, f"{name}, {measure.upper()}", f"{gap:+.2f} points", abs(gap) <= limit)


def oracle_section(page: Page) -> str:
    """Oracle accuracy per set with one trial and with all five, and the claims about it."""
    rows = []
    for kind in ("saturated", "mixed"):
        found = page.found[f"SGRL {kind}"]
        for name, table in found.benchmarks.items():
            values = _values(table, "oracle_accuracy")
            rows.append([f"{name}, {kind}", "1", *_cells(values)])
            if kind == "saturated":
                for measure in TEMPORAL:
                    if values["sr"] < 50:
                        text = "oracle accuracy at least 95 % on saturated sets where SR decides under 50 %"
                        where = f"{name}, one trial, {measure.upper()}"
                        page.claim(text, where, f"{values[measure]:.1f} %", values[measure] >= 95)
    for kind in ("saturated", "mixed"):
        for name in (f"{each}-{kind}" for each in SETS):
            runs = tp.sgrl.load(name)
            order = [runs.systems.index(system) for system in known_order(name)]
            place = torch.empty(len(order), dtype=torch.int64)
            place[order] = torch.arange(len(order))
            values = {}
            for measure, prefs in tp.all_preferences(runs).items():
                signs = torch.sign(place[prefs.pairs[:, 1]] - place[prefs.pairs[:, 0]])
                values[measure] = 100 * float((torch.sign(prefs.pair_means()) == signs).double().mean())
            rows.append([f"{SUITES[name].about} ({name})", "5", *_cells(values)])
            if kind == "saturated" and values["sr"] < 50:
                for measure in TEMPORAL:
                    text = "oracle accuracy at least 95 % on saturated sets where SR decides under 50 %"
                    where = f"{name}, five trials, {measure.upper()}"
                    page.claim(text, where, f"{values[measure]:.1f} %", values[measure] >= 95)
    return rows_markdown(["oracle accuracy, %", "trials", *_heads()], rows)


def efficiency_section(page: Page) -> str:
    parts = []
    for kind in ("saturated", "mixed"):
        found = page.found[f"SGRL {kind}"]
        half = found.efficiency["rpp", "oracle_accuracy"][4].value
        full = found["spl", "oracle_accuracy"].value
        text = "RPP with half of the instances at least as accurate as SPL with all of them"
        measured = f"{100 * half:.2f} % against {100 * full:.2f} %"
        page.claim(text, f"SGRL {kind}, one trial, all three environments", measured, half >= full)
        parts.append(
            f"SGRL {kind}, one trial:\n\n" + markdown_series(found.efficiency, ["oracle_accuracy", "power_fdr"])
        )
    return "\n\n".join(parts)


def single_set_efficiency(page: Page) -> None:
    """The claim about half of the instances for every set by itself, as it ships and with one trial."""
    for name in (f"{each}-{kind}" for kind in ("saturated", "mixed") for each in SETS):
        print(f"{name}: half of the instances", file=sys.stderr, flush=True)
        for trials, where in (("five trials", None), ("one trial", "trial=0")):
            found = meta_evaluate(
                tp.read(SUITES[name].path, where=where), ["spl", "rpp"],
                known_order=known_order(name), resamples=20, curve_draws=200, alarm_draws=1, subgoal_draws=0, seed=page.seed,
            )  # fmt: skip
            half, full = found.efficiency["rpp", "oracle_accuracy"][4].value, found["spl", "oracle_accuracy"].value
            text = "RPP with half of the instances at least as accurate as SPL with all of them"
            page.claim(text, f"{name}, {trials}", f"{100 * half:.2f} % against {100 * full:.2f} %", half >= full)


def saturation_section(page: Page) -> str:
    parts = []
    for title in ("OpenHands Index", "TheAgentCompany", "SGRL mixed", "InterCode sql"):
        found = page.found.get(title)
        if found is None or found.saturation.reason:
            continue
        powers = [estimate.value for estimate in found.saturation["rpp", "power_fdr"]]
        low = 100 * min(powers)
        page.claim(
            "RPP's power (FDR) stays above 78 % over the whole range of success rates",
            title,
            f"least {low:.1f} %",
            low > 78,
        )
        parts.append(
            f"{title}, {found.overall.instances} instances:\n\n" + markdown_series(found.saturation, ["power_fdr"])
        )
    return "\n\n".join(parts)


def power_section(page: Page) -> str:
    """Power by budget and by success of the pair, and the paper's claim by the latter."""
    parts = []
    for title in ("OpenHands Index", "TheAgentCompany", "SGRL mixed", "InterCode sql"):
        found = page.found.get(title)
        if found is None:
            continue
        for series in (found.power_by_budget, found.power_by_pair):
            if not series.reason:
                parts.append(f"{title}, all {found.overall.instances} instances:\n\n" + markdown_series(series, ["power_fdr"]))
        if not found.power_by_pair.reason:
            low = 100 * min(estimate.value for estimate in found.power_by_pair["rpp", "power_fdr"])
            text = "RPP's power (FDR) stays above 78 % in all bins of pairs by success rate, with all instances"
            page.claim(text, title, f"least {low:.1f} %", low > 78)
    return "\n\n".join(parts)


def subgoal_section(page: Page) -> str:
    parts = []
    for title in ("TheAgentCompany", "InterCode bash", "SGRL mixed"):
        found = page.found.get(title)
        if found is None or found.subgoals.reason:
            continue
        keys = ["tie_rate", "power_fdr", "ranking_as_annotated", "same_sign"]
        keys += ["oracle_accuracy"] if "oracle_accuracy" in found.subgoals.figures["rpp"] else []
        parts.append(f"{title}:\n\n" + markdown_series(found.subgoals, keys))
    return "\n\n".join(parts)


def full_tables(page: Page) -> str:
    parts = []
    for title, found in page.found.items():
        about = (
            SOURCES[title].about
            if title in SOURCES
            else "One trial of each policy on 100 instances of three environments."
        )
        parts.append(f"### {title}\n\n{about}\n\n{markdown_table(_table(found))}")
    return "\n\n".join(parts)


def claims_section(page: Page) -> str:
    """Claims, those with many places in one line unless they fail somewhere."""
    grouped: dict[str, list[Claim]] = {}
    for claim in page.claims:
        grouped.setdefault(claim.text, []).append(claim)
    rows = []
    for text, claims in grouped.items():
        failing = [claim for claim in claims if not claim.holds]
        rows.append(
            [
                text,
                f"{len(claims) - len(failing)} of {len(claims)}",
                "holds" if not failing else "**does not hold everywhere**",
            ]
        )
        rows += [[f"– not on {claim.where}", claim.measured, ""] for claim in failing]
    return rows_markdown(["claim", "holds on", ""], rows)


def claim_details(page: Page) -> str:
    rows = [[claim.text, claim.where, claim.measured, "yes" if claim.holds else "**no**"] for claim in page.claims]
    return rows_markdown(["claim", "on", "measured", "holds"], rows)


DIFFERENCES = """\
- **OpenHands Index.** The paper's version holds other models and dates. Success at an unknown price (190 solved runs at a
  price of exactly 0) ties with every other success here; SPL leaves such runs out, so that its tie rate is not quite that
  of LR as it is in the paper. Three of the benchmarks are small (16, 103 and 165 instances), and with them the power; all
  1,217 instances together give more. The paper's figures lie between the two.
- **TheAgentCompany.** The numbers come from a fork of the experiments repository with 6 systems; the paper's power figures
  are multiples of 1/120, as with 16 systems. One task has a total of 3 for some systems and 4 for others, and each run is
  divided by its own. All of a run's return comes at its last step in this file.
- **SGRL.** Our own suite: the same environments, but policies, horizons and instances of our own choice, so that levels of
  ties and power are not comparable, only their order over measures.
- **The oracle.** Measured on the saturated sets, where every policy succeeds, so that SR and PR always tie and are never
  right. Our policies lie further apart than the paper's seem to: its accuracies below 100 % and its low significance say
  so. *The paper's oracle pattern* shows policies that lie closer together and make detours: with them the figures are near
  the paper's.
- **Half of the instances.** SPL is given the length of the true shortest path in this suite, and with all instances it
  orders the policies without a mistake on every saturated set; half of the instances can at best do the same. On harder
  ladders the statement holds where runs fail at random, and not where they make detours: *Half of the instances, harder*.
- **Saturation.** With all instances, in bins of pairs by success rate, RPP's power stays above 78 % on some of the
  benchmarks. A tenth of the instances, with all pairs corrected together, does not give the power of the whole. On
  OpenHands Index the paper's statement holds where at least three quarters of the runs succeed, which is where success
  rates stop telling systems apart; on hard instances, where hardly any run reaches anything, no measure can tell systems
  apart.
- **TALES.** Two games and ten settings are public; the paper used the whole suite.
- **AgentBoard.** There is no public run data. Its lines stay empty.
- **Significance.** Ours are exact sign-flip tests over instances, and label permutations where systems ran an instance
  unequally often. Another test would give other power.
- **Means.** Our main table is the mean of the benchmarks named in it, each counting once; the paper's is over its own five."""


def write_page(page: Page, harder: separation.Separation) -> str:
    missing = [f"{source.title}: {source.file}" for title, source in SOURCES.items() if title not in page.found]
    data = "All public numbers were there." if not missing else "**Absent, and left out: " + "; ".join(missing) + ".**"
    oracle = oracle_section(page)
    alarms = page.alarms()
    tie_claims(page)
    single_set_efficiency(page)
    efficiency = efficiency_section(page)
    saturation = saturation_section(page)
    power = power_section(page)
    sections: list[tuple[str, str]] = [
        ("Claims", claims_section(page)),
        ("Main table", "Per cent, except split-half. " + main_table_note() + "\n\n" + main_table(page)),
        ("Tie rate per benchmark, %", benchmark_table(page, PAPER_TIES, "tie_rate")),
        ("Discriminative power per benchmark, FDR, %", benchmark_table(page, PAPER_POWER, "power_fdr")),
        ("Differences", DIFFERENCES),
        ("Oracle accuracy per set", "The true order of the policies is proved, see `torchpref.sgrl`.\n\n" + oracle),
        *separation.sections(harder),
        ("A/A", "Between pseudo-systems that are trials of one system, dealt at random 200 times.\n\n" + alarms),
        ("Data efficiency", efficiency),
        (
            "Saturation",
            "With all instances: the same runs stopped at a budget, and pairs of systems by the success rate of the two.\n\n"
            + power
            + "\n\nInstances in ten bins of equal count, from the least to the most often solved: each bin has a tenth of the "
            "instances, and less power for that reason alone.\n\n" + saturation,
        ),
        ("Robustness to subgoals", subgoal_section(page)),
        ("Full tables", full_tables(page)),
        ("Claims in detail", claim_details(page)),
    ]
    head = (
        "# Reproduction\n\n"
        "Written by `python benchmarks/reproduction.py`; do not edit. The paper is *Offline Preference-Based Trajectory "
        "Evaluation*, arXiv 2606.17541. "
        f"{page.resamples:,} resamples, seed {page.seed}, torch {torch.__version__.split('+')[0]}, "
        f"torchpref {tp.__version__}. {data} What a figure means: `torchpref.meta.explain(\"leave_one_out\")`.\n\n"
        "Processor seconds of the evaluations: "
        + ", ".join(f"{title} {seconds:.0f}" for title, seconds in page.seconds.items()) + "."
    )  # fmt: skip
    return "\n\n".join([head, *(f"## {title}\n\n{body}" for title, body in sections)]) + "\n"


def main_table_note() -> str:
    return (
        "The oracle is the mean over the three saturated sets with one trial. AgentBoard and TALES are not in our means; the "
        "paper's own means over the same benchmarks stand beside ours where it gives figures per benchmark."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=100, help="fresh data sets of every ladder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--docs", action="store_true", help="write the tables of docs/choosing.md too")
    parser.add_argument("--data", type=Path, default=ROOT / "../shared/data")
    parser.add_argument("--write", type=Path, default=ROOT / "benchmarks/REPRODUCTION.md")
    options = parser.parse_args()
    import warnings

    warnings.simplefilter("ignore", tp.TorchPrefWarning)  # what the data are like is in shared/data/README.md
    page = Page(options.data, options.resamples, options.seed)
    steps: list[Callable[[], object]] = [lambda: page.suite("saturated"), lambda: page.suite("mixed"), page.public]
    for step in steps:
        step()
    harder = separation.Separation(options.draws, options.data, options.seed)
    text = write_page(page, harder)
    if options.docs:
        separation.write_docs(harder)
    temporary = options.write.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, options.write)
    print(claims_section(page))
    print(f"\nwritten to {options.write}")


if __name__ == "__main__":
    main()
