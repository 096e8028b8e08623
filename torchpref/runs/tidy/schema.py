"""The tidy table: the one shape in which every reader hands over its rows.

Columns: ``system``, ``instance``; optional ``benchmark``, ``trial``, ``step``, ``truncated``,
``reference_time``, ``families``; any of the clocks; one of ``return``, ``reward``, ``score``, ``success``, with
``max_score`` for rewards and scores. Three layouts: a row per step, a row per run, or a row per run with list cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torchpref.runs.findings import Finding

if TYPE_CHECKING:
    import polars

NAMES = ("system", "instance", "benchmark", "trial")
CLOCKS = ("steps", "turns", "seconds", "tokens", "cost", "time")
VALUES = ("return", "reward", "score", "success")
#: Per-run and per-instance columns; ``present`` false is a cell of the table in which no run stands.
MARKS = ("step", "max_score", "truncated", "present")
#: SPL's reference time for the clock that is meant; with ``_CLOCK`` behind it, for that clock.
REFERENCE = "reference_time"
#: With ``_CLOCK`` behind it: the best time of an instance over all runs that were read, in a table made from some of them.
BEST = "best_time"
#: The family of an instance: instances of one family share their luck (tasks of one repository).
FAMILIES = "families"
#: In front of the name of a clock that is not one of ``CLOCKS``: ``clock:moves``.
OTHER_CLOCK = "clock:"
COLUMNS = (*NAMES, *MARKS, *CLOCKS, *VALUES, REFERENCE, FAMILIES)
PREFIXES = (OTHER_CLOCK, REFERENCE + "_", BEST + "_")

#: Number of the row in what was read, so that messages can say where; optional in a reader's frame.
ROW = "__row__"
#: Path of the file that a row was read from; optional in a reader's frame.
PLACE = "__place__"
#: A mark that two records of one run have in common; optional in a reader's frame.
MARK = "__mark__"


def is_tidy(name: str) -> bool:
    """Whether a column name is one of the tidy table's."""
    return name in COLUMNS or name.startswith(PREFIXES)


def clock_columns(columns: Iterable[str]) -> dict[str, str]:
    """The clocks among some columns: name of the clock and of its column, in the order of CLOCKS, others behind."""
    present = list(columns)
    found = {name: name for name in CLOCKS if name in present}
    return found | {name.removeprefix(OTHER_CLOCK): name for name in present if name.startswith(OTHER_CLOCK)}


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
        mapped: the columns that were named by the user, not found by their own name, and what they were called.
        place: what was read, for messages about the whole of it.
        columns: the columns of what was read, for messages; those of the frame where they are not given.
    """

    frame: polars.DataFrame
    findings: tuple[Finding, ...] = ()
    locate: Callable[[int], str] = field(default=frame_row, compare=False)
    mapped: Mapping[str, str] = field(default_factory=dict)
    place: str = "the table"
    columns: tuple[str, ...] = ()
