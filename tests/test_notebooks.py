"""Notebooks are stored without outputs; `make notebooks` executes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def kept(book: dict[str, Any]) -> list[str]:
    """What is stored of an execution."""
    found = []
    for cell in book["cells"]:
        if cell["cell_type"] == "code" and (cell["outputs"] or cell["execution_count"] is not None):
            found.append("".join(cell["source"])[:60])
    return found


def test_there_are_five() -> None:
    assert [path.name[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04", "05"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_outputs_are_stored(path: Path) -> None:
    book = json.loads(path.read_text(encoding="utf-8"))
    assert not kept(book), (
        f"{path.name} holds outputs; remove them with: jupyter nbconvert --clear-output --inplace {path}"
    )
    assert book["cells"][0]["source"][0].startswith("# ")
    assert "../shared" not in path.read_text(encoding="utf-8")


def test_an_output_is_found() -> None:
    cell = {"cell_type": "code", "outputs": [{"output_type": "stream"}], "execution_count": None, "source": ["1"]}
    assert kept({"cells": [cell]}) == ["1"]
