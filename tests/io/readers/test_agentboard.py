"""AgentBoard: every detail of its logs that changes results."""

import json
from pathlib import Path

from reader_logs import Read, log, put


def test_values_by_hand(tmp_path: Path) -> None:
    read = Read(log("agentboard", tmp_path))
    assert read.name == "agentboard"
    assert read.systems == {"alpha", "beta"}
    assert read.cells("alpha", "0", "return", "steps", benchmark="tool-query") == ([0.5, 1.0, 1.0], [3.0, 6.0, 6.0])
    assert len(read.rows) == 6


def test_first_step_is_one_not_zero(tmp_path: Path) -> None:
    read = Read(log("agentboard", tmp_path))
    assert read.cells("alpha", "1", "steps", benchmark="tool-query")[0][0] == 1.0  # logged as step 0
    assert read.cells("beta", "1", "steps", benchmark="tool-query") == ([1.0, 9.0],)


def test_records_span_lines_and_may_share_one(tmp_path: Path) -> None:
    path = log("agentboard", tmp_path) / "alpha/logs/tool-query.jsonl"
    assert path.read_text().splitlines()[0] == "{"  # one pretty-printed object per record
    before = Read(path).frame
    decoder, text, records = json.JSONDecoder(), path.read_text(), []
    while text.strip():
        record, end = decoder.raw_decode(text.lstrip())
        records.append(record)
        text = text.lstrip()[end:]
    put(path, " ".join(json.dumps(record) for record in records))
    assert Read(path).frame.equals(before)


def test_values_that_fall_stay_in_the_row_and_total_is_the_turns(tmp_path: Path) -> None:
    read = Read(log("agentboard", tmp_path))
    returns, steps = read.cells("alpha", "1", "return", "steps", benchmark="tool-query")
    assert returns == [0.5, 0.75, 0.25, 0.25]  # the running maximum is taken when runs are built
    assert steps[-1] == 8.0  # eight turns, though nothing changed after the seventh


def test_progress_rate_is_the_last_not_the_largest(tmp_path: Path) -> None:
    import warnings

    from torchpref.io import read

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = read(log("agentboard", tmp_path))
    i, s = runs.instances.index("1"), runs.systems.index("alpha")
    assert runs.returns[i, s, 0].max() == 750_000


def test_no_change_at_all_is_a_run_that_reached_nothing(tmp_path: Path) -> None:
    assert Read(log("agentboard", tmp_path)).cells("alpha", "2", "return", "steps", benchmark="tool-query") == (
        [0.0],
        [3.0],
    )


def test_webarena_says_reward_and_is_done_is_no_truth_value(tmp_path: Path) -> None:
    read = Read(log("agentboard", tmp_path))
    assert read.cells("alpha", "7", "return", "steps", benchmark="webarena") == (
        [0.0, 0.5, 0.5, 0.5],
        [1.0, 2.0, 3.0, 3.0],
    )
    assert read.findings["changes_not_given"].count == 1
    assert "success_disagrees" not in read.findings  # is_done is 0.0 there


def test_is_done_against_progress_is_counted(tmp_path: Path) -> None:
    record = {"id": 0, "is_done": True, "progress_rate": 0.5, "score_change_record": [[0, 0.5]], "trajectory": {}}
    put(tmp_path / "log/a/logs/t.jsonl", json.dumps(record))
    read = Read(tmp_path / "log")
    assert read.findings["success_disagrees"].count == 1
    assert read.findings["success_disagrees"].systems == ("a",)


def test_text_file_alone_gives_the_changes_but_not_the_total(tmp_path: Path) -> None:
    read = Read(log("agentboard", tmp_path))
    assert read.cells("beta", "0", "return", "steps", benchmark="tool-query") == ([0.5], [5.0])


def test_text_beside_jsonl_is_compared_and_not_counted_twice(tmp_path: Path) -> None:
    folder = log("agentboard", tmp_path)
    line = "[EXP] {}: [success_rate]: True, [progress_rate]: {}, [grounding_acc]: 0.7, [score_state]: [] \n"
    put(folder / "alpha/tool-query.txt", line.format(0, 1.0) + line.format(1, 0.25))
    read = Read(folder)
    assert len(read.rows) == 6
    assert read.findings["text_disagrees"].count == 1  # record 1 had reached 0.75


def test_aggregates_are_no_runs(tmp_path: Path) -> None:
    folder = log("agentboard", tmp_path)
    assert (folder / "beta/all_results.txt").exists()
    assert {system for system, *_ in Read(folder).rows} == {"alpha", "beta"}
