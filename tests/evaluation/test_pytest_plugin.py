"""The fixture for other people's test suites."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import torchpref as tp
from torchpref.evaluation.pytest_plugin import Gate


def run(options: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "pytest", *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env, check=False)


def two(base: int, new: int) -> tp.Trajectories:
    solved = torch.zeros(40, 2, 1)
    solved[:base, 0], solved[:new, 1] = 1, 1
    return tp.Trajectories(solved, systems=["old", "young"])


def test_worse_fails_with_the_line_and_the_rest_passes():
    with pytest.raises(AssertionError, match="worse"):
        Gate().assert_not_worse("old", "young", runs=two(36, 8), measure="sr")
    assert Gate().assert_not_worse("old", "young", runs=two(36, 35), measure="sr").verdict == "undecided"
    with pytest.raises(AssertionError, match="undecided|not"):
        Gate().assert_not_worse("old", "young", runs=two(36, 35), measure="sr", undecided="fail")


def test_two_files_are_two_systems(tmp_path):
    paths = []
    for name, runs in (("old", two(36, 8)), ("young", two(36, 8))):
        paths.append(tmp_path / f"{name}.csv")
        runs.select(systems=name).to_frame().explode("return", "steps").write_csv(paths[-1])
    with pytest.raises(AssertionError, match="worse"):
        Gate().assert_not_worse(*paths, measure="sr")


def test_it_is_found_by_pytest_imports_nothing_and_can_be_left_out(tmp_path):
    """Its module is in every pytest run of every project beside torchpref."""
    (tmp_path / "test_it.py").write_text(
        "import sys\n\ndef test_light():\n    assert not {'torch', 'numpy'} & set(sys.modules)\n"
        "    assert not [name for name in sys.modules if name.startswith('torchpref.') and 'evaluation' not in name]\n"
    )
    (tmp_path / "test_fixture.py").write_text(
        "def test_there(torchpref_gate):\n    assert torchpref_gate.assert_not_worse\n"
    )
    options = ["-q", "-p", "no:torchpref", "-p", "no:jaxtyping", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"]
    done = run([*options, "-p", "torchpref.evaluation.pytest_plugin", str(tmp_path)], tmp_path)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    without = run([*options, str(tmp_path)], tmp_path)
    assert "fixture 'torchpref_gate' not found" in without.stdout
