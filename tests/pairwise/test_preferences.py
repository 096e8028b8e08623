"""Preferences against the exact judge, the worked examples, and what must not change them."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import exact
import torchpref as tp
from cases import Case, cases
from exact import MILLION, Run
from profiles import examples
from torchpref.kernels import reference
from torchpref.pairwise.preferences import all_pairs
from torchpref.runs.curves import curves, grid_levels

Q, H, T, U = Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), None
THIRD, TWO_THIRDS = 1 / 3, 2 / 3

# Worked examples: points of A, points of B, LR, RPP, IPP in millionths.
EXAMPLES = [
    ([(2, 1)], [(100, 1)], 1, 1, 1),
    ([(9, H)], [(90, T)], -1, Q, Q),
    ([(10, Q), (11, H), (12, T), (13, 1)], [(1, Q), (8, H), (15, T), (22, 1)], 1, 0, H),
    ([(1, Q), (2, H)], [(3, Q), (6, H), (9, T), (12, 1)], -1, 0, 0),
    ([(5, 1)], [(2, Q), (4, H), (6, T), (8, 1)], 1, 0, H),
    ([(1, H), (2, Q), (3, 1)], [(1, Q), (2, H), (3, 1)], 1, Q, -Q),
    ([(1, THIRD), (1, TWO_THIRDS)], [(5, TWO_THIRDS)], 1, Fraction(666667, MILLION), Fraction(666667, MILLION)),
    ([(1, THIRD), (9, TWO_THIRDS)], [(2, THIRD), (3, TWO_THIRDS)], -1, 0, 0),
    ([(1, Q), (9, 1)], [(8, Q), (9, 1)], 1, Q, -H),
    ([(U, 1)], [(5, H)], 1, H, H),
    ([], [], 0, 0, 0),
]


def run_of(points: list[tuple[int | None, float]]) -> Run:
    return Run(tuple((tick, float(value)) for tick, value in points))


def pair_of(a: Run, b: Run) -> Case:
    return Case([[[a], [b]]], resolution=1.0)


@pytest.mark.parametrize(("a", "b", "lr", "rpp", "ipp"), EXAMPLES)
def test_worked_examples(a, b, lr, rpp, ipp):
    for first, second, sign in ((a, b, 1), (b, a, -1)):
        one, two = run_of(first), run_of(second)
        prefs = tp.all_preferences(pair_of(one, two).trajectories(clock="steps"))
        for measure, wanted in (("lr", lr), ("rpp", rpp), ("ipp", ipp)):
            assert exact.MEASURES[measure](one, two) == sign * wanted
            assert prefs[measure].delta.item() == pytest.approx(float(sign * wanted), abs=1e-15)


def exact_case(case: Case, measure: str) -> list[list[tuple[Fraction, int, int]]]:
    systems = len(case.runs[0])
    pairs = [(a, b) for a in range(systems) for b in range(a + 1, systems)]
    return [
        [exact.compare_trials(case.present(i, a), case.present(i, b), exact.MEASURES[measure]) for a, b in pairs]
        for i in range(len(case.runs))
    ]


def check_against_judge(case: Case, prefs: dict[str, tp.Preferences]) -> None:
    for measure in exact.MEASURES:
        got = prefs[measure]
        for i, row in enumerate(exact_case(case, measure)):
            for p, (total, ties, count) in enumerate(row):
                assert got.trial_pairs[i, p].item() == count
                assert Fraction(got.sums[i, p].item(), got.unit) == total
                assert got.ties[i, p].item() == ties
                if count:
                    assert got.delta[i, p].item() == pytest.approx(float(total / count), abs=1e-15)
                else:
                    assert torch.isnan(got.delta[i, p])


@settings(max_examples=examples(700))
@given(cases())
def test_equals_the_judge(case):
    """At least 2,000 pairs of runs: dips, thirds, one tick, unknown, truncated, unequal trials, missing runs."""
    check_against_judge(case, tp.all_preferences(case.trajectories()))


@settings(max_examples=examples(200))
@given(cases(max_trials=2))
def test_spl_equals_the_judge(case):
    runs = case.trajectories()
    prefs = tp.preferences(runs, "spl")
    for i in range(len(case.runs)):
        known = [run for s in range(len(case.runs[i])) for run in case.present(i, s) if run.reached(MILLION)]
        positive = [run.time_to(MILLION) for run in known if run.time_to(MILLION)]
        reference_time = min(positive, default=None)
        pairs = all_pairs(len(case.runs[i])).tolist()
        for p, (a, b) in enumerate(pairs):
            ours, theirs = (
                [s for s in (exact.spl_of(run, reference_time) for run in case.present(i, x)) if s is not None]
                for x in (a, b)
            )
            assert prefs.trial_pairs[i, p].item() == len(ours) * len(theirs)
            total = sum((x - y for x in ours for y in theirs), Fraction(0))
            assert abs(Fraction(prefs.sums[i, p].item(), prefs.unit) - total) <= Fraction(
                len(ours) * len(theirs), 10**12
            )
            assert prefs.ties[i, p].item() == sum(x == y for x in ours for y in theirs)


GRIDS = ([0.25, 0.5, 1.0], 4, "uniform(3)")


@settings(max_examples=examples(100))
@given(cases(max_instances=1, max_systems=2, max_trials=1, missing=False), st.sampled_from(GRIDS))
def test_grids_equal_the_judge(case, grid):
    if len(case.runs[0]) < 2:
        return
    levels = list(grid_levels(grid))
    a, b = case.runs[0][0][0], case.runs[0][1][0]
    prefs = tp.all_preferences(case.trajectories(), ("rpp", "ipp"), grid=grid)
    for measure in ("rpp", "ipp"):
        wanted = getattr(exact, measure)(a, b, levels)
        assert Fraction(prefs[measure].sums[0, 0].item(), MILLION) == wanted


# ------------------------------------------------------------------------------------------------ what changes nothing


def same(one: dict[str, tp.Preferences], two: dict[str, tp.Preferences], measures=tp.MEASURES) -> None:
    for measure in measures:
        assert torch.equal(one[measure].sums, two[measure].sums), measure
        assert torch.equal(one[measure].ties, two[measure].ties), measure
        assert torch.equal(one[measure].trial_pairs, two[measure].trial_pairs), measure


@settings(max_examples=examples(100))
@given(cases(max_systems=4))
def test_adding_a_system_changes_no_delta(case):
    """SPL, which has no reference time here, is the exception."""
    whole = tp.all_preferences(case.trajectories())
    without = Case([list(row[:-1]) for row in case.runs])
    if not without.runs[0]:
        return
    fewer = tp.all_preferences(without.trajectories())
    old = [p for p, (a, b) in enumerate(whole["lr"].pairs.tolist()) if b < len(case.runs[0]) - 1]
    for measure in ("sr", "pr", "lr", "rpp", "ipp"):
        assert torch.equal(whole[measure].sums[:, old], fewer[measure].sums), measure


@settings(max_examples=examples(100))
@given(cases(), st.randoms(use_true_random=False))
def test_order_of_systems_and_instances_changes_nothing(case, random):
    names = [f"s{i}" for i in range(len(case.runs[0]))]
    tasks = [f"t{i}" for i in range(len(case.runs))]
    cols, rows = list(range(len(names))), list(range(len(tasks)))
    random.shuffle(cols)
    random.shuffle(rows)
    shuffled = Case([[case.runs[i][s] for s in cols] for i in rows])
    one = tp.all_preferences(case.trajectories(systems=names, instances=tasks))
    two = tp.all_preferences(
        shuffled.trajectories(systems=[names[s] for s in cols], instances=[tasks[i] for i in rows])
    )
    same(one, two)
    for measure in tp.MEASURES:
        assert torch.equal(one[measure].pair_means().nan_to_num(9), two[measure].pair_means().nan_to_num(9))
    assert one["rpp"].tie_rate() == two["rpp"].tie_rate() or one["rpp"].run_pairs == 0


@settings(max_examples=examples(60))
@given(cases(), st.integers(1, 4))
def test_padding_changes_nothing(case, padding):
    same(tp.all_preferences(case.trajectories()), tp.all_preferences(case.trajectories(padding=padding)))


@settings(max_examples=examples(60))
@given(cases(max_systems=4), st.sampled_from([1, 2, 7, 30]))
def test_block_size_changes_nothing(case, cells):
    runs = case.trajectories()
    jumps = curves(runs)
    pairs = all_pairs(len(runs.systems))
    one, two = reference.compare_pairs(jumps, pairs), reference.compare_pairs(jumps, pairs, max_cells=cells)
    for name in ("lr", "rpp", "ipp", "lr_ties", "rpp_ties", "ipp_ties", "lr_solved", "lr_sooner"):
        assert torch.equal(getattr(one, name), getattr(two, name)), name


@settings(max_examples=examples(60))
@given(cases(), st.sampled_from([2, 3, 1000]))
def test_multiplying_ticks_changes_nothing(case, factor):
    scaled = Case(
        [
            [
                [run and Run(tuple((t and t * factor, v) for t, v in run.points), run.truncated) for run in cell]
                for cell in row
            ]
            for row in case.runs
        ]
    )
    same(tp.all_preferences(case.trajectories()), tp.all_preferences(scaled.trajectories()))


# -------------------------------------------------------------------------------------------------------------- laws

one_pair = cases(max_instances=1, max_systems=2, max_trials=1, missing=False).filter(
    lambda case: len(case.runs[0]) == 2
)
untruncated = cases(max_instances=1, max_systems=2, max_trials=1, missing=False, truncation=False).filter(
    lambda case: len(case.runs[0]) == 2
)
known = cases(max_instances=1, max_systems=2, max_trials=1, missing=False, truncation=False, unknown=False).filter(
    lambda case: len(case.runs[0]) == 2
)


def deltas(a: Run, b: Run) -> dict[str, float]:
    prefs = tp.all_preferences(Case([[[a], [b]]]).trajectories())
    return {measure: prefs[measure].delta.item() for measure in exact.MEASURES}


def both(case: Case) -> tuple[Run, Run]:
    return case.runs[0][0][0], case.runs[0][1][0]


@settings(max_examples=examples(100))
@given(one_pair)
def test_law_antisymmetry(case):
    a, b = both(case)
    forward, backward = deltas(a, b), deltas(b, a)
    assert all(forward[m] == -backward[m] for m in forward)
    assert all(value == 0 for value in deltas(a, a).values())


@settings(max_examples=examples(100))
@given(untruncated)
def test_law_lr_agrees_with_sr(case):
    delta = deltas(*both(case))
    if delta["sr"]:
        assert delta["lr"] == delta["sr"]


@settings(max_examples=examples(100))
@given(one_pair)
def test_law_success_only_makes_the_three_equal(case):
    a, b = (Run(tuple((tick, float(value >= 0.5)) for tick, value in run.points), run.truncated) for run in both(case))
    delta = deltas(a, b)
    assert delta["lr"] == delta["rpp"] == delta["ipp"]


@settings(max_examples=examples(100))
@given(untruncated, st.integers(2, 5))
def test_law_lr_and_rpp_know_only_the_order_of_times(case, power):
    a, b = both(case)
    ticks = sorted({t for run in (a, b) for t, _ in run.points if t})
    stretched = {0: 0, **{t: (k + 1) ** power for k, t in enumerate(ticks)}}
    mapped = [Run(tuple((None if t is None else stretched[t], v) for t, v in run.points)) for run in (a, b)]
    before, after = deltas(a, b), deltas(*mapped)
    assert before["lr"] == after["lr"] and before["rpp"] == after["rpp"]


@settings(max_examples=examples(100))
@given(known, st.lists(st.sampled_from([0.2, 0.4, 0.6, 0.9]), max_size=3))
def test_law_refining_the_grid_leaves_lr_and_rpp(case, extra):
    a, b = both(case)
    levels = sorted({level / MILLION for level in a.attained() | b.attained()} | set(extra))
    if not levels:
        return
    runs = case.trajectories()
    exact_grid, finer = tp.all_preferences(runs), tp.all_preferences(runs, grid=levels)
    for measure in ("lr", "rpp"):
        assert torch.equal(exact_grid[measure].sums, finer[measure].sums)


@pytest.mark.parametrize(("levels", "wanted"), [((0.50001, 0.5), 0), ((0.500011, 0.5), 11e-6), ((1e-5, 0.0), 0)])
def test_the_tie_rule_is_ten_millionths(levels, wanted):
    delta = deltas(*(Run(((5, level),)) for level in levels))
    assert [delta[measure] for measure in ("pr", "rpp", "ipp")] == pytest.approx([wanted] * 3)
    assert delta["lr"] == 1


def test_finer_grid_changes_ipp():
    """A trap: an interval split where neither curve moves leaves a piece that ties."""
    runs = pair_of(run_of([(2, 1)]), run_of([(4, 1)])).trajectories(clock="steps")
    assert tp.preferences(runs, "ipp").delta.item() == 1
    assert tp.preferences(runs, "ipp", grid=[0.5, 1.0]).delta.item() == 0.5


@settings(max_examples=examples(100))
@given(known, st.data())
def test_law_dominance(case, data):
    """f ≥ f′ everywhere and f ≠ f′: LR = 1 and RPP > 0 (unless the difference is within the tie rule)."""
    a, _ = both(case)
    worse = Run(tuple((t + data.draw(st.integers(0, 3)), v) for t, v in a.points))
    ticks = [t for t, _ in worse.points]
    if ticks != sorted(ticks):
        return
    steps = sorted({t for run in (a, worse) for t, _ in run.points})

    def f(run: Run, tick: int) -> int:
        return max((level for t, level in run.curve() if t <= tick), default=0)

    area = [f(a, t) - f(worse, t) for t in steps]
    assert all(value >= 0 for value in area)
    delta = deltas(a, worse)
    if any(area):
        assert delta["lr"] == 1
        assert delta["rpp"] > 0 or max(area) <= 10
    else:
        assert delta["lr"] == 0 and delta["rpp"] == 0


@settings(max_examples=examples(150))
@given(
    cases(max_instances=1, max_systems=3, max_trials=1, missing=False, truncation=False, unknown=False).filter(
        lambda case: len(case.runs[0]) == 3
    )
)
def test_law_lr_is_transitive(case):
    prefs = tp.preferences(case.trajectories(), "lr")
    ab, ac, bc = prefs.sums[0].tolist()
    for first, second, direct in ((ab, bc, ac), (-ab, ac, bc), (ac, -bc, ab)):
        if first >= 0 and second >= 0:
            assert direct >= max(first, second) if (first or second) else direct == 0


def test_rpp_can_cycle():
    """Three runs, each preferred to the next: why a ranking needs a model."""
    a = run_of([(1, 0.2), (5, 0.6), (9, 1)])
    b = run_of([(2, 0.2), (6, 0.6), (7, 1)])
    c = run_of([(3, 0.2), (4, 0.6), (8, 1)])
    prefs = tp.preferences(Case([[[a], [b], [c]]], resolution=1.0).trajectories(clock="steps"), "rpp")
    ab, ac, bc = prefs.delta[0].tolist()
    assert (ab, bc, -ac) == pytest.approx((0.2, 0.2, 0.6))


# ------------------------------------------------------------------------------------------- truncation, by its rules


@pytest.mark.parametrize(
    ("stopped", "rival", "wanted"),
    [
        ([(10, 0.5)], [(11, 1.0)], 0),  # reached later than the limit: nobody knows who was sooner
        ([(10, 0.5)], [(10, 1.0)], -1),  # reached by the limit
        ([(10, 0.5)], [(None, 1.0)], 0),
        ([], [(3, 1.0)], 0),  # stopped at an unknown time
    ],
)
def test_truncated_runs(stopped, rival, wanted):
    a, b = Run(tuple(stopped), truncated=True), Run(tuple(rival))
    assert exact.sooner(a, b, MILLION) == wanted
    runs = Case([[[a], [b]]], resolution=1.0).trajectories(clock="steps")
    signs = tp.preferences(runs, "lr")["system-1", "system-2"].level_signs("instance-1")
    assert signs[1.0] == wanted


# ------------------------------------------------------------------------------------------------ means, split, names


def two_benchmarks() -> tp.Trajectories:
    returns = torch.tensor([[[1.0], [0.0], [1.0]], [[0.0], [1.0], [1.0]], [[1.0], [0.5], [0.25]]])
    times = torch.tensor([[[2.0], [5.0], [1.0]], [[9.0], [3.0], [4.0]], [[7.0], [7.0], [7.0]]])
    return tp.Trajectories(
        returns, times={"cost": times}, systems=["a", "b", "c"], instances=["x", "y", "z"],
        benchmarks=["one", "one", "two"],
    )  # fmt: skip


def test_means_and_weights():
    prefs = tp.preferences(two_benchmarks(), "sr")
    assert prefs.delta.tolist() == [[1, 0, -1], [-1, -1, 0], [1, 1, 0]]
    assert prefs.pair_means().tolist() == pytest.approx([1 / 3, 0, -1 / 3])
    by_benchmark = tp.preferences(two_benchmarks(), "sr", weights="benchmark")
    assert by_benchmark.pair_means().tolist() == pytest.approx([0.5, 0.25, -0.25])
    own = tp.preferences(two_benchmarks(), "sr", weights={"one": 0.0, "two": 5.0})
    assert own.pair_means().tolist() == [1, 1, 0]
    assert own.weight_sums()[0].tolist() == [0, 5, 5]
    mean = prefs.mean()
    assert torch.equal(mean, -mean.T)
    assert prefs.shared().tolist() == [[3, 3, 3]] * 3
    assert prefs.tie_rate() == pytest.approx(3 / 9)


@settings(max_examples=examples(60))
@given(cases())
def test_split_adds_up_to_the_mean(case):
    prefs = tp.preferences(case.trajectories(), "lr")
    total = sum(prefs.pair_split().values())
    assert torch.allclose(total.nan_to_num(0), prefs.pair_means().nan_to_num(0), atol=1e-12)


def test_split_and_contradictions():
    """b solves one task more, a is sooner on the two that both solve: LR prefers a and the pair is marked."""
    returns = torch.tensor([[[1.0], [1.0]], [[1.0], [1.0]], [[0.0], [1.0]], [[0.5], [0.25]]])
    times = torch.tensor([[[1.0], [2.0]], [[1.0], [2.0]], [[1.0], [2.0]], [[1.0], [2.0]]])
    prefs = tp.preferences(tp.Trajectories(returns, times={"steps": times}, systems=["a", "b"]), "lr")
    split = prefs.split()
    assert split["solved more"][0, 1] == -0.25
    assert split["sooner"][0, 1] == 0.5
    assert split["further"][0, 1] == 0.25
    assert prefs.mean()[0, 1] == 0.5
    assert prefs.contradictions().tolist() == [True]


def test_pair_by_name():
    prefs = tp.preferences(two_benchmarks(), "rpp")
    pair = prefs["c", "a"]
    assert pair.delta.tolist() == [1, 1, -0.75]
    assert pair.level_signs("z") == {0.25: 0, 1.0: -1}
    assert pair.mean == pytest.approx((1 + 1 - 0.75) / 3)
    frame = pair.to_frame()
    assert frame["instance"].to_list() == ["x", "y", "z"]
    assert "RPP('c', 'a')" in repr(pair)
    with pytest.raises(tp.UsageError, match="no system 'd'"):
        prefs["a", "d"]
    with pytest.raises(tp.UsageError, match="did you mean 'a'"):
        prefs["A", "b"]
    with pytest.raises(tp.UsageError, match="no system '?0"):
        prefs[0, 1]
    with pytest.raises(tp.UsageError, match="itself"):
        prefs["a", "a"]


def test_missing_runs_are_neither_failures_nor_ties():
    returns = torch.ones(2, 2, 1)
    present = torch.tensor([[True, False], [True, True]])
    prefs = tp.preferences(tp.Trajectories(returns, present=present), "sr")
    assert prefs.mask.tolist() == [[False], [True]]
    assert prefs.tie_rate() == 1
    assert prefs.shared().tolist() == [[2, 1], [1, 1]]


def test_nothing_to_compare():
    none = tp.preferences(tp.Trajectories(torch.zeros(0, 2, 3)), "rpp")
    assert torch.isnan(none.pair_means()).all()
    assert none.tie_rate() != none.tie_rate()
    alone = tp.all_preferences(tp.Trajectories(torch.ones(4, 1, 3)))
    assert all(p.pairs.shape == (0, 2) and p.mean().tolist() == [[0.0]] for p in alone.values())
    assert "1 systems" in repr(alone["rpp"])
    no_steps = tp.all_preferences(tp.Trajectories(torch.zeros(2, 2, 0)))
    assert all(p.tie_rate() == 1 for p in no_steps.values())


def test_frame_and_dict():
    prefs = tp.preferences(two_benchmarks(), "lr")
    frame = prefs.to_frame()
    assert frame.columns[-3:] == ["solved_more", "sooner", "further"]
    assert frame.height == 3
    record = prefs.to_dict()
    assert record["measure"] == "lr" and record["systems"] == ["a", "b", "c"]


def test_wrong_use():
    runs = two_benchmarks()
    with pytest.raises(tp.UsageError, match="unknown measure 'xyz'"):
        tp.preferences(runs, "xyz")
    with pytest.raises(tp.UsageError, match="no clock 'steps'"):
        tp.preferences(runs, "lr", clock="steps")
    with pytest.raises(tp.UsageError, match="weights are at least 0"):
        tp.preferences(runs, "lr", weights=[1.0, -1.0, 1.0])
    with pytest.raises(tp.UsageError, match="no weight is given"):
        tp.preferences(runs, "lr", weights={"x": 1.0})
    with pytest.raises(tp.UsageError, match="unknown grid"):
        tp.preferences(runs, "lr", grid="fine")
    assert tp.preferences(runs, "RPP").measure == "rpp"
