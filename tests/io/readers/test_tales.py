"""TALES: every detail of its rollouts and summaries that changes results."""

import json
import warnings
from pathlib import Path

import pytest
from reader_logs import Read, lines, log, put, tales_rows

from torchpref.errors import DataError

SEED = 20241001


def test_values_by_hand(tmp_path: Path) -> None:
    read = Read(log("tales", tmp_path))
    assert read.name == "tales"
    assert read.cells("gpt-x", "ZorkOne", "score", "max_score", "steps", trial=SEED) == (
        [0.0, 30.0, 80.0, 20.0, 50.0],
        100.0,
        [1.0, 2.0, 3.0, 4.0, 5.0],
    )


def test_score_after_a_restart_keeps_what_it_had_reached(tmp_path: Path) -> None:
    from torchpref.io import read

    log("tales", tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = read(tmp_path / "log/gpt-x/ZorkOne/a0_s20241001.jsonl")
    assert runs.returns[0, 0, 0].tolist() == [0, 300_000, 800_000, 800_000, 800_000]


def test_moves_add_up_over_restarts(tmp_path: Path) -> None:
    assert Read(log("tales", tmp_path)).cells("gpt-x", "ZorkOne", "turns", trial=SEED) == ([1.0, 2.0, 3.0, 4.0, 5.0],)


def test_token_usage_is_per_step(tmp_path: Path) -> None:
    assert Read(log("tales", tmp_path)).cells("gpt-x", "ZorkOne", "tokens", trial=SEED) == (
        [100.0, 210.0, 330.0, 460.0, 600.0],
    )


def test_system_game_and_seed_stand_in_the_path(tmp_path: Path) -> None:
    read = Read(log("tales", tmp_path))
    assert ("gpt-x", "", "ZorkOne", SEED) in read.rows
    assert ("gpt-x", "", "ZorkOne", SEED + 1) in read.rows  # its name ends in _steps100


def test_admissible_commands_are_another_system(tmp_path: Path) -> None:
    assert "gpt-y (admissible commands)" in Read(log("tales", tmp_path)).systems


def test_names_flattened_into_one(tmp_path: Path) -> None:
    put(tmp_path / "log/my_agent__JerichoEnvZork1__a0_s7.jsonl", lines(tales_rows([5], [1], [1])))
    assert list(Read(tmp_path / "log").rows) == [("my_agent", "", "JerichoEnvZork1", 7)]


def test_summary_beside_its_rollout_is_not_a_second_run(tmp_path: Path) -> None:
    read = Read(log("tales", tmp_path))
    assert len(read.rows) == 4


def test_summary_alone_has_an_unknown_time_and_is_counted(tmp_path: Path) -> None:
    read = Read(log("tales", tmp_path))
    assert read.cells("gpt-z", "ZorkOne", "score", "max_score", "steps", trial=SEED) == ([0.0], 100.0, [None])
    assert read.findings["summaries_only"].systems == ("gpt-z",)


def test_old_and_new_columns_and_prompts_of_every_type(tmp_path: Path) -> None:
    rows = tales_rows([1, 2, 3], [1, 2, 3], [1, 1, 1])
    for row, prompt in zip(rows, ["text", {"messages": []}, ["a"]], strict=True):
        row["Prompt"] = prompt
    put(tmp_path / "log/s/g/a0_s1.jsonl", lines(rows))
    assert Read(tmp_path / "log").cells("s", "g", "score", trial=1) == ([1.0, 2.0, 3.0],)


def test_steps_from_zero_are_shifted(tmp_path: Path) -> None:
    rows = [row | {"Step": row["Step"] - 1} for row in tales_rows([1, 2], [1, 2], [1, 1])]
    put(tmp_path / "log/s/g/a0_s1.jsonl", lines(rows))
    read = Read(tmp_path / "log")
    assert read.cells("s", "g", "steps", trial=1) == ([1.0, 2.0],)
    assert read.findings["steps_from_zero"].count == 1


def test_rows_in_any_order_and_repeated_ones(tmp_path: Path) -> None:
    rows = tales_rows([0, 10, 20], [1, 2, 3], [1, 1, 1])
    put(tmp_path / "log/s/g/a0_s1.jsonl", lines([rows[2], rows[0], rows[1], rows[1] | {"Score": 15}]))
    read = Read(tmp_path / "log")
    assert read.cells("s", "g", "score", trial=1) == ([0.0, 15.0, 20.0],)
    assert read.findings["steps_repeated"].count == 1


def test_slow_and_fast_ways_agree(tmp_path: Path) -> None:
    rows = tales_rows([0, 30, 80, 20], [1, 2, 1, 2], [5, 6, 7, 8])
    put(tmp_path / "fast/s/g/a0_s1.jsonl", lines(rows))
    put(tmp_path / "slow/s/g/a0_s1.jsonl", lines([rows[0], rows[1] | {"Score": "30"}, *rows[2:]]))
    fast, slow = Read(tmp_path / "fast"), Read(tmp_path / "slow")
    assert fast.frame.equals(slow.frame)
    assert slow.findings["numbers_as_text"].count == 1


def test_no_maximum_is_no_outcome(tmp_path: Path) -> None:
    put(tmp_path / "log/s/g/a0_s1.jsonl", lines([row | {"Max Score": 0} for row in tales_rows([1], [1], [1])]))
    read = Read(tmp_path / "log")
    assert read.cells("s", "g", "score", trial=1) == (None,)
    assert read.findings["max_score_not_given"].count == 1


def test_line_cut_short_is_named(tmp_path: Path) -> None:
    path = put(tmp_path / "log/s/g/a0_s1.jsonl", lines(tales_rows([1, 2], [1, 2], [1, 1]))[:-20])
    with pytest.raises(DataError, match=r"a0_s1.jsonl:2: not valid JSON .* cut short"):
        Read(path)


def test_summary_of_a_game_without_maximum(tmp_path: Path) -> None:
    put(
        tmp_path / "log/s/g/a0_s1.json", json.dumps({"highscore": 3, "max_score": None, "env_name": "g", "nb_steps": 1})
    )
    assert Read(tmp_path / "log").cells("s", "g", "score", trial=1) == (None,)
