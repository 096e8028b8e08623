"""How much of the spread of Δ comes from the runs themselves: what more trials would take away.

Within an instance, Δ between run i of A and run j of B is taken apart into a part of i, a part of j and a rest (two-way random
effects). With k trials of each, the mean over trial pairs keeps (σ²_A + σ²_B) / k + σ²_rest / k² of their variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from torchpref.pairwise.run_sums import run_presence, run_sums

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences


@dataclass(frozen=True)
class TrialNoise:
    """Variances within an instance, means over the instances that both systems ran at least twice.

    Attributes:
        now: float64 ``[pair]``, variance of Δ of an instance that is due to its runs, with trials as they are; NaN where no
            instance was run twice by both.
        runs: float64 ``[pair]``, σ²_A + σ²_B.
        rest: float64 ``[pair]``, σ²_rest.
    """

    now: NDArray[np.float64]
    runs: NDArray[np.float64]
    rest: NDArray[np.float64]

    def with_trials(self, count: int) -> NDArray[np.float64]:
        """The variance that is left with ``count`` trials of each system."""
        left: NDArray[np.float64] = self.runs / count + self.rest / count**2
        return left


def trial_noise(prefs: Preferences) -> TrialNoise | None:
    """The noise of runs for every pair; None where no pair ran any instance twice each."""
    counts = run_presence(prefs).sum(-1)
    pairs = prefs.pairs.cpu()
    repeated = (counts[:, pairs[:, 0]] >= 2) & (counts[:, pairs[:, 1]] >= 2)
    if not bool(repeated.any()):
        return None
    first, second = pairs.numpy().T
    sums = np.zeros((4, len(pairs)))
    for runs in run_sums(prefs, torch.nonzero(repeated.any(1)).squeeze(-1)):
        here = repeated[runs.instance].numpy()
        size = counts[runs.instance].numpy().astype(float)
        of = torch.nn.functional.one_hot(runs.system, len(size)).double().numpy()
        delta = runs.matrix.numpy() / prefs.unit
        row_means = (delta @ of) / np.maximum(size, 1)  # [run, system]
        squares = of.T @ (delta * delta) @ of
        means = (of.T @ row_means) / np.maximum(size, 1)[:, None]
        rows = of.T @ (row_means**2) - size[:, None] * means**2  # Σ over runs of (row mean − mean)²
        k, m = size[first], size[second]
        by_first, by_second = m * rows[first, second], k * rows[second, first]
        rest = squares[first, second] - k * m * means[first, second] ** 2 - by_first - by_second
        with np.errstate(divide="ignore", invalid="ignore"):
            rest_each = np.maximum(rest / ((k - 1) * (m - 1)), 0.0)
            first_each = np.maximum((by_first / (k - 1) - rest_each) / m, 0.0)
            second_each = np.maximum((by_second / (m - 1) - rest_each) / k, 0.0)
            now = first_each / k + second_each / m + rest_each / (k * m)
        for total, part in zip(sums, (now, first_each + second_each, rest_each, np.ones_like(now)), strict=True):
            total += np.where(here, np.nan_to_num(part), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return TrialNoise(*(total / sums[3] for total in sums[:3]))
