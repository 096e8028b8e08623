"""Two systems, instance by instance: Δ, how many runs were compared, and which levels decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.kernels.reference import level_sign
from torchpref.report.numbers import signed
from torchpref.runs.curves import LEVEL_PAD, Curves, time_to_level, union_levels
from torchpref.runs.units import MILLION

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, eq=False, repr=False)
class PairPreferences:
    """Δ(first, second) of every instance that both ran.

    Attributes:
        measure: short name of the measure.
        first, second: names of the systems; Δ > 0 prefers the first.
        rows: positions of the shared instances among all instances.
        instances: their names.
        benchmarks: their benchmarks.
        delta: float64 ``[instance]``.
        trial_pairs: int64 ``[instance]``, pairs of runs compared.
        ties: int64 ``[instance]``, how many of them are tied.
        mean: Δ̄ of the pair.
        levels: int32 ``[instance, level]`` millionths, the levels that either system attains, padded with ``LEVEL_PAD``;
            None for measures that know no levels.
        signs: float64 ``[instance, level]``, mean over trial pairs of +1 where the first is sooner at the level and -1
            where the second is.
    """

    measure: str
    first: str
    second: str
    rows: Int[Tensor, " instance"]
    instances: tuple[str, ...]
    benchmarks: tuple[str, ...]
    delta: Float[Tensor, " instance"]
    trial_pairs: Int[Tensor, " instance"]
    ties: Int[Tensor, " instance"]
    mean: float
    levels: Int[Tensor, "instance level"] | None
    signs: Float[Tensor, "instance level"] | None

    def level_signs(self, instance: str, benchmark: str | None = None) -> dict[float, float]:
        """At each level of one instance: +1 where the first is sooner, -1 where the second is (mean over trial pairs)."""
        if self.levels is None or self.signs is None:
            raise UsageError(f"{self.measure.upper()} compares one number per run, not levels")
        found = [
            row
            for row, (name, bench) in enumerate(zip(self.instances, self.benchmarks, strict=True))
            if name == instance and (benchmark is None or bench == benchmark)
        ]
        if len(found) != 1:
            problem = "stands in several benchmarks; name one" if found else "was not run by both systems"
            raise UsageError(f"instance {instance!r} {problem}")
        row = found[0]
        return {
            level / MILLION: sign
            for level, sign in zip(self.levels[row].tolist(), self.signs[row].tolist(), strict=True)
            if level != LEVEL_PAD
        }

    def to_frame(self) -> polars.DataFrame:
        """A row per shared instance, the most decisive first."""
        import polars as pl

        columns: dict[str, Any] = {
            "benchmark": list(self.benchmarks),
            "instance": list(self.instances),
            "delta": self.delta.cpu().numpy(),
            "trial_pairs": self.trial_pairs.cpu().numpy(),
            "ties": self.ties.cpu().numpy(),
        }
        if self.levels is not None and self.signs is not None:
            first, second = [], []
            for levels, signs in zip(self.levels.tolist(), self.signs.tolist(), strict=True):
                real = [
                    (level / MILLION, sign) for level, sign in zip(levels, signs, strict=True) if level != LEVEL_PAD
                ]
                first.append([level for level, sign in real if sign > 0])
                second.append([level for level, sign in real if sign < 0])
            columns["levels_first_sooner"] = pl.Series(first, dtype=pl.List(pl.Float64))
            columns["levels_second_sooner"] = pl.Series(second, dtype=pl.List(pl.Float64))
        frame = pl.DataFrame(columns)
        return frame.sort(pl.col("delta").abs(), descending=True, maintain_order=True)

    def __repr__(self) -> str:
        won, lost = int((self.delta > 0).sum()), int((self.delta < 0).sum())
        tied = len(self.instances) - won - lost
        mean = signed(self.mean, 4) or "unknown"
        return (
            f"{self.measure.upper()}({self.first!r}, {self.second!r}): mean {mean} over {len(self.instances)} "
            f"instances, {won} won, {lost} lost, {tied} tied"
        )


def signs_at_levels(two: Curves) -> tuple[Int[Tensor, "instance level"], Float[Tensor, "instance level"]]:
    """Mean over trial pairs of the sign at every level that either of two systems attains."""
    levels = union_levels(two)
    ticks = time_to_level(two, levels).unsqueeze(-1)  # [instance, system, trial, level, 1]
    a = ticks[:, 0].permute(0, 2, 1, 3)  # [instance, level, trial, 1]
    b = ticks[:, 1].permute(0, 2, 3, 1)  # [instance, level, 1, trial]
    bound_a = bound_b = None
    if two.bound is not None:
        bound_a, bound_b = two.bound[:, 0, None, :, None], two.bound[:, 1, None, None, :]
    both = two.present[:, 0, None, :, None] & two.present[:, 1, None, None, :]
    total = torch.where(both, level_sign(a, b, bound_a, bound_b), 0).sum((-2, -1)).double()
    return levels, total / both.sum((-2, -1)).clamp(min=1)
