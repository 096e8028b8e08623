"""Which log format some files are, judged by their content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchpref.errors import DataError, TorchPrefError
from torchpref.io.files.source import Source
from torchpref.io.logs.reader import Reader
from torchpref.io.readers import reader_named, readers
from torchpref.runs.findings import Finding, Severity


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
    full = _with_content(sources)
    found: dict[str, list[Source]] = {}
    for position, source in enumerate(full):
        names = _recognised(source)
        if not names and (deeper := source.deeper()) is not None and (names := _recognised(deeper)):
            full[position] = source = deeper
        for name in names:
            found.setdefault(name, []).append(source)
    if not found:
        return Detection(None, tuple(full), tuple(s for s in sources if s.blank), _left_out(sources, full))
    for name in list(found):  # a format all of whose files belong to another's runs is not a format of its own here
        others = [reader_named(other) for other in found if other != name]
        if any(all(_detects(other.companion, source) for source in found[name]) for other in others):
            del found[name]
    if len(found) != 1:
        shown = "; ".join(f"{name}: {_named(hits)}" for name, hits in found.items())
        raise DataError(f"logs of {len(found)} formats at once ({shown}); read each alone, or choose one with format=")
    ((name, hits),) = found.items()
    return _detection(reader_named(name), sources, full, hits)


def _with_content(sources: Sequence[Source]) -> list[Source]:
    _refuse_pickles(sources)
    full = [source for source in sources if not source.blank]
    if not full:
        raise DataError(f"{_named(sources)}: empty, nothing to read")
    return full


def _recognised(source: Source) -> list[str]:
    return [reader.name for reader in readers() if _detects(reader.detect, source)]


def select_format(name: str, sources: Sequence[Source]) -> Detection:
    """The files of a named format among some; where none is recognised all are tried."""
    full = _with_content(sources)
    reader = reader_named(name)
    for position, source in enumerate(full):
        if not _detects(reader.detect, source) and (deeper := source.deeper()) is not None:
            full[position] = deeper
    hits = [source for source in full if _detects(reader.detect, source)]
    return _detection(reader, sources, full, hits or full)


def _detection(reader: Reader, sources: Sequence[Source], full: Sequence[Source], hits: Sequence[Source]) -> Detection:
    """The hits with their companions, in the order of the sources."""
    chosen = {source.path for source in hits}
    used = [source for source in full if source.path in chosen or _detects(reader.companion, source)]
    taken = {source.path for source in used}
    return Detection(reader, tuple(used), tuple(s for s in sources if s.path not in taken), _left_out(sources, used))


_LEFT_OUT: dict[str, tuple[Severity, str]] = {
    "files_empty": ("warning", "files with nothing in them were left out"),
    "files_cut_short": (
        "warning",
        "files that end in the middle of their first value were left out: were they cut short?",
    ),
    "files_left_out_by_name": ("warning", "files named by you that are no logs of this format were left out"),
    "files_left_out": ("note", "files that are no logs of this format were left out"),
}


def _left_out(sources: Sequence[Source], used: Sequence[Source]) -> tuple[Finding, ...]:
    taken = {source.path for source in used}
    kinds: dict[str, list[str]] = {kind: [] for kind in _LEFT_OUT}
    for source in sources:
        if source.path not in taken:
            named = "files_left_out_by_name" if source.root == source.path else "files_left_out"
            kinds["files_empty" if source.blank else "files_cut_short" if source.cut else named].append(
                str(source.path)
            )
    return tuple(
        Finding(kind, severity, len(kinds[kind]), message, (), tuple(kinds[kind][:5]))
        for kind, (severity, message) in _LEFT_OUT.items()
        if kinds[kind]
    )


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
