"""What a reader of an evaluation must know that the data alone do not show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from torchpref.evaluation.result import MeasureResult
from torchpref.pairwise.preferences import SPLIT_PARTS, Preferences
from torchpref.report.numbers import counted
from torchpref.runs.curves import grid_levels
from torchpref.runs.findings import Finding
from torchpref.runs.measures import describe
from torchpref.stats.ranking.ranking import order_doubt
from torchpref.stats.significance.significance import significance

#: Where more pairs than this would have to be tested, an order is doubted only where a board was asked for.
_TESTED_PAIRS = 5_000
#: How many pairs a finding names.
_NAMED = 3


def comparison_findings(results: Mapping[str, MeasureResult], judge: str | None = None) -> Iterator[Finding]:
    """Measures without a clock, an approximate grid, pairs without a shared instance, pairs that their split contradicts."""
    without = [name for name, result in results.items() if result.preferences is None]
    if without:
        shown = ", ".join(name.upper() for name in without)
        message = f"measures compare times, and these runs carry no clock: {shown} could not be computed"
        yield Finding("measures_without_clock", "warning", len(without), message)
    first = next((result.preferences for result in results.values() if result.preferences is not None), None)
    if first is not None:
        yield from _approximation(first)
        apart = (~first.mask.any(0)).nonzero().squeeze(-1)
        if len(apart):
            named = [" and ".join(_names(first, pair)) for pair in apart[:_NAMED].tolist()]
            message = "pairs of systems share no instance; they are compared by way of others, if at all"
            yield Finding(
                "pairs_without_shared_instance", "warning", len(apart), message, _concerned(first, apart), tuple(named)
            )
    yield from _doubts(results, judge)
    lr = results["lr"].preferences if "lr" in results else None
    if lr is not None:
        yield from _contradictions(lr)


def _doubts(results: Mapping[str, MeasureResult], judge: str | None) -> Iterator[Finding]:
    """Whether the order under the measure that judges is more than chance could give."""
    judged = results.get(judge or "")
    if judged is None or judged.preferences is None or len(judged.preferences.systems) < 2:
        return
    prefs, board = judged.preferences, judged.board
    if board is not None:
        pairs = len(prefs.pairs)
        doubt = board.rank_reason
        if not doubt and len(board.groups) == 1:
            doubt = f"none of {counted(pairs, 'pair')} of systems differs significantly after Holm"
    elif len(prefs.pairs) <= _TESTED_PAIRS:
        single = describe(prefs.measure).ternary and int(prefs.trial_pairs.max()) <= 1
        doubt = order_doubt(significance(prefs, "holm", test="sign-flip" if single else "t"))
    else:
        return
    if doubt:
        message = f"the order by {prefs.measure.upper()} is not established: {doubt}; systems"
        yield Finding("order_not_established", "warning", len(prefs.systems), message)


def _approximation(prefs: Preferences) -> Iterator[Finding]:
    """Every grid but the exact one leaves something out."""
    levels = grid_levels(prefs.grid)
    if levels is not None:
        message = "levels of the grid that was asked for stand for all levels: LR, RPP and IPP are approximations"
        yield Finding("approximate_grid", "warning", len(levels), message)


def _contradictions(lr: Preferences) -> Iterator[Finding]:
    """The pairs whose *solved more* has the opposite sign of their Δ̄, those with the largest such term named."""
    mean, split = lr.pair_means(), lr.pair_split()
    solved = split[SPLIT_PARTS[0]]
    pairs = (torch.nan_to_num(solved * mean) < 0).nonzero().squeeze(-1)
    if not len(pairs):
        return
    pairs = pairs[torch.sort(solved[pairs].abs(), descending=True, stable=True).indices]
    worst = []
    for pair in pairs[:_NAMED].tolist():
        sign = 1 if mean[pair] > 0 else -1
        first, second = _names(lr, pair)[::sign]
        terms = ", ".join(f"{name} {sign * values[pair].item() + 0:+.3f}" for name, values in split.items())
        worst.append(f"{first} over {second}: {sign * mean[pair].item():+.3f} = {terms}")
    message = f"pairs in which LR by {lr.clock} prefers the system that solves less, on the instances both ran"
    yield Finding("contradicting_pairs", "warning", len(pairs), message, _concerned(lr, pairs), tuple(worst))


def _names(prefs: Preferences, pair: int) -> tuple[str, str]:
    first, second = prefs.pairs[pair].tolist()
    return prefs.systems[first], prefs.systems[second]


def _concerned(prefs: Preferences, pairs: Tensor) -> tuple[str, ...]:
    return tuple(prefs.systems[i] for i in sorted(set(prefs.pairs[pairs].flatten().tolist())))
