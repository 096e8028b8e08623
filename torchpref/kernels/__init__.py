"""LR, RPP and IPP of all pairs of systems in one pass.

A kernel knows tensors of integers, not names: it takes :class:`torchpref.runs.curves.Curves` and pairs of system indices and
returns :class:`PairSums`. All kernels give the same integers; :mod:`torchpref.kernels.choice` says which one works when.
"""

from __future__ import annotations

from jaxtyping import Int
from torch import Tensor

from torchpref.kernels import choice
from torchpref.kernels.pair_sums import PairSums
from torchpref.kernels.warm import warm_up
from torchpref.runs.curves import Curves

__all__ = ["PairSums", "compare_pairs", "warm_up"]


def compare_pairs(curves: Curves, pairs: Int[Tensor, "pair 2"]) -> PairSums:
    """Sums of LR, RPP and IPP over the trial pairs of every instance and pair of systems.

    Args:
        curves: the runs' jumps on one clock.
        pairs: the two systems of each pair.
    """
    kernel = choice.kernel_for_pairs(curves, len(pairs))
    if kernel == "cpu":
        from torchpref.kernels.cpu import choose as cpu

        return cpu.compare_pairs(curves, pairs)
    if kernel == "cuda":
        from torchpref.kernels.cuda.launch import compare_pairs as on_cuda

        return on_cuda(curves, pairs)
    from torchpref.kernels import reference

    return reference.compare_pairs(curves, pairs)
