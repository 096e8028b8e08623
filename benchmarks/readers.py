"""How fast logs are read, beside polars' own reading of the same rows.

    python benchmarks/readers.py [--megabytes 100] [--write FILE]

Each log is generated, then read by torchpref (from paths to tidy rows) and by ``polars.read_ndjson`` (all columns), each in a
process of its own. Wall time is the best of three; memory is the process's peak above what it held after its imports.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

READ = """
import json, resource, sys, time
import polars as pl
from torchpref.io import read_tidy
from torchpref.io.readers import readers
import torchpref.io.reading, torchpref.io.tables.tables
readers()
files, ours, options = json.loads(sys.argv[1])
pl.read_ndjson(b'{"a": 1}')
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before, times, cpu = peak(), [], []
for _ in range(3):
    start, spent = time.perf_counter(), time.process_time()
    if ours:
        rows = read_tidy(files, **options).frame.height
    else:
        rows = sum(pl.read_ndjson(file).height for file in files)
    times.append(time.perf_counter() - start)
    cpu.append(time.process_time() - spent)
    if len(times) == 1:
        top = peak()
print(json.dumps({"seconds": min(times), "cpu": min(cpu), "bytes": top - before, "rows": rows}))
"""


def tales(folder: Path, size: int, prompt: int) -> list[Path]:
    """Rollouts of 1,000 steps with a prompt of about ``prompt`` characters per step."""
    draw = random.Random(0)
    words = ["north", "take lamp", "open window", "the house", "you see", "a brass lantern", "\n"]
    paths, written, number = [], 0, 0
    while written < size:
        path = folder / f"agent{number % 8}/Game{number // 8}/a0_s{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        score = 0
        with path.open("w") as file:
            for step in range(1, 1001):
                score += draw.random() < 0.02
                text = " ".join(draw.choices(words, k=max(1, prompt // 9)))
                row = {
                    "Step": step,
                    "Score": score,
                    "Max Score": 100,
                    "Normalized Score": score / 100,
                    "Moves": step,
                    "Observation": text[:200],
                    "Action": "go",
                    "Feedback": text[:100],
                    "Prompt": text,
                    "Response": "go",
                    "Token Usage": 100 + step,
                }
                written += file.write(json.dumps(row) + "\n")
                if written >= size:
                    break
        paths.append(path)
        number += 1
    return paths


def openhands(folder: Path, size: int) -> list[Path]:
    """One output.jsonl with histories of about 40 events."""
    draw = random.Random(0)
    path = folder / "run-1/output.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    written = number = 0
    with path.open("w") as file:
        while written < size:
            history = [
                {
                    "id": n,
                    "timestamp": f"2026-01-01T10:00:{n:02d}",
                    "source": "agent",
                    "action": "run",
                    "args": {"command": "ls " * draw.randint(10, 60)},
                }
                for n in range(40)
            ]
            row = {
                "instance_id": f"x-{number}",
                "attempt": 1,
                "test_result": {"resolved": number % 2 == 0},
                "history": history,
                "metrics": {
                    "accumulated_cost": 0.5,
                    "accumulated_token_usage": {"prompt_tokens": 9, "completion_tokens": 9},
                },
            }
            written += file.write(json.dumps(row) + "\n")
            number += 1
    return [path]


def measure(files: list[Path], ours: bool, options: dict[str, str]) -> dict[str, float]:
    argument = json.dumps([[str(file) for file in files], ours, options])
    done = subprocess.run([sys.executable, "-c", READ, argument], capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    size = arguments.megabytes * 1_000_000
    lines = [
        f"Reading {arguments.megabytes} MB of JSON lines; best of three, peak memory of the first.",
        "",
        "| log | rows | torchpref MB/s | polars MB/s | speed, share of polars | CPU, share of polars | peak memory / file |",
        "|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = {
            "TALES, 2 kB per step": lambda: tales(folder / "long", size, 1500),
            "TALES, 500 B per step": lambda: tales(folder / "short", size, 100),
            "OpenHands output.jsonl": lambda: openhands(folder / "openhands", size),
        }
        for title, write in cases.items():
            files = write()
            whole = sum(file.stat().st_size for file in files)
            mine, theirs = measure(files, True, {}), measure(files, False, {})
            speeds = [whole / 1e6 / each["seconds"] for each in (mine, theirs)]
            shares = [theirs[what] / mine[what] for what in ("seconds", "cpu")]
            lines.append(
                f"| {title} | {theirs['rows']:,.0f} | {speeds[0]:.0f} | {speeds[1]:.0f} | {shares[0]:.2f} | {shares[1]:.2f} | "
                f"{mine['bytes'] / whole:.2f} |"
            )
            print(lines[-1], flush=True)
            for file in files:
                file.unlink()
    text = "\n".join(lines)
    print(text)
    if arguments.write:
        arguments.write.write_text(text + "\n")


if __name__ == "__main__":
    main()
