"""TheAgentCompany: every detail of its evaluations and result tables that changes results."""

from pathlib import Path

import pytest
from reader_logs import Read, log, put

from torchpref.errors import UsageError


def test_values_by_hand(tmp_path: Path) -> None:
    read = Read(log("theagentcompany", tmp_path))
    assert read.name == "theagentcompany"
    assert read.cells("one", "ds-sql", "score", "max_score") == (4.0, 6.0)


def test_steps_and_cost_are_joined_by_task_from_the_table(tmp_path: Path) -> None:
    read = Read(log("theagentcompany", tmp_path))
    assert read.cells("one", "ds-sql", "steps", "cost") == (99.0, 14.7)
    assert read.cells("one", "pm-slides", "steps", "cost") == (9.0, 0.1)


def test_without_table_the_time_is_unknown_and_counted(tmp_path: Path) -> None:
    read = Read(log("theagentcompany", tmp_path))
    assert read.cells("two", "ds-sql", "steps", "cost") == (None, None)
    assert read.findings["runs_without_table"].systems == ("two",)


def test_image_suffix_is_not_part_of_the_task(tmp_path: Path) -> None:
    assert {instance for _, _, instance, _ in Read(log("theagentcompany", tmp_path)).rows} == {
        "ds-sql",
        "pm-slides",
        "hr-mail",
    }


def test_totals_that_differ_are_kept_per_run_and_counted(tmp_path: Path) -> None:
    read = Read(log("theagentcompany", tmp_path))
    assert read.cells("one", "ds-sql", "max_score") + read.cells("two", "ds-sql", "max_score") == (6.0, 4.0)
    assert read.findings["totals_differ"].examples == ("ds-sql: 4 for two, 6 for one",)


def test_the_halved_score_of_the_table_is_not_the_return(tmp_path: Path) -> None:
    read = Read(log("theagentcompany", tmp_path))
    assert read.cells("one", "hr-mail", "score", "max_score") == (1.0, 4.0)  # a quarter, where the table says 0.12


def test_table_rows_without_evaluation_are_runs(tmp_path: Path) -> None:
    assert Read(log("theagentcompany", tmp_path)).cells("one", "hr-mail", "steps") == (100.0,)


def test_cap_of_steps_truncates_only_when_asked(tmp_path: Path) -> None:
    path = log("theagentcompany", tmp_path)
    assert "truncated" not in Read(path).frame.columns
    capped = Read(path, max_steps=100)
    assert capped.cells("one", "hr-mail", "truncated") == (True,)
    assert capped.cells("one", "ds-sql", "truncated") == (False,)
    with pytest.raises(UsageError, match="max_steps has to be a positive number"):
        Read(path, max_steps=-1)


def test_newer_fields_stand_in_for_the_final_score(tmp_path: Path) -> None:
    put(
        tmp_path / "log/a/eval_x.json",
        {"task_id": "x", "score": 1, "total": 2, "checkpoints": [], "final_score": None, "error": "boom"},
    )
    read = Read(tmp_path / "log", "theagentcompany")
    assert read.cells("a", "x", "score", "max_score") == (1.0, 2.0)
    assert read.findings["evaluation_errors"].count == 1


def test_checkpoints_that_do_not_add_up_are_noted(tmp_path: Path) -> None:
    put(
        tmp_path / "log/a/eval_x.json",
        {"checkpoints": [{"total": 2, "result": 1}], "final_score": {"total": 2, "result": 2}},
    )
    read = Read(tmp_path / "log")
    assert read.findings["checkpoints_disagree"].severity == "note"
    assert read.cells("a", "x", "score") == (2.0,)
