"""LR, RPP and IPP of all pairs on a CUDA device, in one launch per batch of instances.

Tables of times are made by torch on the device; :mod:`torchpref.kernels.cuda.kernel` compares them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from torchpref.kernels import reference
from torchpref.kernels.pair_sums import PairSums
from torchpref.runs.curves import LEVEL_PAD, Curves, time_to_level, union_levels
from torchpref.runs.units import MILLION, NEVER, UNKNOWN

#: Entries of the tables (instances × levels × runs) made at a time.
MAX_ENTRIES = 1 << 26
#: Systems per side of a tile: registers hold the sums of a tile's pairs.
BLOCK = 32
_OWN, _UNKNOWN_TIME, _NOT_REACHED = 1, 2, 4


@dataclass(frozen=True)
class Tables:
    """Times of every run to every level of its instance, on the device.

    Attributes:
        low, high: int32 or int64 ``[instance, level, run]``, earliest and latest time at which the level can be reached;
            the same tensor where all times are known and no limit stopped a run.
        flags: int32 of the same shape: 1, the run attains this level; 2, at an unknown time; 4, it is not reached.
        widths: int32 ``[instance, level]``, millionths.
        here, solved: int32 ``[instance, run]``.
        trials: runs per system.
    """

    low: Tensor
    high: Tensor
    flags: Tensor
    widths: Tensor
    here: Tensor
    solved: Tensor
    trials: int

    @property
    def general(self) -> bool:
        """Whether there are unknown times or truncated runs."""
        return self.high is not self.low


def build(curves: Curves) -> Tables:
    """The tables of some instances."""
    instances, systems, trials, _ = curves.shape
    levels = union_levels(curves)
    ticks = time_to_level(curves, levels)
    depth = levels.shape[1]
    wanted = levels[:, None, None, :].expand_as(ticks)
    place = torch.searchsorted(curves.levels.contiguous(), wanted.contiguous())
    own = torch.nn.functional.pad(curves.levels, (0, 1), value=LEVEL_PAD).gather(-1, place) == wanted
    own &= wanted != LEVEL_PAD
    unknown, reached = ticks == UNKNOWN, ticks != NEVER
    flags = own * _OWN + unknown * _UNKNOWN_TIME + ~reached * _NOT_REACHED

    # Counted from the first time of each instance, most times fit into 32 bits; no sign depends on where they start.
    known = reached & ~unknown
    start = (
        torch.where(known, ticks, NEVER).reshape(instances, -1).amin(-1)
        if ticks.numel()
        else ticks.new_zeros(instances)
    )
    start = torch.where(start == NEVER, 0, start)[:, None, None, None]
    time = torch.where(known, ticks - start, 0)
    largest = int(time.max()) if time.numel() else 0
    kind, never = (torch.int32, 2**31 - 1) if largest < 2**30 - 1 else (torch.int64, NEVER)
    low = torch.where(known, time, torch.where(unknown, -1, never))
    high = low
    if bool(unknown.any()) or curves.bound is not None:
        high = torch.where(known, time, torch.where(unknown, never - 1, never))
        if curves.bound is not None:
            # Later than every real time is as good as any later one, and fits.
            bound = (curves.bound.unsqueeze(-1) - start).clamp(0, largest + 1)
            bound = torch.where(curves.bound.unsqueeze(-1) == NEVER, never, bound)
            low = torch.where(reached, low, bound)

    def by_level(table: Tensor, dtype: torch.dtype) -> Tensor:
        return table.permute(0, 3, 1, 2).reshape(instances, depth, systems * trials).to(dtype).contiguous()

    low_table = by_level(low, kind)
    below = torch.nn.functional.pad(levels[:, :-1], (1, 0)) if depth else levels
    solved = ((curves.levels >= MILLION) & (curves.levels != LEVEL_PAD)).any(-1)
    return Tables(
        low=low_table,
        high=low_table if high is low else by_level(high, kind),
        flags=by_level(flags, torch.int32),
        widths=torch.where(levels == LEVEL_PAD, 0, levels - below).to(torch.int32).contiguous(),
        here=curves.present.reshape(instances, -1).to(torch.int32).contiguous(),
        solved=solved.reshape(instances, -1).to(torch.int32).contiguous(),
        trials=trials,
    )


def warps(trials: int) -> int:
    """Warps per program; sums over trials take twice the registers."""
    return 4 if trials == 1 else 8


def compare_tables(
    tables: Tables, pairs: Int[Tensor, "pair 2"], systems: int, *, only_rpp: bool = False
) -> list[Tensor]:
    """Compare pairs on tables in one launch.

    Returns:
        for one trial ``[instance, pair]`` tensors lr int8, rpp int32, ipp int32; for several the eight fields of
        :class:`PairSums`. With ``only_rpp`` only rpp is worked out.
    """
    from torchpref.kernels.cuda.kernel import launch

    device = tables.low.device
    instances, depth, _ = tables.low.shape
    shape = (instances, len(pairs))
    slots = torch.full((systems, systems), -1, dtype=torch.int32, device=device)
    slots[pairs[:, 0], pairs[:, 1]] = torch.arange(len(pairs), dtype=torch.int32, device=device)
    tiles = torch.unique(pairs // BLOCK, dim=0).to(torch.int32).contiguous()
    if tables.trials == 1:
        results = [torch.zeros(shape, dtype=kind, device=device) for kind in (torch.int8, torch.int32, torch.int32)]
        outputs = results + [results[1]] * 5
    else:
        wide = (torch.int32, torch.int64, torch.int64, *[torch.int32] * 5)
        outputs = results = [torch.zeros(shape, dtype=kind, device=device) for kind in wide]
    arguments = (
        tables.low,
        tables.high,
        tables.flags,
        tables.widths,
        tables.here,
        tables.solved,
        slots,
        tiles,
        *outputs,
        len(tiles),
        depth,
        systems,
        len(pairs),
    )
    options = {
        "TRIALS": tables.trials,
        "GENERAL": tables.general,
        "ALL": not only_rpp,
        "BLOCK": BLOCK,
        "num_warps": warps(tables.trials),
    }
    launch(arguments, instances * len(tiles), options)
    return results


def compare_pairs(curves: Curves, pairs: Int[Tensor, "pair 2"], *, max_entries: int = MAX_ENTRIES) -> PairSums:
    """LR, RPP and IPP of all pairs; see :func:`torchpref.kernels.compare_pairs`.

    Args:
        curves: the runs' jumps.
        pairs: int64 ``[pair, 2]``; if a pair stands there twice, the reference kernel does the work.
        max_entries: bound on (instances × levels × runs) handled at a time, but for a single instance; never changes a
            result.
    """
    instances, systems, trials, _ = curves.shape
    device = curves.levels.device
    pairs = pairs.to(device)
    if not instances or not len(pairs) or not trials:
        return PairSums.zeros(instances, len(pairs), device)
    if len(torch.unique(pairs, dim=0)) < len(pairs):
        return reference.compare_pairs(curves, pairs)
    parts = []
    for rows in _blocks(_depths(curves, max_entries), systems * trials, max_entries):
        some = curves.instances(rows)
        tables = build(some)
        results = compare_tables(tables, pairs, systems)
        if trials == 1:
            present, solved = some.present[..., 0], tables.solved.bool()
            parts.append(PairSums.single(results[0], results[1], results[2], pairs, present, solved))
        else:
            parts.append(PairSums(*results))
    return parts[0] if len(parts) == 1 else PairSums.cat(parts, dim=0)


def _depths(curves: Curves, max_entries: int) -> list[int]:
    """Different levels of each instance."""
    instances, runs = curves.shape[0], curves.shape[1] * curves.shape[2]
    block = max(1, max_entries // max(1, runs * curves.shape[3]))
    depths: list[int] = []
    for start in range(0, instances, block):
        levels = curves.levels[start : start + block].reshape(min(block, instances - start), -1)
        ordered = torch.nn.functional.pad(levels.sort(-1).values, (0, 1), value=LEVEL_PAD)
        depths += (
            (ordered[:, 1:] != ordered[:, :-1]).sum(-1).tolist()
        )  # each level ends where the next or the padding begins
    return depths


def _blocks(depths: Sequence[int], runs: int, max_entries: int) -> Iterator[slice]:
    """Consecutive instances whose tables, as deep as the deepest of them, stay within the bound; one alone may exceed it."""
    start, deepest = 0, 0
    for place, depth in enumerate(depths):
        deeper = max(deepest, depth)
        if place > start and (place + 1 - start) * deeper * runs > max_entries:
            yield slice(start, place)
            start, deeper = place, depth
        deepest = deeper
    yield slice(start, len(depths))
