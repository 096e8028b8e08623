"""Harbor trials and ATIF trajectories, written by Harbor's own models."""

import json
from pathlib import Path

import pytest
from reader_logs import Read, log, put

from torchpref.errors import DataError, UsageError

SYSTEM, BENCHMARK = "oracle + acme/m-1", "toy-bench"


def cells(read: Read, task: str, *columns: str, trial: int = 0) -> tuple:
    return read.cells(SYSTEM, task, *columns, trial=trial, benchmark=BENCHMARK)


def test_values_by_hand(tmp_path: Path) -> None:
    read = Read(log("harbor", tmp_path))
    assert read.name == "harbor"
    assert cells(read, "weather", "return", "seconds", "tokens", "cost", "truncated") == (
        [0.5],
        [30.0],
        [1100.0],
        [0.25],
        False,
    )


def test_trials_are_told_apart_by_name_without_a_warning(tmp_path: Path) -> None:
    read = Read(log("harbor", tmp_path))
    assert cells(read, "weather", "seconds", trial=1) == ([60.0],)
    assert "runs_under_one_name" not in read.findings


def test_a_time_limit_truncates(tmp_path: Path) -> None:
    assert cells(Read(log("harbor", tmp_path)), "weather", "truncated", trial=1) == (True,)


def test_no_verifier_result_is_no_run(tmp_path: Path) -> None:
    read = Read(log("harbor", tmp_path))
    assert cells(read, "build", "return") == ([None],)
    assert read.findings["outcomes_not_given"].count == 1


def test_steps_come_from_the_trajectory_beside_it(tmp_path: Path) -> None:
    read = Read(log("harbor", tmp_path))
    assert cells(read, "weather", "steps") == ([2.0],)  # a user's step and a copied one are not the agent's
    assert read.findings["context_copied"].count == 1


def test_verifiers_of_several_steps_give_progress(tmp_path: Path) -> None:
    returns, seconds, tokens, cost = cells(
        Read(log("harbor", tmp_path)), "chain", "return", "seconds", "tokens", "cost"
    )
    assert returns == pytest.approx([1 / 3, 1 / 3, 2 / 3])
    assert (seconds, tokens, cost) == ([10.0, 15.0, 30.0], [110.0, 330.0, 660.0], [0.5, 1.0, 1.5])


def test_the_last_steps_reward_may_be_the_trials(tmp_path: Path) -> None:
    path = log("harbor", tmp_path) / "chain__ddd/result.json"
    record = json.loads(path.read_text())
    record["verifier_result"]["rewards"]["reward"] = 1.0
    put(path, record)
    assert cells(Read(tmp_path / "log"), "chain", "return") == ([1.0, 0.0, 1.0],)


def test_steps_that_do_not_give_the_trials_reward(tmp_path: Path) -> None:
    path = log("harbor", tmp_path) / "chain__ddd/result.json"
    record = json.loads(path.read_text())
    record["verifier_result"]["rewards"]["reward"] = 0.1
    put(path, record)
    read = Read(tmp_path / "log")
    assert cells(read, "chain", "return") == (0.1,)
    assert read.findings["steps_disagree"].count == 1


def test_several_rewards_are_chosen_by_name(tmp_path: Path) -> None:
    path = log("harbor", tmp_path) / "weather__aaa/result.json"
    record = json.loads(path.read_text())
    record["verifier_result"]["rewards"] = {"style": 0.75, "tests": 0.25}
    put(path, record)
    with pytest.raises(UsageError, match=r"several rewards \(style, tests\); choose one with reward="):
        Read(path)
    read = Read(path, reward="tests")
    assert cells(read, "weather", "return") == (0.25,)


def test_a_reward_that_harbor_marks_as_not_valid(tmp_path: Path) -> None:
    path = log("harbor", tmp_path) / "weather__aaa/result.json"
    record = json.loads(path.read_text())
    record["reward_valid"] = False
    put(path, record)
    read = Read(path)
    assert cells(read, "weather", "return") == (None,)
    assert read.findings["rewards_not_valid"].count == 1


def test_atif_alone_needs_a_report(tmp_path: Path) -> None:
    path = log("atif", tmp_path)
    read = Read(path)
    assert read.name == "atif"
    assert read.cells("oracle + m-1", "weather__aaa", "return", "steps", "seconds", "tokens", "cost") == (
        1.0,
        2.0,
        29.5,
        1100.0,
        0.25,
    )
    assert read.cells("oracle + m-1", "weather__bbb", "return") == (0.0,)
    (path / "report.json").unlink()
    with pytest.raises(DataError, match=r"ATIF trajectories hold no reward; .* report="):
        Read(path)


def test_atif_joins_numbers_by_trial_task_or_session(tmp_path: Path) -> None:
    path = log("atif", tmp_path)
    (path / "report.json").unlink()
    report = put(tmp_path / "rewards.json", {"weather": 0.5, "other": 0.25})
    read = Read(path, report=str(report))
    assert [row["return"] for row in read.rows.values()] == [0.5, 0.5]
    with pytest.raises(UsageError, match="report has to be a path"):
        Read(path, report=3)


def test_atif_final_metrics_count_before_the_steps(tmp_path: Path) -> None:
    path = log("atif", tmp_path) / "weather__aaa/agent/trajectory.json"
    record = json.loads(path.read_text())
    record["final_metrics"] = {"total_prompt_tokens": 5000, "total_completion_tokens": 7, "total_cost_usd": 9.5}
    put(path, record)
    assert Read(tmp_path / "log").cells("oracle + m-1", "weather__aaa", "tokens", "cost") == (5007.0, 9.5)
