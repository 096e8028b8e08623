"""Minari data sets."""

import sys
from pathlib import Path

import numpy as np
import pytest
from reader_logs import Read, log, put

from torchpref.errors import DataError, MissingExtraError, UsageError

h5py = pytest.importorskip("h5py", reason="needs the extra minari")

SYSTEM = "toy/demo-v0"


def test_values_by_hand(tmp_path: Path) -> None:
    read = Read(log("minari", tmp_path))
    assert read.name == "minari"
    assert read.cells(SYSTEM, "100", "return", "steps", "truncated") == ([0.0, 1.0], [1.0, 4.0], False)
    assert read.cells(SYSTEM, "101", "return", "steps", "truncated") == ([0.0, 0.0], [1.0, 3.0], True)


def test_infos_are_one_longer_than_rewards(tmp_path: Path) -> None:
    path = log("minari", tmp_path) / "main_data.hdf5"
    with h5py.File(path) as file:
        assert len(file["episode_0/infos/success"]) == len(file["episode_0/rewards"]) + 1
    with h5py.File(path, "a") as file:  # a flag raised by the reset alone is not a step's
        del file["episode_0/infos/success"]
        file["episode_0/infos/success"] = np.asarray([True, False, False, True, True])
    assert Read(path).cells(SYSTEM, "100", "return", "steps") == ([0.0, 1.0, 1.0], [1.0, 3.0, 4.0])


def test_rewards_need_their_maximum(tmp_path: Path) -> None:
    path = log("minari", tmp_path)
    assert Read(path, max_score=1).cells(SYSTEM, "100", "return", "steps") == ([0.0, 0.5, 1.0], [1.0, 2.0, 4.0])
    with pytest.raises(UsageError, match=r"increments of unknown scale; give max_score="):
        Read(path, outcome="reward")


def test_terminated_with_a_reward_is_success_whatever_the_reward(tmp_path: Path) -> None:
    read = Read(log("minari", tmp_path), outcome="terminated")
    assert read.cells(SYSTEM, "100", "return") == ([0.0, 1.0],)
    assert read.cells(SYSTEM, "101", "return") == ([0.0, 0.0],)


def test_lengths_that_fit_neither_way(tmp_path: Path) -> None:
    path = log("minari", tmp_path) / "main_data.hdf5"
    with h5py.File(path, "a") as file:
        del file["episode_0/terminations"]
        file["episode_0/terminations"] = np.zeros(9, dtype=bool)
    with pytest.raises(DataError, match=r"episode_0: terminations has 9 entries for 4 rewards; it should have 4 or 5"):
        Read(path)


def test_no_seed_is_counted(tmp_path: Path) -> None:
    path = log("minari", tmp_path) / "main_data.hdf5"
    with h5py.File(path, "a") as file:
        del file["episode_1"].attrs["seed"]
    read = Read(path)
    assert read.cells(SYSTEM, "1", "return") == ([0.0, 0.0],)
    assert read.findings["episodes_without_seed"].count == 1


def test_nothing_outside_the_file_is_followed(tmp_path: Path) -> None:
    path = log("minari", tmp_path) / "main_data.hdf5"
    with h5py.File(tmp_path / "other.hdf5", "w") as other:
        other["rewards"] = np.ones(3)
    with h5py.File(path, "a") as file:
        del file["episode_0/rewards"]
        file["episode_0/rewards"] = h5py.ExternalLink(str(tmp_path / "other.hdf5"), "rewards")
    with pytest.raises(DataError, match="a link to another file, which is not followed"):
        Read(path)


def test_an_array_that_claims_to_be_huge(tmp_path: Path) -> None:
    path = log("minari", tmp_path) / "main_data.hdf5"
    with h5py.File(path, "a") as file:
        del file["episode_0/rewards"]
        file["episode_0"].create_dataset("rewards", shape=(1 << 40,), chunks=(1024,), dtype="f8")
    assert path.stat().st_size < 1 << 20
    with pytest.raises(DataError, match="is not read"):
        Read(path)


def test_other_hdf5_and_nan(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file["a"] = 1
    with pytest.raises(DataError, match="no group episode_0"):
        Read(tmp_path / "x.hdf5")
    path = log("minari", tmp_path) / "main_data.hdf5"
    with h5py.File(path, "a") as file:
        file["episode_0/rewards"][1] = np.nan
    with pytest.raises(DataError, match="rewards holds NaN or infinity"):
        Read(path)


def test_h5py_missing_is_a_missing_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = log("minari", tmp_path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r"torchpref\[minari\]"):
        Read(path)


def test_metadata_beside_it_is_no_run(tmp_path: Path) -> None:
    path = log("minari", tmp_path)
    put(path / "metadata.json", {"minari_version": "0.5", "dataset_id": SYSTEM})
    assert len(Read(path).rows) == 2
