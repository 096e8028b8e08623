"""Tables with other people's names of columns and ways to write: the right board with the first or the second command."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import torchpref as tp
from torchpref.errors import DataError, UsageError
from torchpref.runs.audit import audit

pd = pytest.importorskip("pandas", reason="needs pandas")

CASES = Path(__file__).parents[4] / "shared/cases"
collected = pytest.mark.skipif(not CASES.is_dir(), reason="the collected cases are not here (../shared/cases)")
RIGHT = {"a": (2, 100.0), "b": (2, 50.0)}


def rates(data: Any, **options: Any) -> dict[str, tuple[int, float]]:
    found = audit(tp.read(data, **options))
    return {name: (s.runs, round(100 * (s.success_rate or 0), 1)) for name, s in found.systems.items()}


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def seconds(runs: tp.Trajectories) -> list[float]:
    return [round(t / 1e6, 3) if t >= 0 else t for t in runs.times["seconds"].flatten().tolist()]


TABLES = {
    "capitals": "Model,Task,Attempt,Resolved,Duration (s)\na,x,1,yes,88\na,y,1,yes,9\nb,x,1,no,5\nb,y,1,yes,4\n",
    "dashes": "agent-name,problem-id,Passed,Total Tokens\na,x,PASS,10\na,y,PASS,20\nb,x,FAIL,30\nb,y,PASS,9\n",
    "camel": "modelName,taskId,isCorrect,costUsd\na,x,true,$0.79\na,y,true,$1\nb,x,false,$2\nb,y,true,$3\n",
    "durations": "agent,task,solved,latency\na,x,1,1m28s\na,y,1,00:01:28\nb,x,0,88 s\nb,y,1,PT1M28S\n",
    "stamps": "llm,question,correct,started_at,finished_at\na,x,1,2026-01-01 00:00:00,2026-01-01 00:00:09\n"
    "a,y,1,2026-01-01T00:00:00Z,2026-01-01T00:01:00Z\nb,x,0,2026-01-01,2026-01-02\nb,y,1,1767225600,1767225660\n",
    "semicolons": "policy;scenario;return;cost_usd\na;x;1,0;1.234,5\na;y;1,0;0,5\nb;x;0,25;3\nb;y;1,0;2\n",
    "comments": "# written by the harness\n#\nmodel,task,success,steps\na,x,1,\"1,234\"\na,y,1,3\nb,x,0,3\nb,y,1,3\n",
    "words": "model,task,outcome,turns\na,x,resolved,3\na,y,SOLVED,4\nb,x,timeout,3\nb,y,correct,2\n",
}  # fmt: skip
SECOND = {"words": "success=outcome"}


@pytest.mark.parametrize("name", TABLES)
def test_a_new_users_trial(tmp_path: Path, name: str) -> None:
    path = put(tmp_path / "runs.csv", TABLES[name])
    if name in SECOND:
        with pytest.raises(
            DataError, match=r"torchpref evaluate .*runs.csv --columns system=model,instance=task,success=COLUMN"
        ):
            tp.read(path)
    assert rates(path, columns=SECOND.get(name)) == RIGHT


def test_lengths_of_time_are_seconds_and_bare_numbers_are_not(tmp_path: Path) -> None:
    assert seconds(tp.read(put(tmp_path / "a.csv", TABLES["durations"]))) == [88.0] * 4
    assert seconds(tp.read(put(tmp_path / "b.csv", TABLES["stamps"]))) == [9.0, 86400.0, 60.0, 60.0]
    assert seconds(tp.read(put(tmp_path / "c.csv", TABLES["capitals"]))) == [88.0, 5.0, 9.0, 4.0]
    bare = tp.read(put(tmp_path / "d.csv", "model,task,passed,latency\na,x,1,88\nb,x,1,9\n"))
    assert bare.clocks == ("time",)


def test_differences_of_columns(tmp_path: Path) -> None:
    path = put(tmp_path / "r.csv", "model,task,passed,t-end,t0\na,x,1,5,2\nb,x,1,2,5\nc,x,1,,1\n")
    assert seconds(tp.read(path, columns="seconds=t-end-t0")) == [3.0, -1, -1]
    with pytest.raises(DataError, match="neither a time stamp nor a number"):
        tp.read(put(path, "model,task,passed,end,t0\na,x,1,noon,2\n"), columns="seconds=end-t0")


def test_everything_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    path = put(tmp_path / "r.csv", "who,what,how\na,x,1\n")
    with pytest.raises(DataError) as error:
        tp.read(path)
    for part in ("'system'", "'instance'", "what was reached", "who, what, how"):
        assert part in str(error.value)
    assert "--columns system=COLUMN,instance=COLUMN,success=COLUMN" in str(error.value)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("model,agent,task,passed", ("could be the system", "system=model+agent")),
        ("model,task,task_id,passed", ("could be the instance", "instance=task_id")),
        ("model,task,passed,resolved", ("could be the success", "success=resolved")),
        ("model,task,points,progress", ("what was reached", "return=progress")),
    ],
)
def test_what_is_ambiguous_is_asked_for(tmp_path: Path, header: str, words: tuple[str, ...]) -> None:
    with pytest.raises(DataError) as error:
        tp.read(put(tmp_path / "r.csv", f"{header}\na,x,1,1\n"))
    assert all(word in str(error.value) for word in words)


def test_exact_names_win_and_seeds_are_asked_for(tmp_path: Path) -> None:
    path = put(tmp_path / "r.csv", "system,model,instance,task,success,seed\na,m,x,t,1,0\na,m,x,t,0,1\n")
    with pytest.raises(DataError, match=r"trial=seed.*instance=instance\+seed"):
        tp.read(path)
    runs = tp.read(path, columns="trial=seed")
    assert runs.systems == ("a",) and runs.instances == ("x",) and runs.shape[2] == 2
    assert len(tp.read(path, columns="instance=instance+seed").instances) == 2


def test_what_was_recognised_is_noted_with_the_outcome_first(tmp_path: Path) -> None:
    found = {f.kind: f for f in tp.read(put(tmp_path / "r.csv", TABLES["capitals"])).findings}
    assert "(success=Resolved,system=Model,instance=Task" in found["columns_recognised"].message


@pytest.mark.parametrize(
    "word", ["NaN", "nan", "None", "NA", "null", "n/a", "error", "skipped", "unknown", "-", "", "cancelled"]
)
def test_words_for_unknown(tmp_path: Path, word: str) -> None:
    path = put(tmp_path / "r.csv", f"system,instance,success,steps\na,x,1,3\na,y,{word},3\nb,x,0,3\n")
    assert rates(path) == {"a": (1, 100.0), "b": (1, 0.0)}
    assert rates(path, missing="failure")["a"] == (2, 50.0)


def test_a_strange_word_is_an_error_that_lists_the_others(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 2.*'maybe'.*resolved.*timeout.*skipped"):
        tp.read(put(tmp_path / "r.csv", "system,instance,success\na,x,maybe\n"))


@pytest.mark.parametrize("values", [["100", "20"], ["1.5", "0.5"], ["5000", "1"]])
def test_returns_above_one(tmp_path: Path, values: list[str]) -> None:
    path = put(tmp_path / "r.csv", f"system,instance,return\na,x,{values[0]}\nb,x,{values[1]}\n")
    with pytest.raises(DataError) as error:
        tp.read(path)
    assert ("score=return,max_score=100" in str(error.value)) == (values[0] == "100") and "--clip" in str(error.value)
    assert float(tp.read(path, clip=True).returns.max()) == 1_000_000


def test_success_beside_a_score(tmp_path: Path) -> None:
    rows = "a,x,1,10,10\na,y,0,4,10\nb,x,0,9,10\nb,y,1,12,12\n"
    path = put(tmp_path / "r.csv", f"model,task,success,score,max_score\n{rows}")
    runs = tp.read(path)
    assert "outcome_in_two_columns" in {f.kind for f in runs.findings}
    assert sorted(runs.returns.flatten().tolist()) == [400_000, 900_000, 1_000_000, 1_000_000]
    with pytest.raises(DataError, match=r"do not agree on 1 rows.*line 2.*--columns success=success"):
        tp.read(put(path, f"model,task,success,score,max_score\n{rows.replace('1,10', '0,10')}"))
    assert tp.read(path, columns="success=success").returns.max() == 1_000_000


def test_json_as_it_comes(tmp_path: Path) -> None:
    nested = {"client": {"model": "a", "more": {"deep": "q"}}, "task": "x", "progress": 1.0, "log": {"k": [1]}}
    columns = "system=client.model,benchmark=client.more.deep"
    for indent in (None, 4):
        folder = tmp_path / f"{indent}"
        for name in "ab":
            put(
                folder / f"{name}.json",
                json.dumps(nested | {"client": {"model": name, "more": {"deep": "q"}}}, indent=indent),
            )
        runs = tp.read(folder, columns=columns)
        assert runs.systems == ("a", "b") and runs.benchmarks == ("q",)
    several = "\n".join(json.dumps(nested | {"task": t}, indent=2) for t in "xy")
    assert tp.read(put(tmp_path / "s.json", several), columns=columns).instances == ("x", "y")
    keyed = {"x": {"resolved": True, "model": "a"}, "y": {"resolved": False, "model": "a"}}
    assert tp.read(put(tmp_path / "k.json", json.dumps(keyed)), format="table").instances == ("x", "y")


def test_a_folder_with_other_files(tmp_path: Path) -> None:
    put(tmp_path / "r.csv", TABLES["capitals"])
    put(tmp_path / "settings.json", json.dumps({"levels": {"a": 1}, "b": {"c": 2}}))
    put(tmp_path / "notes.csv", "one,two\n1,2\n")
    assert rates(tmp_path) == RIGHT
    assert {f.kind: f for f in tp.read(tmp_path).findings}["files_left_out"].count == 2


@pytest.mark.parametrize("ending", ["bz2", "xz", "zst", "zip"])
def test_packed_tables(tmp_path: Path, ending: str) -> None:
    data = TABLES["capitals"].encode()
    if ending == "zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("runs.csv", data)
        packed = buffer.getvalue()
    elif ending == "zst":
        packed = pytest.importorskip("zstandard").ZstdCompressor().compress(data)
    else:
        packed = (bz2 if ending == "bz2" else lzma).compress(data)
    path = put(tmp_path / f"runs.csv.{ending}", packed)
    assert rates(path) == RIGHT and rates(tmp_path) == RIGHT
    assert tp.read(path, columns="system=@file,instance=Model+Task").systems == ("runs",)
    with pytest.raises(DataError, match="damaged"):
        tp.read(put(path, packed[:-9]), format="table")


def test_workbooks(tmp_path: Path) -> None:
    pytest.importorskip("fastexcel", reason="needs the extra excel")
    pytest.importorskip("xlsxwriter", reason="writes the workbook")
    pl.read_csv(io.StringIO(TABLES["words"])).write_excel(tmp_path / "r.xlsx")
    assert rates(tmp_path / "r.xlsx", columns="success=outcome") == RIGHT


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"SQLite format 3\x00", "sqlite3 -header -csv"),
        (b"\0" * 8 + b"DUCK\x40\0\0\0", "COPY runs TO 'runs.parquet'"),
    ],
)
def test_databases_are_refused_with_the_command(tmp_path: Path, head: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        tp.read(put(tmp_path / "runs.db", head + b"\0" * 100), format="table")


def test_addresses_are_refused_with_the_command() -> None:
    with pytest.raises(UsageError, match="curl -LO https://example.org/runs.csv"):
        tp.read("https://example.org/runs.csv")


@pytest.mark.parametrize("kind", ["dict", "list", "pandas", "polars", "arrow", "lazy"])
def test_tables_in_memory(kind: str) -> None:
    frame = pl.DataFrame({"model": ["a", "a", "b"], "task": ["x", "y", "x"], "passed": [1.0, float("nan"), 0.0]})
    data = {
        "dict": lambda: frame.to_dict(as_series=False),
        "list": frame.to_dicts,
        "pandas": lambda: pd.DataFrame(frame.to_dict(as_series=False)),
        "polars": lambda: frame,
        "arrow": frame.to_arrow,
        "lazy": frame.lazy,
    }[kind]()
    assert rates(data) == {"a": (1, 100.0), "b": (1, 0.0)}
    assert tp.evaluate(data, columns="instance=task").systems == ("a", "b")


def test_a_data_set_of_datasets(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the package datasets")
    data = datasets.Dataset.from_dict({"model": ["a", "b"], "task": ["x", "x"], "passed": [True, False]})
    assert rates(data) == {"a": (1, 100.0), "b": (1, 0.0)}
    data.save_to_disk(str(tmp_path / "d"))
    assert rates(tmp_path / "d") == {"a": (1, 100.0), "b": (1, 0.0)}


# ------------------------------------------------------------------------------------------------ the collected cases


@collected
@pytest.mark.parametrize("name", ["duration", "num", "timestamps"])
def test_one_table_in_three_ways(name: str) -> None:
    runs, plain = tp.read(CASES / f"22-tables/{name}.csv"), tp.read(CASES / "22-tables/num.csv")
    known = plain.times["seconds"] >= 0  # one duration is not given there
    assert runs.clocks == ("seconds",) and runs.returns.equal(plain.returns)
    assert bool((runs.times["seconds"] == plain.times["seconds"])[known].all())


@collected
def test_a_success_that_disagrees_with_its_score_is_asked_for() -> None:
    with pytest.raises(DataError, match="do not agree on 2 rows"):
        tp.read(CASES / "22-tables/both.csv")


@collected
@pytest.mark.parametrize(("name", "right"), [("miss_NaN", (3, 66.7)), ("miss_timeout", (4, 50.0))])
def test_words_in_a_table(name: str, right: tuple[int, float]) -> None:
    assert rates(CASES / f"22-tables/{name}.csv")["a"] == right


@collected
def test_scores_of_a_hundred() -> None:
    path, columns = CASES / "21-percent/runs.csv", "system=Model,instance=Task,trial=Attempt,"
    with pytest.raises(DataError, match="score=Score,max_score=100"):
        tp.read(path, columns=columns + "return=Score")
    assert rates(path, columns=columns + "score=Score,max_score=100")["gpt-5.2"][0] > 70


@collected
def test_one_object_per_run() -> None:
    columns = "system=client.model_id,instance=task+seed,return=progression,steps=num_steps"
    assert rates(CASES / "12-one-pretty-json-object-per-run/runs", columns=columns) == {
        "modelA": (2, 100.0),
        "modelB": (2, 100.0),
    }
