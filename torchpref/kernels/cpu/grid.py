"""The CPU's grid kernel: all pairs on the union grid of each instance, instances along vector lanes.

Instances are sorted into blocks, one instance per lane, so that those of a block need the same kind of table (width of
a time, unknown times or not) and nearly the same number of levels. Tables are made for as many blocks at a time as fit
a bounded memory; then pairs run over them, in pieces of blocks that stay in the processor's cache. What is compared is
the same in any order, so neither blocks nor threads change a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchpref.errors import DataError
from torchpref.kernels import compiled as numba_support
from torchpref.kernels.compiled import int64, jit, run, split
from torchpref.kernels.cpu.lanes import compare_lanes, lanes, never
from torchpref.kernels.cpu.tables import COLUMNS, GENERAL, LAST, LEVELS, TOP, fill, scan
from torchpref.kernels.pair_sums import FIELDS

Array = np.ndarray[Any, Any]

#: Bytes of tables held at a time, and the part of them that pairs run over before moving on: about a core's cache.
TABLE_BYTES = 64 << 20
TILE_BYTES = 512 << 10
_TYPES = {16: np.int16, 32: np.int32, 64: np.int64}


@dataclass(frozen=True)
class Runs:
    """Curves as arrays, systems and trials flattened to runs: run = system · trials + trial."""

    levels: Array
    ticks: Array
    bound: Array
    present: Array
    trials: int


@dataclass(frozen=True)
class Tables:
    """Some blocks of instances; see :func:`torchpref.kernels.cpu.tables.fill` for the arrays."""

    order: Array
    low: Array
    high: Array | None
    flags: Array | None
    widths: Array
    units: Array
    here: Array
    solved: Array
    trials: int

    @property
    def tile(self) -> int:
        """How many blocks fit the processor's cache."""
        bytes_per_block = self.low.nbytes // max(1, len(self.low)) * (1 if self.high is None else 3)
        return max(1, TILE_BYTES // max(1, bytes_per_block))


def describe(runs: Runs) -> Array:
    """What :func:`torchpref.kernels.cpu.tables.scan` finds in every instance."""
    found = np.zeros((len(runs.levels), COLUMNS), np.int64)
    calls = [
        (runs.levels, runs.ticks, runs.bound, runs.present, first, last, never(16) // 2, found)
        for first, last in split(len(found), numba_support.threads() * 2)
    ]
    for wrong in run(scan, calls):
        if wrong >= 0:
            raise DataError(f"instance {wrong} has a level outside 1 … 1,000,000 millionths")
    return found


def time_bits(found: Array) -> Array:
    """Width of a time in the table of each instance."""
    bits: Array = np.where(found[:, LAST] <= never(16) // 2, 16, np.where(found[:, LAST] < never(32) // 2, 32, 64))
    return bits


@dataclass(frozen=True)
class Layout:
    """Which instances share tables: ``order`` ``[block, lane]`` of one kind, -1 for an empty lane."""

    order: Array
    bits: int
    width_bits: int
    general: bool
    depth: int

    def bytes(self, runs: int) -> int:
        """Size of the tables."""
        return len(self.order) * runs * self.depth * lanes(self.bits) * self.bits // 8 * (3 if self.general else 1)


def layouts(found: Array, instances: Array, runs: int) -> Iterator[Layout]:
    """Put instances into blocks of one kind and nearly one depth, at most ``TABLE_BYTES`` of tables at a time."""
    kinds = (time_bits(found) * 2 + (found[:, GENERAL] > 0))[instances]
    for kind in np.unique(kinds):
        chosen = instances[kinds == kind]
        width, is_general = int(kind) // 2, bool(kind % 2)
        depth = found[chosen, LEVELS]
        even = bool(depth.max() <= 1.25 * depth.mean())
        if not even:
            chosen = chosen[np.argsort(-depth, kind="stable")]
        count = lanes(width)
        start = 0
        while start < len(chosen):
            deepest = max(1, int(found[chosen[start:] if even else chosen[start : start + 1], LEVELS].max()))
            block_bytes = runs * deepest * count * width // 8 * (3 if is_general else 1)
            stop = start + count
            while (
                stop < len(chosen)
                and (stop - start) // count * block_bytes + block_bytes <= TABLE_BYTES
                and (even or 0.8 * deepest <= found[chosen[stop], LEVELS])
            ):
                stop += count
            part = chosen[start:stop]
            order = np.full(-(-len(part) // count) * count, -1)
            order[: len(part)] = part
            top = found[part, TOP].max()
            yield Layout(order.reshape(-1, count), width, 16 if top <= never(16) else 32, is_general, deepest)
            start = stop


def build(runs: Runs, found: Array, layout: Layout, parallel: bool = True) -> Tables:
    """The tables of a layout."""
    blocks, count = layout.order.shape
    n_runs = runs.levels.shape[1]
    shape = (blocks, n_runs, layout.depth, count)
    kind = _TYPES[layout.bits]
    low = np.empty(shape, kind)
    extra = shape if layout.general else (0, n_runs, layout.depth, count)
    high, flags = np.empty(extra, kind), np.empty(extra, kind)
    widths = np.empty((blocks, layout.depth, count), _TYPES[layout.width_bits])
    units = np.empty((blocks, count), np.int32)
    here, solved = np.empty((blocks, n_runs, count), np.int8), np.empty((blocks, n_runs, count), np.int8)
    source = (runs.levels, runs.ticks, runs.bound, runs.present, found, layout.order)
    target = (never(layout.bits), low, high, flags, widths, units, here, solved)
    pieces = split(blocks, numba_support.threads()) if parallel else [(0, blocks)]
    run(fill, [(*source, first, last, *target) for first, last in pieces])
    if not layout.general:
        return Tables(layout.order, low, None, None, widths, units, here, solved, runs.trials)
    return Tables(layout.order, low, high, flags, widths, units, here, solved, runs.trials)


@jit
def _one_trial(
    low: Array,
    high: Any,
    flags: Any,
    widths: Array,
    units: Array,
    here: Array,
    pairs: Array,
    first: int,
    last: int,
    tile: int,
    column: int,
    lr: Array,
    rpp: Array,
    ipp: Array,
) -> None:
    blocks, runs, depth, count = low.shape
    row = lr.shape[1]
    for start in range(0, blocks, tile):
        for pair in range(first, last):
            a, b = pairs[pair, 0], pairs[pair, 1]
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
                    pair * row + column + block * count,
                )


@jit
def add_trials(
    low: Array,
    high: Any,
    flags: Any,
    widths: Array,
    units: Array,
    here: Array,
    solved: Array,
    trials: int,
    a: int,
    b: int,
    block: int,
    work: tuple[Array, Array, Array],
    total: Array,
) -> None:
    """Add up the trial pairs of systems a and b in a block; ``total`` is int64 ``[SUMS, lane]``, in order of ``SUMS``."""
    runs, depth, count = low.shape[1], low.shape[2], low.shape[3]
    lr, rpp, ipp = work
    total[:, :] = 0
    for i in range(a * trials, (a + 1) * trials):
        for j in range(b * trials, (b + 1) * trials):
            some = 0
            for lane in range(count):
                some |= here[block, i, lane] & here[block, j, lane]
            if some == 0:
                continue
            compare_lanes(
                low,
                high,
                flags,
                (block * runs + i) * depth * count,
                (block * runs + j) * depth * count,
                widths,
                block * depth * count,
                depth,
                units,
                block * count,
                here,
                (block * runs + i) * count,
                (block * runs + j) * count,
                lr,
                rpp,
                ipp,
                0,
            )
            for lane in range(count):
                both = -int64(here[block, i, lane] & here[block, j, lane])
                a_solved, b_solved = int64(solved[block, i, lane]), int64(solved[block, j, lane])
                sign = int64(lr[lane])
                total[0, lane] += sign
                total[1, lane] += rpp[lane]
                total[2, lane] += ipp[lane]
                total[3, lane] += both & int64(sign == 0)
                total[4, lane] += both & int64(rpp[lane] == 0)
                total[5, lane] += both & int64(ipp[lane] == 0)
                total[6, lane] += sign & (a_solved ^ b_solved)
                total[7, lane] += sign & a_solved & b_solved
                total[8, lane] += both


#: Rows of the sums over trial pairs, in order; the first eight are the fields of PairSums.
SUMS = (*FIELDS, "trial_pairs")


@jit
def workspace(count: int) -> tuple[Array, Array, Array]:
    """Room for LR, RPP and IPP of one pair of runs."""
    return np.empty(count, np.int8), np.empty(count, np.int32), np.empty(count, np.int32)


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
    pairs: Array,
    first: int,
    last: int,
    tile: int,
    column: int,
    out: Array,
) -> None:
    blocks, count = low.shape[0], low.shape[3]
    work = workspace(count)
    total = np.empty((9, count), np.int64)
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
                at = column + block * count
                for field in range(out.shape[0]):
                    for lane in range(count):
                        out[field, pair, at + lane] = total[field, lane]


def compare_tables(tables: Tables, pairs: Array, out: Any, column: int, parallel: bool = True) -> None:
    """Compare pairs on tables; results go to columns ``column …`` of ``out``.

    Args:
        tables: some blocks of instances.
        pairs: int64 ``[pair, 2]``.
        out: for one trial the arrays (lr int8, rpp int32, ipp int32) ``[pair, column]``; for several int64
            ``[8, pair, column]``.
        column: where the first lane goes.
        parallel: split the pairs over threads.
    """
    head = (tables.low, tables.high, tables.flags, tables.widths, tables.units, tables.here)
    pieces = split(len(pairs), numba_support.threads() if parallel else 1)
    if tables.trials == 1:
        run(_one_trial, [(*head, pairs, first, last, tables.tile, column, *out) for first, last in pieces])
    else:
        rest = (tables.solved, tables.trials, pairs)
        run(_several_trials, [(*head, *rest, first, last, tables.tile, column, out) for first, last in pieces])


def compare(runs: Runs, found: Array, plans: Sequence[Layout], pairs: Array, out: Any) -> Array:
    """Compare all pairs on the instances of some layouts, whose lanes fill the first columns of ``out``.

    Args:
        runs: the runs.
        found: what :func:`describe` says of them.
        plans: from :func:`layouts`.
        pairs: int64 ``[pair, 2]``.
        out: as for :func:`compare_tables`.

    Returns:
        int64 ``[instance]``: the column of each instance of the layouts; undefined for others.
    """
    place = np.empty(len(found), np.int64)
    columns = []
    column = 0
    for layout in plans:
        flat = layout.order.ravel()
        real = np.nonzero(flat >= 0)[0]
        place[flat[real]] = column + real
        columns.append(column)
        column += flat.size

    def whole(layout: Layout, column: int) -> None:
        compare_tables(build(runs, found, layout, parallel=False), pairs, out, column, parallel=False)

    if len(plans) >= 2 * numba_support.threads():
        run(whole, list(zip(plans, columns, strict=True)))
    else:
        for layout, at in zip(plans, columns, strict=True):
            compare_tables(build(runs, found, layout), pairs, out, at)
    return place
