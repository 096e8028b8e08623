"""What all preferences between pairs of systems have in common, however they are stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.pairwise.square import as_square, mean_over_rivals
from torchpref.report.numbers import percent, signed
from torchpref.runs.names import name_hint
from torchpref.runs.plain import plain

if TYPE_CHECKING:
    import polars

#: The three terms of LR's Δ̄ in tables: exactly one run solved, both solved, neither solved.
SPLIT_PARTS = ("solved more", "sooner", "further")


def all_pairs(systems: int, device: torch.device | str | None = None) -> Int[Tensor, "pair 2"]:
    """Every pair (a, b) with a < b, in lexicographic order."""
    return torch.combinations(torch.arange(systems, device=device), 2).reshape(-1, 2)


def pair_position(low: Any, high: Any, systems: int) -> Any:
    """Where the pair (low, high) stands in :func:`all_pairs`; for whole numbers or tensors of them."""
    return low * systems - low * (low + 1) // 2 + (high - low - 1)


class BetweenPairs(ABC):
    """Mean preferences of one measure between all pairs of systems, and what follows from them."""

    measure: str
    clock: str | None

    if TYPE_CHECKING:  # fields in one kind, properties in the other

        @property
        def systems(self) -> tuple[str, ...]:
            """Names of the systems."""

        @property
        def n_instances(self) -> int:
            """How many instances there are."""

    @property
    @abstractmethod
    def run_pairs(self) -> int:
        """How many pairs of runs were compared."""

    @abstractmethod
    def pair_means(self) -> Float[Tensor, " pair"]:
        """Δ̄ of every pair over its shared instances; NaN where it shares none."""

    @abstractmethod
    def pair_weights(self) -> Float[Tensor, " pair"]:
        """Sum of the weights of the instances that each pair shares."""

    @abstractmethod
    def pair_split(self) -> Mapping[str, Float[Tensor, " pair"]]:
        """For LR, the three terms whose sum is Δ̄, per pair: solved more, sooner (both solved), further (neither solved)."""

    @abstractmethod
    def tie_rate(self) -> float:
        """Share of tied trial pairs within an (instance, pair), averaged over instances and pairs; NaN without any."""

    @abstractmethod
    def _counts(self) -> tuple[Int[Tensor, " pair"], Int[Tensor, " pair"], Int[Tensor, " pair"]]:
        """Shared instances, trial pairs and tied trial pairs of every pair."""

    @abstractmethod
    def _ran(self) -> Int[Tensor, " system"]:
        """On how many instances each system ran."""

    def _square(self, values: Float[Tensor, " pair"] | Int[Tensor, " pair"], sign: int) -> Tensor:
        return as_square(values, all_pairs(len(self.systems), values.device), len(self.systems), sign)

    def mean(self) -> Float[Tensor, "system system"]:
        """Δ̄(A, B) in row A, column B; antisymmetric, NaN where two systems share no instance."""
        return self._square(self.pair_means(), -1)

    def weight_sums(self) -> Float[Tensor, "system system"]:
        """w_AB, the weight of the instances that two systems share; 0 on the diagonal."""
        return self._square(self.pair_weights(), 1)

    def shared(self) -> Int[Tensor, "system system"]:
        """How many instances two systems share; on the diagonal, how many a system ran."""
        square = self._square(self._counts()[0], 1)
        return square + torch.diag(self._ran()).to(square.device)

    def system_means(self) -> Float[Tensor, " system"]:
        """Mean preference of each system over its rivals (each rival counts once); NaN where it has none."""
        return mean_over_rivals(self.mean())

    def split(self) -> dict[str, Float[Tensor, "system system"]]:
        """For LR, the three terms whose sum is Δ̄: solved more, sooner (both solved), further (neither solved)."""
        return {name: self._square(values, -1) for name, values in self.pair_split().items()}

    def contradictions(self) -> Bool[Tensor, " pair"]:
        """For LR, the pairs whose *solved more* term has the opposite sign of Δ̄."""
        solved = self.pair_split()[SPLIT_PARTS[0]]
        return torch.nan_to_num(solved * self.pair_means()) < 0

    def pair_index(self, first: str, second: str) -> tuple[int, int]:
        """Position of a pair among all and the sign that turns its Δ into Δ(first, second)."""
        positions = []
        for name in (first, second):
            if name not in self.systems:
                raise UsageError(f"no system {name!r}; {name_hint(str(name), self.systems, 'system')}")
            positions.append(self.systems.index(name))
        if positions[0] == positions[1]:
            raise UsageError(f"a system is not compared with itself: {first!r}")
        low, high = sorted(positions)
        return pair_position(low, high, len(self.systems)), 1 if positions[0] == low else -1

    def _no_split(self) -> UsageError:
        return UsageError(f"only LR is a sum of solved more, sooner and further; this is {self.measure.upper()}")

    def to_frame(self) -> polars.DataFrame:
        """A row per pair: names, Δ̄, its weight, instances, trial pairs, tied trial pairs; for LR the split."""
        import polars as pl

        first, second = all_pairs(len(self.systems)).T.tolist()
        instances, trial_pairs, ties = self._counts()
        columns: dict[str, Any] = {
            "a": [self.systems[i] for i in first],
            "b": [self.systems[i] for i in second],
            "mean": self.pair_means().cpu().numpy(),
            "weight": self.pair_weights().cpu().numpy(),
            "instances": instances.cpu().numpy(),
            "trial_pairs": trial_pairs.cpu().numpy(),
            "ties": ties.cpu().numpy(),
        }
        if self.measure == "lr":
            columns |= {name.replace(" ", "_"): values.cpu().numpy() for name, values in self.pair_split().items()}
        return pl.DataFrame(columns).with_columns(pl.col(pl.Float64).fill_nan(None))

    def to_dict(self) -> dict[str, Any]:
        """Names, Δ̄, shared instances and the tie rate as plain lists; None where there is no value."""
        return {
            "measure": self.measure,
            "clock": self.clock,
            "systems": list(self.systems),
            "mean_preference": plain(self.mean()),
            "n_shared": self.shared().tolist(),
            "tie_rate": plain(self.tie_rate()),
            "run_pairs": self.run_pairs,
        }

    def __repr__(self) -> str:
        on = f" by {self.clock}" if self.clock else ""
        head = (
            f"{self.measure.upper()}{on}: {len(self.systems)} systems × {self.n_instances:,} instances, "
            f"{self.run_pairs:,} run pairs, {percent(self.tie_rate()) or 'none'} tied"
        )
        means = self.system_means().tolist()
        order = sorted(range(len(means)), key=lambda i: (means[i] != means[i], -means[i], i))
        width = max((len(name) for name in self.systems), default=0)
        lines = [f"  {self.systems[i]:<{width}}  {signed(float(means[i]), 4) or 'not compared'}" for i in order[:10]]
        if len(order) > 10:
            lines.append(f"  … and {len(order) - 10} more")
        return "\n".join([head, "  mean preference over rivals:" if lines else "  no system", *lines])
