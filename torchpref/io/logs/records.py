"""The values of a log's records: numbers read with care, oddities counted.

A reader asks :class:`Notes` for the numbers of a record, so that a null, a number written as text or a NaN is treated alike
in every format.
"""

from __future__ import annotations

import hashlib
import marshal
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from torchpref.errors import UsageError
from torchpref.io.files.documents import kind_of, printable
from torchpref.runs.findings import Finding, Severity

MAX_EXAMPLES = 5
_BIGGEST = 9.0e18
_OUT_OF_RANGE = "times below 0 or beyond counting are taken as unknown"


@dataclass
class _Note:
    severity: Severity
    message: str
    count: int = 0
    systems: set[str] = field(default_factory=set)
    examples: list[str] = field(default_factory=list)


class Notes:
    """What a reader noticed, counted by kind."""

    def __init__(self) -> None:
        self._notes: dict[str, _Note] = {}

    def add(
        self,
        kind: str,
        message: str,
        *,
        severity: Severity = "warning",
        system: str | None = None,
        example: object = None,
        count: int = 1,
    ) -> None:
        """Count one more of a kind; the message is one sentence without the count."""
        note = self._notes.setdefault(kind, _Note(severity, message))
        note.count += count
        if system:
            note.systems.add(printable(system))
        if example is not None and len(note.examples) < MAX_EXAMPLES:
            note.examples.append(printable(str(example)[:300]))

    def show(self, kind: str, cases: Iterable[tuple[str, str]]) -> None:
        """Name the systems, and the first few cases, of a kind that was counted at once."""
        for system, example in cases:
            self._notes[kind].systems.add(system)
            if len(self._notes[kind].examples) < MAX_EXAMPLES:
                self._notes[kind].examples.append(example[:300])

    def findings(self) -> tuple[Finding, ...]:
        """All kinds noticed, in alphabetical order."""
        return tuple(
            Finding(kind, note.severity, note.count, note.message, tuple(sorted(note.systems)), tuple(note.examples))
            for kind, note in sorted(self._notes.items())
        )

    def number(self, value: Any, where: object, name: str) -> float | None:
        """A finite number, or None where there is none.

        Numbers written as text are read and counted; a truth value is 0 or 1; anything else, NaN and infinities among it,
        is counted and is no number.
        """
        if value is None:
            return None
        if isinstance(value, str):
            try:
                result = float(value)
            except ValueError:
                self._odd(value, where, name)
                return None
            self.add(
                "numbers_as_text",
                "numbers written as text were read as numbers",
                severity="note",
                example=f"{where}: {name} {value!r}",
            )
        elif isinstance(value, int | float):
            try:
                result = float(value)
            except OverflowError:
                self._odd(value, where, name)
                return None
        else:
            self._odd(value, where, name)
            return None
        if not math.isfinite(result):
            self._odd(value, where, name)
            return None
        return result

    def clock(self, value: Any, where: object, name: str) -> float | None:
        """A time: a number at least 0; a negative one is counted and unknown."""
        result = self.number(value, where, name)
        if result is not None and not 0 <= result < _BIGGEST:
            self.add(
                "times_out_of_range",
                _OUT_OF_RANGE,
                example=f"{where}: {name} {value!r}",
            )
            return None
        return result

    def whole(self, value: Any, where: object, name: str) -> int | None:
        """A whole number at least 0; anything else but null is counted and is none."""
        result = integer_of(value)
        if result is None and value is not None:
            self._odd(value, where, name)
        return result

    def elapsed(self, start: Any, end: Any, where: object) -> float | None:
        """Seconds between two timestamps, to the microsecond; None where one is missing or unreadable, or time runs back."""
        if start is None or end is None:
            return None
        first, last = instant(start), instant(end)
        for value, read in ((start, first), (end, last)):
            if read is None:
                self._odd(value, where, "timestamp")
        if first is None or last is None:
            return None
        if last < first:
            self.add("times_out_of_range", _OUT_OF_RANGE, example=f"{where}: from {start!r} to {end!r}")
            return None
        return round(last - first, 6)

    def repeated(self, where: object) -> Callable[[str], None]:
        """Counts a key that an object has twice; for :func:`torchpref.io.files.documents.parse`."""

        def count(key: str) -> None:
            self.add(
                "keys_repeated", "keys that an object has twice: the last value counts", example=f"{where}: {key!r}"
            )

        return count

    def truth(self, value: Any, where: object, name: str) -> bool | None:
        """A truth value, also as 0 and 1 or as text; None where it is null or something else (which is counted)."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float) and value in (0, 1):
            return bool(value)
        if isinstance(value, str) and value.strip().lower() in ("true", "false", "1", "0", "yes", "no"):
            return value.strip().lower() in ("true", "1", "yes")
        self._odd(value, where, name)
        return None

    def _odd(self, value: Any, where: object, name: str) -> None:
        self.add(
            "values_unreadable",
            "values that are not what the format says are taken as not given",
            example=f"{where}: {name} is {kind_of(value)}",
        )

    def record(self, value: Any, where: object) -> dict[str, Any] | None:
        """An object, or None where a record is something else (which is counted)."""
        if isinstance(value, dict):
            return value
        self.add(
            "records_unreadable", "records that are no objects were left out", example=f"{where}: {kind_of(value)}"
        )
        return None


def text_of(value: Any) -> str | None:
    """A name: text or a number as text; None for anything else or blank text."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | str):
        try:
            result = str(value).strip()
        except ValueError:
            return None
        return result or None
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value == int(value) else str(value)
    return None


def integer_of(value: Any) -> int | None:
    """A small whole number at least 0, also as text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value.strip()) < 19:
        return int(value)
    if isinstance(value, float) and value.is_integer() and 0 <= value < 2**53:
        return int(value)
    if isinstance(value, int) and 0 <= value < 2**62:
        return value
    return None


def digest(record: Any) -> str:
    """A mark of a JSON value that equal values, and no others, have in common."""
    try:
        data = marshal.dumps(record, 2)
    except ValueError:  # nested too deeply
        data = repr(record).encode("utf-8", "replace")
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def file_digest(path: Path) -> str:
    """A mark of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()


def positive_option(options: Mapping[str, Any], name: str) -> float | None:
    """An option that is a number above 0, also as text; None where it is not given; ``UsageError`` for anything else."""
    given = options.get(name)
    if given is None:
        return None
    try:
        value = float(given)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{name} has to be a positive number, not {given!r}")
    return value


def dict_at(value: Any, *keys: str) -> dict[str, Any]:
    """The object at a path of keys, an empty one where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def list_at(value: Any, *keys: str) -> list[Any]:
    """The list at a path of keys, an empty one where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, list) else []


def instant(value: Any) -> float | None:
    """Seconds since 1970 of an ISO 8601 timestamp (UTC where it names no zone) or of a number of seconds."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value) if 0 < value < 1e12 else None
    if not isinstance(value, str):
        return None
    try:
        return instant(float(value))
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(value.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (ValueError, OverflowError):
        return None


def total(values: Iterable[float | None]) -> float | None:
    """The exact sum of the numbers given, None if none is."""
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None


def several(paths: Sequence[Any]) -> str:
    """Files, for messages."""
    return f"{paths[0]}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
