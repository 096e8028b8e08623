"""The p-value of every pair before any correction, each by the fastest exact way that applies to it, else by simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from torchpref.stats.resampling.instances import Units, units_of
from torchpref.stats.significance.effects import Effects

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences

#: How a p-value was found.
METHODS = (
    "not compared",
    "tied",
    "binomial",
    "lattice",
    "enumeration",
    "simulation",
    "larger of sign flips and label permutation",
    "paired t",
    "betting on the mean",
)
#: Where the numbers of trials differ neither of the two holds its level alone.
LARGER = METHODS[6]


@dataclass(frozen=True)
class PairTests:
    """p-values of all pairs before correction.

    Attributes:
        p: float64 ``[pair]``, two-sided.
        one_sided: float64 ``[pair]``, of "Δ̄ is 0 or lies on the other side", towards the side of the data; 1 where Δ̄ is 0.
        methods: int64 ``[pair]``, places in :data:`METHODS`.
        flips: simulated flips, 0 where none was needed.
        max_t: float64 ``[pair]``, max-T adjusted p-values, where asked for.
    """

    p: NDArray[np.float64]
    one_sided: NDArray[np.float64]
    methods: NDArray[np.int64]
    flips: int = 0
    max_t: NDArray[np.float64] | None = None


def sign_flip_tests(
    prefs: Preferences,
    alpha: float,
    flips: int | None,
    seed: int,
    max_t: bool = False,
    units: Units | None = None,
) -> PairTests:
    """The sign-flip test of every pair, by the fastest exact way that applies to it, else by simulation.

    Signs are flipped by family where the runs have families. Where two systems ran an instance unequally often p is the
    larger of this test's and that of the labels permuted within instances: flips alone reject too often where few runs
    decide, and permutations alone where systems are good at different tasks.

    Args:
        prefs: the preferences.
        alpha: error rate for which simulated p-values must be fine enough.
        flips: flips where simulation is needed, see :func:`torchpref.significance`.
        seed: whole number.
        max_t: also the single-step max-T adjusted p-values; with unequal trials the larger of the two tests'.
        units: instances whose signs are flipped together; the families of the runs by default.
    """
    from torchpref.stats.significance.flips import enough_flips, flip_counts
    from torchpref.stats.significance.permutations import permutation_counts, unequal_trials
    from torchpref.stats.significance.relabelling import relabelled

    units = units or units_of(prefs)
    mask: NDArray[np.bool_] = prefs.mask.cpu().numpy() & (prefs.weights.cpu().numpy() > 0)[:, None]
    values = np.where(mask, np.nan_to_num((prefs.delta * prefs.weights[:, None]).cpu().numpy()), 0.0)
    compared = np.asarray(mask.any(0), dtype=np.bool_)
    count = enough_flips(int(compared.sum()), alpha, flips)
    p, methods = flipped(values, compared, units, count, seed)
    used = count if (methods == METHODS.index("simulation")).any() else 0
    one_sided = np.where(np.isnan(p), np.nan, np.where(_sums(values) == 0, 1.0, p / 2))
    unequal = unequal_trials(prefs)
    if bool(unequal.any()):
        permuted = relabelled(prefs, unequal)
        chosen = unequal.numpy() & compared
        p[chosen] = np.maximum(p, permuted.p)[chosen]
        one_sided[chosen] = np.maximum(one_sided, permuted.one_sided)[chosen]
        methods[chosen & (methods != METHODS.index("tied"))] = METHODS.index(LARGER)
    top: NDArray[np.float64] | None = None
    if max_t:
        used = count
        together = torch.from_numpy(by_family(values, units))
        top = flip_counts(together, count, seed, max_t=True).max_t_p.numpy()
        if bool(unequal.any()):
            top = np.maximum(top, permutation_counts(prefs, count, seed, max_t=True).max_t_p.numpy())
        top = np.where(compared, top, np.nan)
    return PairTests(p, one_sided, methods, used, top)


def _sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over instances, 0 where rounding alone keeps them from it."""
    sums: NDArray[np.float64] = values.sum(0)
    return np.where(np.abs(sums) <= 1e-12 * np.abs(values).sum(0), 0.0, sums)


def by_family(values: NDArray[np.float64], units: Units) -> NDArray[np.float64]:
    """Sums over the instances of each family ``[family, pair]``, 0 where rounding alone keeps them from it."""
    if units.single:
        return values
    sums, size = np.zeros((2, units.count, values.shape[1]))
    np.add.at(sums, units.cluster, values)
    np.add.at(size, units.cluster, np.abs(values))
    return np.where(np.abs(sums) <= 1e-12 * size, 0.0, sums)


def flipped(
    values: NDArray[np.float64], compared: NDArray[np.bool_], units: Units, count: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """p of the sign flips of ``values`` [instance, pair] by family, and how it was found."""
    from torchpref.stats.significance import exact as exact_tests
    from torchpref.stats.significance.flips import flip_counts

    single, values = values, by_family(values, units)
    p = np.full(values.shape[1], np.nan)
    code = {name: number for number, name in enumerate(METHODS)}
    methods = np.zeros(values.shape[1], dtype=np.int64)
    decided = np.count_nonzero(values, axis=0)
    tied = compared & (decided == 0)
    p[tied], methods[tied] = 1.0, code["tied"]
    left = compared & ~tied

    size = np.abs(values)
    largest = size.max(0, initial=0.0)
    one_size = left & ((size == 0) | (size == largest)).all(0)
    if one_size.any():
        chosen = values[:, one_size]
        p[one_size] = exact_tests.binomial_p((chosen > 0).sum(0), (chosen < 0).sum(0))
        methods[one_size] = code["binomial"]
    few = left & ~one_size & (decided <= exact_tests.ENUMERATION_LIMIT)
    if few.any():
        p[few], methods[few] = exact_tests.enumerated_p(values[:, few]), code["enumeration"]
    rest = np.flatnonzero(left & ~one_size & ~few)
    if len(rest):
        # Values of single instances lie on a lattice within rounding; their sums over families are sums of its steps.
        steps = exact_tests.lattice_steps(single[:, rest])
        if steps is not None:
            exact = exact_tests.lattice_p(by_family(steps.astype(np.float64), units).astype(np.int64))
            found = ~np.isnan(exact)
            p[rest[found]], methods[rest[found]] = exact[found], code["lattice"]
            rest = rest[~found]
    if len(rest):
        counts = flip_counts(torch.from_numpy(values[:, rest]), count, seed)
        p[rest], methods[rest] = counts.p.numpy(), code["simulation"]
    return p, methods


def paired_t_tests(effects: Effects) -> PairTests:
    """The t test that goes with the interval of Δ̄; all tied gives 1, and so does a single instance."""
    from scipy.special import stdtr

    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * stdtr(np.maximum(effects.degrees, 1.0), -np.abs(effects.centre) / effects.error)
    compared = effects.instances > 0
    tied = compared & (effects.decided == 0)
    p = np.where(tied | (compared & (effects.degrees < 1)), 1.0, np.where(compared, p, np.nan))
    methods = np.where(tied, METHODS.index("tied"), np.where(compared, METHODS.index("paired t"), 0))
    return PairTests(p, np.where(tied | (effects.mean == 0), 1.0, p / 2), methods)
