from __future__ import annotations

import json
import math

import pytest
import torch

from meta.small import partial, random_runs, success
from torchpref import MEASURES, Trajectories, UsageError, preferences
from torchpref.meta import DEFINITIONS, FIGURES, MetaEvaluation, explain, meta_evaluate

FEW: dict[str, int] = {"resamples": 60, "alarm_draws": 20, "subgoal_draws": 2, "curve_draws": 20}


@pytest.fixture(scope="module")
def result() -> MetaEvaluation:
    runs = random_runs(1, instances=40, systems=5, trials=2, benchmarks=2)
    return meta_evaluate(runs, known_order=runs.systems, **FEW)


def test_every_figure_exists_with_its_interval(result: MetaEvaluation) -> None:
    for measure in MEASURES:
        for key in FIGURES:
            estimate = result[measure, key]
            assert estimate.exists and not estimate.reason, (measure, key)
            assert estimate.low <= estimate.value <= estimate.high, (measure, key)


def test_values_are_those_of_the_parts(result: MetaEvaluation) -> None:
    runs = random_runs(1, instances=40, systems=5, trials=2, benchmarks=2)
    for measure in MEASURES:
        prefs = preferences(runs, measure)
        assert result[measure, "tie_rate"].value == pytest.approx(prefs.tie_rate())
        assert result[measure, "oracle_accuracy"].value == pytest.approx(
            float((prefs.pair_means() > 0).double().mean())
        )
        part = preferences(runs.select(benchmarks="b1"), measure)
        assert result.benchmarks["b1"][measure, "tie_rate"].value == pytest.approx(part.tie_rate())
    assert result.mean is not None
    both = [table["rpp", "tie_rate"].value for table in result.benchmarks.values()]
    assert result.mean["rpp", "tie_rate"].value == pytest.approx(sum(both) / 2)
    shares = [key for key in FIGURES if DEFINITIONS[key].percent]
    assert all(
        0 <= result.mean[name, key].low <= result.mean[name, key].high <= 1 for name in MEASURES for key in shares
    )


def test_convergence_is_tau_of_the_rankings() -> None:
    # SR ranks A before B = C, PR A before C before B.
    runs = partial([[1.0, 0.25, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    found = meta_evaluate(runs, ["sr", "pr"], **FEW)
    assert found.overall.convergence["sr", "pr"].value == pytest.approx(2 / math.sqrt(6))
    assert found["sr", "convergent"].value == found["pr", "convergent"].value == pytest.approx(2 / math.sqrt(6))


def test_the_last_point_of_data_efficiency_is_the_whole(result: MetaEvaluation) -> None:
    for measure in MEASURES:
        for key in ("tie_rate", "oracle_accuracy", "leave_one_out"):
            last = result.efficiency[measure, key][-1]
            assert last.value == pytest.approx(result[measure, key].value)
            assert last.low == last.high == pytest.approx(last.value)
        assert result.efficiency[measure, "ranking_of_all"][-1].value == pytest.approx(1.0)
    assert result.efficiency.points == tuple(k / 10 for k in range(1, 11))


def test_saturation_by_hand() -> None:
    # 60 instances: on the first 30 nobody succeeds; on the others both do, A always sooner.
    solved = [[0.0, 0.0]] * 30 + [[1.0, 1.0]] * 30
    runs = partial(solved, [[1.0, 2.0]] * 60)
    found = meta_evaluate(runs, ["sr", "rpp"], **FEW).saturation
    assert found.points == (0.0,) * 5 + (1.0,) * 5
    # Six of six: p = 2/64 for the only pair.
    assert [each.value for each in found["rpp", "power_fwer"]] == [0.0] * 5 + [1.0] * 5
    assert [each.value for each in found["sr", "power_fwer"]] == [0.0] * 10
    assert [each.value for each in found["rpp", "tie_rate"]] == [1.0] * 5 + [0.0] * 5


def test_too_few_instances_for_ten_bins() -> None:
    found = meta_evaluate(success(*["10"] * 19), "sr", **FEW)
    assert "20 instances" in found.saturation.reason


def test_subgoals_as_annotated_are_the_data(result: MetaEvaluation) -> None:
    assert result.subgoals.points == ("as annotated", "drop", "merge", "jitter")
    for measure in MEASURES:
        assert result.subgoals[measure, "same_sign"][0].value == 1.0
        assert result.subgoals[measure, "tie_rate"][0].value == pytest.approx(result[measure, "tie_rate"].value)
    assert result.subgoals["sr", "ranking_as_annotated"][1].value == pytest.approx(1.0)


def test_what_the_data_cannot_give_says_why() -> None:
    found = meta_evaluate(success("10", "11", "01"), ["sr", "lr"], **FEW)
    assert found["sr", "bias_draws"].reason == "no system has two trials of any instance"
    assert found["lr", "oracle_fdr"].reason == "no known order was given"
    assert "no subgoals" in found.subgoals.reason
    assert "no known order was given" in repr(found)
    one = meta_evaluate(success("10", "11", "01"), "sr", **FEW)
    assert one["sr", "convergent"].reason == "it takes two measures"


def test_no_clock() -> None:
    runs = Trajectories(torch.rand((6, 2, 1)), times={})
    found = meta_evaluate(runs, **FEW)
    assert found.clock is None
    assert "carry none" in found["rpp", "tie_rate"].reason
    assert found["pr", "tie_rate"].exists


def test_pairs_without_a_shared_instance_are_excluded_and_counted() -> None:
    found = meta_evaluate(success("10.", "11.", "0.1", "1.0", "10.", "0.0"), "sr", **FEW)
    assert found.overall.excluded == {"sr": 1}
    assert "SR 1" in repr(found)


def test_same_seed_same_numbers(result: MetaEvaluation) -> None:
    runs = random_runs(1, instances=40, systems=5, trials=2, benchmarks=2)
    again = meta_evaluate(runs, known_order=runs.systems, **FEW)
    assert json.dumps(again.to_dict()) == json.dumps(result.to_dict())
    other = meta_evaluate(runs, known_order=runs.systems, seed=1, **FEW)
    assert other["rpp", "tie_rate"].value == result["rpp", "tie_rate"].value
    assert other["rpp", "tie_rate"].low != result["rpp", "tie_rate"].low
    drawn = [
        meta_evaluate(runs, "sr", seed=torch.Generator().manual_seed(4), **FEW)["sr", "tie_rate"].low for _ in "ab"
    ]
    assert drawn[0] == drawn[1]


def test_shapes_of_the_results(result: MetaEvaluation) -> None:
    frame = result.to_frame()
    assert len(frame) == 4 * len(FIGURES) * len(MEASURES)
    assert set(frame["scope"]) == {"", "b0", "b1", "mean of benchmarks"}
    record = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert set(record["figures"]) == set(MEASURES)
    assert set(record["figures"]["rpp"]) == set(FIGURES)
    assert len(result.efficiency.to_frame()) == 10 * 6 * len(result.efficiency.figures["sr"])
    text = repr(result)
    for words in ("validity", "reliability", "sensitivity", "bias", "tie rate, %", "data efficiency", "saturation"):
        assert words in text
    markdown = result.to_markdown()
    assert "| figure | SR | PR | SPL | LR | RPP | IPP |" in markdown


def test_definitions_are_one_call_away(result: MetaEvaluation) -> None:
    for key in DEFINITIONS:
        assert len(result.explain(key)) > 80
    assert explain("leave-one-out flips") == explain("leave_one_out") == result.explain("LEAVE_ONE_OUT")
    with pytest.raises(UsageError, match=r"no figure 'power'; the figures are oracle_accuracy"):
        explain("power")


def test_known_order_is_checked() -> None:
    runs = success("10", "11")
    for order, message in (
        (["A", "X"], "'X', which is no system"),
        (["A", "A"], "'A' twice"),
        ([["A", "B"]], "says nothing"),
        ("AB", "a sequence of names"),
    ):
        with pytest.raises(UsageError, match=message):
            meta_evaluate(runs, "sr", known_order=order, **FEW)


def test_wrong_use() -> None:
    with pytest.raises(UsageError, match="takes two systems"):
        meta_evaluate(success("1", "0"), "sr")
    with pytest.raises(UsageError, match="resamples must be at least 1"):
        meta_evaluate(success("10", "01"), "sr", resamples=0)
    with pytest.raises(UsageError, match="'rpp' was not evaluated"):
        meta_evaluate(success("10", "01"), "sr", **FEW)["rpp", "tie_rate"]


def test_progress_reports_every_part() -> None:
    seen: list[tuple[str, int, int]] = []
    runs = random_runs(0, trials=2)
    meta_evaluate(runs, ["sr", "rpp"], progress=lambda *report: seen.append(report), **FEW)
    assert [what for what, _, _ in seen[:3]] == [
        "all instances: false positives",
        "all instances: SR",
        "all instances: RPP",
    ]
    done = [number for _, number, _ in seen]
    assert done == sorted(done) and done[-1] == seen[-1][2]


def test_progress_bar_leaves_nothing_behind(capfd: pytest.CaptureFixture[str]) -> None:
    meta_evaluate(success("10", "01"), "sr", progress=True, **FEW)
    assert capfd.readouterr().out == ""


def test_benchmarks_are_resampled_independently() -> None:
    runs = random_runs(2, instances=30)
    twice = Trajectories(
        (runs.returns.double() / 1e6).repeat(2, 1, 1, 1),
        times={"time": (runs.times["time"] * 1e-6).repeat(2, 1, 1, 1)},
        instances=[f"{k:02d}" for k in range(30)] * 2,
        benchmarks=["a"] * 30 + ["b"] * 30,
    )
    found = meta_evaluate(twice, "rpp", **{**FEW, "resamples": 400})
    assert found.mean is not None
    mean, one = found.mean["rpp", "tie_rate"], found.benchmarks["a"]["rpp", "tie_rate"]
    assert mean.value == pytest.approx(one.value)
    assert 0.5 < (mean.high - mean.low) / (one.high - one.low) < 0.9  # 1 / √2
