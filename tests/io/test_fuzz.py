"""Damaged files and strange cells: runs, or an error of our own; nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiles import examples
from torchpref import Trajectories
from torchpref.errors import TorchPrefError
from torchpref.io import read
from torchpref.runs.audit import audit

CSV = (
    b"system,instance,trial,step,return,cost,note\na,x,1,1,0.5,1,\na,x,1,2,1,2.5,n\nb,x,1,1,0,,\n"
    b'b,y,2,1,"1",0,"q ""r"""\nc,x,10,3,0.333,7,\n'
)
LINES = (
    b'{"system":"a","instance":"x","return":[0,0.5,1],"cost":[1,null,3]}\n'
    b'{"system":"b","instance":"x","return":[],"truncated":true}\n'
    b'{"system":"b","instance":"y","return":[1],"cost":[0.1],"reference_time":2}\n'
)
VALID = [
    CSV,
    CSV.replace(b"\n", b"\r\n"),
    CSV.replace(b",", b";"),
    LINES,
    b"[" + LINES.replace(b"\n", b",")[:-1] + b"]",
]
TOKENS = [
    b"nan",
    b"Infinity",
    b"-1",
    b"1e999",
    b"",
    b"\n",
    b",",
    b'"',
    b"\0",
    b"\xff",
    b"[",
    b"]",
    b"{",
    b"}",
    b"null",
    b"9" * 30,
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    data = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 10)))
        put = draw(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=3), st.just(data[end : end + 20])))
        data = data[:start] + put + (data[end:] if draw(st.integers(0, 4)) else b"")
    return data


def tried(action: Any) -> None:
    try:
        text = str(audit(action()))
    except TorchPrefError as error:
        text = str(error)
        assert "polars" not in text.lower() and len(text) < 800
    assert text


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damaged(), st.sampled_from(["table", "auto"]))
def test_damaged_files(tmp_path: Path, data: bytes, format: str) -> None:
    path = tmp_path / "runs.txt"
    path.write_bytes(data)
    tried(lambda: read(path, format))


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.integers(min_value=2**62, max_value=2**70),
    st.floats(),
    st.sampled_from([0.1, 1 / 3, 0.5, 1.0]),
    st.text(max_size=3),
    st.sampled_from(["", " ", "1", "0.5", "yes", "nan", "[1, 2]", "0 1", "[]", "1;2", "a"]),
    st.lists(st.one_of(st.none(), st.integers(0, 3), st.floats(0, 1)), max_size=3),
)
COLUMNS = [
    "trial",
    "step",
    "return",
    "reward",
    "score",
    "success",
    "max_score",
    "cost",
    "seconds",
    "truncated",
    "reference_time",
]


@st.composite
def strange(draw: st.DrawFn) -> list[dict[str, Any]]:
    columns = draw(st.lists(st.sampled_from(COLUMNS), unique=True, max_size=4))
    value = draw(st.sampled_from(["return", "success", "reward"]))
    kinds = {
        column: draw(st.sampled_from([CELLS, st.integers(0, 2), st.just(None), st.sampled_from(["0", "1"])]))
        for column in columns
    }
    return [
        {
            "system": draw(st.sampled_from("ab")),
            "instance": draw(st.sampled_from("xy")),
            value: draw(st.sampled_from([0, 1])),
        }
        | {column: draw(cells) for column, cells in kinds.items()}
        for _ in range(draw(st.integers(1, 5)))
    ]


@settings(max_examples=examples(600))
@given(strange(), st.booleans(), st.sampled_from(["exclude", "failure"]))
def test_strange_cells(rows: list[dict[str, Any]], strict: bool, missing: Any) -> None:
    tried(lambda: Trajectories.from_frame(rows, strict=strict, missing=missing))


@pytest.mark.parametrize("size", [0, 1, 3, 16, 400])
def test_arbitrary_bytes(tmp_path: Path, size: int) -> None:
    import random

    draw = random.Random(size)
    for _ in range(50):
        (tmp_path / "runs").write_bytes(draw.randbytes(size))
        tried(lambda: read(tmp_path / "runs"))
