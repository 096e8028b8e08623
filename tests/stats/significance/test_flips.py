"""Simulated sign flips: their p-values, max-T, and that nothing but the seed matters."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torchpref.stats.significance.flips as module
from torchpref.stats.significance.exact import lattice_p
from torchpref.stats.significance.flips import count_columns, enough_flips, flip_counts


def test_simulated_p_values_agree_with_exact_ones():
    values = np.random.default_rng(0).integers(-4, 6, (40, 30))
    counts = flip_counts(torch.from_numpy(values / 4), 20_000, 1)
    exact = lattice_p(values)
    error = np.sqrt(exact * (1 - exact) / 20_000) + 1e-4
    assert (np.abs(counts.p.numpy() - exact) < 4.5 * error).all()


def test_max_t_agrees_with_all_sign_patterns():
    values = np.random.default_rng(3).integers(-3, 5, (9, 4)).astype(float)
    values[:4, 3] = np.nan
    clean = np.nan_to_num(values)
    norm = np.sqrt((clean**2).sum(0))
    patterns = np.array(list(product((1, -1), repeat=9)))
    largest = (np.abs(patterns @ clean) / norm).max(1)
    wanted = (largest[:, None] >= np.abs(clean.sum(0)) / norm - 1e-12).mean(0)
    counts = flip_counts(torch.from_numpy(values), 40_000, 0, max_t=True)
    assert counts.max_t_p.numpy() == pytest.approx(wanted, abs=0.012)
    assert (counts.max_t_p >= counts.p).all()


def test_a_tied_pair_has_p_one():
    counts = flip_counts(torch.tensor([[0.0, 1.0], [0.0, 1.0], [np.nan, 1.0]]), 500, 0, max_t=True)
    assert counts.p[0] == 1 and counts.max_t_p[0] == 1
    assert counts.p[1] < 0.5


@pytest.mark.parametrize("scale", [1, 1e-3 * np.pi])
def test_neither_pieces_nor_threads_matter(monkeypatch, scale):
    values = torch.from_numpy(np.random.default_rng(0).integers(-4, 5, (50, 12)) * scale)
    if scale != 1:
        values += torch.from_numpy(np.random.default_rng(1).normal(0, 0.01, (50, 12)))
    whole = flip_counts(values, 5000, 7, max_t=True)
    monkeypatch.setattr(module, "_AT_ONCE", 17)
    torch.set_num_threads(2)
    try:
        other = flip_counts(values, 5000, 7, max_t=True)
    finally:
        torch.set_num_threads(1)
    assert torch.equal(whole.extreme, other.extreme) and torch.equal(whole.largest, other.largest)
    assert not torch.equal(flip_counts(values, 5000, 8).extreme, whole.extreme)


def test_flips_are_enough_for_the_correction():
    assert enough_flips(561, 0.05, None) == 112_200
    assert enough_flips(561, 0.05, 10_000) == 112_200
    assert enough_flips(1, 0.05, None) == 9_999
    assert enough_flips(1, 0.05, 50_000) == 50_000


@given(st.integers(0, 600), st.integers(0, 20), st.integers(0, 2**31))
def test_counting_columns(rows, columns, seed):
    hits = torch.from_numpy(np.random.default_rng(seed).random((rows, columns)) < 0.9)
    assert torch.equal(count_columns(hits), hits.sum(0))
