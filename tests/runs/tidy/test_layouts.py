"""The three layouts say the same, rows may come in any order, and what is repaired is counted."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchpref import DataError, Trajectories, UsageError
from torchpref.runs.units import NEVER, UNKNOWN

from_frame = Trajectories.from_frame
Row = dict[str, Any]


def kinds(runs: Trajectories) -> dict[str, int]:
    return {finding.kind: finding.count for finding in runs.findings}


def finding(runs: Trajectories, kind: str) -> Any:
    return next(each for each in runs.findings if each.kind == kind)


@st.composite
def tables(draw: st.DrawFn) -> list[tuple[Row, list[tuple[float, float | None]]]]:
    """Runs as (names and marks, points of value and cost)."""
    names = draw(st.lists(st.tuples(*(st.integers(0, 3) for _ in range(3))), unique=True, min_size=1, max_size=12))
    table = []
    for system, instance, trial in names:
        size = draw(st.integers(1, 4))
        values = draw(st.lists(st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 0.9, 1.0]), min_size=size, max_size=size))
        costs = sorted(draw(st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.3, 7.5]), min_size=size, max_size=size)))
        unknown = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
        points = [(v, None if u == 0 else c) for v, c, u in zip(values, costs, unknown, strict=True)]
        who = {"system": f"s{system}", "instance": f"i{instance}", "benchmark": f"b{instance % 2}", "trial": trial}
        table.append((who | {"truncated": draw(st.booleans())}, points))
    return table


def steps(table: list[Any]) -> list[Row]:
    return [
        who | {"step": k + 1, "return": value, "cost": cost}
        for who, points in table
        for k, (value, cost) in enumerate(points)
    ]


def lists(table: list[Any]) -> list[Row]:
    return [
        who
        | {
            "step": list(range(1, len(points) + 1)),
            "return": [value for value, _ in points],
            "cost": [cost for _, cost in points],
        }
        for who, points in table
    ]


def text(table: list[Any], style: str) -> list[Row]:
    def cell(values: list[Any]) -> str:
        words = ["null" if value is None else repr(value) for value in values]
        return "[" + ", ".join(words) + "]" if style == "json" else " ".join(words)

    return [
        {key: cell(value) if isinstance(value, list) else value for key, value in row.items()} for row in lists(table)
    ]


@given(tables())
def test_steps_lists_and_text_say_the_same(table: list[Any]) -> None:
    expected = from_frame(steps(table))
    assert expected.clocks == ("steps", "cost")
    assert from_frame(lists(table)).equals(expected)
    assert from_frame(text(table, "json")).equals(expected)
    assert from_frame(pl.DataFrame(steps(table))).equals(expected)
    if all(cost is not None for _, points in table for _, cost in points):
        assert from_frame(text(table, "blank")).equals(expected)


@given(tables(), st.randoms(use_true_random=False))
def test_rows_may_come_in_any_order(table: list[Any], shuffler: random.Random) -> None:
    for layout in (steps, lists):
        rows = layout(table)
        expected = from_frame(rows)
        shuffler.shuffle(rows)
        assert from_frame(rows).equals(expected)
    rows = [{k: v for k, v in row.items() if k != "trial"} for row in lists(table)]
    expected = from_frame(rows)
    shuffler.shuffle(rows)
    assert from_frame(rows).equals(expected)


@given(tables())
def test_a_row_per_run_is_a_run_of_one_step(table: list[Any]) -> None:
    last = [(who, points[-1:]) for who, points in table]
    rows = [who | {"return": points[0][0], "cost": points[0][1]} for who, points in last]
    one = from_frame(rows)
    assert one.clocks == ("cost",)
    several = from_frame(lists(last))
    assert (one.returns == several.returns).all() and (one.times["cost"] == several.times["cost"]).all()
    assert (one.present == several.present).all() and (one.lengths == several.lengths).all()


def test_step_orders_the_rows_and_is_the_clock_steps() -> None:
    rows = [
        {"system": "a", "instance": "x", "step": 10, "return": 1},
        {"system": "a", "instance": "x", "step": 9, "return": 0.25},
        {"system": "a", "instance": "x", "step": 100, "return": 0.5},
    ]
    runs = from_frame(rows)
    assert runs.returns.flatten().tolist() == [250_000, 1_000_000, 1_000_000]
    assert runs.times["steps"].flatten().tolist() == [9, 10, 100]
    assert kinds(runs) == {"returns_falling": 1}
    both = from_frame([row | {"steps": 2 * row["step"]} for row in rows])
    assert both.times["steps"].flatten().tolist() == [18, 20, 200]


def test_rewards_are_summed_before_they_are_divided() -> None:
    runs = from_frame(
        {"system": ["a", "b"], "instance": ["x", "x"], "reward": [[0.1] * 10, [1, 1, 1]], "max_score": [1, 3]}
    )
    assert runs.returns[0, 0, 0, -1] == 1_000_000
    assert runs.returns[0, 1, 0, :3].tolist() == [333_333, 666_667, 1_000_000]
    bare = from_frame({"system": ["a"], "instance": ["x"], "reward": [[0.25, 0.5]]})
    assert bare.returns.flatten().tolist() == [250_000, 750_000]
    assert finding(bare, "rewards_without_maximum").severity == "note"


def test_each_run_is_divided_by_its_own_maximum() -> None:
    rows = [("a", 3), ("b", 4), ("c", 4)]
    runs = from_frame([{"system": s, "instance": "x", "score": 3, "max_score": m, "cost": 1} for s, m in rows])
    assert runs.returns.flatten().tolist() == [1_000_000, 750_000, 750_000]
    assert finding(runs, "differing_maximum_scores").systems == ("a",)
    constant = from_frame({"system": ["a"], "instance": ["x"], "points": [30]}, columns="score=points,max_score=40")
    assert constant.returns.item() == 750_000


def test_a_named_value_column_goes_before_one_that_merely_has_the_name() -> None:
    table = {"system": ["a"], "instance": ["x"], "score": [7], "right": ["yes"]}
    assert from_frame(table, columns="success=right").returns.item() == 1_000_000
    with pytest.raises(DataError, match="max_score"):
        from_frame(table)


@pytest.mark.parametrize("yes", [True, "true", "True", "YES", "1", 1, 1.0, "passed", " t "])
@pytest.mark.parametrize("no", [False, "false", "No", "0", 0, "FAILED"])
def test_yes_and_no_in_many_words(yes: object, no: object) -> None:
    runs = from_frame({"system": ["a", "b"], "instance": ["x", "x"], "success": [yes, no], "cost": [1, 1]})
    assert runs.returns.flatten().tolist() == [1_000_000, 0]


def test_an_unknown_outcome_is_no_run() -> None:
    table = {"system": ["a", "b", "c"], "instance": ["x"] * 3, "success": [1, None, ""], "cost": [1, 1, 1]}
    runs = from_frame(table)
    assert runs.systems == ("a", "b", "c")
    assert runs.present.flatten().tolist() == [True, False, False]
    unknown = finding(runs, "unknown_outcomes")
    assert (unknown.count, unknown.systems, unknown.severity) == (2, ("b", "c"), "warning")
    failures = from_frame(table, missing="failure")
    assert failures.present.all() and failures.lengths.flatten().tolist() == [1, 0, 0]
    trials = {"system": ["a", "a"], "instance": ["x", "x"], "trial": [1, 2], "success": [1, None], "cost": [1, 1]}
    assert from_frame(trials).present.flatten().tolist() == [True, False]
    failed = from_frame(trials, missing="failure")
    assert failed.present.flatten().tolist() == [True, True] and failed.returns.flatten().tolist() == [1_000_000, 0]


def test_missing_runs_as_failures_only_where_the_system_took_part() -> None:
    rows = [("a", "1", "x"), ("a", "1", "y"), ("b", "1", "x"), ("a", "2", "z")]
    table = [{"system": s, "benchmark": b, "instance": i, "success": 1, "cost": 1} for s, b, i in rows]
    assert from_frame(table).present.flatten().tolist() == [True, True, True, False, True, False]
    runs = from_frame(table, missing="failure")
    assert runs.present.flatten().tolist() == [True, True, True, True, True, False]
    assert kinds(runs) == {"missing_runs_as_failures": 1}


def test_missing_run_run_without_a_step_and_run_that_reached_nothing_are_three_things() -> None:
    runs = from_frame({"system": ["a", "b", "c"], "instance": ["x"] * 3, "return": [[], [0.0], None]})
    assert runs.present.flatten().tolist() == [True, True, False]
    assert runs.lengths.flatten().tolist() == [0, 1, 0]
    as_text = from_frame({"system": ["a", "b", "c"], "instance": ["x"] * 3, "return": ["[]", "0 0", ""]})
    assert as_text.present.flatten().tolist() == [True, True, False]
    assert as_text.lengths.flatten().tolist() == [0, 2, 0]


def test_repeated_rows_are_trials_with_a_warning() -> None:
    runs = from_frame({"system": ["a", "a", "b"], "instance": ["x"] * 3, "success": [1, 0, 1], "cost": [1, 2, 3]})
    assert runs.shape == (1, 2, 2, 1)
    repeated = finding(runs, "repeated_rows")
    assert (repeated.count, repeated.systems) == (2, ("a",))


def test_trials_with_any_labels_in_natural_order() -> None:
    labels = ["seed10", "seed9", "seed1"]
    runs = from_frame(
        {"system": ["a"] * 3, "instance": ["x"] * 3, "trial": labels, "success": [1, 0, 0], "cost": [1, 2, 3]}
    )
    assert runs.times["cost"].flatten().tolist() == [3 * 10**9, 2 * 10**9, 10**9]


def test_a_shared_trial_label_keeps_its_place_and_identifiers_of_runs_do_not_make_places() -> None:
    seeds = [("a", "x", 0), ("a", "x", 1), ("a", "x", 2), ("b", "x", 2)]
    runs = from_frame([{"system": s, "instance": i, "trial": t, "success": 1, "cost": 1} for s, i, t in seeds])
    assert runs.present.tolist() == [[[True, True, True], [False, False, True]]]
    ids = [
        {"system": s, "instance": f"i{k}", "trial": f"{s}-{k}", "success": 1, "cost": 1} for s in "ab" for k in range(5)
    ]
    assert from_frame(ids).shape == (5, 2, 1, 1)


def test_without_a_clock_a_success_is_at_an_unknown_time() -> None:
    runs = from_frame({"system": ["a", "b"], "instance": ["x", "x"], "success": [1, 0]})
    assert runs.clocks == ("steps",) and (runs.times["steps"] == UNKNOWN).all()


def test_lists_without_a_clock_count_their_elements() -> None:
    table = {"system": ["a", "b"], "instance": ["x", "x"], "return": ["0 1", "1"], "cost": ["2 3", "4"]}
    assert from_frame(table).clocks == ("cost",)
    counted = from_frame(table, clock="steps")
    assert counted.times["steps"][0, 0, 0].tolist() == [1, 2] and counted.clock() == "steps"
    del table["cost"]
    assert from_frame(table).clocks == ("steps",)


def test_empty_clock_cells_are_unknown_times() -> None:
    runs = from_frame({"system": ["a", "b"], "instance": ["x", "x"], "success": [1, 1], "cost": ["", "0.5"]})
    assert runs.times["cost"].flatten().tolist() == [UNKNOWN, 500_000_000]
    nan = from_frame({"system": ["a", "b"], "instance": ["x", "x"], "success": [1, 1], "cost": [float("nan"), 0.5]})
    assert nan.equals(runs)


def test_values_outside_are_clipped_and_counted() -> None:
    runs = from_frame(
        {"system": ["a", "b"], "instance": ["x", "x"], "return": [[1.5, 1.2], [-0.5, 1.0000001]]}, clip=True
    )
    assert runs.returns.flatten().tolist() == [1_000_000, 1_000_000, 0, 1_000_000]
    assert kinds(runs) == {"returns_above_one": 2, "returns_below_zero": 1, "returns_falling": 1}
    assert finding(runs, "returns_above_one").systems == ("a",)
    huge = from_frame(
        {"system": ["a", "b"], "instance": ["x"] * 2, "score": [1e305, -1e305], "max_score": [1e-300] * 2}, clip=True
    )
    assert huge.returns.flatten().tolist() == [1_000_000, 0]
    barely = from_frame({"system": ["a"], "instance": ["x"], "return": [1.000002], "cost": [1]}, clip=True)
    assert kinds(barely) == {"returns_above_one": 1}
    assert finding(runs, "returns_below_zero").examples == ("row 2",)


def test_a_clock_that_runs_backwards_is_held() -> None:
    table = {"system": ["a"], "instance": ["x"], "return": [[0, 0.5, 1, 1]], "seconds": [[1.0, 5.0, None, 4.0]]}
    runs = from_frame(table)
    assert runs.times["seconds"].flatten().tolist() == [1_000_000, 5_000_000, UNKNOWN, 5_000_000]
    assert kinds(runs) == {"clock_backwards": 1}


def test_distinct_times_on_one_tick_are_counted_and_float_noise_is_not_distinct() -> None:
    def of(*costs: float, **options: Any) -> dict[str, int]:
        names = [chr(97 + k) for k in range(len(costs))]
        return kinds(
            from_frame({"system": names, "instance": ["x"] * len(costs), "success": [1] * len(costs), "cost": costs})
        )

    assert of(0.1 + 0.2, 0.3) == {}
    assert of(0.1234567891, 0.1234567892) == {"merged_times": 1}
    coarse = from_frame({"system": ["a", "b"], "instance": ["x", "x"], "success": [1, 1], "steps": [1.2, 1.4]})
    assert finding(coarse, "merged_times").systems == ("a", "b")
    fine = from_frame(
        {"system": ["a", "b"], "instance": ["x", "x"], "success": [1, 1], "steps": [1.2, 1.4]},
        resolution={"steps": 0.1},
    )
    assert fine.times["steps"].flatten().tolist() == [12, 14] and not fine.findings


def test_empty_cells_within_a_run_gain_nothing() -> None:
    rows = [{"system": "a", "instance": "x", "step": k, "return": v} for k, v in ((1, 0.5), (2, None), (3, 1))]
    runs = from_frame(rows)
    assert runs.returns.flatten().tolist() == [500_000, 500_000, 1_000_000]
    assert kinds(runs) == {"missing_values": 1}


def test_reference_times() -> None:
    table = {
        "system": ["a", "b"],
        "instance": ["x", "x"],
        "success": [1, 1],
        "cost": [1, 2],
        "reference_time": [0.5, None],
    }
    assert from_frame(table).reference_ticks().tolist() == [500_000_000]
    two = table | {"seconds": [3, 4]}
    assert from_frame(two, clock="cost").reference_times["cost"].tolist() == [500_000_000]
    with pytest.raises(UsageError, match="several"):
        from_frame(two)
    named = {key: value for key, value in two.items() if key != "reference_time"} | {"reference_time_seconds": [9, 9]}
    assert set(from_frame(named).reference_times) == {"seconds"}


def test_truncated_runs() -> None:
    rows = [{"system": "a", "instance": "x", "step": k, "return": 0, "truncated": k == 2} for k in (1, 2)]
    runs = from_frame(rows)
    assert runs.truncated is not None and runs.truncated.all()
    assert from_frame([row | {"truncated": None} for row in rows]).truncated is None


def test_an_empty_clock_is_not_the_one_that_is_meant() -> None:
    table = {"system": ["a", "b"], "instance": ["x", "x"], "success": [1, 1], "seconds": [None, None], "cost": [1, 2]}
    assert from_frame(table).clock() == "cost"
    assert from_frame(table | {"steps": [None, None]}).clock() == "cost"
    assert from_frame(table | {"turns": [3, 4]}).clock() == "turns"
    assert from_frame(table, clock="seconds").clock() == "seconds"
    with pytest.raises(UsageError, match="several clocks"):
        from_frame(table | {"seconds": [5, 6]}).clock()
    with pytest.raises(UsageError, match="several clocks"):
        from_frame(table | {"tokens": [5, 6]}).clock()


def test_an_empty_step_column_is_none() -> None:
    runs = from_frame(
        {"system": ["a", "b"], "instance": ["x", "x"], "success": [1, 1], "step": [None, None], "cost": [1, 2]}
    )
    assert runs.clocks == ("cost",)


def test_other_clocks_by_prefix() -> None:
    runs = from_frame(
        {"system": ["a"], "instance": ["x"], "success": [1], "moves": [3]}, columns={"clock:moves": "moves"}
    )
    assert runs.clocks == ("moves",) and runs.times["moves"].item() == 3_000_000


def test_instances_are_told_apart_by_benchmark() -> None:
    rows = [("b2", "x"), ("b1", "y"), ("b1", "x"), (None, "x")]
    runs = from_frame([{"system": "a", "benchmark": b, "instance": i, "success": 1, "cost": 1} for b, i in rows])
    assert runs.benchmarks == ("", "b1", "b1", "b2") and runs.instances == ("x", "x", "y", "x")


def test_long_runs_are_condensed_without_changing_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    import torchpref as tp
    from torchpref.runs.tidy import build

    rows = [{"system": "a", "instance": "x", "step": k, "return": (k // 40) / 5} for k in range(1, 151)]
    rows += [{"system": "b", "instance": "x", "step": k, "return": k / 3} for k in range(4)]
    rows += [{"system": "b", "instance": "y", "step": k, "return": 0} for k in range(4)]
    whole = from_frame(rows)
    monkeypatch.setattr(build, "DENSE_ELEMENTS", 100)
    short = from_frame(rows)
    assert kinds(short)["condensed_steps"] == 158 - 4 - 3 - 1 and short.shape[-1] == 4
    assert short.times["steps"][0, 0, 0].tolist() == [40, 80, 120, 150]
    for measure, prefs in tp.all_preferences(whole).items():
        assert prefs.sums.equal(tp.all_preferences(short)[measure].sums)
    monkeypatch.setattr(build, "MOST_ELEMENTS", 10)
    with pytest.raises(DataError, match="do not fit into memory"):
        from_frame(rows)


def test_constants() -> None:
    assert UNKNOWN < 0 < NEVER
