"""What a comparison graph allows: which systems can be scored together, and how the rest is ordered.

The graph has an edge from A to B wherever A was preferred to B at all (y_AB > 0 with a positive weight). A finite
Bradley–Terry solution exists if and only if that graph is strongly connected (Ford, *Solution of a ranking problem
from binary comparisons*, 1957). Otherwise its strongly connected components are the largest groups with finite scores.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-15  # y this near to 0 or 1 is 0 or 1: (Δ̄ + 1) / 2 in float64 can miss by so much

OK, SEPARATED, DISCONNECTED, SINGLE, EMPTY = "ok", "separated", "disconnected", "single", "empty"


@dataclass(frozen=True)
class Components:
    """The strongly connected components of one comparison graph.

    Attributes:
        labels: int64 [system], the component of each system; components are numbered winners first.
        islands: int64 [system], the weakly connected component: systems on different islands were never compared, not
            even by way of others.
        status: ``ok`` (one component), ``separated``, ``disconnected`` (more than one island), ``single``, ``empty``.
        largest: the component that is scored: the one with most systems; of several the one that no other of them
            reaches, then the one with the first system. −1 where no component has two systems: a score of one system
            against none means nothing.
        chain: whether the components are totally ordered, each preferred to the next.
        ranked: bool [system], the systems that can be ranked against each other: the island of the largest component
            (of most systems, where there is none) if its components are totally ordered, else the largest component.
    """

    labels: NDArray[np.int64]
    islands: NDArray[np.int64]
    status: str
    largest: int
    chain: bool
    ranked: NDArray[np.bool_]

    @property
    def scored(self) -> NDArray[np.bool_]:
        """bool [system]: the systems of the largest component."""
        return np.equal(self.labels, self.largest)


def is_strongly_connected(wins: NDArray[np.bool_]) -> bool:
    """Whether every system of ``wins`` [system, system] reaches every other one; searches from the first system."""
    return wins.shape[0] == 0 or all(reachable(edges, 0).all() for edges in (wins, wins.T))


def reachable(edges: NDArray[np.bool_], start: int) -> NDArray[np.bool_]:
    """bool [system]: what can be reached from ``start`` along ``edges`` [system, system], itself included."""
    found = np.zeros(edges.shape[0], dtype=bool)
    frontier = found.copy()
    found[start] = frontier[start] = True
    while frontier.any():
        frontier = edges[frontier].any(axis=0) & ~found
        found |= frontier
    return found


def components(wins: NDArray[np.bool_]) -> Components:
    """The components of the graph ``wins`` [system, system]; ``wins[a, b]`` says that a was ever preferred to b."""
    count = wins.shape[0]
    zeros = np.zeros(count, dtype=np.int64)
    if is_strongly_connected(wins):
        status = OK if count > 1 else SINGLE if count else EMPTY
        return Components(zeros, zeros, status, 0, True, np.ones(count, dtype=bool))

    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    graph = csr_matrix(wins)
    number, found = connected_components(graph, directed=True, connection="strong")
    n_islands, islands = connected_components(graph, directed=True, connection="weak")
    beats = _between(wins, found, number)
    first = np.full(number, count)
    np.minimum.at(first, found, np.arange(count))
    order = _topological_order(beats, first)
    position = np.empty(number, dtype=np.int64)
    position[order] = np.arange(number)
    labels = position[found]
    beats = beats[np.ix_(order, order)]
    largest = _largest(np.bincount(labels, minlength=number), beats, first[order])

    island_of = np.empty(number, dtype=np.int64)
    island_of[labels] = islands
    home = island_of[largest] if largest >= 0 else np.argmax(np.bincount(islands))
    inside = np.flatnonzero(island_of == home)
    home_chain = bool(beats[inside[:-1], inside[1:]].all())
    ranked = islands == home if home_chain else labels == largest
    if count > 1 and ranked.sum() == 1:
        ranked = np.zeros(count, dtype=bool)  # a rank among nobody is arbitrary
    status = SEPARATED if n_islands == 1 else DISCONNECTED
    return Components(labels, islands.astype(np.int64), status, largest, home_chain and n_islands == 1, ranked)


def _between(wins: NDArray[np.bool_], labels: NDArray[np.int32], number: int) -> NDArray[np.bool_]:
    """bool [component, component]: whether any system of one was preferred to any system of the other."""
    beats = np.zeros((number, number), dtype=bool)
    winner, loser = np.nonzero(wins)
    beats[labels[winner], labels[loser]] = True
    np.fill_diagonal(beats, False)
    return beats


def _topological_order(beats: NDArray[np.bool_], first: NDArray[np.int64]) -> list[int]:
    """Components winners first; where the graph leaves it open, the one with the first system goes first."""
    waiting = beats.sum(axis=0)
    ready = [(int(first[c]), int(c)) for c in np.flatnonzero(waiting == 0)]
    heapq.heapify(ready)
    order = []
    while ready:
        component = heapq.heappop(ready)[1]
        order.append(component)
        for loser in np.flatnonzero(beats[component]):
            waiting[loser] -= 1
            if waiting[loser] == 0:
                heapq.heappush(ready, (int(first[loser]), int(loser)))
    return order


def _largest(sizes: NDArray[np.int64], beats: NDArray[np.bool_], first: NDArray[np.int64]) -> int:
    if sizes.max() == 1:
        return -1
    covered = np.zeros(sizes.size, dtype=bool)
    unbeaten = []
    for component in np.flatnonzero(sizes == sizes.max()):  # winners first: a later one cannot reach an earlier one
        if not covered[component]:
            unbeaten.append(int(component))
            covered |= reachable(beats, int(component))
    return min(unbeaten, key=lambda c: int(first[c]))


def describe(parts: Components, systems: tuple[str, ...]) -> str:
    """The status of ``parts`` in words that name the systems."""
    if parts.status == EMPTY:
        return "there are no systems to score"
    if parts.status == SINGLE:
        return f"{systems[0]} is the only system: its score is 0 and means nothing"
    if parts.status == OK:
        return f"finite scores for all {len(systems)} systems"
    members = [[systems[i] for i in np.flatnonzero(parts.labels == c)] for c in range(int(parts.labels.max()) + 1)]
    scored = [systems[i] for i in np.flatnonzero(parts.scored)]
    rest = f"scores are given among {name_list(scored)}" if scored else "no two systems can be scored together"
    if parts.status == DISCONNECTED:
        numbers = range(int(parts.islands.max()) + 1)
        islands = [[systems[i] for i in np.flatnonzero(parts.islands == number)] for number in numbers]
        alone = [island[0] for island in islands if len(island) == 1]
        several = [name_list(island) for island in islands if len(island) > 1]
        said = []
        if several != [name_list(scored)]:
            said.append("only these were compared with each other: " + (" | ".join(several) or "none"))
        if alone:
            said.append(f"{name_list(alone)} {'was' if len(alone) == 1 else 'were'} compared with no other system")
        return f"no finite scores for all: {'; '.join(said)}; {rest}"
    if parts.chain:
        tiers = " > ".join(name_list(tier) for tier in members)
        return f"no finite scores for all: each tier was always preferred to the next: {tiers}; {rest}"
    groups = " | ".join(name_list(tier) for tier in members)
    return (
        "no finite scores for all: between these groups preference always went one way, or there was no comparison, "
        f"and they cannot be put in one order: {groups}; {rest}"
    )


def name_list(names: list[str], limit: int = 8) -> str:
    """Names joined by commas; past ``limit`` only counted."""
    if len(names) <= limit:
        return ", ".join(names)
    return f"{', '.join(names[: limit - 1])} and {len(names) - limit + 1} more"
