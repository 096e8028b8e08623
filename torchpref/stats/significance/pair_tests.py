"""The p-value of every pair before any correction, each by the fastest exact way that applies to it, else by simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

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
    "label permutation",
    "paired t",
)


@dataclass(frozen=True)
class PairTests:
    """p-values of all pairs before correction.

    Attributes:
        p: float64 ``[pair]``.
        methods: int64 ``[pair]``, places in :data:`METHODS`.
        flips: simulated flips, 0 where none was needed.
        max_t: float64 ``[pair]``, max-T adjusted p-values, where asked for.
    """

    p: NDArray[np.float64]
    methods: NDArray[np.int64]
    flips: int = 0
    max_t: NDArray[np.float64] | None = None


def sign_flip_tests(prefs: Preferences, alpha: float, flips: int | None, seed: int, max_t: bool = False) -> PairTests:
    """The sign-flip test of every pair, by the fastest exact way that applies to it, else by simulation."""
    from torchpref.stats.significance import exact as exact_tests
    from torchpref.stats.significance.flips import enough_flips, flip_counts
    from torchpref.stats.significance.permutations import permutation_counts, unequal_trials

    mask = prefs.mask.cpu().numpy() & (prefs.weights.cpu().numpy() > 0)[:, None]
    values = np.where(mask, np.nan_to_num((prefs.delta * prefs.weights[:, None]).cpu().numpy()), 0.0)
    pairs = values.shape[1]
    p = np.full(pairs, np.nan)
    code = {name: number for number, name in enumerate(METHODS)}
    methods = np.zeros(pairs, dtype=np.int64)
    decided = np.count_nonzero(values, axis=0)
    unequal = unequal_trials(prefs).numpy()
    tied = mask.any(0) & (decided == 0) & ~unequal
    p[tied], methods[tied] = 1.0, code["tied"]
    left = mask.any(0) & ~tied & ~unequal

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
        steps = exact_tests.lattice_steps(values[:, rest])
        if steps is not None:
            exact = exact_tests.lattice_p(steps)
            found = ~np.isnan(exact)
            p[rest[found]], methods[rest[found]] = exact[found], code["lattice"]
            rest = rest[~found]

    tested = int(mask.any(0).sum())
    count = enough_flips(tested, alpha, flips)
    used = 0
    top: NDArray[np.float64] | None = None
    if unequal.any():
        used = count
        permuted = permutation_counts(prefs, count, seed, max_t=max_t)
        p[unequal], methods[unequal] = permuted.p.numpy()[unequal], code["label permutation"]
        if max_t:
            top = permuted.max_t_p.numpy()
    if max_t and top is None:
        used = count
        top = flip_counts(torch.from_numpy(values), count, seed, max_t=True).max_t_p.numpy()
    if len(rest):
        used = count
        counts = flip_counts(torch.from_numpy(values[:, rest]), count, seed)
        p[rest], methods[rest] = counts.p.numpy(), code["simulation"]
    if top is not None:
        top = np.where(mask.any(0), top, np.nan)
    return PairTests(p, methods, used, top)


def paired_t_tests(effects: Effects) -> PairTests:
    """The t test that goes with the interval of Δ̄; all tied gives 1, and so does a single instance."""
    from scipy.special import stdtr

    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * stdtr(np.maximum(effects.degrees, 1.0), -np.abs(effects.centre) / effects.error)
    compared = effects.instances > 0
    tied = compared & (effects.decided == 0)
    p = np.where(tied | (compared & (effects.degrees < 1)), 1.0, np.where(compared, p, np.nan))
    methods = np.where(tied, METHODS.index("tied"), np.where(compared, METHODS.index("paired t"), 0))
    return PairTests(p, methods)
