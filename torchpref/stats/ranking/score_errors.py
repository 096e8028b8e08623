"""What every instance contributes to the scores: the linear part of scores as functions of the sample of instances.

A score that solves an estimating equation changes, to first order, by a sum of one term per instance; the spread of these
terms gives its standard error without resampling (the cluster-robust sandwich; Liang and Zeger, *Longitudinal data analysis
using generalized linear models*, 1986), with all comparisons of one instance as one cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchpref.stats.resampling.design import Design, design_of, welch
from torchpref.stats.resampling.instances import Units

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences

_CELLS = 1 << 24


@dataclass(frozen=True)
class Contributions:
    """First-order contributions of instances to scores.

    Their covariance follows from how instances were sampled, as for pairs (:func:`torchpref.stats.significance.effects
    .pair_effects`): in *one sample* it is that of the terms; in *strata* and with *own weights* every stratum, or the whole,
    holds two further instances of average weight, of the size of an average decided one.

    Attributes:
        terms: float64 ``[cluster, system]``; a score minus its target is about their sum.
        units: clusters and strata.
        weight: float64 ``[cluster]``, the weight of each cluster.
        design: how instances were sampled.
        compared: bool ``[cluster, system]``, whether the system was compared with any other in the cluster.
        won, lost: bool ``[cluster, system]``, whether any of its Δ there is above, below 0.
    """

    terms: NDArray[np.float64]
    units: Units
    weight: NDArray[np.float64]
    design: Design
    compared: NDArray[np.bool_]
    won: NDArray[np.bool_]
    lost: NDArray[np.bool_]

    @property
    def decided(self) -> NDArray[np.int64]:
        """``[system]``, clusters in which any of its Δ is not 0."""
        count: NDArray[np.int64] = (self.won | self.lost).sum(0)
        return count

    @property
    def lesser(self) -> NDArray[np.int64]:
        """``[system]``, clusters in which it won anything, or in which it lost anything, whichever are fewer."""
        count: NDArray[np.int64] = np.minimum(self.won.sum(0), self.lost.sum(0))
        return count

    def _typical(self) -> NDArray[np.float64]:
        """Rows ``[decided cluster, system]`` whose mean square is that of a decided instance of weight 1."""
        decided = self.won | self.lost
        some = decided.any(1)
        unit = self.terms[some] / self.weight[some, None] / np.sqrt(max(1, int(some.sum())))
        scaled: NDArray[np.float64] = unit * np.sqrt(some.sum() / np.maximum(decided.sum(0), 1)) * decided[some]
        return scaled

    @cached_property
    def parts(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64] | float]]:
        """Residuals and degrees of freedom, of each stratum or of all: R'R of each is its share of the covariance."""
        terms = self.terms
        if self.design == "one sample":
            count = len(terms)
            residual = (terms - terms.mean(axis=0)) * np.sqrt(count / max(1, count - 1)) if count else terms
            return [(residual, np.maximum(self.compared.sum(0) - 1, 0).astype(float))]
        typical = self._typical()
        if self.design == "strata":
            parts: list[tuple[NDArray[np.float64], NDArray[np.float64] | float]] = []
            for first, last in self.units.strata():
                part, count, weight = terms[first:last], last - first, self.weight[first:last].mean()
                rows = np.concatenate([part - part.mean(axis=0), np.sqrt(2) * weight * typical])
                parts.append((rows * np.sqrt(count / (count + 1)), count + 1.0))
            return parts
        total, average = self.weight.sum(), self.weight.mean()
        whole = total + 2 * average
        rows = np.concatenate(
            [terms / (1 - self.weight / whole)[:, None], np.sqrt(2) * average / (1 - average / whole) * typical]
        )
        effective = whole**2 / ((self.weight**2).sum() + 2 * average**2)
        return [(rows * total / whole, effective - 1.0)]

    def covered(self) -> NDArray[np.bool_]:
        """``[system]``, whether it was compared in every benchmark; elsewhere nobody knows what it would do there."""
        strata = self.units.strata() if self.design == "strata" else [(0, len(self.terms))]
        inside = np.stack([self.compared[first:last].any(0) for first, last in strata])
        return np.asarray(inside.all(axis=0))

    def errors(self) -> NDArray[np.float64]:
        """Standard error of each score."""
        errors: NDArray[np.float64] = np.sqrt(sum((rows**2).sum(axis=0) for rows, _ in self.parts))
        return errors

    def degrees(self) -> NDArray[np.float64]:
        """Degrees of freedom of each score."""
        parts = self.parts
        if len(parts) == 1:
            return np.broadcast_to(np.asarray(parts[0][1]), self.terms.shape[1:]).astype(float)
        variances = np.stack([(rows**2).sum(axis=0) for rows, _ in parts])
        return np.nan_to_num(welch(variances, np.array([[degrees] for _, degrees in parts])))


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
    gradient = _Tally(prefs, units, len(members))
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
    tally = _Tally(prefs, units, len(members))
    for rows, delta, weight in pair_squares(prefs, members):
        tally.add(rows, delta, weight, (weight * share * (delta - mean)).sum(axis=2))
    return tally.contributions(tally.terms)


class _Tally:
    """Sums over the instances of each cluster."""

    def __init__(self, prefs: Preferences, units: Units, systems: int) -> None:
        self.units = units
        self.terms = np.zeros((units.count, systems))
        self._flags = np.zeros((3, units.count, systems), dtype=bool)
        self._weights = prefs.weights.cpu().numpy()

    def add(
        self,
        rows: NDArray[np.int64],
        delta: NDArray[np.float64],
        weight: NDArray[np.float64],
        terms: NDArray[np.float64],
    ) -> None:
        """Some instances: their Δ and weights ``[instance, system, system]`` and terms ``[instance, system]``."""
        cluster, here = self.units.cluster[rows], weight > 0
        flags = [here.any(axis=2), (here & (delta > 0)).any(axis=2), (here & (delta < 0)).any(axis=2)]
        np.add.at(self.terms, cluster, terms)
        for kept, new in zip(self._flags, flags, strict=True):
            np.logical_or.at(kept, cluster, new)

    def contributions(self, terms: NDArray[np.float64]) -> Contributions:
        """With what else their spread depends on."""
        used = self._weights > 0  # an instance of weight 0 says nothing, and is no instance of its benchmark either
        weight = np.zeros(self.units.count)
        np.add.at(weight, self.units.cluster, self._weights)
        kept = weight > 0
        units = Units((np.cumsum(kept) - 1)[self.units.cluster[used]], self.units.stratum[kept])
        design = design_of(self._weights[used], units)
        compared, won, lost = self._flags[:, kept]
        return Contributions(terms[kept], units, weight[kept], design, compared, won, lost)


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
