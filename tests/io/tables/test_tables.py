"""The same runs from every kind of file, and files as people have them."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from torchpref import DataError, Trajectories
from torchpref.errors import UsageError
from torchpref.io import read, read_tidy

ROWS: list[dict[str, Any]] = [
    {"system": "b", "instance": "007", "trial": 1, "step": 1, "return": 0.25, "cost": 0.5},
    {"system": "b", "instance": "007", "trial": 1, "step": 2, "return": 1.0, "cost": None},
    {"system": "a", "instance": "007", "trial": 1, "step": 1, "return": 0.0, "cost": 2.0},
    {"system": "a", "instance": "7", "trial": 2, "step": 3, "return": 1.0, "cost": 1e-9},
    {"system": "ü, „x“", "instance": "7", "trial": 2, "step": 3, "return": 1 / 3, "cost": 12345.678901234},
]
FRAME = pl.DataFrame(ROWS)
EXPECTED = Trajectories.from_frame(FRAME)


def binary(write: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


CSV = FRAME.write_csv().encode()
LINES = FRAME.write_ndjson().encode()
FILES: dict[str, bytes] = {
    "runs.csv": CSV,
    "bom.csv": b"\xef\xbb\xbf" + CSV,
    "windows.csv": CSV.replace(b"\n", b"\r\n"),
    "old-mac.csv": CSV.replace(b"\n", b"\r"),
    "quoted.csv": FRAME.write_csv(quote_style="always").encode(),
    "blank-lines.csv": CSV.replace(b"\n", b"\n\n"),
    "no-last-break.csv": CSV.rstrip(b"\n"),
    "semicolon.csv": FRAME.write_csv(separator=";").encode(),
    "runs.tsv": FRAME.write_csv(separator="\t").encode(),
    "utf16.csv": CSV.decode().encode("utf-16"),
    "runs.csv.gz": gzip.compress(CSV),
    "two-members.csv.gz": gzip.compress(CSV[:50]) + gzip.compress(CSV[50:]),
    "without-a-suffix": CSV,
    "wrong-suffix.json": CSV,
    "runs.jsonl": LINES,
    "bom.ndjson": b"\xef\xbb\xbf" + LINES,
    "windows.jsonl": LINES.replace(b"\n", b"\r\n\r\n"),
    "runs.jsonl.gz": gzip.compress(LINES),
    "records.json": json.dumps(ROWS, indent=1).encode(),
    "utf16.json": json.dumps(ROWS, ensure_ascii=False).encode("utf-16"),
    "columns.json": json.dumps({name: FRAME[name].to_list() for name in FRAME.columns}).encode(),
    "pandas.json": json.dumps({n: {str(k): v for k, v in enumerate(FRAME[n])} for n in FRAME.columns}).encode(),
    "split.json": json.dumps(
        {"columns": FRAME.columns, "index": [0], "data": [list(row) for row in FRAME.rows()]}
    ).encode(),
    "runs.parquet": binary(FRAME.write_parquet),
    "runs.arrow": binary(FRAME.write_ipc),
    "stream.arrow": binary(FRAME.write_ipc_stream),
}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_gives_the_same_runs(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    runs = read(tmp_path / name)
    assert runs.equals(EXPECTED)
    assert runs.findings == ()


def test_all_kinds_at_once_as_one_table(tmp_path: Path) -> None:
    parts = [pl.DataFrame([row]) for row in ROWS]
    (tmp_path / "0.csv").write_bytes(parts[0].write_csv().encode())
    (tmp_path / "1.tsv").write_bytes(parts[1].write_csv(separator="\t").encode())
    (tmp_path / "2.jsonl").write_bytes(parts[2].write_ndjson().encode())
    (tmp_path / "3.json").write_text(json.dumps(ROWS[3:4]))
    parts[4].write_parquet(tmp_path / "4.parquet")
    (tmp_path / "notes.md").write_text("about these runs")
    assert read(tmp_path).equals(EXPECTED)
    (tmp_path / "notes.md").unlink()
    assert read([str(tmp_path / "*.csv"), tmp_path, tmp_path / "4.parquet"]).equals(EXPECTED)


def test_latin_1_on_request(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes("system,instance,success\né,x,1\n".encode("latin-1"))
    assert read(path, encoding="latin-1").systems == ("é",)


def test_partitioned_folders(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    FRAME.write_parquet(folder, partition_by=["system", "instance"], mkdir=True)
    (folder / "_notes.txt").write_text("made by hand")
    runs = read(folder)
    assert runs.equals(EXPECTED)
    assert [(finding.kind, finding.count) for finding in runs.findings] == [("files_left_out", 1)]
    numbers = pl.DataFrame({"system": ["a", "b"], "instance": ["x", "x"], "success": [1, 0], "seed": [3, 12]})
    numbers.write_parquet(tmp_path / "seeds", partition_by="seed", mkdir=True)
    assert read(tmp_path / "seeds", columns="trial=seed", where={"seed": 3}).systems == ("a",)
    odd = pl.DataFrame({"system": ["a/b: c=d", "e f"], "instance": ["x", "x"], "success": [1, 0], "cost": [1, 2]})
    odd.write_parquet(tmp_path / "odd", partition_by="system", mkdir=True)
    assert read(tmp_path / "odd").systems == ("a/b: c=d", "e f")


def test_blanks_after_commas(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text('system, instance , "success", cost\na, x, yes, 1\nb, x, no, 2.5\n')
    runs = read(tmp_path / "runs.csv")
    assert runs.returns.flatten().tolist() == [1_000_000, 0] and runs.times["cost"][0, 1].item() == 2_500_000_000


def test_a_file_per_system(tmp_path: Path) -> None:
    for system in ("gpt", "claude"):
        folder = tmp_path / system
        folder.mkdir()
        (folder / "results.csv").write_text("task,success\nx,1\n")
        (tmp_path / f"{system}.csv").write_text("task,success\nx,1\n")
    by_file = read(str(tmp_path / "*.csv"), columns="system=@file,instance=task")
    by_folder = read(str(tmp_path / "*" / "*.csv"), columns="system=@folder,instance=task")
    assert by_file.systems == by_folder.systems == ("claude", "gpt")


def test_rows_are_named_by_file_and_line(tmp_path: Path) -> None:
    good = "system,instance,success\na,x,1\n"
    (tmp_path / "a.csv").write_text(good)
    for text, line in (
        (good + "\n\nb,x,maybe\n", 5),
        ('system,instance,success\n"a\nb",x,1\n"b",x,maybe\n', 4),
        ("\n\n" + good + "b,x,maybe\n", 5),
    ):
        (tmp_path / "b.csv").write_text(text)
        with pytest.raises(DataError, match=rf"b\.csv, line {line}: success is 'maybe'"):
            read(tmp_path)
    (tmp_path / "b.csv").unlink()
    (tmp_path / "b.jsonl").write_text(
        '\n{"system":"b","instance":"x","success":1}\n\n{"system":"c","instance":"x","success":3}\n'
    )
    with pytest.raises(DataError, match=r"b\.jsonl, line 4: success is '?3'?"):
        read(tmp_path)


def test_columns_that_are_not_needed_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(
        '{"system":"a","instance":"x","success":1,"note":NaN}\n{"system":"b","instance":"x","success":0,"note":[1]}\n'
    )
    assert set(read_tidy(path).frame.columns) == {"__row__", "__place__", "system", "instance", "success"}


def test_a_key_that_appears_late_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    rows = [{"system": "a", "instance": f"x{k:04}", "success": k % 2} for k in range(500)]
    rows[-1] |= {"cost": 2.5}
    path.write_text("\n".join(map(json.dumps, rows)))
    assert read(path).times["cost"][-1].item() == 2_500_000_000


def test_mixed_types_in_one_column(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    values = [1, 1.0, "1", True, "true", 0, None, "", "0.0", False]
    rows = [{"system": "a", "instance": f"x{k}", "success": value} for k, value in enumerate(values)]
    path.write_text("\n".join(map(json.dumps, rows)))
    expected = [1_000_000] * 5 + [0] * 5
    for change in (lambda text: text, lambda text: "[" + text.replace("\n", ",") + "]"):
        path.write_text(change(path.read_text()))
        runs = read(path)
        assert runs.returns.flatten().tolist() == expected
        assert runs.present.flatten().tolist() == [True] * 6 + [False] * 2 + [True] * 2


def test_list_cells_in_every_kind_of_file(tmp_path: Path) -> None:
    rows = [
        {"system": "a", "instance": "x", "return": [0, 0.5], "cost": [1, 2.5]},
        {"system": "b", "instance": "x", "return": []},
    ]
    expected = Trajectories.from_frame(rows)
    frame = pl.DataFrame(
        {"system": ["a", "b"], "instance": ["x"] * 2, "return": [[0.0, 0.5], []], "cost": [[1.0, 2.5], None]}
    )
    (tmp_path / "1.json").write_text(json.dumps(rows))
    (tmp_path / "2.jsonl").write_text("\n".join(map(json.dumps, rows)))
    frame.write_parquet(tmp_path / "3.parquet")
    frame.write_ipc(tmp_path / "4.arrow")
    (tmp_path / "5.csv").write_text('system,instance,return,cost\na,x,"[0, 0.5]","[1, 2.5]"\nb,x,[],\n')
    (tmp_path / "6.csv").write_text("system,instance,return,cost\na,x,0 0.5,1 2.5\nb,x,[],\n")
    for path in sorted(tmp_path.iterdir()):
        assert read(path).equals(expected), path
    frame = frame.with_columns(pl.col("return").list.eval(pl.element() * 1))
    (tmp_path / "one.jsonl").write_text('{"system":"a","instance":"x","return":[0,1]}')
    assert read(tmp_path / "one.jsonl").lengths.item() == 2


@pytest.fixture
def long_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchpref.io.tables import json_lines as table_lines

    monkeypatch.setattr(table_lines, "SAMPLE_BYTES", 2000)


@pytest.mark.usefixtures("long_lines")
@pytest.mark.parametrize(
    "late",
    [
        {},
        {"cost": 2.5},
        {"success": True},
        {"note": float("nan")},
        {"note": {"a": 1}},
        {"clock:moves": 3},
        {"seconds": 0.5},
        {"seconds": "0.5"},
        {"instance": 3},
        {"points": 1.0},
    ],
)
def test_long_files_of_lines_are_read_as_short_ones(tmp_path: Path, late: dict[str, Any]) -> None:
    rows: list[dict[str, Any]] = [
        {"system": "ab"[k % 2], "instance": f"x{k // 2}", "points": k % 3, "seconds": k, "empty": None, "more": [1, {}]}
        for k in range(200)
    ]
    rows[-1] |= late
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    mapping = "score=points,max_score=2"
    assert read(tmp_path / "runs.jsonl", columns=mapping).equals(Trajectories.from_frame(rows, columns=mapping))


@pytest.mark.usefixtures("long_lines")
def test_a_damaged_line_far_down_is_named(tmp_path: Path) -> None:
    rows = [json.dumps({"system": "a", "instance": f"x{k}", "success": 1}) for k in range(200)]
    rows[150] = rows[150][:-3]
    (tmp_path / "runs.jsonl").write_text("\n".join(rows))
    with pytest.raises(DataError, match=r"runs\.jsonl, line 151.*not valid JSON"):
        read(tmp_path / "runs.jsonl")
    rows[150] = rows[0].replace("x0", "z").replace("1}", "3}")
    (tmp_path / "runs.jsonl").write_text("\n\n".join(rows))
    with pytest.raises(DataError, match=r"runs\.jsonl, line 301: success is 3"):
        read(tmp_path / "runs.jsonl")


def test_a_resolution_of_a_clock_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"for the clock 'foo', which is not there; there is steps, cost"):
        Trajectories.from_frame(FRAME, resolution={"foo": 1.0})


def test_streams_are_told_what_to_do(tmp_path: Path) -> None:
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(DataError, match=r"pipe: neither a file nor a folder .*write what it gives to a file first"):
            read(tmp_path / "pipe")


def test_times_that_are_too_large_to_be_exact_are_counted() -> None:
    def kinds(*steps: int) -> dict[str, int]:
        frame = pl.DataFrame({"system": ["a", "b"], "instance": ["x", "x"], "return": [1.0, 1.0], "steps": steps})
        return {finding.kind: finding.count for finding in Trajectories.from_frame(frame).findings}

    assert kinds(9007199254740992, 9007199254740993) == {"rounded_times": 2}
    assert kinds(9007199254740990, 9007199254740991) == {}
