"""The log formats that can be read, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from torchpref.report.pieces import add, table

if TYPE_CHECKING:
    from torchpref.report.shapes import FormatLike


def formats_tables(formats: Sequence[FormatLike]) -> list[RenderableType]:
    """A row per format: its name for ``--format``, what it is, what it gives, and its options."""
    board = table(("format", "<"), ("what it is, and what it gives", "<"))
    for each in formats:
        words = [f"{each.title}: {', '.join(each.gives)}"]
        words += [f"options: {', '.join(each.options)}"] if each.options else []
        words += [f"extra: {each.extra}"] if each.extra else []
        add(board, each.name, "; ".join(words))
    note = (
        "The format is recognised by content; --format names it. Options are given as --option NAME=VALUE, extras are "
        "installed with pip install 'torchpref[EXTRA]'."
    )
    return [board, Text(""), Text(note)]
