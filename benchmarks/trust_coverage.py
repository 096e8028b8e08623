"""Do the intervals cover, and do the tests keep their error rates? Simulated samples whose truth is known.

    python benchmarks/trust_coverage.py [--datasets 1000] [scores] [ranks] [pairs] [errors]

Every sample has n instances and S systems. System A's performance on an instance is θ_A plus independent normal noise;
A is preferred where it is ahead by more than c, which sets the share of ties. Population means, and from them scores and
ranks, follow from the normal distribution.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

import torchpref as tp
from torchpref.pairwise.preferences import Preferences, all_pairs
from torchpref.stats.bradley_terry.batch import fit_pairs
from torchpref.stats.ranking.rank_intervals import rank_intervals
from torchpref.stats.ranking.ranking import LEAST_DECIDED
from torchpref.stats.ranking.score_errors import mean_contributions, score_contributions
from torchpref.stats.resampling.instances import resampling_units
from torchpref.stats.resampling.scores import replicate_scores
from torchpref.stats.significance.effects import critical_t, pair_effects
from torchpref.stats.significance.significance import significance

INSTANCES = (10, 30, 100, 500)
TIES = (0.0, 0.35, 0.75)


def template(instances: int, systems: int) -> tp.Trajectories:
    """Names for n instances and S systems; the preferences are simulated, not the runs."""
    return tp.Trajectories(torch.zeros(instances, systems, 1, 1))


def as_preferences(runs: tp.Trajectories, delta: torch.Tensor, mask: torch.Tensor | None = None) -> Preferences:
    """Preferences from Δ in {-1, 0, 1} [instance, pair]."""
    here = torch.ones_like(delta) if mask is None else mask.long()
    return Preferences(
        measure="lr",
        runs=runs,
        clock="steps",
        pairs=all_pairs(len(runs.systems)),
        sums=delta * here,
        unit=1,
        trial_pairs=here,
        ties=((delta == 0) & (here > 0)).long(),
        weights=torch.ones(len(runs.instances), dtype=torch.float64),
    )


def tie_width(rate: float) -> float:
    """c with P(|N(0, 2)| < c) = rate."""
    from scipy.special import ndtri

    return float(ndtri((1 + rate) / 2) * np.sqrt(2))


def simulate(rng: np.random.Generator, theta: np.ndarray, instances: int, width: float) -> torch.Tensor:
    """Δ [instance, pair] of one sample."""
    performance = theta + rng.standard_normal((instances, len(theta)))
    first, second = np.triu_indices(len(theta), 1)
    ahead = performance[:, first] - performance[:, second]
    return torch.from_numpy((ahead > width).astype(np.int64) - (ahead < -width))


def population(theta: np.ndarray, width: float) -> np.ndarray:
    """Mean preference of every pair in the population."""
    from scipy.special import ndtr

    first, second = np.triu_indices(len(theta), 1)
    gap = (theta[first] - theta[second]) / np.sqrt(2)
    return ndtr(gap - width / np.sqrt(2)) - ndtr(-gap - width / np.sqrt(2))


def scores(datasets: int) -> None:
    systems = 8
    theta = np.linspace(-0.5, 0.5, systems)
    print(
        f"\nscore intervals at 95 %: {datasets} samples each, {systems} systems; percentile beside (300 resamples, 200 samples)"
    )
    print(f"{'n':>5} {'ties':>6} {'sandwich':>9} {'given':>7} {'percentile':>11}")
    for instances in INSTANCES:
        runs, units = template(instances, systems), resampling_units(("",) * instances)
        for rate in TIES:
            rng = np.random.default_rng([1, instances, round(100 * rate)])
            width = tie_width(rate)
            mean = torch.from_numpy(population(theta, width))
            target = fit_pairs((mean[None] + 1) / 2, None, systems).theta[0].numpy()
            samples = [simulate(rng, theta, instances, width) for _ in range(datasets)]
            fits = fit_pairs((torch.stack([s.double().mean(0) for s in samples]) + 1) / 2, None, systems)
            hits, given, covered, tried = 0, 0, 0, 0
            for number, (sample, fit, status) in enumerate(zip(samples, fits.theta, fits.status, strict=True)):
                if int(status) != 0:
                    continue
                prefs = as_preferences(runs, sample)
                members = np.arange(systems)
                parts = score_contributions(prefs, fit.numpy(), members, units)
                half = critical_t(0.95, parts.degrees()) * parts.errors()
                usable = parts.decided >= LEAST_DECIDED
                hits += int((np.abs(fit.numpy() - target) <= half)[usable].sum())
                given += int(usable.sum())
                if number < 200:
                    draws = replicate_scores(
                        prefs, units, 300, number, members=torch.from_numpy(members), theta=fit, by_mean=False
                    )
                    low, high = draws.limits(0.95).numpy().T
                    there = ~np.isnan(low) & ~np.isnan(high)
                    covered += int(((low <= target) & (target <= high))[there].sum())
                    tried += int(there.sum())
            share = given / (datasets * systems)
            percentile = f"{100 * covered / tried:10.1f}%" if tried else f"{'–':>11}"
            shown = f"{100 * hits / given:8.1f}%" if given else f"{'–':>9}"
            print(f"{instances:>5} {100 * rate:>5.0f}% {shown} {100 * share:6.1f}% {percentile}", flush=True)


def ranks(datasets: int) -> None:
    systems = 30
    theta = np.linspace(-0.05, 0.05, systems)
    truth = np.arange(systems, 0, -1)
    print(f"\nrank intervals at 95 %, {systems} near-equal systems, {datasets} samples each")
    print(
        f"{'n':>5} {'ties':>6} {'all ranks':>10} {'last one':>9} {'width':>6} | last one, quantiles of bootstrapped ranks"
    )
    for instances in INSTANCES:
        runs, units = template(instances, systems), resampling_units(("",) * instances)
        for rate in TIES:
            rng = np.random.default_rng([2, instances, round(100 * rate)])
            width = tie_width(rate)
            everywhere = last = size = naive = 0
            for number in range(datasets):
                prefs = as_preferences(runs, simulate(rng, theta, instances, width))
                parts = mean_contributions(prefs, units)
                means = prefs.system_means().numpy()
                bounds, _ = rank_intervals(means, parts, 0.95, number)
                inside = (bounds[:, 0] <= truth) & (truth <= bounds[:, 1])
                everywhere += bool(inside.all())
                last += bool(inside[0])
                size += float((bounds[:, 1] - bounds[:, 0] + 1).mean())
                if number < 200:
                    naive += naive_rank_covers(prefs, number)
            shown = f"{100 * naive / min(200, datasets):.0f}%"
            print(
                f"{instances:>5} {100 * rate:>5.0f}% {100 * everywhere / datasets:9.1f}% {100 * last / datasets:8.1f}% "
                f"{size / datasets:6.1f} | {shown}",
                flush=True,
            )


def naive_rank_covers(prefs: Preferences, seed: int) -> bool:
    """Whether quantiles of bootstrapped ranks cover the true rank of the last system (the first by name)."""
    from torchpref.pairwise.square import as_square
    from torchpref.stats.resampling.instances import draw_weights

    units = resampling_units(prefs.benchmarks)
    points = as_square(prefs.delta, prefs.pairs, len(prefs.systems), -1).sum(-1)
    drawn = draw_weights("bootstrap", units, 0, 200, seed).double() @ points
    rank = (drawn > drawn[:, :1]).sum(1) + 1
    return bool(np.quantile(rank.numpy(), 0.975) >= len(prefs.systems))


def pairs(datasets: int) -> None:
    print(f"\nintervals of mean preferences at 95 %: {datasets} samples × 28 pairs each")
    print(f"{'n':>5} {'ties':>6} {'coverage':>9} {'width':>7}")
    theta = np.linspace(-0.5, 0.5, 8)
    for instances in INSTANCES:
        runs = template(instances, 8)
        for rate in (*TIES, 0.9):
            rng = np.random.default_rng([3, instances, round(100 * rate)])
            width = tie_width(rate)
            target = population(theta, width)
            hits = wide = 0.0
            for _ in range(datasets):
                effects = pair_effects(as_preferences(runs, simulate(rng, theta, instances, width)))
                hits += ((effects.low <= target) & (target <= effects.high)).mean()
                wide += (effects.high - effects.low).mean()
            print(
                f"{instances:>5} {100 * rate:>5.0f}% {100 * hits / datasets:8.1f}% {wide / datasets:7.3f}",
                flush=True,
            )


def errors(datasets: int) -> None:
    """Attained size of every test with nothing to find."""
    print(f"\nfalse positives at 5 %, {datasets} samples each; allowed: 5 % + 2 standard errors = ", end="")
    print(f"{100 * (0.05 + 2 * np.sqrt(0.05 * 0.95 / datasets)):.1f} %")
    print("single = share of pairs with p ≤ 0.05; any = share of samples with any rejection after the correction")
    print(f"{'case':<44} {'single':>7} {'Holm':>6} {'max-T':>6} {'t':>6} {'Holm(t)':>8}")
    for name, instances, systems, rate, missing in (
        ("10 instances, no ties", 10, 6, 0.0, 0.0),
        ("10 instances, 35 % ties", 10, 6, 0.35, 0.0),
        ("10 instances, 90 % ties", 10, 6, 0.9, 0.0),
        ("30 instances, 75 % ties", 30, 6, 0.75, 0.0),
        ("100 instances, 75 % ties, 30 % runs missing", 100, 6, 0.75, 0.3),
        ("100 instances, 35 % ties", 100, 6, 0.35, 0.0),
    ):
        rng = np.random.default_rng([4, instances, round(100 * rate), round(100 * missing)])
        runs = template(instances, systems)
        theta = np.zeros(systems)
        tally = np.zeros(5)
        for number in range(datasets):
            delta = simulate(rng, theta, instances, tie_width(rate))
            here = torch.from_numpy(rng.random((instances, systems)) >= missing)
            pair = all_pairs(systems)
            prefs = as_preferences(runs, delta, here[:, pair[:, 0]] & here[:, pair[:, 1]])
            holm = significance(prefs, "holm", seed=number)
            top = significance(prefs, "max-t", seed=number)
            t = significance(prefs, "holm", test="t")
            tally += [
                float((holm.p <= 0.05).double().mean()),
                bool(holm.significant.any()),
                bool(top.significant.any()),
                float((t.p <= 0.05).double().mean()),
                bool(t.significant.any()),
            ]
        shown = 100 * tally / datasets
        print(
            f"{name:<44} {shown[0]:6.1f}% {shown[1]:5.1f}% {shown[2]:5.1f}% {shown[3]:5.1f}% {shown[4]:7.1f}%",
            flush=True,
        )
    unequal_trials(datasets)


def unequal_trials(datasets: int) -> None:
    """One run against eight of the same system: Δ is skewed, and plain sign flips reject too often."""
    from torchpref.stats.significance.flips import flip_counts

    for name, trials, instances, levels, chance in (
        ("1 against 8 trials, 30 instances, success 5 %", (1, 8), 30, 1, 0.05),
        ("1 against 8 trials, 10 instances, success 5 %", (1, 8), 10, 1, 0.05),
        ("1 against 8 trials, 30 instances, 4 levels", (1, 8), 30, 4, 0.05),
        ("3 against 8 trials, 30 instances, success 20 %", (3, 8), 30, 1, 0.2),
    ):
        rng = np.random.default_rng([5, *trials, instances])
        kept = plain = 0
        for number in range(datasets):
            reached = rng.binomial(levels, chance, (instances, 2, 8))
            returns = torch.from_numpy(reached / levels).unsqueeze(-1)
            present = torch.zeros(instances, 2, 8, dtype=torch.bool)
            present[:, 0, : trials[0]] = present[:, 1, : trials[1]] = True
            prefs = tp.preferences(tp.Trajectories(returns, present=present), "pr")
            kept += bool(significance(prefs, "none", seed=number).significant.any())
            plain += bool((flip_counts(prefs.delta, 999, number).p <= 0.05).any())
        print(
            f"{name:<44} {100 * kept / datasets:6.1f}%    (plain sign flips: {100 * plain / datasets:.1f}%)",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", default=["scores", "ranks", "pairs", "errors"])
    parser.add_argument("--datasets", type=int, default=1000)
    options = parser.parse_args()
    for section in options.sections:
        start = time.perf_counter()
        {"scores": scores, "ranks": ranks, "pairs": pairs, "errors": errors}[section](options.datasets)
        print(f"({section}: {time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
