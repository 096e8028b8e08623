"""Sums over instances: equal, to the bit, to those of stored results, on every path and in any chunks."""

from __future__ import annotations

import pytest
import torch

from kernels.corpus import KINDS, SHAPES, Kind, curves, pairs_of
from torchpref.errors import UsageError
from torchpref.kernels import choice, means, reference
from torchpref.kernels.cpu import means as cpu_means
from torchpref.kernels.mean_sums import MeanSums


def weights_of(count: int) -> torch.Tensor:
    weights = torch.rand(count, dtype=torch.float64, generator=torch.Generator().manual_seed(3)) * 5
    weights[0] = 0
    return weights


def expected(data: object, pairs: torch.Tensor, weights: torch.Tensor) -> MeanSums:
    count = data.present.sum(-1)  # type: ignore[attr-defined]
    trial_pairs = count[:, pairs[:, 0]] * count[:, pairs[:, 1]]
    sums = reference.compare_pairs(data, pairs)  # type: ignore[arg-type]
    return means.of_pair_sums(sums, trial_pairs, weights, means.weight_scale(weights))


def assert_equal(ours: MeanSums, theirs: MeanSums) -> None:
    assert ours.scale == theirs.scale
    for mine, other in zip(ours.tensors(), theirs.tensors(), strict=True):
        assert torch.equal(mine, other)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_paths_give_the_same_bits(kind: Kind, shape: tuple[int, int, int, int, int]) -> None:
    data = curves(kind, shape)
    pairs, weights = pairs_of(data), weights_of(shape[0])
    wanted = expected(data, pairs, weights)
    for form in ("grid", "merge", None):
        assert_equal(cpu_means.mean_pairs(data, pairs, weights, wanted.scale, form), wanted)  # type: ignore[arg-type]
    for cells in (1, 7, 10**6):
        assert_equal(means.mean_pairs(data, pairs, weights, max_cells=cells), wanted)


def test_the_dispatched_path_is_the_compiled_one_for_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    data = curves(KINDS[1], (70, 5, 1, 10, 12))
    pairs, weights = pairs_of(data), weights_of(70)
    wanted = expected(data, pairs, weights)
    monkeypatch.setattr(choice, "COMPILE_AFTER", 0.0)
    monkeypatch.setattr(reference, "compare_pairs", None)
    assert_equal(means.mean_pairs(data, pairs, weights), wanted)


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_nothing(threads: int) -> None:
    data = curves(KINDS[6], (40, 6, 2, 5, 40))
    pairs, weights = pairs_of(data), weights_of(40)
    wanted = cpu_means.mean_pairs(data, pairs, weights, 8.0)
    torch.set_num_threads(threads)
    try:
        assert_equal(cpu_means.mean_pairs(data, pairs, weights, 8.0), wanted)
    finally:
        torch.set_num_threads(1)


def test_parts_add_up() -> None:
    data = curves(KINDS[6], (40, 4, 2, 5, 12))
    pairs, weights = pairs_of(data), weights_of(40)
    scale = means.weight_scale(weights)
    whole = means.mean_pairs(data, pairs, weights)
    parts = [
        means.mean_pairs(data.instances(part), pairs, weights[part], scale) for part in (slice(0, 13), slice(13, 40))
    ]
    assert_equal(parts[0] + parts[1], whole)
    with pytest.raises(UsageError, match="scales"):
        _ = parts[0] + means.mean_pairs(data, pairs, weights, scale * 2)
