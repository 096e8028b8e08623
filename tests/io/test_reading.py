"""What counts as paths and what as a table in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpref.io.reading import is_paths


@pytest.mark.parametrize("given", ["runs.csv", Path("runs.csv"), ["a", Path("b")], ("a",), {"a"}, {"A": "a", "B": Path("b")}])
def test_strings_and_paths_are_paths(given: object) -> None:
    assert is_paths(given)


@pytest.mark.parametrize("given", [{}, [1], {"A": 1}, {"A": ["a", 1]}, {"system": ["A"], "return": [1.0]}, object()])
def test_what_is_no_path_is_a_table(given: object) -> None:
    assert not is_paths(given)


def test_lists_of_strings_are_paths_where_all_of_them_exist(tmp_path: Path) -> None:
    """A table whose columns are all text looks like lists of paths; what lies on the disk decides."""
    (tmp_path / "one").touch()
    (tmp_path / "two").touch()
    there = [str(tmp_path / "one"), str(tmp_path / "two")]
    assert is_paths({"A": there})
    assert is_paths({"A": there, "B": str(tmp_path / "one")})
    assert not is_paths({"system": ["A", "B"], "instance": ["t", "t"]})
    assert not is_paths({"A": [*there, str(tmp_path / "three")]})
    assert not is_paths({"A": [there[0], 3]})
