"""Many replicates at once: the single fit's solution, the right status for each, the same bits however they are cut."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bt_problems import random_problem, reachability, slow_components, square
from torchpref.errors import UsageError
from torchpref.stats.bradley_terry import batch as bt_batch
from torchpref.stats.bradley_terry.batch import STATUSES, fit_pairs
from torchpref.stats.bradley_terry.model import bradley_terry

NAN = float("nan")


def upper(square_matrix: torch.Tensor) -> torch.Tensor:
    first, second = torch.triu_indices(square_matrix.shape[-1], square_matrix.shape[-1], 1)
    return square_matrix[..., first, second]


def corpus(replicates: int, systems: int, seed: int, values: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """Pairs with y from ``values`` (or, for a value of 2, anything between 0.02 and 0.98) and random weights."""
    rng = np.random.default_rng(seed)
    shape = (replicates, systems * (systems - 1) // 2)
    y = rng.choice(values, size=shape)
    y = np.where(y == 2, rng.uniform(0.02, 0.98, size=shape), y)
    return torch.from_numpy(y), torch.from_numpy(rng.uniform(0.1, 3.0, size=shape))


def limits_read_aloud(y: torch.Tensor) -> list[str]:
    """Per system: scored, low (−∞), high (+∞) or nothing, straight from the definition."""
    wins = (y > 0).numpy() & ~np.eye(len(y), dtype=bool)
    reach = reachability(wins)
    _, _, _, chosen = slow_components(wins)
    everyone = set(range(len(y)))
    inside = chosen or everyone
    kinds = []
    for system in range(len(y)):
        if system in chosen:
            kinds.append("scored")
        elif all(reach[i, system] for i in inside):
            kinds.append("low")
        elif all(reach[system, i] for i in inside):
            kinds.append("high")
        else:
            kinds.append("nothing")
    return kinds


def kind(value: float) -> str:
    if math.isnan(value):
        return "nothing"
    return "scored" if math.isfinite(value) else "high" if value > 0 else "low"


def test_a_thousand_random_problems_equal_the_single_fit():
    for systems, replicates in ((2, 100), (3, 150), (5, 250), (9, 250), (20, 150), (34, 100)):
        y, w = corpus(replicates, systems, systems, [2])
        fit = fit_pairs(y, w, systems)
        assert (fit.status == 0).all()
        weights = square(w, systems)
        weights = torch.triu(weights, 1) + torch.triu(weights, 1).mT
        single = bradley_terry(square(y, systems), weights)
        assert single.gradient_norm.max() < 1e-12
        assert (fit.theta - single.theta).abs().max() < 1e-10


@pytest.mark.parametrize("systems", [3, 6, 12])
def test_statuses_and_limits_over_a_generated_corpus(systems):
    values = {3: [0.0, 1.0, 0.5, 2, NAN], 6: [0.0, 1.0, 1.0, 2, NAN, NAN], 12: [0.0, 1.0, 2, *[NAN] * 9]}
    y, w = corpus(400, systems, systems, values[systems])
    y[::3] = torch.where(y[::3] == 0, 1.0, y[::3])  # the first of a pair wins more often: more tiers
    fit = fit_pairs(y, w, systems)
    squares = square(y, systems)
    seen = set()
    for index in range(len(y)):
        weights = torch.triu(square(w[index], systems), 1)
        single = bradley_terry(squares[index], weights + weights.mT)
        assert STATUSES[int(fit.status[index])] == single.status
        assert [kind(x) for x in fit.theta[index].tolist()] == limits_read_aloud(squares[index])
        finite = torch.isfinite(fit.theta[index])
        assert torch.equal(finite, torch.isfinite(single.theta))
        assert torch.allclose(fit.theta[index][finite], single.theta[finite], atol=1e-10, rtol=0)
        seen.add(single.status)
    assert {"separated", "disconnected"} <= seen


@given(st.integers(2, 7), st.integers(0, 10**6))
def test_torch_and_compiled_code_agree(systems, seed):
    y, w = corpus(6, systems, seed, [0.0, 1.0, 2, 2, 2, NAN])
    compiled = fit_pairs(y, w, systems)
    batched = bt_batch._fit_torch(y, w, torch.zeros(0, systems, dtype=torch.float64), systems)
    assert torch.equal(compiled.status, batched.status)
    assert torch.allclose(compiled.theta, batched.theta, atol=1e-10, rtol=0, equal_nan=True)


def test_torch_code_does_not_depend_on_its_chunks(monkeypatch):
    y, w = corpus(50, 6, 0, [0.0, 1.0, 2, 2, 2, 2, NAN])
    start = torch.zeros(0, 6, dtype=torch.float64)
    whole = bt_batch._fit_torch(y, w, start, 6)
    monkeypatch.setattr(bt_batch, "_CELLS", 36 * 7)
    cut = bt_batch._fit_torch(y, w, start, 6)
    assert torch.equal(whole.status, cut.status)
    assert torch.allclose(whole.theta, cut.theta, atol=1e-12, rtol=0, equal_nan=True)


@pytest.mark.parametrize("systems", [65, 90])
def test_more_systems_than_fit_a_word(systems):
    y, w = corpus(5, systems, systems, [2])
    y[1, : systems - 1] = 0.0  # system 0 never wins
    w[2, : systems - 1] = 0.0  # system 0 was never compared
    fit = fit_pairs(y, w, systems)
    assert [STATUSES[s] for s in fit.status.tolist()] == ["ok", "separated", "disconnected", "ok", "ok"]
    assert kind(float(fit.theta[1, 0])) == "low"
    assert kind(float(fit.theta[2, 0])) == "nothing"
    weights = torch.triu(square(w, systems), 1)
    single = bradley_terry(square(y, systems), weights + weights.mT)
    finite = torch.isfinite(single.theta)
    assert torch.equal(finite, torch.isfinite(fit.theta))
    assert (fit.theta - single.theta)[finite].abs().max() < 1e-10
    batched = bt_batch._fit_torch(y, w, torch.zeros(0, systems, dtype=torch.float64), systems)
    assert torch.allclose(fit.theta, batched.theta, atol=1e-10, rtol=0, equal_nan=True)


def test_more_than_a_word_of_systems_none_of_which_can_be_scored():
    systems = 70
    y = torch.ones(1, systems * (systems - 1) // 2)
    fit = fit_pairs(y, None, systems)
    assert STATUSES[int(fit.status[0])] == "separated"
    kinds = [kind(x) for x in fit.theta[0].tolist()]
    assert kinds == ["high", *["nothing"] * (systems - 2), "low"]


@pytest.mark.parametrize("systems", [8, 70])
def test_the_same_bits_however_replicates_are_cut_and_threaded(systems):
    y, w = corpus(300, systems, 1, [2] * 200 + [0.0])
    start = torch.linspace(-1, 1, systems, dtype=torch.float64)
    whole = fit_pairs(y, w, systems, start)
    cuts = [0, 1, 2, 64, 200, 300]
    parts = [fit_pairs(y[a:b], w[a:b], systems, start) for a, b in zip(cuts, cuts[1:], strict=False)]
    assert np.array_equal(whole.theta.numpy(), torch.cat([p.theta for p in parts]).numpy(), equal_nan=True)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        threaded = fit_pairs(y, w, systems, start)
    finally:
        torch.set_num_threads(threads)
    assert np.array_equal(whole.theta.numpy(), threaded.theta.numpy(), equal_nan=True)
    assert torch.equal(whole.status, threaded.status)


def test_the_start_does_not_matter():
    y, w = corpus(40, 10, 2, [2])
    solution = fit_pairs(y, w, 10).theta
    for start in (torch.zeros(10), torch.linspace(-30, 30, 10), solution, torch.full((10,), -math.inf)):
        assert torch.allclose(fit_pairs(y, w, 10, start).theta, solution, atol=1e-11, rtol=0)


def test_one_row_of_weights_serves_all():
    y, w = corpus(20, 6, 3, [2])
    one = fit_pairs(y, w[:1], 6).theta
    assert torch.equal(one, fit_pairs(y, w[:1].expand(20, -1), 6).theta)
    assert torch.equal(fit_pairs(y, None, 6).theta, fit_pairs(y, torch.ones_like(y), 6).theta)


def test_the_pairs_of_a_square():
    y, w = random_problem(6, seed=1)
    batch = torch.stack([y, y])
    fit = fit_pairs(upper(batch), upper(w[None]), 6)
    assert torch.equal(fit.theta[0], fit.theta[1])
    assert torch.allclose(fit.theta[0], bradley_terry(y, w).theta, atol=1e-10, rtol=0)


@pytest.mark.parametrize(("systems", "odds"), [(40, 1e6), (64, 1e12), (120, 1e6)])
def test_a_chain_of_extreme_preferences(systems, odds):
    y = torch.full((1, systems, systems), NAN, dtype=torch.float64)
    for a in range(systems - 1):
        y[0, a, a + 1] = 1 - 1 / odds
    fit = fit_pairs(upper(y), None, systems)
    assert fit.status.tolist() == [0]
    expected = torch.full((systems - 1,), -math.log(odds - 1), dtype=torch.float64)
    assert torch.allclose(fit.theta[0].diff(), expected, rtol=1e-15 * odds + 1e-12)


def test_weights_a_quintillion_apart():
    y = torch.tensor([[0.7, 0.6, 0.2]], dtype=torch.float64)
    w = torch.tensor([[1e9, 1e-9, 0.0]], dtype=torch.float64)
    fit = fit_pairs(y, w, 3)
    assert float(fit.theta[0, 0] - fit.theta[0, 1]) == pytest.approx(math.log(7 / 3), abs=1e-12)
    assert float(fit.theta[0, 0] - fit.theta[0, 2]) == pytest.approx(math.log(6 / 4), abs=1e-12)


def test_rounding_beyond_the_range_is_the_limit():
    y = torch.tensor([[0.6, 1 + 1e-15, 1 - 1e-16]], dtype=torch.float64)
    fit = fit_pairs(y, None, 3)
    assert [kind(x) for x in fit.theta[0].tolist()] == ["scored", "scored", "low"]


@pytest.mark.parametrize(("systems", "status"), [(0, "empty"), (1, "single")])
def test_nothing_to_compare(systems, status):
    fit = fit_pairs(torch.zeros(3, 0), None, systems)
    assert fit.theta.tolist() == [[0.0] * systems] * 3
    assert [STATUSES[s] for s in fit.status.tolist()] == [status] * 3


def test_no_replicates():
    assert fit_pairs(torch.zeros(0, 3), None, 3).theta.shape == (0, 3)


BAD = [
    (lambda: fit_pairs(torch.zeros(2, 4), None, 3), r"\[replicate, 3\] for 3 systems, got shape \[2, 4\]"),
    (lambda: fit_pairs(torch.full((2, 3), 0.5), torch.ones(3, 3), 3), r"\[1 or 2, 3\], got shape \[3, 3\]"),
    (lambda: fit_pairs(torch.full((2, 3), 1.5), None, 3), r"y must lie in \[0, 1\]"),
    (lambda: fit_pairs(torch.full((2, 3), 0.5), torch.full((1, 3), -1.0), 3), "at least 0"),
    (lambda: fit_pairs(torch.full((2, 3), 0.5), torch.full((1, 3), NAN), 3), "finite"),
    (lambda: fit_pairs(torch.full((2, 3), 0.5), None, 3, torch.zeros(4)), r"start must be \[3\] or \[2, 3\]"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_wrong_use(call, message):
    with pytest.raises(UsageError, match=message):
        call()


@pytest.mark.gpu
def test_on_the_gpu():
    y, w = corpus(200, 12, 5, [2] * 30 + [0.0, 1.0, NAN])
    host = fit_pairs(y, w, 12)
    device = fit_pairs(y.cuda(), w.cuda(), 12)
    assert torch.equal(host.status, device.status.cpu())
    assert torch.allclose(host.theta, device.theta.cpu(), atol=1e-10, rtol=0, equal_nan=True)
