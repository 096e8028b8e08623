"""Episodes and tensors: .npz, and .pt with weights only."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from reader_logs import Read, log

from torchpref.errors import DataError, UsageError


def test_values_by_hand(tmp_path: Path) -> None:
    read = Read(log("episodes", tmp_path))
    assert read.name == "episodes"
    assert read.cells("A", "x", "return", "steps", "seconds", "truncated") == (
        [0.0, 0.5, 1.0],
        [1.0, 2.0, 3.0],
        [1.5, 3.0, 4.5],
        False,
    )
    assert read.cells("B", "x", "return", "truncated") == ([0.25, 0.25], True)


def test_pt_gives_what_npz_gives(tmp_path: Path) -> None:
    path = log("episodes", tmp_path) / "batch.npz"
    arrays = np.load(path)
    content = {key: torch.from_numpy(arrays[key]) for key in ("returns", "lengths", "seconds", "truncated")}
    torch.save(content | {"systems": ["A", "B"], "instances": ["x", "y"]}, tmp_path / "batch.pt")
    assert Read(tmp_path / "batch.pt").frame.equals(Read(path).frame)


def test_rewards_of_a_batch_need_their_maximum(tmp_path: Path) -> None:
    np.savez(tmp_path / "b.npz", rewards=np.ones((1, 1, 2, 4)))
    with pytest.raises(DataError, match="'rewards' are increments; give max_score="):
        Read(tmp_path / "b.npz")
    read = Read(tmp_path / "b.npz", max_score=4)
    assert read.cells("0", "0", "return", trial=1) == ([0.25, 0.5, 0.75, 1.0],)


def test_one_episode_per_file(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        rewards=[0, 0, 1.0],
        terminations=[0, 0, 1],
        truncations=[0, 0, 0],
        observations=np.zeros((4, 2)),
        success=[0, 0, 0, 1],
        seed=7,
        system="S",
    )
    np.savez_compressed(
        tmp_path / "b.npz",
        rewards=[0, 0.0],
        terminations=[0, 0],
        truncations=[0, 1],
        success=[0, 0],
        seed=8,
        system="S",
    )
    read = Read(tmp_path)
    assert read.cells("S", "7", "return", "steps", "truncated") == ([0.0, 1.0], [1.0, 3.0], False)
    assert read.cells("S", "8", "return", "steps", "truncated") == ([0.0, 0.0], [1.0, 2.0], True)


def test_missing_runs_of_a_batch(tmp_path: Path) -> None:
    np.savez(tmp_path / "b.npz", returns=np.ones((1, 2, 1)), present=np.asarray([[True, False]]))
    assert list(Read(tmp_path / "b.npz").rows) == [("0", "", "0", 0)]


class Bomb:
    def __reduce__(self) -> tuple:
        return (exec, ("raise SystemExit('a pickle was loaded')",))


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"returns": Bomb()}))
    with pytest.raises(DataError, match="a pickle, which runs code when it is loaded"):
        Read(tmp_path / "a.pkl")
    torch.save({"returns": Bomb()}, tmp_path / "b.pt")
    with pytest.raises(DataError, match="pickles are never loaded"):
        Read(tmp_path / "b.pt")
    np.savez(tmp_path / "c.npz", returns=np.asarray([Bomb()], dtype=object))
    with pytest.raises(DataError, match="pickled arrays are never loaded"):
        Read(tmp_path / "c.npz")
    torch.save({"returns": torch.ones(1, 1, 1)}, tmp_path / "d.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(DataError, match="a pickle"):
        Read(tmp_path / "d.pt")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"returns": np.ones(3)}, "one axis"),
        ({"returns": np.ones((1, 1, 2)), "lengths": np.asarray([[5]])}, "lengths have to lie between 0 and 2"),
        ({"returns": np.ones((1, 1, 2)), "seconds": np.ones((3, 3))}, r"seconds has shape \[3, 3\]"),
        ({"returns": np.full((1, 1, 2), np.nan)}, "holds NaN"),
        ({"returns": np.ones((1, 2, 2)), "systems": np.asarray(["A"])}, "systems has 1 names for 2"),
        ({"other": np.ones(3)}, "neither 'returns' nor 'rewards'"),
        ({"returns": np.asarray([[["a"]]])}, "not numbers"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path: Path, arrays: dict, message: str) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(DataError, match=message):
        Read(tmp_path / "x.npz")


def test_options_are_checked(tmp_path: Path) -> None:
    path = log("episodes", tmp_path)
    for options, message in (
        ({"outcome": "best"}, "outcome is one of"),
        ({"max_score": "much"}, "max_score has"),
        ({"system": ""}, "system has"),
    ):
        with pytest.raises(UsageError, match=message):
            Read(path, **options)
