"""vΔ of every instance and pair as whole numbers, so that sums over resampled instances are exact.

A replicate is a row of whole weights over instances. Where instances weigh the same and the numbers of trials have a small
common multiple, vΔ is a whole number of millionths (or of another step) exactly, and so is every sum; otherwise it is
rounded to a power of two, and sums that are within the rounding of 0 are 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from torchpref.stats.resampling.instances import fixed_point

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences

_EXACT = 2.0**52


@dataclass(frozen=True, eq=False)
class PairValues:
    """Preferences of one measure, ready for resampling.

    Attributes:
        measure: short name.
        systems: their number.
        pairs: int64 ``[pair, 2]``.
        values: float64 ``[instance, pair]``, whole numbers: vΔ in units of ``step``; 0 where not compared.
        step: the value of 1.
        slack: sums of at most this size are 0; 0 where sums are exact.
        mask: bool ``[instance, pair]``, where both systems ran.
        weights: float64 ``[instance]``, v.
        ties: float64 ``[instance, pair]``, share of tied trial pairs; 0 where not compared.
    """

    measure: str
    systems: int
    pairs: Int[Tensor, "pair 2"]
    values: Float[Tensor, "instance pair"]
    step: float
    slack: float
    mask: Bool[Tensor, "instance pair"]
    weights: Float[Tensor, " instance"]
    ties: Float[Tensor, "instance pair"]

    @cached_property
    def complete(self) -> bool:
        """Whether every pair is compared on every instance."""
        return bool(self.mask.all())

    @cached_property
    def _narrow(self) -> Float[Tensor, "instance pair"] | None:
        """The values in float32, where it adds up as many of them as there are instances exactly."""
        exact = not self.slack and self.values.numel() > 0
        return self.values.float() if exact and len(self.values) * float(self.values.abs().max()) < 2**24 else None

    @cached_property
    def compared(self) -> Bool[Tensor, " pair"]:
        """Pairs that share an instance."""
        return self.mask.any(0)

    def sums(self, drawn: Int[Tensor, "replicate instance"]) -> Float[Tensor, "replicate pair"]:
        """ΣwvΔ in units of ``step``, exactly; what is 0 but for rounding is 0."""
        if self._narrow is not None:
            return (drawn.float() @ self._narrow).double()
        total = drawn.double() @ self.values
        return torch.where(total.abs() <= self.slack, 0.0, total) if self.slack else total

    def weight_sums(self, drawn: Int[Tensor, "replicate instance"]) -> Float[Tensor, "replicate column"]:
        """Σwv over the instances of each pair; one column for all where the data are complete."""
        if self.complete:
            return (drawn.double() @ self.weights).unsqueeze(1)
        return drawn.double() @ (self.mask * self.weights[:, None])

    def means(
        self, sums: Float[Tensor, "replicate pair"], weights: Float[Tensor, "replicate column"]
    ) -> Float[Tensor, "replicate pair"]:
        """Δ̄ of every pair; NaN where a replicate has no instance that both ran."""
        return torch.where(weights > 0, sums * self.step / weights, torch.nan)

    def take(self, instances: Int[Tensor, " chosen"]) -> PairValues:
        """Some of the instances."""
        return PairValues(
            self.measure, self.systems, self.pairs, self.values[instances], self.step, self.slack,
            self.mask[instances], self.weights[instances], self.ties[instances],
        )  # fmt: skip

    @cached_property
    def unit(self) -> Float[Tensor, " pair"]:
        """What turns sums into those of which :meth:`power_sums` are the moments: a pair's largest |value| is 1 there."""
        if not self.values.numel():
            return torch.ones(len(self.pairs), dtype=torch.float64)
        return 1.0 / self.values.abs().amax(0).clamp(min=1.0)

    @cached_property
    def _powers(self) -> tuple[Float[Tensor, "instance pair"], ...]:
        """x², x⁴ and [x ≠ 0], float32; only one where all x that are not 0 have one size, and the three are the same."""
        square = (self.values * self.unit) ** 2
        count = (square > 0).double()
        if bool((square == count).all()):
            return (count.float(),)
        return square.float(), (square * square).float(), count.float()

    def power_sums(self, drawn: Int[Tensor, "replicate instance"]) -> tuple[Float[np.ndarray, "replicate pair"], ...]:
        """Σwx², Σwx⁴ and Σw[x ≠ 0] of x = value · unit, float32."""
        weights = drawn.float()
        sums = tuple((weights @ power).numpy() for power in self._powers)
        return sums if len(sums) == 3 else sums * 3

    def tested(self, drawn: Int[Tensor, "replicate instance"]) -> Bool[Tensor, "replicate pair"]:
        """Pairs with an instance that both ran; one row for all replicates where the data are complete."""
        if self.complete:
            return torch.ones((1, len(self.pairs)), dtype=torch.bool)
        return drawn.float() @ self.mask.float() > 0

    @cached_property
    def transposed(self) -> Float[np.ndarray, "pair instance"]:
        """The values, pair by pair."""
        return np.ascontiguousarray(self.values.numpy().T)

    @cached_property
    def span(self) -> Float[Tensor, " pair"]:
        """Half the distance between possible sums of ±vΔ, in units of ``step``: what all values of a pair are multiples of.

        0 where there is no coarse step, and sums are as good as continuous.
        """
        from torchpref.stats.significance.exact import lattice_steps

        real = self.values.numpy() * self.step
        steps = lattice_steps(real)
        if steps is None:
            return torch.zeros(len(self.pairs), dtype=torch.float64)
        size = np.abs(steps)
        divisor = np.gcd.reduce(size, axis=0) if len(size) else np.zeros(size.shape[1], dtype=np.int64)
        top = np.abs(self.values.numpy())
        unit = top.max(initial=0.0) / max(1, int(size.max(initial=0)))
        return torch.from_numpy(divisor * unit)

    @cached_property
    def incidence(self) -> Float[Tensor, "pair system"]:
        """+1 for the first and −1 for the second system of each pair: turns sums per pair into sums per system."""
        matrix = torch.zeros((len(self.pairs), self.systems), dtype=torch.float64)
        rows = torch.arange(len(self.pairs))
        matrix[rows, self.pairs[:, 0]], matrix[rows, self.pairs[:, 1]] = 1.0, -1.0
        return matrix


def pair_values(prefs: Preferences) -> PairValues:
    """Whole-number values of preferences."""
    mask, counts, weights = prefs.mask.cpu(), prefs.trial_pairs.cpu(), prefs.weights.cpu()
    mask = mask & (weights > 0)[:, None]
    trials = counts.clamp(min=1)
    ties = torch.where(mask, prefs.ties.cpu().double() / trials.double(), 0.0)
    instances = max(1, len(weights))
    multiple = math.lcm(*np.flatnonzero(np.bincount(trials.numpy().ravel())).tolist()) if trials.numel() else 1
    bound = float(multiple) * prefs.unit * instances
    used = weights[weights > 0]
    if bound < _EXACT and (not len(used) or bool((used == used[0]).all())):
        parts = torch.where(mask, prefs.sums.cpu() * (multiple // trials), 0)
        common = max(1, int(np.gcd.reduce(parts.numpy(), axis=None)) if parts.numel() else 1)
        whole = (parts // common).double()
        step, slack = (float(used[0]) if len(used) else 1.0) * common / (multiple * prefs.unit), 0.0
    else:
        fixed = fixed_point(torch.where(mask, prefs.delta.cpu() * weights[:, None], 0.0), instances)
        whole, step = fixed.limbs[0], fixed.units[0]
        slack = float(instances)
    return PairValues(prefs.measure, len(prefs.systems), prefs.pairs.cpu(), whole, step, slack, mask, weights, ties)
