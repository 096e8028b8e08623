"""Kernel times of two checkouts of torchpref, in alternating pairs: has a change made the kernels slower?

    git worktree add ../before v0.1.0
    OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/side_by_side.py ../before .

Each checkout computes in a process of its own, one at a time. A pair is one call on each side, first one side first,
then the other. Prints, per kernel, the median of the ratios after/before and a distribution-free interval of that median
(order statistics, at least 95 %).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

#: kernel -> shape (instances, systems, levels), kind of data, trials; both sides draw the same data.
CASES: dict[str, tuple[tuple[int, int, int], str, int]] = {
    "tables, one trial": ((500, 34, 10), "steps", 1),
    "tables, many levels": ((200, 50, 200), "odd levels", 1),
    "tables, long clock": ((200, 34, 50), "cost", 1),
    "tables, unknown times": ((200, 34, 50), "unknown and truncated", 1),
    "groups, ten trials": ((100, 20, 20), "steps", 10),
    "merge, continuous": ((40, 30, 300), "continuous", 1),
    "means": ((500, 34, 10), "steps", 1),
}


def prepare(name: str) -> Callable[[], object]:
    """The call to time, by the public kernels of whichever checkout is on the path."""
    import kernels_data
    import torch

    from torchpref.kernels import compare_pairs
    from torchpref.kernels.means import mean_pairs

    shape, kind, trials = CASES[name]
    data = kernels_data.continuous(*shape) if kind == "continuous" else kernels_data.curves(*shape, kind, trials)
    pairs = kernels_data.all_pairs(shape[1])
    if name == "means":
        weights = torch.ones(shape[0], dtype=torch.float64)
        return lambda: mean_pairs(data, pairs, weights)
    return lambda: compare_pairs(data, pairs)


def serve() -> None:
    """Answers each ``name repeats`` on a line with the seconds of a call."""
    import torchpref

    print(Path(torchpref.__file__).parent.parent, flush=True)
    ready: dict[str, Callable[[], object]] = {}
    for line in sys.stdin:
        name, repeats = json.loads(line)
        if name not in ready:
            ready[name] = prepare(name)
            ready[name]()  # compiles
        start = time.perf_counter()
        for _ in range(repeats):
            ready[name]()
        print((time.perf_counter() - start) / repeats, flush=True)


class Side:
    def __init__(self, checkout: Path) -> None:
        path = os.pathsep.join(map(str, (checkout, checkout / "benchmarks")))
        # -P: the other checkout's benchmarks/, not that of this script
        self.process = subprocess.Popen(
            [sys.executable, "-P", __file__, "--serve"],
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        found = self.process.stdout.readline().strip()
        if found != str(checkout):
            sys.exit(f"{checkout} holds no torchpref: {found or 'nothing'} was imported")

    def seconds(self, name: str, repeats: int) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([name, repeats]) + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def median_interval(values: list[float]) -> tuple[float, float]:
    """Order statistics that hold the median with a probability of at least 95 %, whatever the distribution."""
    ordered, count = sorted(values), len(values)
    rank, tail = 0, 1 / 2**count
    while (tail := tail + math.comb(count, rank + 1) / 2**count) <= 0.025:
        rank += 1
    return ordered[rank], ordered[count - 1 - rank]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--seconds", type=float, default=0.05, help="about how long one side of a pair computes")
    options = parser.parse_args()
    before, after = Side(options.before.resolve()), Side(options.after.resolve())
    print("| kernel | before ms | after ms | after / before | interval |\n| --- | --- | --- | --- | --- |")
    for name in CASES:
        repeats = max(1, round(options.seconds / max(before.seconds(name, 3), after.seconds(name, 3))))
        taken = []
        for number in range(options.pairs):
            if number % 2:
                second, first = after.seconds(name, repeats), before.seconds(name, repeats)
            else:
                first, second = before.seconds(name, repeats), after.seconds(name, repeats)
            taken.append((first, second))
        ratios = [new / old for old, new in taken]
        low, high = median_interval(ratios)
        ms = [f"{1e3 * statistics.median(side):.2f}" for side in zip(*taken, strict=True)]
        print(f"| {name} | {ms[0]} | {ms[1]} | {statistics.median(ratios):.3f} | {low:.3f} to {high:.3f} |", flush=True)
    for side in (before, after):
        assert side.process.stdin is not None
        side.process.stdin.close()
        side.process.wait()


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main()
