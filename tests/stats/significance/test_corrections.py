"""Corrections against their textbook definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchpref.errors import UsageError
from torchpref.stats.significance.corrections import adjust, resolve_correction

P = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def by_definition(p: list[float], correction: str) -> list[float]:
    """The definitions read aloud, quadratic."""
    m = len(p)
    order = sorted(range(m), key=lambda i: p[i])
    result = [0.0] * m
    for rank, i in enumerate(order):
        if correction == "holm":
            result[i] = min(1.0, max((m - k) * p[order[k]] for k in range(rank + 1)))
        else:
            factor = m * (sum(1 / k for k in range(1, m + 1)) if correction == "by" else 1)
            result[i] = min(1.0, min(factor * p[order[k]] / (k + 1) for k in range(rank, m)))
    return result


@given(P, st.sampled_from(["holm", "bh", "by"]))
def test_adjusted_p_values(p, correction):
    assert adjust(np.array(p), correction) == pytest.approx(by_definition(p, correction), rel=1e-12, abs=1e-15)


def test_a_pair_without_a_test_does_not_count():
    for correction in ("holm", "bh", "by", "none"):
        with_gap = adjust(np.array([0.01, np.nan, 0.04]), correction)
        assert np.isnan(with_gap[1])
        assert with_gap[[0, 2]] == pytest.approx(adjust(np.array([0.01, 0.04]), correction))
    assert np.isnan(adjust(np.array([np.nan, np.nan]), "holm")).all()


def test_rows_are_corrected_one_by_one():
    p = np.array([[0.01, 0.02, np.nan], [0.5, 0.001, 0.04]])
    assert adjust(p, "by")[1] == pytest.approx(adjust(p[1], "by"))
    assert adjust(p, "by")[0, :2] == pytest.approx(adjust(p[0, :2], "by"))


def test_names():
    assert [resolve_correction(name) for name in ("Holm", "FDR", "max_t", None)] == [
        "holm",
        "bh",
        "max-t",
        "none",
    ]
    with pytest.raises(UsageError, match="unknown correction 'bonferroni'; use holm, bh, by, max-t, none"):
        resolve_correction("bonferroni")
