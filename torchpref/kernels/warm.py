"""Compile the CPU's kernels at a time of one's own choosing."""

from __future__ import annotations

import torch

from torchpref.kernels.choice import COMPILE_AFTER, LEDGER
from torchpref.runs.curves import LEVEL_PAD, Curves
from torchpref.runs.units import MILLION, NEVER, UNKNOWN


def warm_up() -> None:
    """Compile the CPU's kernels now, a matter of seconds, rather than in the middle of the work.

    Afterwards this process uses them for work of any size. What was compiled is kept on disk, so that the next process
    takes some tenths of a second. Does nothing where numba is not installed, but warn.
    """
    if not LEDGER.has_numba():
        return
    from torchpref.kernels.cpu import choose as cpu
    from torchpref.kernels.cpu import groups as cpu_groups

    pairs = torch.tensor([[0, 1]])
    for trials in (1, 2):
        for level in (MILLION, MILLION - 1):
            for tick in (1, 1 << 20, 1 << 40):
                for first in (tick, UNKNOWN):
                    curves = _two_runs(level, first, 2 * tick + 1, trials)
                    cpu.compare_pairs(curves, pairs, "grid")
                    cpu.compare_pairs(curves, pairs, "merge")
    returns = torch.ones((1, 2, 1))
    reached = cpu_groups.reach(returns, torch.ones((1, 2), dtype=torch.int64))
    cpu_groups.reach(returns.double(), torch.ones((1, 2), dtype=torch.int64))
    valid = torch.ones((1, 2), dtype=torch.bool)
    bound = torch.full((1, 2), NEVER)
    for measure in ("rpp", "ipp"):
        cpu_groups.compare_groups(reached, None, None, valid, measure)
        cpu_groups.compare_groups(reached, None, bound, valid, measure)
    for kind in ("pairs", "pairs of trials", "rollouts by step", "rollouts by level"):
        LEDGER.spent[kind] = COMPILE_AFTER


def _two_runs(level: int, first: int, last: int, trials: int) -> Curves:
    """Two systems on one instance, which need tables of a certain kind."""
    levels = torch.tensor([1, level], dtype=torch.int32).expand(1, 2, trials, 2).contiguous()
    ticks = torch.tensor([first, last]).expand(1, 2, trials, 2).contiguous()
    levels[0, 1, 0, 1] = LEVEL_PAD
    ticks[0, 1, 0, 1] = NEVER
    return Curves(levels, ticks, None, torch.ones((1, 2, trials), dtype=torch.bool))
