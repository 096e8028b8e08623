"""The tidy table: the one shape in which every reader hands over its rows.

Columns (DESIGN.md, section 5): ``system``, ``instance``; optional ``benchmark``, ``trial``, ``step``, ``truncated``,
``reference_time``; any of the clocks; one of ``return``, ``reward``, ``score``, ``success``, with ``max_score`` for
rewards and scores. Three layouts: a row per step, a row per run, or a row per run with list cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torchpref.findings import Finding

if TYPE_CHECKING:
    import polars

NAMES = ("system", "instance", "benchmark", "trial")
CLOCKS = ("steps", "turns", "seconds", "tokens", "cost", "time")
VALUES = ("return", "reward", "score", "success")
#: Per-run and per-instance columns; ``present`` false is a cell of the table in which no run stands.
MARKS = ("step", "max_score", "truncated", "present")
#: SPL's reference time for the clock that is meant, or for a named clock; and the best time that was found when reading.
REFERENCES = ("reference_time", *(f"reference_time_{clock}" for clock in CLOCKS))
BEST = tuple(f"best_time_{clock}" for clock in CLOCKS)
COLUMNS = (*NAMES, *MARKS, *CLOCKS, *VALUES, *REFERENCES, *BEST)

#: Number of the row in what was read, so that messages can say where; optional in a reader's frame.
ROW = "__row__"


def frame_row(row: int) -> str:
    """Where a row of a frame stands, for messages."""
    return f"row {row + 1}"


@dataclass(frozen=True)
class Tidy:
    """Tidy rows, what was noticed on the way, and where each row came from.

    Attributes:
        frame: the rows; column ``__row__`` (UInt32), if there, is the number that ``locate`` understands.
        findings: what the reader noticed.
        locate: says where a row stands (``"runs.csv, line 17"``).
        mapped: the columns that were named by the user, not found by their own name.
        place: what was read, for messages about the whole of it.
    """

    frame: polars.DataFrame
    findings: tuple[Finding, ...] = ()
    locate: Callable[[int], str] = field(default=frame_row, compare=False)
    mapped: frozenset[str] = frozenset()
    place: str = "the table"
