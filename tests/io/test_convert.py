"""The tidy table of logs in a file: nothing is lost, and the file is whole or not there."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest
import torch

from torchpref import Trajectories
from torchpref.errors import DataError, TorchPrefWarning, UsageError
from torchpref.io import read
from torchpref.io.convert import OUTPUTS, convert, formats
from torchpref.io.readers import readers


def _logs() -> ModuleType:
    path = Path(__file__).parent / "readers/reader_logs.py"
    if "reader_logs" not in sys.modules:
        spec = importlib.util.spec_from_file_location("reader_logs", path)
        assert spec is not None and spec.loader is not None
        sys.modules["reader_logs"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["reader_logs"])
    return sys.modules["reader_logs"]


LOGS = _logs()


def quietly(path: Path) -> Trajectories:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchPrefWarning)
        return read(path)


def same(one: Trajectories, other: Trajectories) -> bool:
    """Equal to the bit in everything that an evaluation looks at."""
    tensors = ("returns", "lengths", "present")
    return (
        (one.systems, one.instances, one.benchmarks, one.clocks)
        == (other.systems, other.instances, other.benchmarks, other.clocks)
        and all(torch.equal(getattr(one, name), getattr(other, name)) for name in tensors)
        and all(torch.equal(times, other.times[clock]) for clock, times in one.times.items())
        and all(torch.equal(times, other.best_times[clock]) for clock, times in one.best_times.items())
        and (one.truncated is None) == (other.truncated is None)
        and (one.truncated is None or other.truncated is None or torch.equal(one.truncated, other.truncated))
        and (one.resolution, one.zero_time) == (other.resolution, other.zero_time)
    )


@pytest.mark.parametrize("name", LOGS.LOGS)
def test_reading_the_table_is_reading_the_logs(tmp_path: Path, name: str) -> None:
    logs = LOGS.log(name, tmp_path)
    runs = quietly(logs)
    for ending in OUTPUTS:
        output = tmp_path / f"runs{ending}"
        written = convert(logs, output)
        assert written.path == output and written.rows > 0
        assert same(quietly(output), runs), ending


@pytest.mark.parametrize("name", ["intercode", "openhands-index"])
def test_evaluating_the_table_is_evaluating_the_logs(tmp_path: Path, name: str) -> None:
    from torchpref.pairwise.preferences import all_preferences

    logs = LOGS.log(name, tmp_path)
    convert(logs, tmp_path / "runs.parquet")
    one, other = quietly(logs), quietly(tmp_path / "runs.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchPrefWarning)
        mine, theirs = all_preferences(one), all_preferences(other)
    for measure, prefs in mine.items():
        assert torch.equal(prefs.sums, theirs[measure].sums)
        assert torch.equal(prefs.trial_pairs, theirs[measure].trial_pairs)
        assert torch.equal(prefs.mean(), theirs[measure].mean()) or torch.equal(
            prefs.mean().isnan(), theirs[measure].mean().isnan()
        )


def test_columns_are_in_order_and_dull_ones_left_out(tmp_path: Path) -> None:
    written = convert(LOGS.log("tales", tmp_path), tmp_path / "runs.csv")
    assert written.columns[:3] == ("system", "instance", "trial")  # no benchmark is named
    assert not any(column.startswith("_") for column in written.columns)
    assert {finding.kind for finding in written.findings} == {"summaries_only"}
    assert "runs.csv: 4 rows, 3 systems" in str(written)


def test_options_columns_and_where_are_passed_on(tmp_path: Path) -> None:
    logs = LOGS.log("tau2", tmp_path)
    convert(logs, tmp_path / "runs.parquet", where={"system": "m-1"}, progress="actions")
    frame = pl.read_parquet(tmp_path / "runs.parquet")
    assert set(frame["system"]) == {"m-1"}
    assert frame["return"].to_list()[0] == [0.25, 0.5, 1.0]


def test_what_was_there_stays_until_the_new_file_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, output = LOGS.log("tau2", tmp_path), tmp_path / "runs.parquet"
    output.write_text("before")

    def fail(self: pl.DataFrame, file: Path) -> None:
        file.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail)
    with pytest.raises(DataError, match=r"runs.parquet: cannot be written \(No space left on device\)"):
        convert(logs, output)
    assert output.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "runs.parquet"]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("runs.xlsx", "use one of .parquet, .csv"),
        ("log/results.json", "use one of"),
        ("missing/runs.csv", "cannot be written"),
    ],
)
def test_outputs_that_cannot_be(tmp_path: Path, output: str, message: str) -> None:
    with pytest.raises((UsageError, DataError), match=message):
        convert(LOGS.log("tau2", tmp_path), tmp_path / output)


def test_an_input_is_never_overwritten(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    table.write_text("system,instance,success\na,x,1\n")
    with pytest.raises(UsageError, match="is one of the files to read"):
        convert(table, table)


def test_formats_lists_tables_and_every_reader() -> None:
    listed = formats()
    assert [each.name for each in listed] == ["table", *(reader.name for reader in readers())]
    inspect = next(each for each in listed if each.name == "inspect")
    assert inspect.to_dict()["extra"] == "inspect" and "scorer" in inspect.options
