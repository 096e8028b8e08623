"""Effects in plain words, against values worked out by hand."""

import json

import numpy as np
import pytest
import torch

import torchpref as tp
from torchpref.evaluation.comparison import compare
from torchpref.evaluation.effect_sizes import effect_sizes


def timed(first, second, **options):
    """One run per instance; a number is the time of success, None is failure."""
    times = torch.tensor([[1.0 if t is None else t for t in pair] for pair in zip(first, second, strict=True)])
    solved = torch.tensor([[t is not None for t in pair] for pair in zip(first, second, strict=True)])
    shape = (len(first), 2, 1, 1)
    return tp.Trajectories(
        solved.float().reshape(shape), times={"seconds": times.double().reshape(shape)}, systems=["a", "b"], **options
    )


def effects(runs, first="a", second="b"):
    return effect_sizes(runs, first, second, clock="seconds", weights="instance", level=0.95)


def test_values_by_hand():
    runs = timed([1, 2, 3, 4, None, 6, 7], [2, 4, 9, 4, 5, 3, None])
    found = effects(runs)
    assert found.success_difference.value == 0 and found.success_difference.instances == 7
    # Ratios of the five that both solve: 1/2, 1/2, 1/3, 1, 2; sooner on three, tied on one.
    assert found.time_ratio.value == pytest.approx(0.5) and found.time_ratio.instances == 5
    assert found.sooner.value == pytest.approx(0.7)
    assert np.isnan(found.time_ratio.low)  # five values cover a median in 15/16 at most
    turned = effects(runs, "b", "a")
    assert turned.time_ratio.value == pytest.approx(2) and turned.sooner.value == pytest.approx(0.3)


def test_intervals_cover():
    rng = np.random.default_rng(0)
    hits = np.zeros(2)
    for _ in range(300):
        ratio = np.exp(rng.normal(0.3, 0.8, 25))
        found = effects(timed((10 * ratio).tolist(), [10.0] * 25))
        hits += [
            found.time_ratio.low <= np.exp(0.3) <= found.time_ratio.high,
            found.sooner.low <= 0.3538 <= found.sooner.high,
        ]
    assert (hits >= 0.92 * 300).all()


def test_of_a_family_the_mean_counts_once():
    runs = timed([1.0] * 4 + [8.0, 8.0], [2.0] * 4 + [2.0, 2.0], families=["x"] * 4 + ["y", "z"])
    assert effects(runs).time_ratio.value == pytest.approx(4) and effects(runs).sooner.value == pytest.approx(1 / 3)


def test_compare_shows_and_writes_them():
    rng = np.random.default_rng(1)
    runs = timed(rng.integers(1, 9, 60).astype(float).tolist(), rng.integers(1, 9, 60).astype(float).tolist())
    result = compare(runs, "a", "b", margin=0.5)
    lr = result["lr"]
    assert lr.equivalence_p <= 0.05 and compare(runs, "a", "b", margin=0.05)["lr"].equivalence_p > 0.05
    assert np.isnan(compare(runs, "a", "b")["lr"].equivalence_p)
    assert lr.mean_p_low <= lr.mean_p_high <= 1
    record = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert record["effects"]["sooner"]["instances"] == 60 and record["margin"] == 0.5
    with pytest.raises(tp.UsageError):
        compare(runs, "a", "b", margin=1.5)


def test_where_tests_disagree_compare_says_so():
    delta = [0.05] * 38 + [-0.95] * 2
    returns = torch.tensor([[max(d, 0), max(-d, 0)] for d in delta])[..., None, None]
    pr = compare(tp.Trajectories(returns, systems=["a", "b"]), "a", "b", "pr")["pr"]
    assert pr.p > 0.05 or any("betting" in remark for remark in pr.remarks)
    clear = compare(timed([1.0] * 7, [2.0] * 7), "a", "b", "lr")["lr"]
    assert clear.p == 2**-6 and clear.mean_p > 0.05
    assert any("finds no difference" in remark for remark in clear.remarks)
