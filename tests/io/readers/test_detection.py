"""Recognising formats by content, walking folders, and readers of other packages."""

import os
import shutil
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from reader_logs import LOGS, Read, log, put

from torchpref.errors import DataError, TorchPrefWarning, UsageError
from torchpref.io import readers as package
from torchpref.io.detect import detect_format, select_format
from torchpref.io.files.source import Source
from torchpref.io.files.walk import walk
from torchpref.io.logs.reader import Reader
from torchpref.io.readers import reader_named, readers


@pytest.mark.parametrize("name", LOGS)
def test_auto_recognises_each_format_among_all_others(tmp_path: Path, name: str) -> None:
    path = log(name, tmp_path)
    found = detect_format(walk(path))
    assert found.reader is not None and found.reader.name == name
    for source in found.sources:
        hits = [reader.name for reader in readers() if reader.detect(source)]
        # companions are nobody's own runs, or could be read alone
        assert hits in ([], [name], ["swebench-reports"]) or (name, hits) == ("harbor", ["atif"])


@pytest.mark.parametrize("name", sorted(set(LOGS) - {"tales", "theagentcompany"}))
def test_names_of_files_do_not_matter(tmp_path: Path, name: str) -> None:
    """The same content under names that say nothing is recognised as the same format."""
    sources = [source for source in walk(log(name, tmp_path)) if reader_named(name).detect(source)]
    for number, source in enumerate(sources):
        copy = tmp_path / f"copy/{number}.dat"
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(source.path, copy)
        found = detect_format(walk(copy))
        assert found.reader is not None and found.reader.name == name


def test_all_formats_are_registered() -> None:
    assert {reader.name for reader in readers()} == set(LOGS)
    assert all(reader.title and reader.gives for reader in readers())


def test_two_formats_at_once_are_refused_and_named(tmp_path: Path) -> None:
    for name in ("intercode", "tau-bench"):
        LOGS[name](tmp_path / "log")
    with pytest.raises(DataError, match=r"logs of 2 formats at once \(intercode: .*; tau-bench: .*format="):
        detect_format(walk(tmp_path / "log"))
    found = select_format("tau-bench", walk(tmp_path / "log"))
    assert [source.path.name for source in found.sources] == ["tool-calling-m-1.json"]
    assert found.findings[0].count == 3


def test_files_beside_the_logs_are_left_out_and_counted(tmp_path: Path) -> None:
    path = log("intercode", tmp_path)
    put(path / "notes.txt", "hello")
    put(path / "picture.png", b"\x89PNG\r\n\x1a\n")
    put(path / "empty.json", "")
    read = Read(path)
    assert read.findings["files_left_out"].count == 2
    assert read.findings["files_empty"].count == 1
    assert read.findings["files_left_out"].severity == "note"


def test_a_file_given_by_name_and_left_out_is_a_warning(tmp_path: Path) -> None:
    path = log("tau-bench", tmp_path) / "tool-calling-m-1.json"
    notes = put(tmp_path / "notes.txt", "hello")
    assert Read([path, notes]).findings["files_left_out_by_name"].severity == "warning"


def test_a_table_is_no_log(tmp_path: Path) -> None:
    put(tmp_path / "runs.csv", "system,instance,success,cost\na,x,1,2\n")
    put(tmp_path / "more.jsonl", '{"system": "a", "instance": "y", "success": true}\n')
    found = detect_format(walk(tmp_path))
    assert found.reader is None and len(found.sources) == 2


def test_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no format is called 'tals'; known are: auto, table, agentboard, .*tales"):
        reader_named("tals")


class TestWalk:
    def test_a_loop_of_links_is_entered_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = log("intercode", tmp_path)
        entered: list[object] = []
        scandir = os.scandir
        monkeypatch.setattr(os, "scandir", lambda folder: entered.append(folder) or scandir(folder))
        (path / "loop").symlink_to(path, target_is_directory=True)
        (path / "self").symlink_to(path / "self")
        assert len(walk(path)) == 3
        assert len(entered) == 1

    def test_hidden_files_are_passed_over(self, tmp_path: Path) -> None:
        put(tmp_path / ".git/x.json", "{}")
        put(tmp_path / ".x.json", "{}")
        put(tmp_path / "x.json", "{}")
        assert [source.path.name for source in walk(tmp_path)] == ["x.json"]

    def test_a_file_reached_twice_counts_once(self, tmp_path: Path) -> None:
        path = put(tmp_path / "a/x.json", "{}")
        (tmp_path / "b.json").symlink_to(path)
        assert len(walk([tmp_path, path, tmp_path / "a"])) == 1

    def test_patterns(self, tmp_path: Path) -> None:
        put(tmp_path / "a/x.json", "{}")
        put(tmp_path / "a/y.txt", "{}")
        assert len(walk(str(tmp_path / "**/*.json"))) == 1
        put(tmp_path / "a/[1].json", "{}")
        assert len(walk(str(tmp_path / "a/[1].json"))) == 1  # a name, not a pattern

    def test_order_does_not_depend_on_the_disk(self, tmp_path: Path) -> None:
        for name in ("b/1", "a/2", "c", "a/1"):
            put(tmp_path / name, "{}")
        assert [str(s.path.relative_to(tmp_path)) for s in walk(tmp_path)] == ["c", "a/1", "a/2", "b/1"]

    def test_pipes_are_never_opened(self, tmp_path: Path) -> None:
        put(tmp_path / "x.json", "{}")
        os.mkfifo(tmp_path / "pipe")
        assert len(walk(tmp_path)) == 1
        with pytest.raises(DataError, match="neither a file nor a folder"):
            walk(tmp_path / "pipe")

    @pytest.mark.parametrize(
        ("path", "error", "message"),
        [
            ([], UsageError, "no path given"),
            ("nowhere", UsageError, "nowhere: no such file or folder"),
            ("no*where", UsageError, "no file matches"),
            ("a\0b", UsageError, "is not a path"),
        ],
    )
    def test_paths_that_lead_nowhere(self, path: object, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            walk(path)  # type: ignore[arg-type]

    def test_an_empty_folder_and_a_broken_link(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        with pytest.raises(DataError, match="the folder holds no files"):
            walk(tmp_path / "empty")
        (tmp_path / "link").symlink_to(tmp_path / "gone")
        with pytest.raises(DataError, match="broken link"):
            walk(tmp_path / "link")


class TestOtherPackages:
    @pytest.fixture(autouse=True)
    def fresh(self):
        readers.cache_clear()
        yield
        readers.cache_clear()

    def offer(self, monkeypatch: pytest.MonkeyPatch, value: object, name: str = "ourlog") -> None:
        entry = EntryPoint(name, "ourpackage:READER", package.GROUP)
        monkeypatch.setattr(EntryPoint, "load", lambda self: value)
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry] if group == package.GROUP else [])

    def test_a_reader_is_added(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        def detect(source: Source) -> bool:
            return source.head.startswith(b"OURLOG")

        def read(sources, options):
            import polars as pl

            from torchpref.runs.tidy.schema import Tidy

            return Tidy(pl.DataFrame({"system": ["a"], "instance": ["x"], "success": [True], "cost": [1.0]}))

        self.offer(monkeypatch, Reader("ourlog", "Our log", ("cost",), detect, read))
        put(tmp_path / "x.log", "OURLOG 1")
        assert Read(tmp_path / "x.log").name == "ourlog"
        from torchpref.io import read as read_runs
        from torchpref.io.convert import formats

        assert read_runs(tmp_path / "x.log").systems == ("a",)
        assert formats()[-1].name == "ourlog"

    def test_what_is_no_reader_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offer(monkeypatch, object())
        with pytest.warns(TorchPrefWarning, match="'ourlog' .* is of type object, not a torchpref Reader"):
            readers()

    def test_a_name_that_is_taken_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offer(monkeypatch, Reader("tales", "x", ("cost",), lambda s: False, lambda s, o: None))  # type: ignore[arg-type,return-value]
        with pytest.warns(TorchPrefWarning, match="two readers are called 'tales'"):
            readers()
