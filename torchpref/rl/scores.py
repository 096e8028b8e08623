"""The measures that are one number per rollout: SR, PR and SPL, and SPL's reference time; nothing waits for the device."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from torchpref.errors import DataError
from torchpref.rl.rollouts import Inputs, Rollouts
from torchpref.runs.curves import LEVEL_PAD
from torchpref.runs.measures import describe
from torchpref.runs.units import MILLION, NEVER, UNKNOWN


def rollout_scores(runs: Rollouts, measure: str, reference: Tensor | None) -> tuple[Tensor, Tensor]:
    """SR, PR or SPL of every rollout in parts of the measure's unit, and which rollouts have one."""
    if measure == "sr":
        return runs.solved.long(), runs.valid
    if measure == "pr":
        return runs.final.long(), runs.valid
    assert reference is not None
    unit = describe("spl").unit
    when = _time_of_success(runs)
    limit = reference.unsqueeze(-1)
    reached = (when != NEVER) & (when != UNKNOWN)
    late = reached & (limit != UNKNOWN) & (when > limit)
    share = torch.round(limit.double() / when.clamp(min=1).double() * unit).long()
    return torch.where(late, share, torch.where(reached, unit, 0)), runs.valid & (when != UNKNOWN)


def _time_of_success(runs: Rollouts) -> Int[Tensor, "batch rollout"]:
    """The tick at which full return was reached; ``NEVER`` or ``UNKNOWN``."""
    levels, ticks = runs.jumps()
    if not levels.shape[-1]:
        return torch.full(runs.valid.shape, NEVER, device=levels.device)
    full = (levels >= MILLION) & (levels != LEVEL_PAD)
    first = full.to(torch.int8).argmax(-1, keepdim=True)
    return torch.where(runs.solved, ticks.gather(-1, first).squeeze(-1), NEVER)


def reference_ticks(
    runs: Rollouts, inputs: Inputs, measure: str, reference_time: Tensor | None
) -> Int[Tensor, " batch"] | None:
    """SPL's L per group in ticks: the given one where it is positive, else the least positive time of success."""
    if measure != "spl":
        return None
    when = _time_of_success(runs)
    best = torch.where(runs.valid & (when > 0), when, NEVER)
    best = best.amin(-1) if best.shape[-1] else torch.full(best.shape[:1], NEVER, device=best.device)
    best = torch.where(best == NEVER, UNKNOWN, best)
    if reference_time is None:
        return best
    given = torch.as_tensor(reference_time, device=best.device)
    if tuple(given.shape) != tuple(best.shape):
        raise DataError(f"reference_time has shape {list(given.shape)}, wanted one per batch entry: {list(best.shape)}")
    scaled = given.double() * inputs.per_unit
    ticks = torch.round(torch.nan_to_num(scaled)).long()
    return torch.where(ticks > 0, ticks, best)


__all__ = ["reference_ticks", "rollout_scores"]
