"""Compile the CPU's kernels at a time of one's own choosing."""

from __future__ import annotations

from importlib import import_module

import torch

from torchpref.kernels.choice import COMPILE_AFTER, LEDGER
from torchpref.runs.curves import LEVEL_PAD, Curves
from torchpref.runs.units import MILLION, NEVER, UNKNOWN

#: Rooms above this one with compiled code of their own, by name: nothing here imports them. Each has a ``warm_up``.
ABOVE = ("torchpref.stats.bradley_terry.batch", "torchpref.meta.evaluate")


def warm_up() -> None:
    """Compile everything that is compiled now, a matter of half a minute, rather than in the middle of the work.

    These are the kernels of the CPU, for instances and for means, the fits of many Bradley–Terry problems and the loops of
    meta-evaluation. Afterwards this process uses them for work of any size. What was compiled is kept on disk, so that the
    next process takes some tenths of a second. Does nothing where numba is not installed, but warn.
    """
    if not LEDGER.has_numba():
        return
    from torchpref.kernels.cpu import choose as cpu
    from torchpref.kernels.cpu import groups as cpu_groups
    from torchpref.kernels.cpu import means as cpu_means

    pairs = torch.tensor([[0, 1]])
    for trials in (1, 2):
        for level in (1, MILLION // 2):
            for tick in (1, 1 << 20, 1 << 40):
                for first in (tick, UNKNOWN):
                    curves = _two_runs(level, first, 2 * tick + 1, trials)
                    for form in ("grid", "merge"):
                        cpu.compare_pairs(curves, pairs, form)
                        cpu_means.mean_pairs(curves, pairs, torch.ones(1), 1.0, form)
    returns = torch.ones((1, 2, 1))
    reached = cpu_groups.reach(returns, torch.ones((1, 2), dtype=torch.int64))
    cpu_groups.reach(returns.double(), torch.ones((1, 2), dtype=torch.int64))
    valid = torch.ones((1, 2), dtype=torch.bool)
    bound = torch.full((1, 2), NEVER)
    for measure in ("rpp", "ipp"):
        cpu_groups.compare_groups(reached, None, None, valid, measure)
        cpu_groups.compare_groups(reached, None, bound, valid, measure)
    for module in ABOVE:
        import_module(module).warm_up()
    for kind in ("pairs", "pairs of trials", "rollouts by step", "rollouts by level"):
        LEDGER.spent[kind] = COMPILE_AFTER


def _two_runs(level: int, first: int, last: int, trials: int) -> Curves:
    """Two systems on one instance, which need tables of a certain kind."""
    levels = torch.tensor([level, MILLION], dtype=torch.int32).expand(1, 2, trials, 2).contiguous()
    ticks = torch.tensor([first, last]).expand(1, 2, trials, 2).contiguous()
    ticks[0, 1, 0, 0] = 1  # so that no unit of time divides them all, and wide ones stay wide
    levels[0, 1, 0, 1] = LEVEL_PAD
    ticks[0, 1, 0, 1] = NEVER
    return Curves(levels, ticks, None, torch.ones((1, 2, trials), dtype=torch.bool))
