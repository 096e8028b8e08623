"""LR, RPP and IPP of all pairs on the CPU: each instance by the form that is the cheaper one for it.

The grid form costs all levels of the instance for every pair of runs, but hardly anything per level; the merge form
costs the jumps of the two runs, each a hundred times dearer. Both give the same integers.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from torchpref.kernels import compiled as numba_support
from torchpref.kernels.cpu import grid as cpu_grid
from torchpref.kernels.cpu import merge as cpu_merge
from torchpref.kernels.cpu.grid import Runs
from torchpref.kernels.cpu.lanes import lanes
from torchpref.kernels.cpu.tables import GENERAL, JUMPS, LEVELS
from torchpref.kernels.pair_sums import PairSums
from torchpref.runs.curves import LEVEL_PAD, Curves
from torchpref.runs.units import MILLION

Array = np.ndarray[Any, Any]
Form = Literal["grid", "merge"]

# Nanoseconds, measured with benchmarks/kernels.py; only their ratios matter.
_PER_VECTOR_LEVEL = 5.0
_PER_ENTRY = 2.5
_PER_MERGE_STEP = 2.5
_PER_MERGE_PAIR = 15.0


def as_runs(curves: Curves) -> Runs:
    """Curves as arrays over the same memory, systems and trials flattened."""
    instances, systems, trials, jumps = curves.shape
    shape = (instances, systems * trials)
    bound = np.empty((0, shape[1]), np.int64)
    if curves.bound is not None:
        bound = curves.bound.reshape(shape).contiguous().numpy()
    return Runs(
        levels=curves.levels.reshape(*shape, jumps).contiguous().numpy(),
        ticks=curves.ticks.reshape(*shape, jumps).contiguous().numpy(),
        bound=bound,
        present=curves.present.reshape(shape).contiguous().numpy(),
        trials=trials,
    )


def choose(runs: Runs, found: Array, pairs: int) -> Array:
    """bool ``[instance]``, True where the merge form is the cheaper one."""
    n_runs, trials = runs.levels.shape[1], runs.trials
    present = runs.present.sum(1)
    levels = found[:, LEVELS]
    bits = cpu_grid.time_bits(found)
    blocks = np.zeros(len(found))
    for width in (16, 32, 64):
        alike = int((bits == width).sum())
        if alike:
            # Lanes of a last block that is not full are paid for too.
            blocks[bits == width] = -(-alike // lanes(width)) / alike
    general = np.where(found[:, GENERAL] > 0, 2.0, 1.0)
    grid = levels * (pairs * trials**2 * _PER_VECTOR_LEVEL * blocks * general + n_runs * _PER_ENTRY)
    systems = n_runs // trials
    share = pairs / max(1, systems * (systems - 1) // 2)
    merge = share * (found[:, JUMPS] * present * _PER_MERGE_STEP * general + present**2 / 2 * _PER_MERGE_PAIR)
    chosen: Array = merge < grid
    return chosen


def compare_pairs(curves: Curves, pairs: Int[Tensor, "pair 2"], form: Form | None = None) -> PairSums:
    """LR, RPP and IPP of all pairs; see :func:`torchpref.kernels.compare_pairs`.

    Args:
        curves: the runs' jumps, on the CPU.
        pairs: int64 ``[pair, 2]``.
        form: ``"grid"`` or ``"merge"`` for all instances; each by its cost where None.
    """
    instances, systems, trials, jumps = curves.shape
    if not instances or not len(pairs) or not trials:
        return PairSums.zeros(instances, len(pairs), curves.levels.device)
    runs = as_runs(curves)
    chosen_pairs = pairs.contiguous().numpy()
    found = cpu_grid.describe(runs)
    merged = choose(runs, found, len(pairs)) if form is None else np.full(instances, form == "merge")
    on_grid, by_merge = np.nonzero(~merged)[0], np.nonzero(merged)[0]
    plans = list(cpu_grid.layouts(found, on_grid, systems * trials))
    width = sum(layout.order.size for layout in plans)
    shape = (len(pairs), width + len(by_merge))
    out: Any
    if trials == 1:
        out = (np.empty(shape, np.int8), np.empty(shape, np.int32), np.empty(shape, np.int32))
    else:
        out = np.empty((8, *shape), np.int64)
    place = cpu_grid.compare(runs, found, plans, chosen_pairs, out)
    if len(by_merge):
        _merge(runs, found, by_merge, chosen_pairs, out, width)
        place[by_merge] = width + np.arange(len(by_merge))
    return _sums(curves, pairs, out, place)


def _merge(runs: Runs, found: Array, instances: Array, pairs: Array, out: Any, column: int) -> None:
    counts = cpu_merge.count_jumps(runs.levels)
    head = (runs.levels, runs.ticks, runs.bound, runs.present, counts, found[:, GENERAL] > 0)
    calls = []
    threads = numba_support.threads()
    if len(instances) >= 4 * threads:
        for first, last in numba_support.split(len(instances), 4 * threads):
            calls.append((instances[first:last], 0, len(pairs), column + first))
    else:
        for first, last in numba_support.split(len(pairs), threads):
            calls.append((instances, first, last, column))
    if runs.trials == 1:
        arguments = [(*head, some, pairs, first, last, *out, at) for some, first, last, at in calls]
        numba_support.run(cpu_merge.compare_one_trial, arguments)
    else:
        arguments = [(*head, some, pairs, first, last, runs.trials, out, at) for some, first, last, at in calls]
        numba_support.run(cpu_merge.compare_several_trials, arguments)


def _sums(curves: Curves, pairs: Int[Tensor, "pair 2"], out: Any, place: Array) -> PairSums:
    """Results ``[pair, column]`` as sums ``[instance, pair]``."""
    straight = bool((place == np.arange(len(place))).all())

    def turned(values: Array) -> Tensor:
        tensor = torch.from_numpy(values)
        tensor = tensor[:, : len(place)] if straight else tensor.index_select(1, torch.from_numpy(place))
        return tensor.t()

    if curves.shape[2] > 1:
        return PairSums(*(turned(values) for values in out))
    solved = ((curves.levels >= MILLION) & (curves.levels != LEVEL_PAD)).any(-1)
    lr, rpp, ipp = (turned(values) for values in out)
    return PairSums.single(lr, rpp, ipp, pairs, curves.present[..., 0], solved[..., 0])


__all__ = ["Form", "as_runs", "choose", "compare_pairs"]
