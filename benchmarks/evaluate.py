"""Wall time of ``torchpref evaluate`` on the 34 × 500 swe-bench part of the shared data, beside ``import torch``.

Processes are started in turn, so that both meet the same machine, and medians are compared: of wall time, and of processor
time, which other programs on the machine disturb less. ``--runs N`` sets how often; what follows ``--`` is added to the
command (``-- --measure rpp --bootstrap 10000``).
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = (ROOT / "../shared/data/openhands_index.csv").resolve()
OPTIONS = "--columns success=resolved,cost=cost_usd --where benchmark=swe-bench --where 'system!=*/*' --clock cost"
LIMIT = 2.5


def seconds(command: list[str]) -> tuple[float, float]:
    """Wall time and processor time of a process, both in seconds."""
    env = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": str(ROOT)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("more", nargs="*", help="further options of torchpref evaluate, after --")
    options = parser.parse_args()
    if not DATA.exists():
        print(f"skipped: there is no file {DATA}")
        return 0
    extra = " ".join(map(shlex.quote, options.more))
    print(f"torchpref evaluate openhands_index.csv {OPTIONS} {extra}".rstrip())
    evaluate = [sys.executable, "-m", "torchpref", "evaluate", str(DATA), *shlex.split(OPTIONS), *options.more]
    commands = {"import torch": [sys.executable, "-c", "import torch"], "torchpref evaluate": evaluate}
    plain = {
        "python": [sys.executable, "-c", "pass"],
        "torchpref --help": [sys.executable, "-m", "torchpref", "--help"],
    }
    for command in commands.values():
        seconds(command)  # the files come from the disk once
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(options.runs):
        for name, command in commands.items():
            taken[name].append(seconds(command))
    print(f"{options.runs} runs each, in turn: median (least to most)")
    for kind, what in enumerate(("wall", "processor")):
        medians = []
        for name, times in taken.items():
            values = [each[kind] for each in times]
            medians.append(statistics.median(values))
            print(f"  {what:<10} {name:<19} {medians[-1]:6.2f} s  ({min(values):.2f} to {max(values):.2f})")
        ratio, more = medians[1] / medians[0], medians[1] - medians[0]
        limit = f", at most {LIMIT} is wanted" if not options.more and what == "wall" else ""
        print(f"  {what:<10} ratio {ratio:.2f}{limit}; {more:.2f} s more")
    print("without torch: least of the runs")
    for name, command in plain.items():
        wall, processor = map(min, zip(*(seconds(command) for _ in range(options.runs)), strict=True))
        print(f"  {name:<19} wall {wall:.2f} s, processor {processor:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
