"""What the machine can do at most: bytes from memory, and compares of integers that lie in the first cache."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from kernels_data import seconds


@numba.njit(nogil=True)
def compares_32(a: np.ndarray, b: np.ndarray, rounds: int) -> int:
    total = 0
    for number in range(rounds):
        count = np.int32(0)
        for i in range(a.size):
            count += np.int32(a[i] < b[i])
        total += count
        a[number & 63] += 1  # so that no round can be left out
    return total


@numba.njit(nogil=True)
def compares_16(a: np.ndarray, b: np.ndarray, rounds: int) -> int:
    total = 0
    counts = np.zeros(a.size, np.int16)
    for number in range(rounds):
        for i in range(a.size):
            counts[i] += np.int16(a[i] < b[i])
        a[number & 63] += 1
    for i in range(a.size):
        total += counts[i]
    return total


@numba.njit(nogil=True)
def add_up(values: np.ndarray) -> int:
    total = 0
    for i in range(values.size):
        total += values[i]
    return total


def on_threads(threads: int, call: Callable[[int], object]) -> None:
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(call, range(threads)))


def measure(threads: int) -> dict[str, float]:
    """Compares per second (int32 and int16), bytes per second; all threads together."""
    rng = np.random.default_rng(0)
    small = {
        kind: [
            (rng.integers(0, 100, 2048).astype(kind), rng.integers(0, 100, 2048).astype(kind)) for _ in range(threads)
        ]
        for kind in (np.int32, np.int16)
    }
    rounds = 20_000
    large = [np.ones(1 << 24, np.int64) for _ in range(threads)]
    t32, t16, memory = seconds(
        lambda: on_threads(threads, lambda i: compares_32(*small[np.int32][i], rounds)),
        lambda: on_threads(threads, lambda i: compares_16(*small[np.int16][i], rounds)),
        lambda: on_threads(threads, lambda i: add_up(large[i])),
        repeat=15,
    )
    return {
        "int32": threads * rounds * 2048 / t32,
        "int16": threads * rounds * 2048 / t16,
        "bytes": threads * large[0].nbytes / memory,
    }
