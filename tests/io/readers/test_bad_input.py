"""Logs that are damaged, incomplete or hostile: one clear error or a counted finding, for every format.

Each kind of damage is done to every file of every format's log. What must hold: nothing but the project's own errors, within
bounded time, and no run lost without a finding.
"""

from __future__ import annotations

import json
import pickle
import shutil
import struct
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from reader_logs import LOGS, Read, lines, log, put, tales_rows

from torchpref.errors import DataError, TorchPrefError
from torchpref.io.files.documents import MAX_LINE, read_lines, read_stream
from torchpref.io.files.walk import walk
from torchpref.io.readers import reader_named

BINARY = {"minari", "episodes"}
TEXT = sorted(set(LOGS) - BINARY)
VALUES = ("return", "score", "success", "reward")


def known(read: Read) -> int:
    """How many runs have an outcome."""
    (value,) = (name for name in VALUES if name in read.frame.columns)
    count = 0
    for cell in read.frame[value].to_list():
        count += any(x is not None for x in cell) or not cell if isinstance(cell, list) else cell is not None
    return count


def attempt(path: Path, name: str) -> Read | str:
    """What reading gives: the runs, or the project's own error."""
    started = time.monotonic()
    try:
        return Read(path, name)
    except TorchPrefError as error:
        assert str(error).strip()
        return str(error)
    finally:
        assert time.monotonic() - started < 10


def files(path: Path, name: str) -> list[Path]:
    reader = reader_named(name)
    return [source.path for source in walk(path) if reader.detect(source) and not source.head.startswith(b"PK")]


def original(tmp_path: Path, name: str) -> tuple[Path, Read]:
    path = log(name, tmp_path)
    return path, Read(path, name)


def check(path: Path, name: str, before: Read, *, losing: bool = True) -> Read | str:
    """Read damaged logs: an error, or no run lost unless a finding says so."""
    result = attempt(path, name)
    if isinstance(result, Read) and losing and known(result) < known(before):
        kinds = {
            kind for kind, finding in result.findings.items() if finding.severity != "note" or kind == "files_left_out"
        }
        assert kinds, f"{known(before) - known(result)} runs lost in silence"
    return result


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_truncated_file(tmp_path: Path, name: str, share: float) -> None:
    path, before = original(tmp_path, name)
    for source in walk(path):
        content = source.path.read_bytes()
        source.path.write_bytes(content[: int(len(content) * share)])
        result = check(path, name, before)
        if source.outline.paths and reader_named(name).detect(source) and name != "tales":
            assert isinstance(result, str) or result.findings["files_cut_short"].count == 1
        source.path.write_bytes(content)


@pytest.mark.parametrize("name", TEXT)
def test_wrong_encoding(tmp_path: Path, name: str) -> None:
    path, before = original(tmp_path, name)
    for file in files(path, name):
        content = file.read_bytes()
        middle = content.find(b'"', len(content) // 2) + 1 or len(content) // 2
        file.write_bytes(content[:middle] + b"\xe9" + content[middle:])
        result = check(path, name, before)
        if isinstance(result, str):
            assert "not UTF-8" in result
        elif file.suffix != ".json" or name != "tales":  # a summary beside its rollout is not read
            assert "files_left_out" in result.findings  # the byte stands where the format would be recognised
        file.write_bytes(content)


@pytest.mark.parametrize("name", TEXT)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_mark(tmp_path: Path, name: str, encoding: str) -> None:
    path, before = original(tmp_path, name)
    for file in files(path, name):
        file.write_bytes(file.read_bytes().decode("utf-8").encode(encoding))
    after = Read(path)
    assert after.name == name
    assert after.frame.equals(before.frame)


@pytest.mark.parametrize("name", LOGS)
def test_empty_file_and_empty_folder(tmp_path: Path, name: str) -> None:
    path, before = original(tmp_path, name)
    for source in walk(path):
        content = source.path.read_bytes()
        source.path.write_bytes(b"")
        result = attempt(path, name)
        if isinstance(result, Read) and reader_named(name).detect(source):
            assert result.findings["files_empty"].count == 1
        source.path.write_bytes(content)
    for source in walk(path):
        source.path.write_bytes(b"")
    assert "empty, nothing to read" in str(attempt(path, name))
    shutil.rmtree(path)
    path.mkdir()
    assert "holds no files" in str(attempt(path, name))


@pytest.mark.parametrize("name", TEXT)
def test_blank_file(tmp_path: Path, name: str) -> None:
    path, before = original(tmp_path, name)
    file = files(path, name)[0]
    file.write_text(" \n\n")
    assert isinstance(check(path, name, before), Read | str)
    assert isinstance(attempt(file, name), str)


@pytest.mark.parametrize("name", LOGS)
def test_another_formats_files_by_force(tmp_path: Path, name: str) -> None:
    """A format that is named reads files of another: its own error, never somebody else's."""
    for other in LOGS:
        if other != name:
            folder = tmp_path / other
            LOGS[other](folder)
            assert attempt(folder, name) is not None


@pytest.mark.parametrize("name", sorted(set(LOGS) - {"inspect", "episodes", "minari"}))
def test_duplicate_records(tmp_path: Path, name: str) -> None:
    """The same file under two names: every run is there twice, which is counted."""
    path, before = original(tmp_path, name)
    for file in files(path, name):
        copy = file.with_name(f"copy_{file.name}") if name not in ("harbor", "tales") else file
        if name == "harbor":
            copy = path / "again" / file.parent.name / file.name
        elif name == "tales":
            copy = path / "again" / Path(*file.parts[-3:])
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    after = attempt(path, name)
    assert isinstance(after, Read)
    repeated = {"records_repeated", "runs_under_one_name", "trials_twice", "text_disagrees"}
    renamed = (
        len(after.rows) > len(before.rows) and after.systems > before.systems
    )  # names that are taken from the file's
    tasks = {row["benchmark"] for row in after.rows.values()} > {row["benchmark"] for row in before.rows.values()}
    instances = {row["instance"] for row in after.rows.values()} > {row["instance"] for row in before.rows.values()}
    assert repeated & set(after.findings) or renamed or tasks or instances


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every place in a JSON value, with what stands there."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, below in items:
        yield (*path, key), below
        if len(path) < 8:
            yield from leaves(below, (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Callable[[Any], Any] | None) -> Any:
    """A copy with one place changed, or removed."""
    copy = json.loads(json.dumps(value))
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    if new is None:
        del holder[path[-1]]
    else:
        holder[path[-1]] = new(holder[path[-1]])
    return copy


def documents(file: Path) -> list[Any]:
    """The JSON values in a file, however they are laid out; none if it is no JSON."""
    try:
        return [value for _, value in read_stream(file)]
    except DataError:
        return []


def each_place(
    path: Path, name: str, new: Callable[[Any], Any] | None, wanted: Callable[[Any], bool], limit: int = 60
) -> Iterator[tuple[Path, tuple[Any, ...]]]:
    """Change each place of the log's files in turn; the log is as it was afterwards."""
    found = files(path, name)
    count = min(len(found), 4)
    for file in found:
        content, values = file.read_bytes(), documents(file)
        separator = "\n"
        for number, value in enumerate(values[:3]):
            places = [place for place, below in leaves(value) if wanted(below)]
            for place in places[:: max(1, len(places) * count // limit)]:
                damaged = [*values[:number], changed(value, place, new), *values[number + 1 :]]
                file.write_text(separator.join(json.dumps(each) for each in damaged) + separator)
                yield file, place
        file.write_bytes(content)


def scalar(value: Any) -> bool:
    return not isinstance(value, dict | list)


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def always(value: Any) -> bool:
    return True


@pytest.mark.parametrize("name", TEXT)
def test_a_record_lacking_each_field(tmp_path: Path, name: str) -> None:
    path, before = original(tmp_path, name)
    for _ in each_place(path, name, None, scalar):
        check(path, name, before)
    for _ in each_place(path, name, None, always):
        check(path, name, before, losing=False)  # a whole record may be gone


@pytest.mark.parametrize("name", TEXT)
def test_null_everywhere(tmp_path: Path, name: str) -> None:
    path, before = original(tmp_path, name)
    for _ in each_place(path, name, lambda old: None, always):
        check(path, name, before)


@pytest.mark.parametrize("name", TEXT)
def test_another_type_everywhere(tmp_path: Path, name: str) -> None:
    path, before = original(tmp_path, name)
    for new in ("x", [], {}, True, -1, 1e308, 10**400, [[["x"]]]):
        for _ in each_place(path, name, lambda old, new=new: new, scalar, 12):
            check(path, name, before, losing=False)


@pytest.mark.parametrize("name", TEXT)
def test_numbers_as_text(tmp_path: Path, name: str) -> None:
    """A number written as text is the same number, and is counted where it is used."""
    path, before = original(tmp_path, name)
    for _ in each_place(path, name, str, number):
        after = check(path, name, before)
        if isinstance(after, Read) and after.frame.equals(before.frame):
            continue
        assert isinstance(after, str) or set(after.findings) - set(before.findings), "changed in silence"


@pytest.mark.parametrize("name", TEXT)
@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_infinity(tmp_path: Path, name: str, odd: float) -> None:
    path, before = original(tmp_path, name)
    for _ in each_place(path, name, lambda old: odd, number):
        after = check(path, name, before)
        if isinstance(after, Read) and not after.frame.equals(before.frame):
            assert after.findings.keys() - before.findings.keys() or any(
                after.findings[kind].count != before.findings[kind].count
                for kind in before.findings
                if kind in after.findings
            )


@pytest.mark.parametrize("name", TEXT)
def test_deep_nesting(tmp_path: Path, name: str) -> None:
    path, before = original(tmp_path, name)
    for file in files(path, name):
        content = file.read_text()
        at = content.find(": ") + 2
        if content.lstrip()[:1] in "{[" and at > 1:
            file.write_text(content[:at] + "[" * 100_000 + "]" * 100_000 + content[at:])
            check(path, name, before, losing=False)
            file.write_text(content[:at] + "[" * 100_000)
            assert isinstance(check(path, name, before, losing=False), str | Read)
            file.write_text(content)


@pytest.mark.parametrize("name", TEXT)
def test_a_line_of_ten_megabytes(tmp_path: Path, name: str) -> None:
    path, before = original(tmp_path, name)
    file = files(path, name)[0]
    content = file.read_text()
    at = content.find("{") + 1
    if content.lstrip()[:1] in "{[" and at:
        separator = "" if content[at:].lstrip().startswith("}") else ","
        file.write_text(content[:at] + '"filler": "' + "x\\n" * 5_000_000 + '"' + separator + content[at:])
        after = attempt(path, name)
        assert isinstance(after, Read)
        assert known(after) == known(before)


@pytest.mark.parametrize("name", LOGS)
def test_a_loop_of_links(tmp_path: Path, name: str) -> None:
    path, before = original(tmp_path, name)
    (path / "loop").symlink_to(path, target_is_directory=True)
    assert Read(path).frame.equals(before.frame)


@pytest.mark.parametrize("name", LOGS)
def test_a_pickle_beside_the_logs_is_not_loaded(tmp_path: Path, name: str) -> None:
    path, before = original(tmp_path, name)
    put(path / "model.pkl", pickle.dumps({"a": 1}))
    after = Read(path)
    assert after.frame.equals(before.frame)
    assert after.findings["files_left_out"].count >= 1


def test_a_line_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchpref.io.files.documents.MAX_LINE", 1000)
    path = put(tmp_path / "x.jsonl", "{}\n" + '"' + "x" * 2000 + '"\n')
    with pytest.raises(DataError, match=r"x.jsonl:2: a line of more than 1,000 bytes"):
        list(read_lines(path))
    assert MAX_LINE > 10 << 20


def test_a_file_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.write(b'{"leaderboards": [{"results": [')
        file.truncate(3 << 30)  # a hole: it takes no space
    with pytest.raises(DataError, match=r"3,221,225,472 bytes, more than the 1,073,741,824"):
        Read(path)


@pytest.mark.parametrize("kind", ["eval", "npz", "pt"])
def test_an_archive_bomb_is_refused_by_size(tmp_path: Path, kind: str) -> None:
    member = {"eval": "header.json", "npz": "returns.npy", "pt": "x/data.pkl"}[kind]
    path = tmp_path / f"x.{kind}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(member, "w") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match="may be an archive bomb|compressed, which torch.save never does"):
        Read(path)


def test_an_archive_that_lies_about_its_size(tmp_path: Path) -> None:
    import zstandard

    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", zstandard.ZstdCompressor().compress(bytes(50 << 20)))
    content = bytearray(path.read_bytes())
    start = content.rfind(b"PK\x01\x02")
    struct.pack_into("<H", content, start + 10, 93)  # method Zstandard, with the packed size as the whole
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="where the archive says"):
        Read(path)


def test_an_archive_cut_short_or_with_a_wrong_checksum(tmp_path: Path) -> None:
    from reader_logs import DATA

    content = (DATA / "toy.eval").read_bytes()
    path = put(tmp_path / "x.eval", content[:-100])
    with pytest.raises(DataError, match="not a whole zip archive .* cut short"):
        Read(path)
    with zipfile.ZipFile(DATA / "toy.eval") as archive:
        at = archive.getinfo("samples/a_epoch_1.json").header_offset + 250  # inside a packed member that is read
    put(path, content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
    with pytest.raises(DataError, match="samples/a_epoch_1.json: its checksum is wrong; the archive is damaged"):
        Read(path, "inspect")


def test_every_line_of_a_rollout_that_is_not_read_is_counted(tmp_path: Path) -> None:
    rows = lines(tales_rows([1, 2, 3], [1, 2, 3], [1, 1, 1]))
    put(tmp_path / "log/s/g/a0_s1.jsonl", "7\n" + rows + '{"Step": "x", "Score": 1, "Max Score": 5}\n\n')
    read = Read(tmp_path / "log", "tales")
    assert (read.findings["records_unreadable"].count, read.findings["steps_unreadable"].count) == (1, 1)
