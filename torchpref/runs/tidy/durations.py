"""Lengths of time, moments and amounts as people write them: ``1m28s``, ``00:01:28``, ``PT88S``, ``$0.79``, ``1,234``."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

_NUMBER = r"(\d+(?:\.\d+)?)\s*"
_UNITS = re.compile(
    rf"(?:{_NUMBER}(?:d|days?),?\s*)?(?:{_NUMBER}(?:h|hrs?|hours?),?\s*)?(?:{_NUMBER}(?:m|mins?|minutes?),?\s*)?"
    rf"(?:{_NUMBER}(?:s|secs?|seconds?),?\s*)?(?:{_NUMBER}(?:ms|msecs?|milliseconds?))?",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(?:(\d+)\s*days?,?\s*)?(\d{1,4}):([0-5]?\d):([0-5]?\d(?:\.\d+)?)", re.IGNORECASE)
_ISO = re.compile(
    r"P(?:(\d+(?:\.\d+)?)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)
_WORTH = (86400.0, 3600.0, 60.0, 1.0, 0.001)
_MONEY = re.compile(r"(?:USD|US\$|\$|€|£|EUR|GBP)\s*(.+)|(.+?)\s*(?:USD|\$|€|£|EUR|GBP)", re.IGNORECASE)
_THOUSANDS = re.compile(r"-?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_PERCENT = re.compile(r"(-?\d+(?:\.\d+)?)\s*%")


def seconds_of(text: str) -> float | None:
    """The seconds of a length of time that names its unit; None for anything else."""
    text = text.strip()
    for pattern in (_UNITS, _ISO):
        match = pattern.fullmatch(text)
        if match and any(match.groups()):
            return math.fsum(float(part) * worth for part, worth in zip(match.groups(), _WORTH, strict=False) if part)
    match = _CLOCK.fullmatch(text)
    if match:
        return math.fsum(float(part) * worth for part, worth in zip(match.groups(), _WORTH, strict=False) if part)
    return None


def moment_of(text: str) -> float | None:
    """Seconds since 1970 of a time stamp (UTC where it names no zone), or a number as it stands; None for anything else."""
    text = text.strip()
    try:
        number = float(text)
        return number if math.isfinite(number) else None
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def amount_of(text: str, name: str) -> float | None:
    """The number that a cell of a tidy column means although it is not written as one; None where it means none.

    ``name`` decides what may be meant: lengths of time for ``seconds`` and ``time``, money for ``cost``, per cent for
    ``return`` (parts of 1) and ``score`` (points of 100); thousands may be set off anywhere.
    """
    text = text.strip()
    if name in ("seconds", "time") and (length := seconds_of(text)) is not None:
        return length
    if name == "cost" and (money := _MONEY.fullmatch(text)):
        text = (money[1] or money[2]).strip()
    if name in ("return", "score") and (percent := _PERCENT.fullmatch(text)):
        return float(percent[1]) / (100 if name == "return" else 1)
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    try:
        return float(text)
    except ValueError:
        return None
