"""SWE-agent and mini-swe-agent: the clocks of a trajectory, and an outcome that is only in the report."""

from pathlib import Path

import pytest
from reader_logs import Read, log, put

from torchpref.errors import DataError


def test_values_by_hand(tmp_path: Path) -> None:
    read = Read(log("swe-agent", tmp_path))
    assert read.name == "swe-agent"
    assert read.cells("run-1", "x-1", "success", "steps", "turns", "seconds", "tokens", "cost") == (
        1.0,
        3.0,
        4.0,
        1.75,
        1000.0,
        0.4,
    )


def test_mini_swe_agent_takes_time_from_its_messages(tmp_path: Path) -> None:
    read = Read(log("swe-agent", tmp_path))
    assert read.cells("mini", "x-1", "success", "steps", "turns", "seconds", "cost") == (1.0, 2.0, 2.0, 10.25, 0.3)


def test_mini_swe_agent_adds_up_costs_where_no_total_is_given(tmp_path: Path) -> None:
    path = log("swe-agent", tmp_path) / "mini/x-1/x-1.traj.json"
    put(path, path.read_text().replace('"instance_cost": 0.3, ', ""))
    (cost,) = Read(tmp_path / "log").cells("mini", "x-1", "cost")
    assert cost == pytest.approx(0.3)


def test_without_a_report_it_says_so(tmp_path: Path) -> None:
    path = log("swe-agent", tmp_path)
    (path / "trajectories/run-1/results.json").unlink()
    with pytest.raises(DataError, match=r"trajectories do not say whether .* report="):
        Read(path / "trajectories")


def test_an_instance_that_no_report_names_has_no_outcome(tmp_path: Path) -> None:
    read = Read(log("swe-agent", tmp_path))
    assert read.cells("run-1", "x-9", "success") == (None,)
    assert read.findings["runs_without_report"].systems == ("run-1",)


def test_a_limit_truncates(tmp_path: Path) -> None:
    read = Read(log("swe-agent", tmp_path))
    assert read.cells("run-1", "x-2", "truncated") == (True,)  # submitted (exit_cost)
    assert read.cells("run-1", "x-1", "truncated") == (False,)
    assert read.cells("mini", "x-1", "truncated") == (True,)  # LimitsExceeded


def test_reports_of_three_shapes(tmp_path: Path) -> None:
    path = log("swe-agent", tmp_path)
    (path / "trajectories/run-1/results.json").unlink()
    shapes = {
        "a": {"resolved_ids": ["x-2"], "unresolved_ids": ["x-1"], "error_ids": ["x-9"]},
        "b": {"resolved": ["x-2"], "applied": ["x-1", "x-2"], "no_generation": ["x-9"]},
        "c": {name: {"patch_exists": True, "resolved": name == "x-2"} for name in ("x-1", "x-2", "x-9")},
    }
    for name, shape in shapes.items():
        report = put(tmp_path / f"{name}.json", shape)
        read = Read(path / "trajectories", report=[str(report)])
        assert [read.cells("run-1", x, "success")[0] for x in ("x-1", "x-2", "x-9")] == [0.0, 1.0, 0.0]


def test_each_run_has_the_report_of_its_own_folder(tmp_path: Path) -> None:
    path = log("swe-agent", tmp_path)
    text = (path / "trajectories/run-1/x-1/x-1.traj").read_text()
    put(path / "trajectories/run-2/x-1/x-1.traj", text)
    put(
        path / "trajectories/run-2/results.json",
        {"resolved_ids": [], "unresolved_ids": ["x-1"], "submitted_ids": ["x-1"]},
    )
    read = Read(path)
    assert (read.cells("run-1", "x-1", "success"), read.cells("run-2", "x-1", "success")) == ((1.0,), (0.0,))


def test_reports_in_one_folder_are_told_by_their_names(tmp_path: Path) -> None:
    path = log("swe-agent", tmp_path)
    (path / "trajectories/run-1/results.json").unlink()
    text = (path / "trajectories/run-1/x-1/x-1.traj").read_text()
    put(path / "trajectories/run-2/x-1/x-1.traj", text)
    put(path / "run-1.eval.json", {"resolved_ids": ["x-1"], "unresolved_ids": []})
    put(path / "run-2.eval.json", {"resolved_ids": [], "unresolved_ids": ["x-1"]})
    read = Read(path)
    assert (read.cells("run-1", "x-1", "success"), read.cells("run-2", "x-1", "success")) == ((1.0,), (0.0,))


def test_a_report_that_contradicts_itself(tmp_path: Path) -> None:
    path = log("swe-agent", tmp_path)
    put(path / "trajectories/run-1/results.json", {"resolved_ids": ["x-1"], "unresolved_ids": ["x-1", "x-2"]})
    read = Read(path)
    assert read.cells("run-1", "x-1", "success") == (None,)
    assert read.findings["report_contradicts_itself"].count == 1
