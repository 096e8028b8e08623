"""The table of one set of instances: every figure on the data, and its interval from replicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Float
from torch import Tensor

from torchpref.meta.definitions import DEFINITIONS, FIGURES
from torchpref.meta.estimates import Estimate, around, mean_of, missing, share_of
from torchpref.meta.false_alarms import FalseAlarms
from torchpref.meta.figures import in_chunks, replicate_figures, split_half
from torchpref.meta.rankings import kendall
from torchpref.meta.result import MetaTable
from torchpref.meta.values import PairValues
from torchpref.pairwise.preferences import Preferences
from torchpref.stats.resampling.instances import draw_weights, units_of

NO_ORDER = "no known order was given"
NO_TRIALS = "no system has two trials of any instance"
_ALONE = "it takes two measures"
_TIED = "a ranking ties all systems"
_EMPTY = "no pair of systems shares an instance"


@dataclass(frozen=True)
class Options:
    """How much is drawn, and at which error rate and level."""

    resamples: int
    alpha: float
    level: float
    seed: int


def scope_table(
    scope: str,
    prefs: Mapping[str, Preferences],
    values: Mapping[str, PairValues],
    *,
    known: Float[Tensor, " pair"] | None,
    alarms: Mapping[str, FalseAlarms],
    unavailable: Mapping[str, str],
    order: Sequence[str],
    options: Options,
    step: Callable[[str], None] = lambda measure: None,
) -> MetaTable:
    """Figures of all measures.

    Args:
        scope: name of the benchmark, or empty.
        prefs, values: preferences per measure, and the same as whole numbers.
        known: signs of the known order, or None.
        alarms: what A/A tests found, per measure; empty without trials.
        unavailable: per measure that could not be computed, why.
        order: all measures, in order.
        options: numbers of draws, levels, seed.
        step: called before every measure with its name.
    """
    measured = {name: _measure(prefs[name], values[name], known, options, step) for name in prefs}
    convergence = _convergence({name: scores for name, (_, scores) in measured.items()}, options.level)
    figures: dict[str, dict[str, Estimate]] = {}
    for name in order:
        if name in unavailable:
            figures[name] = {key: missing(unavailable[name]) for key in FIGURES}
            continue
        row = dict(measured[name][0])
        row["convergent"] = _mean_convergence(name, convergence, options.level)
        row |= _alarm_figures(alarms.get(name), options.level)
        figures[name] = {key: row[key] for key in FIGURES}
    first = next(iter(prefs.values()), None)
    return MetaTable(
        scope=scope,
        instances=len(first.instances) if first is not None else 0,
        pairs=len(first.pairs) if first is not None else 0,
        excluded={name: int((~each.compared).sum()) for name, each in values.items()},
        figures=figures,
        convergence=convergence,
    )


def _measure(
    prefs: Preferences, values: PairValues, known: Tensor | None, options: Options, step: Callable[[str], None]
) -> tuple[dict[str, Estimate], Float[Tensor, "replicate system"]]:
    from torchpref.stats.significance.significance import sign_flip_tests

    step(prefs.measure)
    units = units_of(prefs)
    count = len(prefs.instances)
    p = torch.from_numpy(sign_flip_tests(prefs, options.alpha, None, options.seed).p).unsqueeze(0)
    once = torch.ones((1, count), dtype=torch.int32)
    on_data = replicate_figures(values, once, alpha=options.alpha, known=known, ranking=True, p=p)

    drawn = draw_weights("bootstrap", units, 0, options.resamples, options.seed).int()
    replicates = in_chunks(
        drawn,
        len(values.pairs),
        lambda rows: replicate_figures(values, rows, alpha=options.alpha, known=known, ranking=True),
    )
    figures = {}
    for key, column in on_data.figures.items():
        value = float(column[0])
        figures[key] = (
            missing(
                _EMPTY if known is None or not key.startswith("oracle") else "no pair of the known order is compared"
            )
            if value != value
            else around(value, replicates.figures[key], options.level, (0.0, 1.0))
        )
    if known is None:
        figures |= {key: missing(NO_ORDER) for key in ("oracle_accuracy", "oracle_fwer", "oracle_fdr")}
    halves = draw_weights("halves", units, 0, options.resamples, options.seed).int()
    reasons = {"split_half_pairs": "all means are 0 in every half", "split_half_ranking": "every half ties all systems"}
    small = "it takes two instances"
    split = _splits(values, halves)
    for key, column in split.items():
        figures[key] = mean_of(column, options.level, reasons[key] if count > 1 else small)
    assert on_data.scores is not None and replicates.scores is not None
    return figures, torch.cat([on_data.scores, replicates.scores])


def _splits(values: PairValues, halves: Tensor) -> dict[str, Tensor]:
    step = max(1, (1 << 21) // max(1, len(values.pairs)))
    parts = [split_half(values, half, 1 - half) for half in torch.split(halves, step)]
    return {key: torch.cat([part[key] for part in parts]) for key in parts[0]}


def _convergence(scores: Mapping[str, Tensor], level: float) -> dict[tuple[str, str], Estimate]:
    result = {}
    for first, second in combinations(scores, 2):
        tau = kendall(scores[first], scores[second])
        value = float(tau[0])
        result[first, second] = missing(_TIED) if value != value else around(value, tau[1:], level, (-1.0, 1.0))
    return result


def _mean_convergence(name: str, convergence: Mapping[tuple[str, str], Estimate], level: float) -> Estimate:
    mine = [estimate for names, estimate in convergence.items() if name in names]
    there = [estimate for estimate in mine if estimate.exists]
    if not there:
        return missing(_TIED if mine else _ALONE)
    value = sum(estimate.value for estimate in there) / len(there)
    draws = [estimate.draws for estimate in there if estimate.draws is not None]
    return around(value, torch.stack(draws).nanmean(0), level, (-1.0, 1.0))


def _alarm_figures(alarms: FalseAlarms | None, level: float) -> dict[str, Estimate]:
    keys = ("bias_pairs", "bias_draws")
    if alarms is None:
        return {key: missing(NO_TRIALS) for key in keys}
    result = {}
    for key, column in zip(keys, (alarms.pairs, alarms.draws), strict=True):
        limits = share_of(float(column.sum()), len(column), level)
        result[key] = Estimate(float(column.mean()), *limits, draws=column)
    return result


def mean_table(tables: Sequence[MetaTable], level: float) -> MetaTable:
    """The mean of every figure over benchmarks that have it, each benchmark counting once.

    Benchmarks are resampled independently, so that replicates of the mean are means of replicates.
    """

    def mean(estimates: Sequence[Estimate], least: float) -> Estimate:
        there = [estimate for estimate in estimates if estimate.exists]
        if not there:
            return estimates[0]
        value = sum(estimate.value for estimate in there) / len(there)
        draws = [estimate.draws for estimate in there if estimate.draws is not None]
        if len(draws) < len(there):
            return Estimate(value)
        # Draw k of every benchmark comes from streams of one seed; shift them against each other to make them independent.
        columns = torch.stack([torch.roll(column, 7 * place) for place, column in enumerate(draws)])
        return around(value, columns.nanmean(0), level, (least, 1.0))

    first = tables[0]
    return MetaTable(
        scope="mean of benchmarks",
        instances=sum(table.instances for table in tables),
        pairs=first.pairs,
        excluded={name: sum(table.excluded[name] for table in tables) for name in first.excluded},
        figures={
            name: {
                key: mean([table.figures[name][key] for table in tables], 0.0 if DEFINITIONS[key].percent else -1.0)
                for key in figures
            }
            for name, figures in first.figures.items()
        },
        convergence={names: mean([table.convergence[names] for table in tables], -1.0) for names in first.convergence},
    )
