"""The comparison graph against a slow search."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bt_problems import slow_components
from torchpref.stats.bradley_terry.graph import components, describe, is_strongly_connected


@st.composite
def win_graphs(draw, largest=9):
    """Graphs with few edges, so that every kind of component structure comes up; ties give edges both ways."""
    count = draw(st.integers(2, largest))
    kinds = st.sampled_from(["none", "none", "first", "second", "both"])
    wins = np.zeros((count, count), dtype=bool)
    for a in range(count):
        for b in range(a + 1, count):
            kind = draw(kinds)
            wins[a, b] = kind in ("first", "both")
            wins[b, a] = kind in ("second", "both")
    return wins


@given(win_graphs())
def test_components_are_those_of_a_slow_search(wins):
    status, tiers, ordered, chosen = slow_components(wins)
    parts = components(wins)
    assert parts.status == status
    assert parts.chain == ordered
    assert set(np.flatnonzero(parts.scored)) == chosen
    assert {frozenset(np.flatnonzero(parts.labels == c)) for c in set(parts.labels)} == {frozenset(t) for t in tiers}
    assert is_strongly_connected(wins) == (status == "ok")
    if ordered:
        assert [set(np.flatnonzero(parts.labels == c)) for c in range(len(tiers))] == tiers


@given(win_graphs())
def test_no_loser_stands_before_its_winner(wins):
    labels = components(wins).labels
    winner, loser = np.nonzero(wins)
    assert (labels[winner] <= labels[loser]).all()


@given(win_graphs(largest=8))  # a longer list would be cut short
def test_the_message_names_every_system_of_a_small_problem(wins):
    names = tuple(f"name{i}" for i in range(len(wins)))
    parts = components(wins)
    if parts.status != "ok":
        assert all(name in describe(parts, names) for name in names)


def test_long_lists_of_names_are_counted():
    wins = np.ones((40, 40), dtype=bool)
    wins[1:, 0] = False
    message = describe(components(wins), tuple(f"s{i:02d}" for i in range(40)))
    assert "s00 > s01, s02" in message
    assert "and 32 more" in message


def test_many_systems_that_never_met():
    parts = components(np.zeros((1000, 1000), dtype=bool))
    assert parts.status == "disconnected"
    assert not parts.scored.any() and not parts.chain
