"""What was noticed about the data: one record per kind of thing, with a count."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """One kind of thing that was noticed in the data.

    Attributes:
        kind: a stable word for programs, such as ``"returns_above_one"``.
        severity: ``"error"`` stops, ``"warning"`` may change results, ``"note"`` is worth knowing.
        count: how often it was seen.
        message: one sentence for people, without the count.
        systems: the systems concerned, sorted.
        examples: a few places where it was seen.
    """

    kind: str
    severity: Severity
    count: int
    message: str
    systems: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain lists and values, ready for JSON."""
        record = asdict(self)
        record["systems"] = list(self.systems)
        record["examples"] = list(self.examples)
        return record

    def __str__(self) -> str:
        return f"{self.message} ({self.count})"
