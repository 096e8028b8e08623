"""Frames in, frames out, and in again without any difference."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import cases
from profiles import examples
from torchpref import DataError, Trajectories

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

NAN = float("nan")
TABLE = {
    "system": ["a", "a", "b", "b"],
    "instance": [7, 8, 7, 8],
    "return": [0.5, 1.0, 0.25, 0.0],
    "cost": [1.0, None, 3.0, 0.5],
}
EXPECTED = Trajectories.from_frame(TABLE)


def trimmed(runs: Trajectories) -> Trajectories:
    """The runs without padding behind the longest."""
    steps = int(runs.lengths.max())
    return Trajectories.from_integers(
        returns=runs.returns[..., :steps],
        lengths=runs.lengths,
        present=runs.present,
        times={clock: ticks[..., :steps] for clock, ticks in runs.times.items()},
        truncated=runs.truncated,
        systems=runs.systems,
        instances=runs.instances,
        benchmarks=runs.benchmarks,
        resolution=runs.resolution,
        reference_times=runs.reference_times,
        best_times=runs.best_times,
        default_clock=runs.default_clock,
    )


@pytest.mark.parametrize(
    "convert",
    [
        pl.DataFrame,
        pl.LazyFrame,
        pd.DataFrame,
        pa.table,
        lambda table: pa.RecordBatch.from_pydict(table),
        lambda table: pd.DataFrame(table).convert_dtypes(),
        lambda table: pd.DataFrame(table).astype({"system": "category"}),
        lambda table: pd.DataFrame(table).astype(object),
        lambda table: pd.DataFrame(table).set_index(["system", "instance"]),
        lambda table: pd.DataFrame(table).assign(cost=pd.to_timedelta([1, None, 3, 0.5], unit="s")),
        lambda table: pl.DataFrame(table).cast({"system": pl.Categorical, "return": pl.Decimal(10, 6)}),
        lambda table: {name: np.asarray(cells, dtype=object) for name, cells in table.items()},
        lambda table: table | {"return": torch.tensor(table["return"], dtype=torch.float64)},
        lambda table: pl.DataFrame(table).to_dicts(),
    ],
)
def test_every_kind_of_frame_gives_the_same_runs(convert: Any) -> None:
    runs = Trajectories.from_frame(convert(TABLE))
    assert runs.equals(EXPECTED)
    assert runs.instances == ("7", "8")


def test_whole_numbers_that_pandas_made_floats_are_still_names() -> None:
    frame = pd.DataFrame({"system": ["a", "b"], "instance": ["x", "x"], "trial": [1.0, 2.0], "success": [True, False]})
    assert Trajectories.from_frame(frame).shape[2] == 2
    frame = pd.DataFrame({"system": [1.0, 2.0], "instance": ["x", "x"], "success": [True, False]})
    assert Trajectories.from_frame(frame).systems == ("1", "2")


def test_an_empty_cell_of_pandas_is_an_unknown_outcome_and_a_nan_elsewhere_an_error() -> None:
    table = {"system": ["a", "b"], "instance": ["x", "x"], "return": [1.0, NAN], "cost": [1, 1]}
    runs = Trajectories.from_frame(pd.DataFrame(table))
    assert [finding.kind for finding in runs.findings] == ["unknown_outcomes"]
    for frame in (table, pl.DataFrame(table), pa.table(table)):
        with pytest.raises(DataError, match="row 2: return is nan"):
            Trajectories.from_frame(frame)


def test_pandas_without_pyarrow() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import pandas as pd, torchpref as tp\n"
        "frame = pd.DataFrame({'system': ['a', 'b', None], 'instance': ['x', 'x', 'x'], 'won': [1, 0, 1],"
        " 'cost': [1.5, 2, None], 'list': [[0, 1], [], [0]], 'note': [{}, [], 3]})\n"
        "runs = tp.Trajectories.from_frame(frame[:2], columns='success=won')\n"
        "assert runs.returns.flatten().tolist() == [1000000, 0], runs\n"
        "runs = tp.Trajectories.from_frame(frame[['system', 'instance', 'list']][:2], columns='return=list')\n"
        "assert runs.lengths.flatten().tolist() == [2, 0], runs\n"
    )
    subprocess.run([sys.executable, "-W", "error::UserWarning", "-c", code], check=True, timeout=120)


def test_a_frame_and_its_columns_are_named_in_messages() -> None:
    frame = pd.DataFrame({"maker": ["a"], "instance": ["x"], "won": [1]})
    with pytest.raises(DataError, match=r"the frame: there is no column 'system'.*instance, maker, won"):
        Trajectories.from_frame(frame)
    twice = pd.DataFrame([["a", "b", "x", 1]], columns=["system", "system", "instance", "success"])
    with pytest.raises(DataError, match="'system' stands twice"):
        Trajectories.from_frame(twice)


@settings(max_examples=examples(200))
@given(cases(), st.sampled_from(["steps", "cost", "seconds", "moves"]))
def test_a_round_trip_changes_nothing(case: Any, clock: str) -> None:
    resolution = 1.0 if clock == "steps" else 1e-6
    runs = case.trajectories(clock=clock)
    if not bool(runs.present.any()):
        return
    frame = runs.to_frame()
    again = Trajectories.from_frame(frame, resolution={clock: runs.resolution[clock]})
    assert resolution and again.equals(trimmed(runs))
    assert all(torch.equal(ticks, again.best_times[clock]) for clock, ticks in runs.best_times.items())
    assert Trajectories.from_frame(frame.to_pandas(), resolution=runs.resolution).equals(again)
    assert Trajectories.from_frame(frame.to_arrow(), resolution=runs.resolution).equals(again)


@pytest.fixture
def rich() -> Trajectories:
    draw = torch.Generator().manual_seed(1)
    shape = (4, 3, 12, 5)
    returns = torch.rand(shape, generator=draw, dtype=torch.float64)
    cost = torch.rand(shape, generator=draw, dtype=torch.float64).cumsum(-1)
    cost[torch.rand(shape, generator=draw) < 0.2] = NAN
    present = torch.rand(shape[:3], generator=draw) < 0.5
    present[2] = False
    present[:, 1] = False
    lengths = torch.randint(0, 6, shape[:3], generator=draw)
    lengths[0, 0, 0], present[0, 0, 0] = 5, True
    return Trajectories(
        returns.round(decimals=1),
        lengths,
        times={"cost": cost, "steps": torch.arange(5.0).expand(shape), "moves": cost * 3},
        present=present,
        truncated=torch.rand(shape[:3], generator=draw) < 0.3,
        systems=["b", "a", "system c"],
        instances=["x", "y", "x", "z"],
        benchmarks=["two", "two", "one", ""],
        reference_time={"cost": torch.tensor([1.0, NAN, 2.5, 0.25]), "moves": torch.tensor([NAN, 7.0, 8.0, 9.0])},
    )


def test_a_round_trip_with_everything_at_once(rich: Trajectories) -> None:
    frame = rich.to_frame()
    assert {"benchmark", "trial", "present", "truncated", "clock:moves", "reference_time_cost"} <= set(frame.columns)
    again = Trajectories.from_frame(frame)
    assert again.equals(rich) and again.systems == rich.systems
    assert Trajectories.from_frame(again.to_frame()).equals(rich)
    assert Trajectories.from_frame(frame.sample(fraction=1, shuffle=True, seed=0)).equals(rich)
    assert again.findings == ()


def test_a_selection_keeps_the_best_times_of_all_runs(rich: Trajectories) -> None:
    some = rich.select(systems="system c")
    again = Trajectories.from_frame(some.to_frame())
    assert again.equals(some)
    for clock, ticks in rich.best_times.items():
        assert torch.equal(ticks, again.best_times[clock])


def test_a_round_trip_through_files(rich: Trajectories, tmp_path: Any) -> None:
    from torchpref.io import read

    frame = rich.to_frame()
    frame.write_parquet(tmp_path / "runs.parquet")
    frame.write_ndjson(tmp_path / "runs.jsonl")
    frame.write_ipc(tmp_path / "runs.arrow")
    for path in tmp_path.iterdir():
        assert read(path).equals(rich), path


def test_large_ticks_come_back() -> None:
    ticks = torch.tensor([[[2**53 - 1, 2**53]], [[0, 2**51 - 1]]])
    runs = Trajectories.from_integers(
        returns=torch.tensor([[[[1]]], [[[2]]]], dtype=torch.int32).expand(2, 1, 1, 2),
        lengths=torch.full((2, 1, 1), 2),
        present=torch.ones((2, 1, 1), dtype=torch.bool),
        times={"steps": ticks.unsqueeze(1), "cost": (ticks % 2**51).cummax(-1).values.unsqueeze(1)},
        systems=["a"],
        instances=["x", "y"],
        benchmarks=["", ""],
    )
    again = Trajectories.from_frame(runs.to_frame())
    assert torch.equal(again.times["cost"], runs.times["cost"])
