"""Names out of the place where a row was read: ``@file``, ``@folder``, and ``@folder-1`` for the folder one higher."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING

from torchpref.runs.tidy.schema import PLACE

if TYPE_CHECKING:
    import polars

FILE, FOLDER = "@file", "@folder"
_WORD = re.compile(r"@folder(?:-(\d{1,3}))?|@file")


def is_place(word: str) -> bool:
    """Whether a word stands for a part of a path."""
    return _WORD.fullmatch(word) is not None


def place_words(texts: Iterable[str]) -> list[str]:
    """The words for parts of a path among columns that may be joined by ``+``."""
    parts = (part.strip() for text in texts for part in text.split("+"))
    return list(dict.fromkeys(part for part in parts if is_place(part)))


def part_of(path: str, word: str) -> str | None:
    """The part of a path that a word stands for; None where the path is not that deep."""
    if word == FILE:
        name = PurePath(path).name
        for packed in (".gz", ".bz2", ".xz", ".zst", ".zip"):
            name = name.removesuffix(packed)
        return name.rsplit(".", 1)[0] if "." in name.strip(".") else name
    match = _WORD.fullmatch(word)
    higher = int(match[1] or 0) if match else 0
    above = PurePath(os.path.abspath(path)).parents
    return (above[higher].name or None) if higher < len(above) else None


def with_places(frame: polars.DataFrame, words: Iterable[str]) -> polars.DataFrame:
    """The frame with a column for each word, out of the column of paths."""
    import polars as pl

    if PLACE not in frame.columns:
        return frame
    paths = frame[PLACE].to_list()
    found: dict[tuple[str, str], str | None] = {}
    columns = []
    for word in words:
        for path in set(paths) - {None}:
            found[(path, word)] = part_of(path, word)
        cells = [None if path is None else found[(path, word)] for path in paths]
        columns.append(pl.Series(word, cells, dtype=pl.String))
    return frame.with_columns(columns)


def telling_apart(one: str, other: str) -> str | None:
    """The word by which two paths differ, the nearest folder first; None for the same file."""
    if one == other:
        return None
    for higher in range(64):
        word = FOLDER if not higher else f"{FOLDER}-{higher}"
        mine, theirs = part_of(one, word), part_of(other, word)
        if mine is None or theirs is None:
            break
        if mine != theirs:
            return word
    return FILE
