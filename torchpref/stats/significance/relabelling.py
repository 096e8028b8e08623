"""The exact distribution of a mean preference when the labels of runs are permuted within instances.

With one run of A against eight of B, A − B is not as likely to be positive as negative even if A and B are the same, so
flipping signs could reject too often. The labels of the nine runs are exchangeable, however. Every run of the pooled nine has a
total, the sum of Δ against the other eight; a relabelling adds up the totals of those runs that get A's label. So an instance
contributes the sum of a random subset of given size, and the sum over instances is a convolution of independent parts: its
characteristic function is a product, and an inverse FFT gives every probability to about 1e-13. On instances that both ran
equally often the sign is flipped.

Totals are multiples of one step where returns are few levels and instances count alike. Otherwise each is rounded to a grid of
:data:`CELLS` cells over the range of the sum. Rounding looks at the pooled runs only, so it is the same under every
relabelling and the test stays exact: it is that of the rounded totals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from torchpref.pairwise.run_sums import RunSums, run_sums
from torchpref.stats.significance.exact import fast_length, lattice_denominator

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences

#: Points of the distribution of a sum where totals have to be rounded.
CELLS = 1 << 12
#: Whole totals are kept as they are up to so many points.
_MOST_CELLS = 1 << 14
#: Up to so many subsets they are listed, else their generating function is expanded.
_LISTED = 1000
#: Values of characteristic functions held at a time.
_AT_ONCE = 1 << 23
#: What is added to every chance for rounding in the transform.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Relabelled:
    """Chances under relabelling.

    Attributes:
        p: float64 ``[pair]``, two-sided; NaN where a pair was not asked for.
        one_sided: float64 ``[pair]``, of a sum at least as far to the side of the data's; 1 where that is 0.
    """

    p: Float[np.ndarray, " pair"]
    one_sided: Float[np.ndarray, " pair"]


@dataclass(frozen=True)
class _Part:
    """One instance of one pair.

    Attributes:
        place: position of the pair among those asked for.
        size: how many runs get the first label; 0 where the sign of one value is flipped.
        totals: float64 ``[run]``, runs with the first label foremost; or the one value.
    """

    place: int
    size: int
    totals: Float[np.ndarray, " run"]


def relabelled(prefs: Preferences, wanted: Bool[Tensor, " pair"]) -> Relabelled:
    """Two-sided and one-sided chances of every wanted pair."""
    result = np.full((2, len(prefs.pairs)), np.nan)
    chosen = torch.nonzero(wanted).squeeze(-1).numpy()
    if not len(chosen):
        return Relabelled(result[0], result[1])
    parts = _parts(prefs, wanted, chosen)
    unit = _unit(prefs, parts, len(chosen))
    whole = [np.rint(part.totals / unit).astype(np.int64) for part in parts]
    reach = np.zeros(len(chosen), dtype=np.int64)
    observed = np.zeros(len(chosen), dtype=np.int64)
    for part, totals in zip(parts, whole, strict=True):
        low, high = _ends(totals, part.size)
        reach[part.place] += max(abs(low), abs(high))
        observed[part.place] += totals[: max(part.size, 1)].sum()
    length = fast_length(2 * int(reach.max()) + 1)
    both, toward = _chances(parts, whole, observed, length)
    result[:, chosen] = np.where(observed == 0, 1.0, np.minimum(np.stack([both, toward]) + _ROUNDING, 1.0))
    return Relabelled(result[0], result[1])


def _parts(prefs: Preferences, wanted: Bool[Tensor, " pair"], chosen: NDArray[np.int64]) -> list[_Part]:
    mask = (prefs.mask.cpu() & wanted).numpy()
    weights = prefs.weights.cpu().numpy()
    place = {int(pair): number for number, pair in enumerate(chosen)}
    pairs = prefs.pairs.cpu().tolist()
    rows = torch.from_numpy(np.flatnonzero(mask.any(1) & (weights > 0)))
    return [
        _part(runs, place[pair], pairs[pair], float(weights[runs.instance]) / prefs.unit)
        for runs in run_sums(prefs, rows)
        for pair in np.flatnonzero(mask[runs.instance]).tolist()
    ]


def _part(runs: RunSums, place: int, systems: Sequence[int], scale: float) -> _Part:
    a, b = systems
    system, against = runs.system.numpy(), runs.against.numpy()
    of_a, of_b = np.flatnonzero(system == a), np.flatnonzero(system == b)
    each = scale / (len(of_a) * len(of_b))
    if len(of_a) == len(of_b):
        return _Part(place, 0, np.array([against[of_a, b].sum() * each]))
    pooled = np.concatenate([of_a, of_b])
    return _Part(place, len(of_a), (against[pooled, a] + against[pooled, b]) * each)


def _ends(totals: NDArray[np.int64] | NDArray[np.float64], size: int) -> tuple[float, float]:
    """Least and largest sum that a part can give."""
    if not size:
        return -abs(totals[0]), abs(totals[0])
    ordered = np.sort(totals)
    return ordered[:size].sum(), ordered[-size:].sum()


def _unit(prefs: Preferences, parts: Sequence[_Part], pairs: int) -> float:
    """What one cell is worth: so much that every total is whole if that takes few cells, else the range over CELLS."""
    reach = np.zeros(pairs)
    for part in parts:
        reach[part.place] += max(map(abs, _ends(part.totals, part.size)))
    largest = float(reach.max())
    if not largest > 0:
        return 1.0
    fine = 2 * largest / CELLS
    weights = prefs.weights.cpu()
    if not bool((weights == weights[0]).all()):
        return fine
    weight = float(weights[0])
    if prefs.unit == 1:
        cells = math.lcm(*map(int, torch.unique(prefs.trial_pairs[prefs.mask]).tolist()))
    else:
        cells = lattice_denominator(np.concatenate([part.totals for part in parts]) / weight) or 0
    return weight / cells if cells and 2 * largest * cells / weight <= _MOST_CELLS else fine


def _chances(
    parts: Sequence[_Part], whole: Sequence[NDArray[np.int64]], observed: NDArray[np.int64], length: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two-sided chance and that of the side of the data, for every pair."""
    keys = [(part.size, *_sorted(part, totals)) for part, totals in zip(parts, whole, strict=True)]
    by_pair: list[dict[tuple[int, ...], int]] = [{} for _ in observed]
    for part, key in zip(parts, keys, strict=True):
        counts = by_pair[part.place]
        counts[key] = counts.get(key, 0) + 1
    both, toward = np.ones(len(observed)), np.ones(len(observed))
    frequencies = length // 2 + 1
    room = max(1, _AT_ONCE // frequencies)
    value = np.arange(length)
    value = np.where(value > length // 2, value - length, value)
    known: dict[tuple[int, ...], NDArray[np.complex128]] = {}
    pending: list[int] = []

    def settle() -> None:
        new = {key for pair in pending for key in by_pair[pair]} - known.keys()
        known.update(_transforms(sorted(new), length))
        for pair in pending:
            product = np.ones(frequencies, dtype=np.complex128)
            for key, count in by_pair[pair].items():
                product *= known[key] if count == 1 else known[key] ** count
            chances = np.maximum(np.fft.irfft(product, n=length), 0.0)
            side = value * np.sign(observed[pair]) >= abs(observed[pair])
            toward[pair] = chances[side].sum()
            both[pair] = toward[pair] + chances[-value * np.sign(observed[pair]) >= abs(observed[pair])].sum()
        pending.clear()
        if len(known) > room // 2:
            known.clear()

    waiting = 0
    for pair in np.flatnonzero(observed).tolist():
        pending.append(pair)
        waiting += len(by_pair[pair])
        if waiting > room // 2:
            settle()
            waiting = 0
    if pending:
        settle()
    return both, toward


def _sorted(part: _Part, totals: NDArray[np.int64]) -> list[int]:
    """The totals in an order that does not say which label they had; one value without its sign."""
    return sorted(totals.tolist()) if part.size else [abs(int(totals[0]))]


def _transforms(keys: Sequence[tuple[int, ...]], length: int) -> dict[tuple[int, ...], NDArray[np.complex128]]:
    """Characteristic function of every kind of part at the frequencies of an FFT of that length."""
    result: dict[tuple[int, ...], NDArray[np.complex128]] = {}
    shapes: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for key in keys:
        shapes.setdefault((key[0], len(key) - 1), []).append(key)
    for (size, runs), members in shapes.items():
        totals = np.array([key[1:] for key in members], dtype=np.int64)
        if not size:
            turn = 2 * np.pi / length * np.arange(length // 2 + 1)
            values = np.cos(totals * turn).astype(np.complex128)
        elif math.comb(runs, size) <= _LISTED:
            values = _listed(totals, size, length)
        else:
            values = _expanded(totals, size, length)
        result.update(zip(members, values, strict=True))
    return result


def _listed(totals: Int[np.ndarray, "part run"], size: int, length: int) -> NDArray[np.complex128]:
    """From the chance of every sum, all subsets gone through."""
    subsets = np.array(list(combinations(range(totals.shape[1]), size)))
    member = np.zeros((totals.shape[1], len(subsets)), dtype=np.int64)
    member[subsets.T, np.arange(len(subsets))] = 1
    sums = (totals @ member) % length
    chances = np.zeros((len(totals), length))
    np.add.at(chances, (np.arange(len(totals))[:, None], sums), 1 / len(subsets))
    return np.asarray(np.fft.rfft(chances, axis=1))


def _expanded(totals: Int[np.ndarray, "part run"], size: int, length: int) -> NDArray[np.complex128]:
    """The elementary symmetric polynomial of exp(−itx) over the runs, per subset: one run after the other.

    Every step is a mean of numbers of size at most 1, weighted by how many subsets they stand for, so nothing overflows.
    """
    turn = 2 * np.pi / length * np.arange(length // 2 + 1)
    shape = (len(totals), len(turn))
    means = [np.ones(shape, dtype=np.complex128), *(np.zeros(shape, dtype=np.complex128) for _ in range(size))]
    for run in range(totals.shape[1]):
        factor = np.exp(-1j * totals[:, run, None] * turn)
        for taken in range(min(size, run + 1), 0, -1):
            share = taken / (run + 1)  # of the subsets of this size of the first runs + 1, so many hold the last one
            means[taken] = share * factor * means[taken - 1] + (1 - share) * means[taken]
    return means[size]
