"""Which kernel does the work: the one place that decides.

====================================  ==============================================================================
on a CUDA device, with Triton         :mod:`torchpref.kernels.cuda.launch`, one launch
on any other device, without Triton   :mod:`torchpref.kernels.reference`, torch operations in blocks
on the CPU, little work               the reference: compiling costs seconds, loading what was compiled tenths
on the CPU, more work                 :mod:`torchpref.kernels.cpu.choose`, compiled by numba; it chooses grid or merge form
                                      for each instance by what they would cost
without numba                         the reference, and one warning when that begins to cost
====================================  ==============================================================================

What is little work is decided as one decides between renting and buying: the reference serves until it has cost about
as much as compiling would, over all calls of the process; from then on the compiled kernel does. All give the same
integers, so the choice shows in nothing but time.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from importlib.util import find_spec

import torch

from torchpref.errors import TorchPrefWarning
from torchpref.runs.curves import Curves

#: Seconds of torch work after which a kind of work is compiled.
COMPILE_AFTER = 2.0
#: Comparisons of two runs at a level, all three measures, and steps of two rollouts that torch does in a second.
REFERENCE_RATE = 2e7
ROLLOUT_RATE = 4e8


@dataclass
class Ledger:
    """How many seconds of each kind of work torch has done (by estimate), and whether numba is there."""

    spent: dict[str, float] = field(default_factory=dict)
    numba: bool | None = None

    def compiled(self, kind: str, seconds: float) -> bool:
        """Whether this work, which would take torch so long, is for the compiled kernel."""
        total = self.spent.get(kind, 0.0) + seconds
        self.spent[kind] = total
        return total >= COMPILE_AFTER and self.has_numba()

    def has_numba(self) -> bool:
        """Whether numba can be imported; says once that it cannot."""
        if self.numba is None:
            self.numba = find_spec("numba") is not None
            if not self.numba:
                warnings.warn(
                    "numba is not installed: all pairs are compared by torch, correctly but many times slower; "
                    "pip install numba",
                    TorchPrefWarning,
                    stacklevel=4,
                )
        return self.numba


LEDGER = Ledger()


def kernel_for_pairs(curves: Curves, pairs: int) -> str:
    """``"cuda"``, ``"cpu"`` or ``"reference"`` for so many pairs of systems on these curves."""
    device = curves.levels.device.type
    if device == "cuda":
        return "cuda" if has_triton() else "reference"
    if device != "cpu":
        return "reference"
    instances, systems, trials, jumps = curves.shape
    # How many levels an instance has is not known without work; mostly it is a few times a run's own.
    cells = instances * pairs * trials**2 * min(jumps * systems * trials, 2 * jumps)
    kind = "pairs" if trials == 1 else "pairs of trials"
    return "cpu" if LEDGER.compiled(kind, cells / REFERENCE_RATE) else "reference"


def groups_compiled(device: torch.device, pairs: int, steps: int, by_step: bool) -> bool:
    """Whether so many pairs of rollouts of a training batch are for the compiled kernel."""
    if device.type != "cpu" or torch.compiler.is_compiling():
        return False
    kind = "rollouts by step" if by_step else "rollouts by level"
    return LEDGER.compiled(kind, pairs * steps / (ROLLOUT_RATE if by_step else ROLLOUT_RATE / 8))


def has_triton() -> bool:
    """Whether the Triton kernel can be used."""
    return find_spec("triton") is not None
