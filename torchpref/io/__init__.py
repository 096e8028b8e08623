"""Readers: a log format or a table in, :class:`torchpref.Trajectories` out.

Names are imported where they are first used: whoever wants a room of this one, as the command line does to write a file, does
not pay for reading.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchpref.io.reading import read as read
    from torchpref.io.reading import read_tidy as read_tidy

__all__ = ["read", "read_tidy"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'torchpref.io' has no attribute {name!r}")
    from torchpref.io import reading

    return getattr(reading, name)
