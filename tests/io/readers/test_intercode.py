"""InterCode: rewards that fall, are negative, or start at a floor; files wrapped in meta and logs."""

from pathlib import Path

from reader_logs import Read, intercode_run, log, put

SYSTEM, BENCHMARK = "multiturn_10_turns", "ic_bash"


def test_values_by_hand(tmp_path: Path) -> None:
    read = Read(log("intercode", tmp_path))
    assert read.name == "intercode"
    assert read.cells(SYSTEM, "nl2bash_fs_1/0", "return", "turns", "truncated", benchmark=BENCHMARK) == (
        [0.67, 0.5, 1.0],
        [1.0, 2.0, 3.0],
        False,
    )


def test_negative_rewards_are_zero_and_counted(tmp_path: Path) -> None:
    read = Read(log("intercode", tmp_path))
    assert read.cells(SYSTEM, "nl2bash_fs_1/2", "return", benchmark=BENCHMARK) == ([0.0, 0.25],)
    assert read.findings["rewards_negative"].count == 1


def test_the_floor_at_the_first_turn_is_noted(tmp_path: Path) -> None:
    finding = Read(log("intercode", tmp_path)).findings["floor_at_first_turn"]
    assert (finding.severity, finding.examples) == ("note", ("ic_bash: 0.67 at turn 1 in 3 of 6 runs",))


def test_plan_solve_files_are_wrapped_and_have_no_limit(tmp_path: Path) -> None:
    read = Read(log("intercode", tmp_path))
    assert read.cells("plan_solve", "nl2bash_fs_1/0", "return", "truncated", benchmark=BENCHMARK) == (
        [0.0, 0.0, 1.0, 1.0],
        False,
    )


def test_an_instance_is_data_set_and_task(tmp_path: Path) -> None:
    read = Read(log("intercode", tmp_path))
    assert read.cells(SYSTEM, "nl2bash_fs_2/0", "return", benchmark=BENCHMARK) == ([1.0],)


def test_the_turn_limit_truncates_what_was_not_solved(tmp_path: Path) -> None:
    read = Read(log("intercode", tmp_path))
    assert read.cells(SYSTEM, "nl2bash_fs_1/1", "truncated", benchmark=BENCHMARK) == (True,)
    assert read.cells(SYSTEM, "nl2bash_fs_1/2", "truncated", benchmark=BENCHMARK) == (False,)  # it gave up by itself


def test_more_rewards_than_turns_are_noted(tmp_path: Path) -> None:
    assert Read(log("intercode", tmp_path)).findings["more_turns_than_stated"].count == 1


def test_a_summary_that_says_otherwise_is_counted(tmp_path: Path) -> None:
    run = intercode_run([0.25, 0.5], 0)
    run["summary"]["max_reward"] = 1.0
    put(tmp_path / "log/ic_bash_x.json", {"0": run})
    assert Read(tmp_path / "log").findings["summary_disagrees"].count == 1


def test_files_of_one_name_in_two_folders_are_two_systems(tmp_path: Path) -> None:
    for name in ("gpt", "bison"):
        put(tmp_path / f"log/{name}/ic_bash_react.json", {"0": intercode_run([1.0], 0)})
    assert Read(tmp_path / "log").systems == {"gpt/react", "bison/react"}


def test_a_run_without_a_turn_has_no_outcome(tmp_path: Path) -> None:
    put(tmp_path / "log/ic_bash_x.json", {"0": intercode_run([], 0), "1": intercode_run([1.0], 1)})
    assert Read(tmp_path / "log").findings["outcomes_not_given"].count == 1
