"""Terminal-Bench: tests passed, null outcomes, timeouts that still resolve."""

from pathlib import Path

from reader_logs import Read, log, put, terminal_trial


def test_values_by_hand(tmp_path: Path) -> None:
    read = Read(log("terminal-bench", tmp_path))
    assert read.name == "terminal-bench"
    assert read.cells("r1", "maze", "score", "max_score", "seconds", "tokens", trial=2) == (1.0, 3.0, 90.5, None)


def test_a_timeout_may_still_be_resolved(tmp_path: Path) -> None:
    assert Read(log("terminal-bench", tmp_path)).cells("r1", "maze", "score", "max_score", "truncated", trial=1) == (
        2.0,
        2.0,
        True,
    )


def test_null_outcome_of_a_crash_is_a_failure(tmp_path: Path) -> None:
    read = Read(log("terminal-bench", tmp_path))
    assert read.cells("r1", "kernel", "score", trial=1) == (0.0,)
    assert read.findings["agent_failures"].count == 1


def test_without_tests_the_outcome_counts_and_a_limit_truncates(tmp_path: Path) -> None:
    assert Read(log("terminal-bench", tmp_path)).cells("r1", "kernel", "score", "max_score", "truncated", trial=2) == (
        0.0,
        1.0,
        True,
    )


def test_older_trials_lack_timestamps(tmp_path: Path) -> None:
    assert Read(log("terminal-bench", tmp_path)).cells("r1", "kernel", "seconds", trial=2) == (None,)


def test_totals_of_one_task_differ(tmp_path: Path) -> None:
    assert Read(log("terminal-bench", tmp_path)).findings["totals_differ"].examples == ("maze: 1, 2, 3",)


def test_a_trial_in_its_run_and_in_its_own_file_counts_once(tmp_path: Path) -> None:
    read = Read(log("terminal-bench", tmp_path))
    assert len(read.rows) == 5
    assert read.findings["trials_twice"].count == 1


def test_trial_files_alone_name_the_run_by_its_folder(tmp_path: Path) -> None:
    path = log("terminal-bench", tmp_path)
    (path / "r1/results.json").unlink()
    assert ("r1", "", "maze", 1) in Read(path).rows


def test_agent_and_model_from_the_metadata(tmp_path: Path) -> None:
    assert "terminus + acme/m-1" in Read(log("terminal-bench", tmp_path)).systems


def test_a_flat_trial_names_its_run_in_the_recording(tmp_path: Path) -> None:
    put(
        tmp_path / "log/t.json",
        terminal_trial("x", "x.1-of-1.q", True, {"a": "passed"}, recording_path="run-9/x/x.1-of-1.q/agent.cast"),
    )
    assert Read(tmp_path / "log").systems == {"run-9"}


def test_outcome_against_tests_is_counted(tmp_path: Path) -> None:
    put(
        tmp_path / "log/r/results.json",
        {"results": [terminal_trial("x", "x.1-of-1.q", True, {"a": "failed"})], "accuracy": 0.5},
    )
    read = Read(tmp_path / "log")
    assert read.findings["outcome_disagrees"].count == 1
    assert read.cells("r", "x", "score", trial=1) == (0.0,)
    assert read.findings["rates_disagree"].count == 1
