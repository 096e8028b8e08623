"""Credit to-go: what a step gets of the preference."""

from __future__ import annotations

import pytest
import torch

import torchpref as tp
from torchpref.rl import group_advantages, preference_rewards, ragged_rewards


def random_batch(seed: int, groups: int = 40) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    returns = torch.randint(0, 5, (groups, 6, 9), generator=generator).double() / 4
    return {
        "returns": returns,
        "lengths": torch.randint(0, 10, (groups, 6), generator=generator),
        "valid": torch.rand(groups, 6, generator=generator) < 0.9,
        "truncated": torch.rand(groups, 6, generator=generator) < 0.3,
    }


@pytest.mark.parametrize("anchor", ["success", "return", None])
@pytest.mark.parametrize("output", ["signed", "win_rate"])
def test_the_first_step_has_the_advantage_of_the_rollout(anchor: str | None, output: str) -> None:
    batch = random_batch(0)
    credit = preference_rewards(**batch, anchor=anchor, output=output, credit="to-go")
    whole = group_advantages(preference_rewards(**batch, anchor=anchor, output=output), batch["valid"])
    begun = batch["lengths"] > 0
    # A rollout without a step has an advantage and no step to put it on.
    torch.testing.assert_close(credit[..., 0], torch.where(begun, whole, 0), rtol=0, atol=1e-12)


def test_by_hand() -> None:
    """Levels ½ and 1: the first is quicker at ½, the second at 1."""
    returns = torch.tensor([[[0.0, 0.5, 0.5, 1.0], [0.0, 0.0, 1.0, 1.0]]])
    credit = preference_rewards(returns, anchor=None, credit="to-go")
    assert credit.tolist() == [[[0.0, 0.0, -0.5, -0.5], [0.0, 0.0, 0.0, 0.0]]]
    # One that fails, one that succeeds: success is a part of the level 1, and is decided at the last step of the second.
    returns = torch.tensor([[[0.5, 0.5, 0.5], [0.0, 1.0, 1.0]]])
    credit = preference_rewards(returns, weight=0.4, credit="to-go")
    torch.testing.assert_close(credit, torch.tensor([[[-0.5, -0.7, -0.7], [0.5, 0.5, 0.0]]]))


def test_the_past_does_not_change_a_step() -> None:
    """Two rollouts that are the same from a step on get the same from there on, however they came to the level."""
    returns = torch.tensor([[[0.5, 0.5, 0.5, 1.0], [0.0, 0.0, 0.5, 1.0], [0.25, 0.25, 0.25, 0.25]]])
    credit = preference_rewards(returns, credit="to-go")
    assert credit[0, 0, 3] == credit[0, 1, 3]
    assert credit[0, 0, 0] != credit[0, 1, 0]


def test_tied_groups_have_none_and_thirds_do_not_matter() -> None:
    thirds = torch.tensor([[[1 / 3, 2 / 3, 1.0], [0.333333, 0.666667, 1.0]]], dtype=torch.float64)
    assert preference_rewards(thirds, credit="to-go").tolist() == [[[0.0] * 3] * 2]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_compiles_and_keeps_what_is_unusable_to_the_rollout() -> None:
    batch = random_batch(1, 4)
    compiled = torch.compile(preference_rewards, fullgraph=True, backend="eager")
    assert torch.equal(compiled(**batch, credit="to-go"), preference_rewards(**batch, credit="to-go"))
    batch["valid"][:], batch["lengths"][:] = True, 9
    whole = preference_rewards(**{**batch, "valid": batch["valid"] & (torch.arange(6) != 2)}, credit="to-go")
    batch["returns"][:, 2, 3] = 1.5
    credit = compiled(**batch, credit="to-go")
    assert credit[:, 2].isnan().all()
    assert torch.equal(credit[:, [0, 1, 3, 4, 5]], whole[:, [0, 1, 3, 4, 5]])


def test_shapes_and_refusals() -> None:
    assert preference_rewards(torch.zeros(2, 0, 3), credit="to-go").shape == (2, 0, 3)
    assert preference_rewards(torch.zeros(2, 3, 0), credit="to-go").shape == (2, 3, 0)
    assert ragged_rewards(torch.zeros(3, 4), None, ["a", "b", "a"], credit="to-go").shape == (3, 4)
    returns = torch.rand(1, 2, 3)
    for measure in ("lr", "ipp", "sr", "pr", "spl"):
        with pytest.raises(tp.UsageError, match="sum over levels"):
            preference_rewards(returns, measure=measure, credit="to-go")
    with pytest.raises(tp.UsageError, match="credit must be"):
        preference_rewards(returns, credit="segment")  # type: ignore[arg-type]
    times = {"seconds": returns, "steps": None}
    with pytest.raises(tp.UsageError, match="combine='mean'"):
        preference_rewards(returns, times=times, credit="to-go")
    with pytest.raises(tp.UsageError, match="leave clock out"):
        preference_rewards(returns, times=times, clock="seconds")
    with pytest.raises(tp.UsageError, match="several clocks are for"):
        preference_rewards(returns, measure="sr", times=times)
