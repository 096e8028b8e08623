"""LR, RPP and IPP of all pairs of systems in one pass.

A kernel knows tensors of integers, not names: it takes :class:`torchpref.grid.Curves` and pairs of system indices and
returns :class:`PairSums`. All kernels give the same integers.
"""

from __future__ import annotations

from jaxtyping import Int
from torch import Tensor

from torchpref.grid import Curves
from torchpref.kernels.sums import PairSums

__all__ = ["PairSums", "compare_pairs"]


def compare_pairs(curves: Curves, pairs: Int[Tensor, "pair 2"]) -> PairSums:
    """Sums of LR, RPP and IPP over the trial pairs of every instance and pair of systems.

    Args:
        curves: the runs' jumps on one clock.
        pairs: the two systems of each pair.
    """
    from torchpref.kernels import reference

    return reference.compare_pairs(curves, pairs)
