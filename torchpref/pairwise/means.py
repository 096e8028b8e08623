"""Mean preferences without the instances: for data whose [instance, pair] would not fit into memory.

The numbers are those of :class:`torchpref.pairwise.preferences.Preferences`, to the bit; what needs single
instances (resampling, tests, one pair in depth) is not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchpref.kernels.mean_sums import MAX_CELLS, MeanSums, add_up, weight_scale
from torchpref.kernels.means import mean_pairs
from torchpref.pairwise.between import SPLIT_PARTS, BetweenPairs, all_pairs, pair_position
from torchpref.pairwise.preferences import Weights, compare_scores, instance_weights, run_scores
from torchpref.runs.curves import Grid, curves
from torchpref.runs.findings import Finding
from torchpref.runs.measures import CURVE_MEASURES, describe, resolve_measures
from torchpref.runs.trajectories import Trajectories

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False, repr=False)
class MeanPreferences(BetweenPairs):
    """Mean preferences of one measure between all pairs of systems.

    Attributes:
        measure: short name of the measure.
        systems: names, sorted.
        clock: the clock compared on; None for SR and PR.
        n_instances: how many instances there are.
        sums: sums over instances per pair; for LR the terms are LR itself and the three of its split.
        runs_per_system: int64 ``[system]``, on how many instances a system ran.
        findings: what was noticed when the data entered.
    """

    measure: str
    systems: tuple[str, ...]
    clock: str | None
    n_instances: int
    sums: MeanSums
    runs_per_system: Int[Tensor, " system"]
    findings: tuple[Finding, ...] = ()

    @property
    def pairs(self) -> Int[Tensor, "pair 2"]:
        """Positions in ``systems``, a < b."""
        return all_pairs(len(self.systems))

    def pair_means(self) -> Float[Tensor, " pair"]:
        """Δ̄ of every pair over its shared instances; NaN where it shares none."""
        return self.sums.means(0)

    def pair_weights(self) -> Float[Tensor, " pair"]:
        """Sum of the weights of the instances that each pair shares."""
        return self.sums.weight_sums()

    def tie_rate(self) -> float:
        """Share of tied trial pairs within an (instance, pair), averaged over instances and pairs; NaN without any."""
        return self.sums.tie_rate(0)

    @property
    def run_pairs(self) -> int:
        """How many pairs of runs were compared."""
        return int(self.sums.trial_pairs.sum())

    def pair_split(self) -> dict[str, Float[Tensor, " pair"]]:
        """The split per pair."""
        if self.measure != "lr":
            raise self._no_split()
        return {name: self.sums.means(term) for term, name in enumerate(SPLIT_PARTS, start=1)}

    def _counts(self) -> tuple[Int[Tensor, " pair"], Int[Tensor, " pair"], Int[Tensor, " pair"]]:
        return self.sums.shared, self.sums.trial_pairs, self.sums.ties[0]

    def _ran(self) -> Int[Tensor, " system"]:
        return self.runs_per_system


@dataclass(frozen=True, eq=False)
class MeanTotals:
    """Sums of several measures over some instances; those of disjoint instances add up, whatever systems they have.

    Attributes:
        systems: names, sorted.
        sums: per measure.
        runs_per_system: int64 ``[system]``.
        n_instances: how many instances went in.
        findings: what was noticed when the data entered, by kind.
    """

    systems: tuple[str, ...]
    sums: Mapping[str, MeanSums]
    runs_per_system: Int[Tensor, " system"]
    n_instances: int
    findings: Mapping[tuple[str, str], Finding]

    @classmethod
    def nothing(cls, measures: Sequence[str], scale: float) -> MeanTotals:
        """Sums over no instance."""
        sums = {name: MeanSums.zeros(0, scale, terms=4 if name == "lr" else 1) for name in measures}
        return cls((), sums, torch.zeros(0, dtype=torch.int64), 0, {})

    def over(self, systems: Sequence[str]) -> MeanTotals:
        """The same sums with room for more systems; ``systems`` is sorted and holds all of these."""
        names = tuple(systems)
        if names == self.systems:
            return self
        place = torch.tensor([names.index(name) for name in self.systems], dtype=torch.int64)
        size = len(names)
        old = place[all_pairs(len(self.systems))]
        low, high = old[:, 0], old[:, 1]
        target = pair_position(low, high, size)

        def spread(tensor: Tensor) -> Tensor:
            wide = tensor.new_zeros((*tensor.shape[:-1], size * (size - 1) // 2))
            wide[..., target] = tensor
            return wide

        sums = {
            name: MeanSums(part.scale, *(spread(tensor) for tensor in part.tensors()))
            for name, part in self.sums.items()
        }
        ran = self.runs_per_system.new_zeros(size)
        ran[place] = self.runs_per_system
        return replace(self, systems=names, sums=sums, runs_per_system=ran)

    def __add__(self, other: MeanTotals) -> MeanTotals:
        names = tuple(sorted({*self.systems, *other.systems}))
        mine, theirs = self.over(names), other.over(names)
        findings = dict(mine.findings)
        for key, finding in theirs.findings.items():
            findings[key] = _joined(findings[key], finding) if key in findings else finding
        return MeanTotals(
            systems=names,
            sums={name: part + theirs.sums[name] for name, part in mine.sums.items()},
            runs_per_system=mine.runs_per_system + theirs.runs_per_system,
            n_instances=mine.n_instances + theirs.n_instances,
            findings=findings,
        )

    def preferences(self, clock: str | None) -> dict[str, MeanPreferences]:
        """What the sums amount to, per measure."""
        return {
            name: MeanPreferences(
                measure=name,
                systems=self.systems,
                clock=clock if describe(name).temporal else None,
                n_instances=self.n_instances,
                sums=part,
                runs_per_system=self.runs_per_system,
                findings=tuple(self.findings.values()),
            )
            for name, part in self.sums.items()
        }


def _joined(one: Finding, two: Finding) -> Finding:
    return replace(
        one,
        count=one.count + two.count,
        systems=tuple(sorted({*one.systems, *two.systems})),
        examples=(*one.examples, *two.examples)[: max(len(one.examples), len(two.examples))],
    )


def total_of(
    runs: Trajectories,
    measures: Sequence[str],
    clock: str | None,
    weights: Float[Tensor, " instance"],
    grid: Grid = "exact",
    scale: float | None = None,
) -> MeanTotals:
    """Sums of some measures over the instances of some runs.

    Args:
        runs: the runs.
        measures: short names.
        clock: the clock, for the measures that need one.
        weights: of the instances, on the CPU.
        grid: see :func:`torchpref.runs.curves.grid_levels`.
        scale: of the sums; see :func:`torchpref.kernels.mean_sums.weight_scale`.
    """
    scale = weight_scale(weights) if scale is None else scale
    pairs = all_pairs(len(runs.systems), runs.device)
    temporal = any(describe(name).temporal for name in measures)
    jumps = curves(runs, clock) if temporal else None
    sums: dict[str, MeanSums] = {}
    if jumps is not None and any(name in CURVE_MEASURES for name in measures):
        found = mean_pairs(jumps.on_grid(grid), pairs, weights, scale)
        for index, name in enumerate(CURVE_MEASURES):
            if name in measures:
                terms = [0, 3, 4, 5] if name == "lr" else [index]
                own = slice(index, index + 1)
                sums[name] = replace(
                    found, delta=found.delta[terms], tie_share=found.tie_share[own], ties=found.ties[own]
                )
    for name in measures:
        if name not in CURVE_MEASURES:
            scores, present = run_scores(runs, name, clock if describe(name).temporal else None, jumps)
            sums[name] = _score_sums(scores, present, pairs, name, weights, scale)
    ran = runs.present.any(-1).sum(0).cpu()
    return MeanTotals(
        systems=runs.systems,
        sums={name: MeanSums(scale, *(tensor.cpu() for tensor in sums[name].tensors())) for name in measures},
        runs_per_system=ran,
        n_instances=len(runs.instances),
        findings={(finding.kind, finding.severity): finding for finding in runs.findings},
    )


def _score_sums(scores: Tensor, present: Tensor, pairs: Tensor, name: str, weights: Tensor, scale: float) -> MeanSums:
    measure = describe(name)
    total = MeanSums.zeros(len(pairs), scale, scores.device, terms=1)
    counts = present.sum(-1)
    block = max(1, MAX_CELLS // max(1, len(pairs)))
    for start in range(0, len(scores), block):
        rows = slice(start, start + block)
        sums, ties = compare_scores(scores[rows], present[rows], pairs, measure.tolerance)
        trial_pairs = counts[rows][:, pairs[:, 0]] * counts[rows][:, pairs[:, 1]]
        total = total + add_up([sums], [ties], [measure.unit], trial_pairs, weights[rows], scale)
    return total


def mean_preferences(
    runs: Trajectories,
    measures: str | Sequence[str] = "all",
    *,
    clock: str | None = None,
    weights: Weights = "instance",
    device: str | torch.device | None = None,
    grid: Grid = "exact",
) -> dict[str, MeanPreferences]:
    """Mean preferences of several measures, without storing anything per (instance, pair).

    Arguments are those of :func:`torchpref.all_preferences`; so are the means, weights, counts and tie rates, to the bit.
    """
    names = resolve_measures(measures)
    if device is not None:
        runs = runs.to(device)
    chosen = runs.clock(clock) if any(describe(name).temporal for name in names) else None
    return total_of(runs, names, chosen, instance_weights(runs, weights), grid).preferences(chosen)
