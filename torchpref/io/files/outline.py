"""The shape of the JSON at the beginning of a file, without parsing all of it.

A record may be far larger than the part that is looked at, so its beginning is not valid JSON by itself. The outline walks
over the brackets and strings there and notes which keys stand where.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice

# A string that the end of the part cuts off is one token too: otherwise each quote in it would be tried in turn.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)
MAX_DEPTH = 6
MAX_TOKENS = 200_000
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass(frozen=True)
class Outline:
    """Which keys were seen at which place of the first JSON value.

    Attributes:
        kind: ``"object"``, ``"array"`` or ``""`` when the file does not begin like JSON.
        paths: key paths from the root, ``"*"`` for an element of an array; at most six deep.
        values: short scalar values by path, as written (strings without quotes).
        whole: whether the first value ends within the part looked at.
        more: whether something follows the first value.
    """

    kind: str
    paths: frozenset[tuple[str, ...]]
    values: dict[tuple[str, ...], str]
    whole: bool
    more: bool
    _below: dict[tuple[str, ...], set[str]] = field(default_factory=dict, repr=False, compare=False)

    def has(self, *path: str) -> bool:
        """Whether a key path was seen; ``"?"`` matches any one key."""
        if "?" not in path:
            return path in self.paths
        return path[-1] in self.below(*path[:-1]) if path[-1] != "?" else bool(self.below(*path[:-1]))

    def keys(self) -> set[str]:
        """The keys of the first value, an object."""
        return {path[0] for path in self.paths if len(path) == 1}

    def below(self, *path: str) -> set[str]:
        """The keys seen under a path; ``"?"`` matches any one key."""
        seen = self._below.get(path)
        if seen is None:
            size = len(path)
            seen = self._below[path] = {
                place[size]
                for place in self.paths
                if len(place) == size + 1 and all(want in ("?", got) for want, got in zip(path, place, strict=False))
            }
        return seen


def decode_head(head: bytes) -> str:
    """The text of a file's beginning, whatever its encoding; bytes that do not decode are replaced."""
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return head[len(mark) :].decode(encoding, errors="replace")
    return head.decode("utf-8", errors="replace")


def outline(head: bytes) -> Outline:
    """Walk over the JSON at the beginning of a file."""
    text = decode_head(head)
    stripped = text.lstrip()
    if not stripped or stripped[0] not in "{[":
        return Outline("", frozenset(), {}, False, False)
    kind = "object" if stripped[0] == "{" else "array"
    paths: set[tuple[str, ...]] = set()
    values: dict[tuple[str, ...], str] = {}
    stack: list[str] = []  # the open brackets
    path: list[str] = []  # the key or "*" of each open bracket
    key: str | None = None
    expecting_key = False
    whole = more = False
    for match in islice(_TOKEN.finditer(stripped), MAX_TOKENS):
        token = match.group()
        if token in "{[":
            if stack:
                path.append(key if stack[-1] == "{" and key is not None else "*")
            stack.append(token)
            expecting_key = token == "{"
        elif token in "}]":
            if not stack:
                break
            stack.pop()
            if path:
                path.pop()
            if not stack:
                whole = True
                more = bool(stripped[match.end() : match.end() + 4096].strip())
                break
            expecting_key = False
        elif token == ",":
            expecting_key = bool(stack) and stack[-1] == "{"
        elif token == ":":
            expecting_key = False
        elif expecting_key and token[0] == '"':
            key = token[1:-1]
            expecting_key = False
            if len(path) < MAX_DEPTH and len(stack) == len(path) + 1:
                paths.add((*path, key))
        elif key is not None and len(path) < 3 and len(token) < 200 and stack and stack[-1] == "{":
            values.setdefault((*path, key), token.strip('"'))
    return Outline(kind, frozenset(paths), values, whole, more)
