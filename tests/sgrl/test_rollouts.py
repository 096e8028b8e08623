"""Rollouts in tables: their curves, their lengths, and that they sample the policy they are given."""

from __future__ import annotations

import numpy as np
import torch

from torchpref.sgrl.exact import exact_times
from torchpref.sgrl.rollouts import Tables, rollouts
from torchpref.sgrl.tabular import TabularTask, concatenate


def corridor(length: int) -> TabularTask:
    """A corridor with success at its end and half the return in its middle, latched by a wall behind."""
    states, middle = np.arange(length), length // 2
    left = np.where(states == middle, middle, np.maximum(states - 1, 0))
    right = np.minimum(states + 1, length - 1)
    left[-1] = length - 1
    return TabularTask(
        successors=np.stack([left, right], axis=1),
        level=np.where(states == length - 1, 1.0, np.where(states >= middle, 0.5, 0.0)),
        starts=np.array([0]),
        instances=(f"corridor-{length}",),
        actions=("left", "right"),
        environment_actions=(0, 1),
        labels=states[:, None],
        features=("place",),
    )


def test_curves_and_lengths_are_those_of_the_actions() -> None:
    task = concatenate([corridor(4), corridor(6)])
    instance = torch.arange(2).repeat_interleave(50).reshape(2, 50)
    generator = torch.Generator().manual_seed(0)
    out = rollouts(Tables.of(task), torch.zeros(10, 2), instance, 12, generator)
    assert out.returns.shape == out.states.shape == (2, 50, 12)
    visited = task.rollout(out.actions.reshape(100, 12).numpy(), instance.reshape(-1).numpy())
    level = task.level[visited].reshape(2, 50, 12)
    np.testing.assert_array_equal(out.returns.numpy(), level)
    np.testing.assert_array_equal(out.states[..., 1:].reshape(100, 11).numpy(), visited[:, :-1])
    solved = level[..., -1] >= 1
    np.testing.assert_array_equal(out.solved.numpy(), solved)
    assert 0 < solved.sum() < 100
    first = np.where(solved, (level >= 1).argmax(axis=-1) + 1, 12)
    np.testing.assert_array_equal(out.lengths.numpy(), first)
    np.testing.assert_array_equal(out.mask.sum(dim=-1).numpy(), first)


def test_the_policy_is_sampled() -> None:
    task = corridor(6)
    policy = torch.as_tensor(task.policy(0.5))
    out = rollouts(
        Tables.of(task),
        policy.log(),
        torch.zeros(20_000, dtype=torch.int64),
        15,
        torch.Generator().manual_seed(1),
    )
    chances = exact_times(task, [0.5], 15).reached[0]
    for index, level in enumerate((0.5, 1.0)):
        share = (out.returns >= level).double().mean(dim=0).numpy()
        error = np.sqrt(chances[index, 1:] * (1 - chances[index, 1:]) / 20_000)
        assert (np.abs(share - chances[index, 1:]) <= 5 * error + 1e-12).all()


def test_same_seed_same_rollouts() -> None:
    tables, logits = Tables.of(corridor(5)), torch.zeros(5, 2)
    instance = torch.zeros(3, 4, dtype=torch.int64)
    first, again, other = (
        rollouts(tables, logits, instance, 8, torch.Generator().manual_seed(seed)) for seed in (5, 5, 6)
    )
    assert torch.equal(first.actions, again.actions)
    assert not torch.equal(first.actions, other.actions)
