"""Sums over instances per pair of systems, in fixed point, so that parts add up to the bits of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.kernels.pair_sums import PairSums
from torchpref.runs.exact_sum import from_limbs, power_of_two_scale, to_limbs
from torchpref.runs.measures import CURVE_MEASURES, describe

#: What is summed, in order: the three measures, then the parts of LR in which one, both and neither of two runs succeed.
TERMS = (*CURVE_MEASURES, "lr_solved", "lr_sooner", "lr_further")
UNITS = tuple(describe(term.partition("_")[0]).unit for term in TERMS)
#: (instances × pairs) that torch handles at a time.
MAX_CELLS = 1 << 22


@dataclass(frozen=True)
class MeanSums:
    """Sums over instances per pair of systems, whole numbers throughout; those of parts of the data add up.

    Attributes:
        scale: of the fixed-point numbers, see :func:`torchpref.runs.exact_sum.to_limbs`; a power of two.
        delta: int64 ``[term, limb, pair]``, Σ v·Δ of every one of ``TERMS``.
        weight: int64 ``[limb, pair]``, Σ v over the shared instances.
        tie_share: int64 ``[measure, limb, pair]``, Σ of tied trial pairs / trial pairs over shared instances, scale 1.
        ties: int64 ``[measure, pair]``, number of tied trial pairs.
        shared: int64 ``[pair]``, number of shared instances.
        trial_pairs: int64 ``[pair]``, number of trial pairs.
    """

    scale: float
    delta: Int[Tensor, "term limb pair"]
    weight: Int[Tensor, "limb pair"]
    tie_share: Int[Tensor, "measure limb pair"]
    ties: Int[Tensor, "measure pair"]
    shared: Int[Tensor, " pair"]
    trial_pairs: Int[Tensor, " pair"]

    @classmethod
    def zeros(cls, pairs: int, scale: float, device: torch.device | str = "cpu", terms: int = len(TERMS)) -> MeanSums:
        """Sums over nothing: of all measures, or with ``terms`` of one."""

        def empty(*shape: int) -> Tensor:
            return torch.zeros((*shape, pairs), dtype=torch.int64, device=device)

        measures = 3 if terms == len(TERMS) else 1
        return cls(scale, empty(terms, 2), empty(2), empty(measures, 2), empty(measures), empty(), empty())

    def tensors(self) -> list[Tensor]:
        """All sums, in a fixed order; adding those of two parts adds the parts."""
        return [getattr(self, field.name) for field in fields(self) if field.name != "scale"]

    def __add__(self, other: MeanSums) -> MeanSums:
        if self.scale != other.scale:
            raise UsageError(f"sums on scales {self.scale} and {other.scale} cannot be added; sum both with one scale")
        return MeanSums(
            self.scale, *(mine + theirs for mine, theirs in zip(self.tensors(), other.tensors(), strict=True))
        )

    def weight_sums(self) -> Float[Tensor, " pair"]:
        """Sum of the weights of the instances that each pair shares."""
        return from_limbs(self.weight[0], self.weight[1], self.scale)

    def means(self, term: int) -> Float[Tensor, " pair"]:
        """Weighted mean over shared instances of one of the terms; NaN where a pair shares none."""
        weight = self.weight_sums()
        total = from_limbs(self.delta[term, 0], self.delta[term, 1], self.scale)
        return torch.where(weight > 0, total / weight, torch.nan)

    def tie_rate(self, measure: int) -> float:
        """Share of tied trial pairs within an (instance, pair), averaged over instances and pairs; NaN without any."""
        count = int(self.shared.sum())
        high, low = self.tie_share[measure].sum(-1)
        return float(from_limbs(high, low, 1.0)) / count if count else float("nan")


def weight_scale(weights: Float[Tensor, " instance"]) -> float:
    """The scale of sums with these weights; parts of the data must use that of all weights."""
    return power_of_two_scale(float(weights.max()) if weights.numel() else 0.0)


def add_up(
    sums: Sequence[Int[Tensor, "instance pair"]],
    ties: Sequence[Int[Tensor, "instance pair"]],
    units: Sequence[int],
    trial_pairs: Int[Tensor, "instance pair"],
    weights: Float[Tensor, " instance"],
    scale: float,
) -> MeanSums:
    """Sums over instances of what is known per (instance, pair).

    Args:
        sums: per term, sums over trial pairs in parts of 1/unit.
        ties: per measure, tied trial pairs.
        units: per term.
        trial_pairs: number of trial pairs, 0 where a pair is not compared.
        weights: v of every instance.
        scale: see :func:`weight_scale`.
    """
    mask = trial_pairs > 0
    column = weights.to(trial_pairs.device).double().unsqueeze(1)

    def limbs(values: Tensor, size: float) -> Tensor:
        return torch.stack([part.sum(0) for part in to_limbs(torch.where(mask, values, 0.0), size)])

    delta = [
        limbs(total.double() / (trial_pairs * unit).double() * column, scale)
        for total, unit in zip(sums, units, strict=True)
    ]
    share = [limbs(tied.double() / trial_pairs.double(), 1.0) for tied in ties]
    return MeanSums(
        scale=scale,
        delta=torch.stack(delta),
        weight=limbs(column.expand(mask.shape), scale),
        tie_share=torch.stack(share),
        ties=torch.stack([tied.sum(0) for tied in ties]),
        shared=mask.sum(0),
        trial_pairs=trial_pairs.sum(0),
    )


def of_pair_sums(
    sums: PairSums, trial_pairs: Int[Tensor, "instance pair"], weights: Float[Tensor, " instance"], scale: float
) -> MeanSums:
    """Sums over instances of a kernel's results."""
    lr, solved, sooner = sums.lr, sums.lr_solved, sums.lr_sooner
    terms = [lr, sums.rpp, sums.ipp, solved, sooner, lr - solved - sooner]
    return add_up(terms, [sums.lr_ties, sums.rpp_ties, sums.ipp_ties], UNITS, trial_pairs, weights, scale)
