"""OpenHands output.jsonl: the clocks of a run, and an outcome that is only in the report."""

from pathlib import Path

import pytest
from reader_logs import Read, lines, log, put

from torchpref.errors import DataError, UsageError

RUN = "m_maxiter_100"


def test_values_by_hand(tmp_path: Path) -> None:
    read = Read(log("openhands", tmp_path))
    assert read.name == "openhands"
    assert read.cells(RUN, "x-1", "return", "steps", "seconds", "tokens", "cost", "truncated") == (
        1.0,
        2.0,
        9.0,
        1050.0,
        0.75,
        False,
    )


def test_without_a_report_it_says_so(tmp_path: Path) -> None:
    path = log("openhands", tmp_path)
    (path / RUN / "output.report.json").unlink()
    with pytest.raises(DataError, match=r"no evaluation report was found .* report="):
        Read(path)


def test_a_named_report_is_joined(tmp_path: Path) -> None:
    path = log("openhands", tmp_path)
    report = put(tmp_path / "elsewhere/report.json", {"resolved_ids": ["x-2"], "unresolved_ids": ["x-1"]})
    (path / RUN / "output.report.json").unlink()
    read = Read(path, report=str(report))
    assert (read.cells(RUN, "x-1", "return"), read.cells(RUN, "x-2", "return")) == ((0.0,), (1.0,))


def test_an_instance_that_no_report_names_has_no_outcome(tmp_path: Path) -> None:
    read = Read(log("openhands", tmp_path))
    assert read.cells(RUN, "x-3", "return", "cost") == (None, 0.0)
    assert read.findings["outcomes_not_given"].count == 1


def test_the_last_attempt_counts(tmp_path: Path) -> None:
    read = Read(log("openhands", tmp_path))
    assert read.cells(RUN, "x-2", "cost") == (1.5,)
    assert read.findings["attempts_several"].count == 1


def test_the_iteration_limit_truncates(tmp_path: Path) -> None:
    assert Read(log("openhands", tmp_path)).cells(RUN, "x-2", "truncated") == (True,)


def test_outcome_in_the_line_itself(tmp_path: Path) -> None:
    base = {"history": [["a", "o"], ["b", "o"]], "metrics": {"accumulated_cost": 1.0}}
    records = [
        {"instance_id": "a", "test_result": {"score": True}, **base},
        {"instance_id": "b", "test_result": {"report": {"resolved": False}}, **base},
        {"instance_id": "c", "test_result": {}, "report": {"resolved": True}, **base},
    ]
    put(tmp_path / "log/run/output.jsonl", lines(records))
    put(tmp_path / "log/run/output.critic_attempt_1.jsonl", lines(records))
    read = Read(tmp_path / "log")
    assert [row["return"] for row in read.rows.values()] == [1.0, 0.0, 1.0]
    assert read.cells("log", "a", "steps") == (2.0,) if "log" in read.systems else read.systems
    assert read.findings["attempts_left_out"].count == 1


def test_folder_that_says_nothing_gives_way_to_the_model(tmp_path: Path) -> None:
    record = {
        "instance_id": "a",
        "test_result": {"resolved": True},
        "history": [],
        "metadata": {"llm_config": {"model": "m-1"}},
    }
    put(tmp_path / "log/outputs/output.jsonl", lines([record]))
    assert Read(tmp_path / "log").systems == {"m-1"}


def test_unknown_option(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"format 'openhands' has no option 'repot'; its options: report"):
        Read(log("openhands", tmp_path), repot="x")
