"""HDF5 in a process of its own: what it gives, and that it ends where it has to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reader_logs import Read, log
from test_fuzz import damaged

from torchpref.errors import DataError
from torchpref.io.files import hdf5

h5py = pytest.importorskip("h5py", reason="needs the extra minari")

HANGS = [(12, 4246722672, 46936), (8, 332935112, 24778)]
"""Damage after which HDF5 1.14 looks for an attribute for ever."""
TESTS = Path(__file__).parent


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdf5, "SECONDS", 1.5)


def damaged_file(folder: Path) -> Path:
    path = log("minari", folder) / "main_data.hdf5"
    path.write_bytes(damaged(path.read_bytes(), HANGS))
    return path


def worker() -> Any:
    assert hdf5._worker is not None
    return hdf5._worker.process


@pytest.mark.usefixtures("impatient")
def test_a_file_that_keeps_the_library_busy(tmp_path: Path) -> None:
    path = damaged_file(tmp_path / "damaged")
    started = time.monotonic()
    with pytest.raises(DataError, match=r"main_data\.hdf5: HDF5 that cannot be read .*copy or download it again"):
        Read(path, max_score=1)
    assert time.monotonic() - started < 15
    assert len(Read(log("minari", tmp_path / "sound")).rows) == 2  # the next file is read by another process


def test_a_process_that_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = log("minari", tmp_path)
    answer = hdf5._Worker.answer

    def crash(self: Any, most: int) -> Any:
        self.process.kill()
        self.process.wait()
        return answer(self, 0)

    monkeypatch.setattr(hdf5._Worker, "answer", crash)
    with pytest.raises(DataError, match="made the HDF5 library fail"):
        Read(path)
    monkeypatch.undo()
    assert len(Read(path).rows) == 2


def test_one_process_for_many_files(tmp_path: Path) -> None:
    path = log("minari", tmp_path)
    Read(path)
    first = worker().pid
    with h5py.File(path / "main_data.hdf5", "a") as file:
        file["episode_0/rewards"][1] = np.nan
    with pytest.raises(DataError, match="NaN"):
        Read(path)
    with h5py.File(path / "main_data.hdf5", "a") as file:
        del file["episode_0"]
    assert len(Read(path).rows) == 1
    assert worker().pid == first


def test_arrays_arrive_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "x.hdf5"
    arrays = {
        "a": np.arange(6, dtype=">i2").reshape(2, 3),
        "b": np.asarray([True, False]),
        "c": np.asarray(2.5, dtype=np.float32),
        "d": np.zeros((0, 4)),
        "e": np.asarray([b"text"]),
    }
    with h5py.File(path, "w") as file:
        file["episode_7/rewards"] = np.zeros(1)
        for name, values in arrays.items():
            file[f"episode_7/infos/{name}"] = values
    found = {answer.get("name"): (answer, data) for answer, data in hdf5.answers(path, ["rewards"], [*arrays], 100)}
    for name in "abcd":
        assert found[name][1].dtype == arrays[name].dtype and found[name][1].shape == arrays[name].shape
        np.testing.assert_array_equal(found[name][1], arrays[name])
    assert found["e"][1].dtype == object and found["e"][1].shape == (1,)
    assert found["episode_7"][0]["number"] == 7


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


SCRIPT = """
import os, sys, threading, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from torchpref.io.files import hdf5
from torchpref.io.readers import minari
from torchpref.io.logs.reader import Source
hdf5.SECONDS = {seconds}
def tell():
    while hdf5._worker is None:
        time.sleep(0.01)
    Path({out!r}).write_text(str(hdf5._worker.process.pid))
threading.Thread(target=tell).start()
rows = minari.read([Source.open({path!r})], {{"max_score": 1}}).frame.height
Path({out!r} + ".rows").write_text(str(rows))
{after}
"""


def script(tmp_path: Path, path: Path, seconds: float, after: str = "") -> tuple[list[str], Path]:
    out = tmp_path / "pid"
    text = SCRIPT.format(tests=str(TESTS), path=str(path), out=str(out), seconds=seconds, after=after)
    return [sys.executable, "-c", text], out


@pytest.mark.skipif(os.name != "posix", reason="ends processes by signals")
@pytest.mark.parametrize("busy", [False, True])
def test_it_ends_with_the_process_that_started_it(tmp_path: Path, busy: bool) -> None:
    path = damaged_file(tmp_path) if busy else log("minari", tmp_path) / "main_data.hdf5"
    command, out = script(tmp_path, path, 1.0 if not busy else 3.0, "time.sleep(60)")
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            ready = out if busy else Path(f"{out}.rows")
            assert wait_for(lambda: ready.exists() and bool(ready.read_text()) and bool(out.read_text()), 30)
            time.sleep(1.5 if busy else 0)
        finally:
            process.send_signal(signal.SIGKILL)
    pid = int(out.read_text())
    assert wait_for(lambda: not running(pid), 15 if busy else 5)


@pytest.mark.skipif(os.name != "posix", reason="closes the standard streams by their numbers")
def test_without_standard_streams(tmp_path: Path) -> None:
    path = log("minari", tmp_path) / "main_data.hdf5"
    command, out = script(tmp_path, path, 20.0)
    command[2] = "import os\nfor number in range(3):\n    os.close(number)\n" + command[2]
    assert subprocess.run(command, timeout=60).returncode == 0
    assert Path(f"{out}.rows").read_text() == "2"


FORK = """
import os, sys
from pathlib import Path
from torchpref.io.files import hdf5

def episodes():
    return [answer["kind"] for answer, _ in hdf5.answers(Path(sys.argv[1]), ["rewards"], [], 100)].count("episode")

assert episodes() == 2
first = hdf5._worker.process.pid
child = os.fork()
if not child:
    found = episodes()
    own = hdf5._worker.process.pid
    hdf5._end()
    os._exit(0 if found == 2 and own != first else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert episodes() == 2 and hdf5._worker.process.pid == first
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_has_a_process_of_its_own(tmp_path: Path) -> None:
    """In a process without other threads: a fork of one with threads may hang whatever it does."""
    path = log("minari", tmp_path) / "main_data.hdf5"
    root = str(Path(__file__).parents[3])
    subprocess.run(
        [sys.executable, "-c", FORK, str(path)], check=True, timeout=60, env={**os.environ, "PYTHONPATH": root}
    )
