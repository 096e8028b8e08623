"""Spending against an exact walk in fractions, and the worked examples."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from torchpref.errors import UsageError
from torchpref.stats.sequential.spending import spent_by, ternary_boundary


def walk(delta: list[int], planned: int, alpha: float, two_sided: bool) -> tuple[int, list[Fraction]]:
    """The definition read aloud, masses as fractions: the first crossing and what was spent after each instance."""
    alive = {0: Fraction(1)}
    spent, spends, crossed, total = Fraction(0), [], 0, 0
    for n, value in enumerate(delta, 1):
        if value:
            moved: dict[int, Fraction] = {}
            for place, mass in alive.items():
                for new in (place - 1, place + 1):
                    moved[new] = moved.get(new, Fraction(0)) + mass / 2
            alive = moved
        total += value
        room = Fraction(float(spent_by(n, planned, alpha))) - spent
        tail = Fraction(0)
        for size in sorted({abs(p) for p in alive} if two_sided else {-p for p in alive if p < 0}, reverse=True):
            if size == 0:
                break
            places = [p for p in alive if (abs(p) == size if two_sided else p == -size)]
            mass = sum((alive[p] for p in places), Fraction(0))
            if tail + mass > room:
                break
            tail += mass
            for place in places:
                del alive[place]
                if place == total and not crossed:
                    crossed = n
        spent += tail
        spends.append(spent)
    return crossed, spends


@settings(max_examples=examples(120))
@given(
    st.lists(st.sampled_from([-1, -1, 0, 1]), min_size=1, max_size=40),
    st.integers(0, 30),
    st.sampled_from([0.05, 0.2, 0.001]),
    st.booleans(),
)
def test_agrees_with_the_exact_walk(delta, more, alpha, two_sided):
    planned = len(delta) + more
    found = ternary_boundary(np.array([delta]), planned, alpha, two_sided)
    crossed, spent = walk(delta, planned, alpha, two_sided)
    assert int(found.crossed[0]) == crossed
    assert found.spent[0] == pytest.approx([float(s) for s in spent], abs=1e-12)


@pytest.mark.parametrize(("planned", "one", "two"), [(10, 6, 6), (20, 6, 7), (100, 8, 9)])
def test_nothing_but_losses_or_wins(planned, one, two):
    losses = -np.ones((1, planned), dtype=int)
    assert ternary_boundary(losses, planned, 0.05).crossed.tolist() == [one]
    both = ternary_boundary(-losses, planned, 0.05, two_sided=True)
    assert both.crossed.tolist() == [two] and both.side.tolist() == [1]
    assert ternary_boundary(-losses, planned, 0.05).crossed.tolist() == [0]


def test_what_may_be_spent():
    assert float(spent_by(5, 10, 0.05)) == pytest.approx(0.031006, abs=5e-7)
    assert float(spent_by(6, 10, 0.05)) == pytest.approx(0.035426, abs=5e-7)
    assert spent_by(5, 10, 0.05) < 2 / 32 and spent_by(6, 10, 0.05) >= 2 / 64
    assert float(spent_by(10, 10, 0.05)) == pytest.approx(0.05, abs=1e-15)


def test_many_paths_are_the_paths_one_by_one():
    rng = np.random.default_rng(0)
    paths = rng.choice([-1, 0, 1], (20, 90), p=[0.5, 0.3, 0.2])
    together = ternary_boundary(paths, 100, 0.05, two_sided=True)
    for row, path in enumerate(paths):
        alone = ternary_boundary(path[None], 100, 0.05, two_sided=True)
        assert np.array_equal(together.bound[row], alone.bound[0], equal_nan=True)
        assert together.crossed[row] == alone.crossed[0] and np.allclose(together.spent[row], alone.spent[0])


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=2, max_size=50))
def test_later_instances_do_not_change_earlier_looks(delta):
    whole = ternary_boundary(np.array([delta]), 60, 0.05)
    part = ternary_boundary(np.array([delta[:-1]]), 60, 0.05)
    assert np.array_equal(whole.bound[:, :-1], part.bound, equal_nan=True)
    assert part.crossed[0] == (whole.crossed[0] if whole.crossed[0] < len(delta) else 0)


def test_the_last_look_may_spend_what_is_left():
    losses = -np.ones((1, 5), dtype=int)
    assert ternary_boundary(losses, 100, 0.05).crossed.tolist() == [0]
    assert ternary_boundary(losses, 100, 0.05, final=True).crossed.tolist() == [5]


def test_false_stops_by_the_masses():
    """Half a million fair walks would say the same; what was spent never exceeds what may be."""
    tied = np.tile([1, 0, 1, 1, 0], 20)[None]
    found = ternary_boundary(tied, 100, 0.05, two_sided=True)
    assert (found.spent[0] <= spent_by(np.arange(1, 101), 100, 0.05) + 1e-15).all()
    assert 0.04 < found.spent[0, -1] <= 0.05
    assert found.alive.sum() + found.spent[0, -1] == pytest.approx(1, abs=1e-12)


def test_bad_input():
    with pytest.raises(UsageError, match="3 instances were seen of 2"):
        ternary_boundary(np.zeros((1, 3), dtype=int), 2, 0.05)
    with pytest.raises(UsageError, match="-1, 0 and 1"):
        ternary_boundary(np.full((1, 3), 2), 5, 0.05)
