"""The log formats that torchpref reads, one module each.

Another package adds a format with an entry point in the group ``torchpref.readers`` that names a :class:`Reader`::

    [project.entry-points."torchpref.readers"]
    ourlog = "ourpackage.torchpref_reader:READER"
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module

from torchpref.errors import TorchPrefWarning, UsageError
from torchpref.io.files.source import Source
from torchpref.io.logs.reader import Reader

__all__ = ["Reader", "Source", "reader_named", "readers"]

GROUP = "torchpref.readers"

MODULES = (
    "agentboard",
    "tales",
    "theagentcompany",
    "openhands_index",
    "openhands",
    "swe_agent",
    "swebench",
    "swebench_reports",
    "verifiers",
    "promptfoo",
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


@cache
def readers() -> tuple[Reader, ...]:
    """All readers: this package's own in order, then those of other packages by name."""
    own = tuple(import_module(f"{__name__}.{module}").READER for module in MODULES)
    return own + _foreign({reader.name for reader in own})


def _foreign(taken: set[str]) -> tuple[Reader, ...]:
    """Readers of other packages; one that is broken is left out with a warning, for it is not this package's users' fault."""
    from importlib.metadata import entry_points

    found: list[Reader] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            reader = entry.load()
        except Exception as error:
            _leave_out(
                entry.name, f"the reader {entry.name!r} ({entry.value}) of another package cannot be loaded: {error}"
            )
            continue
        if not isinstance(reader, Reader):
            _leave_out(
                entry.name,
                f"the entry point {entry.name!r} ({entry.value}) in group {GROUP!r} is of type {type(reader).__name__}, not a "
                "torchpref Reader",
            )
        elif reader.name in taken:
            _leave_out(entry.name, f"two readers are called {reader.name!r}; one is {entry.value}")
        else:
            taken.add(reader.name)
            found.append(reader)
    return tuple(found)


_LEFT_OUT: dict[str, str] = {}


def _leave_out(name: str, why: str) -> None:
    _LEFT_OUT[name] = why
    warnings.warn(f"{why}; it is left out", TorchPrefWarning, stacklevel=2)


def reader_named(name: str) -> Reader:
    """The reader of a name; another name raises ``UsageError``."""
    known = {reader.name: reader for reader in readers()}
    if name in known:
        return known[name]
    if name in _LEFT_OUT:
        raise UsageError(_LEFT_OUT[name])
    raise UsageError(f"no format is called {name!r}; known are: auto, table, {', '.join(sorted(known))}")
