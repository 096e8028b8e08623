"""Bets on preferences: ∫₀¹ ∏(1 + f·sᵢ) df, the mean over stakes f of what a gambler who starts with 1 owns after n bets.

If every bet is fair or worse (E[s | the past] ≤ 0 and s ≥ −1), the wealth is a supermartingale that starts at 1, so by Ville's
inequality it ever reaches 1/α with a chance of at most α: one may look after every instance and stop at any time. Nothing is
assumed about the distribution. Waudby-Smith and Ramdas, *Estimating means of bounded random variables by betting*, arXiv
2010.09686; without replacement: *Confidence sequences for sampling without replacement*, arXiv 2006.04347.

What is bet on (the slopes s) says what is refuted:

- ``delta``: the mean is at most 0;  ``−delta``: it is at least 0;
- :func:`slopes_above` the mean is at most a bound, :func:`slopes_below` it is at least that bound;
- :func:`slopes_without_replacement`: the mean of all N instances of a benchmark is at most, at least 0.

The wealth is a polynomial in f, integrated by Gauss–Legendre. It is kept as a logarithm per node and a product of the last few
factors, so that thousands of instances neither overflow nor vanish.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike, NDArray

from torchpref.errors import UsageError

#: Polynomials up to this degree are integrated exactly.
_EXACT_DEGREE = 127
#: Factors multiplied before they are moved into the logarithm.
_PRODUCT = 8


@lru_cache(maxsize=64)
def _nodes(degree: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gauss–Legendre nodes and weights on [0, 1] for a polynomial of that degree.

    Longer products peak within about 1/√degree, so that many more nodes than √degree integrate them to rounding.
    """
    count = degree // 2 + 1 if degree <= _EXACT_DEGREE else 40 + int(np.ceil(2.5 * np.sqrt(degree)))
    nodes, weights = np.polynomial.legendre.leggauss(min(count, degree // 2 + 1))
    return (nodes + 1) / 2, weights / 2


def running_log_wealth(slopes: ArrayLike, most: float = 1.0) -> Float[np.ndarray, "*path bet"]:
    """log of the wealth after every bet, f uniform on [0, ``most``].

    Args:
        slopes: ``[..., bet]``, at least −1; +∞ for a bet that cannot be lost and was won. Any number of leading axes: paths,
            orders, pairs of systems.
        most: the largest stake, in (0, 1].

    Returns:
        float64 ``[..., bet]``; exp of it is evidence against what the bets are fair under.

    Raises:
        UsageError: a slope below −1 or NaN, a stake outside (0, 1].
    """
    values = np.asarray(slopes, dtype=np.float64)
    if not 0 < most <= 1:
        raise UsageError(f"the largest stake lies above 0 and is at most 1, got {most!r}")
    if values.size and not values.min() >= -1:
        raise UsageError(f"a bet loses at most the stake: slopes are at least -1, got {values.min()!r}")
    bets = values.shape[-1]
    flat = values.reshape(-1, bets)
    result = np.empty(flat.shape)
    nodes, weights = _nodes(bets)
    stakes = most * nodes
    rows = max(1, (1 << 20) // len(stakes))
    for start in range(0, len(flat), rows):
        _run(flat[start : start + rows], stakes, weights, result[start : start + rows])
    return result.reshape(values.shape)


def _run(
    slopes: NDArray[np.float64], stakes: NDArray[np.float64], weights: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    ruin = np.isinf(slopes)
    certain = np.logical_or.accumulate(ruin, axis=1)
    slopes = np.where(ruin, 0.0, slopes)
    log_past = np.zeros((len(slopes), len(stakes)))
    product = np.ones_like(log_past)
    factor = np.empty_like(log_past)
    past, top = np.broadcast_to(weights, log_past.shape), np.zeros(len(slopes))
    with np.errstate(divide="ignore"):
        for bet in range(slopes.shape[1]):
            np.multiply(slopes[:, bet, None], stakes, out=factor)
            factor += 1.0
            product *= factor
            out[:, bet] = top + np.log(np.einsum("pf,pf->p", past, product))
            if bet % _PRODUCT == _PRODUCT - 1:
                log_past += np.log(product)
                product.fill(1.0)
                top = log_past.max(axis=1)
                past = weights * np.exp(log_past - top[:, None])
    out[certain] = np.inf


def log_wealth(slopes: ArrayLike, most: float = 1.0) -> Float[np.ndarray, " *path"]:
    """log of the wealth after the last bet of ``slopes`` ``[..., bet]``; 0 without any. See :func:`running_log_wealth`."""
    values = np.asarray(slopes, dtype=np.float64)
    if not values.shape[-1]:
        return np.zeros(values.shape[:-1])
    final: NDArray[np.float64] = running_log_wealth(values, most)[..., -1]
    return final


def slopes_above(delta: ArrayLike, bound: float) -> Float[np.ndarray, "*path bet"]:
    """Bets that are fair or worse if the mean of ``delta`` in [−1, 1] is at most ``bound``: (x − bound)/(1 + bound).

    With ``bound`` = −M they refute "worse than −M": the new system is fine within the margin M.
    """
    _check_bound(bound)
    return (np.asarray(delta, dtype=np.float64) - bound) / (1.0 + bound)


def slopes_below(delta: ArrayLike, bound: float) -> Float[np.ndarray, "*path bet"]:
    """Bets that are fair or worse if the mean of ``delta`` in [−1, 1] is at least ``bound``: −(x − bound)/(1 − bound)."""
    _check_bound(bound)
    return (bound - np.asarray(delta, dtype=np.float64)) / (1.0 - bound)


def _check_bound(bound: float) -> None:
    if not -1 < bound < 1:
        raise UsageError(f"a mean preference strictly between -1 and 1 is needed, got {bound!r}")


def slopes_without_replacement(
    delta: Int[np.ndarray, "*path bet"], planned: int, unit: int
) -> tuple[Float[np.ndarray, "*path bet"], Float[np.ndarray, "*path bet"]]:
    """Bets that are fair if the mean over all ``planned`` instances is 0, drawn one by one without replacement.

    With n instances seen and their sum S the mean of the rest is then m = −S/(N − n); the bets are (x − m)/(1 + m) upward
    and −(x − m)/(1 − m) downward. At m = −1 every instance that is left must be a loss, and any other makes the upward bet
    infinite: x = 0 or above is impossible under the hypothesis. Beyond ±1 the hypothesis is impossible already.

    Args:
        delta: integers ``[..., bet]``, Δ in parts of 1/``unit``, in the order in which instances were run.
        planned: N, at least the number of bets.
        unit: parts that make Δ = 1.

    Returns:
        Slopes of the bets upward and downward.
    """
    values = np.asarray(delta, dtype=np.int64)
    bets = values.shape[-1]
    if bets > planned:
        raise UsageError(f"{bets} instances were seen of {planned} planned")
    before = np.zeros_like(values)
    np.cumsum(values[..., :-1], axis=-1, out=before[..., 1:])
    left = planned - np.arange(bets, dtype=np.int64)
    # Everything times (N − n): x − m = (x(N−n) + S)/(N−n), 1 ± m = (unit(N−n) ∓ S)/(N−n), as whole numbers.
    gain, room = values * left + before, unit * left
    return _ratio(gain, room - before), _ratio(-gain, room + before)


def _ratio(gain: NDArray[np.int64], room: NDArray[np.int64]) -> NDArray[np.float64]:
    """gain/room; where no room is left ∞ for a gain and 0 for none, ∞ where there is less than none."""
    slopes = np.where((room < 0) | (gain > 0), np.inf, 0.0)
    np.divide(gain, room, out=slopes, where=room > 0)
    return slopes
