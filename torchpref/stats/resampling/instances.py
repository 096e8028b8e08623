"""Resampling instances: whole-number weights over instances, and what the preferences become under them.

A replicate is a row of weights [replicate, instance]; its means are a matrix product with Δ. Weights are whole numbers and
Δ is written in fixed point, so every product is exact and does not depend on chunks, threads or devices. Replicates are
drawn in blocks of :data:`BLOCK`, each from a stream of its own that depends on the seed and the block's number only.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.runs.exact_sum import power_of_two_scale

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences

#: Replicates that share a random stream.
BLOCK = 256
#: Parts into which a mean weight of 1 is cut in the Bayesian bootstrap.
BAYESIAN_PARTS = 1 << 16

Seed = int | torch.Generator
Scheme = Literal["bootstrap", "bayesian", "halves", "subsample"]
# Every purpose has streams of its own, so that one seed serves a whole analysis.
_STREAMS = {
    "bootstrap": 1,
    "bayesian": 2,
    "halves": 3,
    "subsample": 4,
    "flips": 5,
    "permutations": 6,
    "multipliers": 7,
    "trials": 8,
    "looks": 9,
    "relabelled": 10,
    "orders": 11,
    "power": 12,
}


def resolve_seed(seed: Seed) -> int:
    """A whole number from a seed; from a generator the next number it gives."""
    if isinstance(seed, torch.Generator):
        return int(torch.randint(2**63 - 1, (), generator=seed, device=seed.device))
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise UsageError(f"a seed is a whole number that is at least 0, or a torch.Generator; got {seed!r}")
    return int(seed)


def stream(seed: int, purpose: str, block: int) -> np.random.Generator:
    """The random numbers of one block: they depend on the seed, the purpose and the block's number."""
    key = np.random.SeedSequence(seed, spawn_key=(_STREAMS[purpose], block))
    return np.random.Generator(np.random.SFC64(key))


@dataclass(frozen=True)
class Units:
    """What is drawn: clusters of instances within strata.

    Attributes:
        cluster: int64 ``[instance]``, the cluster of each instance; clusters are numbered from 0.
        stratum: int64 ``[cluster]``, the stratum of each cluster; strata are numbered from 0 and their clusters adjoin.
    """

    cluster: Int[np.ndarray, " instance"]
    stratum: Int[np.ndarray, " cluster"]

    @property
    def count(self) -> int:
        """Number of clusters."""
        return len(self.stratum)

    @property
    def single(self) -> bool:
        """Whether every instance is a cluster of its own."""
        return self.count == len(self.cluster)

    def strata(self) -> list[tuple[int, int]]:
        """The stretches of clusters, first and one past the last, that make up the strata."""
        edges = np.flatnonzero(np.diff(self.stratum)) + 1
        ends = [0, *edges.tolist(), self.count]
        return [(first, last) for first, last in zip(ends[:-1], ends[1:], strict=True) if last > first]


def resampling_units(benchmarks: Sequence[str], families: Sequence[Hashable] | None = None) -> Units:
    """Clusters and strata of instances.

    Args:
        benchmarks: the benchmark of each instance; instances are drawn within it.
        families: a label per instance; instances of one benchmark with one label are drawn together. An instance with
            the label None is drawn by itself.
    """
    if families is not None and len(families) != len(benchmarks):
        raise UsageError(
            f"families has {len(families)} labels; wanted one per instance, {len(benchmarks)}, in their order"
        )
    strata = {name: number for number, name in enumerate(sorted(set(benchmarks)))}
    given: Sequence[Hashable] = [None] * len(benchmarks) if families is None else families
    labels: list[tuple[int, Hashable]] = [
        (number, None) if label is None else (-1, label) for number, label in enumerate(given)
    ]
    numbers: dict[tuple[int, Hashable], int] = {}
    keys = [(strata[benchmark], label) for benchmark, label in zip(benchmarks, labels, strict=True)]
    for key in keys:
        numbers.setdefault(key, len(numbers))
    order = sorted(numbers, key=lambda key: key[0])  # strata adjoin; within one, in order of appearance
    numbers = {key: position for position, key in enumerate(order)}
    cluster = np.array([numbers[key] for key in keys], dtype=np.int64)
    return Units(cluster, np.array([key[0] for key in order], dtype=np.int64))


def units_of(prefs: Preferences, families: Sequence[Hashable] | None = None) -> Units:
    """What is drawn, flipped and summed together: the families of the runs, or other ones; each instance without any."""
    return resampling_units(prefs.benchmarks, prefs.families if families is None else families)


def draw_weights(
    scheme: Scheme, units: Units, start: int, stop: int, seed: int, share: float = 0.5
) -> Int[Tensor, "replicate instance"]:
    """Rows ``start`` to ``stop`` of the endless matrix of replicates that a seed stands for.

    Args:
        scheme: ``bootstrap``: instances (clusters) with replacement within strata, weights sum to their number;
            ``bayesian``: exponential weights in parts of 1/65,536; ``halves``: one half of every stratum at random (1;
            the other half is 0; an odd one goes to either side at random); ``subsample``: ``share`` of every stratum
            without replacement, at least one.
        units: clusters and strata.
        start, stop: which replicates.
        seed: whole number.
        share: for ``subsample``, the share of clusters that is kept.
    """
    rows = []
    for block in range(start // BLOCK, -(-stop // BLOCK)):
        rng = stream(seed, scheme, block)
        drawn = np.empty((BLOCK, units.count), dtype=np.int32)
        for first, last in units.strata():
            drawn[:, first:last] = _draw(scheme, rng, last - first, share)
        low, high = max(start - block * BLOCK, 0), min(stop - block * BLOCK, BLOCK)
        rows.append(drawn[low:high])
    weights = np.concatenate(rows) if rows else np.empty((0, units.count), dtype=np.int32)
    return torch.from_numpy(weights if units.single and _ascending(units) else weights[:, units.cluster])


def _ascending(units: Units) -> bool:
    return bool((units.cluster == np.arange(len(units.cluster))).all())


def _draw(scheme: Scheme, rng: np.random.Generator, count: int, share: float) -> Int[np.ndarray, "replicate cluster"]:
    if scheme == "bootstrap":
        chosen = rng.integers(0, count, size=(BLOCK, count), dtype=np.int32)
        chosen += (np.arange(BLOCK, dtype=np.int32) * count)[:, None]
        return np.bincount(chosen.ravel(), minlength=BLOCK * count).reshape(BLOCK, count)
    if scheme == "bayesian":
        return np.rint(rng.standard_exponential((BLOCK, count)) * BAYESIAN_PARTS).astype(np.int32)
    keys = rng.random((BLOCK, count))
    if scheme == "halves":
        extra = rng.integers(0, 2, size=(BLOCK, 1)) if count % 2 else 0
        size = np.broadcast_to(count // 2 + extra, (BLOCK, 1))
    elif scheme == "subsample":
        if not 0 < share <= 1:
            raise UsageError(f"the share of instances to keep must be above 0 and at most 1, got {share!r}")
        size = np.full((BLOCK, 1), max(1, round(share * count)))
    else:
        raise UsageError(f"unknown scheme {scheme!r}; use bootstrap, bayesian, halves or subsample")
    return keys.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable") < size


@dataclass(frozen=True)
class FixedPoint:
    """A matrix [instance, column] whose products with whole weights are exact.

    Attributes:
        limbs: float64 tensors of whole numbers; the matrix is Σ limb · unit.
        units: the value of 1 in each limb, powers of two.
    """

    limbs: tuple[Float[Tensor, "instance column"], ...]
    units: tuple[float, ...]

    def weighted_sums(self, weights: Tensor) -> Float[Tensor, "replicate column"]:
        """``weights @ matrix``, the same in any order of summation."""
        left = weights.to(self.limbs[0])
        parts = [left @ limb * unit for limb, unit in zip(self.limbs, self.units, strict=True)]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def fixed_point(values: Float[Tensor, "instance column"], largest_total: float) -> FixedPoint:
    """``values`` (NaN counts as 0) rounded to whole numbers of a power of two.

    Args:
        values: the matrix.
        largest_total: bound on the sum of a replicate's weights; the more, the fewer bits are left per value. With fewer
            than 36 a second matrix carries the rest.
    """
    clean = torch.nan_to_num(values.double(), nan=0.0)
    scale = power_of_two_scale(float(clean.abs().max()) if clean.numel() else 0.0)
    bits = 52 - math.ceil(math.log2(max(2.0, largest_total)))
    unit = scale * 2.0**-bits
    high = torch.round(clean / unit)
    if bits >= 36:
        return FixedPoint((high,), (unit,))
    low_unit = unit * 2.0**-bits
    low = torch.round((clean - high * unit) / low_unit)
    return FixedPoint((high, low), (unit, low_unit))


@dataclass(frozen=True)
class ReplicateMeans:
    """Means of every pair in every replicate.

    Attributes:
        means: float64 ``[replicate, pair]``; NaN where the replicate has no instance that both ran.
        weights: float64 ``[replicate, pair]``, the weight that each mean rests on.
    """

    means: Float[Tensor, "replicate pair"]
    weights: Float[Tensor, "replicate pair"]


class Resampler:
    """Means of :class:`Preferences` under weights over instances.

    Args:
        prefs: the preferences.
        largest_total: bound on the sum of a replicate's weights; their number of instances by default.
    """

    def __init__(self, prefs: Preferences, largest_total: float | None = None) -> None:
        instances = max(1, len(prefs.instances))
        total = float(instances if largest_total is None else largest_total)
        value = prefs.weights[:, None]
        self.n_pairs = len(prefs.pairs)
        self.complete = bool(prefs.mask.all())
        self._sums = fixed_point(prefs.delta * value, total)
        # The weight of a pair is that of all instances less those that it does not share, which are seldom many.
        self._gaps = torch.nonzero(~prefs.mask.all(1)).squeeze(-1)
        both = fixed_point(torch.cat([value, ~prefs.mask * value], 1), total)
        self._all = FixedPoint(tuple(limb[:, :1] for limb in both.limbs), both.units)
        self._missing = FixedPoint(tuple(limb[self._gaps, 1:] for limb in both.limbs), both.units)

    def means(self, weights: Tensor, start: int = 0) -> ReplicateMeans:
        """Means under ``weights`` [replicate, instance]; ``start`` is the number of the first replicate."""
        sums, total = self._sums.weighted_sums(weights), self._all.weighted_sums(weights)
        if not self.complete:
            total = total - self._missing.weighted_sums(weights[:, self._gaps.to(weights.device)])
        means = torch.where(total > 0, sums / total, torch.nan)
        return ReplicateMeans(means, total.expand_as(means))


def replicate_blocks(
    scheme: Scheme, units: Units, replicates: int, seed: int, chunk: int, share: float = 0.5
) -> Iterator[Int[Tensor, "replicate instance"]]:
    """The weights of ``replicates`` replicates, ``chunk`` at a time; the chunk never changes the numbers."""
    for start in range(0, replicates, chunk):
        yield draw_weights(scheme, units, start, min(start + chunk, replicates), seed, share)


def largest_total(scheme: Scheme, units: Units) -> float:
    """A bound on the sum of weights of a replicate. Exponential weights hardly ever exceed 48 times their mean."""
    largest_cluster = int(np.bincount(units.cluster).max()) if len(units.cluster) else 1
    return units.count * largest_cluster * (BAYESIAN_PARTS * 48.0 if scheme == "bayesian" else 1.0) or 1.0
