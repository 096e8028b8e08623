from __future__ import annotations

import pytest
import torch

from meta.small import partial, random_runs
from torchpref import MEASURES, preferences
from torchpref.meta import change_subgoals
from torchpref.meta.subgoals import CHANGES, annotated_levels, has_subgoals


def final(runs: object) -> list[int]:
    return runs.returns[0, :, 0, -1].tolist()  # type: ignore[attr-defined]


def test_levels_of_an_instance() -> None:
    levels = annotated_levels(partial([[0.25, 0.5, 0.0], [0.0, 0.0, 0.0]]))
    assert levels.tolist() == [[250_000, 500_000, 1_000_000], [1_000_000, 2_000_000, 2_000_000]]
    assert has_subgoals(levels)
    assert not has_subgoals(annotated_levels(partial([[1.0, 0.0]])))


def test_drop_shares_the_weight_and_merge_passes_it_on() -> None:
    # Levels 1/4, 1/2 and success, with weights 1/4, 1/4, 1/2.
    runs = partial([[0.25, 0.5, 1.0, 0.0]])
    seen = {
        change: {tuple(final(change_subgoals(runs, change, seed))) for seed in range(20)}
        for change in ("drop", "merge")
    }
    assert seen["drop"] == {(0, 333_333, 1_000_000, 0), (333_333, 333_333, 1_000_000, 0)}
    assert seen["merge"] == {(0, 500_000, 1_000_000, 0), (250_000, 250_000, 1_000_000, 0)}


def test_jitter_keeps_the_order_and_success() -> None:
    runs = partial([[0.25, 0.5, 1.0, 0.0]])
    for seed in range(20):
        low, middle, top, none = final(change_subgoals(runs, "jitter", seed))
        assert 0 == none < low < middle < top == 1_000_000
        assert 1 / 2 / 4 <= low / (middle - low) <= 4


@pytest.mark.parametrize("change", CHANGES)
def test_success_and_its_time_are_untouched(change: str) -> None:
    runs = random_runs(2, instances=30)
    changed = change_subgoals(runs, change, 0)  # type: ignore[arg-type]
    assert not torch.equal(runs.returns, changed.returns)
    for measure in ("sr", "spl"):
        assert torch.equal(preferences(runs, measure).sums, preferences(changed, measure).sums)


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_to_change_changes_nothing(change: str) -> None:
    runs = partial([[1.0, 0.0], [0.0, 1.0]])
    changed = change_subgoals(runs, change, 0)  # type: ignore[arg-type]
    for measure in MEASURES:
        assert torch.equal(preferences(runs, measure).sums, preferences(changed, measure).sums)


def test_jitter_does_not_move_lr() -> None:
    runs = random_runs(4, instances=30)
    assert torch.equal(preferences(runs, "lr").sums, preferences(change_subgoals(runs, "jitter", 1), "lr").sums)
