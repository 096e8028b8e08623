"""Where the command line writes: streams that never fail on a character, files that are whole or not there."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torchpref.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

#: What stands for a character that the stream cannot show; anything else is written as its escape.
SUBSTITUTES = {
    "×": "x",
    "–": "-",
    "—": "-",
    "−": "-",
    "…": "...",
    "·": ".",
    "•": "*",
    "█": "#",
    "░": ".",
    "─": "-",
    "│": "|",
    "’": "'",
    "“": '"',
    "”": '"',
    "≥": ">=",
    "≤": "<=",
    "±": "+-",
    "→": "->",
    "\u00a0": " ",
}
_HANDLER = "torchpref.substitute"


def _substitute(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    bad = error.object[error.start : error.end]
    return "".join(
        SUBSTITUTES.get(char) or char.encode("ascii", "backslashreplace").decode() for char in bad
    ), error.end


def prepare_streams() -> None:
    """Let standard output and error substitute what they cannot encode, instead of failing.

    In the C locale Python writes UTF-8 unless told otherwise; whoever asked for that locale gets ASCII here.
    """
    codecs.register_error(_HANDLER, _substitute)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started the program
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="ascii" if _c_locale() else None, errors=_HANDLER)


def _c_locale() -> bool:
    env = os.environ
    chosen = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    told = env.get("PYTHONIOENCODING") or env.get("PYTHONUTF8")
    return not told and chosen in ("C", "POSIX")


def show(parts: Sequence[RenderableType]) -> None:
    """Print tables and text on standard output: as wide as the terminal, 80 columns in a pipe."""
    from torchpref.report.pieces import print_parts

    print_parts(parts, sys.stdout)


def silence() -> None:
    """Give up what could not be written to standard output, so that leaving does not try again."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (OSError, ValueError):
            sys.stdout = open(os.devnull, "w", encoding="utf-8")


def complain(message: str) -> None:
    """One error message on standard error."""
    print(f"torchpref: {message}", file=sys.stderr)


def warn(message: str) -> None:
    """A warning on standard error, beside a result of one line."""
    print(f"warning: {message}", file=sys.stderr)


# ------------------------------------------------------------------------------------------------------ files


def check_target(path: str | None, option: str, inputs: Sequence[str] = ()) -> None:
    """Refuse a file that cannot or must not be written before the work is done, not after it.

    Args:
        path: the file, ``-`` for standard output, or None.
        option: how the user named it.
        inputs: files, folders and patterns that are read: nothing that is read is overwritten.

    Raises:
        UsageError: its folder does not exist, it is a folder, or it is read.
    """
    if path is None or path == "-":
        return
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UsageError(f"{option} {path}: there is no folder {folder}; make it first")
    if os.path.isdir(path):
        raise UsageError(f"{option} {path}: this is a folder; name a file in it")
    if os.path.isfile(path) and any(_reads(each, path) for each in inputs):
        raise UsageError(f"{option} {path}: this file is read as well, and would be overwritten; name another one")


def check_targets(json: str | None, html: str | None, inputs: Sequence[str]) -> None:
    """Refuse two results in one place, and what :func:`check_target` refuses."""
    check_target(json, "--json", inputs)
    check_target(html, "--html", inputs)
    if json is None or html is None:
        return
    if json == html or os.path.realpath(json) == os.path.realpath(html):
        raise UsageError(f"--json {json} --html {html}: one would take the other's place; name two files")


def _reads(given: str, path: str) -> bool:
    """Whether reading ``given``, a file, a folder or a pattern, reads the file ``path``."""
    import glob

    from torchpref.io.files.walk import split_name

    given = os.fspath(split_name(given)[1])
    target = os.path.realpath(path)
    for each in [given] if os.path.exists(given) else glob.glob(given, recursive=True):
        real = os.path.realpath(each)
        if os.path.samefile(real, target) or (os.path.isdir(real) and target.startswith(os.path.join(real, ""))):
            return True
    return False


def write_text(path: str, text: str, option: str = "--json") -> None:
    """Write a text file as a whole or not at all: into a new file beside it, which then takes its place.

    ``-`` is standard output; what is no regular file (a pipe, a device) is written directly.

    Raises:
        UsageError: the file cannot be written.
    """
    if path == "-":
        sys.stdout.write(text)
        return
    from torchpref.io.files.whole import written_whole

    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return
        from torchpref.io.files.whole import written_whole  # reading, and numpy with it, would come before every --help

        with written_whole(path) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{option} {path}: cannot be written ({error.strerror or error})") from error


def to_json(record: Any) -> str:
    """JSON with a line per entry and per row of a matrix; NaN and infinity are an error, they are no JSON."""
    return _json(record, "") + "\n"


def _json(item: Any, indent: str) -> str:
    inner = indent + "  "
    if isinstance(item, dict) and item:
        lines = [f"{inner}{json.dumps(str(key))}: {_json(value, inner)}" for key, value in item.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(item, list) and any(isinstance(each, dict | list) and each for each in item):
        return "[\n" + ",\n".join(inner + _json(each, inner) for each in item) + f"\n{indent}]"
    return json.dumps(item, allow_nan=False)


def tell_github(annotation: str, summary: str) -> None:
    """In GitHub Actions: an annotation beside the run, and a summary of the step where there is a place for it."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        print(annotation)
    step = os.environ.get("GITHUB_STEP_SUMMARY")
    if step:
        with open(step, "a", encoding="utf-8") as file:
            file.write(summary + "\n")


def write_json(path: str, record: Any) -> None:
    """Write a result as a JSON file; see :func:`write_text`."""
    write_text(path, to_json(record))
