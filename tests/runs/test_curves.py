"""Jumps, grids and time-to-return."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings

import torchpref as tp
from cases import cases
from profiles import examples
from torchpref.runs.curves import LEVEL_PAD, curves, grid_levels, union_levels
from torchpref.runs.units import MILLION, NEVER, UNKNOWN


@settings(max_examples=examples(200))
@given(cases())
def test_jumps_are_the_values_that_f_takes(case):
    jumps = curves(case.trajectories())
    for i, row in enumerate(case.runs):
        for s, cell in enumerate(row):
            for t, run in enumerate(cell):
                levels = [level for level in jumps.levels[i, s, t].tolist() if level != LEVEL_PAD]
                if run is None:
                    assert levels == []
                    continue
                assert levels == sorted(run.attained())
                times = [run.time_to(level) for level in levels]
                assert jumps.ticks[i, s, t, : len(levels)].tolist() == [UNKNOWN if t is None else t for t in times]


@settings(max_examples=examples(100))
@given(cases())
def test_time_to_return(case):
    runs = case.trajectories()
    g = tp.time_to_return(runs)
    for i, row in enumerate(case.runs):
        attained = sorted({level for cell in row for run in cell if run for level in run.attained()})
        assert [level for level in g.levels[i].tolist() if level != LEVEL_PAD] == attained
        for s, cell in enumerate(row):
            for t, run in enumerate(cell):
                for k, level in enumerate(attained):
                    tick = g.ticks[i, s, t, k].item()
                    if run is None or not run.reached(level):
                        assert tick == NEVER
                    else:
                        assert tick == (UNKNOWN if run.time_to(level) is None else run.time_to(level))


def test_times_in_the_clock_s_unit():
    runs = tp.Trajectories(
        torch.tensor([[[0.5, 1.0], [0.25, 0.25]]]), times={"cost": torch.tensor([[[0.5, math.nan], [1.0, 2.0]]])}
    )
    times = tp.time_to_return(runs).times()[0, :, 0]
    assert times[0].tolist()[:2] == [0.5, 0.5] and math.isnan(times[0, 2])
    assert times[1].tolist() == [1.0, math.inf, math.inf]


def test_grids():
    assert grid_levels("exact") is None
    assert grid_levels(4) == grid_levels("uniform(4)") == (250_000, 500_000, 750_000, MILLION)
    assert grid_levels([1.0, 1 / 3, 0.333333]) == (333_333, MILLION)
    for bad in ("fine", "uniform(x)", 0, [0.0], [1.2], [], ["a"]):
        with pytest.raises((tp.UsageError, ValueError)):
            grid_levels(bad)
    g = tp.time_to_return(tp.Trajectories(torch.tensor([[[0.3, 0.8]]])), grid=4)
    assert g.levels.tolist() == [[250_000, 500_000, 750_000, MILLION]]
    assert g.ticks[0, 0, 0].tolist() == [1, 2, 2, NEVER]


def test_no_levels_at_all():
    empty = curves(tp.Trajectories(torch.zeros(2, 3, 4)))
    assert empty.shape == (2, 3, 1, 0)
    assert union_levels(empty).shape == (2, 0)
    assert tp.time_to_return(tp.Trajectories(torch.zeros(2, 3, 0))).ticks.shape == (2, 3, 1, 0)


def test_thousands_of_levels():
    values = torch.linspace(0, 1, 3001, dtype=torch.float64)[1:].expand(1, 2, -1)
    runs = tp.Trajectories(values, times={"steps": torch.stack([torch.arange(3000.0), torch.arange(3000.0) + 1])[None]})
    prefs = tp.all_preferences(runs, ("lr", "rpp", "ipp"))
    assert prefs["rpp"].delta.item() == 1 and prefs["lr"].delta.item() == 1
    # Equal waiting times everywhere but in the first interval.
    assert prefs["ipp"].delta.item() == pytest.approx(1 / 3000, abs=1e-6)
