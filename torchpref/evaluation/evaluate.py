"""The whole evaluation in one call: preferences, scores, ranks, tie rates, what the runs did, and the audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.evaluation.findings import comparison_findings
from torchpref.evaluation.result import Evaluation, SystemSummary
from torchpref.evaluation.scores import measure_results, without_clock
from torchpref.pairwise.preferences import Weights, all_preferences
from torchpref.runs.curves import Grid, curves, time_to_level
from torchpref.runs.measures import describe, judge_of, resolve_measures
from torchpref.runs.trajectories import Trajectories
from torchpref.runs.units import MILLION, NEVER, UNKNOWN
from torchpref.stats.resampling.instances import resolve_seed

if TYPE_CHECKING:
    from torchpref.runs.tidy.columns import ColumnsLike


def evaluate(
    runs: Trajectories | Any,
    measures: str | Sequence[str] = "all",
    *,
    columns: ColumnsLike = None,
    bootstrap: int = 0,
    seed: int = 0,
    clock: str | None = None,
    weights: Weights = "instance",
    grid: Grid = "exact",
    device: str | torch.device | None = None,
) -> Evaluation:
    """Compare all systems under some measures and rank them.

    A system without a usable clock takes no part in the scores of the measures that need one (SPL, LR, RPP, IPP): its
    score, rank and mean preferences there are NaN, and a finding names it. Tie rates are over all pairs of runs.

    Args:
        runs: the runs, or a table or paths of which :func:`torchpref.read` makes them.
        columns: for a table or paths, which of its columns is what; see :func:`torchpref.read`.
        measures: ``"all"``, one name or several. The first that is named judges, LR if none is; the others describe.
        bootstrap: number of bootstrap replicates over instances; 0 gives no intervals.
        seed: seed of every random draw.
        clock: the clock; by the rule of :meth:`Trajectories.clock` where None. Runs without any clock are compared by
            success rate and partial return, and the other measures say that they could not be computed.
        weights: weights of instances in the means, see :func:`torchpref.preferences`.
        grid: levels, see :func:`torchpref.preferences`.
        device: where to compute.

    Raises:
        UsageError: an unknown measure, clock or option; fewer than one system; several clocks and none named.
    """
    from torchpref.runs.audit import audit

    if not isinstance(runs, Trajectories):
        from torchpref.io import read

        runs = read(runs, columns=columns)
    elif columns is not None:
        raise UsageError("columns belong to a table; these runs are read already")
    names = resolve_measures(measures)
    if isinstance(bootstrap, bool) or not isinstance(bootstrap, int) or bootstrap < 0:
        raise UsageError(f"bootstrap is a number of replicates, a whole number that is at least 0; got {bootstrap!r}")
    resolve_seed(seed)
    if not runs.systems or not runs.instances:
        raise UsageError(f"nothing to evaluate: {len(runs.systems)} systems and {len(runs.instances)} instances")
    if device is not None:
        runs = runs.to(usable_device(device))
    computable = names if clock is not None or runs.clocks else tuple(n for n in names if not describe(n).temporal)
    if not computable:
        runs.clock(clock)  # says what is missing
    temporal = [name for name in computable if describe(name).temporal]
    # The clock also dates the successes, so it is named with SR and PR alone as well, where there is no doubt about it.
    chosen = runs.clock(clock) if temporal or clock is not None else _undoubted_clock(runs)
    prefs = all_preferences(runs, computable, clock=chosen, weights=weights, grid=grid) if computable else {}
    computed = measure_results(prefs, chosen, bootstrap, seed)
    results = {name: computed[name] if name in computed else without_clock(runs, name) for name in names}
    found = audit(runs if chosen is None else runs.with_options(clock=chosen))
    return Evaluation(
        runs=runs,
        clock=chosen,
        measures=results,
        judge=judge_of(measures, computable) or names[0],
        summary=summarise(runs, chosen),
        audit=found,
        findings=(*found.findings, *comparison_findings(results, judge_of(measures, computable))),
        options={
            "measures": list(names),
            "clock": clock,
            "weights": weights if isinstance(weights, str) else "given",
            "grid": grid if isinstance(grid, str | int) else list(grid),
            "zero_time": runs.zero_time,
            "bootstrap": bootstrap,
        },
        seed=seed,
    )


def usable_device(name: str | torch.device) -> torch.device:
    """The device of that name, if there is one that works here.

    Raises:
        UsageError: the name is none of a device, or the machine or this build of torch has no such device.
    """
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UsageError(f"device {str(name)!r} cannot be used: {reason}; cpu always works") from error
    return device


def _undoubted_clock(runs: Trajectories) -> str | None:
    try:
        return runs.clock()
    except UsageError:
        return None


# ------------------------------------------------------------------------------------------------------ what runs did


def summarise(runs: Trajectories, clock: str | None) -> SystemSummary:
    """Success rate, return reached and median time of success of every system, over all its runs."""
    present = runs.present.transpose(0, 1).flatten(1)  # [system, run]
    final = runs.returns[..., -1] if runs.returns.shape[-1] else torch.zeros_like(runs.lengths, dtype=torch.int32)
    final = final.transpose(0, 1).flatten(1)
    count = present.sum(1)
    solved = (final >= MILLION) & present

    def mean(sums: Tensor, unit: int) -> Tensor:
        return torch.where(count > 0, sums.double() / (count * unit).double(), torch.nan).cpu()

    return SystemSummary(
        success_rate=mean(solved.sum(1), 1),
        partial_return=mean(torch.where(present, final, 0).long().sum(1), MILLION),
        median_time=None if clock is None else _median_times(runs, clock, solved),
        instances=runs.present.any(-1).sum(0).cpu(),
        runs=count.cpu(),
    )


def _median_times(runs: Trajectories, clock: str, solved: Tensor) -> Tensor:
    full = torch.full((len(runs.instances), 1), MILLION, dtype=torch.int32, device=runs.device)
    ticks = time_to_level(curves(runs, clock), full).squeeze(-1).transpose(0, 1).flatten(1)
    usable = solved & (ticks != UNKNOWN) & (ticks != NEVER)
    ordered = torch.where(usable, ticks, NEVER).sort(dim=1).values
    count = usable.sum(1)
    low = ordered.gather(1, ((count - 1).clamp(min=0) // 2).unsqueeze(1)).squeeze(1)
    high = ordered.gather(1, (count // 2).clamp(max=ordered.shape[1] - 1).unsqueeze(1)).squeeze(1)
    middle = (low.double() + high.double()) / 2 * runs.resolution[clock]
    return torch.where(count > 0, middle, torch.nan).cpu()
