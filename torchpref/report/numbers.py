"""Numbers and names as text, the same in every table."""

from __future__ import annotations

import math


def printable(name: str) -> str:
    """A name as it can be printed: control characters as their escapes."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)


def counted(count: int, noun: str) -> str:
    """A number of things: ``1 system``, ``2,000 systems``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def signed(value: float | None, digits: int = 3) -> str | None:
    """A number with its sign, ``0.000`` without; None stays None."""
    if value is None or math.isnan(value):
        return None
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text


def plain(value: float | None, digits: int = 3) -> str | None:
    """A number without a sign; None stays None."""
    return None if value is None or math.isnan(value) else f"{value:.{digits}f}"


def percent(value: float | None, digits: int = 1) -> str | None:
    """A share as a percentage."""
    return None if value is None or math.isnan(value) else f"{100 * value:.{digits}f} %"


def amount(value: float | None) -> str | None:
    """A time with three significant digits, or all digits of whole numbers."""
    if value is None or math.isnan(value):
        return None
    if value >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:#.3g}" if value >= 1e-3 else f"{value:.2g}"
