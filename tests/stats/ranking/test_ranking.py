"""Leaderboards: scores, intervals and what they say where something cannot be known."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import torchpref as tp
from profiles import examples
from samples import graded_runs, preferences_of, ternary
from torchpref.errors import UsageError
from torchpref.stats.ranking.ranking import groups, least_decided, order_doubt, rank, rank_all
from torchpref.stats.resampling.instances import resampling_units
from torchpref.stats.significance.significance import significance


def chain(instances: int = 40) -> np.ndarray:
    """Three systems of which the first always wins and the last always loses."""
    return np.ones((instances, 3), dtype=np.int64)


def test_scores_are_those_of_the_fit_and_intervals_hold_them():
    prefs = preferences_of(ternary(80, 5, 0))
    board = rank(prefs, bootstrap=400)
    fit = tp.bradley_terry(prefs)
    assert torch.equal(board.score, fit.theta)
    assert (board.interval[:, 0] < board.score).all() and (board.score < board.interval[:, 1]).all()
    assert (board.percentile[:, 0] < board.score).all() and (board.score < board.percentile[:, 1]).all()
    assert board.status == "ok" and board.replicates == {"ok": 400}
    assert board.rank.tolist() == fit.ranks().long().tolist()
    assert (board.rank_interval[:, 0] <= board.rank).all() and (board.rank <= board.rank_interval[:, 1]).all()
    assert board.share_first.sum().item() == pytest.approx(1)
    assert set(board.reasons) == {""}


def test_sandwich_and_bootstrap_agree_on_many_instances():
    board = rank(preferences_of(ternary(600, 4, 1)), bootstrap=4000)
    width = (board.interval[:, 1] - board.interval[:, 0]) / (board.percentile[:, 1] - board.percentile[:, 0])
    assert width.numpy() == pytest.approx(1, abs=0.06)


def test_the_interval_is_the_spread_of_scores_over_samples():
    scores, widths = [], []
    for seed in range(150):
        board = rank(preferences_of(ternary(100, 4, seed)), bootstrap=0)
        scores.append(board.score)
        widths.append((board.interval[:, 1] - board.interval[:, 0]) / 2 / 1.984)
    assert torch.stack(widths).mean(0).numpy() == pytest.approx(torch.stack(scores).std(0).numpy(), rel=0.15)


def test_a_system_that_always_wins_has_no_number():
    board = rank(preferences_of(chain()), bootstrap=50)
    assert board.status == "separated"
    assert board.rank.tolist() == [1, 2, 3] and board.ranked_by == "score"
    assert torch.isnan(board.interval).all()
    assert board.reasons[0].startswith("it won every comparison")
    assert board.reasons[2].startswith("it lost every comparison")
    assert board["system-1"]["score"] is None and board["system-1"]["share_first"] == 1.0
    assert any(line.startswith("separated: ") for line in repr(board).splitlines())


def test_replicates_without_a_solution_are_counted_and_make_limits_missing():
    delta = ternary(12, 3, 0, spread=0.5, ties=0.1)
    delta[:, 0] = -1
    delta[0, 0] = 1  # one instance alone keeps the first from always losing to the second
    delta[:, 1] = np.where(np.arange(12) < 2, 1, -1)
    board = rank(preferences_of(delta), bootstrap=1000)
    assert board.status == "ok" and sum(board.replicates.values()) == 1000
    assert board.replicates["separated"] > 50
    assert torch.isnan(board.percentile[0]).tolist() == [True, False]  # the lower limit lies among those without one
    assert torch.isnan(board.interval[0]).all() and "on the lesser side" in board.reasons[0]


def test_fewer_than_ten_decided_instances_give_no_interval():
    delta = np.zeros((50, 3), dtype=np.int64)
    delta[:9] = ternary(9, 3, 0, ties=0)
    delta[0, 0], delta[1, 0], delta[0, 2], delta[1, 2] = 1, -1, 1, -1
    board = rank(preferences_of(delta), bootstrap=20)
    assert torch.isnan(board.interval).all()
    assert all(reason == "only 9 instances decided, at least 10 are needed" for reason in board.reasons)
    assert board["system-1"]["score"] is not None


@settings(max_examples=examples(25))
@given(st.integers(0, 10_000))
def test_on_complete_data_first_places_by_mean_and_by_score_are_the_same(seed):
    prefs = preferences_of(ternary(25, 4, seed))
    board = rank(prefs, bootstrap=60, seed=seed)
    from torchpref.stats.bradley_terry.batch import fit_pairs
    from torchpref.stats.resampling.instances import Resampler, draw_weights, resampling_units

    drawn = Resampler(prefs).means(draw_weights("bootstrap", resampling_units(prefs.benchmarks), 0, 60, seed))
    fit = fit_pairs((drawn.means + 1) / 2, None, 4)
    ok = fit.status == 0
    if bool(ok.all()):
        best = fit.theta >= fit.theta.amax(1, keepdim=True) - 1e-9
        share = (best / best.sum(1, keepdim=True)).mean(0)
        assert board.share_first.numpy() == pytest.approx(share.numpy(), abs=1e-6)


def test_missing_runs_are_ranked_by_score_or_by_mean_preference():
    runs = graded_runs(instances=40, systems=4, missing=0.4)
    board = rank(tp.preferences(runs, "rpp"), bootstrap=200)
    assert board.ranked_by == "score" and sum(board.replicates.values()) == 200
    present = runs.present.clone()
    present[:20, 2:] = present[20:, :2] = False
    apart = tp.Trajectories(runs.returns.double() / 1e6, times={"steps": runs.times["steps"]}, present=present)
    board = rank(tp.preferences(apart, "rpp"), bootstrap=50)
    assert board.ranked_by == "mean preference" and board.status == "disconnected"
    assert (board.rank >= 1).all() and torch.isfinite(board.share_first).all()


def test_groups_are_maximal_runs_without_a_significant_pair():
    tests = significance(preferences_of(ternary(60, 8, 0, spread=2)))
    board = rank(preferences_of(ternary(60, 8, 0, spread=2)), bootstrap=0)
    order = [board.systems[i] for i in board.order]
    runs = []
    for first in range(8):
        for last in range(first, 8):
            names = order[first : last + 1]
            if not any(tests[a, b]["significant"] for a in names for b in names if a != b):
                runs.append((first, last))
    maximal = [r for r in runs if not any(o != r and o[0] <= r[0] and r[1] <= o[1] for o in runs)]
    assert board.groups == tuple(tuple(order[a : b + 1]) for a, b in maximal)
    assert len(board.groups) > 1
    assert groups(significance(preferences_of(np.zeros((5, 0), dtype=int))), ["only"], 0.05) == (("only",),)


def test_elo_is_another_scale_of_the_same():
    prefs = preferences_of(ternary(40, 3, 0))
    odds, elo = rank(prefs, bootstrap=100), rank(prefs, bootstrap=100, scale="elo")
    assert elo.score.mean().item() == pytest.approx(1000)
    assert ((elo.interval - 1000) * np.log(10) / 400).numpy() == pytest.approx(odds.interval.numpy())


def test_benchmarks_are_strata_and_families_are_clusters():
    delta = np.repeat(ternary(30, 3, 0), 4, axis=0)
    benchmarks = ["a"] * 60 + ["b"] * 60
    prefs = preferences_of(delta, benchmarks=benchmarks)
    alone = rank(prefs, bootstrap=300)
    together = rank(prefs, bootstrap=300, families=[i // 4 for i in range(120)])
    ratio = (together.interval[:, 1] - together.interval[:, 0]) / (alone.interval[:, 1] - alone.interval[:, 0])
    assert ratio.numpy() == pytest.approx(2, rel=0.1)
    ratio = (together.percentile[:, 1] - together.percentile[:, 0]) / (alone.percentile[:, 1] - alone.percentile[:, 0])
    assert ratio.numpy() == pytest.approx(2, rel=0.3)


def test_bayesian_bootstrap_has_about_the_same_width():
    prefs = preferences_of(ternary(200, 3, 0))
    plain, bayes = rank(prefs, bootstrap=2000), rank(prefs, bootstrap=2000, scheme="bayesian")
    widths = [(b.percentile[:, 1] - b.percentile[:, 0]).numpy() for b in (plain, bayes)]
    assert widths[1] == pytest.approx(widths[0], rel=0.1)


def test_seeds_decide_everything(monkeypatch):
    import torchpref.stats.resampling.scores as module

    prefs = preferences_of(ternary(40, 4, 0), mask=torch.from_numpy(np.random.default_rng(0).random((40, 6)) > 0.2))
    one = rank(prefs, bootstrap=700, seed=5)
    monkeypatch.setattr(module, "CHUNK", 64)
    monkeypatch.setattr(module, "_CELLS", 1 << 10)
    torch.set_num_threads(2)
    try:
        two = rank(prefs, bootstrap=700, seed=5)
    finally:
        torch.set_num_threads(1)
    assert one.to_dict() == two.to_dict()
    assert rank(prefs, bootstrap=700, seed=6).to_dict() != one.to_dict()


def test_measures_that_say_the_same_share_the_work(monkeypatch):
    import torchpref.stats.ranking.ranking as module

    runs = tp.Trajectories(torch.from_numpy(np.random.default_rng(0).integers(0, 2, (30, 3, 1))).double())
    prefs = tp.all_preferences(runs)
    calls = []
    monkeypatch.setattr(module, "bradley_terry", lambda p: calls.append(p.measure) or tp.bradley_terry(p))
    boards = rank_all(prefs, bootstrap=30)
    assert set(boards) == set(prefs) and len(calls) < len(prefs)
    for name, board in boards.items():
        assert board.measure == name
        assert board.to_dict() == rank(prefs[name], bootstrap=30).to_dict()


def test_it_converts_and_prints():
    board = rank(preferences_of(ternary(40, 4, 0)), bootstrap=50)
    plain = json.loads(json.dumps(board.to_dict()))
    assert plain["systems"] == list(board.systems) and len(plain["interval"]) == 4
    frame = board.to_frame()
    assert (
        frame["rank"].to_list() == sorted(board.rank.tolist()) and frame["system"][0] == board.systems[board.order[0]]
    )
    assert "ranked by score" in repr(board)
    with pytest.raises(UsageError, match="no system 'x'"):
        board["x"]


def test_nothing_to_rank():
    alone = rank(tp.preferences(graded_runs(systems=1), "rpp"), bootstrap=10)
    assert alone.rank.tolist() == [1] and alone.reasons == ("there is no other system",)
    assert "system-1" in repr(alone) and alone.to_frame().height == 1
    none = rank(tp.preferences(graded_runs().take(instances=[]), "rpp"), bootstrap=10)
    assert set(none.reasons) == {"it shares no instance with any other system"}
    repr(none), none.to_dict(), none.to_frame()


def test_options_are_checked():
    prefs = preferences_of([[1]])
    for options, words in (
        ({"bootstrap": -1}, "at least 0"),
        ({"scale": "points"}, "unknown scale"),
        ({"scheme": "jackknife"}, "unknown scheme"),
        ({"level": 2}, "between 0 and 1"),
        ({"families": [1, 2]}, "one per instance"),
    ):
        with pytest.raises(UsageError, match=words):
            rank(prefs, **options)


@pytest.mark.parametrize(
    ("systems", "least"), [(2, 6), (3, 7), (5, 9), (8, 11), (10, 11), (20, 13)], ids=lambda value: str(value)
)
def test_the_least_number_of_decided_instances_that_can_say_anything(systems, least):
    assert least_decided(systems * (systems - 1) // 2, 0.05) == least


def test_a_board_of_too_few_instances_says_so():
    always = np.tile([1, 1, 1], (5, 1))
    board = rank(preferences_of(always), bootstrap=0)
    assert board.rank_interval.tolist() == [[1, 3]] * 3
    assert "no test of 3 pairs can reach 5 %, at least 7 are needed" in board.rank_reason
    assert "no interval of ranks" in repr(board) and board.to_dict()["rank_reason"] == board.rank_reason
    assert "at least 7 are needed" in order_doubt(significance(preferences_of(always)))
    alike = order_doubt(significance(preferences_of(ternary(40, 3, 0, spread=0))))
    assert alike == "none of 3 pairs of systems differs significantly after Holm"
    assert order_doubt(significance(preferences_of(ternary(60, 3, 0, spread=3)))) == ""


def test_tests_at_hand_do_not_bring_their_own_error_rate():
    prefs = preferences_of(ternary(60, 8, 0, spread=1))
    strict = significance(prefs, alpha=1e-9)
    assert rank(prefs, bootstrap=0, tests=strict, alpha=0.05).groups == rank(prefs, bootstrap=0, alpha=0.05).groups


def test_ranks_are_no_narrower_than_exact_tests_allow():
    """What the intervals of differences alone would say of six instances is more than six instances can say."""
    excluded = 0
    for seed in range(300):
        board = rank(preferences_of(ternary(6, 2, seed, spread=0, ties=0.0)), bootstrap=0, seed=seed)
        excluded += board.rank_interval.tolist() != [[1, 2], [1, 2]]
    assert excluded <= 0.08 * 300


def test_steps_narrow_the_ranks_of_systems_that_are_well_apart():
    from torchpref.stats.ranking.rank_intervals import rank_intervals
    from torchpref.stats.ranking.score_errors import mean_contributions

    wide = narrow = 0
    for seed in range(20):
        prefs = preferences_of(ternary(80, 8, seed, spread=1.2))
        parts = mean_contributions(prefs, resampling_units(prefs.benchmarks))
        means = prefs.system_means().numpy()
        one, many = (rank_intervals(means, parts, 0.95, 0, stepwise=steps)[0] for steps in (False, True))
        assert (many[:, 0] >= one[:, 0]).all() and (many[:, 1] <= one[:, 1]).all()
        wide, narrow = wide + int((one[:, 1] - one[:, 0]).sum()), narrow + int((many[:, 1] - many[:, 0]).sum())
    assert narrow < wide
