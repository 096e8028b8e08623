"""Faults that were found once, each kept as the smallest case that showed it; a room's own tests hold the others."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

import torchpref as tp
from torchpref import DataError, TorchPrefError, TorchPrefWarning, Trajectories, UsageError
from torchpref.kernels import compiled
from torchpref.kernels.cuda import launch
from torchpref.runs.curves import union_levels


def runs_of(*returns: float) -> Trajectories:
    systems = [chr(ord("A") + k) for k in range(len(returns))]
    return Trajectories(torch.tensor(returns)[None, :, None], systems=systems, instances=["i"])


# ------------------------------------------------------------------------------------------------------ compiled code


def test_the_stamp_of_compiled_code_holds_what_is_compiled_in(tmp_path: Path) -> None:
    """A constant of another folder, imported over a detour, changes the stamp; another module does not."""
    package = tmp_path / "torchpref"
    for folder in ("kernels", "runs", "stats"):
        (package / folder).mkdir(parents=True)
    for part in ("runs/measures", "runs/unrelated", "kernels/compiled"):
        (package / f"{part}.py").write_text("TIE = 1\n")
    (package / "kernels" / "between.py").write_text("from torchpref.runs.measures import TIE\n")
    user = package / "stats" / "fit.py"
    user.write_text("from torchpref.kernels import between\n")

    def stamp() -> str:
        return compiled.stamp.__wrapped__(str(user), package.parent)

    before = stamp()
    (package / "runs" / "unrelated.py").write_text("TIE = 2\n")
    assert stamp() == before
    (package / "runs" / "measures.py").write_text("TIE = 2\n")
    assert stamp() != before


@pytest.mark.parametrize("module", ["kernels/cpu/grid.py", "stats/bradley_terry/compiled.py", "meta/compiled.py"])
def test_every_compiled_function_bears_the_stamp(module: str) -> None:
    from importlib import import_module

    path = Path(tp.__file__).parent / module
    loaded = import_module("torchpref." + module.removesuffix(".py").replace("/", "."))
    stamps = {
        each._cache._cache_file._source_stamp
        for each in vars(loaded).values()
        if hasattr(each, "py_func") and Path(each.py_func.__code__.co_filename) == path
    }
    assert stamps == {compiled.stamp(str(path))}


def test_threads_that_use_different_numbers_of_threads_do_not_disturb_each_other() -> None:
    before = torch.get_num_threads()
    wrong: list[BaseException] = []

    def work(size: int) -> None:
        try:
            for _ in range(200):
                torch.set_num_threads(size)
                assert compiled.run(lambda x: x + 1, [(k,) for k in range(8)]) == list(range(1, 9))
        except BaseException as error:
            wrong.append(error)

    workers = [threading.Thread(target=work, args=(size,)) for size in (2, 3, 4)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        torch.set_num_threads(before)
    assert not wrong


def test_ranking_never_touches_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    prefs = tp.preferences(Trajectories(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])[:, :, None]), "sr")

    def refuse(count: int) -> None:
        raise AssertionError(f"set_num_threads({count})")

    monkeypatch.setattr(torch, "set_num_threads", refuse)
    tp.rank(prefs)
    tp.influence(prefs)


def test_the_bound_on_table_entries_holds() -> None:
    """200 runs with 60 distinct jumps each: their tables hold 12,000 levels, not 241."""
    levels = (torch.randperm(900_000, generator=torch.Generator().manual_seed(1))[: 3 * 20 * 60] + 1).view(3, 20, 60)
    returns = levels.sort(-1).values.double() / 1e6
    jumps = tp.runs.curves.curves(Trajectories(returns))
    depths = launch._depths(jumps, 10_000)
    assert depths == [int((row < 2**31 - 1).sum()) for row in union_levels(jumps)] == [1200] * 3
    blocks = list(launch._blocks(depths, 20, 2 * 1200 * 20))
    assert [(block.start, block.stop) for block in blocks] == [(0, 2), (2, 3)]
    assert list(launch._blocks([5, 1, 1], 1, 3)) == [slice(0, 1), slice(1, 3)]


# ------------------------------------------------------------------------------------------------------ reading


def test_a_stream_takes_the_columns_of_all_files(tmp_path: Path) -> None:
    rows = {"system": ["a", "b"], "return": [1.0, 1.0]}
    pl.DataFrame({**rows, "instance": ["1", "1"], "seconds": [2.0, 1.0]}).write_parquet(tmp_path / "1.parquet")
    second = {**rows, "instance": ["2", "2"], "steps": [1.0, 9.0], "seconds": [5.0, 1.0]}
    pl.DataFrame(second).write_parquet(tmp_path / "2.parquet")
    read = tp.read(tmp_path)
    for clock in (None, "seconds", "steps"):
        whole = tp.preferences(read, "rpp", clock=clock)
        stream = tp.stream_preferences(tmp_path, "rpp", clock=clock, progress=False)["rpp"]
        assert stream.clock == whole.clock
        assert torch.equal(stream.pair_means(), whole.pair_means())


BAD_TABLES = {
    "quote in the header": ("t.csv", b'system,"instance,return\n' + b"a,1,0.5\n" * 30_000),
    "lone surrogate": ("t.json", b'[{"system": "a\\ud800", "instance": "1", "return": 0.5}]'),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_are_named_errors(name: str, tmp_path: Path) -> None:
    file, content = BAD_TABLES[name]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError, match=file):
        tp.read(tmp_path / file)


def test_a_trial_label_of_thousands_of_digits_is_a_label(tmp_path: Path) -> None:
    long = "7" * 5000
    (tmp_path / "t.csv").write_text(f"system,instance,trial,return\na,1,{long},1.0\na,1,8,0.0\n")
    assert tp.read(tmp_path / "t.csv").shape[2] == 2
    from torchpref.runs.names import natural_key

    assert sorted(["a10", "a9", "a" + long, "a", "a09"], key=natural_key) == ["a", "a09", "a9", "a10", "a" + long]


def test_an_object_about_an_agent_is_no_tau2_log(tmp_path: Path) -> None:
    from torchpref.io.files.source import Source
    from torchpref.io.readers import tau2

    path = tmp_path / "x.json"
    path.write_text(json.dumps({"info": {"agent_info": {"llm": "m"}}, "results": [1, 2]}))
    assert not tau2.detect(Source.open(path))
    path.write_text(json.dumps({"info": {"agent_info": {"llm": "m"}}, "tasks": []}))
    assert tau2.detect(Source.open(path))


def test_a_broken_reader_of_another_package_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib import metadata

    from torchpref.io import readers

    broken = metadata.EntryPoint("broken", "no_such_package:READER", readers.GROUP)
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [broken])
    monkeypatch.setattr(readers, "_LEFT_OUT", {})
    readers.readers.cache_clear()
    try:
        with pytest.warns(TorchPrefWarning, match="'broken'.*no_such_package"):
            assert len(readers.readers()) == len(readers.MODULES)
        with pytest.raises(UsageError, match="no_such_package"):
            readers.reader_named("broken")
    finally:
        readers.readers.cache_clear()


def test_lines_in_utf16_end_at_line_ends_alone(tmp_path: Path) -> None:
    from torchpref.io.files.documents import read_lines

    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\xff\xfe" + '{"a": "x\u2028y"}\r\n{"a": 2}\n'.encode("utf-16-le"))
    assert list(read_lines(path)) == [(1, {"a": "x\u2028y"}), (2, {"a": 2})]


def test_the_names_of_prompts_are_counted_once() -> None:
    """20,000 names were compared with each other: 12 s."""
    from torchpref.rl import datasets

    class Names(tuple[str, ...]):
        def count(self, name: str, /) -> int:
            raise AssertionError("one pass over all names per name")

    class Prefs:
        instances = Names(("i", "j", "i"))
        benchmarks = ("b", "b", "c")

    assert datasets._instance_names(Prefs()) == ["b/i", "j", "c/i"]  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------ calls

CALLS = {
    "device": lambda runs: tp.preferences(runs, "sr", device="nowhere"),
    "no gpu": lambda runs: tp.preferences(runs, "sr", device=torch.device("cuda", 99)),
    "grid": lambda runs: tp.preferences(runs, "rpp", grid=0.5),
    "grid of words": lambda runs: tp.preferences(runs, "rpp", grid=["half"]),
    "budgets": lambda runs: tp.budget_curves(runs, budgets=2.5),
    "weights": lambda runs: tp.preferences(runs, "sr", weights={"i": "x"}),
    "weights in a list": lambda runs: tp.preferences(runs, "sr", weights=["x"]),
    "no trials": lambda runs: Trajectories(torch.zeros(1, 2, 0, 1)),
    "significance of one": lambda runs: tp.significance(tp.preferences(runs, "sr"))["A"],
    "significance of letters": lambda runs: tp.significance(tp.preferences(runs, "sr"))["AB"],
    "position": lambda runs: runs.take(instances=[7]),
    "position from the end": lambda runs: runs.take(systems=[-1]),
    "position of a name": lambda runs: runs.take(systems=["A"]),
    "clock": lambda runs: Trajectories(torch.zeros(1, 2, 1, 1), clock="cost"),
    "series": lambda runs: _series()["sr", "nothing"],
    "series of a measure": lambda runs: _series()["rpp", "tie_rate"],
    "series of a word": lambda runs: _series()["sr"],
}


def _series() -> object:
    from torchpref.meta.series import Series

    return Series("x", "share", (1.0,), {"sr": {"tie_rate": ()}})


@pytest.mark.parametrize("name", CALLS)
def test_bad_calls_are_typed_errors(name: str) -> None:
    with pytest.raises(TorchPrefError):
        CALLS[name](runs_of(1.0, 0.5))


def test_numbers_of_numpy_are_numbers() -> None:
    runs = runs_of(1.0, 0.5)
    assert tp.budget_curves(runs, budgets=np.int64(3)).budgets == tp.budget_curves(runs, budgets=3).budgets
    assert torch.equal(tp.preferences(runs, "rpp", grid=np.int64(4)).sums, tp.preferences(runs, "rpp", grid=4).sums)


@pytest.mark.slow
def test_warm_up_leaves_nothing_to_compile(tmp_path: Path) -> None:
    """In a cache of its own: what the usual calls run afterwards is all there."""
    script = """
import gc, warnings
warnings.simplefilter("ignore")
import torch
torch.set_num_threads(1)
import torchpref as tp
from numba.core.dispatcher import Dispatcher
tp.kernels.warm_up()

def compiled():
    return {(f.py_func.__module__, f.py_func.__name__): set(f.signatures) for f in gc.get_objects()
            if isinstance(f, Dispatcher) and f.py_func.__module__.startswith("torchpref")}

before = compiled()
g = torch.Generator().manual_seed(0)
for trials in (1, 3):
    returns = torch.rand((6, 4, trials, 5), generator=g).cummax(-1).values.round(decimals=1)
    runs = tp.Trajectories(returns, times={"seconds": torch.rand((6, 4, trials, 5), generator=g).cumsum(-1)})
    prefs = tp.all_preferences(runs)
    tp.mean_preferences(runs)
    for each in prefs.values():
        tp.rank(each)
    tp.meta_evaluate(runs, resamples=5, alarm_draws=3, subgoal_draws=1)
after = compiled()
print(sorted(name for name in after if not after[name] <= before.get(name, set())))
"""
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    import os

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    assert done.stdout.strip().splitlines()[-1] == "[]"
