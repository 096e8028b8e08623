"""Preferences between systems: Δ of every instance and pair, and their means.

A :class:`Preferences` holds whole numbers: the sum of Δ over the trial pairs of an (instance, pair of systems), how many
trial pairs there are, and how many are tied. Everything else (Δ itself, means, tie rates, the split of LR) is read off
them. Means are summed in fixed point, so they are the same to the bit in any order of instances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.kernels import PairSums, compare_pairs
from torchpref.pairwise.between import SPLIT_PARTS, BetweenPairs, all_pairs
from torchpref.pairwise.one_pair import PairPreferences, signs_at_levels
from torchpref.runs.curves import Curves, Grid, curves, time_to_level
from torchpref.runs.exact_sum import exact_sum, power_of_two_scale
from torchpref.runs.measures import CURVE_MEASURES, JUDGE, TIE_TOLERANCE, describe, resolve_measures
from torchpref.runs.names import two_names
from torchpref.runs.trajectories import Trajectories
from torchpref.runs.units import MILLION, NEVER, UNKNOWN

if TYPE_CHECKING:
    pass


Weights = str | Mapping[str, float] | Sequence[float] | Tensor


@dataclass(frozen=True, eq=False, repr=False)
class Preferences(BetweenPairs):
    """Preferences of one measure between all pairs of systems.

    Attributes:
        measure: short name of the measure.
        runs: the runs compared.
        clock: the clock compared on; None for SR and PR, which need none.
        pairs: int64 ``[pair, 2]``, positions in ``systems``, a < b. Δ > 0 prefers a.
        sums: int64 ``[instance, pair]``, sum of Δ over trial pairs in parts of 1/``unit``.
        unit: how many parts make Δ = 1.
        trial_pairs: int64 ``[instance, pair]``, number of trial pairs; 0 where the pair is not compared.
        ties: int64 ``[instance, pair]``, number of tied trial pairs.
        weights: float64 ``[instance]``, v of docs/definitions.md.
        grid: the grid of levels.
        parts: for LR, int64 ``[2, instance, pair]``: the sums over trial pairs of which one, and both, runs succeed.
    """

    measure: str
    runs: Trajectories
    clock: str | None
    pairs: Int[Tensor, "pair 2"]
    sums: Int[Tensor, "instance pair"]
    unit: int
    trial_pairs: Int[Tensor, "instance pair"]
    ties: Int[Tensor, "instance pair"]
    weights: Float[Tensor, " instance"]
    grid: Grid = "exact"
    parts: Int[Tensor, "2 instance pair"] | None = field(default=None)

    # ------------------------------------------------------------------------------------------------------ names

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems."""
        return self.runs.systems

    @property
    def instances(self) -> tuple[str, ...]:
        """Names of the instances."""
        return self.runs.instances

    @property
    def n_instances(self) -> int:
        """How many instances there are."""
        return len(self.runs.instances)

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmark of each instance."""
        return self.runs.benchmarks

    @property
    def families(self) -> tuple[str | None, ...] | None:
        """The family of each instance, None for one of no family; None where no families are known."""
        return self.runs.families

    # ------------------------------------------------------------------------------------------------------ values

    @cached_property
    def mask(self) -> Bool[Tensor, "instance pair"]:
        """Where both systems of the pair ran the instance."""
        return self.trial_pairs > 0

    @cached_property
    def delta(self) -> Float[Tensor, "instance pair"]:
        """Δ in [-1, 1], mean over trial pairs; NaN where the pair is not compared."""
        return self._per_trial_pair(self.sums)

    def _per_trial_pair(self, sums: Int[Tensor, "instance pair"]) -> Float[Tensor, "instance pair"]:
        values = sums.double() / (self.trial_pairs * self.unit).double()
        return torch.where(self.mask, values, torch.nan)

    @cached_property
    def _scale(self) -> float:
        """Scale of the fixed-point sums: by the weights alone, so that parts of the data summed elsewhere have it too."""
        return power_of_two_scale(float(self.weights.max()) if self.weights.numel() else 0.0)

    def pair_means(self) -> Float[Tensor, " pair"]:
        """Δ̄ of every pair over its shared instances; NaN where it shares none."""
        return self._pair_means

    def pair_weights(self) -> Float[Tensor, " pair"]:
        """Sum of the weights of the instances that each pair shares."""
        return self._pair_weights

    @cached_property
    def _pair_means(self) -> Float[Tensor, " pair"]:
        return self._weighted(self.delta)

    @cached_property
    def _pair_weights(self) -> Float[Tensor, " pair"]:
        return exact_sum(self.mask.double() * self.weights.unsqueeze(1), scale=self._scale)

    def _weighted(self, values: Float[Tensor, "instance pair"]) -> Float[Tensor, " pair"]:
        total = exact_sum(values * self.weights.unsqueeze(1), scale=self._scale)
        weight = self.pair_weights()
        return torch.where(weight > 0, total / weight, torch.nan)

    def tie_rate(self) -> float:
        """Share of tied trial pairs within an (instance, pair), averaged over instances and pairs; NaN without any."""
        share = torch.where(self.mask, self.ties.double() / self.trial_pairs.double(), 0.0)
        count = int(self.mask.sum())
        return float(exact_sum(share.flatten(), scale=1.0)) / count if count else float("nan")

    @property
    def run_pairs(self) -> int:
        """How many pairs of runs were compared."""
        return int(self.trial_pairs.sum())

    def pair_split(self) -> dict[str, Float[Tensor, " pair"]]:
        """The split per pair."""
        if self.parts is None:
            raise self._no_split()
        solved, sooner = self.parts[0], self.parts[1]
        terms = (solved, sooner, self.sums - solved - sooner)
        return {name: self._weighted(self._per_trial_pair(term)) for name, term in zip(SPLIT_PARTS, terms, strict=True)}

    def _counts(self) -> tuple[Int[Tensor, " pair"], Int[Tensor, " pair"], Int[Tensor, " pair"]]:
        return self.mask.sum(0), self.trial_pairs.sum(0), self.ties.sum(0)

    def _ran(self) -> Int[Tensor, " system"]:
        return self.runs.present.any(-1).sum(0)

    # ------------------------------------------------------------------------------------------------------ choosing

    def __getitem__(self, names: tuple[str, str]) -> PairPreferences:
        """Per instance: Δ(A, B), trial pairs, and which levels decide; ``prefs["A", "B"]``."""
        first, second = two_names(names, 'prefs["A", "B"]')
        return pair_preferences(self, first, second)

    def with_weights(self, weights: Weights) -> Preferences:
        """The same preferences with other instance weights in the means."""
        return replace(self, weights=instance_weights(self.runs, weights).to(self.sums.device))


def preferences(
    runs: Trajectories,
    measure: str = JUDGE,
    *,
    clock: str | None = None,
    weights: Weights = "instance",
    device: str | torch.device | None = None,
    grid: Grid = "exact",
) -> Preferences:
    """Preferences of one measure between all pairs of systems.

    Args:
        runs: the runs.
        measure: ``sr``, ``pr``, ``spl``, ``lr``, ``rpp`` or ``ipp``, in any case.
        clock: the clock that times are read on; by the rule of :meth:`Trajectories.clock` where None.
        weights: ``"instance"``: every instance counts once; ``"benchmark"``: every benchmark counts once; or weights of
            your own, as a mapping from instance or benchmark names or one number per instance.
        device: where to compute; where the runs are by default.
        grid: ``"exact"``, or an approximation for continuous returns, see :func:`torchpref.runs.curves.grid_levels`.
    """
    name = describe(measure).name
    return all_preferences(runs, (name,), clock=clock, weights=weights, device=device, grid=grid)[name]


def all_preferences(
    runs: Trajectories,
    measures: str | Sequence[str] = "all",
    *,
    clock: str | None = None,
    weights: Weights = "instance",
    device: str | torch.device | None = None,
    grid: Grid = "exact",
) -> dict[str, Preferences]:
    """Preferences of several measures; LR, RPP and IPP come from one pass over the data. See :func:`preferences`."""
    names = resolve_measures(measures)
    if device is not None:
        runs = runs.to(device)
    pairs = all_pairs(len(runs.systems), runs.device)
    counts = runs.present.sum(-1)
    trial_pairs = counts[:, pairs[:, 0]] * counts[:, pairs[:, 1]]
    values = instance_weights(runs, weights).to(runs.device)
    temporal = [name for name in names if describe(name).temporal]
    chosen = runs.clock(clock) if temporal else None
    jumps = curves(runs, chosen) if temporal else None

    sums: PairSums | None = None
    if jumps is not None and any(name in CURVE_MEASURES for name in names):
        sums = compare_pairs(jumps.on_grid(grid), pairs)

    result = {}
    for name in names:
        measure = describe(name)
        parts = None
        if name in CURVE_MEASURES:
            assert sums is not None
            total, ties = getattr(sums, name), getattr(sums, f"{name}_ties")
            if name == "lr":
                parts = torch.stack([sums.lr_solved, sums.lr_sooner])
            here, pairs_compared = runs, trial_pairs
        else:
            scores, present = run_scores(runs, name, chosen, jumps)
            total, ties = compare_scores(scores, present, pairs, measure.tolerance)
            counted = present.sum(-1)
            here, pairs_compared = runs, counted[:, pairs[:, 0]] * counted[:, pairs[:, 1]]
        result[name] = Preferences(
            measure=name,
            runs=here,
            clock=chosen if measure.temporal else None,
            pairs=pairs,
            sums=total,
            unit=measure.unit,
            trial_pairs=pairs_compared,
            ties=ties,
            weights=values,
            grid=grid,
            parts=parts,
        )
    return result


def instance_weights(runs: Trajectories, weights: Weights) -> Float[Tensor, " instance"]:
    """Weights over instances, float64.

    ``"instance"`` gives 1 each; ``"benchmark"`` gives every benchmark the same total (the mean weight of an instance is
    1); a mapping gives weights by instance name, ``benchmark/instance`` or benchmark; a sequence one per instance.
    """
    count = len(runs.instances)
    if isinstance(weights, str):
        if weights == "instance":
            return torch.ones(count, dtype=torch.float64)
        if weights == "benchmark":
            sizes = {name: runs.benchmarks.count(name) for name in set(runs.benchmarks)}
            return torch.tensor([count / (len(sizes) * sizes[name]) for name in runs.benchmarks], dtype=torch.float64)
        raise UsageError(f"unknown weights {weights!r}; use 'instance', 'benchmark' or weights of your own")
    if isinstance(weights, Mapping):
        rows = []
        for benchmark, name in zip(runs.benchmarks, runs.instances, strict=True):
            found = [weights[key] for key in (f"{benchmark}/{name}", name, benchmark) if key in weights]
            if not found:
                raise UsageError(
                    f"no weight is given for instance {name!r}" + (f" of {benchmark!r}" if benchmark else "")
                )
            rows.append(found[0])
        values = _numbers(rows)
    else:
        values = _numbers(weights)
        if tuple(values.shape) != (count,):
            raise UsageError(
                f"weights have shape {list(values.shape)}; wanted one per instance, [{count}], in their order"
            )
    bad = ~(torch.isfinite(values) & (values >= 0))
    if bool(bad.any()):
        position = int(bad.nonzero()[0])
        raise UsageError(
            f"the weight of instance {runs.instances[position]!r} is {float(values[position])!r}; weights are at least 0"
        )
    return values


def _numbers(weights: Any) -> Float[Tensor, " instance"]:
    try:
        return torch.as_tensor(weights, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"weights must be numbers, got {weights!r:.80}") from error


def run_scores(
    runs: Trajectories, measure: str, clock: str | None = None, jumps: Curves | None = None
) -> tuple[Int[Tensor, "instance system trial"], Bool[Tensor, "instance system trial"]]:
    """What SR, PR or SPL say of every single run, in parts of 1/unit, and which runs have such a score.

    SR is 0 or 1, PR the return reached in millionths, SPL s in parts of 10¹². A success at an unknown time has no SPL.
    """
    measure = describe(measure).name
    final = runs.returns[..., -1] if runs.returns.shape[-1] else torch.zeros_like(runs.lengths, dtype=torch.int32)
    solved = final >= MILLION
    if measure == "sr":
        return solved.long(), runs.present
    if measure == "pr":
        return final.long(), runs.present
    if measure != "spl":
        raise UsageError(f"{measure.upper()} compares curves; it gives no score to a single run")
    clock = runs.clock(clock)
    jumps = jumps if jumps is not None else curves(runs, clock)
    full = torch.full((len(runs.instances), 1), MILLION, dtype=torch.int32, device=runs.device)
    when = time_to_level(jumps, full).squeeze(-1)
    unit = describe("spl").unit
    reference = runs.reference_ticks(clock)[:, None, None]
    # Without a reference time no run of the instance took any time to succeed: all of them took the least there is.
    reached = (when != NEVER) & (when != UNKNOWN)
    late = reached & (reference != UNKNOWN) & (when > reference)
    share = torch.round(reference.double() / when.clamp(min=1).double() * unit).long()
    score = torch.where(late, share, torch.where(reached, unit, 0))
    return score, runs.present & (when != UNKNOWN)


def compare_scores(
    scores: Int[Tensor, "instance system trial"],
    present: Bool[Tensor, "instance system trial"],
    pairs: Int[Tensor, "pair 2"],
    tolerance: int,
    max_cells: int = 1 << 22,
) -> tuple[Int[Tensor, "instance pair"], Int[Tensor, "instance pair"]]:
    """Sum of differences over present trial pairs and the number of ties, for measures that are one number per run."""
    instances, _, trials = scores.shape
    first, second = pairs[:, 0], pairs[:, 1]
    total = torch.zeros((instances, len(pairs)), dtype=torch.int64, device=scores.device)
    ties = torch.zeros_like(total)
    block = max(1, max_cells // max(1, len(pairs) * trials * trials))
    for start in range(0, instances, block):
        rows = slice(start, start + block)
        a, b = scores[rows][:, first].unsqueeze(-1), scores[rows][:, second].unsqueeze(-2)
        both = present[rows][:, first].unsqueeze(-1) & present[rows][:, second].unsqueeze(-2)
        difference = a - b
        tied = difference.abs() <= tolerance
        total[rows] = torch.where(both & ~tied, difference, 0).sum((-2, -1))
        ties[rows] = (both & tied).sum((-2, -1))
    return total, ties


__all__ = [
    "SPLIT_PARTS",
    "TIE_TOLERANCE",
    "Preferences",
    "all_preferences",
    "all_pairs",
    "compare_scores",
    "instance_weights",
    "preferences",
    "run_scores",
]


def pair_preferences(prefs: Preferences, first: str, second: str) -> PairPreferences:
    """The part of ``prefs`` that concerns two systems, turned so that Δ > 0 prefers ``first``."""
    index, sign = prefs.pair_index(first, second)
    rows = prefs.mask[:, index].nonzero().squeeze(-1)
    positions = rows.tolist()
    levels = signs = None
    if prefs.measure in CURVE_MEASURES:
        runs = prefs.runs.take(systems=sorted(map(prefs.systems.index, (first, second))), instances=positions)
        levels, signs = signs_at_levels(curves(runs, prefs.clock).on_grid(prefs.grid))
        signs = sign * signs + 0.0
    return PairPreferences(
        measure=prefs.measure,
        first=first,
        second=second,
        rows=rows,
        instances=tuple(prefs.instances[row] for row in positions),
        benchmarks=tuple(prefs.benchmarks[row] for row in positions),
        delta=sign * prefs.delta[rows, index] + 0.0,
        trial_pairs=prefs.trial_pairs[rows, index],
        ties=prefs.ties[rows, index],
        mean=sign * float(prefs.pair_means()[index]),
        levels=levels,
        signs=signs,
    )
