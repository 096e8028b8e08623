"""The regression estimate: the worked example, the formula in plain numbers, and coverage on made-up benchmarks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from torchpref.errors import UsageError
from torchpref.stats.sequential import history
from torchpref.stats.sequential.history import control_variate


def test_worked_example(monkeypatch):
    monkeypatch.setattr(history, "LEAST_INSTANCES", 4)
    z = np.array([1.0, 0, 1, 0, 0, 0, 0, 0])
    found = control_variate(np.array([1.0, 0, 1, 0]), z, np.arange(4))
    assert z.mean() == 0.25 and found.mean == pytest.approx(0.25, abs=1e-12)
    assert found.plain == 0.5 and found.slope == pytest.approx(1) and found.correlation == pytest.approx(1)


def test_the_formula():
    rng = np.random.default_rng(0)
    z = rng.normal(0, 0.5, 60)
    ran = rng.permutation(60)[:20]
    y = np.clip(z[ran] + rng.normal(0, 0.3, 20), -1, 1)
    y[:3] = 0
    slope, intercept = np.polyfit(z[ran], y, 1)
    residuals = y - intercept - slope * z[ran]
    squares = (residuals**2).sum() + 2 * (y[y != 0] ** 2).mean()
    found = control_variate(y, z, ran)
    assert found.slope == pytest.approx(slope)
    assert found.mean == pytest.approx(y.mean() + slope * (z.mean() - z[ran].mean()))
    assert found.error == pytest.approx(np.sqrt(squares / 20 * (1 / 20 - 1 / 60)))
    assert found.correlation == pytest.approx(np.corrcoef(y, z[ran])[0, 1])
    assert found.error_new > found.error and found.degrees == 20


def test_nothing_varies_or_nothing_is_decided():
    found = control_variate(np.zeros(20), np.full(50, 0.2), np.arange(20))
    assert (found.mean, found.slope, found.ratio) == (0, 0, 1) and np.isnan(found.correlation)
    assert found.error == pytest.approx(np.sqrt(2 / 20 * (1 / 20 - 1 / 50)))
    z = np.concatenate([np.zeros(15), np.full(35, 100.0)])
    z[0] = 1e-3
    assert abs(control_variate(np.eye(1, 15)[0], z, np.arange(15)).mean) == 1  # cut to [−1, 1]


def test_coverage_and_gain():
    rng = np.random.default_rng(1)
    covered, ours, plain = [], [], []
    for _ in range(1500):
        ease = rng.normal(0, 1, 100)
        y = np.sign(np.round(ease + rng.normal(0, 0.6, 100)))
        z = np.mean([np.sign(np.round(ease + rng.normal(0, 0.6, 100))) for _ in range(4)], axis=0)
        ran = rng.permutation(100)[:30]
        found = control_variate(y[ran], z, ran)
        covered.append(abs(found.mean - y.mean()) <= t.ppf(0.975, found.degrees) * found.error)
        ours.append((found.mean - y.mean()) ** 2)
        plain.append((found.plain - y.mean()) ** 2)
    assert 0.93 < np.mean(covered) < 0.99
    assert np.mean(ours) < 0.6 * np.mean(plain)


def test_bad_input():
    with pytest.raises(UsageError, match="from 15 instances on; the new system ran 14"):
        control_variate(np.zeros(14), np.zeros(30), np.arange(14))
