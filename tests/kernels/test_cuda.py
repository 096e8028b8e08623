"""The Triton kernel: in Triton's interpreter, compiled ahead of time for Hopper, and on a GPU where there is one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from kernels.corpus import KINDS, SHAPES, assert_same, curves, pairs_of
from torchpref.kernels import choice, reference
from torchpref.kernels.cpu import choose as cpu
from torchpref.kernels.cuda import launch as cuda

HERE = Path(__file__).parent
needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="triton is not installed: pip install triton==3.7.1"
)


def run(script: str, tmp_path: Path, **variables: str) -> str:
    path = os.pathsep.join([str(HERE.parents[1]), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "TRITON_CACHE_DIR": str(tmp_path), **variables}
    environment.pop("TRITON_INTERPRET", None) if "TRITON_INTERPRET" not in variables else None
    done = subprocess.run(
        [sys.executable, HERE / script], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_triton
@pytest.mark.slow
def test_in_the_interpreter(tmp_path: Path) -> None:
    assert "48 cases equal" in run("triton_interpreted.py", tmp_path, TRITON_INTERPRET="1")


@needs_triton
@pytest.mark.slow
def test_compiles_for_hopper_without_spilling_much(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in run("triton_compile.py", tmp_path).splitlines()]
    assert len(rows) == 12
    for row in rows:
        assert row["registers"] <= 255, row
        if row["trials"] == 1:
            assert row["stack"] == 0, row


def test_tables_are_made_without_triton() -> None:
    """Tables are torch's work; their narrow times give the reference's signs."""
    for kind in KINDS:
        data = curves(kind, (3, 3, 1, 5, 6))
        tables = cuda.build(data)
        assert tables.low.dtype is (torch.int64 if kind.scale >= 10**9 else torch.int32)
        assert tables.general == (kind.unknown > 0 or kind.truncated > 0)


def test_a_gpu_without_triton_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    assert not choice.has_triton()


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_the_cpu_on_a_gpu(kind: object, shape: tuple[int, int, int, int, int]) -> None:
    data = curves(kind, shape)  # type: ignore[arg-type]
    pairs = pairs_of(data)
    expected = cpu.compare_pairs(data, pairs)
    assert_same(cuda.compare_pairs(data.to("cuda"), pairs.cuda()).to("cpu"), expected)
    assert_same(reference.compare_pairs(data.to("cuda"), pairs.cuda()).to("cpu"), expected)
