"""The true order of a set's policies, and the evidence for it.

A policy that acts at random more often is slower to every level: on every instance the distribution of its
time to each level is dominated, in the first order, by that of its neighbour (:func:`dominance` with ``kind``
"time"). RPP and LR compare those times.

IPP compares the waiting times between levels (``kind`` "waiting"). Their dominance holds on Taxi and
FourRooms. On DoorKey it fails for the wait between key and door, on 43 of 100 layouts of the saturated set
and 3 of the mixed one: where a policy picks up the key decides how far it then has to go, and the shortest
way to the goal need not make each part as short as it can be alone. The *expected* IPP still has the same
order on every instance (column ``advantage``, weighted by the levels' heights).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import DataError
from torchpref.sgrl.suites import DATA, SUITES, suite, tasks
from torchpref.sgrl.tabular import FloatArray

if TYPE_CHECKING:
    import polars

PATH = DATA / "sgrl-dominance.parquet"

#: Chances are sums of up to some thousand products of float64; a gap of this size is rounding.
ROUNDING = 1e-12


def known_order(name: str) -> tuple[str, ...]:
    """The policies of a set, best first; raises :class:`torchpref.errors.DataError` without evidence."""
    times = dominance(name).filter(kind="time")
    failed = len(times.filter(holds=False))
    if failed or not len(times):
        raise DataError(f"no known order of {name!r}: {failed} of {len(times)} comparisons fail in {PATH}")
    return suite(name).systems


def dominance(name: str) -> polars.DataFrame:
    """The evidence that ships with the package; columns as in :func:`compute_dominance`."""
    import polars

    chosen = suite(name)
    return polars.read_parquet(PATH).filter(polars.col("suite") == chosen.name)


def compute_dominance(name: str, instances: Iterable[int] | None = None) -> polars.DataFrame:
    """Work out the evidence anew, from the environment's transition function.

    ``instances`` are positions among the set's instances, all by default. A row per instance, pair of
    neighbouring policies, level and kind ("time" to the level, or "waiting" since the level before).
    ``smallest_gap`` and ``largest_gap`` are the extremes, over all steps up to the horizon, of the chance
    that ``system`` has got there minus that chance of ``slower``; ``holds`` means never below zero, and above
    it somewhere. ``advantage`` is the chance that ``system`` gets there sooner minus the chance that
    ``slower`` does. The last three are rounded to four decimals, after ``holds`` was decided.
    """
    import polars

    from torchpref.sgrl.exact import exact_times, sooner

    chosen = suite(name)
    parts = []
    for task in tasks(name, instances):
        exact = exact_times(task, chosen.epsilons, chosen.horizon)
        for kind, chances in (("time", exact.reached), ("waiting", exact.waited)):
            gaps = chances[:-1] - chances[1:]
            smallest, largest = gaps.min(axis=2), gaps.max(axis=2)
            advantage = np.diagonal(sooner(chances), offset=1).T
            pairs, levels = smallest.shape
            parts.append(
                polars.DataFrame(
                    {
                        "suite": [name] * (pairs * levels),
                        "instance": [task.instances[0]] * (pairs * levels),
                        "system": [s for s in chosen.systems[:-1] for _ in range(levels)],
                        "slower": [s for s in chosen.systems[1:] for _ in range(levels)],
                        "level": np.tile(exact.levels, pairs),
                        "kind": [kind] * (pairs * levels),
                        "holds": ((smallest >= -ROUNDING) & (largest > ROUNDING)).ravel(),
                        "smallest_gap": _rounded(smallest),
                        "largest_gap": _rounded(largest),
                        "advantage": _rounded(advantage),
                    }
                )
            )
    return polars.concat(parts)


def write_dominance(folder: Path) -> Path:
    """Work out the evidence for all sets and write it to the file to ship; returns the file's path."""
    import polars

    path = folder / PATH.name
    frame = polars.concat([compute_dominance(name) for name in SUITES])
    frame.write_parquet(path, compression="zstd", compression_level=19, statistics=False)
    return path


def _rounded(values: FloatArray) -> NDArray[np.float32]:
    """To the fourth decimal, which is what the file needs to stay small; a negative zero becomes zero."""
    return (np.rint(values * 1e4) / 1e4 + 0.0).astype(np.float32).ravel()
