"""OpenHands Index: every detail of its results that changes what is compared."""

import warnings
from pathlib import Path

from reader_logs import Read, log, put


def test_values_by_hand(tmp_path: Path) -> None:
    read = Read(log("openhands-index", tmp_path))
    assert read.name == "openhands-index"
    assert read.cells("model-1", "a", "success", "cost", benchmark="swe-bench") == (1.0, 1.5)
    assert len(read.rows) == 7


def test_null_outcome_is_no_run(tmp_path: Path) -> None:
    from torchpref.io import read

    path = log("openhands-index", tmp_path)
    found = Read(path)
    assert found.cells("model-1", "d", "success", "cost", benchmark="swe-bench") == (None, 2.5)
    assert found.findings["outcomes_not_given"].count == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = read(path / "results")
    assert "d" not in runs.instances or not runs.present[runs.instances.index("d")].any()


def test_null_or_zero_cost_is_an_unknown_time(tmp_path: Path) -> None:
    from torchpref.io import read
    from torchpref.runs.curves import curves

    path = log("openhands-index", tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = read(path / "results")
    model = runs.systems.index("model-1")
    assert runs.times["cost"][runs.instances.index("a"), model, 0, 0] == 1_500_000_000
    assert runs.times["cost"][runs.instances.index("b"), model, 0, 0] == -1  # null
    put(path / "results/model-3/instance_results/swe-bench.json", {"a": {"resolved": True, "cost": 0.0}})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = read(path / "results")
    assert curves(runs, "cost").ticks[runs.instances.index("a"), runs.systems.index("model-3"), 0, 0] == -1


def test_instance_sets_differ(tmp_path: Path) -> None:
    read = Read(log("openhands-index", tmp_path))
    sets = {system: {i for s, _, i, _ in read.rows if s == system} for system in read.systems}
    assert sets["model-1"] != sets["model-2"]


def test_other_agents_have_their_own_tree(tmp_path: Path) -> None:
    read = Read(log("openhands-index", tmp_path))
    assert read.systems == {"model-1", "model-2", "acp/model-1"}
    assert read.cells("acp/model-1", "a", "success", benchmark="gaia") == (1.0,)


def test_reported_rate_is_compared(tmp_path: Path) -> None:
    path = log("openhands-index", tmp_path)
    assert "reported 90 %, 66.67 % of 3" in Read(path).findings["rates_disagree"].examples[0]
    put(path / "results/model-1/scores.json", [{"benchmark": "swe-bench", "score": 66.7, "metric": "accuracy"}])
    assert "rates_disagree" not in Read(path).findings


def test_an_instance_twice_in_one_file_is_counted(tmp_path: Path) -> None:
    text = (
        '{"a": {"resolved": true, "cost": 1}, "b": {"resolved": true, "cost": 1}, "a": {"resolved": false, "cost": 2}}'
    )
    put(tmp_path / "log/m/instance_results/b.json", text)
    read = Read(tmp_path / "log")
    assert read.findings["keys_repeated"].count == 1
    assert read.cells("m", "a", "success", benchmark="b") == (0.0,)


def test_moved_files_name_system_and_benchmark(tmp_path: Path) -> None:
    put(tmp_path / "log/model-7__gaia.json", {"a": {"resolved": True, "cost": 1}})
    assert list(Read(tmp_path / "log").rows) == [("model-7", "gaia", "a", 0)]
