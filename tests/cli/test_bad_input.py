"""Kinds of bad input on the command line: one message with the place, the value and the remedy; exit 2; no traceback.

Every case is a command, the files it reads, and what the message must say: where (file, row, run or option), the value, and
what to do.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from torchpref.cli.app import main

GOOD = "system,instance,success,steps\na,i,1,3\nb,i,1,4\na,j,0,5\nb,j,1,6\n"


@dataclass(frozen=True)
class Bad:
    """A kind of bad input: its name, the command, the files by name, and parts of the message."""

    name: str
    command: str
    says: tuple[str, ...]
    files: dict[str, str | bytes] = field(default_factory=dict)


def table(name: str, text: str, *says: str, command: str = "evaluate t.csv") -> Bad:
    """A table with something wrong in it."""
    return Bad(name, command, ("t.csv", *says), {"t.csv": text})


def call(name: str, command: str, *says: str) -> Bad:
    """A call that is wrong on a table that is right."""
    return Bad(name, command, says, {"t.csv": GOOD})


FILES = (
    Bad("no such file", "evaluate nothing.csv", ("nothing.csv",)),
    Bad("no file matches", "evaluate 'logs/*.jsonl'", ("logs/*.jsonl",)),
    Bad("an empty file", "evaluate t.csv", ("t.csv", "empty"), {"t.csv": ""}),
    Bad("a head without rows", "evaluate t.csv", ("t.csv", "no row"), {"t.csv": GOOD.splitlines()[0] + "\n"}),
    Bad("a pickle", "evaluate t.pkl", ("t.pkl", "pickle", "save"), {"t.pkl": b"\x80\x04\x95\x05\x00\x00\x00."}),
    Bad("JSON cut short", "evaluate t.json", ("t.json",), {"t.json": '[{"system": "a", "instance": "i", "succ'}),
    Bad(
        "a line that is no JSON",
        "evaluate t.jsonl",
        ("t.jsonl", "line 2"),
        {"t.jsonl": '{"system": "a", "instance": "i", "success": 1}\n{"system": "b", "inst\n'},
    ),
    Bad("not UTF-8", "evaluate t.csv", ("t.csv", "encoding"), {"t.csv": GOOD.replace("b,", "é,").encode("latin-1")}),
    Bad("gzip cut short", "evaluate t.csv.gz", ("t.csv.gz",), {"t.csv.gz": gzip.compress(GOOD.encode())[:-12]}),
    Bad("a Parquet file that is none", "evaluate t.parquet", ("t.parquet",), {"t.parquet": b"PAR1 and no more"}),
)
TABLES = (
    table("too many fields in a row", GOOD.replace("b,i,1,4", "b,i,1,4,5"), "line 3"),
    table("no system", "instance,success\ni,1\n", "'system'", "the columns are: instance, success", "system=COLUMN"),
    table("no instance", "system,success\na,1\n", "instance"),
    table("nothing to compare", "system,instance,steps\na,i,1\n", "success", "return"),
    table("two outcomes", "system,instance,success,score,max_score\na,i,1,3,4\n", "success", "score"),
    table("an empty name", GOOD.replace("b,j", ",j"), "line 5", "system is empty"),
    table("success that is a word", GOOD.replace("b,i,1", "b,i,maybe"), "line 3", "success", "'maybe'"),
    table("success that is a half", GOOD.replace("b,i,1", "b,i,0.5"), "line 3", "0.5", "return"),
    table("a percentage", "system,instance,success,cost\na,i,1,50%\n", "line 2", "'50%'", "fractions"),
    table("return that is NaN", "system,instance,return\na,i,0.5\na,j,NaN\n", "line 3", "NaN", "empty"),
    table("score without a maximum", "system,instance,score\na,i,3\n", "max_score"),
    table("a maximum of zero", "system,instance,score,max_score\na,i,0,0\n", "line 2", "max_score", "0"),
    table("a time before the start", GOOD.replace("1,4", "1,-4"), "line 3", "steps", "-4"),
    table("a time without end", "system,instance,success,cost\na,i,1,inf\n", "line 2", "cost", "inf"),
    table("steps with a sign", "system,instance,success,steps\na,i,1,$3\n", "line 2", "'$3'", "without its unit"),
    table("two points at one step", "system,instance,step,return\na,i,1,0.5\na,i,1,0.7\nb,i,1,1\n", "line 3", "step"),
    table("lists of two lengths", "system,instance,return,steps\na,i,0.5 1,1 2 3\n", "line 2", "2", "3"),
    Bad(
        "two clocks and none named",
        "evaluate t.csv",
        ("seconds, cost", "clock='seconds'"),
        {"t.csv": "system,instance,success,cost,seconds\na,i,1,2,3\nb,i,1,3,4\n"},
    ),
    table(
        "a return above one under --strict",
        "system,instance,return\na,i,0.5\nb,i,1.5\n",
        "line 3",
        "strict",
        command="evaluate t.csv --strict --clip",
    ),
)
CALLS = (
    call("no path", "evaluate", "PATH"),
    call("an unknown command", "rank t.csv", "rank"),
    call("an unknown option", "evaluate t.csv --clocks cost", "--clocks"),
    call("an unknown format", "evaluate t.csv --format csvv", "'csvv'", "table"),
    call("an unknown measure", "evaluate t.csv --measure rrp", "'rrp'", "rpp"),
    call("a clock that is not there", "evaluate t.csv --clock cost", "cost", "steps"),
    call("columns without =", "evaluate t.csv --columns model", "'model'", "NAME=COLUMN"),
    call("columns of a table that does not exist", "evaluate t.csv --columns sytem=model", "'sytem'", "did you mean"),
    call("a column that is not there", "evaluate t.csv --columns system=model", "t.csv", "'model'", "the columns are"),
    call("where on a column that is not there", "evaluate t.csv --where env=bash", "'env'", "the columns are"),
    call("where without =", "evaluate t.csv --where bash", "'bash'", "COLUMN=VALUE"),
    call("where that leaves no row", "evaluate t.csv --where system=c", "system=c", "'a', 'b'"),
    call("a system that is not there", "evaluate t.csv --systems aa", "'aa'", "did you mean"),
    call("a benchmark that is not there", "evaluate t.csv --benchmark gaia", "'gaia'"),
    call("an unknown weight", "evaluate t.csv --weights task", "task", "benchmark"),
    call("bootstrap below zero", "evaluate t.csv --bootstrap -1", "bootstrap", "-1", "at least 0"),
    call("a seed that is no number", "evaluate t.csv --seed x", "--seed", "'x'", "whole number"),
    call("an unknown grid", "evaluate t.csv --grid fine", "'fine'", "exact"),
    call("a grid outside (0, 1]", "evaluate t.csv --grid 0.5,2", "2.0"),
    call("a device that is not there", "evaluate t.csv --device gpu7", "'gpu7'", "cpu"),
    call("a resolution that is no number", "evaluate t.csv --resolution cost=fine", "cost=fine", "number"),
    call("a reader's option for a table", "evaluate t.csv --option epochs=2", "epochs"),
    call("JSON in a folder that is not there", "evaluate t.csv --json no/such/r.json", "--json", "no/such", "make it"),
    call("JSON in place of a folder", "evaluate t.csv --json .", "--json", "folder"),
    call("two systems missing", "compare t.csv a", "PATH... A B"),
    call("a system that cannot be compared", "compare t.csv a c", "'c'"),
    call("a system against itself", "compare t.csv a a", "itself", "'a'"),
    call("a level of two", "compare t.csv a b --level 2", "2", "between 0 and 1"),
    call("a gate without a system", "gate t.csv a nobody", "'nobody'"),
    call("a margin of two", "gate t.csv a b --margin 2", "margin", "2"),
    call("a table of an unknown kind", "convert t.csv t.xlsx", "t.xlsx", ".parquet"),
    call("a table over itself", "convert t.csv t.csv", "t.csv", "another name"),
    Bad(
        "two systems that share nothing",
        "compare t.csv a b",
        ("'a'", "'b'", "share no instance"),
        {"t.csv": "system,instance,success\na,i,1\nb,j,1\n"},
    ),
)
ALL = (*FILES, *TABLES, *CALLS)


def prepare(bad: Bad, folder: Path) -> list[str]:
    import shlex

    for name, content in bad.files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return shlex.split(bad.command)


def check(bad: Bad, code: object, out: str, err: str) -> None:
    assert code == 2, (code, out, err)
    assert "Traceback" not in err and "Error:" not in err, err
    message = " ".join(err.split())
    for part in bad.says:
        assert part in message, (part, message)
    assert len(message) < 1000, message


def test_there_are_at_least_thirty_kinds() -> None:
    assert len({bad.name for bad in ALL}) == len(ALL) >= 30


@pytest.mark.parametrize("bad", ALL, ids=[bad.name for bad in ALL])
def test_one_clear_message(
    bad: Bad, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = prepare(bad, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    captured = capsys.readouterr()
    check(bad, ended.value.code, captured.out, captured.err)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("bad", [FILES[0], TABLES[6], CALLS[1], CALLS[5]], ids=lambda bad: bad.name)
def test_in_a_process_of_its_own(bad: Bad, tmp_path: Path) -> None:
    arguments = prepare(bad, tmp_path)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "200"}
    command = [sys.executable, "-m", "torchpref", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=120)
    check(bad, done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
