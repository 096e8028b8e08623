"""Waypoints: a 9 × 9 grid with walls on a fifth of its cells; some free cells are to be visited in order.

The kth of K cells, once visited in its turn, earns level k/K. A move into a wall or off the grid stays where it is. A map
depends on its seed alone, through the raw stream of PCG64 (:func:`torchpref.sgrl.tabular.noise`): cells in the order of the
first column of its numbers, the first 16 are walls; of the others, in the order of the second column, the first is the
start and the next ones are the waypoints. Where the free cells do not hang together, the next attempt is drawn.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from torchpref.errors import UsageError
from torchpref.sgrl.tabular import UNREACHABLE, IntArray, TabularTask, noise, steps_to

SIDE = 9
WALLS = 16
_MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


@cache
def waypoint_task(seed: int, levels: int = 5) -> TabularTask:
    """The map of a seed as tables; state c + 81 k is cell c with k waypoints visited.

    Raises:
        UsageError: fewer than one level, or more than 20.
    """
    if not 1 <= levels <= 20:
        raise UsageError(f"a map has 1 to 20 waypoints, got {levels}")
    neighbours, free = _map(seed)
    route, cells = free[: levels + 1], SIDE * SIDE
    successors = np.empty((levels + 1, cells, len(_MOVES)), dtype=np.int64)
    for visited in range(levels):
        successors[visited] = neighbours + cells * (visited + (neighbours == route[visited + 1]))
    successors[levels] = (np.arange(cells) + cells * levels)[:, None]
    cell, visited_now = np.tile(np.arange(cells), levels + 1), np.repeat(np.arange(levels + 1), cells)
    return TabularTask(
        successors=successors.reshape(-1, len(_MOVES)),
        level=visited_now / levels,
        starts=route[:1].copy(),
        instances=(f"map-{seed:03d}",),
        actions=("up", "down", "left", "right"),
        environment_actions=(0, 1, 2, 3),
        labels=np.stack([cell // SIDE, cell % SIDE, visited_now], axis=1),
        features=("row", "column", "visited"),
    )


def _map(seed: int) -> tuple[IntArray, IntArray]:
    """Where each move leads from each cell, int64 ``[cell, move]``; and the free cells, the start and waypoints first."""
    cells = SIDE * SIDE
    row, column = np.divmod(np.arange(cells), SIDE)
    attempt = 0
    while True:
        uniform = noise(f"waypoints/{seed}/{attempt}", cells)
        order = np.argsort(uniform[:, 0], kind="stable")
        wall = np.zeros(cells, dtype=bool)
        wall[order[:WALLS]] = True
        free = order[WALLS:][np.argsort(uniform[order[WALLS:], 1], kind="stable")]
        neighbours = np.empty((cells, len(_MOVES)), dtype=np.int64)
        for move, (down, right) in enumerate(_MOVES):
            inside = (0 <= row + down) & (row + down < SIDE) & (0 <= column + right) & (column + right < SIDE)
            to = np.where(inside, (row + down) * SIDE + column + right, np.arange(cells))
            neighbours[:, move] = np.where(wall[to] | wall, np.arange(cells), to)
        there = steps_to(neighbours, np.arange(cells) == free[0])
        if bool((there[free] < UNREACHABLE).all()):
            return neighbours, free
        attempt += 1
