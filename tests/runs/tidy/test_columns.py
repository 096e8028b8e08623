"""Mapping and joining columns, and keeping rows."""

from __future__ import annotations

from typing import Any

import pytest

from torchpref import DataError, Trajectories, UsageError
from torchpref.runs.tidy.columns import parse_columns, suggest
from torchpref.runs.tidy.where import parse_where

TABLE: dict[str, list[Any]] = {
    "model": ["gpt", "gpt", "claude", "claude/agent"],
    "split": [1, 2, 1, 2],
    "task": [7.0, 8.0, 7.0, 8.0],
    "won": ["yes", "", "no", "yes"],
    "beta": [True, False, None, True],
    "a+b": ["p", "q", "r", "s"],
}
COLUMNS = "system=model,instance=split+task,success=won"


def systems(where: Any) -> tuple[str, ...]:
    return Trajectories.from_frame(TABLE, columns=COLUMNS, where=where).systems


@pytest.mark.parametrize(
    "columns",
    [
        COLUMNS,
        COLUMNS.split(","),
        {"system": "model", "instance": "split+task", "success": "won"},
        " system = model, instance=split + task,success=won",
    ],
)
def test_columns_in_all_spellings(columns: Any) -> None:
    runs = Trajectories.from_frame(TABLE, columns=columns)
    assert runs.systems == ("claude", "claude/agent", "gpt")
    assert runs.instances == ("1/7", "2/8")


def test_a_column_whose_name_holds_a_plus_comes_first() -> None:
    runs = Trajectories.from_frame(TABLE, columns="system=model,instance=a+b,success=won")
    assert runs.instances == ("p", "q", "r", "s")


def test_a_joined_name_is_empty_only_where_all_parts_are() -> None:
    table = TABLE | {"split": [1, None, 1, 2]}
    assert Trajectories.from_frame(table, columns=COLUMNS).instances == ("/8", "1/7", "2/8")
    with pytest.raises(DataError, match=r"row 2: instance \(column split\+task\) is empty"):
        Trajectories.from_frame(table | {"task": [7, " ", 7, 8]}, columns=COLUMNS)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (None, ("claude", "claude/agent", "gpt")),
        ({"model": "gpt"}, ("gpt",)),
        ({"model": ["gpt", "claude"]}, ("claude", "gpt")),
        ({"model": "!*/*"}, ("claude", "gpt")),
        ("model!=*/*", ("claude", "gpt")),
        (["model!=*/*", "model!=gpt"], ("claude",)),
        ({"split": 2}, ("claude/agent", "gpt")),
        ("split=2.0", ("claude/agent", "gpt")),
        ("task=7", ("claude", "gpt")),
        ({"beta": True}, ("claude/agent", "gpt")),
        ("beta=True", ("claude/agent", "gpt")),
        ("beta=", ("claude",)),
        ({"beta": None}, ("claude",)),
        ("won!=", ("claude", "claude/agent", "gpt")),
        ("model=c*", ("claude", "claude/agent")),
        ("system=gpt", ("gpt",)),
        ("instance=1/*", ("claude", "gpt")),
    ],
)
def test_where(where: Any, expected: tuple[str, ...]) -> None:
    assert systems(where) == expected


def test_conditions_keep_what_follows_the_first_equals_sign() -> None:
    assert parse_where("a=b=c") == [("a", True, ("b=c",))]
    assert parse_where(["a != b", "a=!b"]) == [("a", False, ("b",)), ("a", True, ("!b",))]
    assert parse_where({"a": [1, True]}) == [("a", True, ("1", "true"))]


def test_wrong_mappings() -> None:
    for columns, match in (
        ({"sistem": "a"}, "did you mean 'system'"),
        ("system=a,system=b", "given twice"),
        ("system=", "names no column"),
        ("system", "NAME=COLUMN"),
    ):
        with pytest.raises(UsageError, match=match):
            parse_columns(columns)
    assert parse_columns(None) == parse_columns("") == {}


def test_suggestions_ignore_case() -> None:
    assert suggest("system", ["System", "other"]) == " (did you mean 'System'?)"
    assert suggest("system", ["other"]) == ""
