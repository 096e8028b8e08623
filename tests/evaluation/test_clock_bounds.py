"""Bounds over clocks: the worked example, every mixture of clocks inside, and rates found by brute force."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import torchpref as tp
from torchpref.errors import UsageError


def two_clocks(steps, cost, returns=None, **options):
    """[instance, system, step] times; one level by default."""
    steps, cost = torch.as_tensor(np.asarray(steps, dtype=float)), torch.as_tensor(np.asarray(cost, dtype=float))
    levels = torch.ones_like(steps) if returns is None else torch.as_tensor(returns)
    return tp.Trajectories(levels, times={"steps": steps, "cost": cost}, systems=["A", "B"], clock="steps", **options)


def test_worked_example():
    """5 won on both clocks, 2 lost on both, 3 in conflict: between 0 and +.6."""
    a_steps, b_steps = [1] * 5 + [2] * 2 + [1] * 3, [2] * 5 + [1] * 2 + [2] * 3
    a_cost, b_cost = [1] * 5 + [2] * 2 + [3] * 3, [2] * 5 + [1] * 2 + [1] * 3
    runs = two_clocks(np.stack([a_steps, b_steps], 1)[..., None], np.stack([a_cost, b_cost], 1)[..., None])
    for measure in ("lr", "rpp"):
        found = tp.clock_bounds(runs, "A", "B", ["steps", "cost"], measure)
        assert (found.low, found.high) == (pytest.approx(0, abs=1e-12), pytest.approx(0.6, abs=1e-12))
        assert found.conflict == pytest.approx(0.3)
        assert found.means == {"steps": pytest.approx(0.6), "cost": pytest.approx(0.0)}
        # 3 in conflict: 1 step less against 2 dollars more, so they turn at half a step per dollar, to 0
        assert found.rates[0].rates == (pytest.approx(0.5),) and found.rates[0].means == (pytest.approx(0.6), 0.0)
        mirrored = tp.clock_bounds(runs, "B", "A", ["steps", "cost"], measure)
        assert (mirrored.low, mirrored.high) == (pytest.approx(-0.6), pytest.approx(0, abs=1e-12))
    assert "between +0.000 and +0.600 whatever steps and cost are worth" in str(found)


@pytest.mark.parametrize("measure", ["lr", "rpp"])
@pytest.mark.parametrize("seed", range(6))
def test_every_mixture_lies_between_and_turns_where_it_says(measure, seed):
    rng = np.random.default_rng(seed)
    returns = np.sort(rng.integers(0, 5, (12, 2, 4)) / 4, axis=-1)
    steps, cost = (np.cumsum(rng.integers(1, 9, (12, 2, 4)), axis=-1).astype(float) for _ in range(2))
    runs = two_clocks(steps, cost, returns)
    found = tp.clock_bounds(runs, "A", "B", ["steps", "cost"], measure)
    rates = found.rates[0]
    edges = [0.0, *rates.rates, (rates.rates[-1] if rates.rates else 1) * 4]
    for rate in np.geomspace(0.02, 50, 60):
        mixed = tp.Trajectories(
            torch.from_numpy(returns), times={"time": torch.from_numpy(steps + rate * cost)}, systems=["A", "B"]
        )
        mean = float(tp.preferences(mixed, measure).mean()[0, 1])
        assert found.low - 1e-9 <= mean <= found.high + 1e-9
        place = int(np.searchsorted(rates.rates, rate))
        if all(abs(rate - edge) > 1e-3 for edge in edges):
            assert np.sign(round(mean, 9)) == np.sign(rates.means[place]), (rate, rates)
    for clock, mean in found.means.items():
        assert mean == pytest.approx(float(tp.preferences(runs, measure, clock=clock).mean()[0, 1]))


def test_unknown_times_and_limits():
    steps = np.array([[[1.0], [2.0]], [[3.0], [1.0]]])
    cost = np.array([[[np.nan], [2.0]], [[3.0], [5.0]]])
    found = tp.clock_bounds(two_clocks(steps, cost), "A", "B", ["steps", "cost"])
    assert (found.low, found.high) == (-0.5, 1.0)  # [0, 1] where a cost is unknown, [−1, 1] in conflict


def test_bad_input():
    runs = two_clocks(np.ones((3, 2, 1)), np.ones((3, 2, 1)))
    with pytest.raises(UsageError, match="need two clocks"):
        tp.clock_bounds(runs, "A", "B", ["steps", "steps"])
    with pytest.raises(UsageError, match="no clock 'turns'"):
        tp.clock_bounds(runs, "A", "B", ["steps", "turns"])
    with pytest.raises(UsageError, match="not for IPP"):
        tp.clock_bounds(runs, "A", "B", ["steps", "cost"], "ipp")
