"""Resampling runs within instances, on top of resampling instances.

Every system's runs of an instance are drawn anew from those that there are, with replacement and as many as there are. The
sum of Δ over the drawn trial pairs of systems A and B is a form in how often each run was drawn, Σᵢⱼ cᵢ cⱼ Δᵢⱼ over runs i of
A and j of B, in whole numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchpref.pairwise.run_sums import RunSums, run_sums
from torchpref.stats.resampling.instances import BLOCK, ReplicateMeans, Resampler, stream

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences


class TrialResampler(Resampler):
    """Means of :class:`Preferences` under weights over instances, with runs drawn anew within each.

    Args:
        prefs: the preferences.
        seed: whole number.
        largest_total: see :class:`Resampler`.
    """

    def __init__(self, prefs: Preferences, seed: int, largest_total: float | None = None) -> None:
        super().__init__(prefs, largest_total)
        self._seed = seed
        self._pairs = prefs.pairs.cpu()
        self._values = prefs.weights.cpu()
        self._unit = prefs.unit
        self._runs = list(run_sums(prefs))
        self._instances = len(prefs.instances)

    def means(self, weights: Tensor, start: int = 0) -> ReplicateMeans:
        """Means of replicates ``start``, ``start`` + 1, … under ``weights`` [replicate, instance]."""
        total = super().means(weights).weights
        sums = torch.zeros((len(weights), len(self._pairs)), dtype=torch.float64)
        for runs in self._runs:
            here = weights[:, runs.instance].double() * self._values[runs.instance]
            drawn = self._multiplicities(runs, start, start + len(weights))
            sums += here[:, None] * self._delta(runs, drawn)
        return ReplicateMeans(torch.where(total > 0, sums / total, torch.nan), total)

    def _multiplicities(self, runs: RunSums, start: int, stop: int) -> Float[Tensor, "replicate run"]:
        """How often each run is drawn; block by block, so that the cut into chunks never matters."""
        counts = torch.bincount(runs.system).numpy()
        first = np.concatenate([[0], np.cumsum(counts)])[runs.system.numpy()]
        size = counts[runs.system.numpy()]
        rows = []
        for block in range(start // BLOCK, -(-stop // BLOCK)):
            rng = stream(self._seed, "trials", block * self._instances + runs.instance)
            chosen = first + rng.integers(0, np.maximum(size, 1), size=(BLOCK, len(size)))
            chosen += np.arange(BLOCK)[:, None] * len(size)
            drawn = np.bincount(chosen.ravel(), minlength=BLOCK * len(size)).reshape(BLOCK, len(size))
            rows.append(drawn[max(start - block * BLOCK, 0) : min(stop - block * BLOCK, BLOCK)])
        return torch.from_numpy(np.concatenate(rows)).double()

    def _delta(self, runs: RunSums, drawn: Float[Tensor, "replicate run"]) -> Float[Tensor, "replicate pair"]:
        """Δ of the instance in every replicate, 0 where a pair is not compared."""
        delta = torch.zeros((len(drawn), len(self._pairs)), dtype=torch.float64)
        present = sorted(set(runs.system.tolist()))
        place: dict[int, Int[Tensor, " run"]] = {
            system: torch.nonzero(runs.system == system).squeeze(-1) for system in present
        }
        a, b = self._pairs[:, 0], self._pairs[:, 1]
        for second in present:
            mine = place[second]
            against = drawn * (
                drawn[:, mine] @ runs.matrix[:, mine].t()
            )  # [replicate, run], each run against this system
            for pair in torch.nonzero(b == second).squeeze(-1).tolist():
                rivals = place.get(int(a[pair]))
                if rivals is not None:
                    scale = self._unit * len(rivals) * len(mine)
                    delta[:, pair] = against[:, rivals].sum(1) / scale
        return delta
