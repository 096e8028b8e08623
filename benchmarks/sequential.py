"""What stopping early saves, and how often it errs: every acceptance figure, on simulations and on public data.

    python benchmarks/sequential.py [errors] [pairs] [gate] [boards] [history] [time]

Data are read from ../shared/data; without them their figures are left out, and that is said. All orders and draws are seeded.
Figures of evalsig 0.1.2 are quoted: they were measured beforehand on the same pairs and orders (its watch, two-sided, .05).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import torch
from scipy.stats import binom
from scipy.stats import t as student

import torchpref as tp
from torchpref.evaluation.monitor import without_replacement
from torchpref.evaluation.planned import scaled
from torchpref.stats.sequential.betting import running_log_wealth, slopes_above
from torchpref.stats.sequential.futility import FROM, chance_of_worse
from torchpref.stats.sequential.history import control_variate
from torchpref.stats.sequential.looks import OrderedPair, look
from torchpref.stats.sequential.paths import UNIT, Pooled
from torchpref.stats.sequential.spending import ternary_boundary
from torchpref.stats.sequential.top import places

DATA = Path(__file__).parents[1] / "../shared/data"
ALPHA = 0.05
#: Found and spent in percent by evalsig 0.1.2, quoted.
EVALSIG = {"swe-bench SR": (78.8, 63.5), "swe-bench RPP on cost": (95.5, 22.7), "gaia SR": (89.7, 51.8)}


def percent(hits: np.ndarray) -> str:
    """A share with its Monte Carlo error."""
    share = float(np.mean(hits))
    return f"{100 * share:.1f} % (± {100 * np.sqrt(share * (1 - share) / len(hits)):.1f}, {len(hits)})"


def openhands(benchmark: str) -> tp.Trajectories:
    return tp.read(
        DATA / "openhands_index.csv", columns={"success": "resolved", "cost": "cost_usd"}, clock="cost",
        where=["system!=*/*", f"benchmark={benchmark}"],
    )  # fmt: skip


def ternary(runs: tp.Trajectories, measure: str) -> tuple[np.ndarray, np.ndarray]:
    """Δ as −1, 0, 1 ``[pair, instance]``, and the pairs."""
    prefs = tp.preferences(runs, measure)
    return (scaled(prefs) // UNIT).T, prefs.pairs.numpy()


# ------------------------------------------------------------------------------------------------------ errors


def errors() -> None:
    """False stops by simulation."""
    rng = np.random.default_rng(0)
    print("False stops at 5 %, looked at after every instance")
    for planned in (100, 165):
        walks = rng.choice([-1, 1], (8000, planned))
        for two_sided in (False, True):
            found = ternary_boundary(walks, planned, ALPHA, two_sided).crossed > 0
            print(f"  ±1, N = {planned}, {'two-sided' if two_sided else 'one-sided'}: {percent(found)}")
    print("  unequal trials, one-sided, N = 60, 1,000 paths:")
    for few, many in ((1, 3), (1, 8), (4, 5)):
        for kind in (0.05, 0.2, 0.5, "tasks that suit one"):
            both, signs_only = zip(*[_unequal(rng, few, many, kind) for _ in range(300)], strict=True)
            print(f"    {few} v {many}, {kind}: {percent(np.array(both))}; signs alone {percent(np.array(signs_only))}")
    for families, size in ((10, 10), (40, 5)):
        found = np.array([_families(rng, families, size) for _ in range(400)])
        print(
            f"  families {families} × {size}, sd 1: by family {percent(found[:, 0])}, by instance {percent(found[:, 1])}"
        )
    skewed = np.array([_skewed(rng) for _ in range(400)])
    print(
        f"  skewed (19 small losses to 1 win), N = 90: spending {percent(skewed[:, 0])}, bets {percent(skewed[:, 1])}"
    )
    x = rng.random((2000, 100)) < 0.5
    y = rng.random((2000, 100)) < 0.5
    delta = x.astype(float) - y
    found = (running_log_wealth(-delta) >= np.log(1 / ALPHA)).any(axis=1)
    print(f"  bets on the mean, N = 100: {percent(found)}")
    below = rng.random((2000, 200))
    values = np.where(below < 0.35, 1.0, np.where(below < 0.8, -1.0, 0.0))  # mean −.1: no better than the margin .1
    for most in (1.0, 0.5):
        wrong = (running_log_wealth(slopes_above(values, -0.1), most) >= np.log(1 / ALPHA)).any(axis=1)
        print(f"  'fine' at a mean of −margin, stakes up to {most:g}: {percent(wrong)}")
    wrong = np.array([_identical(rng) for _ in range(300)])
    print(f"  board of ten whose sums are all equal, any wrong pair: {percent(wrong)}")
    metr()


def _unequal(rng: np.random.Generator, few: int, many: int, kind: object) -> tuple[bool, bool]:
    n = 60
    if kind == "tasks that suit one":
        side = rng.random(n) < 0.5
        p_new, p_base = np.where(side, 0.8, 0.2), np.where(side, 0.2, 0.8)
    else:
        p_new = p_base = np.full(n, float(kind))  # type: ignore[arg-type]
    new = rng.random((n, few)) < p_new[:, None]
    base = rng.random((n, many)) < p_base[:, None]
    delta, pooled = np.zeros(n, dtype=np.int64), []
    for i in range(n):
        runs = np.concatenate([new[i], base[i]]).astype(np.int64)
        totals = (runs * len(runs) - runs.sum()) * (UNIT // (few * many))
        pooled.append(Pooled(totals, few))
        delta[i] = totals[:few].sum()
    seed = int(rng.integers(2**31))
    both = look(OrderedPair(delta, np.arange(n), tuple(pooled)), n, ALPHA, seed=seed, paths=1000)
    alone = look(OrderedPair.of(delta), n, ALPHA, seed=seed, paths=1000)
    return both.crossed > 0, alone.crossed > 0


def _families(rng: np.random.Generator, families: int, size: int) -> tuple[bool, bool]:
    n = families * size
    luck = np.repeat(rng.normal(0, 1, families), size)
    delta = np.clip(np.rint(luck + rng.normal(0, 1, n)), -1, 1).astype(np.int64)
    label = np.repeat(np.arange(families), size)
    order = rng.permutation(n)
    delta, label = delta[order], label[order]
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    pair = OrderedPair(delta * UNIT, first[inverse], (None,) * n)
    by_family = look(pair, n, ALPHA, seed=int(rng.integers(2**31)), paths=1000)
    return by_family.crossed > 0, bool(ternary_boundary(delta[None], n, ALPHA).crossed[0] > 0)


def _skewed(rng: np.random.Generator) -> tuple[bool, bool]:
    delta = np.where(rng.random(90) < 0.05, 0.95, -0.05)
    pair = OrderedPair.of(np.rint(delta * UNIT).astype(np.int64))
    found = look(pair, 90, ALPHA, seed=int(rng.integers(2**31)), paths=1000)
    return found.crossed > 0, bool((running_log_wealth(-delta) >= np.log(1 / ALPHA)).any())


def _identical(rng: np.random.Generator) -> bool:
    """Ten systems that solve 50 of 100 tasks each: a settled pair is a wrong one."""
    solved = np.stack([rng.permutation(np.repeat([0, 1], 50)) for _ in range(10)])
    a, b = np.triu_indices(10, 1)
    delta = (solved[a] - solved[b]) * UNIT
    step, _ = without_replacement(delta, np.full(len(a), 100), 100, ALPHA)
    return bool((step > 0).any())


def metr() -> None:
    """Two trials of one system on real data: nothing is to be found."""
    path = DATA / "metr_runs.csv"
    if not path.exists():
        print("  METR: no data")
        return
    import polars as pl

    frame = pl.read_csv(path, infer_schema_length=None)
    names = {"system": "system", "instance": "instance"}
    for wanted, options in (("system", ("system", "model", "alias")), ("instance", ("instance", "task_id", "task"))):
        names[wanted] = next(name for name in options if name in frame.columns)
    rng = np.random.default_rng(1)
    stops = []
    groups = frame.group_by([names["system"], names["instance"]]).agg(pl.col("score_binarized").alias("score"))
    for system in sorted(groups[names["system"]].unique().to_list()):
        own = groups.filter(pl.col(names["system"]) == system)["score"].to_list()
        scores = [[v for v in each if v is not None] for each in own]
        scores = [each for each in scores if len(each) >= 2]
        if len(scores) < 20:
            continue
        walks = []
        for _ in range(200):
            rng.shuffle(scores)
            pairs = [rng.choice(each, 2, replace=False) for each in scores]
            walks.append([np.sign((one >= 1) * 1 - (two >= 1) * 1) for one, two in pairs])
        stops.append(ternary_boundary(np.array(walks, dtype=int), len(scores), ALPHA, True).crossed > 0)
    print(f"  METR, two trials of one system ({len(stops)} systems): {percent(np.concatenate(stops))}")


# ------------------------------------------------------------------------------------------------------ pairs


def pairs() -> None:
    """All pairs of real systems, two-sided, new tasks."""
    print("Pairs at .05, two-sided, 40 random orders: found of those that all instances decide / runs spent")
    for benchmark, measure, name in (
        ("swe-bench", "sr", "swe-bench SR"),
        ("swe-bench", "rpp", "swe-bench RPP on cost"),
        ("gaia", "sr", "gaia SR"),
    ):
        delta, _ = ternary(openhands(benchmark), measure)
        planned = delta.shape[1]
        decided, total = (delta != 0).sum(axis=1), np.abs(delta.sum(axis=1))
        fixed = 2 * binom.sf((decided + total) // 2 - 1, decided, 0.5) <= ALPHA
        rng, coins = np.random.default_rng(2), np.random.default_rng(12)
        found, spent, false = [], [], []
        for _ in range(40):
            order = rng.permutation(planned)
            crossed = ternary_boundary(delta[:, order], planned, ALPHA, True).crossed
            found.append((crossed > 0)[fixed].mean())
            spent.append(np.where(crossed, crossed, planned).mean() / planned)
            flipped = delta[:, order] * coins.choice([-1, 1], delta.shape)
            false.append((ternary_boundary(flipped, planned, ALPHA, True).crossed > 0).mean())
        theirs = EVALSIG[name]
        print(
            f"  {name}, {len(delta)} pairs, N = {planned}: {100 * np.mean(found):.1f} % / {100 * np.mean(spent):.1f} % "
            f"(± {100 * np.std(found) / 40**0.5:.1f} / {100 * np.std(spent) / 40**0.5:.1f}), signs "
            f"flipped {100 * np.mean(false):.1f} %; evalsig (quoted) {theirs[0]} / {theirs[1]} %"
        )


# ------------------------------------------------------------------------------------------------------ gate


def stops_of(delta: np.ndarray, futility: bool, effect: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Where a one-sided gate stops, and whether as worse; ``delta`` is −1, 0, 1 ``[path, instance]``."""
    paths, planned = delta.shape
    crossed = ternary_boundary(delta, planned, ALPHA).crossed
    stop = np.where(crossed, crossed, planned)
    if futility:
        n = np.arange(1, planned + 1)
        square = (np.cumsum(delta != 0, axis=1) + 1) / (n + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = chance_of_worse(np.cumsum(delta, axis=1), square, n, planned, ALPHA, effect)
        hopeless = (chance < 0.05) & (n >= FROM) & (n < planned)
        first = np.where(hopeless.any(axis=1), hopeless.argmax(axis=1) + 1, planned)
        worse = (crossed > 0) & (crossed <= first)
        return np.minimum(stop, first), worse
    return stop, crossed > 0


def gate() -> None:
    """A gate on every ordered pair of real systems."""
    print("Gate, one-sided, effect .1: share of NEW's runs spent with futility (without), five random orders")
    for benchmark in ("swe-bench", "gaia"):
        delta, _ = ternary(openhands(benchmark), "sr")
        both = np.concatenate([delta, -delta])
        planned = both.shape[1]
        rng = np.random.default_rng(3)
        mean = both.mean(axis=1)
        groups = {
            "A/A (signs flipped)": np.ones(len(both), dtype=bool),
            "better by at least .03": mean >= 0.03,
            "worse by more than .1": mean < -0.1,
        }
        losses, decided = (both < 0).sum(axis=1), (both != 0).sum(axis=1)
        fixed = binom.sf(losses - 1, decided, 0.5) <= ALPHA
        spent: dict[str, list[tuple[float, float]]] = {name: [] for name in groups}
        power, wrong = [], []
        for _ in range(5):
            order = rng.permutation(planned)
            flipped = both[:, order] * rng.choice([-1, 1], both.shape)
            for name, chosen in groups.items():
                paths = (flipped if name.startswith("A/A") else both[:, order])[chosen]
                stop, worse = stops_of(paths, True)
                plain = stops_of(paths, False)[0]
                spent[name].append((stop.mean() / planned, plain.mean() / planned))
                if name.startswith("A/A"):
                    wrong.append(worse.mean())
            power.append([stops_of(both[:, order], futile)[1][fixed].mean() for futile in (True, False)])
        for name, shares in spent.items():
            with_, without = np.mean(shares, axis=0)
            print(f"  {benchmark} SR, {name}: {100 * with_:.1f} % ({100 * without:.1f} %)")
        with_, without = np.mean(power, axis=0)
        print(
            f"  {benchmark} SR: of the pairs that one test on all {planned} calls worse, found {100 * with_:.1f} % with "
            f"futility, {100 * without:.1f} % without; A/A called worse {100 * np.mean(wrong):.1f} %"
        )


# ------------------------------------------------------------------------------------------------------ boards


def boards() -> None:
    """The first places of real boards, systems that are in or out stopping."""
    print("Boards, this benchmark, ten random orders: share of runs (of dollars), true top among the candidates")
    runs = openhands("swe-bench")
    cost = np.nan_to_num(_costs(runs))
    for measure in ("sr", "rpp"):
        delta, ends = ternary(runs, measure)
        final = np.zeros(len(runs.systems))
        for (a, b), total in zip(ends, np.sign(delta.sum(axis=1)), strict=True):
            final[a] += total > 0
            final[b] += total < 0
        for k in (1, 3):
            rng = np.random.default_rng(4)
            shares = []
            for _ in range(10):
                order = rng.permutation(delta.shape[1])
                spent, outside = replay(delta[:, order], ends, len(runs.systems), k)
                upto = np.arange(delta.shape[1])[None] < spent[:, None]
                dollars = (cost[order].T * upto).sum() / cost.sum()
                best = np.argsort(-final, kind="stable")[:k]
                shares.append((spent.mean() / delta.shape[1], dollars, not outside[best].any()))
            runs_, dollars, kept = np.mean(shares, axis=0)
            name = "SR" if measure == "sr" else "RPP on cost"
            print(
                f"  swe-bench {name}, top {k}: {100 * runs_:.1f} % ({100 * dollars:.1f} %), kept in {100 * kept:.0f} %"
            )


def _costs(runs: tp.Trajectories) -> np.ndarray:
    """Dollars ``[instance, system]``."""
    ticks = runs.times["cost"][..., 0, :].amax(-1) if runs.times["cost"].shape[-1] else torch.zeros(runs.shape[:2])
    return np.maximum(ticks.numpy(), 0) * runs.resolution["cost"]


def replay(delta: np.ndarray, ends: np.ndarray, systems: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """How many instances each system runs until the first k places are settled, and who was called out."""
    count, planned = delta.shape
    crossed, side = without_replacement(delta * UNIT, np.full(count, planned), planned, ALPHA)
    spent, running = np.full(systems, planned), np.ones(systems, dtype=bool)
    beats = np.zeros((systems, systems), dtype=bool)
    outside = np.zeros(systems, dtype=bool)
    for n in range(1, planned + 1):
        new = (crossed == n) & running[ends].all(axis=1)
        if new.any():
            for (a, b), sign in zip(ends[new], side[new], strict=True):
                beats[(a, b) if sign > 0 else (b, a)] = True
            found = places(beats, k)
            outside = found.outside
            stopping = running & (found.inside | found.outside)
            spent[stopping] = n
            running &= ~stopping
        if not running.any():
            break
    return spent, outside


# ------------------------------------------------------------------------------------------------------ history


def history() -> None:
    """The control variate on real boards: error against the plain mean's, coverage, width."""
    print(
        "History: BASE and others ran all, NEW ran n = max(15, N/5); mean squared error and width against the plain mean"
    )
    for benchmark in ("swe-bench", "gaia", "commit0", "swe-bench-multimodal", "swt-bench"):
        try:
            runs = openhands(benchmark)
        except tp.TorchPrefError:
            print(f"  {benchmark}: not in the data")
            continue
        keep = [s for s in range(len(runs.systems)) if bool(runs.present[:, s].all())]
        if len(keep) < 6 or len(runs.instances) < 40:
            print(f"  {benchmark}: {len(keep)} systems ran all {len(runs.instances)} instances: too few")
            continue
        solved = (runs.returns[..., -1].amax(-1) >= 1_000_000).double().numpy()[:, keep]
        total = len(solved)
        rng = np.random.default_rng(5)
        ours, plain, covered, widths, correlations = [], [], [], [], []
        n = max(15, total // 5)
        for _ in range(600):
            base, new, *others = rng.permutation(len(keep))
            ran = rng.permutation(total)[:n]
            y = solved[:, new] - solved[:, base]
            z = (solved[:, others] - solved[:, [base]]).mean(axis=1)
            found = control_variate(y[ran], z, ran)
            ours.append((found.mean - y.mean()) ** 2)
            plain.append((found.plain - y.mean()) ** 2)
            covered.append(abs(found.mean - y.mean()) <= student.ppf(0.975, n) * found.error)
            without = control_variate(y[ran], np.zeros(total), ran)
            widths.append(found.error / without.error)
            correlations.append(found.correlation)
        print(
            f"  {benchmark} SR, N = {total}, n = {n}: error {np.mean(ours) / np.mean(plain):.2f}, coverage "
            f"{percent(np.array(covered))}, width {np.mean(widths):.2f}, correlation {np.nanmean(correlations):.2f}"
        )


# ------------------------------------------------------------------------------------------------------ time


def timing() -> None:
    """Seconds per look at 34 systems."""
    print("Seconds per look, 34 systems × 500 instances, least of three")
    runs = openhands("swe-bench")
    for measure in ("sr", "rpp"):
        for claim in ("this benchmark", "new tasks"):
            seconds = []
            for _ in range(3):
                start = time.perf_counter()
                tp.monitor(runs, planned=500, goal="top1", claim=claim, measure=measure, given_up="gaps")
                seconds.append(time.perf_counter() - start)
            print(f"  {measure.upper()}, {claim}: {min(seconds):.2f} s")


SECTIONS = {"errors": errors, "pairs": pairs, "gate": gate, "boards": boards, "history": history, "time": timing}


def main() -> None:
    wanted = sys.argv[1:] or list(SECTIONS)
    for name in wanted:
        if name not in SECTIONS:
            sys.exit(f"unknown section {name!r}; there is {', '.join(SECTIONS)}")
        if name != "errors" and not (DATA / "openhands_index.csv").exists():
            print(f"{name}: left out, {DATA / 'openhands_index.csv'} is not there")
            continue
        SECTIONS[name]()


if __name__ == "__main__":
    main()
