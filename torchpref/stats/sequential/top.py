"""Who is in the top k and who is out, from the pairs that are settled.

In and out mean head to head: with all claims about pairs right they are right if the pairs have an order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from torchpref.errors import UsageError


@dataclass(frozen=True)
class Places:
    """Systems by what is settled about them.

    Attributes:
        inside: bool ``[system]``, surely among the first k.
        outside: bool ``[system]``, surely not.
        cycle: positions of systems of which each beats the next and the last the first; empty where there is none.
    """

    inside: Bool[np.ndarray, " system"]
    outside: Bool[np.ndarray, " system"]
    cycle: tuple[int, ...]

    @property
    def settled(self) -> bool:
        """Whether every system is in or out."""
        return bool((self.inside | self.outside).all())


def places(beats: Bool[np.ndarray, "system system"], k: int) -> Places:
    """Who is in and who is out of the first ``k``.

    A system is in once it beats at least S − k others; one that is not in is out once at least k − (number in) of the systems
    that are not in beat it; and when no more systems than k are not out, they are in.

    Args:
        beats: whether the system of the row is settled to be better than that of the column.
        k: places.
    """
    systems = len(beats)
    if not 1 <= k < systems:
        raise UsageError(f"the first {k} of {systems} systems: wanted at least 1 place and fewer places than systems")
    inside = beats.sum(axis=1) >= systems - k
    if inside.sum() > k:  # only where the pairs contradict each other
        inside = np.zeros(systems, dtype=bool)
    losses = (beats & ~inside[:, None]).sum(axis=0)
    outside = ~inside & (losses >= k - int(inside.sum()))
    if systems - int(outside.sum()) == k:
        inside = ~outside
    return Places(inside, outside, find_cycle(beats))


def find_cycle(beats: Bool[np.ndarray, "system system"]) -> tuple[int, ...]:
    """A cycle of systems each of which beats the next, or none."""
    left = np.ones(len(beats), dtype=bool)
    while left.any():
        beaten = (beats & left[:, None]).any(axis=0)
        free = left & ~beaten
        if not free.any():
            break
        left &= ~free
    if not left.any():
        return ()
    # Everyone who is left is beaten by someone who is left: walking from a system to who beats it must come round.
    place, seen = int(np.argmax(left)), list[int]()
    while place not in seen:
        seen.append(place)
        place = int(np.argmax(beats[:, place] & left))
    return tuple(reversed(seen[seen.index(place) :]))
