"""Meta-evaluation: how valid, reliable, sensitive and unbiased each measure is on given data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.meta.efficiency import data_efficiency
from torchpref.meta.false_alarms import FalseAlarms, false_alarms
from torchpref.meta.figures import known_signs
from torchpref.meta.power import power_by_budget, power_by_pair
from torchpref.meta.result import MetaEvaluation, MetaTable
from torchpref.meta.robustness import subgoal_robustness
from torchpref.meta.saturation import saturation
from torchpref.meta.scopes import Options, mean_table, scope_table
from torchpref.meta.series import Series, empty
from torchpref.meta.subgoals import CHANGES
from torchpref.meta.values import pair_values
from torchpref.pairwise.preferences import Weights, all_pairs, all_preferences, instance_weights
from torchpref.report.progress import Report, Steps, reporting
from torchpref.runs.curves import Grid
from torchpref.runs.measures import ALPHA, LEVEL, describe, resolve_measures
from torchpref.runs.trajectories import Trajectories
from torchpref.stats.resampling.instances import Seed, resampling_units, resolve_seed
from torchpref.stats.significance.effects import check_level

KnownOrder = Sequence[str | Sequence[str]]


def meta_evaluate(
    runs: Trajectories,
    measures: str | Sequence[str] = "all",
    *,
    clock: str | None = None,
    known_order: KnownOrder | None = None,
    weights: Weights = "instance",
    grid: Grid = "exact",
    resamples: int = 1000,
    curve_draws: int | None = None,
    alarm_draws: int = 200,
    subgoal_draws: int = 10,
    alpha: float = ALPHA,
    level: float = LEVEL,
    seed: Seed = 0,
    progress: bool | Report = False,
) -> MetaEvaluation:
    """Every figure of docs/definitions.md, over all instances and per benchmark.

    Args:
        runs: the runs.
        measures: short names, or ``"all"``.
        clock: the clock that times are read on; by the rule of :meth:`Trajectories.clock` where None.
        known_order: names of systems whose true order is known, best first; names in a list of their own are not ordered
            among themselves, and systems that are not named are not judged.
        weights: weights of instances in means, as for :func:`torchpref.preferences`.
        grid: ``"exact"``, or an approximation for continuous returns.
        resamples: bootstrap replicates, and random halves.
        curve_draws: draws at each share of instances, each budget and in each bin of success rates; a tenth of
            ``resamples`` by default; 0 leaves these curves out.
        alarm_draws: dealings of trials to pseudo-systems, where systems have several trials.
        subgoal_draws: random changes of each kind to the annotation of partial return; 0 leaves them out.
        alpha: error rate of the tests.
        level: of the intervals.
        seed: whole number or ``torch.Generator``; the same seed gives the same numbers.
        progress: True shows a bar on standard error; or a function that is called with what is being done, how many steps
            are done, and how many there are.

    Raises:
        UsageError: an unknown measure, clock or system; a number of draws below 0; fewer than two systems.
    """
    names = resolve_measures(measures)
    number = resolve_seed(seed)
    check_level(alpha)
    check_level(level)
    curves = max(20, resamples // 10) if curve_draws is None else curve_draws
    for what, count in (("resamples", resamples), ("alarm_draws", alarm_draws)):
        if count < 1:
            raise UsageError(f"{what} must be at least 1, got {count}")
    if curves < 0 or subgoal_draws < 0:
        raise UsageError(f"numbers of draws are at least 0, got curve_draws={curves}, subgoal_draws={subgoal_draws}")
    if len(runs.systems) < 2:
        raise UsageError(f"a comparison takes two systems, there is {', '.join(runs.systems) or 'none'}")
    runs = runs.to("cpu")
    options = Options(resamples, alpha, level, number)
    known = _known(known_order, runs)
    possible, unavailable = _possible(names, runs, clock)
    chosen = runs.clock(clock) if any(describe(name).temporal for name in possible) else None
    v = instance_weights(runs, weights)
    blocks = {
        name: [i for i, each in enumerate(runs.benchmarks) if each == name] for name in sorted(set(runs.benchmarks))
    }
    blocks = blocks if len(blocks) > 1 else {}

    has_trials = bool((runs.present.sum(-1) > 1).any())
    total = len(possible) * (1 + len(blocks)) + (1 + len(blocks)) * has_trials + 3 + len(CHANGES) * subgoal_draws
    with reporting(progress) as report:
        steps = Steps(total, report)

        def table(scope: str, part: Trajectories, part_weights: Tensor) -> tuple[MetaTable, Any]:
            prefs = all_preferences(part, possible, clock=chosen, weights=part_weights, grid=grid) if possible else {}
            values = {name: pair_values(each) for name, each in prefs.items()}
            alarms: dict[str, FalseAlarms] = {}
            if has_trials:
                steps.start(f"{scope or 'all instances'}: false positives")
                alarms = false_alarms(
                    part, possible, clock=chosen, weights=part_weights, grid=grid, draws=alarm_draws, alpha=alpha, seed=number
                )  # fmt: skip
                steps.done()

            def step(measure: str) -> None:
                steps.start(f"{scope or 'all instances'}: {measure.upper()}")
                steps.done()

            found = scope_table(
                scope, prefs, values,
                known=known, alarms=alarms, unavailable=unavailable, order=names, options=options, step=step,
            )  # fmt: skip
            return found, values

        overall, values = table("", runs, v)
        tables = {name: table(name, runs.take(instances=rows), v[rows])[0] for name, rows in blocks.items()}
        units = resampling_units(runs.benchmarks)
        off = "left out"
        efficiency: Series = empty("data_efficiency", "share", off)
        bins: Series = empty("saturation", "success_rate", off)
        subgoals: Series = empty("subgoals", "annotation", off)
        by_budget: Series = empty("power_by_budget", "budget", off)
        by_pair: Series = empty("power_by_pair", "pair_success", off)
        if curves:
            steps.start("data efficiency")
            efficiency = data_efficiency(
                values, units, known=known, draws=curves, alpha=alpha, level=level, seed=number
            )
            steps.done()
            steps.start("saturation")
            bins = saturation(runs, values, draws=curves, alpha=alpha, level=level, seed=number)
            steps.done()
            steps.start("power by budget and by pair")
            by_budget = power_by_budget(
                runs, possible, clock=chosen, weights=v, grid=grid, draws=curves, alpha=alpha, level=level, seed=number
            )
            by_pair = power_by_pair(runs, values, draws=curves, alpha=alpha, level=level, seed=number)
            steps.done()
        if subgoal_draws:
            steps.start("robustness to subgoals")

            def step() -> None:
                steps.done()
                steps.start("robustness to subgoals")

            subgoals = subgoal_robustness(
                runs, values, units, clock=chosen, weights=v, grid=grid, known=known,
                draws=subgoal_draws, alpha=alpha, seed=number, step=step,
            )  # fmt: skip
    return MetaEvaluation(
        systems=runs.systems,
        measures=names,
        clock=chosen,
        overall=overall,
        benchmarks=tables,
        mean=mean_table(list(tables.values()), level) if tables else None,
        efficiency=efficiency,
        saturation=bins,
        power_by_budget=by_budget,
        power_by_pair=by_pair,
        subgoals=subgoals,
        options={
            "measures": list(names),
            "weights": weights if isinstance(weights, str) else "own",
            "grid": grid if isinstance(grid, str | int) else list(grid),
            "known_order": None if known_order is None else [x if isinstance(x, str) else list(x) for x in known_order],
            "resamples": resamples,
            "curve_draws": curves,
            "alarm_draws": alarm_draws,
            "subgoal_draws": subgoal_draws,
            "alpha": alpha,
            "level": level,
            "seed": number,
        },
    )


def _possible(names: Sequence[str], runs: Trajectories, clock: str | None) -> tuple[tuple[str, ...], dict[str, str]]:
    """Measures that these runs allow, and why the others cannot be computed."""
    if runs.clocks or clock is not None:
        return tuple(names), {}
    without = {name: "it needs a clock, and these runs carry none" for name in names if describe(name).temporal}
    return tuple(name for name in names if name not in without), without


def _known(order: KnownOrder | None, runs: Trajectories) -> Float[Tensor, " pair"] | None:
    """Signs of the known order for every pair."""
    if order is None:
        return None
    if isinstance(order, str):
        raise UsageError("known_order is a sequence of names, best first; got one string")
    place = torch.full((len(runs.systems),), -1, dtype=torch.int64)
    for rank, entry in enumerate(order):
        for name in [entry] if isinstance(entry, str) else entry:
            if name not in runs.systems:
                raise UsageError(f"the known order names {name!r}, which is no system of these runs")
            if int(place[runs.systems.index(name)]) >= 0:
                raise UsageError(f"the known order names {name!r} twice")
            place[runs.systems.index(name)] = rank
    signs = known_signs(place, all_pairs(len(runs.systems)))
    if not bool((signs != 0).any()):
        raise UsageError("the known order says nothing: name at least two systems, best first")
    return signs


def warm_up() -> None:
    """Compile the loops over replicates; see :func:`torchpref.kernels.warm_up`."""
    returns = torch.tensor([[0.5, 1.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)[:, :, None, None]
    runs = Trajectories(returns.expand(3, 2, 2, 1).contiguous(), systems=("A", "B"))
    meta_evaluate(runs, known_order=("A", "B"), resamples=2, alarm_draws=2, subgoal_draws=1)
