"""The reference kernel: torch operations only, on any device.

Levels are walked upwards on the union grid of each instance, with all pairs of an instance side by side. At each level
every pair carries the level before it on the pair's *own* grid, which IPP's intervals need: on the union grid an
interval in which neither curve moves would be cut into pieces that tie.

Work is done in blocks of instances and pairs, so that memory stays bounded; the block size never changes a result.
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from torchpref.kernels.pair_sums import PairSums
from torchpref.runs.curves import LEVEL_PAD, Curves, time_to_level, union_levels
from torchpref.runs.measures import TIE_TOLERANCE
from torchpref.runs.units import MILLION, NEVER, UNKNOWN

#: Trial pairs handled at a time.
MAX_CELLS = 1 << 21


def compare_pairs(curves: Curves, pairs: Int[Tensor, "pair 2"], *, max_cells: int = MAX_CELLS) -> PairSums:
    """LR, RPP and IPP of all pairs; see :func:`torchpref.kernels.compare_pairs`.

    Args:
        curves: the runs' jumps on one clock.
        pairs: int64 ``[pair, 2]``, the two systems of each pair.
        max_cells: bound on (instances × pairs × trials²) handled at a time.
    """
    instances, _, trials, _ = curves.shape
    device = curves.levels.device
    pairs = pairs.to(device)
    n_pairs = len(pairs)
    if not instances or not n_pairs or not trials:
        return PairSums.zeros(instances, n_pairs, device)
    pair_block = max(1, min(n_pairs, max_cells // (trials * trials)))
    instance_block = max(1, max_cells // (trials * trials * pair_block))
    rows = []
    for start in range(0, instances, instance_block):
        block = _Block(curves.instances(slice(start, start + instance_block)))
        parts = [block.compare(pairs[first : first + pair_block]) for first in range(0, n_pairs, pair_block)]
        rows.append(parts[0] if len(parts) == 1 else PairSums.cat(parts, dim=1))
    return rows[0] if len(rows) == 1 else PairSums.cat(rows, dim=0)


class _Block:
    """Some instances on their union grid, levels first so that one level of all runs is one contiguous piece."""

    def __init__(self, curves: Curves) -> None:
        levels = union_levels(curves)
        ticks = time_to_level(curves, levels)
        self.levels = levels.long().t().contiguous()  # [level, instance]
        self.ticks = ticks.permute(3, 0, 1, 2).contiguous()  # [level, instance, system, trial]
        position = torch.searchsorted(
            curves.levels.contiguous(), levels[:, None, None, :].expand_as(ticks).contiguous()
        )
        own = torch.nn.functional.pad(curves.levels, (0, 1), value=LEVEL_PAD).gather(-1, position)
        self.takes = ((own == levels[:, None, None, :]) & (own != LEVEL_PAD)).permute(3, 0, 1, 2).contiguous()
        self.bound = curves.bound
        self.present = curves.present
        # Success is the level 1, whether or not the instance's union grid has it.
        self.solved = ((curves.levels >= MILLION) & (curves.levels != LEVEL_PAD)).any(-1)

    def compare(self, pairs: Int[Tensor, "pair 2"]) -> PairSums:
        first, second = pairs[:, 0], pairs[:, 1]

        def sides(tensor: Tensor) -> tuple[Tensor, Tensor]:
            """[instance, system, trial] to [instance, pair, trial, 1] and [instance, pair, 1, trial]."""
            return tensor[:, first].unsqueeze(-1), tensor[:, second].unsqueeze(-2)

        here_a, here_b = sides(self.present)
        both = here_a & here_b
        solved_a, solved_b = sides(self.solved)
        bound_a, bound_b = (None, None) if self.bound is None else sides(self.bound)
        shape = both.shape
        device = both.device

        lr = torch.zeros(shape, dtype=torch.int64, device=device)
        rpp = torch.zeros_like(lr)
        ipp = torch.zeros_like(lr)
        below = torch.zeros_like(lr)  # the pair's level before this one
        since_a = torch.zeros_like(lr)  # and the two times at which it was reached
        since_b = torch.zeros_like(lr)
        for level, ticks, takes in zip(self.levels, self.ticks, self.takes, strict=True):
            at_a, at_b = sides(ticks)
            takes_a, takes_b = sides(takes)
            own = takes_a | takes_b
            sign = level_sign(at_a, at_b, bound_a, bound_b)
            gap = torch.where(own, level[:, None, None, None] - below, 0)
            lr = torch.where(own & (sign != 0), sign, lr)
            rpp += gap * sign
            ipp += gap * interval_sign(sign, at_a, at_b, since_a, since_b)
            below = torch.where(own, level[:, None, None, None], below)
            since_a = torch.where(own, at_a, since_a)
            since_b = torch.where(own, at_b, since_b)

        rpp = torch.where(rpp.abs() <= TIE_TOLERANCE, 0, rpp)
        ipp = torch.where(ipp.abs() <= TIE_TOLERANCE, 0, ipp)
        lr, rpp, ipp = (torch.where(both, value, 0) for value in (lr, rpp, ipp))

        def total(values: Tensor) -> Tensor:
            return values.sum((-2, -1))

        return PairSums(
            total(lr),
            total(rpp),
            total(ipp),
            total((lr == 0) & both),
            total((rpp == 0) & both),
            total((ipp == 0) & both),
            total(torch.where(solved_a ^ solved_b, lr, 0)),
            total(torch.where(solved_a & solved_b, lr, 0)),
        )


def level_sign(at_a: Tensor, at_b: Tensor, bound_a: Tensor | None, bound_b: Tensor | None) -> Tensor:
    """+1 where A reaches the level sooner, -1 where B does, 0 where neither is known to.

    Each run has an earliest and a latest time at which it can have reached the level: its tick; anything before ``NEVER``
    where the tick is unknown; from its bound to ``NEVER`` where it did not reach it. A is sooner if A's latest time lies
    before B's earliest.
    """
    latest_a = torch.where(at_a == UNKNOWN, NEVER - 1, at_a)
    latest_b = torch.where(at_b == UNKNOWN, NEVER - 1, at_b)
    earliest_a = at_a if bound_a is None else torch.where(at_a == NEVER, bound_a, at_a)
    earliest_b = at_b if bound_b is None else torch.where(at_b == NEVER, bound_b, at_b)
    return (latest_a < earliest_b).long() - (latest_b < earliest_a).long()


def interval_sign(sign: Tensor, at_a: Tensor, at_b: Tensor, since_a: Tensor, since_b: Tensor) -> Tensor:
    """The sign of IPP for the interval that ends at a level: who took less time for it.

    Where one of the runs did not get to the level, the sign of the level itself; where both did, the shorter time wins,
    and a time that is not known ties.
    """
    reached = (at_a != NEVER) & (at_b != NEVER)
    known = (at_a != UNKNOWN) & (at_b != UNKNOWN) & (since_a != UNKNOWN) & (since_b != UNKNOWN)
    shorter = torch.sign((at_b - since_b) - (at_a - since_a))
    return torch.where(reached, torch.where(known, shorter, 0), sign)
