"""The whole evaluation: what it says of small cases worked by hand, and of the reference data."""

from __future__ import annotations

import json
import math

import pytest
import torch

from torchpref import Trajectories
from torchpref.errors import UsageError
from torchpref.evaluation.evaluate import evaluate
from torchpref.evaluation.result import Evaluation
from torchpref.runs.measures import MEASURES

#: The keys that users rely on.
TOP = {"version", "clock", "options", "seed", "systems", "n_instances", "n_shared", "judge", "measures", "audit"}
MEASURE = {"status", "theta", "interval", "rank", "mean_preference", "tie_rate", "benchmarks"}


def success_runs(times: dict[str, list[float | None]], clock: str = "steps", **options: object) -> Trajectories:
    """One run per instance that succeeds at the given time, or never where it is None; NaN: at an unknown time."""
    systems = list(times)
    columns = [times[name] for name in systems]
    returns = torch.tensor([[[0.0 if t is None else 1.0] for t in row] for row in zip(*columns, strict=True)])
    when = torch.tensor([[[1.0 if t is None else t] for t in row] for row in zip(*columns, strict=True)])
    return Trajectories(returns.unsqueeze(-1), times={clock: when.double().unsqueeze(-1)}, systems=systems, **options)


@pytest.fixture(scope="module")
def three() -> Evaluation:
    """A is quick, B is slow but solves as much, C solves less."""
    runs = success_runs(
        {
            "A": [2, 3, 9, None],
            "B": [4, 5, 6, None],
            "C": [None, 6, None, 2],
        }
    )
    return evaluate(runs)


def test_mean_preferences_and_ties_are_those_of_the_definitions(three: Evaluation) -> None:
    lr = three["LR"]
    # A:B = +, +, -, tie; A:C = +, +, +, -; B:C = +, +, +, -.
    assert lr.mean_preference[0].tolist() == [0.0, 0.25, 0.5]
    assert lr.mean_preference[1].tolist() == [-0.25, 0.0, 0.5]
    assert lr.tie_rate == 1 / 12
    assert three["sr"].tie_rate == (4 + 1 + 1) / 12
    assert lr.rank == (1, 2, 3)
    assert three["sr"].rank == (1, 1, 3)
    assert lr.run_pairs == 12


def test_summary_of_the_runs(three: Evaluation) -> None:
    assert three.summary.success_rate.tolist() == [0.75, 0.75, 0.5]
    assert three.summary.partial_return.tolist() == [0.75, 0.75, 0.5]
    assert three.summary.median_time is not None
    assert three.summary.median_time.tolist() == [3.0, 5.0, 4.0]
    assert three.summary.instances.tolist() == [4, 4, 4]


def test_split_adds_up_to_the_mean_preference(three: Evaluation) -> None:
    split = three["lr"].split
    assert split is not None and set(split) == {"solved more", "sooner", "further"}
    assert torch.allclose(sum(split.values(), torch.zeros(3)), three["lr"].mean, atol=1e-15)
    # Against B and C: A solved more on +2/4 - 1/4 of C's instances and none of B's.
    assert split["solved more"][0].item() == (0 + 0.25) / 2


def test_contradicting_pairs_are_counted_and_the_worst_named() -> None:
    cheap = [1.0, 1, 1, 1, None]
    dear = [2.0, 2, 2, 2, 2]
    found = evaluate(success_runs({"cheap": cheap, "dear": dear}, clock="cost"), clock="cost")
    (finding,) = [each for each in found.findings if each.kind == "contradicting_pairs"]
    assert finding.count == 1 and finding.severity == "warning"
    assert finding.systems == ("cheap", "dear")
    assert finding.examples == ("cheap over dear: +0.600 = solved more -0.200, sooner +0.800, further +0.000",)
    assert "contradicting_pairs" in [each["kind"] for each in found.to_dict()["audit"]["findings"]]
    turned = evaluate(success_runs({"cheap": dear, "dear": cheap}, clock="cost"), clock="cost")
    assert [each.count for each in turned.findings if each.kind == "contradicting_pairs"] == [1]
    agreeing = evaluate(success_runs({"cheap": [1.0, 1, 1], "dear": [2.0, 2, None]}, clock="cost"))
    assert not [each for each in agreeing.findings if each.kind == "contradicting_pairs"]


def test_dict_is_the_contract_and_is_json(three: Evaluation) -> None:
    record = three.to_dict()
    assert set(record) == TOP
    assert set(record["measures"]) == set(MEASURES)
    for measure in record["measures"].values():
        assert set(measure) == MEASURE
        assert len(measure["theta"]) == len(measure["rank"]) == 3
        assert measure["interval"] is None
    assert record["systems"] == ["A", "B", "C"]
    assert record["n_instances"] == 4
    assert record["n_shared"] == [[4, 4, 4]] * 3
    assert record["clock"] == "steps"
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_null_where_a_value_does_not_exist() -> None:
    returns = torch.tensor([[[1.0], [0.0], [0.0]], [[0.0], [1.0], [0.0]], [[0.0], [0.0], [1.0]]]).unsqueeze(-1)
    present = torch.tensor([[True, True, False], [True, True, False], [False, False, True]]).unsqueeze(-1)
    found = evaluate(Trajectories(returns, present=present, systems=["a", "b", "lonely"]), "sr")
    record = found.to_dict()["measures"]["sr"]
    assert record["mean_preference"] == [[0.0, 0.0, None], [0.0, 0.0, None], [None, None, 0.0]]
    assert record["theta"][2] is None and record["rank"] == [1, 1, None]
    assert "lonely" in record["status"] and record["status"] != "ok"
    assert found.to_dict()["n_shared"] == [[2, 2, 0], [2, 2, 0], [0, 0, 1]]
    (apart,) = [each for each in found.findings if each.kind == "pairs_without_shared_instance"]
    assert apart.count == 2 and apart.examples[0] == "a and lonely"


def test_a_system_that_never_wins_has_no_score_but_a_rank() -> None:
    found = evaluate(success_runs({"good": [1, 1, 1], "fair": [1, 2, 3], "bad": [None, None, None]}), "lr")
    lr = found["lr"]
    assert "separated" in lr.status and "bad" in lr.status
    order = [found.systems[i] for i in lr.order]
    assert order == ["good", "fair", "bad"] and lr.rank == (3, 2, 1)
    position = found.systems.index("bad")
    assert math.isnan(lr.theta[position].item())
    assert lr.mean[position].item() == -1.0


def test_runs_without_a_clock_are_compared_by_success_and_return() -> None:
    runs = Trajectories(torch.tensor([[[1.0], [0.0]], [[0.0], [0.0]]]).unsqueeze(-1), times={}, systems=["a", "b"])
    assert runs.clocks == ()
    found = evaluate(runs)
    assert found.clock is None
    assert found["sr"].preferences is not None and found["sr"].mean_preference[0, 1] == 0.5
    for name in ("spl", "lr", "rpp", "ipp"):
        assert found[name].status.startswith("no clock")
        record = found.to_dict()["measures"][name]
        assert record["theta"] == [None, None] and record["tie_rate"] is None
    assert [each.kind for each in found.findings if each.kind == "measures_without_clock"]
    assert "no clock" in repr(found)
    with pytest.raises(UsageError, match="carry no clock"):
        evaluate(runs, "rpp")
    with pytest.raises(UsageError, match="no clock 'steps'"):
        evaluate(runs, clock="steps")


def test_a_system_without_a_usable_clock_has_no_temporal_score() -> None:
    """Its prices were never recorded: nobody knows whether it was cheap."""
    runs = success_runs({"a": [1.0, 2, None], "b": [3.0, 1, 2], "free": [0.0, 0, 0]}, clock="cost")
    found = evaluate(runs)
    free = found.systems.index("free")
    for name in ("spl", "lr", "rpp", "ipp"):
        result = found[name]
        assert math.isnan(result.theta[free].item()) and result.rank[free] is None
        assert "no usable cost: free" in result.status
        assert torch.isnan(result.mean_preference[free]).all()
        assert sorted(place for place in result.rank if place) in ([1, 1], [1, 2])
    assert found["sr"].rank[free] == 1 and not math.isnan(found["sr"].mean[free].item())
    assert any("free" in each.systems for each in found.findings)
    kept = evaluate(runs.with_options(zero_time="keep"))
    assert kept["lr"].rank[free] == 1


def test_benchmarks_are_evaluated_by_themselves() -> None:
    runs = success_runs({"a": [1, 2, None], "b": [2, 1, 3]}, benchmarks=["x", "y", "y"])
    found = evaluate(runs, "lr")["lr"]
    assert set(found.benchmarks) == {"x", "y"}
    assert found.benchmarks["x"].mean_preference[0, 1] == 1.0
    assert found.benchmarks["y"].mean_preference[0, 1] == -1.0
    assert found.benchmarks["x"].instances == 1 and found.benchmarks["y"].instances == 2
    assert math.isclose(found.mean_preference[0, 1].item(), -1 / 3)
    weighted = evaluate(runs, "lr", weights="benchmark")["lr"]
    assert math.isclose(weighted.mean_preference[0, 1].item(), 0.0, abs_tol=1e-15)
    record = evaluate(runs, "lr").to_dict()["measures"]["lr"]["benchmarks"]["y"]
    assert record["n_instances"] == 2 and record["mean_preference"][0][1] == -1.0


def test_one_benchmark_is_the_whole() -> None:
    found = evaluate(success_runs({"a": [1, 2], "b": [2, 1]}, benchmarks="x"), "rpp")["rpp"]
    assert torch.equal(found.benchmarks["x"].mean_preference, found.mean_preference)


def test_evaluation_does_not_depend_on_the_order_of_systems_and_instances() -> None:
    times = {"A": [2, 3, 9, None], "B": [4, 5, 6, None], "C": [None, 6, None, 2]}
    mixed = {name: [times[name][i] for i in (2, 0, 3, 1)] for name in ("C", "A", "B")}
    names = ["1", "2", "3", "4"]
    first = evaluate(success_runs(times, instances=names)).to_dict()
    second = evaluate(success_runs(mixed, instances=["3", "1", "4", "2"])).to_dict()
    for name in MEASURES:
        assert first["measures"][name] == second["measures"][name]


def test_frame_and_texts(three: Evaluation) -> None:
    frame = three.to_frame()
    assert frame.height == 18
    assert frame.filter(measure="lr")["system"].to_list() == ["A", "B", "C"]
    assert frame.filter(measure="lr", system="A")["median_time"].item() == 3.0
    text = repr(three)
    assert "Tie rates" in text and "LR, lexicographic return, by steps" in text
    assert "solved" in text
    markdown = three.to_markdown()
    assert "| rank | system |" in markdown and "| 1 | A |" in markdown
    latex = three.to_latex()
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == 7
    assert r"75.0 \%" in latex


def test_names_are_escaped_in_texts() -> None:
    odd = "a_b|c*[bold]$100%\x1b[31m"
    found = evaluate(success_runs({odd: [1, 2], "plain": [2, 1]}), "sr")
    assert "\x1b" not in repr(found) + found.to_markdown() + found.to_latex()
    assert "[bold]" in repr(found)
    assert r"a\_b\|c\*\[bold\]" in found.to_markdown()
    assert r"a\_b|c*[bold]\$100\%" in found.to_latex()


def test_one_system_alone() -> None:
    found = evaluate(success_runs({"only": [1, None]}))
    assert found["lr"].status.startswith("single")
    assert found.to_dict()["measures"]["lr"]["tie_rate"] is None
    assert found.summary.success_rate.tolist() == [0.5]
    assert "only" in repr(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": "rppp"}, "unknown measure 'rppp'"),
        ({"clock": "cost"}, "no clock 'cost'"),
        ({"bootstrap": -1}, "at least 0; got -1"),
        ({"weights": "task"}, "unknown weights 'task'"),
        ({"grid": "fine"}, "unknown grid 'fine'"),
        ({"device": "gpu7"}, "device 'gpu7' cannot be used"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    runs = success_runs({"a": [1, 2], "b": [2, 1]})
    with pytest.raises(UsageError, match=message):
        evaluate(runs, **options)  # type: ignore[arg-type]


def test_nothing_to_evaluate() -> None:
    runs = success_runs({"a": [1, 2], "b": [2, 1]})
    with pytest.raises(UsageError, match="0 instances"):
        evaluate(runs.take(instances=[]))


def test_measures_that_were_not_asked_for() -> None:
    found = evaluate(success_runs({"a": [1, 2], "b": [2, 1]}), ["lr", "SR"])
    assert list(found.measures) == ["sr", "lr"]
    with pytest.raises(UsageError, match="RPP was not evaluated"):
        found["rpp"]


def test_intervals_come_with_a_bootstrap(three: Evaluation) -> None:
    generator = torch.Generator().manual_seed(3)
    times = {name: torch.randint(1, 9, (60,), generator=generator).tolist() for name in "abc"}
    times["a"] = [1 + t / 3 for t in times["a"]]
    runs = success_runs(times, clock="seconds")
    found = evaluate(runs, "lr", bootstrap=200, seed=5)
    lr = found["lr"]
    assert lr.interval is not None
    assert bool((lr.interval[:, 0] < lr.theta).all()) and bool((lr.theta < lr.interval[:, 1]).all())
    assert found.to_dict()["measures"]["lr"]["interval"] == lr.interval.tolist()
    assert found.to_frame()["score_low"].to_list() == [lr.interval[i, 0].item() for i in lr.order]
    assert torch.equal(lr.theta, evaluate(runs, "lr")["lr"].theta)
    again = evaluate(runs, "lr", bootstrap=200, seed=5)
    assert again.to_dict() == found.to_dict() and repr(again) == repr(found)
    assert "95 % interval" in repr(found) and "share of 200 resamples" in repr(found)
    few = evaluate(success_runs({"a": [1, 2, 3], "b": [2, 1, 4]}), "lr", bootstrap=50)
    assert few.to_dict()["measures"]["lr"]["interval"] == [[None, None], [None, None]]
    assert "No interval for a, b" in repr(few)


def test_measures_that_agree_are_ranked_once_with_the_same_result() -> None:
    from torchpref import preferences, rank

    generator = torch.Generator().manual_seed(11)
    times = {name: torch.randint(1, 9, (40,), generator=generator).tolist() for name in "abc"}
    runs = success_runs(times)
    found = evaluate(runs, bootstrap=100, seed=2)
    for name in MEASURES:
        alone = rank(preferences(runs, name), bootstrap=100, seed=2)
        assert found[name].board is not None and repr(found[name].board) == repr(alone)
        assert found[name].interval is not None
        assert torch.equal(found[name].interval.nan_to_num(9.0), alone.interval.nan_to_num(9.0))


def test_an_approximate_grid_says_so() -> None:
    runs = Trajectories(torch.tensor([[[0.2, 0.7, 1.0], [0.5, 0.6, 0.9]]]), systems=["a", "b"])
    (said,) = [each for each in evaluate(runs, "rpp", grid=4).findings if each.kind == "approximate_grid"]
    assert said.count == 4 and said.severity == "warning"
    assert "approximations" in repr(evaluate(runs, "rpp", grid=[0.5, 1]))
    assert not [each for each in evaluate(runs, "rpp").findings if each.kind == "approximate_grid"]


def test_header_names_what_is_not_the_default(three: Evaluation) -> None:
    runs = success_runs({"a": [1, 2, None], "b": [2, 1, 3]}, benchmarks=["x", "y", "y"])
    assert repr(evaluate(runs, weights="benchmark")).startswith(
        "2 systems, 3 instances, 2 benchmarks, clock steps, weights by benchmark"
    )
    assert repr(three).startswith("3 systems, 4 instances, clock steps\n")


@pytest.mark.gpu
def test_on_a_gpu_the_result_is_the_same() -> None:
    generator = torch.Generator().manual_seed(7)
    times = {name: torch.randint(0, 30, (50,), generator=generator).tolist() for name in "abcd"}
    runs = success_runs({name: [t or None for t in row] for name, row in times.items()}, clock="cost")
    here, there = evaluate(runs), evaluate(runs, device="cuda")
    assert there.runs.device.type == "cuda"
    for name in MEASURES:
        assert torch.equal(here[name].mean_preference, there[name].mean_preference)
        assert here[name].rank == there[name].rank and here[name].tie_rate == there[name].tie_rate
        assert torch.allclose(here[name].theta, there[name].theta, atol=1e-12, equal_nan=True)
    assert here.findings == there.findings and repr(here) == repr(there)


@pytest.mark.parametrize("bootstrap", [0, 50])
def test_an_order_that_chance_could_give_is_called_so(bootstrap):
    """Above the board, with and without intervals; and not where the systems differ."""
    few = Trajectories(torch.tensor([[1.0, 0.0, 0.0]] * 5).unsqueeze(-1))
    doubted = evaluate(few, "sr", bootstrap=bootstrap)
    found = [each for each in doubted.findings if each.kind == "order_not_established"]
    assert len(found) == 1 and "at least 7 are needed" in found[0].message
    assert str(doubted).count("is not established") == 1
    generator = torch.Generator().manual_seed(0)
    alike = Trajectories((torch.rand(40, 3, 1, generator=generator) > 0.5).double())
    assert "none of 3 pairs of systems differs" in str(evaluate(alike, "sr", bootstrap=bootstrap))
    apart = Trajectories(torch.tensor([[1.0, 0.0]] * 30).unsqueeze(-1))
    assert "is not established" not in str(evaluate(apart, "sr", bootstrap=bootstrap))


def test_nobody_is_first_by_one_instance_or_one_resample():
    one = Trajectories(torch.tensor([[[1.0], [0.0]]]))
    assert torch.isnan(evaluate(one, "sr", bootstrap=100)["sr"].board.share_first).all()
    several = Trajectories(torch.tensor([[1.0, 0.0]] * 5).unsqueeze(-1))
    assert torch.isnan(evaluate(several, "sr", bootstrap=1)["sr"].board.share_first).all()
    assert torch.isfinite(evaluate(several, "sr", bootstrap=2)["sr"].board.share_first).all()
