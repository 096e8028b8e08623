"""Several processes: the bits of one, and an end with a message when one of them dies."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch

from pairwise.test_streaming import assert_same, table
from torchpref import all_preferences
from torchpref.distributed import main
from torchpref.pairwise.sharding import process_group, sharded_preferences
from torchpref.runs.trajectories import from_frame

ROOT = Path(__file__).parents[2]


def torchrun(processes: int, *arguments: str, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(processes),
        *arguments,
    ]
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as job:
        try:
            out, errors = job.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, job.returncode, out, errors)


def store(folder: Path, files: int, shuffled: bool = False) -> dict[str, object]:
    """A data set in some files, and what all of it gives."""
    frame = table()
    stored = frame.sample(fraction=1, shuffle=True, seed=1) if shuffled else frame
    keys = stored["instance"].hash(0) % files
    for number in range(files):
        part = (
            stored.slice(number * stored.height // files, stored.height // files + 1)
            if shuffled
            else stored.filter(keys == number)
        )
        part.write_parquet(folder / f"{number}.parquet")
    return {name: prefs.to_dict() for name, prefs in all_preferences(from_frame(stored.unique()), clock="cost").items()}


def test_one_process_needs_no_torchrun(tmp_path: Path) -> None:
    whole = all_preferences(from_frame(table()), clock="cost")
    table().write_parquet(tmp_path / "runs.parquet")
    for name, prefs in sharded_preferences(tmp_path, clock="cost").items():
        assert_same(prefs, whole[name])
    with process_group() as (rank, world):
        assert (rank, world) == (0, 1)
    assert not torch.distributed.is_initialized()


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = store(tmp_path, 1)
    assert main([str(tmp_path), "--clock", "cost", "--measure", "lr", "--json", str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_text()) == {"lr": expected["lr"]}
    assert "mean preference over rivals" in capsys.readouterr().out
    assert main([str(tmp_path), "--clock", "money"]) == 2
    assert "money" in capsys.readouterr().err
    assert main([str(tmp_path), "--chunk-rows", "many"]) == 2
    assert "'many' is not a whole number" in capsys.readouterr().err
    renamed = ["--columns", "system=system,cost=cost", "--where", "system!=s3", "--measure", "sr,pr"]
    assert main([str(tmp_path), *renamed]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "files"), [(2, 4), (3, 4), (3, 2)])
def test_processes_give_the_bits_of_one(tmp_path: Path, processes: int, files: int) -> None:
    expected = store(tmp_path, files)
    result = tmp_path / "out.json"
    done = torchrun(processes, "-m", "torchpref.distributed", str(tmp_path), "--clock", "cost", "--json", str(result))
    assert done.returncode == 0, done.stderr
    assert json.loads(result.read_text()) == expected


def dying_job(folder: Path) -> Path:
    """A script whose second process is killed just before the sums are exchanged."""
    store(folder, 2)
    script = folder / "job.py"
    text = """
        import os, signal, sys
        import torchpref.pairwise.sharding as d
        from torchpref.distributed import main
        reduced = d._reduced
        def die(totals, world):
            if os.environ["RANK"] == "1":
                os.kill(os.getpid(), signal.SIGKILL)
            return reduced(totals, world)
        d._reduced = die
        sys.exit(main([sys.argv[1], "--clock", "cost"]))
    """
    script.write_text(textwrap.dedent(text))
    return script


@pytest.mark.slow
def test_a_process_that_dies_ends_the_job(tmp_path: Path) -> None:
    done = torchrun(2, str(dying_job(tmp_path)), str(tmp_path))
    assert done.returncode != 0
    assert "SIGKILL" in done.stderr


@pytest.mark.slow
def test_the_others_say_that_a_process_died(tmp_path: Path) -> None:
    """Without torchrun's agent, which ends the others so fast that they may not get to say anything."""
    script = dying_job(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "2",
    }
    command = [sys.executable, str(script), str(tmp_path)]
    jobs = [
        subprocess.Popen(
            command, env={**shared, "RANK": str(rank)}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        for rank in range(2)
    ]
    try:
        assert jobs[1].wait(timeout=200) == -signal.SIGKILL
        start = time.monotonic()
        _, errors = jobs[0].communicate(timeout=30)
        assert time.monotonic() - start < 30
    finally:
        for job in jobs:
            job.kill()
            job.communicate()
    assert jobs[0].returncode == 1
    assert "process 0 of 2 lost another one" in errors
