"""Writing a file as a whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(target: str | Path) -> Iterator[Path]:
    """A new file beside ``target`` to write to; it takes the target's place when the block ends well, else it goes.

    A file that is replaced keeps its permissions, and a link goes on leading to the file behind it.

    Raises:
        OSError: the file cannot be made, or cannot take its place.
    """
    final = Path(os.path.realpath(target))
    partial = final.with_name(f".torchpref-{secrets.token_hex(8)}")
    # opened plainly, and not by tempfile, so that a new file has the permissions that this user's files have
    with open(partial, "xb"):
        pass
    try:
        yield partial
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        if final.exists():
            os.chmod(partial, final.stat().st_mode & 0o777)
        os.replace(partial, final)
    finally:
        partial.unlink(missing_ok=True)
