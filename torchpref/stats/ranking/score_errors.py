"""What every instance contributes to the scores: the linear part of scores as functions of the sample of instances.

A score that solves an estimating equation changes, to first order, by a sum of one term per instance; the spread of these
terms gives its standard error without resampling (the cluster-robust sandwich; Liang and Zeger, *Longitudinal data analysis
using generalized linear models*, 1986), with all comparisons of one instance as one cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchpref.stats.resampling.instances import Units

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences

_CELLS = 1 << 24


@dataclass(frozen=True)
class Contributions:
    """First-order contributions of instances to scores.

    Attributes:
        terms: float64 ``[cluster, system]``; a score minus its target is about their sum.
        units: clusters and strata.
        compared: int64 ``[system]``, clusters in which the system was compared with any other.
        decided: int64 ``[system]``, clusters in which any of its Δ is not 0.
    """

    terms: NDArray[np.float64]
    units: Units
    compared: NDArray[np.int64]
    decided: NDArray[np.int64]

    @property
    def strata(self) -> list[tuple[int, int]]:
        """Stretches of clusters that are centred by themselves: the strata, or all together if one has a single cluster."""
        strata = self.units.strata()
        if any(last - first < 2 for first, last in strata):
            return [(0, self.units.count)]
        return strata

    def residuals(self) -> NDArray[np.float64]:
        """Terms less their stratum's mean, times √(n/(n − 1)): their sums of squares and products are the covariance."""
        parts = []
        for first, last in self.strata:
            part = self.terms[first:last]
            size = last - first
            parts.append((part - part.mean(axis=0)) * np.sqrt(size / max(1, size - 1)))
        return np.concatenate(parts) if parts else self.terms

    def errors(self) -> NDArray[np.float64]:
        """Standard error of each score."""
        errors: NDArray[np.float64] = np.sqrt((self.residuals() ** 2).sum(axis=0))
        return errors

    def degrees(self) -> NDArray[np.float64]:
        """Degrees of freedom of each score: clusters in which the system was compared, less strata."""
        return np.maximum(self.compared - len(self.strata), 0).astype(float)


def score_contributions(
    prefs: Preferences, theta: NDArray[np.float64], members: NDArray[np.int64], units: Units
) -> Contributions:
    """Contributions to Bradley–Terry scores.

    Args:
        prefs: the preferences.
        theta: float64 ``[member]``, the solution among ``members``.
        members: positions of the systems that the solution covers; only their pairs count.
        units: clusters of instances.
    """
    chance = 1 / (1 + np.exp(-(theta[:, None] - theta[None, :])))
    gradient = _Tally(units, len(members))
    total = np.zeros((len(members), len(members)))
    for rows, delta, weight in pair_squares(prefs, members):
        gradient.add(rows, delta, weight, (weight * ((delta + 1) / 2 - chance)).sum(axis=2))
        total += weight.sum(axis=0)
    terms = np.einsum("ns,ts->nt", gradient.terms, inverse_hessian(total * chance * (1 - chance)))
    return gradient.contributions(terms)


def inverse_hessian(curvature: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pseudo-inverse of the Laplacian of ``curvature`` [system, system], within Σθ = 0."""
    size = len(curvature)
    scale = max(curvature.sum() / max(1, size), np.finfo(float).tiny)
    laplacian = np.diag(curvature.sum(axis=1)) - curvature
    inverse = _inverse(laplacian + scale / size)
    symmetric: NDArray[np.float64] = (inverse + inverse.T) / 2 - 1 / (scale * size)
    return symmetric


def _inverse(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inverse of a positive definite matrix by Gauss–Jordan: numpy's arithmetic of elements rounds the same on any number of
    threads, which the libraries of linear algebra do not.
    """
    result = matrix.copy()
    for k in range(len(result)):
        pivot, row, column = result[k, k], result[k] / result[k, k], result[:, k].copy()
        result -= column[:, None] * row
        result[:, k], result[k] = -column / pivot, row
        result[k, k] = 1 / pivot
    return result


def mean_contributions(prefs: Preferences, units: Units) -> Contributions:
    """Contributions to the mean preference of each system over its rivals."""
    members = np.arange(len(prefs.systems))
    mean, total = np.nan_to_num(prefs.mean().cpu().numpy()), prefs.weight_sums().cpu().numpy()
    rivals = (total > 0).sum(axis=1)
    share = np.where(total > 0, 1 / (np.where(total > 0, total, 1.0) * np.maximum(rivals, 1)[:, None]), 0.0)
    tally = _Tally(units, len(members))
    for rows, delta, weight in pair_squares(prefs, members):
        tally.add(rows, delta, weight, (weight * share * (delta - mean)).sum(axis=2))
    return tally.contributions(tally.terms)


class _Tally:
    """Sums over the instances of each cluster."""

    def __init__(self, units: Units, systems: int) -> None:
        self.units = units
        self.terms = np.zeros((units.count, systems))
        self._compared = np.zeros((units.count, systems), dtype=bool)
        self._decided = np.zeros((units.count, systems), dtype=bool)

    def add(
        self,
        rows: NDArray[np.int64],
        delta: NDArray[np.float64],
        weight: NDArray[np.float64],
        terms: NDArray[np.float64],
    ) -> None:
        """Some instances: their Δ and weights ``[instance, system, system]`` and terms ``[instance, system]``."""
        cluster = self.units.cluster[rows]
        compared, decided = (weight > 0).any(axis=2), ((weight > 0) & (delta != 0)).any(axis=2)
        if self.units.single:  # every cluster comes once
            self.terms[cluster] = terms
            self._compared[cluster] = compared
            self._decided[cluster] = decided
        else:
            np.add.at(self.terms, cluster, terms)
            np.logical_or.at(self._compared, cluster, compared)
            np.logical_or.at(self._decided, cluster, decided)

    def contributions(self, terms: NDArray[np.float64]) -> Contributions:
        """With the counts of compared and decided clusters."""
        return Contributions(terms, self.units, self._compared.sum(0), self._decided.sum(0))


def pair_squares(
    prefs: Preferences, members: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]]:
    """Δ (0 where not compared) and weight of some instances at a time as ``[instance, member, member]``."""
    size = len(members)
    place = np.full(len(prefs.systems), -1)
    place[members] = np.arange(size)
    pairs = prefs.pairs.cpu().numpy()
    inside = (place[pairs] >= 0).all(axis=1)
    first, second = place[pairs[inside]].T if inside.any() else (np.zeros(0, dtype=int), np.zeros(0, dtype=int))
    values = np.nan_to_num(prefs.delta.cpu().numpy())[:, inside]
    mask, weights = prefs.mask.cpu().numpy()[:, inside], prefs.weights.cpu().numpy()
    step = max(1, _CELLS // max(1, size * size))
    for start in range(0, len(values), step):
        rows = np.arange(start, min(start + step, len(values)))
        delta, weight = np.zeros((len(rows), size, size)), np.zeros((len(rows), size, size))
        delta[:, first, second], delta[:, second, first] = values[rows], -values[rows]
        here = mask[rows] * weights[rows, None]
        weight[:, first, second] = here
        weight[:, second, first] = here
        yield rows, delta, weight
