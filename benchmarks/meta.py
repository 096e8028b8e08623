"""How long a whole meta-evaluation takes: six measures, every figure, 1,000 resamples, 34 systems × 500 instances.

    python benchmarks/meta.py [--levels 2 5] [--trials 1] [--resamples 1000] [--profile]

Prints wall and processor seconds for each number of levels, after a small run that compiles what is compiled. The known order
is given, so that oracle figures are part of it; with ``--trials 2`` the A/A figures are too.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time

import torch

import torchpref as tp
from torchpref.meta import meta_evaluate

SYSTEMS, INSTANCES = 34, 500


def synthetic(levels: int, trials: int, seed: int = 0) -> tp.Trajectories:
    """Runs that reach success over ``levels`` − 1 subgoals (two levels: only failure and success), better systems sooner."""
    generator = torch.Generator().manual_seed(seed)
    steps = levels - 1
    shape = (INSTANCES, SYSTEMS, trials, steps)
    skill = torch.linspace(0, 1, SYSTEMS)[None, :, None, None]
    chance = torch.sigmoid(skill + 2 * torch.randn((INSTANCES, 1, 1, 1), generator=generator)) ** (1 / steps)
    reached = (torch.rand(shape, generator=generator) < chance).cumprod(-1)
    returns = (reached * torch.arange(1, levels) / steps).cummax(-1).values
    cost = 0.001 + (10 * torch.rand(shape, generator=generator) * (2 - skill)).cumsum(-1).double()
    return tp.Trajectories(returns, times={"cost": cost})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", type=int, nargs="+", default=[2, 5])
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    print(
        f"{SYSTEMS} systems × {INSTANCES} instances, {options.resamples:,} resamples, {torch.get_num_threads()} threads"
    )
    for levels in options.levels:
        runs = synthetic(levels, options.trials)
        order = runs.systems[::-1]
        for _ in range(2):  # the second kernel for all pairs is compiled once there has been enough work for it
            few = runs.take(instances=range(100))
            meta_evaluate(few, clock="cost", known_order=order, resamples=20, alarm_draws=20, subgoal_draws=10)
        profiler = cProfile.Profile()
        wall, cpu = time.perf_counter(), time.process_time()
        if options.profile:
            profiler.enable()
        meta_evaluate(runs, clock="cost", known_order=order, resamples=options.resamples)
        profiler.disable()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"{levels} levels, {options.trials} trials: {wall:.1f} s wall, {cpu:.1f} s processor time", flush=True)
        if options.profile:
            pstats.Stats(profiler).sort_stats("tottime").print_stats(20)


if __name__ == "__main__":
    main()
