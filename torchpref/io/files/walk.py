"""From paths to files: folders and patterns expanded, safely.

Folders are walked in the order of names. Hidden files and folders are passed over, a folder reached a second time (a loop of
symbolic links) is not entered again, a file reached twice counts once, and nothing but regular files is opened.
"""

from __future__ import annotations

import atexit
import glob
import os
import re
import shlex
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from torchpref.errors import DataError, UsageError
from torchpref.io.files.source import Source

_URL = re.compile(r"(?:https?|s3|gs|hf|ftp|abfss?|wandb)://")
MAX_FILES = 500_000
"""More files than this under the paths given are taken for a mistake."""

Several = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
PathsLike = Several | Mapping[str, Several]


def named_paths(paths: PathsLike) -> list[tuple[str | None, list[str | os.PathLike[str]]]]:
    """The paths with the system that each is named to be, together where the name is one; None where none is.

    Raises:
        UsageError: a name that is empty, or a path after ``NAME=`` that does not exist.
    """
    groups: dict[str | None, list[str | os.PathLike[str]]] = {}
    if isinstance(paths, Mapping):
        for name, given in paths.items():
            if not str(name).strip():
                raise UsageError(f"{given!r} has an empty name; give the name of the system")
            groups.setdefault(str(name), []).extend([given] if isinstance(given, str | os.PathLike) else given)
    else:
        for path in [paths] if isinstance(paths, str | os.PathLike) else list(paths):
            named, bare = split_name(path)
            groups.setdefault(named, []).append(bare)
    if not groups:
        raise UsageError("no path given; name at least one log, table or folder")
    return list(groups.items())


def split_name(path: str | os.PathLike[str]) -> tuple[str | None, str | os.PathLike[str]]:
    """``NAME=PATH`` as its parts; an existing path goes first, and a name holds no slash.

    Raises:
        UsageError: it looks like a name and a path, but nothing lies there.
    """
    if not isinstance(path, str) or "=" not in path or os.path.lexists(os.path.expanduser(path)):
        return None, path
    name, _, rest = path.partition("=")
    if not name.strip() or "/" in name or os.sep in name or (glob.has_magic(path) and glob.glob(path, recursive=True)):
        return None, path
    expanded = os.path.expanduser(rest)
    if rest != "-" and not os.path.lexists(expanded) and not glob.has_magic(rest) and "://" not in rest:
        raise UsageError(
            f"{path}: neither a file or folder of that name, nor NAME=PATH with a path that exists ({rest})"
        )
    return name.strip(), rest


def walk(paths: Several) -> list[Source]:
    """The files under one or more files, folders or patterns such as ``logs/*.json``.

    Raises:
        UsageError: no path given, or one that does not exist.
        DataError: a folder without files, a file that cannot be read or is none (a pipe, a device), or far too many.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise UsageError("no path given; name at least one log, table or folder")
    found: dict[tuple[int, int], tuple[Path, Path]] = {}
    for path in given:
        for root in _expand(path):
            before = len(found)
            for file, key in _files(root):
                found.setdefault(key, (file, root))
                if len(found) > MAX_FILES:
                    raise DataError(f"{path}: more than {MAX_FILES:,} files; name the folder that holds the logs")
            if root.is_dir() and len(found) == before and not any(True for _ in _files(root)):
                raise DataError(f"{root}: the folder holds no files (hidden ones are not read)")
    return [Source.open(file, root) for file, root in found.values()]


def changes(paths: Several, every: float) -> Iterator[None]:
    """Yields whenever files under the paths came, went, or changed in size or time; looks every so many seconds."""
    given = [bare for _, each in named_paths(paths) for bare in each]

    def seen() -> dict[Path, tuple[int, int]]:
        found = {}
        for path in given:
            for root in _expand(path):
                for file, _ in _files(root):
                    try:
                        info = file.stat()
                    except OSError:  # gone between the two
                        continue
                    found[file] = (info.st_size, info.st_mtime_ns)
        return found

    before = seen()
    while True:
        time.sleep(every)
        now = seen()
        if now != before:
            before = now
            yield


def _expand(path: str | os.PathLike[str]) -> list[Path]:
    text = os.path.expanduser(os.fspath(path))
    if "\0" in text:
        raise UsageError(f"{text!r} is not a path")
    if os.path.lexists(text):
        return [Path(text)]
    if text == "-":
        return [_standard_input()]
    if glob.has_magic(text):
        matches = sorted(glob.glob(text, recursive=True))
        if matches:
            return [Path(match) for match in matches]
        raise UsageError(f"{text}: no file matches this pattern")
    if _URL.match(text):
        raise UsageError(f"{text}: an address is not read; download it first, such as: curl -LO {shlex.quote(text)}")
    raise UsageError(f"{text}: no such file or folder")


@cache
def _standard_input() -> Path:
    """What standard input gives, kept in a file as long as the program runs, for readers look at a file twice."""
    folder = tempfile.mkdtemp(prefix="torchpref-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    if not path.stat().st_size:
        raise DataError("-: standard input is empty")
    return path


def _files(root: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    """The regular files at or under a path, with what identifies each on its disk."""
    try:
        info = root.stat()
    except OSError as error:
        raise DataError(f"{root}: cannot be read ({error.strerror or error}); is it a broken link?") from error
    if stat.S_ISREG(info.st_mode):
        yield root, (info.st_dev, info.st_ino)
        return
    if not stat.S_ISDIR(info.st_mode):
        raise DataError(
            f"{root}: neither a file nor a folder (a pipe or a device?); write what it gives to a file first, "
            "and name that file"
        )
    entered = {(info.st_dev, info.st_ino)}
    pending = [root]
    while pending:
        folder = pending.pop()
        below: list[Path] = []
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            raise DataError(f"{folder}: cannot be read ({error.strerror or error})") from error
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                info = entry.stat()
            except OSError:  # a link to nowhere, or a loop of links
                continue
            key = (info.st_dev, info.st_ino)
            if stat.S_ISDIR(info.st_mode):
                if key not in entered:
                    entered.add(key)
                    below.append(Path(entry.path))
            elif stat.S_ISREG(info.st_mode):
                yield Path(entry.path), key
        pending.extend(reversed(below))
