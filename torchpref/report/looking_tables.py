"""A board while its runs arrive, as a table in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from torchpref.report.numbers import counted, printable
from torchpref.report.pieces import add, table

if TYPE_CHECKING:
    from torchpref.report.shapes import MonitorLike

#: How far a system has come is drawn with so many characters.
_STRIP = 20


def monitor_tables(result: MonitorLike) -> list[RenderableType]:
    """What :func:`torchpref.monitor` finds: the status, and per system its state, how far it came and what comes next."""
    board = table(
        ("system", "<"), ("state", "<"), "runs", ("of all planned", "<"), "beats", "beaten\nby", ("next", "<")
    )
    order = {"in": 0, "open": 1, "done": 2, "out": 3}
    for row in sorted(result.rows(), key=lambda one: (order[one["state"]], -one["beats"], one["system"])):
        full = _STRIP * row["seen"] // result.planned
        strip = "█" * full + "░" * (_STRIP - full)
        add(board, row["system"], row["state"], row["seen"], strip, row["beats"], row["beaten_by"], row["next"])
    note = f"Settled by {result.method}; the chance of any wrong pair is at most {100 * result.alpha:g} %."
    if result.waiting:
        note += f" {counted(result.waiting, 'result')} behind a gap in the order count once the gap is filled."
    return [Text(printable(result.status)), Text(""), board, Text(note)]
