from __future__ import annotations

import math

import pytest
import torch

from meta.small import exact_deltas, fast_p, flips, kendall_tau_b, partial, random_runs, success, total
from torchpref import MEASURES, Trajectories, all_preferences, bradley_terry, preferences
from torchpref.meta.figures import (
    Replicates,
    in_chunks,
    known_signs,
    leave_one_out,
    replicate_figures,
    split_half,
    tie_rate,
)
from torchpref.meta.rankings import kendall, ranking_scores
from torchpref.meta.values import PairValues, pair_values
from torchpref.stats.resampling.instances import draw_weights, resampling_units
from torchpref.stats.significance.significance import sign_flip_tests


def values_of(runs: Trajectories, measure: str, **options: object) -> PairValues:
    return pair_values(preferences(runs, measure, **options))


def once(values: PairValues) -> torch.Tensor:
    return torch.ones((1, len(values.weights)), dtype=torch.int32)


def on_data(runs: Trajectories, measure: str, known: list[int] | None = None) -> dict[str, float]:
    prefs = preferences(runs, measure)
    p = torch.from_numpy(sign_flip_tests(prefs, 0.05, None, 0).p).unsqueeze(0)
    signs = None if known is None else known_signs(torch.tensor(known), prefs.pairs)
    values = pair_values(prefs)
    found = replicate_figures(values, once(values), alpha=0.05, known=signs, p=p)
    return {key: float(column[0]) for key, column in found.figures.items()}


def test_tie_rate_by_hand() -> None:
    # A-B ties on the last instance, A-C on three, B-C on two: 6 of 12.
    values = values_of(success("100", "101", "010", "111"), "sr")
    assert tie_rate(values, once(values)).item() == 0.5
    twice_the_first = torch.tensor([[2, 1, 1, 0]], dtype=torch.int32)  # A-B 0, A-C 2, B-C 2 of 12
    assert tie_rate(values, twice_the_first).item() == pytest.approx(4 / 12)


def test_leave_one_out_by_hand() -> None:
    # A-B: 0.5 - 0.25 + 0 = 0.25; without the first instance it is -0.25. A-C and B-C never reverse.
    values = values_of(partial([[0.75, 0.25, 0], [0.25, 0.5, 0], [0.5, 0.5, 0]]), "pr")
    pairs, cells = leave_one_out(values, once(values), values.sums(once(values)))
    assert (pairs.item(), cells.item()) == (pytest.approx(1 / 3), pytest.approx(1 / 9))


def test_a_change_to_zero_is_no_flip() -> None:
    # A-B: 0.5 + 0.25 - 0.25 = 0.5; without the first instance exactly 0.
    values = values_of(partial([[0.75, 0.25], [0.5, 0.25], [0.25, 0.5]]), "pr")
    assert [x.item() for x in leave_one_out(values, once(values), values.sums(once(values)))] == [0, 0]


def test_split_half_by_hand() -> None:
    values = values_of(partial([[0.75, 0.25, 0], [0.25, 0.5, 0], [0.5, 0.5, 0]]), "pr")
    first, second = torch.tensor([[1, 0, 0]]), torch.tensor([[0, 1, 1]])
    found = split_half(values, first, second)
    # (0.5, 0.75, 0.25) against (-0.125, 0.375, 0.5)
    wanted = (-0.0625 + 0.28125 + 0.125) / math.sqrt(0.875 * 0.40625)
    assert found["split_half_pairs"].item() == pytest.approx(wanted)
    assert found["split_half_ranking"].item() == pytest.approx(1 / 3)  # A B C against B A C


def test_discriminative_power_by_hand() -> None:
    # A beats B and C six times of six: p = 2/64; Holm over three pairs 6/64, Benjamini-Hochberg 3/64. B and C always tie.
    found = on_data(success(*["100"] * 6), "sr", known=[0, 1, 2])
    assert (found["power_fwer"], found["power_fdr"]) == (0.0, pytest.approx(2 / 3))
    # B against C is a tie, and a tie is wrong.
    assert found["oracle_accuracy"] == pytest.approx(2 / 3)
    assert (found["oracle_fwer"], found["oracle_fdr"]) == (0.0, pytest.approx(2 / 3))
    # Eight of eight: p = 2/256, and Holm's 6/256 is enough.
    assert on_data(success(*["100"] * 8), "sr")["power_fwer"] == pytest.approx(2 / 3)


def test_oracle_judges_named_systems_only_and_the_right_direction() -> None:
    runs = success(*["100"] * 8)
    assert on_data(runs, "sr", known=[1, 0, -1])["oracle_accuracy"] == 0.0
    assert on_data(runs, "sr", known=[1, 0, -1])["oracle_fwer"] == 0.0  # significant, but wrong
    assert on_data(runs, "sr", known=[0, 1, -1])["oracle_fwer"] == 1.0


def test_kendall_by_hand() -> None:
    scores = torch.tensor([[3.0, 1.0, 1.0]])  # A > B = C
    other = torch.tensor([[3.0, 1.0, 2.0]])  # A > C > B
    assert kendall(scores, other).item() == pytest.approx(2 / math.sqrt(2 * 3))
    assert math.isnan(kendall(torch.ones(1, 3), other).item())
    assert kendall(scores, torch.tensor([[1.0, 2.0, 3.0]])).item() == pytest.approx(-2 / math.sqrt(6))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("trials", "missing"), [(1, 0.0), (3, 0.0), (2, 0.3)])
def test_figures_agree_with_definitions_read_aloud(measure: str, trials: int, missing: float) -> None:
    for seed in range(4):
        runs = random_runs(seed, trials=trials, missing=missing, instances=9)
        prefs = preferences(runs, measure)
        values = pair_values(prefs)
        drawn = draw_weights("bootstrap", resampling_units(runs.benchmarks), 0, 5, seed).int()
        known = known_signs(torch.arange(4), prefs.pairs)
        found = replicate_figures(values, drawn, alpha=0.05, known=known).figures
        rows = exact_deltas(prefs)
        ties = (prefs.ties.double() / prefs.trial_pairs.clamp(min=1).double()).tolist()
        for k, weights in enumerate(drawn.tolist()):
            copies = [row for row, count in zip(rows, weights, strict=True) for _ in range(count)]
            pairs = sorted({pair for row in copies for pair in row})
            flipped, cells = flips(copies)
            assert found["leave_one_out"][k].item() == pytest.approx(float(flipped))
            assert found["leave_one_out_cells"][k].item() == pytest.approx(float(cells))
            right = sum(total(copies, pair) > 0 for pair in pairs)
            assert found["oracle_accuracy"][k].item() == pytest.approx(right / len(pairs))
            shares = [
                ties[i][j]
                for i, count in enumerate(weights)
                for _ in range(count)
                for j in range(len(prefs.pairs))
                if prefs.trial_pairs[i, j]
            ]
            assert found["tie_rate"][k].item() == pytest.approx(sum(shares) / len(shares))


@pytest.mark.parametrize("missing", [0.0, 0.35])
def test_split_half_agrees_with_both_orientations_and_bradley_terry(missing: float) -> None:
    runs = random_runs(5, instances=30, missing=missing)
    values = values_of(runs, "rpp")
    half = draw_weights("halves", resampling_units(runs.benchmarks), 0, 6, 1).int()
    found = split_half(values, half, 1 - half)
    for k in range(6):
        parts = [runs.take(instances=(half[k] == side).nonzero().squeeze(1).tolist()) for side in (1, 0)]
        means = [preferences(part, "rpp").mean() for part in parts]
        off = ~torch.eye(4, dtype=torch.bool)
        x, y = (mean[off] for mean in means)
        correlation = torch.corrcoef(torch.stack([x, y]))[0, 1]  # over both orientations the means are 0
        assert found["split_half_pairs"][k].item() == pytest.approx(correlation.item())
        fits = [bradley_terry(preferences(part, "rpp")) for part in parts]
        assert all(fit.status == "ok" for fit in fits)
        tau = kendall_tau_b(*([round(score, 8) for score in fit.theta.tolist()] for fit in fits))
        assert found["split_half_ranking"][k].item() == pytest.approx(tau)


def test_ranking_by_mean_preference_without_a_finite_fit() -> None:
    runs = success("10.", "1.0", ".10", "100")  # A always wins, B beats C once
    values = values_of(runs, "sr")
    scores = ranking_scores(values, values.sums(once(values)), values.weight_sums(once(values)))
    assert scores[0].tolist() == [1.0, (-1 + 0.5) / 2, (-1 - 0.5) / 2]


@pytest.mark.parametrize("measure", MEASURES)
def test_the_order_of_names_changes_nothing(measure: str) -> None:
    runs = random_runs(3, instances=24, trials=2)
    renamed = Trajectories(
        runs.returns.double() / 1e6,
        times={"time": runs.times["time"].double() * runs.resolution["time"]},
        systems=["d", "c", "b", "a"],
    )
    half = draw_weights("halves", resampling_units(runs.benchmarks), 0, 4, 0).int()
    results = []
    for each, order in ((runs, [0, 1, 2, 3]), (renamed, [3, 2, 1, 0])):
        found = on_data(each, measure, known=order)
        found |= {key: column.tolist() for key, column in split_half(values_of(each, measure), half, 1 - half).items()}
        results.append(found)
    assert results[0].keys() == results[1].keys()
    for key in results[0]:
        assert results[0][key] == pytest.approx(results[1][key], nan_ok=True), key


@pytest.mark.parametrize("measure", MEASURES)
def test_identical_systems_tie_always_and_differ_never(measure: str) -> None:
    runs = random_runs(0, systems=1)
    twins = Trajectories(
        (runs.returns.double() / 1e6).expand(-1, 3, -1, -1),
        times={"time": (runs.times["time"] * 1e-6).expand(-1, 3, -1, -1)},
    )
    found = on_data(twins, measure, known=[0, 1, 2])
    assert found["tie_rate"] == 1.0
    assert found["power_fwer"] == found["power_fdr"] == found["leave_one_out"] == found["oracle_accuracy"] == 0.0


@pytest.mark.parametrize("measure", ["sr", "lr"])
@pytest.mark.parametrize("seed", range(5))
def test_no_flips_for_sr_and_lr_with_one_trial(measure: str, seed: int) -> None:
    runs = random_runs(seed, instances=11, missing=0.2)
    values = values_of(runs, measure)
    drawn = draw_weights("bootstrap", resampling_units(runs.benchmarks), 0, 50, seed).int()
    assert float(replicate_figures(values, drawn, alpha=0.05).figures["leave_one_out"].max()) == 0.0


def test_chunks_change_nothing() -> None:
    values = values_of(random_runs(1, instances=20), "rpp")
    drawn = draw_weights("bootstrap", resampling_units([""] * 20), 0, 7, 0).int()

    def work(rows: torch.Tensor) -> Replicates:
        return replicate_figures(values, rows, alpha=0.05, ranking=True)

    whole, parts = work(drawn), in_chunks(drawn, (1 << 21) // 2, work)  # two rows at a time
    assert whole.scores is not None and parts.scores is not None
    assert torch.equal(whole.scores, parts.scores)
    for key, column in whole.figures.items():
        assert torch.equal(column, parts.figures[key]), key


def test_weights_of_instances_count() -> None:
    # A-B: 2 · 0.25 - 0.375 > 0, and without the first instance < 0; unweighted it is negative from the start.
    runs = partial([[0.5, 0.25], [0.125, 0.5]])
    values = values_of(runs, "pr", weights=[2.0, 1.0])
    assert values.sums(once(values)).item() > 0
    assert leave_one_out(values, once(values), values.sums(once(values)))[0].item() == 1.0
    assert values_of(runs, "pr").sums(once(values)).item() < 0


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("trials", [1, 2])
def test_fast_test_decides_as_the_exact_one(measure: str, trials: int) -> None:
    runs = random_runs(7, instances=60, systems=8, trials=trials)
    prefs = all_preferences(runs, [measure])[measure]
    values = pair_values(prefs)
    fast = fast_p(values, once(values), values.sums(once(values)))[0]
    tests = sign_flip_tests(prefs, 0.05, None, 0)
    exact = torch.from_numpy(tests.p)
    low = (exact > 1e-3) & (exact < 0.3)
    assert bool(low.any())
    assert torch.allclose(fast[low], exact[low], rtol=0.2)
    for alpha in (0.05, 0.01):
        assert int(((fast <= alpha) != (exact <= alpha)).sum()) <= 1


@pytest.mark.parametrize("rest", [0.01, 0.1, 0.3])
def test_fast_test_where_one_instance_outweighs_all_others(rest: float) -> None:
    generator = torch.Generator().manual_seed(0)
    small = rest * torch.rand((40, 6, 1), generator=generator, dtype=torch.float64)
    returns = torch.cat([torch.tensor([1.0, 0.0, 0.5, 0.9, 0.2, 0.7], dtype=torch.float64).reshape(1, 6, 1), small])
    prefs = preferences(Trajectories(returns), "pr")
    values = pair_values(prefs)
    fast = fast_p(values, once(values), values.sums(once(values)))[0]
    exact = torch.from_numpy(sign_flip_tests(prefs, 0.05, 100_000, 0).p)
    assert torch.allclose(fast, exact, rtol=0.1, atol=0.005)


def test_fast_test_keeps_the_least_possible_p() -> None:
    values = values_of(partial([[1.0, 0.0], [0.125, 0.0], [0.125, 0.0], [0.0, 0.0]]), "pr")
    # 1 + 1/8 + 1/8 is reached by no other signs: 2 of 8.
    assert fast_p(values, once(values), values.sums(once(values))).item() == pytest.approx(0.25)


def test_fast_test_of_few_instances_is_exact() -> None:
    # 1/2 + 1/2 - 1/4 = 3/4; with the sign of 1/4 held fixed, 5/4 and -3/4 of four sums are as far from 0.
    values = values_of(partial([[0.5, 0.0], [0.5, 0.0], [0.0, 0.25]]), "pr")
    assert fast_p(values, once(values), values.sums(once(values))).item() == pytest.approx(0.5)
