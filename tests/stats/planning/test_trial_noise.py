"""The spread that comes from runs, against simulated variance components."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import torchpref as tp
from samples import graded_runs
from torchpref.stats.planning.trial_noise import trial_noise


def test_variance_components_are_recovered():
    rng = np.random.default_rng(0)
    base = rng.uniform(0.3, 0.7, (400, 1, 1))
    returns = base + rng.uniform(-0.2, 0.2, (400, 2, 3))  # each run has variance 0.16 / 12
    prefs = tp.preferences(tp.Trajectories(torch.from_numpy(returns).unsqueeze(-1)), "pr")
    noise = trial_noise(prefs)
    assert noise.runs[0] == pytest.approx(2 * 0.16 / 12, rel=0.08)
    assert noise.rest[0] == pytest.approx(0, abs=1e-4)
    assert noise.now[0] == pytest.approx(2 * 0.16 / 12 / 3, rel=0.08)
    assert noise.with_trials(3)[0] == pytest.approx(noise.now[0], rel=0.01)


def test_the_rest_shrinks_with_the_square_of_the_trials():
    prefs = tp.preferences(graded_runs(instances=300, systems=2, trials=4), "lr")
    noise = trial_noise(prefs)
    assert noise.rest[0] > 0.05
    within = prefs.delta.var().item()  # nothing differs between instances here
    assert noise.now[0] == pytest.approx(within, rel=0.1)


def test_without_repeated_trials_nothing_can_be_said():
    assert trial_noise(tp.preferences(graded_runs(), "lr")) is None
