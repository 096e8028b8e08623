"""tau2-bench and tau-bench 1 results."""

from pathlib import Path

import pytest
from reader_logs import Read, log, put

from torchpref.errors import UsageError


def test_values_by_hand(tmp_path: Path) -> None:
    read = Read(log("tau2", tmp_path))
    assert read.name == "tau2"
    values = read.cells(
        "m-1", "3", "return", "steps", "turns", "seconds", "tokens", "cost", "truncated", benchmark="airline"
    )
    assert values == (1.0, 5.0, 3.0, 59.5, 320.0, 0.125, False)


def test_null_or_zero_duration_and_cost_are_unknown_times(tmp_path: Path) -> None:
    import warnings

    from torchpref.io import read
    from torchpref.runs.curves import curves

    path = log("tau2", tmp_path)
    assert Read(path).cells("m-1", "3", "seconds", "cost", trial=1, benchmark="airline") == (0.0, None)
    put(path / "results.json", (path / "results.json").read_text().replace('"reward": 0.0', '"reward": 1.0'))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = read(path / "results.json")
    where = runs.instances.index("3"), runs.systems.index("m-1"), 1, 0
    assert (curves(runs, "seconds").ticks[where], curves(runs, "cost").ticks[where]) == (-1, -1)


def test_max_steps_truncates(tmp_path: Path) -> None:
    assert Read(log("tau2", tmp_path)).cells("m-1", "3", "truncated", trial=1, benchmark="airline") == (True,)


def test_no_reward_is_no_run(tmp_path: Path) -> None:
    read = Read(log("tau2", tmp_path))
    assert read.cells("m-1", "4", "return", benchmark="airline") == (None,)
    assert read.findings["outcomes_not_given"].count == 1


def test_a_folder_of_simulations_takes_its_settings_from_above(tmp_path: Path) -> None:
    assert Read(log("tau2", tmp_path)).cells("m-2 + solo", "3", "return", benchmark="airline") == (1.0,)


def test_action_checks_matched_to_turns_give_progress_where_wanted(tmp_path: Path) -> None:
    path = log("tau2", tmp_path)
    read = Read(path, progress="actions")
    returns, steps, turns = read.cells("m-1", "3", "return", "steps", "turns", benchmark="airline")
    assert returns == [0.25, 0.5, 1.0]  # two of three checks matched, and the reward
    assert (steps, turns) == ([3.0, 5.0, 5.0], [2.0, 3.0, 3.0])
    failed = read.cells("m-1", "3", "return", trial=1, benchmark="airline")
    assert failed == ([0.25, 0.5, 0.5],)
    with pytest.raises(UsageError, match="progress is 'none' or 'actions'"):
        Read(path, progress="yes")


def test_a_matched_check_without_its_call_is_counted(tmp_path: Path) -> None:
    path = log("tau2", tmp_path) / "results.json"
    put(
        path,
        path.read_text().replace(
            '"name": "book", "arguments": {"id": 2}, "info"', '"name": "book", "arguments": {"id": 9}, "info"'
        ),
    )
    read = Read(path, progress="actions")
    assert read.findings["actions_not_placed"].count == 2
    assert read.cells("m-1", "3", "return", benchmark="airline") == ([0.25, 1.0],)


def test_tau_bench_1_by_hand(tmp_path: Path) -> None:
    read = Read(log("tau-bench", tmp_path))
    assert read.name == "tau-bench"
    assert read.cells("tool-calling-m-1", "0", "return", "steps", "turns") == (1.0, 4.0, 2.0)
    assert read.cells("tool-calling-m-1", "0", "return", trial=1) == (0.0,)
    assert read.cells("tool-calling-m-1", "1", "return", "steps") == (None, None)
    assert read.findings["outcomes_not_given"].count == 1
