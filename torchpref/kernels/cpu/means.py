"""Sums over instances on the CPU, taken while the results of a pair are still in registers and the first cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchpref.kernels import compiled as numba_support
from torchpref.kernels.compiled import float64, int64, jit, run, split
from torchpref.kernels.cpu import choose as cpu
from torchpref.kernels.cpu import grid as cpu_grid
from torchpref.kernels.cpu import merge as cpu_merge
from torchpref.kernels.cpu.grid import add_trials, workspace
from torchpref.kernels.cpu.lanes import compare_lanes
from torchpref.kernels.cpu.merge import add_present_trials
from torchpref.kernels.cpu.tables import GENERAL
from torchpref.kernels.mean_sums import TERMS, MeanSums
from torchpref.runs.curves import Curves
from torchpref.runs.exact_sum import to_limbs
from torchpref.runs.units import MILLION

Array = np.ndarray[Any, Any]

# Adding and subtracting it rounds a number below 2⁵¹ to the nearest whole one, ties to even, as torch.round does.
_NEAREST = 1.5 * 2.0**52
_LIMB = 2.0**30
#: Instances whose limbs, below 2³⁰ each, add up in float64 without rounding.
_EXACT = 1 << 22


@jit
def _high(value: float, factor: float) -> float:
    return (value * factor + _NEAREST) - _NEAREST


@jit
def _low(value: float, factor: float, high: float) -> float:
    return ((value * factor - high) * _LIMB + _NEAREST) - _NEAREST


@jit
def _add_values(values: Array, weights: Array, factor: float, high: Array, low: Array) -> None:
    """Add the limbs of weight · Δ on every lane; values in millionths."""
    for lane in range(values.size):
        value = float64(values[lane]) / 1e6 * weights[lane]
        part = _high(value, factor)
        high[lane] += part
        low[lane] += _low(value, factor, part)


@jit
def _add_signs(signs: Array, weights: Array, factor: float, high: Array, low: Array) -> None:
    for lane in range(signs.size):
        part = _high(weights[lane], factor)
        sign = float64(signs[lane])
        high[lane] += sign * part
        low[lane] += sign * _low(weights[lane], factor, part)


@jit
def _one_trial(
    low: Array,
    high: Any,
    flags: Any,
    widths: Array,
    units: Array,
    here: Array,
    solved: Array,
    weights: Array,
    factor: float,
    pairs: Array,
    first: int,
    last: int,
    tile: int,
    delta: Array,
    ties: Array,
) -> None:
    blocks, runs, depth, count = low.shape
    lr, rpp, ipp = workspace(count)
    part = np.empty(count, np.int8)
    # Limbs of every lane's sums over a tile: they stay far below 2⁵³, so adding them is exact.
    sums = np.empty((10, count), np.float64)
    tied = np.empty((3, count), np.int32)
    for start in range(0, blocks, tile):
        for pair in range(first, last):
            a, b = pairs[pair, 0], pairs[pair, 1]
            sums[:, :] = 0
            tied[:, :] = 0
            for block in range(start, min(start + tile, blocks)):
                compare_lanes(
                    low,
                    high,
                    flags,
                    (block * runs + a) * depth * count,
                    (block * runs + b) * depth * count,
                    widths,
                    block * depth * count,
                    depth,
                    units,
                    block * count,
                    here,
                    (block * runs + a) * count,
                    (block * runs + b) * count,
                    lr,
                    rpp,
                    ipp,
                    0,
                )
                weight = weights[block]
                _add_signs(lr, weight, factor, sums[0], sums[1])
                _add_values(rpp, weight, factor, sums[2], sums[3])
                _add_values(ipp, weight, factor, sums[4], sums[5])
                for lane in range(count):
                    part[lane] = lr[lane] & (solved[block, a, lane] ^ solved[block, b, lane])
                _add_signs(part, weight, factor, sums[6], sums[7])
                for lane in range(count):
                    part[lane] = lr[lane] & solved[block, a, lane] & solved[block, b, lane]
                _add_signs(part, weight, factor, sums[8], sums[9])
                for lane in range(count):
                    part[lane] = here[block, a, lane] & here[block, b, lane]
                for lane in range(count):
                    tied[0, lane] -= part[lane] if lr[lane] == 0 else 0
                for lane in range(count):
                    tied[1, lane] -= part[lane] if rpp[lane] == 0 else 0
                for lane in range(count):
                    tied[2, lane] -= part[lane] if ipp[lane] == 0 else 0
            for term in range(5):
                for limb in range(2):
                    delta[term, limb, pair] += int64(sums[2 * term + limb].sum())
            for measure in range(3):
                ties[measure, pair] += tied[measure].sum()


@jit
def _add_instance(
    total: Array, weight: float, factor: float, pair: int, delta: Array, ties: Array, tie_share: Array
) -> None:
    """Add one instance's sums over trial pairs, in order of ``cpu_grid.SUMS``, to those of a pair."""
    trial_pairs = total[8]
    if trial_pairs == 0:
        return
    for term in range(6):
        unit = MILLION if term == 1 or term == 2 else 1
        if term < 3:
            part = total[term]
        elif term < 5:
            part = total[term + 3]
        else:
            part = total[0] - total[6] - total[7]
        value = float64(part) / float64(trial_pairs * unit) * weight
        high = _high(value, factor)
        delta[term, 0, pair] += int64(high)
        delta[term, 1, pair] += int64(_low(value, factor, high))
    for measure in range(3):
        tied = total[3 + measure]
        ties[measure, pair] += tied
        share = float64(tied) / float64(trial_pairs)
        high = _high(share, _LIMB)
        tie_share[measure, 0, pair] += int64(high)
        tie_share[measure, 1, pair] += int64(_low(share, _LIMB, high))


@jit
def _several_trials(
    low: Array,
    high: Any,
    flags: Any,
    widths: Array,
    units: Array,
    here: Array,
    solved: Array,
    trials: int,
    weights: Array,
    factor: float,
    pairs: Array,
    first: int,
    last: int,
    tile: int,
    delta: Array,
    ties: Array,
    tie_share: Array,
) -> None:
    blocks, count = low.shape[0], low.shape[3]
    work = workspace(count)
    total = np.empty((9, count), np.int64)
    one = np.empty(9, np.int64)
    for start in range(0, blocks, tile):
        for pair in range(first, last):
            for block in range(start, min(start + tile, blocks)):
                add_trials(
                    low,
                    high,
                    flags,
                    widths,
                    units,
                    here,
                    solved,
                    trials,
                    pairs[pair, 0],
                    pairs[pair, 1],
                    block,
                    work,
                    total,
                )
                for lane in range(count):
                    one[:] = total[:, lane]
                    _add_instance(one, weights[block, lane], factor, pair, delta, ties, tie_share)


@jit
def _merged(
    levels: Array,
    ticks: Array,
    bound: Array,
    present: Array,
    counts: Array,
    general: Array,
    instances: Array,
    trials: int,
    weights: Array,
    factor: float,
    pairs: Array,
    first: int,
    last: int,
    delta: Array,
    ties: Array,
    tie_share: Array,
) -> None:
    total = np.empty(9, np.int64)
    for instance in instances:
        for pair in range(first, last):
            add_present_trials(
                levels,
                ticks,
                bound,
                present,
                counts,
                general[instance],
                instance,
                pairs[pair, 0],
                pairs[pair, 1],
                trials,
                total,
            )
            _add_instance(total, weights[instance], factor, pair, delta, ties, tie_share)


def mean_pairs(
    curves: Curves,
    pairs: Int[Tensor, "pair 2"],
    weights: Float[Tensor, " instance"],
    scale: float,
    form: cpu.Form | None = None,
) -> MeanSums:
    """See :func:`torchpref.kernels.means.mean_pairs`; ``form`` as in :func:`torchpref.kernels.cpu.choose.compare_pairs`."""
    instances, systems, trials, _ = curves.shape
    n_pairs = len(pairs)
    if not instances or not n_pairs or not trials:
        return MeanSums.zeros(n_pairs, scale)
    runs = cpu.as_runs(curves)
    chosen = pairs.contiguous().numpy()
    found = cpu_grid.describe(runs)
    merged = cpu.choose(runs, found, n_pairs) if form is None else np.full(instances, form == "merge")
    value = weights.double().cpu().numpy()
    factor = _LIMB / scale
    delta = np.zeros((len(TERMS), 2, n_pairs), np.int64)
    ties, tie_share = np.zeros((3, n_pairs), np.int64), np.zeros((3, 2, n_pairs), np.int64)
    pieces = split(n_pairs, numba_support.threads() * 4)
    for layout in cpu_grid.layouts(found, np.nonzero(~merged)[0], systems * trials):
        tables = cpu_grid.build(runs, found, layout)
        lane_weights = np.where(layout.order >= 0, value[layout.order], 0.0)
        head = (tables.low, tables.high, tables.flags, tables.widths, tables.units, tables.here, tables.solved)
        if trials == 1:
            calls = [
                (*head, lane_weights, factor, chosen, first, last, tables.tile, delta, ties) for first, last in pieces
            ]
            run(_one_trial, calls)
        else:
            rest = (trials, lane_weights, factor, chosen)
            run(
                _several_trials,
                [(*head, *rest, first, last, tables.tile, delta, ties, tie_share) for first, last in pieces],
            )
    if trials == 1:
        tie_share[:, 0] = ties * int(_LIMB)
        # One trial pair belongs to one part, so what is left is exact in fixed point too.
        delta[5] = delta[0] - delta[3] - delta[4]
    by_merge = np.nonzero(merged)[0]
    if len(by_merge):
        counts = cpu_merge.count_jumps(runs.levels)
        source = (runs.levels, runs.ticks, runs.bound, runs.present, counts, found[:, GENERAL] > 0, by_merge)
        rest = (trials, value, factor, chosen)
        run(_merged, [(*source, *rest, first, last, delta, ties, tie_share) for first, last in pieces])
    weight, shared, trial_pairs = _counts(curves, pairs, weights, scale)
    return MeanSums(
        scale=scale,
        delta=torch.from_numpy(delta),
        weight=weight,
        tie_share=torch.from_numpy(tie_share),
        ties=torch.from_numpy(ties),
        shared=shared,
        trial_pairs=trial_pairs,
    )


def _counts(
    curves: Curves, pairs: Int[Tensor, "pair 2"], weights: Float[Tensor, " instance"], scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Limbs of Σ v, shared instances and trial pairs of every pair, as products of matrices of whole numbers."""
    systems = curves.shape[1]
    square = torch.zeros((4, systems, systems), dtype=torch.int64)
    high, low = to_limbs(weights.double().cpu(), scale)
    for start in range(0, curves.shape[0], _EXACT):
        rows = slice(start, start + _EXACT)
        count = curves.present[rows].sum(-1).double()
        ran = (count > 0).double()
        for index, (left, right) in enumerate(
            (
                (ran * high[rows, None].double(), ran),
                (ran * low[rows, None].double(), ran),
                (ran, ran),
                (count, count),
            )
        ):
            square[index] += (left.t() @ right).long()
    first, second = pairs[:, 0], pairs[:, 1]
    picked = square[:, first, second]
    return picked[:2], picked[2], picked[3]


__all__ = ["mean_pairs"]
