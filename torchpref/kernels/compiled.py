"""How this package uses numba: serial kernels that release the GIL, on threads of its own.

numba's parallel loops share OpenMP with torch: they change torch's number of threads and die after a fork. So kernels
are compiled serially and the work is split here, over as many threads as torch is set to use.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
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

#: Threads of one pool that is never closed: another thread may be using it. They start when they are needed.
_pool: ThreadPoolExecutor | None = None
_MOST_THREADS = 256


def jit(function: F, fastmath: bool | set[str] = False) -> F:
    """Compile on first use, without the GIL, cached on disk where there is a place that can be written."""
    options: dict[str, Any] = {"nogil": True, "fastmath": fastmath, "boundscheck": False, "error_model": "numpy"}
    try:
        compiled: F = numba.njit(cache=True, **options)(function)
        _stamp(compiled, function)
    except RuntimeError:  # neither the package's folder nor the user's cache folder can be written
        compiled = numba.njit(**options)(function)
    return compiled


def _stamp(compiled: Any, function: Callable[..., Any]) -> None:
    """Let what was compiled last only as long as the sources of everything that may be compiled into it.

    numba looks at the file of the function alone, but code and constants of other files are compiled into it.
    """
    cache_file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = stamp(function.__code__.co_filename)


@cache
def stamp(path: str, root: Path = Path(__file__).parents[2]) -> str:
    """A digest of a module below ``root`` and of all modules of this package that it imports, directly or not."""
    wanted, sources = [Path(path)], dict[Path, bytes]()
    while wanted:
        file = wanted.pop()
        if file in sources or not file.is_file():
            continue
        sources[file] = file.read_bytes()
        for line in re.findall(r"^from (torchpref[\w.]*) import (.*)$", sources[file].decode(), re.MULTILINE):
            module = root.joinpath(*line[0].split("."))
            names = re.findall(r"\w+", line[1])
            wanted += [module.with_suffix(".py"), module / "__init__.py", *(module / f"{name}.py" for name in names)]
    return sha256(b"\0".join(sources[file] for file in sorted(sources))).hexdigest()


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
    size = min(len(calls), threads())
    if size <= 1:
        return [function(*call) for call in calls]
    global _pool
    pool = _pool
    if pool is None:  # of two made at once by two threads, both work
        pool = _pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="torchpref")
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

    helpers = [pool.submit(work) for _ in range(size - 1)]
    work()
    for helper in helpers:
        if not helper.cancel():  # one that has not begun has nothing left to do
            helper.result()
    return results


def _forget_pool() -> None:
    """A forked child has none of its parent's threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
