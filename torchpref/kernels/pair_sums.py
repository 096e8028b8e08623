"""What every kernel returns: integer sums over trial pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from torchpref.runs.measures import CURVE_MEASURES

#: The fields, in order.
FIELDS = (*CURVE_MEASURES, *(f"{name}_ties" for name in CURVE_MEASURES), "lr_solved", "lr_sooner")

IntSums = Int[Tensor, "instance pair"]


class PairSums:
    """Sums over the present trial pairs of each (instance, pair of systems); int64 ``[instance, pair]`` each.

    Kernels hand over narrower integers, or leave out what follows from the rest; a field is widened or worked out when
    it is read, so that what nobody asks for takes no memory.

    Attributes:
        lr: sum of LR.
        rpp, ipp: sums of RPP and IPP in millionths, where |Δ| ≤ 10 millionths of a trial pair was set to 0 first.
        lr_ties, rpp_ties, ipp_ties: how many trial pairs are tied.
        lr_solved: the part of ``lr`` from trial pairs of which exactly one run succeeds.
        lr_sooner: the part from trial pairs of which both runs succeed. What is left is from those where neither does.
    """

    lr: IntSums
    rpp: IntSums
    ipp: IntSums
    lr_ties: IntSums
    rpp_ties: IntSums
    ipp_ties: IntSums
    lr_solved: IntSums
    lr_sooner: IntSums

    def __init__(self, *values: Tensor | Callable[[], Tensor]) -> None:
        self._values = dict(zip(FIELDS, values, strict=True))

    def __getattr__(self, field: str) -> IntSums:
        if field not in FIELDS:
            raise AttributeError(f"PairSums has no field {field!r}")
        return self.narrow(field).long()

    def narrow(self, field: str) -> IntSums:
        """A field in the type in which the kernel has it."""
        value = self._values[field]
        return value if isinstance(value, Tensor) else value()

    @classmethod
    def single(
        cls,
        lr: IntSums,
        rpp: IntSums,
        ipp: IntSums,
        pairs: Int[Tensor, "pair 2"],
        present: Bool[Tensor, "instance system"],
        solved: Bool[Tensor, "instance system"],
    ) -> PairSums:
        """The sums of one trial per run: ties and the split follow from the values themselves."""
        first, second = pairs[:, 0], pairs[:, 1]

        def tied(value: Tensor) -> Callable[[], Tensor]:
            return lambda: (value == 0) & present[:, first] & present[:, second]

        return cls(
            lr,
            rpp,
            ipp,
            tied(lr),
            tied(rpp),
            tied(ipp),
            lambda: lr * (solved[:, first] ^ solved[:, second]),
            lambda: lr * (solved[:, first] & solved[:, second]),
        )

    @classmethod
    def zeros(cls, instances: int, pairs: int, device: torch.device | str) -> PairSums:
        """Sums over nothing."""
        return cls(*(torch.zeros((instances, pairs), dtype=torch.int64, device=device) for _ in FIELDS))

    @classmethod
    def cat(cls, parts: Sequence[PairSums], dim: int) -> PairSums:
        """Parts put together along instances (0) or pairs (1)."""
        return cls(*(torch.cat([part.narrow(field) for part in parts], dim) for field in FIELDS))

    def to(self, device: str | torch.device) -> PairSums:
        """The sums on another device."""
        return PairSums(*(self.narrow(field).to(device) for field in FIELDS))
