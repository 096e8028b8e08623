"""What all tables in the terminal are made of: parts (rich tables and texts), which can be printed to a terminal, a pipe or a
string. Names from logs are never taken for markup, and what could move the cursor is shown as its escape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Any

from rich.box import Box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from torchpref.report.numbers import printable

#: A line under the head and nothing else, in ASCII: it looks the same everywhere, and copies well.
PLAIN = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)
#: The same where the stream can show it.
FINE = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")


#: Tables are laid out for at least this many columns.
NARROWEST = 72


def render(parts: Sequence[RenderableType], width: int = 100, ascii_only: bool = False) -> str:
    """Parts as plain text, without blanks at the ends of lines.

    Args:
        parts: tables and texts.
        width: columns.
        ascii_only: draw lines in ASCII.
    """
    import io

    buffer = io.StringIO()
    width = max(width, NARROWEST)  # a terminal that is narrower still wraps lines; names would vanish from tables
    console = Console(file=buffer, width=width, color_system=None, force_terminal=False, legacy_windows=False)
    _print(console, parts, ascii_only)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).rstrip("\n")


def print_parts(parts: Sequence[RenderableType], file: IO[str]) -> None:
    """Parts to a stream: coloured and as wide as it is if it is a terminal, plain and 80 columns wide if not."""
    if not parts:
        return
    _encodable(parts, file)
    console = Console(file=file, highlight=False)
    if console.width < NARROWEST:
        console.width = NARROWEST
    if console.is_terminal:
        _print(console, parts, console.options.ascii_only)
    else:
        file.write(render(parts, console.width, console.options.ascii_only) + "\n")


def _encodable(parts: Sequence[RenderableType], file: IO[str]) -> None:
    """Put what a file writes for the characters that it cannot encode into tables, so that their columns still align."""
    encoding, errors = getattr(file, "encoding", None), getattr(file, "errors", None)
    if not encoding or errors in (None, "strict"):
        return
    for part in parts:
        for column in part.columns if isinstance(part, Table) else ():
            for cell in (column.header, *column.cells):
                if isinstance(cell, Text):
                    cell.plain = cell.plain.encode(encoding, errors).decode(encoding)


def _print(console: Console, parts: Sequence[RenderableType], ascii_only: bool) -> None:
    for part in parts:
        if isinstance(part, Table) and part.box is FINE and ascii_only:
            part.box = PLAIN
        console.print(part, highlight=False)


def heading(text: str, note: str = "") -> RenderableType:
    """A headline with a blank line before it and what it means after it."""
    words = Text.assemble("\n", (printable(text), "bold"))
    return words.append(f": {printable(note)}") if note else words


def table(*columns: str | tuple[str, str]) -> Table:
    """An empty table; a column is its head, with ``"<"`` for text (folded where it is long), else numbers."""
    result = Table(box=FINE, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        head, kind = column if isinstance(column, tuple) else (column, ">")
        if kind == "<":
            result.add_column(Text(head), overflow="fold", min_width=min(12, max(len(head), 6)))
        else:
            result.add_column(Text(head), justify="right", no_wrap=True)
    return result


def add(target: Table, *cells: Any, style: str | None = None) -> None:
    """Add a row; a cell that is None is left empty."""
    texts = [Text("" if cell is None else printable(str(cell))) for cell in cells]
    target.add_row(*texts, style=style)


def bullets(items: Sequence[tuple[str, str]]) -> Table:
    """Lines with a mark in front, wrapped under themselves."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for mark, text in items:
        grid.add_row(Text(mark), Text(printable(text)))
    return grid


def names(systems: Sequence[str], limit: int = 4) -> str:
    """Some names and how many more there are."""
    more = f" and {len(systems) - limit} more" if len(systems) > limit else ""
    return ", ".join(systems[:limit]) + more
