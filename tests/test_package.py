"""The package itself: its public names, and what importing it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from inspect import isroutine
from pathlib import Path

import pytest

import torchpref as tp

# Functions that share their name with the module that defines them.
TWINS = ("preferences", "bradley_terry", "evaluate", "significance", "influence")


@pytest.mark.parametrize("name", sorted(tp._EXPORTS))
def test_every_public_name_is_there(name):
    assert getattr(tp, name) is not None
    assert name in dir(tp)


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(tp.__file__).read_text())
    seen = {
        alias.asname: node.module.removeprefix("torchpref.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torchpref.")
        for alias in node.names
    }
    assert seen == tp._EXPORTS


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tp.nonsense  # noqa: B018


@pytest.mark.parametrize("name", TWINS)
def test_a_function_wins_over_the_module_of_its_name(name):
    """However the module is imported first, tp.preferences is the function."""
    code = f"import torchpref.{name}, torchpref as tp, inspect; assert inspect.isroutine(tp.{name}), tp.{name}"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert isroutine(getattr(tp, name))


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_costs_next_to_nothing():
    assert not loaded_by("import torchpref") & {"torch", "numpy", "polars", "numba", "scipy", "rich", "typer"}


def test_training_code_needs_torch_and_numpy_alone():
    statement = (
        "import torch; import torchpref as tp; runs = tp.Trajectories(torch.rand(4, 3, 5)); "
        "tp.preferences(runs, 'rpp').mean(); import torchpref.rl"
    )
    assert not loaded_by(statement) & {"polars", "numba", "scipy", "rich", "typer", "pandas", "gymnasium"}
