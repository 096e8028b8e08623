"""Each suspicious thing is found where it is, counted, with the systems concerned; and not where it is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from torchpref import Trajectories
from torchpref.runs.audit import Audit, audit, unusable_clock
from torchpref.runs.findings import Finding

Runs = dict[str, list[Any]]


def of(rows: list[tuple[Any, ...]], names: str = "system instance success cost", **options: Any) -> Audit:
    table = [dict(zip(names.split(), row, strict=True)) for row in rows]
    return audit(Trajectories.from_frame(table, **options))


def found(audit: Audit, kind: str) -> Finding:
    return next(finding for finding in audit.findings if finding.kind == kind)


CLEAN = [("a", "x", 1, 2), ("b", "x", 1, 3), ("a", "y", 0, 4), ("b", "y", 1, 1)]


def test_clean_data_are_described_without_suspicion() -> None:
    seen = of(CLEAN)
    assert seen.findings == seen.warnings == ()
    assert (seen.n_instances, seen.runs, seen.coverage, seen.trials, seen.shared_instances) == (2, 4, 1.0, (1, 1), 2)
    assert (seen.levels, seen.levels_per_instance, seen.horizons, seen.clock) == (1, (1, 1.0, 1), (1, 1.0, 1), "cost")
    assert seen.systems["a"].success_rate == 0.5 and seen.systems["b"].partial_return == 1.0
    assert (seen.clocks["cost"].least, seen.clocks["cost"].most, seen.clocks["cost"].known) == (1, 4, 1.0)
    assert "nothing suspicious" in str(seen) and "2 systems × 2 instances" in str(seen)
    assert json.loads(json.dumps(seen.to_dict()))["systems"]["a"]["runs"] == 2


def test_instances_that_some_systems_lack() -> None:
    lack = found(of(CLEAN[:3]), "missing_runs")
    assert (lack.count, lack.systems, lack.examples) == (1, ("b",), ("y",))
    assert [finding.kind for finding in of(CLEAN[:3]).findings] == ["missing_runs"]
    empty = of([*CLEAN, ("c", "x", None, 1)])
    assert found(empty, "systems_without_runs").systems == ("c",)
    assert "missing_runs" not in {finding.kind for finding in empty.findings}
    assert empty.shared_instances == 2 and empty.systems["c"].success_rate is None
    json.dumps(empty.to_dict())


def test_unequal_trials() -> None:
    uneven = of([*CLEAN, ("b", "y", 0, 7)])
    assert (found(uneven, "unequal_trials").count, found(uneven, "unequal_trials").systems) == (1, ("b",))
    assert uneven.trials == (1, 2)


def test_unknown_times_by_outcome() -> None:
    rows = [("a", "x", 1.0, None), ("b", "x", 0.5, None), ("c", "x", 0.0, None), ("d", "x", 1.0, 3)]
    seen = of(rows, "system instance return cost")
    for outcome, system in (("solved", "a"), ("partial", "b"), ("nothing", "c")):
        assert found(seen, f"unknown_times_{outcome}").systems == (system,)
    assert found(seen, "unknown_times_nothing").severity == "note"
    assert found(seen, "unusable_clock").systems == ("a", "b")


def test_levels_at_time_zero() -> None:
    rows = [("a", "x", 1, 0), ("a", "y", 1, 5), ("b", "x", 1, 0), ("b", "y", 0, 0)]
    unknown = of(rows)
    assert found(unknown, "zero_times_solved").count == 2 and "unknown" in found(unknown, "zero_times_solved").message
    assert found(unknown, "zero_times_nothing").count == 1
    assert found(unknown, "unusable_clock").systems == ("b",)
    kept = of(rows, zero_time="keep")
    assert "kept" in found(kept, "zero_times_solved").message
    assert "unusable_clock" not in {finding.kind for finding in kept.findings}
    steps = of(rows, "system instance success steps")
    assert "kept" in found(steps, "zero_times_solved").message


def test_unusable_clock_on_a_clock_that_is_not_meant_is_a_note() -> None:
    table = {"system": ["a", "b"], "instance": ["x", "x"], "success": [1, 1], "steps": [1, 2], "cost": [0, 3]}
    runs = Trajectories.from_frame(table)
    assert unusable_clock(runs) == () and unusable_clock(runs, "cost") == ("a",)
    assert found(audit(runs), "unusable_clock").severity == "note"
    assert found(audit(runs.with_options(clock="cost")), "unusable_clock").severity == "warning"
    assert unusable_clock(runs.with_options(zero_time="keep"), "cost") == ()


def test_identical_systems() -> None:
    rows = [("a", "x", 1, 2), ("b", "x", 1, 2), ("c", "x", 1, 2.5), ("d", "x", 0, None), ("e", "x", 0, None)]
    same = found(of(rows), "identical_systems")
    assert (same.count, same.systems, same.examples) == (2, ("a", "b"), ("a = b",))


def test_identical_trials() -> None:
    rows = [("a", "x", 1, 2), ("a", "x", 1, 2), ("a", "x", 1, 3), ("b", "x", 1, 2), ("b", "y", 0, 2), ("b", "y", 0, 2)]
    same = found(of(rows), "identical_trials")
    assert (same.count, same.systems, same.examples) == (2, ("a",), ("x",))
    by_steps = of(rows, "system instance success steps")
    assert "identical_trials" not in {finding.kind for finding in by_steps.findings}


def test_levels_that_are_nearly_equal() -> None:
    names = "system instance return cost"
    thirds = found(
        of([("a", "x", 0.333, 1), ("b", "x", 1 / 3, 2), ("c", "x", 0.5, 1)], names),
        "close_levels",
    )
    assert (thirds.count, thirds.systems, thirds.severity) == (1, ("a", "b"), "warning")
    for rows in (
        [("a", "x", 1 / 3, 1), ("b", "x", 0.33333334, 2)],
        [("a", "x", 0.33, 1), ("b", "x", 0.34, 2)],
        [("a", "x", 0.333, 1), ("b", "y", 1 / 3, 2)],
    ):
        assert "close_levels" not in {finding.kind for finding in of(rows, "system instance return cost").findings}
    own = audit(
        Trajectories.from_frame({"system": ["a", "b"], "instance": ["x", "x"], "return": [[0.5, 0.501], [0, 1]]})
    )
    assert "close_levels" not in {finding.kind for finding in own.findings}
    many = [("ab"[k % 2], "x", k / 200, 1, k) for k in range(60)]
    assert found(of(many, "system instance return cost trial"), "close_levels").severity == "note"


def test_a_level_that_every_system_has_at_its_first_step() -> None:
    table = {"system": ["a", "b"], "instance": ["x", "x"], "return": ["0.67 1", "0.67 0.67"]}
    floor = found(audit(Trajectories.from_frame(table)), "first_step_levels")
    assert (floor.count, floor.examples) == (1, ("x: 0.67",))
    for returns in (["0.67 1", "0 0.67"], ["1", "1"], ["0.67 1", "[]"]):
        none = audit(Trajectories.from_frame(table | {"return": returns}))
        assert "first_step_levels" not in {finding.kind for finding in none.findings}
    changes_only = audit(Trajectories.from_frame(table | {"steps": ["4 9", "7 8"]}))
    assert "first_step_levels" not in {finding.kind for finding in changes_only.findings}
    assert found(audit(Trajectories.from_frame(table | {"steps": ["1 9", "1 8"]})), "first_step_levels").count == 1


def test_nothing_but_ties() -> None:
    some = of(
        [("a", "x", 0, 1), ("b", "x", 0, 2), ("a", "y", 1, 3), ("b", "y", 1, 4), ("a", "z", 1, 3), ("b", "z", 1, None)]
    )
    ties = found(some, "nothing_but_ties")
    assert (ties.count, ties.severity, ties.examples) == (2, "note", ("x", "z")) and "1 of them" in ties.message
    every = found(of([("a", "x", 1, 3), ("b", "x", 1, 3)]), "nothing_but_ties")
    assert (every.count, every.severity) == (1, "warning")
    assert "reached anything" not in every.message


def test_similar_names() -> None:
    same = found(of([("GPT-4 ", "x", 1, 1), ("gpt-4", "x", 1, 2), ("gpt-5", "x", 0, 1)]), "similar_names")
    assert same.systems == ("GPT-4 ", "gpt-4")


def test_findings_of_the_reading_come_through_and_warnings_come_first() -> None:
    seen = of(
        [("a", "x", 1.5, 1), ("b", "x", 0.2, None), ("c", "x", 0, None)], "system instance return cost", clip=True
    )
    kinds = [finding.kind for finding in seen.findings]
    assert "returns_above_one" in kinds
    severities = [finding.severity for finding in seen.findings]
    assert severities == sorted(severities, key=["error", "warning", "note"].index) and "note" in severities
    assert all(finding in seen.warnings for finding in seen.findings if finding.severity == "warning")
    text = str(seen)
    assert "returns above 1 were clipped" in text and "systems: a" in text and "such as: row 1" in text


@pytest.mark.parametrize("returns", [[[], []], [[0.0], []]])
def test_runs_that_reach_nothing(returns: list[Any]) -> None:
    seen = audit(Trajectories.from_frame({"system": ["a", "b"], "instance": ["x", "x"], "return": returns}))
    assert seen.levels == 0 and seen.without_a_step == returns.count([])
    assert str(seen)


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchpref.runs import checks

    rows = [("abc"[k % 3], f"x{k // 6}", k % 2, 1 + k % 5) for k in range(60)]
    whole = of(rows)
    monkeypatch.setattr(checks, "CHUNK", 1)
    assert of(rows).findings == whole.findings
