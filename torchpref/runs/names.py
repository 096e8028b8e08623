"""Names of systems and instances: their order, selection by pattern, and what to say of one that is not there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from torchpref.errors import UsageError


def natural_key(name: str) -> list[tuple[int, str, str]]:
    """Sort key under which ``task-9`` comes before ``task-10``; digits count by their number, however many they are."""
    parts = re.split("([0-9]+)", name)  # text and digits in turns: bare numbers by length, then by digits
    return [(len(part.lstrip("0")) * (place % 2), part.lstrip("0"), part) for place, part in enumerate(parts)]


def name_hint(wanted: str, names: Sequence[str], what: str) -> str:
    """What to tell about a name that is not there: names that come close, else all of them if they are few."""
    import difflib

    by_lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(wanted.lower(), by_lower, n=3)
    if close:
        return f"did you mean {', '.join(repr(by_lower[name]) for name in close)}?"
    if 0 < len(names) <= 8:
        return f"there {'is' if len(names) == 1 else 'are'} {', '.join(map(repr, names))}"
    return f"there are {len(names)} {what}s"


def two_names(key: Any, example: str) -> tuple[str, str]:
    """The two names in ``result[first, second]``; anything else is a UsageError that shows the example."""
    if not isinstance(key, tuple) or len(key) != 2:
        raise UsageError(f"two names are needed, such as {example}; got {key!r}")
    return key


def matching(names: Sequence[str], wanted: str | Sequence[str], what: str) -> list[int]:
    """Positions of the names that are asked for: exact names or globs, ``!`` in front leaves out."""
    patterns = [wanted] if isinstance(wanted, str) else list(wanted)
    if not patterns:
        raise UsageError(f"an empty list of {what}s selects nothing; leave it out to keep all of them")
    known = set(names)
    keep: set[str] = set()
    only_exclusions = all(pattern.startswith("!") and pattern not in known for pattern in patterns)
    if only_exclusions:
        keep = set(names)
    for pattern in patterns:
        if pattern in known:
            keep.add(pattern)
            continue
        exclude = pattern.startswith("!")
        glob = pattern[1:] if exclude else pattern
        found = {name for name in known if name == glob or fnmatchcase(name, glob)}
        if not found:
            raise UsageError(f"no {what} matches {pattern!r}; {name_hint(glob, sorted(known), what)}")
        keep = keep - found if exclude else keep | found
    return [position for position, name in enumerate(names) if name in keep]
