"""The sign-flip test of all pairs in thousands of replicates, approximated from moments.

Under the hypothesis the sum S = Σ ±x of |x| = |wvΔ| with fair signs is symmetric, with variance Σx² and fourth cumulant
−2Σx⁴. The symmetric beta distribution (Pearson's type II, as in Pitman's *Significance tests which may be applied to samples
from any populations*, 1937) with the same two has 3n − 3 degrees of freedom as a t distribution, n = (Σx²)² / Σx⁴; its tail
is found by Wallace's normal approximation (*Bounds on normal approximations to Student's and the chi-square distributions*,
1959). Where the x are multiples of one step there is a correction for continuity, and no p is less than 2^(1 − count) for that
many x that are not 0.

Up to ten x that are not 0 are gone through with all signs. Where more of them are very uneven (n < 12 and n < 0.6 of their
number) a few large ones may decide: all signs of these, at most eight, are gone through, and only the rest is approximated.
The tests compare it with exact p-values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from torchpref.meta.values import PairValues


@dataclass(frozen=True)
class PairCounts:
    """Numbers of pairs in each replicate, float64 ``[replicate]`` each.

    Attributes:
        tested: pairs with an instance that both ran.
        holm, benjamini: of these, significant after Holm, and after Benjamini and Hochberg, for all of them.
        judged: of these, pairs of the known order.
        right, right_holm, right_benjamini: of those, with the right sign, and significant too.
    """

    tested: Float[Tensor, " replicate"]
    holm: Float[Tensor, " replicate"]
    benjamini: Float[Tensor, " replicate"]
    judged: Float[Tensor, " replicate"]
    right: Float[Tensor, " replicate"]
    right_holm: Float[Tensor, " replicate"]
    right_benjamini: Float[Tensor, " replicate"]


def count_tests(
    values: PairValues,
    drawn: Int[Tensor, "replicate instance"],
    sums: Float[Tensor, "replicate pair"],
    alpha: float,
    known: Float[Tensor, " pair"] | None = None,
    p: Float[Tensor, "replicate pair"] | None = None,
) -> PairCounts:
    """Test every pair of every replicate, and correct for the number of pairs.

    Args:
        values: the preferences.
        drawn: how often each instance is drawn.
        sums: the replicates' sums, as :meth:`PairValues.sums` gives them.
        alpha: error rate.
        known: signs of the known order.
        p: p-values, if they are known; those of the fast test otherwise.
    """
    from torchpref.meta.compiled import decide_rows, over_rows

    tested = values.tested(drawn)
    given = np.empty((0, sums.shape[1])) if p is None else p.numpy()
    signs = torch.zeros(sums.shape[1], dtype=torch.float64) if known is None else known
    counts = np.zeros((len(sums), 7), dtype=np.int64)
    over_rows(
        decide_rows, len(sums), *_inputs(values, drawn, sums, moments=p is None),
        given, tested.numpy(), signs.numpy(), alpha, counts,
    )  # fmt: skip
    return PairCounts(*torch.from_numpy(counts).double().unbind(1))


def _inputs(values: PairValues, drawn: Tensor, sums: Tensor, moments: bool = True) -> tuple[NDArray[Any], ...]:
    """What the compiled tests take; no moments where p-values are given."""
    none = np.empty((0, sums.shape[1]), dtype=np.float32)
    powers = values.power_sums(drawn) if moments else (none, none, none)
    copies = drawn.int().contiguous().numpy()
    return sums.numpy(), values.transposed, copies, values.unit.numpy(), values.span.numpy(), *powers


def holm_rejects(p: Float[Tensor, "row pair"], alpha: float) -> Bool[Tensor, "row pair"]:
    """Pairs that Holm rejects at α in each row; NaN is no test."""
    from torchpref.stats.significance.corrections import adjust

    return torch.from_numpy(adjust(p.numpy(), "holm") <= alpha)
