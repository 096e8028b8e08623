"""Runs as arrays, with what several checks of an audit need worked out once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import UsageError
from torchpref.runs.curves import Curves, curves
from torchpref.runs.findings import Finding, Severity
from torchpref.runs.trajectories import Trajectories

Array = NDArray[np.int64]
Flags = NDArray[np.bool_]
EXAMPLES = 3


@dataclass(frozen=True)
class Seen:
    """Runs with what several checks need, worked out once."""

    runs: Trajectories

    @cached_property
    def present(self) -> Flags:
        """``[instance, system, trial]``."""
        return np.asarray(self.runs.present.cpu().numpy())

    @cached_property
    def returns(self) -> NDArray[np.int32]:
        """``[instance, system, trial, step]`` in millionths."""
        return np.asarray(self.runs.returns.cpu().numpy())

    @cached_property
    def final(self) -> NDArray[np.int32]:
        """``[instance, system, trial]``: what each run reached."""
        if not self.returns.shape[-1]:
            return np.zeros(self.present.shape, dtype=np.int32)
        return self.returns[..., -1]

    @cached_property
    def rises(self) -> Flags:
        """Points at which a run reaches a level it had not reached before."""
        before = np.zeros((*self.returns.shape[:-1], 1), dtype=np.int32)
        risen = np.diff(self.returns, axis=-1, prepend=before) > 0
        return np.asarray(risen & self.present[..., None])

    def ticks(self, clock: str) -> Array:
        """``[instance, system, trial, step]`` of a clock."""
        return np.asarray(self.runs.times[clock].cpu().numpy())

    def curves(self, clock: str) -> Curves:
        """The jumps on a clock."""
        return curves(self.runs, clock).to("cpu")

    def names(self, system: Iterable[int] | NDArray[np.bool_]) -> tuple[str, ...]:
        """Names of systems by a mask or by positions."""
        if isinstance(system, np.ndarray) and system.dtype == np.bool_:
            system = np.flatnonzero(system)
        return tuple(self.runs.systems[int(i)] for i in sorted({int(i) for i in system}))

    def instance(self, position: int) -> str:
        """An instance in words."""
        benchmark = self.runs.benchmarks[position]
        return f"{benchmark} {self.runs.instances[position]}" if benchmark else self.runs.instances[position]

    def examples(self, mask: Flags) -> tuple[str, ...]:
        """The first instances of a mask over instances."""
        return tuple(self.instance(int(i)) for i in np.flatnonzero(mask)[:EXAMPLES])

    @cached_property
    def clock(self) -> str | None:
        """The clock that is meant where none is named, or None where it has to be named."""
        try:
            return self.runs.clock()
        except UsageError:
            return None


def finding(
    kind: str,
    message: str,
    count: int,
    systems: tuple[str, ...] = (),
    examples: tuple[str, ...] = (),
    severity: Severity = "warning",
) -> Iterator[Finding]:
    """One finding, or none where nothing was counted."""
    if count:
        yield Finding(kind, severity, count, message, systems, examples)
