"""How fast the kernels are, beside each other, beside plain ways, and beside what the machine can do.

    OMP_NUM_THREADS=2 python benchmarks/kernels.py            all but the large data set
    OMP_NUM_THREADS=2 python benchmarks/kernels.py --large    that too (2 GB of Parquet, some minutes)
    ... --only sizes continuous                               some tables; the others stay as they are in RESULTS.md

Prints the tables and writes them to RESULTS.md. Times in one row are taken in turns in one run; on a busy machine their
ratios mean more than they themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import kernels_limits
import numpy as np
import torch
from kernels_data import (
    KINDS,
    all_pairs,
    continuous,
    curves,
    machine,
    medians,
    numpy_grid,
    peak_above,
    python_loop,
    seconds,
)

from torchpref.kernels import reference, warm_up
from torchpref.kernels.cpu import choose as cpu
from torchpref.kernels.cpu import grid as cpu_grid
from torchpref.kernels.cpu import groups as cpu_groups
from torchpref.kernels.cpu import means as cpu_means
from torchpref.runs.curves import Curves

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
Rows = list[list[str]]


def table(head: Sequence[str], rows: Rows) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in [list(head), ["---"] * len(head), *rows]]
    return "\n".join(lines)


def ms(value: float) -> str:
    return f"{1e3 * value:.2f}"


class Prepared:
    """Tables made beforehand, and room for results, so that the kernel alone is timed."""

    def __init__(self, data: Curves) -> None:
        runs = cpu.as_runs(data)
        found = cpu_grid.describe(runs)
        instances, systems, trials, _ = data.shape
        self.pairs = all_pairs(systems).numpy()
        self.layouts = list(cpu_grid.layouts(found, np.arange(instances), systems * trials))
        self.tables = [cpu_grid.build(runs, found, layout) for layout in self.layouts]
        shape = (len(self.pairs), sum(layout.order.size for layout in self.layouts))
        self.out = (np.empty(shape, np.int8), np.empty(shape, np.int32), np.empty(shape, np.int32))
        if trials > 1:
            self.out = np.empty((8, *shape), np.int64)

    def run(self) -> None:
        column = 0
        for tables in self.tables:
            cpu_grid.compare_tables(tables, self.pairs, self.out, column)
            column += tables.order.size

    @property
    def bits(self) -> str:
        return "/".join(sorted({f"{layout.bits}+{layout.width_bits}" for layout in self.layouts}))


def processor_time(call: Callable[[], object]) -> float:
    """CPU seconds of a call on one thread, best of many: what other processes do matters least here."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    best = float("inf")
    for _ in range(15):
        start = time.thread_time()
        call()
        best = min(best, time.thread_time() - start)
    torch.set_num_threads(threads)
    return best


def sizes(limit: dict[str, float]) -> str:
    rows: Rows = []
    a, b = np.arange(2048, dtype=np.int32), np.arange(2048, dtype=np.int32)[::-1].copy()
    one_thread = 5000 * 2048 / processor_time(lambda: kernels_limits.compares_32(a, b, 5000))
    for shape in ((500, 34, 10), (1000, 100, 20), (200, 50, 200)):
        for kind in KINDS:
            data = curves(*shape, kind)
            pairs = all_pairs(shape[1])
            ready = Prepared(data)
            comparisons = shape[0] * len(pairs) * shape[2]
            kernel, whole = seconds(
                ready.run, lambda data=data, pairs=pairs: cpu.compare_pairs(data, pairs), repeat=100, limit=4
            )
            share = min(1.0, 4e6 / comparisons)  # the reference on a part of the instances, taken as a whole
            part = data.instances(slice(0, max(1, int(shape[0] * share))))
            (torch_time,) = seconds(lambda part=part, pairs=pairs: reference.compare_pairs(part, pairs), repeat=2)
            torch_time *= shape[0] / part.shape[0]
            rate = comparisons / kernel
            rows.append(
                [
                    str(shape),
                    kind,
                    ready.bits,
                    ms(kernel),
                    f"{rate / 1e9:.2f}",
                    f"{100 * rate / limit['int32']:.0f} %",
                    f"{100 * rate / limit['int16']:.0f} %",
                    f"{100 * comparisons / processor_time(ready.run) / one_thread:.0f} %",
                    ms(whole),
                    ms(torch_time),
                    f"{torch_time / kernel:.0f}",
                    f"{torch_time / whole:.0f}",
                ]
            )
    head = (
        "instances, systems, levels",
        "data",
        "bits of time + width",
        "kernel ms",
        "10⁹ comparisons/s",
        "of int32 limit",
        "of int16 limit",
        "one thread, CPU time: of int32 limit",
        "from curves ms",
        "torch ms",
        "torch / kernel",
        "torch / from curves",
    )
    note = "All three measures. *Kernel*: tables made beforehand; *from curves*: tables, comparison and results."
    return f"{note}\n\n{table(head, rows)}"


def limits_text(limit: dict[str, float]) -> str:
    return (
        f"Compares of two arrays in the first cache, counted, by numba's vectoriser, all threads: int32 "
        f"{limit['int32'] / 1e9:.1f}·10⁹/s, int16 {limit['int16'] / 1e9:.1f}·10⁹/s. Memory: {limit['bytes'] / 1e9:.1f} GB/s."
    )


def plain(limit: dict[str, float]) -> str:
    data = curves(200, 30, 20)
    pairs = all_pairs(30)
    few = data.instances(slice(0, 2))
    loop_pairs = [tuple(pair) for pair in pairs.tolist()]
    loop, array, torch_time, grid, merge = seconds(
        lambda: python_loop(few, loop_pairs),
        lambda: numpy_grid(data, pairs.numpy()),
        lambda: reference.compare_pairs(data, pairs),
        lambda: cpu.compare_pairs(data, pairs, "grid"),
        lambda: cpu.compare_pairs(data, pairs, "merge"),
        repeat=5,
    )
    loop *= 100
    rows = [
        [name, ms(value), f"{value / grid:.1f}"]
        for name, value in (
            ("Python loop over pairs (from 2 instances)", loop),
            ("numpy, RPP alone", array),
            ("torch reference", torch_time),
            ("compiled, merge form", merge),
            ("compiled, grid form", grid),
        )
    ]
    return "200 instances × 30 systems × 20 levels.\n\n" + table(("what", "ms", "times the grid form"), rows)


def scaling(limit: dict[str, float]) -> str:
    base = {"instances": 400, "systems": 40, "levels": 20, "trials": 1}
    rows: Rows = []
    for name, factors in (
        ("instances", (1, 2, 4)),
        ("systems", (1, 2, 4)),
        ("levels", (1, 2, 4)),
        ("trials", (1, 2, 4)),
    ):
        times = []
        for factor in factors:
            shape = {**base, name: base[name] * factor}
            ready = Prepared(curves(shape["instances"], shape["systems"], shape["levels"], trials=shape["trials"]))
            times += seconds(ready.run, repeat=9)
        square = name in ("systems", "trials")
        predicted = [factor**2 if square else factor for factor in factors]
        rows.append([name, *(f"{ms(t)} ({t / times[0]:.1f} for {p})" for t, p in zip(times, predicted, strict=True))])
    head = ("what grows from 400 × 40 × 20 × 1", "1×", "2×: ms (ratio for predicted)", "4×")
    note = "Several trials also count ties and the split per trial pair; one trial reads them off the result."
    return f"{note}\n\n{table(head, rows)}"


def continuous_returns(limit: dict[str, float]) -> str:
    data = continuous(16, 100, 1000)
    pairs = all_pairs(100)
    size = data.levels.numel() * 4 + data.ticks.numel() * 8
    grid, merge = seconds(
        lambda: cpu.compare_pairs(data, pairs, "grid"),
        lambda: cpu.compare_pairs(data, pairs, None),
        repeat=3,
        limit=120,
    )
    above = peak_above(lambda: cpu.compare_pairs(data, pairs))
    runs = cpu.as_runs(data)
    chosen = "merge" if cpu.choose(runs, cpu_grid.describe(runs), len(pairs)).all() else "grid"
    rows = [
        ["grid form", ms(grid), ""],
        [f"as chosen ({chosen})", ms(merge), f"{16 * len(pairs) * 2000 / merge / 1e9:.2f}·10⁹ steps/s"],
        ["ratio", f"{grid / merge:.1f}", ""],
        ["memory above the input, MiB", f"{above / 2**20:.1f}", f"input {size / 2**20:.1f} MiB"],
    ]
    return "16 instances × 100 systems × 1,000 steps, all levels distinct.\n\n" + table(("", "ms", ""), rows)


def batches(limit: dict[str, float]) -> str:
    rows: Rows = []
    rng = np.random.default_rng(0)
    for (groups, size, steps), depth in (((512, 16, 64), 8), ((512, 16, 64), 0), ((32, 8, 30), 8)):
        values = np.sort(rng.random((groups, size, steps)), -1) * rng.random((groups, size, 1))
        values = np.floor(values * depth) / depth if depth else values
        what = f"{groups} × {size} × {steps}, " + (f"≤ {depth} levels" if depth else "all levels distinct")
        rows += [
            [what, *_batch(torch.tensor(values, dtype=torch.float32), measure)] for measure in ("rpp", "lr", "ipp")
        ]
    head = (
        "groups × rollouts × steps",
        "measure",
        "compiled ms",
        "torch, fixed shapes ms",
        "ratio",
        "torch reference ms",
        "ratio",
    )
    return "From raw float32 returns to preferences, medians.\n\n" + table(head, rows)


def _batch(returns: torch.Tensor, measure: str) -> list[str]:
    from torchpref.rl import pairwise
    from torchpref.rl.rollouts import Rollouts

    groups, size, steps = returns.shape
    lengths, valid = torch.full((groups, size), steps), torch.ones((groups, size), dtype=torch.bool)

    def reached() -> torch.Tensor:
        return torch.round(returns.double() * 1e6).to(torch.int32).cummax(-1).values

    def compiled() -> None:
        cpu_groups.compare_groups(cpu_groups.reach(returns, lengths), None, None, valid, measure)

    def fixed_shapes() -> None:
        pairwise._block(Rollouts(reached(), None, False, None, valid), None, measure, measure != "ipp")

    (ours,) = medians(compiled)
    fixed, grid = medians(
        fixed_shapes, lambda: reference.compare_pairs(_batch_curves(reached()), all_pairs(size)), repeat=2
    )
    return [measure, ms(ours), ms(fixed), f"{fixed / ours:.0f}", ms(grid), f"{grid / ours:.0f}"]


def _batch_curves(reached: torch.Tensor) -> Curves:
    from torchpref.runs.curves import LEVEL_PAD
    from torchpref.runs.units import NEVER

    rises = reached > torch.nn.functional.pad(reached[..., :-1], (1, 0))
    order = torch.argsort(~rises, dim=-1, stable=True)
    real = rises.gather(-1, order)
    width = int(rises.sum(-1).max())
    return Curves(
        torch.where(real, reached.gather(-1, order), LEVEL_PAD)[..., :width].unsqueeze(2),
        torch.where(real, order + 1, NEVER)[..., :width].unsqueeze(2),
        None,
        torch.ones((*reached.shape[:2], 1), dtype=torch.bool),
    )


def means(limit: dict[str, float]) -> str:
    data = curves(1000, 1000, 20)
    pairs = all_pairs(1000)
    weights = torch.ones(1000, dtype=torch.float64)
    cpu_means.mean_pairs(data.instances(slice(0, 2)), pairs[:10], weights[:2], 1.0, "grid")
    taken: list[float] = []

    def call() -> None:
        start = time.perf_counter()
        cpu_means.mean_pairs(data, pairs, weights, 1.0)
        taken.append(time.perf_counter() - start)

    above = peak_above(call)
    call()
    rows = [
        ["time, s", f"{min(taken):.2f}"],
        ["10⁹ comparisons/s", f"{1000 * len(pairs) * 20 / min(taken) / 1e9:.2f}"],
        ["memory above the input, MiB", f"{above / 2**20:.0f}"],
    ]
    return "1,000 instances × 1,000 systems × 20 levels; means, weights, counts, ties and the split.\n\n" + table(
        ("", ""), rows
    )


_COLD = """
import time, torch, torchpref as tp
from importlib.resources import files
runs = tp.read(str(files("torchpref") / "sgrl" / "data" / "demo.parquet"))
all_preferences = tp.all_preferences
times = []
for _ in range(8):
    start = time.thread_time()
    all_preferences(runs)
    times.append(time.thread_time() - start)
print(times[0], sorted(times[1:])[3])
"""


def cold(limit: dict[str, float]) -> str:
    def first_and_later(folder: str | None) -> tuple[float, float]:
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1"}
        if folder is not None:
            environment["NUMBA_CACHE_DIR"] = folder
        done = subprocess.run(
            [sys.executable, "-c", _COLD], env=environment, capture_output=True, text=True, check=True
        )
        first, later = map(float, done.stdout.split())
        return first, later

    empty, filled = [], []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            empty.append(first_and_later(folder))
        filled.append(first_and_later(None))  # warm_up has filled the usual cache
    a, b, later = (
        sorted(values)[2] for values in ([x[0] for x in empty], [x[0] for x in filled], [x[1] for x in empty])
    )
    rows = [
        ["first call, fresh process, empty numba cache", ms(a), f"{a / b:.2f}"],
        ["first call, fresh process, filled numba cache", ms(b), "1.00"],
        ["later calls of the same process", ms(later), f"{later / b:.2f}"],
    ]
    note = (
        "`all_preferences` on the demo data (100 × 10), CPU time, medians of 5 processes: small work compiles nothing."
    )
    return f"{note}\n\n{table(('', 'ms', 'ratio'), rows)}"


def write_data_set(folder: Path, gigabytes: float, shuffled: bool = False) -> tuple[int, int]:
    """A row per run with list cells; times that do not compress. Returns bytes and rows."""
    import polars as pl

    rng = np.random.default_rng(0)
    systems, steps, instances = 50, 64, 1000
    size = rows = number = 0
    while size < gigabytes * 1e9:
        count = instances * systems
        reached = np.minimum(np.maximum.accumulate(rng.integers(0, 21, (count, steps)), 1), 20) / 20
        seconds_ = np.cumsum(rng.random((count, steps)), 1)
        frame = pl.DataFrame(
            {
                "instance": [f"task-{number:04d}-{i:04d}" for i in range(instances) for _ in range(systems)],
                "system": [f"agent-{s:02d}" for _ in range(instances) for s in range(systems)],
                "return": pl.Series(reached).arr.to_list(),
                "seconds": pl.Series(seconds_).arr.to_list(),
            }
        )
        if shuffled:
            frame = frame.sample(fraction=1, shuffle=True, seed=number)
        path = folder / f"part-{number:04d}.parquet"
        frame.write_parquet(path, row_group_size=10_000)
        size += path.stat().st_size
        rows += count
        number += 1
    return size, rows


_STREAM = """
import sys, time, json, resource, torch
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
from torchpref.pairwise.streaming import stream_preferences
start = time.perf_counter()
result = stream_preferences(sys.argv[1], ["lr", "rpp", "ipp"], clock="seconds", progress=sys.stderr.isatty())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([time.perf_counter() - start, (peak - base) / 1024, result["rpp"].n_instances, result["rpp"].tie_rate()]))
"""


def large(limit: dict[str, float]) -> str:
    rows: Rows = []
    for shuffled in (False, True):
        with tempfile.TemporaryDirectory() as name:
            size, count = write_data_set(Path(name), 2.05, shuffled)
            environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
            done = subprocess.run(
                [sys.executable, "-c", _STREAM, name], env=environment, stdout=subprocess.PIPE, text=True, check=True
            )
            taken, peak, instances, rate = json.loads(done.stdout)
        order = "rows in any order" if shuffled else "sorted by instance"
        rows.append(
            [
                order,
                f"{size / 1e9:.2f} GB",
                f"{count:,}",
                f"{instances:,}",
                f"{taken:.0f}",
                f"{peak:.0f}",
                f"{rate:.6f}",
            ]
        )
    head = ("data set", "size", "runs of 64 steps", "instances", "s", "peak above torch loaded, MiB", "tie rate (RPP)")
    return "LR, RPP and IPP of 50 systems, streamed.\n\n" + table(head, rows)


def processes(limit: dict[str, float]) -> str:
    rows: Rows = []
    results: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data").mkdir()
        write_data_set(folder / "data", 0.15)
        for count in (1, 2, 3):
            path = folder / f"{count}.json"
            command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
            command += ["-m", "torchpref.distributed", str(folder / "data"), "--clock", "seconds", "--json", str(path)]
            environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1"}
            start = time.perf_counter()
            subprocess.run(command, env=environment, check=True, capture_output=True)
            taken = time.perf_counter() - start
            results.append(path.read_text())
            rows.append([str(count), f"{taken:.1f}", "yes" if results[-1] == results[0] else "NO"])
    note = "`torchrun --nproc-per-node N -m torchpref.pairwise.sharding`, all six measures, 0.15 GB; one thread per process."
    return f"{note}\n\n{table(('processes', 's, start to end', 'same bits as one'), rows)}"


SECTIONS: dict[str, tuple[str, Callable[[dict[str, float]], str]]] = {
    "limits": ("What the machine can do", limits_text),
    "sizes": ("All pairs, three sizes", sizes),
    "plain": ("Beside plain ways", plain),
    "scaling": ("Scaling", scaling),
    "continuous": ("Continuous returns", continuous_returns),
    "batches": ("Training batches", batches),
    "means": ("Means alone", means),
    "cold": ("The first call", cold),
    "processes": ("Several processes", processes),
    "large": ("Larger than memory", large),
}


def stored() -> dict[str, str]:
    """The sections of RESULTS.md as they are, by title."""
    if not RESULTS.exists():
        return {}
    parts = RESULTS.read_text().split("\n## ")[1:]
    return {part.split("\n", 1)[0]: part.split("\n", 1)[1].strip() for part in parts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also stream 2 GB of Parquet")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="some tables")
    chosen = parser.parse_args()
    names = chosen.only or [name for name in SECTIONS if name != "large" or chosen.large]
    warm_up()
    limit = kernels_limits.measure(torch.get_num_threads())
    found = stored()
    print(f"# Kernels\n\n{machine()}\n")
    for name in names:
        title, make = SECTIONS[name]
        found[title] = f"_{machine()}_\n\n{make(limit)}"
        print(f"## {title}\n\n{found[title]}\n", flush=True)
        _write(found)


def _write(found: dict[str, str]) -> None:
    head = (
        "# Kernels: measured\n\nWritten by `python benchmarks/kernels.py`; each table says where and under what load."
    )
    parts = [f"## {title}\n\n{found[title]}" for title, _ in SECTIONS.values() if title in found]
    extra = [
        f"## {title}\n\n{text}" for title, text in found.items() if title not in {name for name, _ in SECTIONS.values()}
    ]
    RESULTS.write_text("\n\n".join([head, *parts, *extra]) + "\n")


if __name__ == "__main__":
    main()
