"""Trajectories from tensors: what is checked, what is kept apart, what selecting and cutting leave alone."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import torchpref as tp
from cases import cases
from profiles import examples
from torchpref.runs.names import natural_key
from torchpref.runs.units import NEVER, UNKNOWN, to_ticks

NAN = float("nan")


def example(**options: object) -> tp.Trajectories:
    returns = torch.tensor([[[0.25, 0.5, 0.25], [0.0, 1.0, 0.0]], [[0.5, 0.5, 1.0], [0.75, 0.0, 0.0]]])
    times = torch.tensor([[[1.0, 2.0, 3.0], [1.0, 5.0, 9.0]], [[0.0, NAN, 4.0], [2.0, 2.0, 2.0]]])
    defaults = {"times": {"cost": times}, "systems": ["b", "a"], "instances": ["y", "x"]}
    return tp.Trajectories(returns, torch.tensor([[3, 2], [3, 1]]), **(defaults | options))


def test_levels_are_millionths_and_the_running_maximum_is_taken():
    runs = example()
    assert runs.systems == ("a", "b") and runs.instances == ("x", "y")
    assert runs.returns[1, 1, 0].tolist() == [250_000, 500_000, 500_000]
    assert runs.returns[1, 0, 0].tolist() == [0, 1_000_000, 1_000_000]
    assert runs.returns[0, 0, 0].tolist() == [750_000] * 3
    thirds = tp.Trajectories(torch.tensor([[[0.333333, 1 / 3, 0.33333334]]], dtype=torch.float64))
    assert thirds.returns.unique().tolist() == [333_333]
    ten = tp.Trajectories(torch.tensor([[[sum([0.1] * 10)]]], dtype=torch.float64))
    assert ten.returns.item() == 1_000_000


def test_times_are_ticks():
    runs = example()
    assert runs.times["cost"][0, 1, 0].tolist() == [0, UNKNOWN, 4_000_000_000]
    assert to_ticks(torch.tensor([0.1 + 0.2, 0.3], dtype=torch.float64), 1e-6).tolist() == [300_000, 300_000]
    assert to_ticks(torch.tensor([2.0, 2.49]), 1.0).tolist() == [2, 2]
    assert to_ticks(torch.tensor([3.0, 7.5]), 2.5).tolist() == [1, 3]


def test_three_things_that_look_alike():
    runs = tp.Trajectories(torch.zeros(1, 3, 2), torch.tensor([[2, 0, 0]]), present=torch.tensor([[True, True, False]]))
    assert runs.present.flatten().tolist() == [True, True, False]
    assert runs.lengths.flatten().tolist() == [2, 0, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"returns": torch.zeros(2)}, "must be"),
        ({"returns": torch.tensor([[[0.5, 1.5]]])}, r"returns\[\[0, 0, 0, 1\]\] is 1.5, not in \[0, 1\]"),
        ({"returns": torch.tensor([[[NAN]]])}, "is nan.*mark missing runs"),
        ({"returns": torch.tensor([[[3]]])}, "whole number 3"),
        ({"lengths": torch.tensor([[5]])}, "is 5; a length lies between 0 and 2"),
        ({"lengths": torch.tensor([[0.5]])}, "lengths must be whole numbers"),
        ({"lengths": torch.zeros(3, 3, dtype=torch.long)}, r"lengths has shape \[3, 3, 1\]"),
        ({"times": {"cost": torch.tensor([[[2.0, 1.0]]])}}, "goes backwards at index .* 1.0 after 2"),
        ({"times": {"cost": torch.tensor([[[-2.0, 1.0]]])}}, "time -2.0 cannot be used"),
        ({"times": {"cost": torch.tensor([[[1.0, float("inf")]]])}}, "time inf cannot be used"),
        ({"times": {"cost": torch.tensor([[[1.0, 1e15]]])}}, "coarser resolution"),
        ({"times": {"cost": torch.zeros(1, 1, 3)}}, r"times\['cost'\] has shape"),
        ({"systems": ["a", "b"]}, "2 system names are given, but the tensors hold 1"),
        ({"systems": "a"}, "must be a list of strings"),
        ({"resolution": {"cost": 1.0}}, "does not have|do not have"),
        ({"resolution": {"steps": 0.0}}, "positive number"),
        ({"reference_time": torch.ones(3)}, "one number per instance"),
        ({"reference_time": {"cost": torch.ones(1)}}, "which these runs do not have"),
        ({"zero_time": "never"}, "'unknown' or 'keep'"),
        ({"truncated": torch.ones(1, 1, 1, 1, dtype=torch.bool)}, "truncated has shape"),
    ],
)
def test_bad_tensors(change, message):
    arguments = {"returns": torch.tensor([[[0.5, 1.0]]])} | change
    with pytest.raises(tp.TorchPrefError, match=message):
        tp.Trajectories(arguments.pop("returns"), **arguments)


def test_names_must_be_distinct():
    with pytest.raises(tp.DataError, match="'a' stands twice"):
        tp.Trajectories(torch.zeros(1, 2, 1), systems=["a", "a"])
    two = tp.Trajectories(torch.zeros(2, 1, 1), instances=["x", "x"], benchmarks=["one", "two"])
    assert two.instances == ("x", "x")


def test_frozen():
    with pytest.raises(AttributeError):
        example().systems = ()


def test_clock_rule():
    ones = torch.ones(1, 1, 1)
    assert tp.Trajectories(ones).clock() == "steps"
    assert tp.Trajectories(ones, times={"cost": ones, "turns": ones}).clock() == "turns"
    assert tp.Trajectories(ones, times={"seconds": ones}).clock() == "seconds"
    several = tp.Trajectories(ones, times={"seconds": ones, "cost": ones})
    with pytest.raises(tp.UsageError, match=r"several clocks \(seconds, cost\); name one"):
        several.clock()
    assert several.clock("cost") == "cost"
    assert tp.Trajectories(ones, times={"seconds": ones, "cost": ones}, clock="cost").clock() == "cost"
    with pytest.raises(tp.UsageError, match="carry no clock"):
        tp.Trajectories(ones, times={}).clock()


def test_select():
    runs = example()
    assert runs.select(systems="a").systems == ("a",)
    assert runs.select(systems=["b", "a"]).systems == ("a", "b")
    assert runs.select(systems="!a*").systems == ("b",)
    assert runs.select(instances=["y"]).returns.shape[0] == 1
    assert torch.equal(runs.select(instances="y").returns[0], runs.returns[1])
    with pytest.raises(tp.UsageError, match="no system matches 'c'; there are 'a', 'b'"):
        runs.select(systems="c")
    for axis in ("systems", "instances", "benchmarks"):
        with pytest.raises(tp.UsageError, match="selects nothing"):
            runs.select(**{axis: []})
    with pytest.raises(tp.UsageError, match="did you mean 'system-1'"):
        tp.Trajectories(torch.zeros(1, 1, 1)).select(systems="sytem-1")


def test_reference_time_is_fixed_before_selection():
    runs = example()
    assert runs.reference_ticks().tolist() == [4_000_000_000, 5_000_000_000]
    assert runs.select(systems="a").reference_ticks().tolist() == [4_000_000_000, 5_000_000_000]
    given_times = example(reference_time=torch.tensor([3.0, NAN]))
    assert given_times.reference_ticks().tolist() == [4_000_000_000, 3_000_000_000]


def test_until():
    runs = example().until(4.0)
    assert runs.lengths[..., 0].tolist() == [[1, 3], [1, 3]]
    assert runs.returns[..., -1, -1].tolist() == [[750_000, 1_000_000], [0, 500_000]]
    # At cost 0 nothing is known to have been reached, unless zeros are kept.
    assert example().until(0.0).lengths.sum() == 0
    assert example(zero_time="keep").until(0.0).lengths[..., 0].tolist() == [[0, 1], [0, 0]]
    with pytest.raises(tp.UsageError, match="finite number"):
        example().until(NAN)


@settings(max_examples=examples(60))
@given(cases(truncation=False), st.sampled_from([0.0, 0.1, 0.3, 1.1, 8.0, 1e9]))
def test_until_equals_cutting_the_points(case, limit):
    from cases import Case
    from exact import Run

    last = round(limit * 1e6)

    def cut(run: Run) -> Run:
        known = [k for k, (t, _) in enumerate(run.points) if t is not None and t <= last]
        return Run(run.points[: known[-1] + 1] if known else ())

    shorter = Case([[[run and cut(run) for run in cell] for cell in row] for row in case.runs])
    one = tp.all_preferences(case.trajectories().until(limit), ("sr", "pr", "lr", "rpp", "ipp"))
    two = tp.all_preferences(shorter.trajectories(), ("sr", "pr", "lr", "rpp", "ipp"))
    for measure, prefs in one.items():
        assert torch.equal(prefs.sums, two[measure].sums)


def test_zero_time():
    ones, zeros = torch.ones(1, 2, 1), torch.tensor([[[0.0], [5.0]]])

    def lr(clock: str, zero_time: str) -> float:
        runs = tp.Trajectories(ones, times={clock: zeros}, zero_time=zero_time)
        return tp.preferences(runs, "lr").delta.item()

    assert lr("cost", "unknown") == 0 and lr("seconds", "unknown") == 0 and lr("tokens", "unknown") == 0
    assert lr("cost", "keep") == 1
    assert lr("steps", "unknown") == 1 and lr("time", "unknown") == 1


def test_split_trials():
    runs = tp.Trajectories(torch.tensor([[[[1.0], [0.0]]]]), systems=["a"]).split_trials()
    assert runs.systems == ("a#1", "a#2")
    assert tp.preferences(runs, "sr").delta.item() == 1


def test_device_and_repr():
    runs = example()
    assert runs.to("cpu").equals(runs)
    assert "2 systems × 2 instances" in repr(runs) and "cost" in repr(runs)
    assert not runs.equals(example(systems=["c", "a"]))
    assert not runs.equals(example(present=torch.tensor([[True, True], [True, False]])))
    assert not runs.equals(example(times={"cost": torch.ones(2, 2, 3)}))


@settings(max_examples=examples(50))
@given(cases(), st.integers(0, 3))
def test_padding_makes_no_difference_to_equality(case, padding):
    assert case.trajectories().equals(case.trajectories(padding=padding))


@pytest.mark.gpu
def test_cuda():
    runs = example().to("cuda")
    assert runs.device.type == "cuda"
    for measure, prefs in tp.all_preferences(runs).items():
        assert torch.equal(prefs.sums.cpu(), tp.preferences(example(), measure).sums)


def test_natural_key():
    names = ["task-10", "task-9", "task-9a", "Task", ""]
    assert sorted(names, key=natural_key) == ["", "Task", "task-9", "task-9a", "task-10"]


def test_never_is_out_of_reach():
    assert NEVER > 2**61


def test_runs_with_other_reference_times_are_not_equal():
    returns = torch.ones(2, 2, 1, 1)
    runs = tp.Trajectories(returns, reference_time=torch.tensor([1.0, 2.0]))
    assert runs.equals(tp.Trajectories(returns, reference_time=torch.tensor([1.0, 2.0])))
    assert not runs.equals(tp.Trajectories(returns, reference_time=torch.tensor([1.0, 3.0])))
