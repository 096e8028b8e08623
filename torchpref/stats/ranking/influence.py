"""What single instances do to the ranking: how every score would change without one, and which pairs it turns round.

Nothing is refitted. Means without an instance are exact; scores take one Newton step on the remaining data from the solution
on all of them, which is off by a second-order term in the instance's weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from torchpref.report.numbers import percent, signed
from torchpref.runs.plain import plain
from torchpref.stats.bradley_terry.graph import is_strongly_connected
from torchpref.stats.bradley_terry.model import BradleyTerry, bradley_terry
from torchpref.stats.ranking.score_errors import inverse_hessian, pair_squares
from torchpref.stats.significance.effects import to_tensor

if TYPE_CHECKING:
    import polars

    from torchpref.pairwise.preferences import Preferences

#: Up to this many systems the Hessian without the instance is used, for more the Hessian of all of them.
_EXACT_STEP = 128


@dataclass(frozen=True, eq=False, repr=False)
class Influence:
    """What leaving out one instance does.

    Attributes:
        measure: short name of the measure.
        systems, instances, benchmarks: names.
        pairs: int64 ``[pair, 2]``.
        change: float64 ``[instance, system]``, score without the instance less score with it; NaN where either does not
            exist, as where nobody else beats a system once the instance is gone.
        mean_change: float64 ``[instance, pair]``, the same of Δ̄, exact; NaN where nothing is left.
        flips: bool ``[instance, pair]``, Δ̄ strictly reverses its sign without the instance.
        shared: bool ``[instance, pair]``, the pair is compared on the instance.
    """

    measure: str
    systems: tuple[str, ...]
    instances: tuple[str, ...]
    benchmarks: tuple[str, ...]
    pairs: Int[Tensor, "pair 2"]
    change: Float[Tensor, "instance system"]
    mean_change: Float[Tensor, "instance pair"]
    flips: Bool[Tensor, "instance pair"]
    shared: Bool[Tensor, "instance pair"]

    @property
    def flipped_pairs(self) -> float:
        """Share of the compared pairs whose sign some single instance reverses; NaN without any pair."""
        compared = self.shared.any(0)
        return int(self.flips.any(0).sum()) / int(compared.sum()) if bool(compared.any()) else float("nan")

    @property
    def flip_rate(self) -> float:
        """The share over (pair, instance)."""
        count = int(self.shared.sum())
        return int(self.flips.sum()) / count if count else float("nan")

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary per instance, the most influential first."""
        lost = torch.isnan(self.change) & ~torch.isnan(self.change).all(0)
        size = torch.where(lost, torch.inf, torch.nan_to_num(self.change.abs(), nan=0.0))
        largest, system = size.max(1) if size.shape[1] else (size.sum(1), size.sum(1).long())
        order = np.lexsort((np.arange(len(largest)), -largest.numpy()))
        return [
            {
                "benchmark": self.benchmarks[i],
                "instance": self.instances[i],
                "system": self.systems[int(system[i])] if self.systems else "",
                "change": plain(self.change[i, int(system[i])]) if self.systems else None,
                "flips": [f"{self.systems[a]} − {self.systems[b]}" for a, b in self.pairs[self.flips[i]].tolist()],
            }
            for i in order.tolist()
        ]

    def to_frame(self) -> polars.DataFrame:
        """A row per instance: the system whose score changes most, by how much, and the pairs that turn round."""
        import polars as pl

        schema: dict[str, Any] = {
            "benchmark": pl.String,
            "instance": pl.String,
            "system": pl.String,
            "change": pl.Float64,
            "flips": pl.List(pl.String),
        }
        return pl.DataFrame(self.rows(), schema=schema)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "measure": self.measure,
            "flipped_pairs": plain(self.flipped_pairs),
            "flip_rate": plain(self.flip_rate),
            "instances": self.rows(),
        }

    def __repr__(self) -> str:
        lines = [f"{self.measure.upper()}: no pair of systems shares an instance"]
        if bool(self.shared.any()):
            lines = [
                f"{self.measure.upper()}: some single instance turns round {percent(self.flipped_pairs)} of the pairs "
                f"({percent(self.flip_rate, 3)} of pairs and instances)"
            ]
        for row in self.rows()[:10]:
            change = signed(row["change"], 4) or "no finite score"
            turned = f", turns round {len(row['flips'])} pairs" if row["flips"] else ""
            lines.append(f"  without {row['instance']}: {row['system']} {change}{turned}")
        return "\n".join(lines)


def influence(prefs: Preferences, fit: BradleyTerry | None = None) -> Influence:
    """How scores and means change when one instance is left out.

    Args:
        prefs: the preferences.
        fit: the scores on all instances; fitted where None.
    """
    fit = bradley_terry(prefs) if fit is None else fit
    theta = fit.theta.detach().double().cpu().numpy()
    members = np.flatnonzero(~np.isnan(theta))
    change = np.full((len(prefs.instances), len(prefs.systems)), np.nan)
    if len(members) > 1:
        change[:, members] = _score_changes(prefs, theta[members], members)
        for instance in _without_a_score(prefs, members):
            change[instance] = np.nan

    weight = prefs.mask.cpu().numpy() * prefs.weights.cpu().numpy()[:, None]
    mean, total = prefs.pair_means().cpu().numpy(), weight.sum(0)
    rest = total - weight
    clean = np.nan_to_num(prefs.delta.cpu().numpy())
    with np.errstate(invalid="ignore", divide="ignore"):
        without = np.where(rest > 1e-12 * total, (total * mean - weight * clean) / rest, np.nan)
    flips = (np.nan_to_num(without) * np.nan_to_num(mean) < 0) & (np.abs(np.nan_to_num(without)) > 1e-12)
    return Influence(
        measure=prefs.measure,
        systems=prefs.systems,
        instances=prefs.instances,
        benchmarks=prefs.benchmarks,
        pairs=prefs.pairs.cpu(),
        change=to_tensor(change),
        mean_change=to_tensor(without - mean),
        flips=torch.from_numpy(flips & (weight > 0)),
        shared=torch.from_numpy(weight > 0),
    )


def _without_a_score(prefs: Preferences, members: NDArray[np.int64]) -> list[int]:
    """Instances without which no finite scores exist: some group of systems would win, or lose, everything else.

    Scores are finite where the graph of wins is strongly connected. Only an instance that holds the last win of a system over
    another can break it, so few graphs are looked at.
    """
    size = len(members)
    wins = np.zeros((size, size), dtype=np.int64)
    for _, delta, weight in pair_squares(prefs, members):
        wins += ((weight > 0) & (delta > -1)).sum(axis=0)  # a tie, or a draw over trials, is a win of both
    found = []
    for rows, delta, weight in pair_squares(prefs, members):
        last = (weight > 0) & (delta > -1) & (wins == 1)
        some = np.flatnonzero(last.any(axis=(1, 2)))
        found += [int(rows[i]) for i in some if not is_strongly_connected((wins > 0) & ~last[i])]
    return found


def _score_changes(prefs: Preferences, theta: NDArray[np.float64], members: NDArray[np.int64]) -> NDArray[np.float64]:
    """One Newton step per left-out instance."""
    size = len(members)
    chance = 1 / (1 + np.exp(-(theta[:, None] - theta[None, :])))
    spread = chance * (1 - chance)
    total = sum((weight.sum(axis=0) for _, _, weight in pair_squares(prefs, members)), np.zeros((size, size)))
    inverse = inverse_hessian(total * spread)
    change = np.zeros((len(prefs.instances), size))
    for rows, delta, weight in pair_squares(prefs, members):
        gradient = (weight * ((delta + 1) / 2 - chance)).sum(axis=2)
        if size > _EXACT_STEP:
            change[rows] = -np.einsum("ns,ts->nt", gradient, inverse)
            continue
        curvature = (total - weight) * spread
        scale = np.maximum(curvature.sum(axis=(1, 2)) / size, np.finfo(float).tiny)[:, None, None]
        hessian = np.eye(size) * curvature.sum(axis=2)[:, None, :] - curvature + scale / size
        factor, failed = torch.linalg.cholesky_ex(torch.from_numpy(hessian))
        step = torch.cholesky_solve(torch.from_numpy(-gradient[:, :, None]), factor)[:, :, 0].numpy()
        # Without the instance the systems fall apart: there is no score then.
        lost = (failed.numpy() > 0) | (
            factor.diagonal(dim1=1, dim2=2).amin(1) ** 2 < 1e-9 * torch.from_numpy(scale[:, 0, 0])
        ).numpy()
        step[lost] = np.nan
        change[rows] = step
    return change
