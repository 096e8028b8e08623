"""How long intervals, tests and refits take, beside the packages people use for them.

    python benchmarks/trust.py [refits] [single] [exact] [seeds] [evaluate]

Peers are timed where they are installed (arenakit, choix, evalica; scikit-learn for FastChat's procedure) and left out where
they are not. Threads: OMP_NUM_THREADS, 2 by default. Coverage and error rates are in trust_coverage.py.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np
import torch
from trust_coverage import Setting, draw

import torchpref as tp
from torchpref.pairwise.preferences import Preferences
from torchpref.pairwise.square import as_square
from torchpref.stats.bradley_terry.batch import fit_pairs
from torchpref.stats.resampling.instances import Resampler, replicate_blocks, resampling_units
from torchpref.stats.significance.exact import lattice_p
from torchpref.stats.significance.flips import flip_counts

SYSTEMS, INSTANCES = 34, 500
DATA = Path(__file__).parents[1] / "../shared/data/openhands_index.csv"


class Timed(float):
    """Wall seconds that also know the processor seconds of the same run; a busy machine leaves those alone."""

    cpu: float

    def __new__(cls, wall: float, cpu: float) -> Timed:
        timed = super().__new__(cls, wall)
        timed.cpu = cpu
        return timed

    def __str__(self) -> str:
        return f"{float(self):.3f} s (CPU {self.cpu:.3f} s)"


def clock(action: Callable[[], Any], repeat: int = 3) -> tuple[Timed, Any]:
    """Least wall time of a few runs after one to warm up, and the last result."""
    result = action()
    times = []
    for _ in range(repeat):
        start, cpu = time.perf_counter(), time.process_time()
        result = action()
        times.append(Timed(time.perf_counter() - start, time.process_time() - cpu))
    return min(times), result


def once(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def sample(systems: int = SYSTEMS, instances: int = INSTANCES) -> Preferences:
    """34 systems × 500 instances, a fifth of it tied."""
    return draw(Setting("plain", instances, systems, spread=2.0, ties=0.25), np.random.default_rng(0))


def refit(prefs: Preferences, replicates: int, start: torch.Tensor) -> torch.Tensor:
    """Draw weights, average, fit: what a bootstrap of scores takes."""
    units, resampler = resampling_units(prefs.benchmarks), Resampler(prefs)
    thetas = []
    for weights in replicate_blocks("bootstrap", units, replicates, 0, 2048):
        drawn = resampler.means(weights)
        thetas.append(fit_pairs((drawn.means + 1) / 2, None, len(prefs.systems), start).theta)
    return torch.cat(thetas)


def refits() -> None:
    prefs = sample()
    start = tp.bradley_terry(prefs).theta
    print(f"\nbootstrap refits, {SYSTEMS} systems × {INSTANCES} instances, {torch.get_num_threads()} threads")
    ours, theta = clock(lambda: refit(prefs, 1000, start))
    many, _ = clock(lambda: refit(prefs, 10_000, start), repeat=2)
    print(f"{'torchpref ' + tp.__version__:<44} {ours} per 1,000, {many} per 10,000 (limits 0.15 and 1.5)")
    for name, timed, per in peers(prefs, theta):
        print(f"{name:<44} {per * 1000:9.1f} s per 1,000 (timed on {timed}) {per * 1000 / ours:9.0f} ×")


def peers(prefs: Preferences, theta: torch.Tensor) -> list[tuple[str, int, float]]:
    """Name, replicates timed, and seconds per replicate of every peer that is installed."""
    delta = prefs.delta.numpy()
    pairs = prefs.pairs.numpy()
    names = list(prefs.systems)
    rows = np.repeat(np.arange(INSTANCES), len(pairs))
    first, second = np.tile(pairs[:, 0], INSTANCES), np.tile(pairs[:, 1], INSTANCES)
    outcome = delta.ravel()
    found = []
    if version("choix"):
        import choix

        y = (Resampler(prefs).means(torch.ones(1, INSTANCES)).means + 1) / 2
        games = as_square(y * INSTANCES, prefs.pairs, SYSTEMS, 0)[0].numpy()
        games = games + np.tril(INSTANCES - games.T, -1)
        seconds, scores = clock(lambda: choix.ilsr_pairwise_dense(games))
        assert np.abs(scores - tp.bradley_terry(prefs).theta.numpy()).max() < 1e-4
        found.append((f"choix {version('choix')}, I-LSR in a loop, fits alone", 3, seconds))
    if version("evalica"):
        import evalica

        code = {1.0: evalica.Winner.X, -1.0: evalica.Winner.Y, 0.0: evalica.Winner.Draw}
        xs, ys = [names[i] for i in first], [names[i] for i in second]
        winners = [code[value] for value in outcome.tolist()]
        weights = np.random.default_rng(0).multinomial(INSTANCES, np.ones(INSTANCES) / INSTANCES)[rows].astype(float)
        seconds, _ = clock(lambda: evalica.bradley_terry(xs, ys, winners, weights=weights.tolist()), repeat=2)
        found.append((f"evalica {version('evalica')}, weighted battles in a loop", 2, seconds))
    if version("arenakit"):
        from arenakit import Arena, Battle, bootstrap

        word = {1.0: "a", -1.0: "b", 0.0: "tie"}
        battles = [
            Battle.model_construct(model_a=names[a], model_b=names[b], winner=word[o], item_id=str(x), voter_id=None)
            for a, b, o, x in zip(first, second, outcome, rows, strict=True)
        ]
        arena = Arena(battles)
        seconds, drawn = once(lambda: bootstrap(arena, n_resamples=20, cluster="item"))
        ratio = drawn.scores.std(0).mean() / theta.std(0).mean().item()
        found.append((f"arenakit {version('arenakit')}, item bootstrap (spread {ratio:.2f} of ours)", 20, seconds / 20))
    if version("scikit-learn"):
        from sklearn.linear_model import LogisticRegression

        rng = np.random.default_rng(0)

        def fastchat() -> None:
            """One round of FastChat's elo_analysis: resample battles, count both ways, logistic regression."""
            chosen = rng.integers(0, len(outcome), len(outcome))
            a, b, o = first[chosen], second[chosen], outcome[chosen]
            wins = np.zeros((SYSTEMS, SYSTEMS))
            np.add.at(wins, (a, b), np.where(o > 0, 2, np.where(o == 0, 1, 0)))
            np.add.at(wins, (b, a), np.where(o < 0, 2, np.where(o == 0, 1, 0)))
            i, j = np.nonzero(~np.eye(SYSTEMS, dtype=bool) & (wins > 0))
            design = np.zeros((2 * len(i), SYSTEMS))
            design[np.arange(len(i)), i], design[np.arange(len(i)), j] = np.log(10), -np.log(10)
            design[len(i) :] = -design[: len(i)]
            label = np.repeat([1, 0], len(i))
            weight = np.concatenate([wins[i, j], wins[i, j]])
            LogisticRegression(fit_intercept=False, C=np.inf, tol=1e-6).fit(design, label, sample_weight=weight)

        seconds, _ = clock(fastchat, repeat=2)
        found.append((f"FastChat's procedure, scikit-learn {version('scikit-learn')}, battles", 2, seconds))
    return found


def single() -> None:
    print(f"\none fit, {torch.get_num_threads()} threads")
    print(f"{'systems':>8} {'batched solver':>15} {'bradley_terry':>14}", end="")
    print(f" {'choix ' + str(version('choix')) + ' I-LSR':>20}" if version("choix") else "")
    for systems in (34, 200, 1000):
        rng = np.random.default_rng(systems)
        theta = rng.standard_normal(systems)
        y = 1 / (1 + np.exp(-(theta[:, None] - theta[None, :])))
        noise = np.triu(rng.uniform(-0.1, 0.1, y.shape), 1)
        y = np.clip(y + noise - noise.T, 0.01, 0.99)
        y = np.triu(y, 1) + np.tril(1 - y.T, -1)
        np.fill_diagonal(y, 0.5)
        tensor = torch.from_numpy(y)
        pairs = tensor[tuple(torch.triu_indices(systems, systems, 1))][None]
        batched, fit = clock(lambda: fit_pairs(pairs, None, systems))  # noqa: B023
        full, exact = clock(lambda: tp.bradley_terry(tensor), repeat=1)  # noqa: B023
        line = f"{systems:>8} {batched:13.4f} s {full:12.3f} s"
        if version("choix"):
            import choix

            games = y * (1 - np.eye(systems))
            peer, scores = clock(lambda: choix.ilsr_pairwise_dense(games))  # noqa: B023
            off = np.abs(scores - exact.theta.numpy()).max()
            line += f" {peer:18.4f} s   {peer / batched:.1f} ×, largest difference {off:.1e}"
        print(line + f" (batched − single: {(fit.theta[0] - exact.theta).abs().max():.1e})")


def exact() -> None:
    rng = np.random.default_rng(0)
    steps = rng.integers(-4, 5, (INSTANCES, 561))
    pairs = f"561 pairs × {INSTANCES} instances"
    seconds, p = clock(lambda: lattice_p(steps))
    print(f"\nexact p-values, {pairs}, lattice of quarters: {seconds}, smallest {p.min():.1e} (limit 1 s)")
    values = torch.from_numpy(steps / 4)
    seconds, counts = clock(lambda: flip_counts(values, 250_000, 0), repeat=1)
    error = np.abs(counts.p.numpy() - p) / np.sqrt(p * (1 - p) / 250_000 + 1e-12)
    print(f"250,000 simulated flips, {pairs}: {seconds}, off by at most {error.max():.1f} standard errors (limit 3 s)")
    seconds, _ = clock(lambda: flip_counts(values + torch.randn(values.shape) / 50, 250_000, 0, max_t=True), repeat=1)
    print(f"250,000 simulated flips with max-T, values off any lattice: {seconds}")


def digest() -> str:
    """What depends on random numbers, as one hash."""
    prefs = sample(12, 80)
    board, tests = tp.rank(prefs, bootstrap=3000, seed=1), tp.significance(prefs, "max-t", seed=1)
    return hashlib.sha256(json.dumps([board.to_dict(), tests.to_dict()]).encode()).hexdigest()[:16]


def seeds() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import trust; print(trust.digest())"
    found = []
    for threads in ("1", "2", "2"):
        env = os.environ | {"OMP_NUM_THREADS": threads}
        here = str(Path(__file__).parent)
        done = subprocess.run([sys.executable, "-c", code, here], env=env, capture_output=True, text=True, check=True)
        found.append(done.stdout.strip())
    print(
        f"\none seed in processes of 1, 2 and 2 threads: {', '.join(found)}: {'equal' if len(set(found)) == 1 else 'DIFFERENT'}"
    )


def evaluate() -> None:
    if not DATA.exists():
        print(f"\nevaluate: left out, {DATA.name} is not there")
        return
    options = [
        "--where",
        "benchmark=swe-bench",
        "--systems",
        "!*/*",
        "--columns",
        "success=resolved,cost=cost_usd",
    ]
    command = [
        sys.executable,
        "-m",
        "torchpref",
        "evaluate",
        str(DATA),
        *options,
        "--clock",
        "cost",
        "--bootstrap",
        "10000",
    ]

    def run(arguments: list[str]) -> Timed:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall, _ = once(lambda: subprocess.run(arguments, check=True, capture_output=True))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return Timed(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    run([*command, "--measure", "rpp"])  # compiled code is kept from here on
    torch_alone = min(run([sys.executable, "-c", "import torch"]) for _ in range(3))
    print(f"\nevaluate --bootstrap 10000 on swe-bench, 34 × 500; import torch alone: {torch_alone}")
    for name, arguments, limit in (
        ("--measure rpp", [*command, "--measure", "rpp"], 2.5),
        ("all six measures", command, 6),
    ):
        taken = min(run(arguments) for _ in range(3))
        more = Timed(taken - torch_alone, taken.cpu - torch_alone.cpu)
        print(f"{name}: import torch + {more} (limit {limit})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections = {"refits": refits, "single": single, "exact": exact, "seeds": seeds, "evaluate": evaluate}
    parser.add_argument("sections", nargs="*", default=list(sections))
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    print(f"torch {torch.__version__}, numpy {np.__version__}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    for section in parser.parse_args().sections:
        sections[section]()


if __name__ == "__main__":
    main()
