"""JSON out of files, with one clear error for each way in which it can be broken.

Encodings: UTF-8, with or without a byte-order mark, and UTF-16 with one. A file larger than ``MAX_DOCUMENT`` is refused
before it is read, so memory stays bounded; JSON lines are read one at a time, each no longer than ``MAX_LINE``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torchpref.errors import DataError

MAX_DOCUMENT = 1 << 30
"""The largest file that is read as one JSON document, in bytes."""
MAX_LINE = 256 << 20
"""The longest line of a JSON lines file, in bytes."""
_SPACE = " \t\r\n"
# A whole surrogate pair, half of one (which JSON allows and no text may hold), or any other escape.
_ESCAPE = re.compile(
    r"(?P<pair>\\u[dD][89aAbB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def decode(data: bytes, where: object) -> str:
    """The text of bytes; names the place where they are not UTF-8."""
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}: not UTF-8 text (byte {error.start}); convert the file to UTF-8, e.g. with iconv"
        ) from error


def parse(text: str, where: object, repeated: Callable[[str], None] | None = None) -> Any:
    """One JSON value; NaN and Infinity are taken as Python's own writer writes them.

    ``repeated`` is called with each key that an object has twice (the last value counts).
    """
    try:
        text = whole_characters(text)
        return json.loads(text, object_pairs_hook=_pairs(repeated)) if repeated else json.loads(text)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg
        hint = "the file ends in the middle of a value; was it cut short?" if cut else "is the file damaged?"
        raise DataError(
            f"{where}: not valid JSON at line {error.lineno}, column {error.colno} ({error.msg}); {hint}"
        ) from error
    except RecursionError as error:
        raise DataError(f"{where}: JSON nested too deeply to be a log") from error
    except ValueError as error:  # an integer of thousands of digits
        raise DataError(f"{where}: a number that cannot be read ({error})") from error


def whole_characters(text: str) -> str:
    """JSON with each half of a surrogate pair that stands alone replaced by U+FFFD."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda match: "\\ufffd" if match["half"] else match[0], text)


def printable(text: str) -> str:
    """Text that can be encoded: names of files may hold bytes that are no characters."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _pairs(repeated: Callable[[str], None]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    repeated(key)
                seen.add(key)
        return result

    return build


def read_text(path: Path) -> str:
    """The whole text of a file no larger than ``MAX_DOCUMENT``."""
    try:
        size = path.stat().st_size
        if size > MAX_DOCUMENT:
            raise DataError(
                f"{path}: {size:,} bytes, more than the {MAX_DOCUMENT:,} that are read as one document; split the file"
            )
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    return decode(data, path)


def read_json(path: Path, repeated: Callable[[str], None] | None = None) -> Any:
    """The one JSON value in a file; an empty file raises ``DataError``; ``repeated`` as for :func:`parse`."""
    text = read_text(path)
    if not text.strip():
        raise DataError(f"{path}: the file is empty")
    return parse(text, path, repeated)


def read_object(path: Path, repeated: Callable[[str], None] | None = None) -> dict[str, Any]:
    """The JSON object in a file; ``repeated`` as for :func:`parse`."""
    value = read_json(path, repeated)
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a JSON object, found {kind_of(value)}")
    return value


def read_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The values of a JSON lines file with their line numbers from 1; blank lines are passed over."""
    try:
        with path.open("rb") as file:
            if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                lines = read_text(path).split("\n")
                yield from ((n, parse(line, f"{path}:{n}")) for n, line in enumerate(lines, 1) if line.strip())
                return
            file.seek(0)
            for number in range(1, 1 << 62):
                line = file.readline(MAX_LINE + 1)
                if not line:
                    return
                if len(line) > MAX_LINE:
                    raise DataError(
                        f"{path}:{number}: a line of more than {MAX_LINE:,} bytes; is this a JSON lines file?"
                    )
                text = decode(line, f"{path}:{number}")
                if text.strip():
                    yield number, parse(text, f"{path}:{number}")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error


def read_stream(path: Path) -> Iterator[tuple[int, Any]]:
    """The values of a file in which JSON values follow each other, however they are laid out, numbered from 1.

    A value may span lines (a record pretty-printed), and several may share one.
    """
    text = whole_characters(read_text(path))
    decoder = json.JSONDecoder()
    position, number = 0, 0
    while True:
        while position < len(text) and text[position] in _SPACE:
            position += 1
        if position >= len(text):
            return
        number += 1
        try:
            value, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            cut = error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg
            hint = "the file ends in the middle of a record; was it cut short?" if cut else "is the file damaged?"
            raise DataError(
                f"{path}: record {number} is not valid JSON at line {error.lineno} ({error.msg}); {hint}"
            ) from error
        except RecursionError as error:
            raise DataError(f"{path}: record {number} is nested too deeply to be a log") from error
        except ValueError as error:
            raise DataError(f"{path}: record {number} holds a number that cannot be read ({error})") from error
        yield number, value


def kind_of(value: Any) -> str:
    """What a JSON value is, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {str(value)[:40]}"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    return "a list" if isinstance(value, list) else "an object"
