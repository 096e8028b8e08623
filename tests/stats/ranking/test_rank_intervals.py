"""Rank intervals: their critical value against simulation, and what they say in clear and in hopeless cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import torchpref.stats.ranking.rank_intervals as module
from samples import preferences_of, ternary
from torchpref.stats.ranking.rank_intervals import FlippedDifferences, rank_intervals
from torchpref.stats.ranking.score_errors import mean_contributions
from torchpref.stats.resampling.instances import resampling_units


def intervals(delta: np.ndarray, seed: int = 0) -> np.ndarray:
    prefs = preferences_of(delta)
    parts = mean_contributions(prefs, resampling_units(prefs.benchmarks))
    return rank_intervals(prefs.system_means().numpy(), parts, 0.95, seed)[0]


def test_systems_far_apart_have_one_rank_each():
    assert intervals(ternary(300, 4, 0, spread=9)).tolist() == [[4, 4], [3, 3], [2, 2], [1, 1]]


def test_systems_that_cannot_be_told_apart_have_all_ranks():
    assert intervals(ternary(40, 4, 0, spread=0)).tolist() == [[1, 4]] * 4
    assert intervals(np.zeros((40, 3), dtype=np.int64)).tolist() == [[1, 3]] * 3


def test_too_few_instances_say_nothing_and_constant_differences_need_enough():
    assert intervals(ternary(2, 3, 0, spread=9)).tolist() == [[1, 3]] * 3
    always = np.ones((30, 3), dtype=np.int64)
    assert intervals(always).tolist() == [[1, 3]] * 3


def test_the_critical_value_is_that_of_the_largest_t_statistic():
    rng = np.random.default_rng(0)
    top = []
    for _ in range(3000):
        sample = rng.standard_normal((60, 5))
        centred = sample - sample.mean(0)
        first, second = np.triu_indices(5, 1)
        difference = sample[:, first] - sample[:, second]
        top.append(np.abs(difference.mean(0) / (difference.std(0, ddof=1) / np.sqrt(60))).max())
    s = FlippedDifferences(centred, 0).quantile(0.95)
    assert s * np.sqrt(59 / (60 - s * s)) == pytest.approx(np.quantile(top, 0.95), rel=0.05)


def test_seeds_and_pieces(monkeypatch):
    residuals = np.random.default_rng(0).standard_normal((30, 6))
    whole = FlippedDifferences(residuals, 1).quantile(0.95)
    monkeypatch.setattr(module, "_CELLS", 1 << 8)
    torch.set_num_threads(2)
    try:
        assert FlippedDifferences(residuals, 1).quantile(0.95) == whole
    finally:
        torch.set_num_threads(1)
    assert FlippedDifferences(residuals, 2).quantile(0.95) != whole


@pytest.mark.slow
def test_all_true_ranks_are_covered():
    truth = np.arange(12, 0, -1)
    hits = 0
    for seed in range(300):
        bounds = intervals(ternary(60, 12, seed, spread=0.6), seed)
        hits += bool(((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).all())
    assert hits >= 0.93 * 300
