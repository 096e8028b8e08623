"""Credit along the run: a step gets the parts of the preference that its own future decides.

RPP is a sum over levels. *To-go*, a step gets the parts of all levels that its rollout had not reached before it; which
parts these are depends on the step's past alone, so that the policy gradient stays unbiased, and what was decided earlier
adds no noise. Summed over a group the part of every level is zero: nothing needs to be taken off.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchpref.rl.pairwise import MAX_CELLS, MAX_CELLS_ON_DEVICE, Levels
from torchpref.rl.rollouts import Rollouts
from torchpref.runs.curves import LEVEL_PAD
from torchpref.runs.measures import TIE_TOLERANCE
from torchpref.runs.units import MILLION, NEVER


def preference_to_go(runs: Rollouts, max_cells: int | None = None) -> Float[Tensor, "batch rollout step"]:
    """Mean RPP against the others of the group, of the levels above what was reached before each step; float64.

    At the first step this is RPP itself. Of each pair and step a remainder within the tie tolerance is a tie, as it is for
    the whole. 0 for rollouts that are not valid, also behind a rollout's last step as far as its levels go.
    """
    batch, count, steps = runs.reached.shape
    if not batch * count * steps:
        return torch.zeros(runs.reached.shape, dtype=torch.float64, device=runs.reached.device)
    looking = runs.reached.device.type == "cpu" and not torch.compiler.is_compiling()
    if max_cells is None:
        max_cells = MAX_CELLS if runs.reached.device.type == "cpu" else MAX_CELLS_ON_DEVICE
    block = max(1, max_cells // (count * count * (steps + 1)))
    parts = [_block(runs.rows(slice(start, start + block)), looking) for start in range(0, batch, block)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def reached_before(runs: Rollouts) -> Int[Tensor, "batch rollout step"]:
    """The highest return reached before each step, in millionths."""
    return torch.nn.functional.pad(runs.reached[..., :-1], (1, 0))


def _block(runs: Rollouts, looking: bool) -> Float[Tensor, "batch rollout step"]:
    levels, ticks = runs.jumps(merge=False)
    rises = runs.reached > reached_before(runs)
    number = rises.long().cumsum(-1)
    # There are fewer levels than steps, mostly by far. On a device counting them would mean waiting.
    width = max(1, int(number[..., -1].max())) if looking else levels.shape[-1]
    place = torch.where(rises, number - 1, width)

    def packed(values: Tensor, behind: int) -> Tensor:
        full = torch.full((*values.shape[:-1], width + 1), behind, dtype=values.dtype, device=values.device)
        return full.scatter(-1, place, values)[..., :width]

    part = Levels(packed(levels, LEVEL_PAD), packed(ticks, NEVER), runs.bound).by_level()
    rest = part.flip(-1).cumsum(-1).flip(-1)
    both = (runs.valid.unsqueeze(-1) & runs.valid.unsqueeze(-2)).unsqueeze(-1)
    rest = torch.where(both & (rest.abs() > TIE_TOLERANCE), rest, 0)
    rivals = (runs.valid.sum(-1, keepdim=True) - 1).clamp(min=1)
    mean = rest.sum(2).double() / (rivals * MILLION).double().unsqueeze(-1)
    return mean.gather(-1, number - rises.long())


__all__ = ["preference_to_go", "reached_before"]
