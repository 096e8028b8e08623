"""Bradley–Terry: golden cases, independent solvers, gradients, what happens without a finite solution."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bt_problems import minorise_maximise, random_problem, slow_components, square
from profiles import examples
from torchpref.errors import UsageError
from torchpref.stats.bradley_terry.model import BradleyTerry, bradley_terry

NAN = float("nan")


def theta(fit: BradleyTerry) -> list[float | None]:
    return [None if math.isnan(x) else x for x in fit.theta.tolist()]


def ranks(fit: BradleyTerry) -> list[int | None]:
    return fit.to_dict()["rank"]


def y_of(rows: list[list[float]]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


# Golden cases


def test_a_pair_has_the_log_odds_of_its_preference():
    fit = bradley_terry(y_of([[0.5, 0.8], [0.2, 0.5]]), systems=["a", "b"])
    assert fit.status == "ok"
    assert fit.theta.tolist() == pytest.approx([math.log(4) / 2, -math.log(4) / 2], abs=1e-14)
    assert ranks(fit) == [1, 2]
    assert fit.tiers == [["a", "b"]]


def test_three_systems_whose_scores_are_known():
    scores = torch.tensor([math.log(3), 0.0, -math.log(3)], dtype=torch.float64)
    fit = bradley_terry(torch.sigmoid(scores[:, None] - scores[None, :]))
    assert torch.allclose(fit.theta, scores, atol=1e-14, rtol=0)


def test_two_exactly_tied_systems_share_a_rank():
    y = y_of([[0.5, 0.5, 0.7, 0.9], [0.5, 0.5, 0.7, 0.9], [0.3, 0.3, 0.5, 0.8], [0.1, 0.1, 0.2, 0.5]])
    fit = bradley_terry(y)
    assert abs(fit.theta[0] - fit.theta[1]) < 1e-9
    assert ranks(fit) == [1, 1, 3, 4]


def test_only_ties():
    fit = bradley_terry(torch.full((4, 4), 0.5))
    assert fit.theta.tolist() == [0.0] * 4
    assert ranks(fit) == [1] * 4
    assert fit.status == "ok"


def test_a_single_system():
    fit = bradley_terry(torch.tensor([[0.5]]), systems=["only"])
    assert (fit.status, theta(fit), ranks(fit), fit.tiers) == ("single", [0.0], [1], [["only"]])
    assert "only" in fit.message


def test_no_system():
    fit = bradley_terry(torch.zeros(0, 0))
    assert (fit.status, theta(fit), ranks(fit), fit.tiers, fit.gradient_norm) == ("empty", [], [], [], 0.0)


# No finite solution


def test_a_system_without_a_win_is_a_tier_of_its_own():
    y, _ = random_problem(5, seed=1)
    y[2], y[:, 2] = 0.0, 1.0
    fit = bradley_terry(y, systems=["a", "b", "zero", "d", "e"])
    assert fit.status == "separated"
    assert fit.tiers == [["a", "b", "d", "e"], ["zero"]]
    assert "zero" in fit.message
    rest = [0, 1, 3, 4]
    alone = bradley_terry(y[rest][:, rest])
    assert torch.allclose(fit.theta[rest], alone.theta, atol=1e-12, rtol=0)
    assert theta(fit)[2] is None
    assert ranks(fit)[2] == 5
    assert [ranks(fit)[i] for i in rest] == ranks(alone)


def test_a_system_that_always_wins_ranks_first_without_a_score():
    y = y_of([[0.5, 0.7, 0.0], [0.3, 0.5, 0.0], [1.0, 1.0, 0.5]])
    fit = bradley_terry(y)
    assert fit.tiers == [["2"], ["0", "1"]]
    assert theta(fit)[:2] == pytest.approx([math.log(7 / 3) / 2, -math.log(7 / 3) / 2], abs=1e-12)
    assert theta(fit)[2] is None
    assert ranks(fit) == [2, 3, 1]


def test_a_pair_of_which_one_always_wins_has_ranks_but_no_scores():
    fit = bradley_terry(y_of([[0.5, 0.0], [1.0, 0.5]]), systems=["a", "b"])
    assert fit.status == "separated"
    assert (theta(fit), ranks(fit), fit.tiers) == ([None, None], [2, 1], [["b"], ["a"]])
    assert "b > a; no two systems can be scored together" in fit.message


def test_two_components_that_never_met_cannot_be_ordered():
    y = torch.full((5, 5), NAN, dtype=torch.float64)
    y[0, 1], y[1, 0] = 0.6, 0.4
    for a, b, value in ((2, 3, 0.7), (3, 4, 0.6), (2, 4, 0.8)):
        y[a, b], y[b, a] = value, 1 - value
    fit = bradley_terry(y, systems=["a", "b", "c", "d", "e"])
    assert fit.status == "disconnected"
    assert fit.tiers is None
    assert theta(fit)[:2] == [None, None]
    assert ranks(fit) == [None, None, 1, 2, 3]
    assert "a, b" in fit.message and "c, d, e" in fit.message


def test_three_tiers_in_order():
    y = square(torch.tensor([0.5] * 10), 5)
    tiers = [[3], [0, 4], [1, 2]]
    for i, upper in enumerate(tiers):
        for lower in tiers[i + 1 :]:
            for a in upper:
                for b in lower:
                    y[a, b], y[b, a] = 1.0, 0.0
    y[1, 2], y[2, 1] = 0.3, 0.7
    fit = bradley_terry(y)
    assert fit.status == "separated"
    assert fit.tiers == [["3"], ["0", "4"], ["1", "2"]]
    # Of the two tiers of two systems the higher one is scored.
    assert theta(fit) == [0.0, None, None, None, 0.0]
    assert ranks(fit) == [2, 5, 4, 1, 2]


def test_components_that_are_only_partly_ordered_give_no_tiers():
    y = torch.full((4, 4), NAN, dtype=torch.float64)
    for a, b, value in ((0, 1, 0.6), (0, 2, 1.0), (1, 3, 1.0)):
        y[a, b], y[b, a] = value, 1 - value
    fit = bradley_terry(y)
    assert fit.status == "separated"
    assert fit.tiers is None
    assert ranks(fit) == [1, 2, None, None]


def test_a_system_without_comparisons_leaves_the_tiers_of_the_others_ranked():
    y = torch.full((4, 4), NAN, dtype=torch.float64)
    for a, b, value in ((0, 1, 0.6), (0, 2, 1.0), (1, 2, 1.0)):
        y[a, b], y[b, a] = value, 1 - value
    fit = bradley_terry(y, systems=["a", "b", "c", "ghost"])
    assert fit.status == "disconnected"
    assert fit.tiers is None
    assert ranks(fit) == [1, 2, 3, None]
    assert "ghost was compared with no other system" in fit.message


def test_weights_of_zero_are_no_comparison():
    y, w = random_problem(4, seed=3)
    w[3], w[:, 3] = 0.0, 0.0
    assert bradley_terry(y, w).status == "disconnected"


def test_rounding_near_zero_is_zero():
    almost = 2.0**-53 * -1  # the last bit of 1, as sums of tenths leave it
    y = square(torch.tensor([0.6, 1 + almost, 1 + almost], dtype=torch.float64), 3)
    assert y[0, 2] < 1
    y[2, :2] = -almost
    fit = bradley_terry(y)
    assert fit.status == "separated"
    assert theta(fit)[2] is None


@given(st.integers(2, 7), st.integers(0, 10**6))
def test_no_large_numbers_whatever_the_graph(systems, seed):
    rng = np.random.default_rng(seed)
    values = torch.from_numpy(rng.choice([0.0, 1.0, 0.5, 0.25, NAN], size=systems * (systems - 1) // 2))
    y = square(values, systems)
    fit = bradley_terry(y)
    wins = (y > 0).numpy() & ~np.eye(systems, dtype=bool)
    status, tiers, ordered, chosen = slow_components(wins)
    assert fit.status == status
    assert {i for i, x in enumerate(theta(fit)) if x is not None} == chosen
    assert all(abs(x) < 50 for x in theta(fit) if x is not None)
    assert abs(float(fit.theta[sorted(chosen)].sum())) < 1e-9
    assert fit.gradient_norm < 1e-12
    assert (fit.tiers is not None) == ordered
    if ordered:
        assert fit.tiers == [[str(i) for i in sorted(tier)] for tier in tiers]
        rank = ranks(fit)
        better = [max(rank[i] for i in tier) for tier in tiers]
        worse = [min(rank[i] for i in tier) for tier in tiers]
        assert all(b < w for b, w in zip(better, worse[1:], strict=False))


# Against independent solvers


@pytest.mark.parametrize("systems", [34, 200, 1000])
def test_equal_to_independent_solvers(systems):
    y, w = random_problem(systems, seed=systems)
    fit = bradley_terry(y, w)
    assert fit.status == "ok"
    assert fit.gradient_norm < 1e-12
    y, w = y.numpy(), w.numpy()
    if systems <= 200:
        assert np.abs(fit.theta.numpy() - minorise_maximise(y, w)).max() < 1e-8

    def stationarity(point):
        d = point[:, None] - point[None, :]
        return (w * (scipy.special.expit(d) - y)).sum(1) / w.sum(1) + point.mean()

    start = scipy.special.logit((y * w).sum(1) / w.sum(1))
    found = scipy.optimize.newton_krylov(stationarity, start, f_tol=1e-13)
    assert np.abs(fit.theta.numpy() - found).max() < 1e-8


def test_the_gradient_norm_is_that_of_the_stated_objective():
    y, w = random_problem(12, seed=5)
    fit = bradley_terry(y, w)
    point = fit.theta.clone().requires_grad_(True)
    d = point[:, None] - point[None, :]
    upper = torch.triu(torch.ones(12, 12, dtype=torch.bool), 1)
    loss = -(w * (y * torch.nn.functional.logsigmoid(d) + (1 - y) * torch.nn.functional.logsigmoid(-d)))[upper].sum()
    (slope,) = torch.autograd.grad(loss / w[upper].sum(), point)
    assert slope.abs().max() < 1e-12
    assert fit.gradient_norm < 1e-12


def test_extreme_but_connected_preferences_are_solved():
    y = torch.full((40, 40), NAN, dtype=torch.float64)
    for a in range(39):  # a chain: scores 13.8 apart, 539 from end to end
        y[a, a + 1], y[a + 1, a] = 1 - 1e-6, 1e-6
    fit = bradley_terry(y)
    assert fit.status == "ok"
    assert fit.gradient_norm < 1e-12
    assert torch.allclose(fit.theta.diff(), torch.full((39,), -math.log(1e6 - 1), dtype=torch.float64), rtol=1e-8)


def test_weights_far_apart():
    y = y_of([[0.5, 0.7, 0.6], [0.3, 0.5, 0.2], [0.4, 0.8, 0.5]])
    w = y_of([[0, 1e9, 1e-3], [1e9, 0, 0], [1e-3, 0, 0]])
    fit = bradley_terry(y, w)
    assert float(fit.theta[0] - fit.theta[1]) == pytest.approx(math.log(7 / 3), abs=1e-10)
    assert float(fit.theta[0] - fit.theta[2]) == pytest.approx(math.log(6 / 4), rel=1e-6)


# Laws


fractions = st.integers(1, 999).map(lambda k: k / 1000)


@settings(max_examples=examples(200))
@given(st.integers(2, 8).flatmap(lambda s: st.lists(fractions, min_size=s * (s - 1) // 2, max_size=s * (s - 1) // 2)))
def test_on_complete_equally_weighted_data_the_order_is_that_of_mean_preference(values):
    systems = int((1 + math.isqrt(1 + 8 * len(values))) // 2)
    y = square(torch.tensor(values, dtype=torch.float64), systems)
    fit = bradley_terry(y)
    means = [round(1000 * float(row.sum() - 0.5)) for row in y]  # thousandths: exact
    for a in range(systems):
        for b in range(systems):
            if means[a] > means[b]:
                assert fit.theta[a] > fit.theta[b] and ranks(fit)[a] < ranks(fit)[b]
            if means[a] == means[b]:
                assert ranks(fit)[a] == ranks(fit)[b]


@given(st.integers(2, 8), st.integers(0, 10**6))
def test_renaming_reversing_and_scaling(systems, seed):
    y, w = random_problem(systems, seed)
    fit = bradley_terry(y, w)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(systems))
    assert torch.allclose(bradley_terry(y[order][:, order], w[order][:, order]).theta, fit.theta[order], atol=1e-10)
    assert torch.allclose(bradley_terry(1 - y, w).theta, -fit.theta, atol=1e-10)
    assert torch.allclose(bradley_terry(y, 7 * w).theta, fit.theta, atol=1e-10)


def test_the_diagonal_is_ignored():
    y, w = random_problem(4, seed=2)
    other = y.clone()
    other.fill_diagonal_(NAN)
    assert torch.equal(bradley_terry(y, w).theta, bradley_terry(other, w.fill_diagonal_(9.0)).theta)


# Ridge


def test_ridge_minimises_the_objective_of_the_docstring():
    y, w = random_problem(6, seed=4)
    y[0], y[:, 0] = 0.0, 1.0
    fit = bradley_terry(y, w, ridge=0.05, systems=list("abcdef"))
    assert fit.status == "regularised"
    assert "a" in fit.message and "ridge 0.05" in fit.message
    point = fit.theta.clone().requires_grad_(True)
    d = point[:, None] - point[None, :]
    upper = torch.triu(torch.ones(6, 6, dtype=torch.bool), 1)
    loss = -(w * (y * torch.nn.functional.logsigmoid(d) + (1 - y) * torch.nn.functional.logsigmoid(-d)))[upper].sum()
    total = loss / w[upper].sum() + 0.05 / 2 * (point**2).sum()
    (slope,) = torch.autograd.grad(total, point)
    assert slope.abs().max() < 1e-12
    assert abs(float(fit.theta.sum())) < 1e-12
    assert ranks(fit)[0] == 6


def test_ridge_on_islands_centres_each():
    y = torch.full((4, 4), NAN, dtype=torch.float64)
    y[0, 1], y[1, 0], y[2, 3], y[3, 2] = 1.0, 0.0, 0.3, 0.7
    fit = bradley_terry(y, ridge=0.1)
    assert fit.status == "regularised"
    assert float(fit.theta[0] + fit.theta[1]) == pytest.approx(0, abs=1e-12)
    assert float(fit.theta[2] + fit.theta[3]) == pytest.approx(0, abs=1e-12)


def test_ridge_leaves_a_sound_problem_ok():
    y, w = random_problem(4, seed=4)
    assert bradley_terry(y, w, ridge=0.1).status == "ok"


@pytest.mark.parametrize("ridge", [-1.0, 1e-12, NAN, float("inf")])
def test_bad_ridge(ridge):
    with pytest.raises(UsageError, match="ridge"):
        bradley_terry(torch.full((2, 2), 0.5), ridge=ridge)


# Batches


def test_a_batch_is_its_problems_one_by_one():
    problems = [random_problem(5, seed=s) for s in range(6)]
    y = torch.stack([p[0] for p in problems]).reshape(2, 3, 5, 5)
    w = torch.stack([p[1] for p in problems]).reshape(2, 3, 5, 5)
    y[0, 1, 2], y[0, 1, :, 2] = 0.0, 1.0
    y[1, 2, 4], y[1, 2, :, 4] = NAN, NAN
    fit = bradley_terry(y, w, systems=list("abcde"))
    assert fit.theta.shape == (2, 3, 5)
    assert fit.ranks().shape == (2, 3, 5)
    assert fit.gradient_norm.shape == (2, 3)
    assert fit.gradient_norm.max() < 1e-12
    for i in range(2):
        for j in range(3):
            single = bradley_terry(y[i, j], w[i, j], systems=list("abcde"))
            assert torch.allclose(fit.theta[i, j], single.theta, atol=1e-11, rtol=0, equal_nan=True)
            assert (fit.status[i][j], fit.message[i][j]) == (single.status, single.message)
            assert fit.tiers[i][j] == single.tiers
            assert fit.to_dict()["rank"][i][j] == ranks(single)
    assert fit.status == [["ok", "separated", "ok"], ["ok", "ok", "disconnected"]]
    assert "4 ok" in repr(fit)


@pytest.mark.parametrize("ridge", [0.0, 0.03])
@pytest.mark.parametrize("systems", [3, 8, 34])
def test_a_problem_of_a_batch_does_not_depend_on_the_others(systems, ridge):
    pairs = [random_problem(systems, seed=s) for s in range(20)]
    y, w = (torch.stack([pair[part] for pair in pairs]) for part in (0, 1))
    y[3, 1], y[3, :, 1] = 0.0, 1.0
    y[5, 2], y[5, :, 2] = NAN, NAN
    y.requires_grad_(True)
    w.requires_grad_(True)

    def solved(rows: list[int]) -> tuple[torch.Tensor, ...]:
        fit = bradley_terry(y[rows], w[rows], ridge=ridge)
        slopes = torch.autograd.grad(torch.nansum(fit.theta * torch.arange(systems)), (y, w))
        return fit.theta.detach(), *(slope[rows] for slope in slopes)

    whole = solved(list(range(20)))
    for rows in ([0], [5, 3], list(range(19, -1, -2))):
        for part, alone in zip(whole, solved(rows), strict=True):
            assert np.array_equal(part[rows].numpy(), alone.numpy(), equal_nan=True)


def test_one_set_of_weights_for_a_batch():
    y = torch.stack([random_problem(4, seed=s)[0] for s in range(3)])
    w = random_problem(4, seed=9)[1]
    fit = bradley_terry(y, w)
    assert torch.allclose(fit.theta[2], bradley_terry(y[2], w).theta, atol=1e-11)


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 3, 3), (2, 0, 0)])
def test_empty_batches(shape):
    fit = bradley_terry(torch.zeros(shape))
    assert fit.theta.shape == shape[:-1]
    assert len(fit.status) == shape[0]


# Gradients


def upper_to_theta(systems: int, missing: tuple[int, ...] = (), ridge: float = 0.0, scored: tuple[int, ...] = ()):
    first, second = torch.triu_indices(systems, systems, 1)

    def function(values: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        keep = torch.ones(values.shape[-1], dtype=torch.bool)
        keep[list(missing)] = False
        values = torch.where(keep, values, NAN)
        index = torch.zeros(systems, systems, dtype=torch.int64)
        index[first, second] = index[second, first] = torch.arange(values.shape[-1])
        sign = torch.zeros(systems, systems, dtype=torch.float64)
        sign[first, second], sign[second, first] = 1.0, -1.0
        y = 0.5 + sign * (values[..., index] - 0.5)
        w = torch.where(sign == 0, 0.0, weights[..., index])
        fit = bradley_terry(y, w, ridge=ridge).theta
        return fit[..., list(scored)] if scored else fit

    return function


@pytest.mark.parametrize("ridge", [0.0, 0.03])
@pytest.mark.parametrize("missing", [(), (0, 4)])
def test_gradients_against_finite_differences(ridge, missing):
    rng = np.random.default_rng(0)
    values = torch.from_numpy(rng.uniform(0.2, 0.8, 10)).requires_grad_(True)
    weights = torch.from_numpy(rng.uniform(0.5, 2.0, 10)).requires_grad_(True)
    assert torch.autograd.gradcheck(upper_to_theta(5, missing, ridge), (values, weights), eps=1e-5, atol=1e-7)


def test_gradients_of_a_batch_against_finite_differences():
    rng = np.random.default_rng(1)
    values = torch.from_numpy(rng.uniform(0.2, 0.8, (2, 6))).requires_grad_(True)
    weights = torch.from_numpy(rng.uniform(0.5, 2.0, (2, 6))).requires_grad_(True)
    assert torch.autograd.gradcheck(upper_to_theta(4), (values, weights), eps=1e-5, atol=1e-7)


def test_gradients_within_the_scored_component_of_a_separated_problem():
    rng = np.random.default_rng(2)
    values = torch.from_numpy(rng.uniform(0.2, 0.8, 6))
    values[[2, 4, 5]] = 1.0  # system 3 loses to 0, 1 and 2
    inner = values[[0, 1, 3]].clone().requires_grad_(True)

    def function(free: torch.Tensor) -> torch.Tensor:
        full = torch.stack([free[0], free[1], values[2], free[2], values[4], values[5]])
        return upper_to_theta(4, scored=(0, 1, 2))(full, torch.ones(6, dtype=torch.float64))

    assert torch.autograd.gradcheck(function, (inner,), eps=1e-5, atol=1e-7)
    y = square(values, 4).requires_grad_(True)
    fit = bradley_terry(y)
    torch.nansum(fit.theta[:3] * torch.arange(3.0)).backward()
    assert torch.isfinite(y.grad).all()
    assert (y.grad[3] == 0).all() and (y.grad[:, 3] == 0).all()


def test_missing_pairs_get_no_gradient_and_no_nan():
    y, _ = random_problem(4, seed=0)
    y[0, 1] = y[1, 0] = NAN
    y.requires_grad_(True)
    bradley_terry(y).theta[0].backward()
    assert torch.isfinite(y.grad).all()
    assert y.grad[0, 1] == 0 and y.grad[0, 2] != 0


def test_float32_preferences_keep_their_type_of_gradient():
    y = square(torch.tensor([0.6, 0.7, 0.8]), 3).float().requires_grad_(True)
    fit = bradley_terry(y)
    assert fit.theta.dtype is torch.float64
    fit.theta[0].backward()
    assert y.grad.dtype is torch.float32


# Interface


class FakePreferences:
    systems = ("x", "y", "z")

    def mean(self):
        return torch.tensor([[0.0, 0.2, 0.4], [-0.2, 0.0, NAN], [-0.4, NAN, 0.0]], dtype=torch.float64)

    def weight_sums(self):
        return torch.tensor([[0.0, 5.0, 2.0], [5.0, 0.0, 0.0], [2.0, 0.0, 0.0]], dtype=torch.float64)


def test_preferences_bring_their_names_means_and_weights():
    fit = bradley_terry(FakePreferences())
    assert fit.systems == ("x", "y", "z")
    assert float(fit.theta[0] - fit.theta[1]) == pytest.approx(math.log(0.6 / 0.4), abs=1e-12)
    assert float(fit.theta[0] - fit.theta[2]) == pytest.approx(math.log(0.7 / 0.3), abs=1e-12)


def test_prints_as_a_table_and_converts():
    y, _ = random_problem(3, seed=1)
    y[2], y[:, 2] = 0.0, 1.0
    fit = bradley_terry(y, systems=["alpha", "beta", "gamma"])
    lines = repr(fit).splitlines()
    assert lines[0].split() == ["rank", "system", "log-odds"]
    assert lines[3].split() == ["3", "gamma", "-"]
    assert lines[4].startswith("separated: no finite scores for all")
    plain = json.loads(json.dumps(fit.to_dict()))
    assert plain["theta"][2] is None and plain["rank"][2] == 3 and plain["tiers"] == [["alpha", "beta"], ["gamma"]]
    frame = fit.to_frame()
    assert frame.columns == ["system", "rank", "theta"]
    assert frame["theta"].null_count() == 1
    assert frame["rank"].to_list() == plain["rank"]
    batch = bradley_terry(torch.stack([y, y])).to_frame()
    assert batch.shape == (6, 4) and batch["problem"].to_list() == [0, 0, 0, 1, 1, 1]


BAD = [
    ({"preferences": torch.zeros(3)}, r"\[\.\.\., system, system\], got shape \[3\]"),
    ({"preferences": torch.zeros(2, 3)}, r"got shape \[2, 3\]"),
    ({"preferences": [[0.5]]}, "got list"),
    ({"preferences": torch.tensor([[0.5, 1.2], [-0.2, 0.5]])}, r"\[0, 1\].*at \[0, 1\] it is 1.2"),
    ({"preferences": torch.tensor([[0.5, 0.7], [0.7, 0.5]])}, r"y_AB \+ y_BA = 1; at \[0, 1\] it is 0.7"),
    ({"preferences": torch.tensor([[0.5, NAN], [0.7, 0.5]])}, "NaN for a pair in one order"),
    ({"preferences": torch.full((2, 2), 0.5), "weights": torch.ones(3, 3)}, r"weights of shape \[3, 3\] do not fit"),
    ({"preferences": torch.full((1, 1), 0.5), "weights": torch.ones(3, 3)}, r"weights of shape \[3, 3\] do not fit"),
    ({"preferences": torch.full((2, 2), 0.5), "weights": torch.tensor([[0.0, -1.0], [-1.0, 0.0]])}, "at least 0; at"),
    ({"preferences": torch.full((2, 2), 0.5), "weights": torch.tensor([[0.0, NAN], [NAN, 0.0]])}, "finite"),
    ({"preferences": torch.full((2, 2), 0.5), "weights": torch.tensor([[0.0, 1.0], [2.0, 0.0]])}, "symmetric"),
    ({"preferences": torch.full((2, 2), 0.5), "systems": ["a"]}, "1 names were given for 2 systems"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_wrong_use_is_told_with_the_value(arguments, message):
    with pytest.raises(UsageError, match=message):
        bradley_terry(**arguments)


def test_a_fit_imports_neither_the_compiler_nor_scipy():
    code = (
        "import sys, torch; from torchpref.stats.bradley_terry.model import bradley_terry; "
        "bradley_terry(torch.tensor([[.5, .6, .7], [.4, .5, .8], [.3, .2, .5]])); "
        "bad = {'torch._dynamo', 'scipy', 'numba', 'polars'} & set(sys.modules); sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_systems_that_were_never_compared_have_no_rank():
    fit = bradley_terry(torch.full((3, 3), torch.nan))
    assert fit.ranks().isnan().all() and fit.theta.isnan().all()
