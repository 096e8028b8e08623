"""HDF5 by way of another process, which is ended where a damaged file keeps it busy: Python cannot interrupt the C library.

The process is started at the first file and kept for the next ones; it ends with this one.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torchpref.errors import DataError, MissingExtraError, TorchPrefError
from torchpref.io.files.hdf5_worker import MAGIC

SECONDS = 20.0
"""How long a file may give nothing before it is taken for damaged, besides what its size allows."""
BYTES_PER_SECOND = 50e6
"""How fast a disk is at least."""
_MOST_BYTES = 2 << 30
_MOST_TEXT = 1 << 24
_SMALL = 1 << 20
_WIDEST = 16
_LAST = ("end", "refused", "damaged", "missing")
_BOOT = (
    "import json, runpy, sys; sys.path[:] = json.loads(sys.argv[1]); runpy.run_path(sys.argv[2], run_name='__main__')"
)


def answers(
    path: Path, arrays: Sequence[str], infos: Sequence[str], most: int
) -> Generator[tuple[Mapping[str, Any], Any], None, None]:
    """What a Minari file holds, in order: ``file``, then per episode its ``array`` and the ``episode`` itself.

    Args:
        path: the file.
        arrays: names of the arrays of an episode that are wanted.
        infos: the same, within its ``infos``.
        most: the most elements of an array.

    Raises:
        DataError: the file cannot be read, or gives nothing for too long.
    """
    with _lock:
        worker = _current()
        sound = False
        size = _size(path)
        limit = SECONDS + min(size, _MOST_BYTES) / BYTES_PER_SECOND
        request = {"path": os.path.abspath(path), "arrays": list(arrays), "infos": list(infos), "most": most}
        try:
            worker.ask({**request, "seconds": limit + 5})
            with _Watch(worker, limit) as watch:
                answer, data = watch.answer(most)
                while answer["kind"] not in _LAST:
                    try:
                        yield answer, data
                    except GeneratorExit:  # not read to its end: what is left of a small file is passed over
                        while size < _SMALL and answer["kind"] not in _LAST:
                            answer, data = watch.answer(most)
                        sound = bool(answer.get("more"))
                        raise
                    answer, data = watch.answer(most)
            sound = bool(answer["more"])
        except (EOFError, OSError, ValueError) as error:
            what = f"gave nothing for {limit:.0f} s" if worker.late else "made the HDF5 library fail"
            raise DataError(
                f"{path}: HDF5 that cannot be read (it {what}); the file is damaged: copy or download it again"
            ) from error
        finally:
            if not sound:
                worker.end()
    if answer["kind"] == "missing":
        raise MissingExtraError("h5py", "minari")
    if answer["kind"] == "refused":
        raise DataError(f"{path}: {answer['place']}{': ' if answer['place'] else ''}{answer['problem']}")
    if answer["kind"] != "end":
        raise DataError(f"{path}: HDF5 that cannot be read ({answer['problem']}); was it cut short?")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error


class _Worker:
    """The other process."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.late = False
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hdf5_worker.py")
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", _BOOT, json.dumps(sys.path), script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )

    @property
    def usable(self) -> bool:
        return self.owner == os.getpid() and self.process.poll() is None

    def ask(self, request: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, most: int) -> tuple[dict[str, Any], Any]:
        """One answer and its array; EOFError or ValueError where the process fails."""
        magic = self._bytes(len(MAGIC) + 8)
        length = int.from_bytes(magic[len(MAGIC) :], "little")
        if magic[: len(MAGIC)] != MAGIC or length > _MOST_TEXT:
            raise ValueError("no answer")
        answer: dict[str, Any] = json.loads(self._bytes(length))
        if answer["kind"] != "array":
            return answer, None
        if "dtype" not in answer:
            return answer, np.broadcast_to(np.empty((), dtype=object), answer["shape"])
        if answer["nbytes"] > most:
            raise ValueError("an array that is too large")
        return answer, np.frombuffer(self._bytes(answer["nbytes"]), answer["dtype"]).reshape(answer["shape"])

    def _bytes(self, length: int) -> bytearray:
        data = bytearray(length)
        rest = memoryview(data)
        assert self.process.stdout is not None
        while rest:
            count = self.process.stdout.readinto(rest)  # type: ignore[attr-defined]
            if not count:
                raise EOFError
            rest = rest[count:]
        return data

    def end(self) -> None:
        """End the process; in a fork of the one that started it only let go of it."""
        if self.owner == os.getpid():
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class _Watch:
    """Waits for answers, and ends a process that gives none within a limit."""

    def __init__(self, worker: _Worker, limit: float) -> None:
        self._worker = worker
        self._limit = limit
        self._since: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="torchpref-hdf5", daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def answer(self, most: int) -> tuple[dict[str, Any], Any]:
        """The next answer."""
        self._since = time.monotonic()
        try:
            return self._worker.answer(_WIDEST * most)
        finally:
            self._since = None

    def _look(self) -> None:
        while not self._over.wait(min(1.0, self._limit / 8)):
            since = self._since
            if since is not None and time.monotonic() - since > self._limit:
                self._worker.late = True
                self._worker.process.kill()
                return


_lock = threading.RLock()
_worker: _Worker | None = None


def _current() -> _Worker:
    global _worker
    if _worker is None or not _worker.usable:
        if _worker is not None:
            _worker.end()
            _worker = None
        try:
            _worker = _Worker()
        except (OSError, ValueError) as error:
            raise TorchPrefError(f"HDF5 is read in a process of its own, which cannot be started ({error})") from error
    return _worker


def _end() -> None:
    global _worker
    if _worker is not None:
        _worker.end()
        _worker = None


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()
    _end()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
