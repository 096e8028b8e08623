"""Looks at one pair of systems after every instance of a planned order: when is the difference established?

Three ways, of which the data decide: exact masses while Δ is −1, 0 or 1, no family comes twice, and both ran every instance
equally often; from then on random signs; where both ran an instance unequally often random labels as well, and the
difference is established only once both have crossed (signs alone reject too often there, labels alone too). What was found
exactly stays as it was, so a later call agrees with every earlier one.

Looking early makes skew far worse than one look: once Δ is graded the first look is at a third of the planned instances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from torchpref.errors import UsageError
from torchpref.stats.sequential.paths import PATHS, UNIT, PathLooks, Pooled, label_steps, path_boundary, sign_steps
from torchpref.stats.sequential.spending import spent_by, ternary_boundary


@dataclass(frozen=True, eq=False)
class OrderedPair:
    """Δ of two systems on the instances looked at, in the planned order.

    Attributes:
        delta: int64 ``[instance]``, Δ(first, second) in parts of 1/UNIT; 0 for a run that was given up.
        family: int64 ``[instance]``, position of the first instance of the same family; its own where it is of none.
        pooled: per instance the runs of both where they ran it unequally often, else None.
    """

    delta: Int[np.ndarray, " instance"]
    family: Int[np.ndarray, " instance"]
    pooled: tuple[Pooled | None, ...]

    @classmethod
    def of(cls, delta: Int[np.ndarray, " instance"]) -> OrderedPair:
        """Every instance of a family of its own and run equally often, ``delta`` in parts of 1/UNIT."""
        values = np.asarray(delta, dtype=np.int64)
        return cls(values, np.arange(len(values)), (None,) * len(values))

    @property
    def graded(self) -> np.ndarray:
        """bool ``[instance]``: whether Δ was anything but −1, 0 or 1 up to here."""
        return np.asarray(np.logical_or.accumulate(~np.isin(self.delta, (-UNIT, 0, UNIT))), dtype=bool)

    @property
    def exact_prefix(self) -> int:
        """How many instances, from the first, have masses that are found exactly."""
        unequal = np.array([runs is not None for runs in self.pooled], dtype=bool)
        odd = self.graded | unequal | (self.family != np.arange(len(self.delta)))
        return int(np.argmax(odd)) if odd.any() else len(odd)


@dataclass(frozen=True)
class Look:
    """Whether the difference of one pair is established.

    Attributes:
        crossed: after which instance, counted from 1; 0 for not yet.
        side: +1 or −1, who is ahead there; 0 for nobody.
        bound: float64 ``[instance]``, the sum at which looks stop (two-sided: |sum|); NaN where none does. With two
            kinds of paths the larger.
        spent: float64 ``[instance]``, of α; with two kinds of paths the larger.
        method: in words.
    """

    crossed: int
    side: int
    bound: Float[np.ndarray, " instance"]
    spent: Float[np.ndarray, " instance"]
    method: str


def look(
    pair: OrderedPair,
    planned: int,
    alpha: float,
    *,
    two_sided: bool = False,
    final: bool = False,
    seed: int = 0,
    paths: int = PATHS,
) -> Look:
    """Look after every instance; see the module.

    Args:
        pair: Δ in the planned order.
        planned: N.
        alpha: what may be spent up to N.
        two_sided: for low sums only, or for both.
        final: the last look may spend all that is left.
        seed: of the paths.
        paths: B, at least 20/α, or the data could never be removed early.

    Raises:
        UsageError: more instances than planned, or too few paths.
    """
    count = len(pair.delta)
    if count > planned:
        raise UsageError(f"{count} instances were seen of {planned} planned; later instances are not looked at")
    known = pair.exact_prefix
    exact = ternary_boundary(pair.delta[None, :known] // UNIT, planned, alpha, two_sided, final and known == count)
    if known == count:
        return Look(int(exact.crossed[0]), int(exact.side[0]), exact.bound[0], exact.spent[0], "spending, exact")
    if paths * alpha < 20:
        raise UsageError(f"{paths} random paths are too few for alpha = {alpha:g}; at least {int(np.ceil(20 / alpha))}")
    number = np.arange(1, count + 1)
    budget = spent_by(number, planned, alpha)
    looks = ~pair.graded | (3 * number >= planned)
    if final:
        budget[-1], looks[-1] = alpha, True

    def spend(steps: object) -> PathLooks:
        return path_boundary(steps, budget, looks, two_sided, exact.bound[0], exact.spent[0])  # type: ignore[arg-type]

    by_sign = spend(sign_steps(pair.delta, pair.family, seed, paths + 1))
    grouped = " by family" if (pair.family != np.arange(count)).any() else ""
    if all(runs is None for runs in pair.pooled):
        return Look(
            by_sign.crossed, by_sign.side, by_sign.bound, by_sign.spent, f"spending, {paths:,} random signs{grouped}"
        )
    by_label = spend(label_steps(pair.delta, pair.pooled, seed, paths + 1))
    both = by_sign.crossed > 0 and by_label.crossed > 0 and by_sign.side == by_label.side
    return Look(
        crossed=max(by_sign.crossed, by_label.crossed) if both else 0,
        side=by_sign.side if both else 0,
        bound=np.maximum(by_sign.bound, by_label.bound),
        spent=np.maximum(by_sign.spent, by_label.spent),
        method=f"spending, {paths:,} random signs{grouped} and {paths:,} random labels",
    )
