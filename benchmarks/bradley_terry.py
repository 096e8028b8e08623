"""Bradley–Terry fits: thousands of bootstrap replicates, and single fits beside choix's dense I-LSR where it is installed.

    OMP_NUM_THREADS=2 python benchmarks/bradley_terry.py

Times are the best of several runs in one process; compare the ratios, not the seconds.
"""

import importlib.metadata
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from torchpref.stats.bradley_terry.batch import fit_pairs
from torchpref.stats.bradley_terry.model import bradley_terry


def best(function: Callable[[], Any], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def problem(systems: int, instances: int = 500, seed: int = 0) -> np.ndarray:
    """Per instance and pair 0, 1/2 (half of all) or 1, from systems of normally distributed strength."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=systems)
    first, second = np.triu_indices(systems, 1)
    p = 1 / (1 + np.exp(theta[second] - theta[first]))
    won = (rng.random((instances, first.size)) < p).astype(float)
    return np.where(rng.random(won.shape) < 0.5, 0.5, won)


def square(pairs: np.ndarray, systems: int) -> torch.Tensor:
    y = np.full((systems, systems), 0.5)
    first, second = np.triu_indices(systems, 1)
    y[first, second], y[second, first] = pairs, 1 - pairs
    return torch.from_numpy(y)


def replicates() -> None:
    systems, instances = 34, 500
    per_instance = problem(systems, instances)
    rng = np.random.default_rng(1)
    weights = rng.multinomial(instances, np.full(instances, 1 / instances), size=10_000)
    means = torch.from_numpy(weights @ per_instance / instances)
    start = bradley_terry(square(per_instance.mean(0), systems)).theta
    fit_pairs(means[:2], None, systems, start)  # compiles, or loads what was compiled before
    limits = {1_000: 0.15, 10_000: 1.5}
    print(
        f"{systems} systems, {instances} instances, {torch.get_num_threads()} threads: refits of bootstrap replicates"
    )
    for count, limit in limits.items():
        seconds = best(lambda count=count: fit_pairs(means[:count], None, systems, start), 5)
        print(
            f"  {count:>6} replicates {seconds:8.3f} s  ({1e6 * seconds / count:.1f} µs each; to stay below {limit} s)"
        )
    sample = 200
    single = best(lambda: [bradley_terry(square(row.numpy(), systems)) for row in means[:sample]], 1) / sample
    batch = best(lambda: fit_pairs(means[:1000], None, systems, start), 5) / 1000
    print(f"  bradley_terry in a loop {1e6 * single:.0f} µs each: {single / batch:.0f} times the batch")
    if importlib.util.find_spec("choix"):
        import choix

        rows = [square(row.numpy(), systems).fill_diagonal_(0).numpy() for row in means[:sample]]
        loop = best(lambda: [choix.ilsr_pairwise_dense(row) for row in rows], 1) / sample
        version = importlib.metadata.version("choix")
        print(f"  choix {version} in a loop {1e6 * loop:.0f} µs each: {loop / batch:.1f} times the batch")


def singles() -> None:
    print("one fit (milliseconds)")
    choix: Any = None
    if importlib.util.find_spec("choix"):
        import choix
    print("  systems   fit_pairs   bradley_terry   choix I-LSR   choix / fit_pairs   largest difference")
    for systems, repeats in ((34, 50), (200, 10), (1000, 5)):
        y = square(problem(systems, 200 if systems == 1000 else 500, systems).mean(0), systems)
        wins = y.clone().fill_diagonal_(0).numpy()
        pairs = y[tuple(torch.triu_indices(systems, systems, 1))][None]
        batch = best(lambda pairs=pairs, systems=systems: fit_pairs(pairs, None, systems), repeats)
        full = best(lambda y=y: bradley_terry(y), repeats)
        line = f"  {systems:>7} {1e3 * batch:>11.2f} {1e3 * full:>15.2f}"
        if choix is not None:
            other = best(lambda wins=wins: choix.ilsr_pairwise_dense(wins), repeats)
            theta = choix.ilsr_pairwise_dense(wins, tol=1e-12)
            apart = np.abs(fit_pairs(pairs, None, systems).theta[0].numpy() - (theta - theta.mean())).max()
            line += f" {1e3 * other:>13.2f} {other / batch:>19.1f} {apart:>20.1e}"
        print(line)
    if choix is None:
        print("  choix is not installed: pip install 'torchpref[bench]'")


if __name__ == "__main__":
    replicates()
    singles()
