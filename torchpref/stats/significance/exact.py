"""Exact p-values of the sign-flip test: no simulation, and no floor at one over the number of flips.

Under the hypothesis that two systems are exchangeable on every instance, the sign of Δ of each instance is a fair coin.
The p-value is the chance that |Σ ± vₓΔₓ| is at least what was observed. Three ways, whichever applies:

- Δ is 0 or ±c: the sum is a binomial variable;
- vₓΔₓ are whole multiples of one step: the distribution of the sum is found from its characteristic function by FFT, after
  exponential tilting that moves its centre to the observed sum, so that p keeps its relative precision however small it is
  (a plain FFT is lost in rounding below 1e-15);
- few instances differ from 0: all sign patterns are counted.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from torchpref.stats.resampling.instances import fixed_point

#: Up to this many instances that differ from 0, all sign patterns are counted.
ENUMERATION_LIMIT = 14
#: Pairs whose characteristic function takes more values than this (frequencies × distinct steps) are left to simulation.
LATTICE_LIMIT = 1 << 20
_FFT_CELLS = 1 << 22
#: Denominators that are tried for a lattice, and how far a value may lie from it: thirds in millionths do not add up.
DENOMINATORS = 2520
_SNAP = 1e-5


def binomial_p(wins: NDArray[np.int64], losses: NDArray[np.int64]) -> NDArray[np.float64]:
    """Two-sided p of ``wins`` against ``losses`` fair coins; 1 where there is none."""
    from scipy.special import bdtr

    decided = wins + losses
    tail = bdtr(np.minimum(wins, losses).astype(float), decided, 0.5)
    return np.where(decided > 0, np.minimum(1.0, 2 * tail), 1.0)


def lattice_steps(values: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Values as whole multiples of one step, or None where no step down to 1/2520 fits all.

    Each value is moved by at most 1e-5. Moving is an odd function of the value, so the test stays exact: it is the sign-flip
    test of the moved values.
    """
    denominator = lattice_denominator(values)
    return None if denominator is None else np.rint(values * denominator).astype(np.int64)


def lattice_denominator(values: NDArray[np.float64]) -> int | None:
    """The least number of steps that make 1 such that all values are whole multiples; None above 2520."""
    distinct = np.unique(np.abs(values))
    if len(distinct) > 2 * DENOMINATORS:
        return None
    for denominator in range(1, DENOMINATORS + 1):
        scaled = distinct * denominator
        if len(distinct) > 8 and np.abs(scaled[:8] - np.rint(scaled[:8])).max() > _SNAP * denominator:
            continue
        if np.abs(scaled - np.rint(scaled)).max(initial=0.0) <= _SNAP * denominator:
            return denominator
    return None


def lattice_p(steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Two-sided p of each column of ``steps`` [instance, pair]; NaN where that would take too long."""
    pairs = steps.shape[1]
    result = np.ones(pairs)
    size = np.abs(steps)
    step = np.gcd.reduce(size, axis=0) if len(size) else np.zeros(pairs, dtype=np.int64)
    size = size // np.maximum(step, 1)
    observed = np.abs(steps.sum(0)) // np.maximum(step, 1)
    reach = size.sum(0)
    everything = (observed == reach) & (reach > 0)
    result[everything] = np.ldexp(2.0, -np.count_nonzero(size[:, everything], axis=0))
    open_ = np.flatnonzero((observed > 0) & ~everything)
    distinct = np.array([len(np.unique(size[:, pair])) for pair in open_], dtype=np.int64)
    too_long = (reach[open_] // 2 + 1) * distinct > LATTICE_LIMIT
    result[open_[too_long]] = np.nan
    open_ = open_[~too_long]
    open_ = open_[np.argsort(reach[open_], kind="stable")]
    while len(open_):
        # Sorted by length, so that a batch shares a transform that is hardly longer than any of them needs.
        take = max(1, min(len(open_), int(_FFT_CELLS // (2 * reach[open_[0]] + 2))))
        batch = open_[:take][reach[open_[:take]] <= 2 * reach[open_[0]] + 64]
        result[batch] = _tail(size[:, batch], observed[batch])
        open_ = open_[len(batch) :]
    return result


def _tail(size: NDArray[np.int64], observed: NDArray[np.int64]) -> NDArray[np.float64]:
    """2 P(S ≥ observed) for S = Σ ± size, by the tilted characteristic function; observed lies inside the support."""
    values = np.unique(size)
    values = values[values > 0]
    counts = np.stack([np.count_nonzero(size == value, axis=0) for value in values], axis=1).astype(
        float
    )  # [pair, value]
    tilt = _tilts(values.astype(float), counts, observed.astype(float))
    reach = size.sum(0)

    # S = 2K − reach, K = Σ value · (number of + signs); frequencies of K, half of them by symmetry.
    length = fast_length(int(reach.max()) + 1)
    frequency = torch.arange(length // 2 + 1, dtype=torch.float64) * (2 * np.pi / length)
    log_size = torch.zeros((len(observed), len(frequency)), dtype=torch.float64)
    angle = torch.zeros_like(log_size)
    up = torch.from_numpy(1 / (1 + np.exp(-2 * tilt[:, None] * values)))  # [pair, value], chance of a + sign
    for column, value in enumerate(values):
        p = up[:, column, None]
        turn = torch.remainder(frequency * int(value), 2 * np.pi)
        cosine, sine = torch.cos(turn), torch.sin(turn)
        count = torch.from_numpy(counts[:, column, None])
        squared = (1 - p) ** 2 + p * p + 2 * p * (1 - p) * cosine
        log_size += torch.where(count > 0, count * 0.5 * torch.log(squared.clamp_min(1e-300)), 0.0)
        angle += count * torch.atan2(p * sine, (1 - p) + p * cosine)
    # The sign of the angle: P(k) = 1/N Σ φ(t) exp(−ikt), while irfft sums with exp(+ikt), hence the conjugate.
    transform = torch.polar(torch.exp(log_size), -angle)
    chances = torch.fft.irfft(transform, n=length, dim=1).numpy()

    start = (observed + reach) // 2
    k = np.arange(length)
    excess = 2.0 * (k - start[:, None])
    inside = (excess >= 0) & (k <= reach[:, None])
    tail = np.where(inside, chances * np.exp(-tilt[:, None] * np.where(inside, excess, 0.0)), 0.0).sum(axis=1)
    spread = np.abs(tilt[:, None] * values)
    log_moment = (counts * (spread + np.log1p(np.exp(-2 * spread)) - np.log(2.0))).sum(axis=1)
    upper: NDArray[np.float64] = np.maximum(tail, 0.0) * np.exp(log_moment - tilt * observed)
    return np.minimum(1.0, 2.0 * upper)


def _tilts(
    values: NDArray[np.float64], counts: NDArray[np.float64], observed: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The θ ≥ 0 of each pair with Σ count · value · tanh(θ · value) = observed, by bisection."""
    low, high = np.zeros(len(observed)), np.full(len(observed), 40.0 / values.min())
    for _ in range(48):
        middle = (low + high) / 2
        below = (counts * values * np.tanh(middle[:, None] * values)).sum(axis=1) < observed
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def fast_length(least: int) -> int:
    """The least number of the form 2^a 3^b 5^c that is even and at least ``least``."""
    from scipy.fft import next_fast_len

    return 2 * int(next_fast_len(max(1, -(-least // 2)), real=True))


def enumerated_p(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Two-sided p of each column of ``values`` [instance, pair] by counting sign patterns.

    Args:
        values: vₓΔₓ; every column has at most :data:`ENUMERATION_LIMIT` values that differ from 0.
    """
    rows = int(np.count_nonzero(values, axis=0).max(initial=0))
    if rows == 0 or not values.shape[1]:
        return np.ones(values.shape[1])
    order = np.argsort(-np.abs(values), axis=0, kind="stable")[:rows]
    column = torch.from_numpy(np.take_along_axis(values, order, axis=0))
    whole = fixed_point(column, rows).limbs[0]
    # The first sign is held fixed: a pattern and its opposite have the same |sum|.
    bits = (torch.arange(2 ** (rows - 1))[:, None] >> torch.arange(rows - 1)) & 1
    signs = torch.cat([torch.ones((len(bits), 1)), 1.0 - 2.0 * bits], dim=1).double()
    sums = signs @ whole
    # Rounding to whole numbers moves each term by up to half: sums that are equal may come apart by as many as there are.
    count = (sums.abs() >= whole.sum(0).abs() - rows).sum(0)
    return count.numpy() / len(bits)
