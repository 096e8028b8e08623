"""Names that stand in a path: the system in the name of a run's folder, the task in the name of its file."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

GENERIC = frozenset(
    {"", "data", "eval", "evals", "log", "logs", "output", "outputs", "result", "results", "run", "runs"}
)
"""Names of folders that say what is in them, not whose it is."""


def folders(path: Path) -> list[str]:
    """The names of the folders that a file is in, the innermost first."""
    return [parent.name for parent in Path(os.path.abspath(path)).parents]


def folder(path: Path, passing: Collection[str] = GENERIC) -> str:
    """The name of the innermost folder of a file that is not one of ``passing``; ``unnamed`` if all are."""
    return next((name for name in folders(path) if name.lower() not in passing), "unnamed")


def folder_path(path: Path, passing: Collection[str] = GENERIC) -> Path:
    """The folder that :func:`folder` names; the innermost where all are passed over."""
    above = Path(os.path.abspath(path)).parents
    return next((parent for parent in above if parent.name.lower() not in passing), above[0])


def bare(path: Path, *endings: str) -> str:
    """A file's name without the first of the endings that it has, else without its suffix."""
    for ending in endings:
        if path.name.endswith(ending) and path.name != ending:
            return path.name[: -len(ending)]
    return path.stem
