from __future__ import annotations

import pytest
import torch

from meta.small import random_runs
from torchpref import Trajectories
from torchpref.meta import false_alarms


def one_of_two(instances: int, systems: int = 1) -> Trajectories:
    """On every instance one of two trials succeeds."""
    returns = torch.zeros((instances, systems, 2, 1))
    returns[:, :, 0] = 1.0
    return Trajectories(returns)


def test_share_of_draws_by_hand() -> None:
    # Six instances, each a fair coin: only six of a kind is significant (p = 2/64), and that has a chance of 2/64.
    found = false_alarms(one_of_two(6), ["sr"], draws=4000)["sr"]
    assert found.tested == 1
    assert set(found.draws.tolist()) == {0.0, 1.0}
    assert torch.equal(found.pairs, found.draws)
    assert found.draws.mean().item() == pytest.approx(2 / 64, abs=3 * (2 / 64 / 4000) ** 0.5)
    # Five instances can never be significant.
    assert false_alarms(one_of_two(5), ["sr"], draws=500)["sr"].draws.sum() == 0


def test_holm_counts_all_pairs_of_a_draw() -> None:
    # Two systems: two pairs; 2/64 is more than 0.05 / 2, and 2/128 is less.
    assert false_alarms(one_of_two(6, systems=2), ["sr"], draws=500)["sr"].draws.sum() == 0
    found = false_alarms(one_of_two(7, systems=2), ["sr"], draws=4000)["sr"]
    wanted = 1 - (1 - 2 / 128) ** 2
    assert found.draws.mean().item() == pytest.approx(wanted, abs=3 * (wanted / 4000) ** 0.5)
    assert found.pairs.mean().item() == pytest.approx(found.draws.mean().item() / 2, abs=0.002)


def test_nothing_without_trials() -> None:
    assert false_alarms(random_runs(0), ["sr", "rpp"]) == {}


def test_seed() -> None:
    runs = random_runs(0, trials=3, missing=0.2)
    first, again, other = (false_alarms(runs, ["rpp"], draws=50, seed=seed, alpha=0.3)["rpp"] for seed in (1, 1, 2))
    assert torch.equal(first.pairs, again.pairs)
    assert not torch.equal(first.pairs, other.pairs)


@pytest.mark.parametrize("measure", ["sr", "pr", "spl", "lr", "rpp", "ipp"])
def test_the_promise_is_kept(measure: str) -> None:
    runs = random_runs(3, instances=60, systems=3, trials=4, missing=0.1)
    share = false_alarms(runs, [measure], draws=400)[measure].draws.mean().item()
    assert share <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5
