"""Looks at one pair: random paths by the definition, agreement of the three ways, and what a later call may not change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from torchpref.errors import UsageError
from torchpref.stats.sequential.looks import OrderedPair, look
from torchpref.stats.sequential.paths import UNIT, Pooled, label_steps, path_boundary, sign_steps, signs
from torchpref.stats.sequential.spending import spent_by, ternary_boundary

NONE = np.zeros(0)


def pair_of(values, family=None, pooled=None):
    delta = np.round(np.array(values) * UNIT).astype(np.int64)
    plain = OrderedPair.of(delta)
    return OrderedPair(delta, plain.family if family is None else np.array(family), pooled or plain.pooled)


def by_definition(steps, budget, looks, two_sided):
    """Every path one by one: sorted, the lowest sums removed while their number fits."""
    steps = np.array(list(steps))
    sums, alive, removed, crossed = np.zeros(steps.shape[1], dtype=np.int64), set(range(steps.shape[1])), 0, 0
    for n, step in enumerate(steps):
        sums += step
        if not looks[n]:
            continue
        room = int(np.floor(budget[n] * steps.shape[1])) - removed
        depth = {b: int(-abs(sums[b]) if two_sided else sums[b]) for b in alive}
        gone: set[int] = set()
        for value in sorted(set(depth.values())):
            here = {b for b in alive if depth[b] == value}
            if value >= 0 or len(gone) + len(here) > room:
                break
            gone |= here
        removed += len(gone)
        if 0 in gone and not crossed:
            crossed = n + 1
        alive -= gone
    return crossed, removed / steps.shape[1]


@settings(max_examples=examples(60))
@given(
    st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=3, max_size=30),
    st.booleans(),
    st.integers(0, 5),
)
def test_paths_by_the_definition(values, two_sided, seed):
    pair, count = pair_of(values), len(values)
    budget = spent_by(np.arange(1, count + 1), count + 4, 0.2)
    looks = 3 * np.arange(1, count + 1) >= count + 4

    def steps():
        return sign_steps(pair.delta, pair.family, seed, 161)

    found = path_boundary(steps(), budget, looks, two_sided, NONE, NONE)
    crossed, spent = by_definition(steps(), budget, looks, two_sided)
    assert (found.crossed, found.spent[-1]) == (crossed, pytest.approx(spent))


def test_signs_depend_on_seed_path_and_instance_alone():
    assert np.array_equal(signs(3, 7, 500)[1:], signs(3, 7, 900)[1:500])
    assert not np.array_equal(signs(3, 7, 500), signs(3, 8, 500))
    assert signs(3, 7, 500)[0] == 1 and set(signs(3, 7, 500)) == {-1, 1}
    assert abs(signs(0, 0, 100_000).mean()) < 0.02


def test_exact_masses_and_paths_agree_on_wins_and_losses():
    rng = np.random.default_rng(3)
    same = 0
    for _ in range(40):
        values = rng.choice([-1, 0, 1], 60, p=[0.4, 0.4, 0.2])
        exact = ternary_boundary(values[None], 60, 0.05).crossed[0]
        delta = values * UNIT
        steps = sign_steps(delta, np.arange(60), 1, 10_001)
        budget = spent_by(np.arange(1, 61), 60, 0.05)
        same += path_boundary(steps, budget, np.ones(60, dtype=bool), False, NONE, NONE).crossed == exact
    assert same >= 34  # counts of 10,000 paths and masses differ only where a tail nearly fits


@settings(max_examples=examples(30))
@given(
    st.lists(st.sampled_from([-1.0, -1.0, -0.5, 0.0, 1.0]), min_size=4, max_size=36),
    st.integers(1, 35),
    st.booleans(),
)
def test_a_later_call_agrees_with_every_earlier_one(values, cut, families):
    """Whatever is seen later: ternary first and graded later, families that come again."""
    cut = min(cut, len(values))
    family = [i // 2 * 2 for i in range(len(values))] if families else None
    whole = look(pair_of(values, family), 36, 0.05, paths=1000)
    part = look(pair_of(values[:cut], family and family[:cut]), 36, 0.05, paths=1000)
    assert part.crossed == (whole.crossed if whole.crossed <= cut else 0)
    assert np.array_equal(part.bound, whole.bound[:cut], equal_nan=True)


def test_graded_preferences_are_first_looked_at_after_a_third():
    losses = [-0.5] * 30
    assert look(pair_of(losses), 60, 0.05).crossed == 20
    assert look(pair_of([-1.0] * 30), 60, 0.05).crossed < 10
    assert look(pair_of(losses), 60, 0.05).method == "spending, 10,000 random signs"


def test_what_was_spent_while_exact_stays_spent():
    values = [-1.0, 1.0] * 15 + [-0.5] * 29
    found = look(pair_of(values), 60, 0.05)
    exact = ternary_boundary(np.array([values[:30]], dtype=int), 60, 0.05)
    assert np.allclose(found.spent[:30], exact.spent[0]) and (np.diff(found.spent) >= 0).all()
    assert (found.spent <= spent_by(np.arange(1, 60), 60, 0.05) + 1e-12).all()


def test_families_flip_together():
    """Ten families of six, each losing or winning whole: sixty coins would take six for sixty."""
    values = np.repeat([-1.0] * 5 + [1.0] + [-1.0] * 4, 6)
    family = np.repeat(np.arange(0, 60, 6), 6)
    alone, together = look(pair_of(values), 60, 0.05), look(pair_of(values, family), 60, 0.05)
    assert alone.crossed == 7 and together.crossed > 24
    steps = np.array(list(sign_steps(pair_of(values).delta, family, 0, 50))) / UNIT
    assert (np.abs(np.add.reduceat(steps, np.arange(0, 60, 6), axis=0)) == 6).all()


def test_labels_are_permuted_within_instances():
    """One run against three: of the four pooled runs each gets the first label equally often."""
    totals = np.array([3, -1, -1, -1]) * (UNIT // 3)
    steps = np.array(list(label_steps(np.array([UNIT]), [Pooled(totals, 1)], 0, 40_001)))[0]
    assert steps[0] == UNIT
    share = (steps == UNIT).mean()
    assert share == pytest.approx(0.25, abs=0.01)


def test_unequal_trials_need_both():
    # BASE solves each task once in eight, NEW fails its one run: a fair draw of one of nine fails in 8/9.
    totals = np.array([-1] * 8 + [8]) * (UNIT // 8)
    values, pooled = [-0.125] * 60, (Pooled(totals, 1),) * 60
    signs_only = look(pair_of(values), 60, 0.05)
    both = look(pair_of(values, pooled=pooled), 60, 0.05)
    assert signs_only.crossed == 20 and (8 / 9) ** both.crossed < 0.045 < (8 / 9) ** 24
    assert both.method == "spending, 10,000 random signs and 10,000 random labels"


def test_bad_input():
    with pytest.raises(UsageError, match="too few for alpha"):
        look(pair_of([0.5, 0.5]), 5, 0.001, paths=1000)
    with pytest.raises(UsageError, match="2 instances were seen of 1"):
        look(pair_of([0.5, 0.5]), 1, 0.05)
