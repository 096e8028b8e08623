"""Tests against a margin: the statistic by its definition, p by every outcome, level by the cells that sign flips fail."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multinomial

from torchpref.stats.significance.margins import critical_wins, tail_chances, tango_score, unconditional_p


def score_by_definition(wins, losses, size, bound):
    """(w − l − n·bound) over its deviation at the likeliest rates with that difference."""

    def cost(win):
        loss = win - bound
        rest = 1 - win - loss
        terms = ((wins, win), (losses, loss), (size - wins - losses, rest))
        return -sum(count * np.log(max(rate, 1e-300)) for count, rate in terms if count)

    low, high = max(0.0, bound), (1 + bound) / 2
    win = minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
    win = min((low + 1e-15, win, high - 1e-15), key=cost)
    return (wins - losses - size * bound) / np.sqrt(size * (2 * win - bound - bound**2))


@pytest.mark.parametrize("bound", [-0.3, -0.1, 0.05, 0.4])
def test_tangos_score_is_its_definition(bound):
    for wins, losses, size in ((3, 5, 20), (10, 2, 15), (1, 0, 9), (0, 4, 12), (7, 7, 14)):
        found = tango_score(np.array([float(wins)]), np.array([float(losses)]), size, bound)[0]
        assert found == pytest.approx(score_by_definition(wins, losses, size, bound), abs=2e-3)


@pytest.mark.parametrize("bound", [-0.25, -0.1, 0.15])
def test_p_is_the_largest_chance_over_decided_rates_by_every_outcome(bound):
    size = 11
    outcomes = [(w, d - w) for d in range(size + 1) for w in range(d + 1)]
    wins, losses = (np.array(each, dtype=float) for each in zip(*outcomes, strict=True))
    scores = tango_score(wins, losses, size, bound)
    rates = np.linspace(abs(bound), 1, 400)
    counts = np.stack([wins, losses, size - wins - losses], 1).astype(int)
    chances = np.stack([multinomial.pmf(counts, size, [(q + bound) / 2, (q - bound) / 2, 1 - q]) for q in rates])
    for won, lost in ((6, 1), (3, 3), (0, 5), (11, 0), (0, 0), (2, 0)):
        own = tango_score(np.array([float(won)]), np.array([float(lost)]), size, bound)[0]
        wanted = chances[:, scores >= own - 1e-9].sum(1).max()
        assert unconditional_p(won, lost, size, bound) == pytest.approx(wanted, abs=2e-3), (won, lost)


def test_scores_rise_with_wins_so_that_the_tail_is_a_number_of_wins():
    for size, bound in ((17, -0.2), (40, 0.1)):
        for score in (-1.0, 0.3, 1.7):
            least = critical_wins(size, bound, score)
            for decided in range(size + 1):
                wins = np.arange(decided + 1.0)
                enough = tango_score(wins, decided - wins, size, bound) >= score - 1e-9
                assert (np.flatnonzero(enough) == np.arange(least[decided], decided + 1)).all()


@pytest.mark.parametrize("size", [20, 60])
@pytest.mark.parametrize("margin", [0.05, 0.1, 0.3])
def test_level_at_every_decided_rate(size, margin):
    low, high = 1.0, 3.0
    rates = margin + (1 - margin) * np.linspace(0, 1, 150)
    for _ in range(12):
        middle = (low + high) / 2
        over = tail_chances(size, -margin, rates, critical_wins(size, -margin, middle)).max() > 0.05
        low, high = (middle, high) if over else (low, middle)
    least = critical_wins(size, -margin, high)
    # Outcomes at the edge of the region have p ≤ .05, and the region's chance stays within it at every rate.
    d = size // 2
    if least[d] <= d:
        assert unconditional_p(int(least[d]), d - int(least[d]), size, -margin) <= 0.0505
    assert tail_chances(size, -margin, np.linspace(margin, 1, 777), least).max() <= 0.0505
