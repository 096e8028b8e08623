"""Δ of all pairs of rollouts of a group, or of rollouts against a pool, in fixed shapes.

The kernels of :mod:`torchpref.kernels` walk the levels of a whole instance and size their grid by what they find, which
means waiting for the device. Here cost and memory grow with rollouts² × steps, whatever the levels are, and no value is
ever asked for. Two forms:

*By step*, where the clock counts steps. At step t a rollout takes the levels from f(t-1) to f(t), and is sooner than a
rival at those above f'(t). RPP is what one takes first less what the other takes first, LR who took the highest of those.

*By level*, for IPP and for other clocks. Every rollout is walked along its own levels, and the rival's curve is looked up
by a binary search. A level that only one of the two attains is met once, on that one's walk; a level that both attain is
met on both. So a level's gap counts double on the walk of a rollout that has it to itself, and the sum of both walks is
halved: exact, in integers, and antisymmetric.
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from torchpref.kernels import choice
from torchpref.kernels.reference import interval_sign, level_sign
from torchpref.rl.rollouts import Rollouts
from torchpref.runs.curves import LEVEL_PAD
from torchpref.runs.measures import TIE_TOLERANCE
from torchpref.runs.units import MILLION, NEVER

#: Levels looked up at a time, on the CPU and on other devices: bounds the memory, never changes a result.
MAX_CELLS = 1 << 20
MAX_CELLS_ON_DEVICE = 1 << 26


def compare_rollouts(
    rows: Rollouts, columns: Rollouts | None, measure: str, max_cells: int | None = None
) -> Int[Tensor, "batch row column"]:
    """Δ(row, column) of LR (units of 1), RPP or IPP (millionths); 0 where one of the two is not valid.

    Args:
        rows: the rollouts to judge.
        columns: what they are held against; None for the rollouts of the same group.
        measure: ``lr``, ``rpp`` or ``ipp``.
        max_cells: torch operations only, with this bound on (groups × rows × columns × steps) looked up at a time.
    """
    batch, n_rows, steps = rows.reached.shape
    _, n_columns, column_steps = rows.reached.shape if columns is None else columns.reached.shape
    by_step = measure != "ipp" and rows.ticks is None and (columns is None or columns.ticks is None)
    if max_cells is None:
        pairs = batch * n_rows * n_columns
        if choice.groups_compiled(rows.reached.device, pairs, max(steps, column_steps), by_step):
            return _compiled(rows, columns, measure)
        max_cells = MAX_CELLS if rows.reached.device.type == "cpu" else MAX_CELLS_ON_DEVICE
    block = max(1, max_cells // max(1, n_rows * n_columns * max(steps, column_steps)))
    if batch <= block:
        return _block(rows, columns, measure, by_step)
    parts = []
    for start in range(0, batch, block):
        chosen = slice(start, start + block)
        parts.append(_block(rows.rows(chosen), None if columns is None else columns.rows(chosen), measure, by_step))
    return torch.cat(parts)


def _compiled(rows: Rollouts, columns: Rollouts | None, measure: str) -> Int[Tensor, "batch row column"]:
    from torchpref.kernels.cpu.groups import compare_groups

    def parts(runs: Rollouts) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor]:
        levels, ticks = (runs.reached, None) if runs.ticks is None else runs.jumps()
        return levels, ticks, runs.bound, runs.valid

    return compare_groups(*parts(rows), measure, None if columns is None else parts(columns))


def _block(rows: Rollouts, columns: Rollouts | None, measure: str, by_step: bool) -> Int[Tensor, "batch row column"]:
    across = rows if columns is None else columns
    delta = _by_step(rows, columns, measure) if by_step else _by_level(rows, columns, measure)
    if measure != "lr":
        delta = torch.where(delta.abs() <= TIE_TOLERANCE, 0, delta)
    both = rows.valid.unsqueeze(-1) & across.valid.unsqueeze(-2)
    return torch.where(both, delta, 0)


def _by_step(rows: Rollouts, columns: Rollouts | None, measure: str) -> Int[Tensor, "batch row column"]:
    steps = max(rows.reached.shape[-1], 0 if columns is None else columns.reached.shape[-1])
    one = _Steps(rows, steps)
    two = one if columns is None else _Steps(columns, steps)
    forth = one.first(two, measure)
    back = (forth if columns is None else two.first(one, measure)).mT
    return torch.sign(forth - back).long() if measure == "lr" else forth - back


class _Steps:
    """Rollouts by step: what each has reached before and after every step, and what a rival must exceed to be sooner."""

    def __init__(self, runs: Rollouts, steps: int) -> None:
        missing = steps - runs.reached.shape[-1]
        after = runs.reached
        if missing and after.shape[-1]:
            after = torch.cat([after, after[..., -1:].expand(*after.shape[:-1], missing)], -1)
        elif missing:
            after = after.new_zeros((*after.shape[:-1], steps))
        self.after = after
        self.before = torch.nn.functional.pad(after[..., :-1], (1, 0)) if steps else after
        self.hurdle = after
        if runs.bound is not None:
            # What a rival takes after this rollout was stopped is not known to be sooner: nothing exceeds full return.
            tick = torch.arange(1, steps + 1, device=after.device)
            self.hurdle = torch.where(tick >= runs.bound.unsqueeze(-1), MILLION, after)

    def first(self, rivals: _Steps, measure: str) -> Int[Tensor, "batch mine rival"]:
        """How much of the return scale is taken sooner than each rival takes it; for LR the highest such level, or -1."""
        if not self.after.shape[-1]:
            return torch.zeros(
                (*self.after.shape[:2], rivals.after.shape[1]), dtype=torch.int64, device=self.after.device
            )
        after = self.after.unsqueeze(2)
        taken = after - torch.maximum(self.before.unsqueeze(2), rivals.hurdle.unsqueeze(1))
        if measure == "lr":
            return torch.where(taken > 0, after, -1).amax(-1)
        return taken.clamp(min=0).sum(-1)


def _by_level(rows: Rollouts, columns: Rollouts | None, measure: str) -> Int[Tensor, "batch row column"]:
    one = Levels(*rows.jumps(), rows.bound)
    two = one if columns is None else Levels(*columns.jumps(), columns.bound)
    forth = one.walk(two, measure)  # [batch, column, row], seen from the row
    back = forth if columns is None else two.walk(one, measure)  # [batch, row, column], seen from the column
    if measure == "lr":
        # The higher of the two levels that decide, with the sign in the last bit; the column's walk has it reversed.
        key = torch.maximum(forth.mT, torch.where(back >= 0, back ^ 1, -1))
        return torch.where(key >= 0, (key & 1) * 2 - 1, 0)
    return (forth.mT - back) // 2


class Levels:
    """Rollouts by level: levels and times with one entry before the first (0, reached at 0) and one behind the last."""

    def __init__(self, levels: Tensor, ticks: Tensor, bound: Tensor | None) -> None:
        self.own = levels.contiguous()
        self.levels = torch.nn.functional.pad(torch.nn.functional.pad(levels, (1, 0)), (0, 1), value=LEVEL_PAD)
        self.ticks = torch.nn.functional.pad(torch.nn.functional.pad(ticks, (1, 0)), (0, 1), value=NEVER)
        self.bound = bound

    def walk(self, rivals: Levels, measure: str) -> Int[Tensor, "batch rival mine"]:
        """Every rollout along its own levels, against every rival; signs are seen from the rollout.

        Gives the sum of gap × sign, gaps of levels that the rival does not have doubled; for LR twice the highest level
        that decides, plus 1 where the rollout is sooner there; -1 where none decides.
        """
        batch, mine, steps = self.own.shape
        others = rivals.own.shape[1]
        if not steps:
            nothing = -1 if measure == "lr" else 0
            return torch.full((batch, others, mine), nothing, dtype=torch.int64, device=self.own.device)
        place = self._places(rivals)

        def theirs(tensor: Tensor, index: Tensor) -> Int[Tensor, "batch rival mine step"]:
            return tensor.gather(-1, index).view(batch, others, mine, steps)

        level, at = self.own.unsqueeze(1), self.ticks[..., 1:-1].unsqueeze(1)
        their_at = theirs(rivals.ticks, place + 1)
        bound = None if self.bound is None else self.bound[:, None, :, None]
        their_bound = None if rivals.bound is None else rivals.bound[:, :, None, None]
        sign = level_sign(at, their_at, bound, their_bound)
        real = level != LEVEL_PAD
        if measure == "lr":
            return torch.where(real & (sign != 0), level.long() * 2 + (sign > 0), -1).amax(-1)

        before, their_before = self.levels[..., :-2].unsqueeze(1), theirs(rivals.levels, place)
        gap = torch.where(real, level - torch.maximum(before, their_before), 0)
        if measure == "ipp":
            # When each had reached the pair's level before this one: a curve is flat inside its own intervals.
            since = torch.where(before >= their_before, self.ticks[..., :-2].unsqueeze(1), at)
            their_since = torch.where(their_before >= before, theirs(rivals.ticks, place), their_at)
            sign = interval_sign(sign, at, their_at, since, their_since)
        alone = theirs(rivals.levels, place + 1) != level
        return (gap.long() * sign * (1 + alone.long())).sum(-1)

    def _places(self, rivals: Levels) -> Int[Tensor, "batch rival place"]:
        """For every own level of every rollout (mine × step, in one axis), the rival's first level that is not below it."""
        batch, mine, steps = self.own.shape
        others = rivals.own.shape[1]
        wanted = self.own.reshape(batch, 1, mine * steps).expand(batch, others, mine * steps).contiguous()
        return torch.searchsorted(rivals.own, wanted)

    def by_level(self) -> Int[Tensor, "batch mine rival place"]:
        """RPP of every rollout against every other of its group, level by level of the rollout's own.

        At place m stands gap × sign over the levels above the rollout's level m - 1 and up to its level m; at the last place,
        one more than there are levels, over all levels above its highest.
        """
        batch, mine, steps = self.own.shape
        place = self._places(self)
        level, at = self.own.unsqueeze(1), self.ticks[..., 1:-1].unsqueeze(1)

        def theirs(tensor: Tensor, index: Tensor) -> Int[Tensor, "batch rival mine step"]:
            return tensor.gather(-1, index).view(batch, mine, mine, steps)

        bound = None if self.bound is None else self.bound[:, None, :, None]
        their_bound = None if self.bound is None else self.bound[:, :, None, None]
        sign = level_sign(at, theirs(self.ticks, place + 1), bound, their_bound)
        below = torch.maximum(self.levels[..., :-2].unsqueeze(1), theirs(self.levels, place))
        part = torch.where(level != LEVEL_PAD, (level - below).long() * sign, 0)
        # A level that only the rival has lies between two of the rollout's own; seen from the rival the sign is reversed.
        alone = torch.where(theirs(self.levels, place + 1) != level, -part, 0)
        own = torch.nn.functional.pad(part.transpose(1, 2), (0, 1))
        return own.scatter_add(-1, place.view(batch, mine, mine, steps), alone)
