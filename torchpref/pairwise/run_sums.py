"""Every run against every system: sums of Δ over the runs of a system, from which any relabelling of runs follows.

Δ is antisymmetric, so for two systems whose K runs of an instance are pooled, the sum of Δ between any subset and the rest
is the sum over the subset of each run's total against all K: comparisons inside the subset cancel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from torchpref.kernels import compare_pairs
from torchpref.pairwise.preferences import all_pairs, run_scores
from torchpref.runs.curves import Curves, curves
from torchpref.runs.measures import CURVE_MEASURES, describe

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences

_CELLS = 1 << 21


def run_presence(prefs: Preferences) -> Bool[Tensor, "instance system trial"]:
    """The runs that count: for SPL those with a score."""
    if prefs.measure == "spl":
        return run_scores(prefs.runs, "spl", prefs.clock)[1].cpu()
    return prefs.runs.present.cpu()


@dataclass(frozen=True)
class RunSums:
    """The runs of one instance.

    Attributes:
        instance: its position.
        system: int64 ``[run]``, the system of each run, in order.
        matrix: float64 ``[run, run]``, Δ of every two runs in parts of 1/unit (whole numbers); antisymmetric.
        against: float64 ``[run, system]``, sum of Δ of a run against all runs of a system.
    """

    instance: int
    system: Int[Tensor, " run"]
    matrix: Float[Tensor, "run run"]
    against: Float[Tensor, "run system"]


def run_sums(prefs: Preferences, instances: Int[Tensor, " chosen"] | None = None) -> Iterator[RunSums]:
    """The runs of each chosen instance (all by default), in order.

    Instances are taken in blocks of which the largest number of runs decides the size.
    """
    present = run_presence(prefs)
    count, systems, trials = present.shape
    flat = present.reshape(count, systems * trials)
    chosen = torch.arange(count) if instances is None else instances
    scores = jumps = None
    if prefs.measure in CURVE_MEASURES:
        jumps = curves(prefs.runs.to("cpu"), prefs.clock).on_grid(prefs.grid)
    else:
        scores = run_scores(prefs.runs.to("cpu"), prefs.measure, prefs.clock)[0].reshape(count, -1)
    runs = flat.sum(1)
    start = 0
    while start < len(chosen):
        stop, widest = start, 1
        while stop < len(chosen):
            wider = max(widest, int(runs[chosen[stop]]))
            if stop > start and (stop + 1 - start) * wider * wider > _CELLS:
                break
            stop, widest = stop + 1, wider
        rows = chosen[start:stop]
        # Runs that are there first, in their order; sort is stable.
        place = torch.argsort((~flat[rows]).to(torch.int8), dim=1, stable=True)[:, :widest]
        here = flat[rows].gather(1, place)
        if scores is not None:
            matrix = _score_differences(scores[rows].gather(1, place), describe(prefs.measure).tolerance)
        else:
            assert jumps is not None
            matrix = _curve_differences(jumps, rows, place, here, prefs.measure)
        for row, instance in enumerate(rows.tolist()):
            size = int(runs[instance])
            system = place[row, :size] // max(1, trials)
            block = matrix[row, :size, :size].double()
            against = block @ torch.nn.functional.one_hot(system, systems).double()
            yield RunSums(instance, system, block, against)
        start = stop


def _score_differences(scores: Int[Tensor, "instance run"], tolerance: int) -> Int[Tensor, "instance run run"]:
    difference = scores[:, :, None] - scores[:, None, :]
    return torch.where(difference.abs() <= tolerance, 0, difference)


def _curve_differences(
    jumps: Curves,
    rows: Int[Tensor, " instance"],
    place: Int[Tensor, "instance run"],
    here: Bool[Tensor, "instance run"],
    measure: str,
) -> Int[Tensor, "instance run run"]:
    """Every run as a system of its own, of one trial."""

    def pack(tensor: Tensor) -> Tensor:
        flat = tensor[rows].flatten(1, 2)
        index = place.reshape(*place.shape, *[1] * (flat.dim() - 2)).expand(-1, -1, *flat.shape[2:])
        return flat.gather(1, index).unsqueeze(2)

    packed = Curves(
        levels=pack(jumps.levels),
        ticks=pack(jumps.ticks),
        bound=None if jumps.bound is None else pack(jumps.bound),
        present=here.unsqueeze(2),
    )
    pairs = all_pairs(place.shape[1])
    sums = getattr(compare_pairs(packed, pairs), measure)
    matrix = torch.zeros((len(rows), place.shape[1], place.shape[1]), dtype=torch.int64)
    matrix[:, pairs[:, 0], pairs[:, 1]] = sums
    matrix[:, pairs[:, 1], pairs[:, 0]] = -sums
    return matrix
