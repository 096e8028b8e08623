"""Two systems side by side."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import torchpref as tp
from samples import graded_runs
from torchpref.errors import DataError, UsageError
from torchpref.evaluation.comparison import compare
from torchpref.stats.significance.significance import significance


def cheap_and_good() -> tp.Trajectories:
    """``cheap`` solves 6 of 12 instances at time 1, ``good`` 9 of them at time 5; nobody solves 3."""
    returns = torch.zeros(12, 2, 1, 1)
    returns[:6, 0] = returns[:9, 1] = 1
    times = torch.ones(12, 2, 1, 1)
    times[:, 1] = 5
    return tp.Trajectories(returns, times={"cost": times}, systems=["cheap", "good"])


def test_the_split_shows_a_cheap_system_that_solves_less():
    found = compare(cheap_and_good(), "cheap", "good")
    lr = found["LR"]
    assert (lr.won, lr.lost, lr.tied, lr.instances) == (6, 3, 3, 12)
    assert lr.split == pytest.approx({"solved more": -3 / 12, "sooner": 6 / 12, "further": 0})
    assert lr.mean == pytest.approx(3 / 12) and lr.contradiction
    assert "LR prefers cheap, yet good solves more" in repr(found)
    assert found["sr"].mean == pytest.approx(-3 / 12)
    assert found.clock == "cost"


def test_turned_round_everything_changes_its_sign():
    runs = graded_runs(instances=30, systems=3, trials=2)
    one, other = compare(runs, "system-1", "system-3"), compare(runs, "system-3", "system-1")
    for name in tp.MEASURES:
        a, b = one[name], other[name]
        assert (a.mean, a.low, a.high) == pytest.approx((-b.mean, -b.high, -b.low), nan_ok=True)
        assert (a.won, a.lost, a.tied, a.p, a.reversal) == (b.lost, b.won, b.tied, b.p, b.reversal)
        if a.levels is not None:
            assert [(c.level, c.first, c.second) for c in a.levels] == [(c.level, c.second, c.first) for c in b.levels]
    assert one["lr"].split == pytest.approx({k: -v for k, v in other["lr"].split.items()})


def test_p_values_and_means_are_those_of_the_two_alone():
    runs = graded_runs(instances=30, systems=3)
    found = compare(runs, "system-1", "system-2", ["rpp", "lr"])
    assert list(found.measures) == ["lr", "rpp"]
    tests = significance(tp.preferences(runs.select(systems=["system-1", "system-2"]), "rpp"))
    assert found["rpp"].p == tests.p[0] and found["rpp"].mean == tests.mean[0]
    assert sum(instance.share for instance in found["rpp"].deciding) == pytest.approx(found["rpp"].mean)


def test_levels_are_counted_and_many_of_them_put_into_tenths():
    found = compare(cheap_and_good(), "cheap", "good", "rpp")["rpp"]
    assert [vars(c) for c in found.levels] == [{"level": 1.0, "instances": 9, "first": 6, "second": 3}]
    runs = graded_runs(instances=30, systems=2, levels=4)
    assert [c.level for c in compare(runs, "system-1", "system-2", "lr")["lr"].levels] == [
        0.25,
        0.5,
        0.75,
        1.0,
    ]
    many = compare(graded_runs(instances=30, systems=2, levels=16), "system-1", "system-2", "lr")["lr"].levels
    assert [c.level for c in many] == pytest.approx([k / 10 for k in range(1, 11)])


def test_without_the_deciding_instances_the_sign_is_gone():
    runs = graded_runs(instances=25, systems=2, seed=4)
    found = compare(runs, "system-1", "system-2", "rpp")["rpp"]
    names = [instance.instance for instance in found.deciding]
    rest = [runs.instances.index(name) for name in names[found.reversal :]]
    less = [runs.instances.index(name) for name in names[found.reversal - 1 :]]
    sign = np.sign(found.mean)
    assert sign * tp.preferences(runs.take(instances=sorted(rest)), "rpp").pair_means()[0] <= 1e-12
    assert sign * tp.preferences(runs.take(instances=sorted(less)), "rpp").pair_means()[0] > 0


def test_only_shared_instances_and_weights_count():
    runs = graded_runs(instances=20, systems=3, missing=0.4)
    found = compare(runs, "system-1", "system-2", "rpp")
    prefs = tp.preferences(runs, "rpp")
    assert found["rpp"].mean == pytest.approx(float(prefs.mean()[0, 1]))
    assert found["rpp"].instances == int(prefs.shared()[0, 1])
    weights = list(range(1, 21))
    weighted = compare(runs, "system-1", "system-2", "rpp", weights=weights)
    assert weighted["rpp"].mean == pytest.approx(float(tp.preferences(runs, "rpp", weights=weights).mean()[0, 1]))


def test_instances_of_no_weight_add_nothing():
    found = compare(graded_runs(instances=5, systems=2), "system-1", "system-2", "rpp", weights=[0] * 5)["rpp"]
    assert np.isnan(found.mean) and found.reversal == 0
    assert [instance.share for instance in found.deciding] == [0.0] * 5


def test_runs_without_a_clock():
    runs = graded_runs()
    bare = tp.Trajectories.from_integers(
        returns=runs.returns, lengths=runs.lengths, present=runs.present, times={},
        systems=runs.systems, instances=runs.instances, benchmarks=runs.benchmarks,
    )  # fmt: skip
    found = compare(bare, "system-1", "system-2")
    assert list(found.measures) == ["sr", "pr"] and found.clock is None


def test_it_converts():
    found = compare(graded_runs(), "system-1", "system-2")
    plain = json.loads(json.dumps(found.to_dict()))
    assert set(plain["measures"]) == set(tp.MEASURES) and plain["measures"]["rpp"]["levels"]
    assert found.to_frame().height == 6
    with pytest.raises(UsageError, match="PR was not compared"):
        compare(graded_runs(), "system-1", "system-2", "sr")["pr"]


def test_what_cannot_be_compared():
    runs = graded_runs(instances=4)
    with pytest.raises(UsageError, match="no system 'system-11'; did you mean 'system-1'"):
        compare(runs, "system-11", "system-2")
    with pytest.raises(UsageError, match="itself"):
        compare(runs, "system-1", "system-1")
    present = runs.present.clone()
    present[:2, 0] = present[2:, 1] = False
    apart = tp.Trajectories(runs.returns.double() / 1e6, present=present)
    with pytest.raises(DataError, match="'system-1' and 'system-2' share no instance"):
        compare(apart, "system-1", "system-2")


def test_the_text_has_a_line_per_measure():
    runs = tp.Trajectories(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[:, :, None], systems=["A", "B"])
    (line,) = [line for line in repr(tp.compare(runs, "A", "B", "sr")).splitlines() if line.split()[:1] == ["SR"]]
    assert line.split()[1] == "+0.3333" and line.split()[-3:] == ["2", "1", "0"]
