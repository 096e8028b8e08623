"""Parquet data sets read in parts give what all data at once give, to the bit, sorted or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from torchpref import all_preferences
from torchpref.errors import DataError, UsageError
from torchpref.pairwise.means import MeanPreferences, mean_preferences
from torchpref.pairwise.preferences import Preferences
from torchpref.pairwise.streaming import parquet_files, stream_preferences
from torchpref.runs.trajectories import from_frame


def table(seed: int = 0) -> pl.DataFrame:
    """A row per step: two benchmarks, gaps, one or two trials, some costs unknown."""
    rng = np.random.default_rng(seed)
    rows = []
    for benchmark in "xy":
        for instance in range(7 if benchmark == "x" else 12):
            for system in range(4):
                if rng.random() < 0.2:
                    continue
                for trial in range(rng.integers(1, 3)):
                    reached = np.maximum.accumulate(rng.integers(0, 4, 5)) / 3
                    cost = np.cumsum(rng.random(5))
                    for step in range(5):
                        paid = cost[step] if rng.random() < 0.9 else None
                        rows.append((benchmark, f"i{instance}", f"s{system}", trial + 1, step + 1, reached[step], paid))
    names = ["benchmark", "instance", "system", "trial", "step", "return", "cost"]
    return pl.DataFrame(rows, schema=names, orient="row")


def assert_same(ours: MeanPreferences, whole: Preferences) -> None:
    assert ours.systems == whole.systems
    assert ours.clock == whole.clock
    for name in ("mean", "weight_sums", "shared", "system_means"):
        mine, other = getattr(ours, name)(), getattr(whole, name)()
        assert torch.equal(torch.nan_to_num(mine, nan=9), torch.nan_to_num(other, nan=9)), name
    assert ours.tie_rate() == whole.tie_rate()
    assert ours.run_pairs == whole.run_pairs
    if ours.measure == "lr":
        for mine, other in zip(ours.split().values(), whole.split().values(), strict=True):
            assert torch.equal(torch.nan_to_num(mine, nan=9), torch.nan_to_num(other, nan=9))
    assert ours.to_frame().equals(whole.to_frame())


@pytest.mark.parametrize("weights", ["instance", "benchmark"])
@pytest.mark.parametrize("clock", [None, "cost"])
@pytest.mark.parametrize("rows", [1, 60, 10**6])
@pytest.mark.parametrize("shuffled", [False, True])
def test_parts_give_what_the_whole_gives(
    tmp_path: Path, weights: str, clock: str | None, rows: int, shuffled: bool
) -> None:
    frame = table()
    stored = frame.sample(fraction=1, shuffle=True, seed=1) if shuffled else frame
    cuts = [0, 100, 171, stored.height]
    for number, (first, last) in enumerate(zip(cuts[:-1], cuts[1:], strict=True)):
        stored.slice(first, last - first).write_parquet(tmp_path / f"{number}.parquet")
    whole = all_preferences(from_frame(frame), clock=clock, weights=weights)
    seen: list[tuple[int, int]] = []
    streamed = stream_preferences(
        tmp_path, clock=clock, weights=weights, chunk_rows=rows, progress=lambda done, total: seen.append((done, total))
    )
    for name, prefs in whole.items():
        assert_same(streamed[name], prefs)
    assert seen[-1] == (frame.height, frame.height)
    assert seen == sorted(seen)


def test_means_without_instances() -> None:
    runs = from_frame(table())
    weights = torch.rand(len(runs.instances), dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 3
    whole = all_preferences(runs, clock="cost", weights=weights)
    for name, prefs in mean_preferences(runs, clock="cost", weights=weights).items():
        assert_same(prefs, whole[name])


def test_mapped_columns_conditions_and_systems_that_come_later(tmp_path: Path) -> None:
    frame = table().rename({"system": "model", "instance": "task"}).with_columns(env=pl.col("benchmark"))
    frame = frame.with_columns(
        model=pl.when((pl.col("benchmark") == "y") & (pl.col("model") == "s3")).then(pl.lit("a0")).otherwise("model")
    )
    frame.write_parquet(tmp_path / "runs.parquet")
    options = {"columns": {"system": "model", "instance": "env+task"}, "where": {"env": "y"}, "clock": "cost"}
    whole = all_preferences(from_frame(frame, **options))
    for name, prefs in stream_preferences(tmp_path / "runs.parquet", chunk_rows=40, **options).items():  # type: ignore[arg-type]
        assert_same(prefs, whole[name])


def test_rows_with_lists(tmp_path: Path) -> None:
    runs = from_frame(table(), clock="cost")
    runs.to_frame().write_parquet(tmp_path / "runs.parquet")
    whole = all_preferences(runs)
    for name, prefs in stream_preferences(tmp_path, clock="cost", chunk_rows=30).items():
        assert_same(prefs, whole[name])


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no Parquet file"):
        parquet_files(tmp_path)
    table().write_parquet(tmp_path / "runs.parquet")
    with pytest.raises(UsageError, match="unknown weights"):
        stream_preferences(tmp_path, weights="equal")
    with pytest.raises(DataError, match="no column 'task'"):
        stream_preferences(tmp_path, columns={"instance": "task"})
    two = table().drop("step", "trial").with_columns(time=pl.col("cost")).unique(["benchmark", "instance", "system"])
    two.write_parquet(tmp_path / "runs.parquet")
    with pytest.raises(UsageError, match="several clocks"):
        stream_preferences(tmp_path)


def test_the_temporary_copy_goes_away(tmp_path: Path) -> None:
    data, scratch = tmp_path / "data", tmp_path / "scratch"
    data.mkdir()
    scratch.mkdir()
    table().sample(fraction=1, shuffle=True, seed=2).write_parquet(data / "runs.parquet")
    stream_preferences(data, "sr", chunk_rows=50, scratch=scratch)
    assert not list(scratch.iterdir())
