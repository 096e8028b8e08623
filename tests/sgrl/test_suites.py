"""The sets that ship: what the script generates, small, complete, and readable without the environments."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import polars
import pytest

from torchpref.errors import UsageError
from torchpref.sgrl.suites import SUITES, generate, load, suite, tasks

NAMES = pytest.mark.parametrize("name", SUITES)
NEEDS = "playing needs the extra sgrl: pip install 'torchpref[sgrl]'"


@NAMES
def test_file_is_small_and_complete(name: str) -> None:
    chosen = suite(name)
    frame = polars.read_parquet(chosen.path)
    assert chosen.path.stat().st_size < 200_000
    assert len(frame) == len(chosen.epsilons) * chosen.instances * chosen.trials
    keys = ["instance", "system"] + ["trial"] * (chosen.trials > 1)
    assert frame.select(keys).n_unique() == len(frame)
    assert sorted(frame["system"].unique()) == list(chosen.systems)
    assert frame["instance"].n_unique() == chosen.instances


@NAMES
def test_regenerated_sample_is_equal(name: str) -> None:
    pytest.importorskip("gymnasium", reason=NEEDS)
    pytest.importorskip("minigrid", reason=NEEDS)
    chosen = suite(name)
    systems, positions = [chosen.systems[0], chosen.systems[-1]], [0, 41, 99]
    part = generate(name, systems=systems, instances=positions)
    shipped = polars.read_parquet(chosen.path)
    names = part["instance"].unique().to_list()
    expected = shipped.filter(polars.col("system").is_in(systems), polars.col("instance").is_in(names))
    assert len(part) == 2 * 3 * chosen.trials
    assert part.equals(expected)


@NAMES
def test_runs_are_latched_and_never_shorter_than_the_shortest_path(name: str) -> None:
    chosen = suite(name)
    for returns, steps, truncated, shortest in (
        polars.read_parquet(chosen.path).select("return", "steps", "truncated", "reference_time").iter_rows()
    ):
        assert list(returns) == sorted(returns) and returns[-1] <= 1
        assert all(a < b for a, b in pairwise(steps)) and steps[0] >= 1
        assert truncated == (returns[-1] < 1)
        assert steps[-1] == chosen.horizon if truncated else shortest <= steps[-1] <= chosen.horizon


@pytest.mark.parametrize("name", [name for name in SUITES if name.endswith("saturated")])
def test_in_a_saturated_set_all_succeed(name: str) -> None:
    assert not polars.read_parquet(suite(name).path)["truncated"].any()


@pytest.mark.parametrize("name", [name for name in SUITES if name.endswith("mixed")])
def test_in_a_mixed_set_every_policy_but_the_first_fails_at_times(name: str) -> None:
    frame = polars.read_parquet(suite(name).path)
    share = frame.group_by("system").agg(polars.col("truncated").mean()).sort("system")["truncated"].to_list()
    assert share == sorted(share)
    assert all(0 < x < 1 for x in share[1:])


@NAMES
def test_loads_as_trajectories(name: str) -> None:
    chosen = suite(name)
    runs = load(name)
    assert runs.systems == chosen.systems
    assert len(runs.instances) == chosen.instances
    assert runs.clocks == ("steps",)
    assert tuple(runs.returns.shape[:3]) == (chosen.instances, len(chosen.systems), chosen.trials)
    assert bool(runs.present.all())
    shipped = polars.read_parquet(chosen.path)
    stopped = 0 if runs.truncated is None else int(runs.truncated.sum())
    assert stopped == shipped["truncated"].sum()
    assert int((runs.returns[..., -1] == 1_000_000).sum()) == len(shipped) - shipped["truncated"].sum()
    shortest = shipped.unique("instance").sort("instance")["reference_time"].to_list()
    assert runs.reference_times["steps"].tolist() == shortest


def test_loading_needs_none_of_the_environments() -> None:
    code = (
        "import sys; sys.modules['gymnasium'] = sys.modules['minigrid'] = None\n"
        "import torchpref.sgrl as sgrl\n"
        "print(len(sgrl.load('demo').systems), len(sgrl.known_order('doorkey-mixed')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["10", "8"], done.stderr


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="no set 'frozenlake'; the sets are demo, taxi-saturated"):
        suite("frozenlake")
    with pytest.raises(UsageError, match="no system 'planner'"):
        generate("demo", systems=["planner"])
    with pytest.raises(UsageError, match="instances 0 to 99"):
        tasks("demo", [100])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SUITES if name != "demo"])
def test_sampled_means_agree_with_the_exact_expectation(name: str) -> None:
    """RPP and IPP of the shipped runs, through the package's own kernels, within five standard errors."""
    pytest.importorskip("gymnasium", reason=NEEDS)
    pytest.importorskip("minigrid", reason=NEEDS)
    import numpy as np

    import torchpref as tp
    from torchpref.sgrl.exact import exact_times, expected_preference

    chosen = suite(name)
    exact = [exact_times(task, chosen.epsilons, chosen.horizon) for task in tasks(name)]
    runs = load(name)
    for measure in ("rpp", "ipp"):
        expected = np.mean([expected_preference(times, measure) for times in exact], axis=0)
        preferences = tp.preferences(runs, measure)
        delta = preferences.delta.numpy()
        spread = delta.std(axis=0, ddof=1) / np.sqrt(len(delta))
        a, b = preferences.pairs.numpy().T
        assert (expected[a, b] > 0).all()
        assert (np.abs(delta.mean(axis=0) - expected[a, b]) <= 5 * spread + 1e-5).all()
