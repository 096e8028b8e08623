"""How fast tables are read, and how much memory it takes.

Each figure comes from a process of its own, so that imports and peak memory are those of that figure alone:

    python benchmarks/reading.py [--rows 5000000]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

MEASURE = """
import sys, time
import polars, torch
from torchpref.io import read, read_tidy
def peak(): return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
path, how = sys.argv[1:3]
options = dict(option.split(":", 1) for option in sys.argv[3:])
before, start, cpu = peak(), time.perf_counter(), time.process_time()
if how == "polars":
    shape = polars.read_ndjson(path).shape
elif how == "tidy":
    shape = read_tidy(path, "table", **options).frame.shape
else:
    shape = read(path, "table", **options).shape
wall, cpu = time.perf_counter() - start, time.process_time() - cpu
print(f"{wall:7.2f} s {cpu:7.2f} s of CPU {peak() - before:7.0f} MB  {shape}")
"""


def measure(what: str, path: Path, how: str, *options: str) -> None:
    """Print time and additional peak memory of one way to read a file."""
    command = [sys.executable, "-c", MEASURE, str(path), how, *options]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    print(f"{what:<44} {path.stat().st_size / 1e6:7.1f} MB file {result.stdout.strip()}", flush=True)


def make(folder: Path, rows: int) -> dict[str, Path]:
    """Runs of 100 systems on 100 instances per 1,000,000 rows, 100 steps each."""
    import numpy as np
    import polars as pl

    draw = np.random.default_rng(0)
    runs = rows // 100
    number = np.arange(runs)
    reached = np.minimum(1, (draw.random((runs, 100)) < 0.05).cumsum(1) / 10).round(2)
    step = np.tile(np.arange(1, 101), runs)
    frame = pl.DataFrame(
        {
            "system": np.repeat(number % 100, 100),
            "instance": np.repeat(number // 100, 100),
            "step": step,
            "return": reached.reshape(-1),
            "seconds": (step * 1.37).round(3),
        }
    ).with_columns(pl.format("system-{}", "system").alias("system"), pl.format("task-{}", "instance").alias("instance"))
    paths = {name: folder / name for name in ("runs.csv", "runs.parquet", "shuffled.parquet", "runs.jsonl")}
    frame.write_csv(paths["runs.csv"])
    frame.write_parquet(paths["runs.parquet"])
    frame.sample(fraction=1, shuffle=True, seed=1).write_parquet(paths["shuffled.parquet"])
    frame.head(1_250_000).write_ndjson(paths["runs.jsonl"])
    return paths


def main() -> None:
    """Make the tables, read them, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    rows = parser.parse_args().rows
    real = Path(__file__).parents[1] / "../shared/data/openhands_index.csv"
    if real.exists():
        columns = "columns:success=resolved,cost=cost_usd"
        measure("51,451 rows of CSV, a row per run", real, "read", columns)
        measure("the same, one of five benchmarks", real, "read", columns, "where:benchmark=swe-bench")
    with tempfile.TemporaryDirectory() as folder:
        paths = make(Path(folder), rows)
        for name in ("runs.csv", "runs.parquet", "shuffled.parquet"):
            measure(f"{rows:,} rows, a row per step: {name}", paths[name], "read")
        measure("JSON lines by polars", paths["runs.jsonl"], "polars")
        measure("JSON lines as tidy rows", paths["runs.jsonl"], "tidy")
        measure("JSON lines as runs", paths["runs.jsonl"], "read")


if __name__ == "__main__":
    main()
