"""How this package uses numba: serial kernels that release the GIL, on threads of its own.

numba's parallel loops share OpenMP with torch: they change torch's number of threads and die after a fork. So kernels
are compiled serially and the work is split here, over as many threads as torch is set to use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numba
import numpy as np
import torch

F = TypeVar("F", bound=Callable[..., Any])

#: Numbers in compiled code. To the type checker they are plain numbers, which numpy's are not.
int32: Any = np.int32
int64: Any = np.int64
uint64: Any = np.uint64
float64: Any = np.float64

_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def jit(function: F) -> F:
    """Compile on first use, without the GIL, cached on disk where there is a place that can be written."""
    options: dict[str, Any] = {"nogil": True, "fastmath": False, "boundscheck": False, "error_model": "numpy"}
    try:
        compiled: F = numba.njit(cache=True, **options)(function)
        _stamp(compiled)
    except RuntimeError:  # neither the package's folder nor the user's cache folder can be written
        compiled = numba.njit(**options)(function)
    return compiled


def _stamp(compiled: Any) -> None:
    """Let what was compiled last only as long as all kernels' sources.

    numba looks at the file of the function alone, but code from the other files is compiled into it.
    """
    cache_file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = _SOURCES


def _sources() -> list[tuple[str, float, int]]:
    found = []
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        status = path.stat()
        found.append((path.name, status.st_mtime, status.st_size))
    return found


_SOURCES = _sources()


def threads() -> int:
    """How many threads a kernel may use: as many as torch."""
    return torch.get_num_threads()


def split(count: int, parts: int) -> list[tuple[int, int]]:
    """``range(count)`` in at most ``parts`` consecutive pieces of nearly equal size, none of them empty."""
    parts = max(1, min(parts, count))
    cuts = [count * part // parts for part in range(parts + 1)]
    return list(zip(cuts[:-1], cuts[1:], strict=True))


def run(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """``function(*call)`` for every call, on all threads; the results in order."""
    if len(calls) == 1 or threads() == 1:
        return [function(*call) for call in calls]
    global _pool, _pool_size
    if _pool is None or _pool_size != threads() - 1:
        if _pool is not None:
            _pool.shutdown(wait=False)
        _pool, _pool_size = ThreadPoolExecutor(threads() - 1, thread_name_prefix="torchpref"), threads() - 1
    results: list[Any] = [None] * len(calls)
    waiting = iter(range(len(calls)))
    lock = Lock()

    def work() -> None:
        while True:
            with lock:
                index = next(waiting, None)
            if index is None:
                return
            results[index] = function(*calls[index])

    helpers = [_pool.submit(work) for _ in range(min(len(calls), threads()) - 1)]
    work()
    for helper in helpers:
        helper.result()
    return results


def _forget_pool() -> None:
    """A forked child has none of its parent's threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
