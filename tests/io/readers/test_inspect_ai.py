"""Inspect logs, written by Inspect itself with its mock model."""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from reader_logs import DATA, Read, log, put

from torchpref.errors import DataError, MissingExtraError, UsageError

MODEL = "mockllm/model"


def cells(read: Read, sample: str, *columns: str, trial: int = 1, task: str = "toy") -> tuple[Any, ...]:
    return read.cells(MODEL, sample, *columns, trial=trial, benchmark=task)


def changed(tmp_path: Path, change: Any) -> Path:
    """The JSON log with something changed."""
    record = json.loads((DATA / "older.json").read_text())
    change(record)
    return put(tmp_path / "log.json", record)


def test_values_by_hand_from_an_archive(tmp_path: Path) -> None:
    read = Read(DATA / "toy.eval")
    assert read.name == "inspect"
    assert cells(read, "a", "score", "turns", "tokens", "max_score") == (
        [0.25, 0.5, 0.5],
        [1.0, 2.0, 2.0],
        [120.0, 240.0, 240.0],
        1.0,
    )
    assert cells(read, "b", "score", trial=2) == ([0.5, 1.0, 1.0],)


def test_members_are_packed_with_method_93_and_read_without_inspect_ai(tmp_path: Path) -> None:
    with zipfile.ZipFile(DATA / "toy.eval") as archive:
        assert {info.compress_type for info in archive.infolist()} == {93}
    before = set(sys.modules)
    Read(DATA / "toy.eval")
    assert not any(name.split(".")[0] == "inspect_ai" for name in set(sys.modules) - before)


def test_stored_and_deflated_members_are_read_too(tmp_path: Path) -> None:
    from torchpref.io.files.archives import Archive

    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path = tmp_path / f"{method}.eval"
        with Archive(DATA / "toy.eval") as source, zipfile.ZipFile(path, "w", method) as target:
            for name in source.infos:
                target.writestr(name, source.read(name))
        assert Read(path).frame.equals(Read(DATA / "toy.eval").frame)


def test_zstandard_missing_is_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"torchpref\[inspect\]"):
        Read(DATA / "toy.eval")


def test_intermediate_scores_have_their_working_time(tmp_path: Path) -> None:
    log_ = json.loads((DATA / "older.json").read_text())
    sample = log_["samples"][0]
    starts = [
        event["working_start"] for event in sample["events"] if event["event"] == "score" and event["intermediate"]
    ]
    (seconds,) = cells(Read(DATA / "older.json"), "a", "seconds", task="older")
    assert seconds == [*starts, sample["working_time"]]
    assert len(starts) == 2


def test_epochs_are_trials(tmp_path: Path) -> None:
    assert {trial for _, _, _, trial in Read(DATA / "toy.eval").rows} == {1, 2}


def test_several_scorers_are_chosen_by_name(tmp_path: Path) -> None:
    first = Read(DATA / "toy.eval")
    assert first.findings["several_scorers"].count == 4
    letters = Read(DATA / "toy.eval", scorer="letter")
    assert cells(letters, "a", "score") == ([1.0, 1.0, 1.0],)
    assert cells(letters, "b", "score") == ([0.5, 0.5, 0.5],)  # P is half
    assert "several_scorers" not in letters.findings
    with pytest.raises(UsageError, match=r"no scorer is called 'nobody'; there are: partial, multi, letter"):
        Read(DATA / "toy.eval", scorer="nobody")


def test_objects_are_chosen_by_key(tmp_path: Path) -> None:
    assert cells(Read(DATA / "toy.eval", scorer="multi.x"), "a", "score") == ([0.75, 0.75, 0.75],)
    with pytest.raises(
        UsageError, match=r"is an object; choose one of its values with scorer=, such as multi.x, multi.y"
    ):
        Read(DATA / "toy.eval", scorer="multi")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("C", 1.0),
        ("P", 0.5),
        ("I", 0.0),
        ("N", 0.0),
        (True, 1.0),
        (0.25, 0.25),
        ("0.5", 0.5),
        ("yes", 1.0),
        ({"only": "C"}, 1.0),
    ],
)
def test_what_scores_may_be(tmp_path: Path, value: Any, number: float) -> None:
    def change(record: dict[str, Any]) -> None:
        record["samples"][0]["scores"]["letter"]["value"] = value
        record["samples"][0]["events"] = []

    assert cells(Read(changed(tmp_path, change)), "a", "score", task="older")[0] == [number]


def test_scores_beyond_one_need_their_maximum(tmp_path: Path) -> None:
    def change(record: dict[str, Any]) -> None:
        for sample in record["samples"]:
            sample["scores"]["letter"]["value"], sample["events"] = 5, []

    assert cells(Read(changed(tmp_path, change), max_score=10), "a", "score", "max_score", task="older") == (5.0, 10.0)
    with pytest.raises(UsageError, match="max_score has to be a positive number"):
        Read(changed(tmp_path, change), max_score=0)


def test_samples_with_errors_have_no_outcome_and_are_counted(tmp_path: Path) -> None:
    read = Read(DATA / "toy.eval")
    assert cells(read, "broken", "score", "turns") == ([None], [2.0])
    assert read.findings["samples_with_errors"].count == 2
    assert "broken on purpose" in read.findings["samples_with_errors"].examples[0]


def test_samples_stopped_by_a_limit_are_truncated(tmp_path: Path) -> None:
    read = Read(DATA / "limited.eval")
    assert cells(read, "a", "score", "truncated", task="limited") == ([1.0, 1.0], True)
    assert cells(Read(DATA / "toy.eval"), "a", "truncated") == (False,)


def test_status_other_than_success_is_counted(tmp_path: Path) -> None:
    read = Read(changed(tmp_path, lambda record: record.update(status="cancelled")))
    assert read.findings["logs_not_finished"].examples[0].endswith("status cancelled")
    assert len(read.rows) == 2


def test_the_solver_is_part_of_the_system(tmp_path: Path) -> None:
    assert Read(changed(tmp_path, lambda record: record["eval"].update(solver="react"))).systems == {
        "mockllm/model + react"
    }


def test_total_time_stands_in_for_working_time_and_turns_are_counted(tmp_path: Path) -> None:
    def change(record: dict[str, Any]) -> None:
        for sample in record["samples"]:
            sample["events"] = [event for event in sample["events"] if event["event"] != "score"]
            del sample["working_time"], sample["turn_count"]

    total = json.loads((DATA / "older.json").read_text())["samples"][0]["total_time"]
    assert cells(Read(changed(tmp_path, change)), "a", "seconds", "turns", task="older") == (total, 2.0)


def test_samples_kept_in_the_transcript_of_older_logs(tmp_path: Path) -> None:
    def change(record: dict[str, Any]) -> None:
        for sample in record["samples"]:
            sample["transcript"] = {"events": sample.pop("events")}
            for event in sample["transcript"]["events"]:
                event.pop("scorer", None)

    assert cells(Read(changed(tmp_path, change)), "a", "score", task="older") == ([1.0, 1.0, 1.0],)


def test_a_log_that_was_retried_counts_once(tmp_path: Path) -> None:
    folder = log("inspect", tmp_path)
    put(folder / "again.json", (DATA / "older.json").read_bytes())
    read = Read(folder)
    assert read.findings["records_repeated"].count == 2
    assert len(read.rows) == 10


def test_a_log_without_samples(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no run found .*logs without samples"):
        Read(changed(tmp_path, lambda record: record.pop("samples")))


def test_an_archive_that_was_never_finished(tmp_path: Path) -> None:
    from torchpref.io.files.archives import Archive

    path = tmp_path / "open.eval"
    with Archive(DATA / "toy.eval") as source, zipfile.ZipFile(path, "w") as target:
        for name in source.infos:
            if name != "header.json":
                target.writestr(name, source.read(name))
    read = Read(path)
    assert read.findings["logs_not_finished"].examples[0].endswith("status started")
    assert read.systems == {MODEL}
