"""The demo: it is what the script generates, and it shows what it is there to show."""

from __future__ import annotations

from itertools import pairwise

import polars
import pytest

from torchpref.sgrl.suites import generate, suite

DEMO = suite("demo")


@pytest.fixture(scope="module")
def shipped() -> polars.DataFrame:
    return polars.read_parquet(DEMO.path)


def test_file_is_small_and_complete(shipped: polars.DataFrame) -> None:
    assert DEMO.path.stat().st_size < 200_000
    assert len(shipped) == 1000
    assert shipped.select("instance", "system").n_unique() == 1000


def test_regenerated_part_is_equal(shipped: polars.DataFrame) -> None:
    pytest.importorskip("gymnasium", reason="playing Taxi needs the extra sgrl: pip install 'torchpref[sgrl]'")
    systems = ["planner-eps-0.00", "planner-eps-0.50", "planner-eps-0.90"]
    part = generate("demo", systems=systems, instances=range(10, 20))
    names = part["instance"].unique()
    assert len(names) == 10
    expected = shipped.filter(polars.col("system").is_in(systems), polars.col("instance").is_in(names.to_list()))
    assert part.equals(expected)


def test_runs_are_latched_and_end_with_their_last_step(shipped: polars.DataFrame) -> None:
    for returns, steps, truncated in shipped.select("return", "steps", "truncated").iter_rows():
        assert list(returns) == sorted(returns) and set(returns) <= {0.0, 0.5, 1.0}
        assert all(a < b for a, b in pairwise(steps)) and steps[0] >= 1
        assert truncated == (returns[-1] < 1)
        assert steps[-1] == 200 if truncated else steps[-1] <= 200


def test_success_separates_few_policies_and_time_separates_all(shipped: polars.DataFrame) -> None:
    by_system = shipped.group_by("system").agg(
        solved=(~polars.col("truncated")).sum(), mean_steps=polars.col("steps").list.last().mean()
    )
    rows = by_system.sort("system").rows()
    assert [solved for _, solved, _ in rows[:8]] == [100] * 8
    steps = [mean for _, _, mean in rows]
    assert steps == sorted(steps)
