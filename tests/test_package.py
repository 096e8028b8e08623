"""The package itself: its public names, and what importing it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import torchpref as tp


@pytest.mark.parametrize("name", sorted(tp._EXPORTS))
def test_every_public_name_is_there(name):
    assert getattr(tp, name) is not None
    assert name in dir(tp)


def test_public_names_stand_in_one_list():
    """Each on a line of its own, as the package reads it; type checkers read all of it."""
    tree = ast.parse(Path(tp.__file__).with_suffix(".pyi").read_text())
    imported = [node for node in tree.body if isinstance(node, ast.ImportFrom) and "torchpref" in str(node.module)]
    assert all(len(node.names) == 1 and node.names[0].asname for node in imported)
    listed = {node.names[0].asname: str(node.module) for node in imported}
    rooms = {name for name, module in listed.items() if module == "torchpref"}
    assert rooms == set(tp._MODULES)
    assert {name: listed[name].removeprefix("torchpref.") for name in listed.keys() - rooms} == tp._EXPORTS


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tp.nonsense  # noqa: B018


def test_old_paths_still_import_with_a_warning():
    code = (
        "import importlib, warnings\nimport torchpref as tp\n"
        "for old in tp._MOVED:\n    with warnings.catch_warnings(record=True) as caught:\n"
        "        warnings.simplefilter('always')\n"
        "        importlib.import_module(f'torchpref.{old}')\n"
        "    assert any(f'torchpref.{old}' in str(one.message) and one.category is FutureWarning for one in caught), old\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("old", sorted(tp._MOVED))
def test_an_old_path_still_imports_with_a_warning(old):
    """For one version; whatever is imported by it, a function of the same name stays callable."""
    code = (
        "import warnings\nwith warnings.catch_warnings(record=True) as caught:\n    warnings.simplefilter('always')\n"
        f"    import torchpref.{old} as module\nimport torchpref as tp\n"
        f"assert any('torchpref.{old}' in str(one.message) and one.category is FutureWarning for one in caught), caught\n"
        f"value = getattr(tp, '{old}', None)\n"
        "assert value is None or callable(value) or hasattr(value, '__path__') or hasattr(value, 'Curves'), value"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_old_paths_give_the_same_objects():
    with pytest.warns(FutureWarning, match="torchpref.runs.trajectories"):
        from torchpref.io.frames import from_frame

    assert from_frame.__func__ is tp.Trajectories.from_frame.__func__


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
