"""Places by exhaustive search: whoever is in is in whatever the open pairs turn out to be."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from torchpref.errors import UsageError
from torchpref.stats.sequential.order import random_order
from torchpref.stats.sequential.top import find_cycle, places


@settings(max_examples=examples(150))
@given(st.integers(2, 5), st.data())
def test_in_and_out_hold_in_every_order_that_the_claims_allow(systems, data):
    order = data.draw(st.permutations(range(systems)))
    beats = np.zeros((systems, systems), dtype=bool)
    for better, worse in combinations(order, 2):
        beats[better, worse] = data.draw(st.booleans())
    k = data.draw(st.integers(1, systems - 1))
    found = places(beats, k)
    assert not found.cycle
    for possible in permutations(range(systems)):
        rank = {system: place for place, system in enumerate(possible)}
        if all(rank[a] < rank[b] for a, b in np.argwhere(beats)):
            assert all(rank[s] < k for s in np.flatnonzero(found.inside))
            assert all(rank[s] >= k for s in np.flatnonzero(found.outside))


def test_all_settled_gives_the_top():
    beats = np.triu(np.ones((6, 6), dtype=bool), 1)
    found = places(beats, 2)
    assert found.settled and np.flatnonzero(found.inside).tolist() == [0, 1]
    assert not places(np.zeros((6, 6), dtype=bool), 2).inside.any()


def test_a_pair_in_the_middle_does_not_matter():
    """The first two beat the rest; who of them is first, and the order of the rest, are open."""
    beats = np.zeros((5, 5), dtype=bool)
    beats[:2, 2:] = True
    found = places(beats, 2)
    assert found.inside.tolist() == [True, True, False, False, False] and found.settled


def test_cycles():
    beats = np.zeros((5, 5), dtype=bool)
    beats[0, 1:] = True
    assert find_cycle(beats) == ()
    beats[2, 3] = beats[3, 4] = beats[4, 2] = True
    cycle = find_cycle(beats)
    assert sorted(cycle) == [2, 3, 4]
    assert all(beats[a, b] for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True))


def test_bad_input():
    with pytest.raises(UsageError, match="first 3 of 3"):
        places(np.zeros((3, 3), dtype=bool), 3)


def test_an_order_is_random_stable_and_grows():
    names = [("b", f"task-{i}") for i in range(200)]
    order = random_order(names, 0)
    assert sorted(order) == sorted(names) and order == random_order(reversed(names), 0)
    assert order != random_order(names, 1) and order != sorted(names)
    assert [one for one in random_order([*names, ("b", "new")], 0) if one != ("b", "new")] == order
    places_of = [order.index(("b", f"task-{i}")) for i in range(200)]
    assert abs(np.corrcoef(places_of, range(200))[0, 1]) < 0.2
