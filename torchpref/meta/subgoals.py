"""Changes to the annotation of partial return: which levels there are, and how high they stand.

An annotation gives every subgoal of an instance a weight, the height of its level above the one before. Success, the return
of 1, is never touched.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchpref.runs.trajectories import Trajectories
from torchpref.runs.units import MILLION

Change = Literal["drop", "merge", "jitter"]
#: All changes.
CHANGES: tuple[Change, ...] = ("drop", "merge", "jitter")
_PAD = 2 * MILLION


def annotated_levels(runs: Trajectories) -> Int[Tensor, "instance level"]:
    """Every level that a run of an instance attains, and success, ascending in millionths; padded with 2,000,000."""
    flat = torch.where(runs.present.unsqueeze(-1), runs.returns, 0).reshape(len(runs.instances), -1)
    flat = torch.nn.functional.pad(flat, (0, 1), value=MILLION).sort(1).values
    fresh = torch.ones_like(flat, dtype=torch.bool)
    fresh[:, 1:] = flat[:, 1:] != flat[:, :-1]
    fresh &= flat > 0
    width = int(fresh.sum(1).max()) if len(flat) else 0
    first = torch.argsort(~fresh, dim=1, stable=True)[:, :width]
    real = torch.arange(width) < fresh.sum(1, keepdim=True)
    return torch.where(real, flat.gather(1, first), _PAD)


def has_subgoals(levels: Int[Tensor, "instance level"]) -> bool:
    """Whether any instance has a level between 0 and success."""
    return bool((levels < MILLION).any())


def change_subgoals(
    runs: Trajectories, change: Change, seed: int, levels: Int[Tensor, "instance level"] | None = None
) -> Trajectories:
    """The runs as they would be under another annotation.

    Args:
        runs: the runs.
        change: ``drop``: one intermediate level of every instance, drawn at random, is gone, the others share its weight in
            proportion; ``merge``: it gives its weight to the next higher one; ``jitter``: all weights are multiplied by
            random factors between 1/2 and 2, log-uniform, and made to add up to 1.
        seed: whole number.
        levels: of :func:`annotated_levels`, if they are known.
    """
    levels = annotated_levels(runs) if levels is None else levels
    moved = torch.from_numpy(_moved(levels.numpy().astype(np.int64), change, np.random.default_rng([seed, 9])))
    table = torch.nn.functional.pad(moved, (1, 0)).to(torch.int32)
    shape = runs.returns.shape
    flat = runs.returns.reshape(shape[0], -1).contiguous()
    place = torch.searchsorted(levels.to(torch.int32).contiguous(), flat, right=True)
    returns = table.gather(1, place).reshape(shape)
    return Trajectories.from_integers(
        returns=returns,
        lengths=runs.lengths,
        present=runs.present,
        times=runs.times,
        systems=runs.systems,
        instances=runs.instances,
        benchmarks=runs.benchmarks,
        truncated=runs.truncated,
        resolution=runs.resolution,
        reference_times=runs.reference_times,
        best_times=runs.best_times,
        findings=runs.findings,
        default_clock=runs.default_clock,
        zero_time=runs.zero_time,
        families=runs.families,
    )


def _moved(levels: np.ndarray, change: Change, rng: np.random.Generator) -> Int[np.ndarray, "instance level"]:
    """Where each level goes; a level that is gone goes to the one before it."""
    real = levels <= MILLION
    below = np.pad(levels, ((0, 0), (1, 0)))[:, :-1]
    weight = np.where(real, levels - below, 0).astype(np.float64)
    if change == "jitter":
        weight *= 2.0 ** rng.uniform(-1, 1, weight.shape)
    else:
        intermediate = levels < MILLION
        count = intermediate.sum(1)
        rows = np.flatnonzero(count)
        chosen = np.minimum((rng.random(len(levels)) * count).astype(np.int64), np.maximum(count - 1, 0))[rows]
        if change == "merge":
            weight[rows, chosen + 1] += weight[rows, chosen]
        weight[rows, chosen] = 0.0
    heights: Float[np.ndarray, "instance level"] = weight.cumsum(1)
    heights /= np.maximum(heights[:, -1:], 1e-300)
    moved = np.rint(heights * MILLION).astype(np.int64)
    # Success stays success, and nothing else becomes it.
    return np.where(levels == MILLION, MILLION, np.minimum(moved, MILLION - 1))
