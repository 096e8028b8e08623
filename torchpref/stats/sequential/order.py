"""A random order of instances, the same for all systems, that does not depend on which instances are known so far."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def random_order(instances: Iterable[tuple[str, str]], seed: int) -> list[tuple[str, str]]:
    """Instances, named by benchmark and name, in the order of a hash of the seed and the name.

    Another instance finds its place among the others without moving them. The order has nothing to do with results as long as
    the seed was not chosen after them.
    """
    return sorted(set(instances), key=lambda one: (_key(one, seed), one))


def _key(instance: tuple[str, str], seed: int) -> bytes:
    benchmark, name = instance
    text = f"{seed}\0{benchmark}\0{name}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).digest()
