"""Runs drawn anew within instances: against drawing them one by one, and the spread that they add."""

from __future__ import annotations

import pytest
import torch

import torchpref as tp
from samples import graded_runs
from torchpref.pairwise.run_sums import run_sums
from torchpref.stats.ranking.ranking import rank
from torchpref.stats.resampling.instances import BLOCK
from torchpref.stats.resampling.runs import TrialResampler


@pytest.mark.parametrize("measure", ["pr", "lr", "rpp"])
def test_means_are_those_of_the_drawn_runs(measure):
    runs = graded_runs(instances=4, systems=3, trials=3, missing=0.3, seed=3)
    prefs = tp.preferences(runs, measure, weights=[1.0, 2.0, 0.5, 1.0])
    sampler = TrialResampler(prefs, 0)
    weights = torch.tensor([[1, 1, 1, 1], [2, 0, 1, 1], [0, 0, 4, 0]])
    means = sampler.means(weights, start=BLOCK - 1).means
    for row in range(3):
        for pair, (a, b) in enumerate(prefs.pairs.tolist()):
            total = weight = 0.0
            for one in run_sums(prefs):
                drawn = sampler._multiplicities(one, BLOCK - 1, BLOCK + 2)[row]
                first, second = (torch.nonzero(one.system == s).flatten().tolist() for s in (a, b))
                if not first or not second:
                    continue
                assert drawn[first].sum() == len(first)
                share = float(weights[row, one.instance]) * float(prefs.weights[one.instance])
                each = sum(float(drawn[i] * drawn[j] * one.matrix[i, j]) for i in first for j in second)
                total += share * each / (prefs.unit * len(first) * len(second))
                weight += share
            assert means[row, pair].item() == pytest.approx(total / weight if weight else float("nan"), nan_ok=True)


def test_drawing_runs_widens_percentiles_and_obeys_the_seed():
    prefs = tp.preferences(graded_runs(instances=40, systems=3, trials=3), "rpp")
    instances, both = rank(prefs, bootstrap=600), rank(prefs, bootstrap=600, trials=True)
    widths = [(b.percentile[:, 1] - b.percentile[:, 0]).mean().item() for b in (instances, both)]
    assert 1.1 * widths[0] < widths[1] < 2 * widths[0]
    assert rank(prefs, bootstrap=600, trials=True).to_dict() == both.to_dict()
    assert torch.equal(both.interval, instances.interval)


def test_one_trial_has_nothing_to_draw():
    prefs = tp.preferences(graded_runs(instances=30, systems=3), "rpp")
    one, other = rank(prefs, bootstrap=300), rank(prefs, bootstrap=300, trials=True)
    assert one.percentile.numpy() == pytest.approx(other.percentile.numpy(), abs=1e-9)
