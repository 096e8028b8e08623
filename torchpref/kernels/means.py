"""Sums over instances without the instances: what means, tie rates and rankings need, and nothing of size [instance, pair].

Every term of a mean is rounded to fixed point by itself (:mod:`torchpref.runs.exact_sum`), so sums of chunks, shards and
processes add up to the same bits as one pass, and to those of :class:`torchpref.pairwise.preferences.Preferences`.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchpref.kernels.mean_sums import MAX_CELLS, MeanSums, of_pair_sums, weight_scale
from torchpref.runs.curves import Curves


def mean_pairs(
    curves: Curves,
    pairs: Int[Tensor, "pair 2"],
    weights: Float[Tensor, " instance"],
    scale: float | None = None,
    max_cells: int = MAX_CELLS,
) -> MeanSums:
    """Sums over instances of LR, RPP and IPP of all pairs, in bounded memory.

    Args:
        curves: the runs' jumps on one clock.
        pairs: int64 ``[pair, 2]``, the two systems of each pair.
        weights: v of every instance, at least 0.
        scale: see :func:`weight_scale`; by these weights where None.
        max_cells: bound on (instances × pairs) that torch and CUDA handle at a time; never changes a result.
    """
    from torchpref.kernels import choice, compare_pairs

    scale = weight_scale(weights) if scale is None else scale
    if choice.kernel_for_pairs(curves, len(pairs)) == "cpu":
        from torchpref.kernels.cpu import means as cpu_means

        return cpu_means.mean_pairs(curves, pairs, weights, scale)
    instances = curves.shape[0]
    count = curves.present.sum(-1)
    pair_block = max(1, min(len(pairs), max_cells))
    instance_block = max(1, max_cells // pair_block)
    parts = []
    for start in range(0, len(pairs), pair_block):
        some = pairs[start : start + pair_block].to(curves.levels.device)
        total = MeanSums.zeros(len(some), scale, curves.levels.device)
        for first in range(0, instances, instance_block):
            rows = slice(first, first + instance_block)
            trial_pairs = count[rows][:, some[:, 0]] * count[rows][:, some[:, 1]]
            total = total + of_pair_sums(compare_pairs(curves.instances(rows), some), trial_pairs, weights[rows], scale)
        parts.append(total)
    if not parts:
        return MeanSums.zeros(0, scale, curves.levels.device)
    columns = zip(*(part.tensors() for part in parts), strict=True)
    return MeanSums(scale, *(torch.cat(column, -1) for column in columns))
