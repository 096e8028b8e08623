"""Data of the kernel benchmarks, and plain ways to compare them with."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from torchpref.runs.curves import LEVEL_PAD, Curves
from torchpref.runs.units import MILLION, NEVER

KINDS = ("steps", "odd levels", "cost", "unknown and truncated")


def curves(instances: int, systems: int, levels: int, kind: str = "steps", trials: int = 1, seed: int = 0) -> Curves:
    """Runs that take about seven tenths of the levels below a top of their own.

    ``steps``: levels k/K, whole steps. ``odd levels``: levels of no common measure. ``cost``: times in billionths of a
    dollar. ``unknown and truncated``: every tenth time unknown, every fifth run stopped by a limit.
    """
    rng = np.random.default_rng(seed)
    shape = (instances, systems, trials)
    grid = np.arange(1, levels + 1) * (MILLION // levels)
    if kind == "odd levels":
        grid = np.sort(rng.choice(MILLION, levels, replace=False) + 1)
    take = (rng.random((*shape, levels)) < 0.7) & (np.arange(levels) < rng.integers(0, levels + 1, (*shape, 1)))
    gaps = rng.integers(1, 4, (*shape, levels))
    ticks = np.cumsum(gaps * 10**6 + rng.integers(0, 10**6, gaps.shape) if kind == "cost" else gaps, -1)
    levels_ = np.where(take, grid, LEVEL_PAD).astype(np.int32)
    order = np.argsort(levels_, -1, kind="stable")
    levels_ = np.take_along_axis(levels_, order, -1)
    ticks = np.take_along_axis(np.where(take, ticks, NEVER), order, -1)
    bound = None
    if kind == "unknown and truncated":
        ticks = np.where((ticks != NEVER) & (rng.random(ticks.shape) < 0.1), -1, ticks)
        bound = torch.from_numpy(np.where(rng.random(shape) < 0.2, rng.integers(1, 3 * levels, shape), NEVER))
    return Curves(torch.from_numpy(levels_), torch.from_numpy(ticks), bound, torch.ones(shape, dtype=torch.bool))


def continuous(instances: int, systems: int, steps: int, seed: int = 0) -> Curves:
    """Dense rewards: every run has levels of its own."""
    rng = np.random.default_rng(seed)
    levels = [
        np.sort(rng.permutation(MILLION)[: systems * steps].reshape(systems, 1, steps) + 1, -1)
        for _ in range(instances)
    ]
    ticks = np.broadcast_to(np.arange(1, steps + 1), (instances, systems, 1, steps)).copy()
    return Curves(
        torch.from_numpy(np.stack(levels).astype(np.int32)),
        torch.from_numpy(ticks),
        None,
        torch.ones((instances, systems, 1), dtype=torch.bool),
    )


def all_pairs(systems: int) -> torch.Tensor:
    return torch.combinations(torch.arange(systems), 2).reshape(-1, 2)


def seconds(*calls: Callable[[], object], repeat: int = 9, limit: float = 20.0) -> list[float]:
    """Best time of each call, taken in turns so that a busy machine is busy for all of them."""
    best = [float("inf")] * len(calls)
    start = time.perf_counter()
    for number in range(repeat + 1):
        for index, call in enumerate(calls):
            begun = time.perf_counter()
            call()
            if number:  # the first round compiles and warms up
                best[index] = min(best[index], time.perf_counter() - begun)
        if number and time.perf_counter() - start > limit:
            break
    return best


def medians(*calls: Callable[[], object], repeat: int = 31) -> list[float]:
    """Median time of each call, taken in turns."""
    taken: list[list[float]] = [[] for _ in calls]
    for number in range(repeat + 1):
        for index, call in enumerate(calls):
            begun = time.perf_counter()
            call()
            if number:
                taken[index].append(time.perf_counter() - begun)
    return [sorted(each)[len(each) // 2] for each in taken]


def python_loop(data: Curves, pairs: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """LR, RPP and IPP as one would write them from the formulas, pair by pair."""
    results = []
    levels, ticks = data.levels[:, :, 0].tolist(), data.ticks[:, :, 0].tolist()
    for row_levels, row_ticks in zip(levels, ticks, strict=True):
        runs = [
            {level: tick for level, tick in zip(run, times, strict=True) if level != LEVEL_PAD}
            for run, times in zip(row_levels, row_ticks, strict=True)
        ]
        for a, b in pairs:
            grid = sorted({*runs[a], *runs[b]})

            def reach(run: dict[int, int], level: int) -> float:
                return (
                    min((tick for there, tick in run.items() if there >= level), default=float("inf")) if level else 0
                )

            lr = rpp = ipp = below = 0
            for level in grid:
                t, u = reach(runs[a], level), reach(runs[b], level)
                sign = (t < u) - (u < t)
                lr = sign or lr
                rpp += (level - below) * sign
                if t < float("inf") and u < float("inf"):
                    took, other = t - reach(runs[a], below), u - reach(runs[b], below)
                    sign = (took < other) - (other < took)
                ipp += (level - below) * sign
                below = level
            results.append((lr, rpp, ipp))
    return results


def numpy_grid(data: Curves, pairs: np.ndarray) -> np.ndarray:
    """RPP alone in numpy on the union grid, a level at a time: what a careful user would write first."""
    from torchpref.runs.curves import time_to_level, union_levels

    levels = union_levels(data)
    ticks = time_to_level(data, levels)[:, :, 0].numpy()
    widths = np.diff(np.where(levels.numpy() == LEVEL_PAD, 0, levels.numpy()), axis=1, prepend=0)
    widths = np.where(levels.numpy() == LEVEL_PAD, 0, widths)
    total = np.zeros((len(ticks), len(pairs)), np.int64)
    for level in range(ticks.shape[-1]):
        at = ticks[:, :, level]
        total += widths[:, level, None] * np.sign(at[:, pairs[:, 1]] - at[:, pairs[:, 0]])
    return total


def memory_now() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_above(call: Callable[[], object]) -> int:
    """Bytes by which a call raises this process's memory at most (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_now()
    call()
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 - before


def machine() -> str:
    """What this machine is, in a line."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        name = found[0] if found else name
    import numba

    versions = f"Python {platform.python_version()}, torch {torch.__version__}, numpy {np.__version__}"
    versions += f", numba {numba.__version__}"
    return (
        f"{name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {versions}; {torch.get_num_threads()} threads"
    )
