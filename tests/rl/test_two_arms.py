"""The failure that the anchor is for: bare RPP learns to fail fast, the anchored reward learns to finish."""

from __future__ import annotations

import pytest
import torch

from torchpref.rl import group_advantages, preference_rewards

SEEDS = 10
GROUP = 16


def curves() -> torch.Tensor:
    """[arm, step]: the first takes two thirds at 1 and 2 and never finishes, the second takes thirds at 5, 6 and 7."""
    arms = torch.zeros(2, 7)
    arms[0, 0:] = 1 / 3
    arms[0, 1:] = 2 / 3
    arms[1, 4:] = 1 / 3
    arms[1, 5:] = 2 / 3
    arms[1, 6:] = 1.0
    return arms


def finishing_probability(updates: int = 300, step_size: float = 1.0, **options: object) -> torch.Tensor:
    """[seed]: how likely the policy is to take the finishing arm after training from even odds."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.zeros(SEEDS, 2, requires_grad=True)
    optimiser = torch.optim.SGD([logits], lr=step_size)
    for _ in range(updates):
        chosen = torch.multinomial(logits.detach().softmax(-1), GROUP, replacement=True, generator=generator)
        rewards = preference_rewards(curves()[chosen], **options)  # type: ignore[arg-type]
        log_probability = logits.log_softmax(-1).gather(1, chosen)
        loss = -(group_advantages(rewards) * log_probability).mean(1).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return logits.detach().softmax(-1)[:, 1]


def test_bare_rpp_chooses_the_failing_arm() -> None:
    assert (finishing_probability(measure="rpp", anchor=None) < 0.1).all()


def test_bare_ipp_cannot_tell_the_arms_apart() -> None:
    """One interval is won by each, and one is tied."""
    assert (finishing_probability(measure="ipp", anchor=None) == 0.5).all()


@pytest.mark.parametrize(
    "options",
    [
        {"measure": "rpp"},
        {"measure": "rpp", "output": "win_rate"},
        {"measure": "rpp", "anchor": "return", "weight": 0.15},
        {"measure": "ipp"},
        {"measure": "lr"},
        {"measure": "lr", "anchor": None},
    ],
)
def test_the_finishing_arm_is_chosen(options: dict[str, object]) -> None:
    assert (finishing_probability(**options) > 0.9).all()
