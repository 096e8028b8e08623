"""What a reader of an evaluation must know that the data alone do not show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from torchpref.evaluation import MeasureResult
from torchpref.findings import Finding
from torchpref.preferences import SPLIT_PARTS, Preferences

#: How many pairs a finding names.
_NAMED = 3


def comparison_findings(results: Mapping[str, MeasureResult]) -> Iterator[Finding]:
    """Measures that could not be computed, pairs without a shared instance, pairs whose split contradicts them."""
    without = [name for name, result in results.items() if result.preferences is None]
    if without:
        shown = ", ".join(name.upper() for name in without)
        message = f"measures compare times, and these runs carry no clock: {shown} could not be computed"
        yield Finding("measures_without_clock", "warning", len(without), message)
    first = next((result.preferences for result in results.values() if result.preferences is not None), None)
    if first is not None:
        apart = (~first.mask.any(0)).nonzero().squeeze(-1)
        if len(apart):
            named = [" and ".join(_names(first, pair)) for pair in apart[:_NAMED].tolist()]
            message = "pairs of systems share no instance; they are compared by way of others, if at all"
            yield Finding(
                "pairs_without_shared_instance", "warning", len(apart), message, _concerned(first, apart), tuple(named)
            )
    lr = results["lr"].preferences if "lr" in results else None
    if lr is not None:
        against = contradicting_pairs(lr)
        if len(against):
            message = f"pairs in which LR by {lr.clock} prefers the system that solves less, on the instances both ran"
            named = [in_words(lr, pair) for pair in against[:_NAMED].tolist()]
            yield Finding(
                "contradicting_pairs", "warning", len(against), message, _concerned(lr, against), tuple(named)
            )


def contradicting_pairs(lr: Preferences) -> Tensor:
    """Positions of the pairs whose *solved more* has the opposite sign of their Δ̄, the largest such term first."""
    pairs = lr.contradictions().nonzero().squeeze(-1)
    solved = lr.pair_split()[SPLIT_PARTS[0]][pairs].abs()
    return pairs[torch.sort(solved, descending=True, stable=True).indices]


def in_words(lr: Preferences, pair: int) -> str:
    """A pair of LR with its split, the preferred system first."""
    sign = 1 if lr.pair_means()[pair] >= 0 else -1
    first, second = _names(lr, pair)[::sign]
    terms = ", ".join(f"{name} {sign * values[pair].item():+.3f}" for name, values in lr.pair_split().items())
    return f"{first} over {second}: {sign * lr.pair_means()[pair].item():+.3f} = {terms}"


def _names(prefs: Preferences, pair: int) -> tuple[str, str]:
    first, second = prefs.pairs[pair].tolist()
    return prefs.systems[first], prefs.systems[second]


def _concerned(prefs: Preferences, pairs: Tensor) -> tuple[str, ...]:
    return tuple(prefs.systems[i] for i in sorted(set(prefs.pairs[pairs].flatten().tolist())))
