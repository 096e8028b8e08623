"""The log formats that torchpref reads, one module each, and which of them some files are.

Another package adds a format with an entry point in the group ``torchpref.readers`` that names a :class:`Reader`::

    [project.entry-points."torchpref.readers"]
    ourlog = "ourpackage.torchpref_reader:READER"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from torchpref.errors import DataError, TorchPrefError, UsageError
from torchpref.findings import Finding
from torchpref.io.readers.base import Reader, Source
from torchpref.io.readers.files import walk

__all__ = ["Detection", "Reader", "Source", "detect_format", "reader_named", "readers", "walk"]

GROUP = "torchpref.readers"

MODULES = (
    "agentboard",
    "tales",
    "theagentcompany",
    "openhands_index",
    "openhands",
    "swe_agent",
    "swebench",
    "terminal_bench",
    "harbor",
    "atif",
    "inspect_ai",
    "tau2",
    "tau_bench",
    "intercode",
    "minari",
    "episodes",
)
"""The modules of this package that hold a reader; each has one ``READER``."""


@dataclass(frozen=True)
class Detection:
    """What some files were recognised as.

    Attributes:
        reader: the reader for them, or None where no log format was recognised (a table, perhaps).
        sources: the files of that format and their companions; all files where none was recognised.
        ignored: files that are not part of it.
        findings: a note about the ignored ones.
    """

    reader: Reader | None
    sources: tuple[Source, ...]
    ignored: tuple[Source, ...] = ()
    findings: tuple[Finding, ...] = ()


@cache
def readers() -> tuple[Reader, ...]:
    """All readers: this package's own in order, then those of other packages by name."""
    own = tuple(import_module(f"{__name__}.{module}").READER for module in MODULES)
    return own + _foreign({reader.name for reader in own})


def _foreign(taken: set[str]) -> tuple[Reader, ...]:
    from importlib.metadata import entry_points

    found: list[Reader] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            reader = entry.load()
        except Exception as error:
            raise UsageError(
                f"the reader {entry.name!r} ({entry.value}) of another package cannot be loaded: {error}"
            ) from error
        if not isinstance(reader, Reader):
            raise UsageError(
                f"the entry point {entry.name!r} ({entry.value}) in group {GROUP!r} is a {type(reader).__name__}, "
                "not a torchpref Reader"
            )
        if reader.name in taken:
            raise UsageError(f"two readers are called {reader.name!r}; one is {entry.value}")
        taken.add(reader.name)
        found.append(reader)
    return tuple(found)


def reader_named(name: str) -> Reader:
    """The reader of a name; another name raises ``UsageError``."""
    known = {reader.name: reader for reader in readers()}
    if name in known:
        return known[name]
    raise UsageError(f"no format is called {name!r}; known are: auto, table, {', '.join(sorted(known))}")


def _detects(test: object, source: Source) -> bool:
    try:
        return bool(test(source))  # type: ignore[operator]
    except TorchPrefError:
        return False


def detect_format(sources: Sequence[Source]) -> Detection:
    """Which log format some files are, judged by their content.

    Files beside the logs that are not recognised (notes, pictures, settings) are left out and counted.

    Raises:
        DataError: logs of two formats, empty files only, or a pickle given by name: pickles run code when loaded and are
            never loaded.
    """
    _refuse_pickles(sources)
    full = [source for source in sources if source.head]
    if not full:
        raise DataError(f"{_named(sources)}: empty, nothing to read")
    found: dict[str, list[Source]] = {}
    for reader in readers():
        hits = [source for source in full if _detects(reader.detect, source)]
        if hits:
            found[reader.name] = hits
    if not found:
        return Detection(None, tuple(full), tuple(s for s in sources if not s.head), _left_out(sources, full))
    for name in list(found):  # a format all of whose files belong to another's runs is not a format of its own here
        others = [reader_named(other) for other in found if other != name]
        if any(all(_detects(other.companion, source) for source in found[name]) for other in others):
            del found[name]
    if len(found) != 1:
        shown = "; ".join(f"{name}: {_named(hits)}" for name, hits in found.items())
        raise DataError(f"logs of {len(found)} formats at once ({shown}); read each alone, or choose one with format=")
    ((name, hits),) = found.items()
    reader = reader_named(name)
    chosen = set(map(id, hits))
    used = [s for s in full if id(s) in chosen or _detects(reader.companion, s)]
    return _detection(reader, sources, used)


def select_format(name: str, sources: Sequence[Source]) -> Detection:
    """The files of a named format among some; where none is recognised all are tried."""
    _refuse_pickles(sources)
    reader = reader_named(name)
    full = [source for source in sources if source.head]
    if not full:
        raise DataError(f"{_named(sources)}: empty, nothing to read")
    hits = [s for s in full if _detects(reader.detect, s) or _detects(reader.companion, s)]
    return _detection(reader, sources, hits or full)


def _detection(reader: Reader, sources: Sequence[Source], used: Sequence[Source]) -> Detection:
    chosen = set(map(id, used))
    ignored = tuple(source for source in sources if id(source) not in chosen)
    return Detection(reader, tuple(used), ignored, _left_out(sources, used))


def _left_out(sources: Sequence[Source], used: Sequence[Source]) -> tuple[Finding, ...]:
    chosen = set(map(id, used))
    ignored = [source for source in sources if id(source) not in chosen]
    if not ignored:
        return ()
    named = any(source.root == source.path for source in ignored)
    message = "files that are no logs of this format were left out"
    examples = tuple(str(source.path) for source in ignored[:5])
    return (Finding("files_left_out", "warning" if named else "note", len(ignored), message, (), examples),)


def _refuse_pickles(sources: Sequence[Source]) -> None:
    for source in sources:
        pickled = source.head[:1] == b"\x80" and source.head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
        if pickled and source.root in (None, source.path):
            raise DataError(
                f"{source.path}: a pickle, which runs code when it is loaded; save the data as .npz or a table"
            )


def _named(sources: Sequence[Source]) -> str:
    shown = ", ".join(str(source.path) for source in sources[:3])
    return shown + (f" and {len(sources) - 3} more" if len(sources) > 3 else "")
