"""Run the Triton kernel in Triton's interpreter on the corpus and hold it against the reference.

A script, run by test_cuda.py with TRITON_INTERPRET=1 in a process of its own: Triton decides when a kernel is defined.
"""

from __future__ import annotations

import torch

from kernels.corpus import KINDS, assert_same, curves, pairs_of
from torchpref.kernels import reference
from torchpref.kernels.cuda import launch as cuda
from torchpref.runs.curves import Curves

SHAPES = ((1, 2, 1, 1, 1), (2, 4, 1, 6, 8), (2, 3, 2, 4, 6))


def check(data: Curves, pairs: torch.Tensor, what: str, **options: int) -> None:
    assert_same(cuda.compare_pairs(data, pairs, **options), reference.compare_pairs(data, pairs), what)


if __name__ == "__main__":
    cuda.BLOCK = 4
    count = 0
    for kind in KINDS:
        for shape in SHAPES:
            data = curves(kind, shape)
            check(data, pairs_of(data), f"{kind.name} {shape}")
            count += 1
    several_tiles = curves(KINDS[6], (2, 9, 1, 3, 4))
    check(several_tiles, pairs_of(several_tiles), "several tiles")
    check(several_tiles, torch.tensor([[8, 0], [3, 4], [0, 8]]), "some pairs, either way round")
    check(several_tiles, torch.tensor([[1, 2], [1, 2]]), "a pair twice")
    check(several_tiles, pairs_of(several_tiles), "an instance at a time", max_entries=1)
    check(several_tiles, torch.empty((0, 2), dtype=torch.int64), "no pair")
    rpp = cuda.compare_tables(cuda.build(several_tiles), pairs_of(several_tiles), 9, only_rpp=True)[1]
    assert torch.equal(rpp.long(), reference.compare_pairs(several_tiles, pairs_of(several_tiles)).rpp)
    print(f"{count + 6} cases equal")
