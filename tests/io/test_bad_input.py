"""Bad input of every kind: one error of our own that says where, what and what to do; never another library's traceback."""

from __future__ import annotations

import gzip
import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from torchpref.errors import DataError, TorchPrefError, UsageError
from torchpref.io import read

Bad = tuple[str, str, bytes, dict[str, Any], list[str]]

RUNS = b"system,instance,return,cost\na,x,1,2\nb,x,0.5,3\n"
STEPS = b"system,instance,step,return\na,x,1,0.5\na,x,2,1\nb,x,1,0\n"


def parquet(**columns: Any) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


def archive(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        for name, content in files.items():
            out.writestr(name, content)
    return buffer.getvalue()


def table(text: str, **options: Any) -> tuple[str, bytes, dict[str, Any]]:
    return "runs.csv", text.encode(), options


CASES: list[Bad] = [
    # what the file is
    ("empty file", "runs.csv", b"", {}, ["runs.csv", "empty"]),
    ("blank file", "runs.csv", b"\n \n", {}, ["runs.csv", "empty"]),
    ("only column names", "runs.csv", b"system,instance,return\n", {}, ["runs.csv", "no rows", "give at least one run"]),
    ("no column names", "runs.csv", b"a,x,1\nb,x,0\n", {}, ["runs.csv", "'system'", "is the first line", "system=COLUMN"]),
    ("latin-1", "runs.csv", "system,instance,return\né,x,1\n".encode("latin-1"), {},
     ["runs.csv, line 2", "0xe9", "UTF-8", "latin-1"]),
    ("UTF-16 without a mark", "runs.csv", RUNS.decode().encode("utf-16-le"), {}, ["runs.csv", "utf-16"]),
    ("unknown encoding", "runs.csv", RUNS, {"encoding": "klingon"}, ["klingon", "try utf-8"]),
    ("wrong encoding", "runs.csv", "é".encode("latin-1") + RUNS, {"encoding": "utf-8"}, ["runs.csv", "byte 0", "another"]),
    ("zip", "runs.csv", archive(**{"a.csv": RUNS, "b.csv": RUNS}), {"format": "table"}, ["runs.csv", "archive of 2", "unpack"]),
    ("pickle", "runs.csv", pickle.dumps({"system": ["a"]}), {}, ["runs.csv", "pickle", "save"]),
    ("bzip2", "runs.csv", b"BZh91AY&SY", {"format": "table"}, ["runs.csv", "damaged", "cut short"]),
    ("gzip cut short", "runs.csv.gz", gzip.compress(RUNS * 100)[:-20], {}, ["runs.csv.gz", "cut short"]),
    ("damaged gzip", "runs.csv.gz", gzip.compress(RUNS)[:10] + b"\x07" * 20, {}, ["runs.csv.gz", "gzip", "copy it again"]),
    ("damaged Parquet", "runs.parquet", parquet(system=["a"], instance=["x"], success=[1])[:-30], {},
     ["runs.parquet", "damaged", "cut short"]),
    ("damaged Arrow", "runs.arrow", b"ARROW1\0\0\xff\xff", {}, ["runs.arrow", "damaged"]),
    # its lines
    ("too many cells", "runs.csv", RUNS + b"b,y,1,2,3\n", {}, ["runs.csv, line 4", "5 cells", "4 columns", "quote"]),
    ("too few cells", "runs.csv", RUNS + b"b,y\nc,x,1,1\n", {}, ["runs.csv, line 4", "2 cells", "4 columns"]),
    ("last line cut short", "runs.csv", RUNS + b"b,y", {}, ["runs.csv, line 4", "2 cells", "cut short"]),
    ("cut short after a quote", "runs.csv", b'system,instance,return\n"a",x,1\n"b",y', {},
     ["runs.csv, line 3", "2 cells", "cut short"]),
    ("quote not closed", "runs.csv", b'system,instance,return\na,"x,1\nb,x,0\n', {}, ["runs.csv, line 2", "quote"]),
    ("column stands twice", "runs.csv", b"system,instance,return,return\na,x,1,1\n", {}, ["'return'", "twice", "rename"]),
    ("JSON line cut short", "runs.jsonl", b'{"system":"a","instance":"x","return":1}\n{"system":"a","inst', {},
     ["runs.jsonl, line 2", "cut short"]),
    ("JSON line that is no object", "runs.jsonl", b'{"system":"a","instance":"x","return":1}\n[1]\n', {},
     ["runs.jsonl, line 2", "[1]", "object"]),
    ("JSON cut short", "runs.json", b'[{"system":"a","instance":"x","return":1},\n {"system":', {},
     ["runs.json, line 2", "cut short"]),
    ("JSON list of numbers", "runs.json", b"[1, 2]", {}, ["runs.json, record 1", "object"]),
    ("JSON list without rows", "runs.json", b"[]", {}, ["runs.json", "empty", "at least one row"]),
    ("JSON of something else", "runs.json", b'{"version": 2,\n "config": {"a": 1}}', {},
     ["runs.json", "version, config", "list"]),
    ("JSON columns of unequal length", "runs.json", b'{"system":["a","b"],"instance":["x","x"],"return":[1]}', {},
     ["runs.json", "return: 1", "one length"]),
    ("JSON nested deeply", "runs.json", b"[" * 100_000, {}, ["runs.json", "nested too deeply"]),
    ("NaN in JSON", "runs.json", b'[{"system":"a","instance":"x","return":NaN}]', {},
     ["runs.json, record 1", "return is nan", "leave the cell empty"]),
    ("NaN in JSON lines", "runs.jsonl",
     b'{"system":"a","instance":"x","return":1}\n{"system":"b","instance":"x","return":NaN}\n', {},
     ["runs.jsonl, line 2", "return is nan", "leave the cell empty"]),
    ("Infinity in JSON", "runs.jsonl", b'\n{"system":"a","instance":"x","return":Infinity}\n', {},
     ["runs.jsonl, line 2", "'a'", "inf", "finite"]),
    # its columns
    ("no system", "runs.csv", b"maker,instance,return\na,x,1\n", {}, ["'system'", "maker, instance, return", "system=COLUMN"]),
    ("no value", "runs.csv", b"system,instance,reslt\na,x,1\n", {}, ["what was reached", "reslt", "success=COLUMN"]),
    ("two values", "runs.csv", b"system,instance,return,success\na,x,1,0\n", {},
     ["success and return", "line 2", "return=return"]),
    ("score without maximum", "runs.csv", b"system,instance,score\na,x,1\n", {}, ["max_score", "max_score=100"]),
    ("mapped column that is not there", "runs.csv", RUNS, {"columns": "instance=instanc"},
     ["runs.csv", "'instanc'", "'instance'", "system, instance, return, cost"]),
    ("unknown tidy name", "runs.csv", RUNS, {"columns": {"sistem": "system"}}, ["'sistem'", "'system'"]),
    ("mapping without =", "runs.csv", RUNS, {"columns": "model"}, ["'model'", "NAME=COLUMN"]),
    ("numbers joined", "runs.csv", RUNS, {"columns": "return=return+cost"}, ["return=return+cost", "only names"]),
    ("where on an unknown column", "runs.csv", RUNS, {"where": {"sistem": "a"}},
     ["runs.csv", "'sistem'", "'system'", "system, instance"]),
    ("where that keeps nothing", "runs.csv", RUNS, {"where": ["system=z*"]}, ["runs.csv", "system=z*", "'a', 'b'"]),
    ("where without =", "runs.csv", RUNS, {"where": ["system"]}, ["'system'", "COLUMN=VALUE"]),
    ("unknown clock", "runs.csv", RUNS, {"clock": "seconds"}, ["'seconds'", "there is cost", "seconds=COLUMN"]),
    ("unknown format", "runs.csv", RUNS, {"format": "excel"}, ["'excel'", "table"]),
    ("unknown option", "runs.csv", RUNS, {"colour": "red"}, ["colour"]),
    ("unknown rule for missing runs", "runs.csv", RUNS, {"missing": "zero"}, ["'zero'", "failure"]),
    # its cells
    ("no number", "runs.csv", RUNS + b"b,y,abc,1\n", {}, ["runs.csv, line 4", "return is 'abc'", "write a number"]),
    ("percent", "runs.csv", RUNS + b"b,y,1,85%\n", {}, ["runs.csv, line 4", "'85%'", "fractions"]),
    ("unit", "runs.csv", RUNS + b"b,y,$3,1\n", {}, ["runs.csv, line 4", "return is '$3'", "unit"]),
    ("decimal comma", "runs.csv", b"system\tinstance\treturn\na\tx\t0,5\n", {}, ["runs.csv, line 2", "'0,5'", "point"]),
    ("NaN value", "runs.csv", RUNS + b"b,y,NaN,1\n", {}, ["runs.csv, line 4", "return is 'NaN'", "leave the cell empty"]),
    ("infinite value", "runs.csv", RUNS + b"b,y,inf,1\n", {}, ["runs.csv, line 4", "system 'b'", "return is inf", "finite"]),
    ("half a success", "runs.csv", b"system,instance,success\na,x,0.5\n", {}, ["runs.csv, line 2", "'0.5'", "return"]),
    ("success in other words", "runs.csv", b"system,instance,success\na,x,maybe\n", {}, ["runs.csv, line 2", "'maybe'"]),
    ("negative time", "runs.csv", RUNS + b"b,y,1,-3\n", {}, ["runs.csv, line 4", "system 'b'", "-3", "'cost'", "subtract"]),
    ("time beyond all numbers", "runs.csv", RUNS + b"b,y,1,1e305\n", {}, ["runs.csv, line 4", "1e+305", "'cost'", "coarser"]),
    ("reference time beyond all numbers", "runs.csv", b"system,instance,success,cost,reference_time\na,x,1,1,1e300\n", {},
     ["line 2", "reference_time is '1e300'", "positive"]),
    ("step minus one", "runs.csv", b"system,instance,step,return\na,x,-1,1\n", {}, ["line 2", "-1", "'steps'", "subtract"]),
    ("infinite time", "runs.csv", RUNS + b"b,y,1,inf\n", {}, ["runs.csv, line 4", "inf", "leave a time"]),
    ("time of day", "runs.parquet", parquet(system=["a"], instance=["x"], success=[True],
     seconds=pl.Series([0]).cast(pl.Datetime)), {}, ["runs.parquet, row 1", "seconds", "since the start"]),
    ("empty system", "runs.csv", RUNS + b",y,1,1\n", {}, ["runs.csv, line 4", "system is empty"]),
    ("blank instance", "runs.csv", RUNS + b"b, ,1,1\n", {}, ["runs.csv, line 4", "instance is empty"]),
    ("empty trial", "runs.csv", b"system,instance,trial,return\na,x,1,1\na,x,,1\n", {}, ["runs.csv, line 3", "trial is empty"]),
    ("run twice", "runs.csv", b"system,instance,trial,return\na,x,1,1\na,x,1,0\n", {},
     ["runs.csv, line 3", "'a'", "'x'", "line 2", "remove"]),
    ("step twice", "runs.csv", STEPS + b"a,x,2,1\n", {}, ["runs.csv, line 5", "step is '2'", "line 3", "remove"]),
    ("step without a number", "runs.csv", STEPS + b"a,x,,1\n", {}, ["runs.csv, line 5", "step is None", "number every step"]),
    ("maximum of zero", "runs.csv", b"system,instance,score,max_score\na,x,1,0\n", {},
     ["line 2", "max_score is 0", "positive"]),
    ("maximum that is empty", "runs.csv", b"system,instance,score,max_score\na,x,1,\n", {}, ["line 2", "max_score", "highest"]),
    ("maximum that changes", "runs.csv", b"system,instance,step,score,max_score\na,x,1,1,3\na,x,2,1,4\n", {},
     ["line 2", "max_score is 3", "4 in the same run"]),
    ("reference times that disagree", "runs.csv", b"system,instance,success,cost,reference_time\na,x,1,1,5\nb,x,1,1,6\n", {},
     ["line 2", "reference_time is '5'", "6 in", "line 3", "one reference time"]),
    ("reference time of zero", "runs.csv", b"system,instance,success,cost,reference_time\na,x,1,1,0\n", {},
     ["line 2", "reference_time", "positive"]),
    ("lists of unequal length", "runs.jsonl", b'{"system":"a","instance":"x","return":[0,1],"cost":[1,2,3]}\n', {},
     ["runs.jsonl, line 1", "cost", "3", "return has 2"]),
    ("one number for a list of steps", "runs.csv", b"system,instance,return,cost\na,x,0 1,5\n", {},
     ["line 2", "cost is '5'", "return has 2"]),
    ("no outcome at all", "runs.csv", b"system,instance,success\na,x,\nb,x,\n", {}, ["no run has a known outcome", "failure"]),
    # strict
    ("above 1", "runs.csv", RUNS + b"b,y,1.5,1\n", {}, ["runs.csv, line 4", "above 1", "max_score", "--clip"]),
    ("above 1, strict", "runs.csv", RUNS + b"b,y,1.5,1\n", {"strict": True, "clip": True}, ["line 4", "above 1", "strict"]),
    ("below 0, strict", "runs.csv", RUNS + b"b,y,-0.5,1\n", {"strict": True}, ["runs.csv, line 4", "below 0"]),
    ("clock backwards, strict", "runs.csv", b"system,instance,step,return,cost\na,x,1,0,5\na,x,2,1,4\n", {"strict": True},
     ["runs.csv, line 3", "'cost'", "backwards"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "options", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_one_clear_error(
    tmp_path: Path, name: str, content: bytes, options: dict[str, Any], expected: list[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TorchPrefError) as caught:
        read(tmp_path / name, **options)
    message = str(caught.value)
    assert all(part in message for part in expected), message
    assert "Traceback" not in message and "polars" not in message and len(message) < 600, message


def test_there_are_at_least_thirty_kinds() -> None:
    assert len({case[0] for case in CASES}) == len(CASES) >= 30


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    for path, what in ((tmp_path / "none.csv", "none.csv"), (tmp_path / "*.csv", "no file matches")):
        with pytest.raises((UsageError, DataError), match=what.replace("*", r"\*")):
            read(path)
    with pytest.raises((UsageError, DataError), match="no files"):
        read(tmp_path)
    (tmp_path / "notes.md").write_text("hello")
    with pytest.raises(DataError, match=r"no table among the files.*notes\.md.*\.csv"):
        read(tmp_path)


def test_an_archive_bomb_is_refused_by_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchpref.io.files import text

    monkeypatch.setattr(text, "BOMB_BYTES", 1 << 20)
    path = tmp_path / "runs.csv.gz"
    path.write_bytes(gzip.compress(b"0" * (8 << 20)))
    with pytest.raises(DataError, match="archive bomb"):
        read(path)


def test_files_of_which_one_lacks_a_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(RUNS)
    (tmp_path / "b.csv").write_bytes(b"model,instance,return\na,x,1\n")
    with pytest.raises(DataError, match=r"b\.csv: there is no column 'system', which the other files have.*model"):
        read(tmp_path)


Frame = Callable[[], object]


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (lambda: 3, "a int is no table"),
        (lambda: pl.DataFrame({"system": ["a"], "instance": ["x"], "return": [float("nan")]}), "row 1: return is nan"),
        (lambda: {"system": ["a"], "instance": ["x", "y"]}, "not of one length"),
        (lambda: [{"system": "a", "instance": None, "success": 1}], "row 1: instance is empty"),
        (lambda: pl.DataFrame({"system": [], "instance": [], "success": []}), "no rows"),
        (lambda: pl.DataFrame({"system": ["a"], "instance": ["x"], "return": [{"r": 1}]}), "row 1: return is"),
    ],
)
def test_frames(frame: Frame, expected: str) -> None:
    from torchpref import Trajectories

    with pytest.raises(TorchPrefError, match=expected):
        Trajectories.from_frame(frame())
