"""A/A tests: what a measure finds between pseudo-systems that are trials of one system.

The trials of an instance are exchangeable, so under any dealing of them to pseudo-systems every significant difference is a
false alarm. Instances are not resampled: an instance that is there twice would count as two independent ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from torchpref.meta.fast_test import holm_rejects
from torchpref.pairwise.preferences import Preferences, Weights, all_preferences
from torchpref.pairwise.run_sums import run_presence
from torchpref.runs.curves import Grid
from torchpref.runs.measures import ALPHA
from torchpref.runs.trajectories import Trajectories

#: Pseudo-systems per system at most; with random dealing more of them would say little more.
MOST = 8
_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class FalseAlarms:
    """What was found between equal systems.

    Attributes:
        pairs: float64 ``[draw]``, share of pairs that are significant after Holm.
        draws: float64 ``[draw]``, 1 where any pair is.
        tested: number of pairs of pseudo-systems.
    """

    pairs: Float[Tensor, " draw"]
    draws: Float[Tensor, " draw"]
    tested: int


def false_alarms(
    runs: Trajectories,
    measures: Sequence[str],
    *,
    clock: str | None = None,
    weights: Weights = "instance",
    grid: Grid = "exact",
    draws: int = 200,
    alpha: float = ALPHA,
    seed: int = 0,
) -> dict[str, FalseAlarms]:
    """False alarms per measure; empty where no system has two trials of any instance.

    Args:
        runs: the runs; systems with one trial are left out.
        measures: short names.
        clock, weights, grid: as for :func:`torchpref.preferences`.
        draws: how often trials are dealt to pseudo-systems.
        alpha: error rate of Holm's correction over all pairs of a draw.
        seed: whole number.
    """
    p_values: dict[str, list[Tensor]] = {name: [] for name in measures}
    for system in range(len(runs.systems)):
        if int(runs.present[:, system].sum(-1).max() if len(runs.instances) else 0) < 2:
            continue
        trials = runs.take(systems=[system]).split_trials()
        prefs = all_preferences(trials, measures, clock=clock, weights=weights, grid=grid)
        # Every measure sees the same dealing.
        keys = np.random.default_rng([seed, 8, system]).random((draws, *trials.shape[:2]), dtype=np.float32)
        for name in measures:
            p_values[name].append(_dealt_p(prefs[name], torch.from_numpy(keys)))
    found = {}
    for name, parts in p_values.items():
        p = torch.cat(parts, 1) if parts else torch.zeros((draws, 0))
        p = p[:, ~torch.isnan(p).all(0)]
        if p.shape[1]:
            holm = holm_rejects(p, alpha)
            tested = (~torch.isnan(p)).sum(1).double()
            found[name] = FalseAlarms(holm.sum(1) / tested, holm.any(1).double(), p.shape[1])
    return found


def _dealt_p(prefs: Preferences, keys: Float[Tensor, "draw instance trial"]) -> Float[Tensor, "draw pair"]:
    """p-values between pseudo-systems of one system, one per trial."""
    present = run_presence(prefs).squeeze(-1)
    matrix, span = _differences(prefs)
    size = min(MOST, int(present.sum(1).max()))
    if size < 2:  # runs without a score, as a success at an unknown time for SPL
        return torch.zeros((len(keys), 0), dtype=torch.float64)
    from torchpref.meta.compiled import dealt_rows, over_rows

    pairs = np.array(list(combinations(range(size), 2)))
    count = present.sum(1).numpy()
    largest = float(matrix.abs().max())
    unit = 1.0 / largest if largest else 1.0
    step = max(1, _CELLS // max(1, keys[0].numel()))
    result = []
    for part in torch.split(keys, step):
        dealt = torch.where(present, part, 2.0).argsort(-1)[..., :size].contiguous().numpy()
        p = np.empty((len(part), len(pairs)))
        over_rows(dealt_rows, len(part), matrix.numpy(), count, dealt, pairs, unit, span, p)
        result.append(torch.from_numpy(p))
    return torch.cat(result)


def _differences(prefs: Preferences) -> tuple[Float[Tensor, "instance trial trial"], float]:
    """vΔ of every two trials, 0 where one is missing; and half the distance between sums."""
    from torchpref.stats.significance.exact import lattice_steps

    values = torch.nan_to_num(prefs.delta) * prefs.weights[:, None]
    size = len(prefs.systems)
    matrix = torch.zeros((len(values), size, size), dtype=torch.float64)
    first, second = prefs.pairs[:, 0], prefs.pairs[:, 1]
    matrix[:, first, second], matrix[:, second, first] = values, -values
    steps = lattice_steps(values.numpy())
    if steps is None or not steps.any():
        return matrix, 0.0
    largest = float(values.abs().max())
    return matrix, float(np.gcd.reduce(np.abs(steps), axis=None)) * largest / int(np.abs(steps).max())
