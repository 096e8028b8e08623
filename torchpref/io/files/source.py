"""One file and the beginning of its content, by which formats are recognised."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torchpref.errors import DataError
from torchpref.io.files.outline import Outline, outline

HEAD_BYTES = 1 << 16
"""How much of a file is looked at to recognise its format."""
DEEP_BYTES = 1 << 24
"""How much is looked at where the first look ended within a JSON value and nothing was recognised."""


@dataclass(frozen=True)
class Source:
    """One file and the beginning of its content.

    Attributes:
        path: where it is.
        head: its first 65,536 bytes, or more where these tell nothing.
        size: its size in bytes.
        root: the path named by the user under which it was found.
    """

    path: Path
    head: bytes
    size: int = 0
    root: Path | None = None

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], root: str | os.PathLike[str] | None = None, size: int = HEAD_BYTES
    ) -> Source:
        """Read the beginning of a file; a file that cannot be opened raises ``DataError``."""
        where = Path(path)
        try:
            with where.open("rb") as file:
                head = file.read(size)
                whole = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise DataError(f"{where}: cannot be read ({error.strerror or error})") from error
        return cls(where, head, whole, Path(root) if root is not None else None)

    @property
    def blank(self) -> bool:
        """Whether there is nothing in it but blanks."""
        return not self.head.strip() and self.size <= len(self.head)

    @property
    def cut(self) -> bool:
        """Whether it begins like JSON and ends within its first value."""
        return bool(self.outline.kind) and not self.outline.whole and self.size <= len(self.head)

    def deeper(self) -> Source | None:
        """The same file looked at further, None where that cannot tell more."""
        if self.size <= len(self.head) or not self.outline.kind or self.outline.whole or len(self.head) >= DEEP_BYTES:
            return None
        return Source.open(self.path, self.root, DEEP_BYTES)

    @cached_property
    def outline(self) -> Outline:
        """The keys of the JSON in the head, as far as it goes."""
        return outline(self.head)

    def __str__(self) -> str:
        return str(self.path)
