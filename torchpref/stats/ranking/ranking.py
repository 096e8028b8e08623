"""Ranking systems: scores, intervals, rank intervals, first places and groups that cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.pairwise.square import as_square, missing
from torchpref.report.numbers import counted
from torchpref.runs.measures import ALPHA, LEVEL
from torchpref.stats.bradley_terry.model import BradleyTerry, bradley_terry
from torchpref.stats.ranking.leaderboard import SCALES, Leaderboard
from torchpref.stats.ranking.rank_intervals import rank_intervals
from torchpref.stats.ranking.score_errors import mean_contributions, score_contributions
from torchpref.stats.resampling.instances import Seed, Units, resolve_seed, units_of
from torchpref.stats.resampling.scores import TIE, replicate_scores
from torchpref.stats.significance.corrections import adjust
from torchpref.stats.significance.effects import LEAST_DECIDED, LEAST_LESSER, check_level, critical_t
from torchpref.stats.significance.significance import Significance, significance

if TYPE_CHECKING:
    from torchpref.pairwise.preferences import Preferences

_ELO_PER_LOG_ODDS = 400 / math.log(10)
_ELO_MEAN = 1000.0


def rank(
    prefs: Preferences,
    *,
    bootstrap: int = 2000,
    seed: Seed = 0,
    level: float = LEVEL,
    alpha: float = ALPHA,
    scale: Literal["log-odds", "elo"] = "log-odds",
    scheme: Literal["bootstrap", "bayesian"] = "bootstrap",
    families: Sequence[Hashable] | None = None,
    trials: bool = False,
    tests: Significance | None = None,
) -> Leaderboard:
    """Rank systems and say how far the ranking can be trusted.

    The target of a score's interval is the minimiser at the population's mean preferences: what infinitely many instances of
    the same kind would give. Its interval comes from the cluster-robust sandwich over instances with Student's t; it is
    missing, with a reason, where fewer than ten instances are decided or no finite score exists.

    Args:
        prefs: the preferences.
        bootstrap: number of resamples of instances (within their benchmark) for percentile intervals and first places.
        seed: for resampling and simulation.
        level: level of the intervals.
        alpha: error rate of the groups' tests.
        scale: ``"log-odds"`` (natural, mean 0) or ``"elo"`` (400 points per factor ten of the odds, mean 1000).
        scheme: ``"bootstrap"`` or ``"bayesian"`` (exponential weights).
        families: a label per instance; instances of one benchmark with one label were sampled together and are resampled
            together. Groups and p-values still take instances one by one.
        trials: draw runs anew within each instance as well when resampling. The sample of instances already carries the
            noise of its runs, so this widens the percentile intervals beyond a sample of instances; it shows how much of
            an order rests on single runs.
        tests: the tests behind the groups, if they are at hand; else :func:`torchpref.significance` with Holm.

    Raises:
        UsageError: an option out of range.
    """
    check_level(level)
    if isinstance(bootstrap, bool) or not isinstance(bootstrap, int) or bootstrap < 0:
        raise UsageError(f"the number of resamples must be a whole number that is at least 0, got {bootstrap!r}")
    if scale not in SCALES:
        raise UsageError(f"unknown scale {scale!r}; use 'log-odds' or 'elo'")
    if scheme not in ("bootstrap", "bayesian"):
        raise UsageError(f"unknown scheme {scheme!r}; use 'bootstrap' or 'bayesian'")
    number = resolve_seed(seed)
    units = units_of(prefs, families)
    fit = bradley_terry(prefs)
    mean = prefs.mean().cpu()
    means = prefs.system_means().cpu()
    complete = bool(prefs.mask.all())
    standing, by_mean = places(fit, means)
    order = tuple(sorted(range(len(prefs.systems)), key=lambda i: (int(standing[i]), prefs.systems[i])))

    theta = fit.theta.detach().double().cpu()
    members = np.flatnonzero(~np.isnan(theta.numpy()))
    if len(members) < 2:
        members = members[:0]
    score = missing((len(prefs.systems),))
    score[torch.from_numpy(members)] = theta[torch.from_numpy(members)]
    interval, reasons = _intervals(prefs, mean, fit, score, members, units, level)

    replicates = replicate_scores(
        prefs,
        units,
        bootstrap,
        number,
        scheme=scheme,
        members=torch.from_numpy(members),
        theta=theta[torch.from_numpy(members)],
        by_mean=by_mean,
        trials=trials,
    )
    percentile = missing((len(prefs.systems), 2))
    percentile[torch.from_numpy(members)] = replicates.limits(level)

    if by_mean or complete or len(members) < len(prefs.systems):
        ranked, contributions = torch.nan_to_num(means, nan=-2.0).numpy(), mean_contributions(prefs, units)
    else:
        ranked, contributions = theta.numpy(), score_contributions(prefs, theta.numpy(), members, units)
    tests = significance(prefs, "holm", alpha=alpha, level=level, seed=number) if tests is None else tests
    rank_reason = _no_ranks(tests, 1 - level)
    bounds, _ = rank_intervals(ranked, contributions, level, number, certain=_certain(tests, 1 - level))
    signs = torch.nan_to_num(torch.sign(mean), nan=0.0)
    return Leaderboard(
        measure=prefs.measure,
        clock=prefs.clock,
        systems=prefs.systems,
        order=order,
        score=_rescaled(score, scale),
        interval=_rescaled(interval, scale),
        percentile=_rescaled(percentile, scale),
        rank=standing,
        rank_interval=torch.from_numpy(
            np.stack([np.minimum(bounds[:, 0], standing.numpy()), np.maximum(bounds[:, 1], standing.numpy())], 1)
        ),
        # one instance, or one resample, always has its first
        share_first=replicates.share_first
        if bootstrap > 1 and len(prefs.instances) > 1
        else missing((len(prefs.systems),)),
        mean_preference=means,
        copeland=signs.sum(1).long(),
        instances=_compared(prefs),
        groups=groups(tests, [prefs.systems[i] for i in order], alpha),
        rank_reason=rank_reason,
        status=str(fit.status),
        message=str(fit.message),
        reasons=reasons,
        ranked_by="mean preference" if by_mean else "score",
        replicates=replicates.statuses,
        bootstrap=bootstrap,
        level=level,
        alpha=alpha,
        seed=number,
        scale=scale,
    )


def rank_all(prefs: Mapping[str, Preferences], **options: object) -> dict[str, Leaderboard]:
    """:func:`rank` for several measures; measures whose Δ is the same everywhere (as LR, RPP and IPP are where all runs
    either succeed or reach nothing) share the work.
    """
    from dataclasses import replace

    done: list[tuple[Preferences, Leaderboard]] = []
    boards = {}
    for name, mine in prefs.items():
        board = next((board for other, board in done if _same(mine, other)), None)
        if board is None:
            board = rank(mine, **options)  # type: ignore[arg-type]
            done.append((mine, board))
        boards[name] = replace(board, measure=mine.measure, clock=mine.clock)
    return boards


def _same(mine: Preferences, other: Preferences) -> bool:
    """Whether two measures say the same of every instance and pair."""
    if mine.systems != other.systems or mine.instances != other.instances or mine.sums.shape != other.sums.shape:
        return False
    common = math.gcd(mine.unit, other.unit)
    return (
        torch.equal(mine.sums * (other.unit // common), other.sums * (mine.unit // common))
        and torch.equal(mine.trial_pairs, other.trial_pairs)
        and torch.equal(mine.weights, other.weights)
        and int(mine.trial_pairs.max() if mine.trial_pairs.numel() else 0) <= 1  # else permutations see single runs
    )


def places(fit: BradleyTerry, means: Tensor) -> tuple[Tensor, bool]:
    """Ranks by score and tier where all systems can be ordered so, else by mean preference; and whether by the latter."""
    by_score = fit.ranks().cpu()
    if len(by_score) and not bool(torch.isnan(by_score).any()):
        return by_score.long(), False
    value = torch.nan_to_num(means, nan=-2.0)
    ordered = value.sort(descending=True).values
    return torch.searchsorted(-ordered, -value - TIE) + 1, True


def _intervals(
    prefs: Preferences,
    mean: Tensor,
    fit: BradleyTerry,
    score: Tensor,
    members: NDArray[np.int64],
    units: Units,
    level: float,
) -> tuple[Tensor, tuple[str, ...]]:
    """Sandwich interval of every score, and why there is none."""
    interval = missing((len(prefs.systems), 2))
    reasons = [_no_score(mean, str(fit.status), i) for i in range(len(prefs.systems))]
    if len(members):
        theta = score[torch.from_numpy(members)].numpy()
        contributions = score_contributions(prefs, theta, members, units)
        width = critical_t(level, contributions.degrees()) * contributions.errors()
        covered = contributions.covered()
        what = "instances" if units.single else "families of instances"
        for place, system in enumerate(members.tolist()):
            decided, lesser = int(contributions.decided[place]), int(contributions.lesser[place])
            if contributions.design != "strata" and decided < LEAST_DECIDED:
                few = what if decided != 1 else "instance" if units.single else "family of instances"
                reasons[system] = f"only {decided} {few} decided, at least {LEAST_DECIDED} are needed"
            elif contributions.design != "strata" and lesser < LEAST_LESSER:
                reasons[system] = f"only {lesser} {what} on the lesser side, at least {LEAST_LESSER} are needed"
            elif not covered[place]:
                reasons[system] = "it was compared on no instance of some benchmark"
            elif not decided:
                reasons[system] = f"no {what} decided"
            elif not np.isfinite(width[place]):
                reasons[system] = f"too few {what} in each benchmark"
            else:
                reasons[system] = ""
                interval[system, 0] = theta[place] - width[place]
                interval[system, 1] = theta[place] + width[place]
    return interval, tuple(reasons)


def _no_score(mean: Tensor, status: str, system: int) -> str:
    if len(mean) < 2:
        return "there is no other system"
    others = torch.arange(len(mean)) != system
    seen = mean[system][others & ~torch.isnan(mean[system])]
    if not len(seen):
        return "it shares no instance with any other system"
    if bool((seen == 1).all()):
        return "it won every comparison: its score is above every number"
    if bool((seen == -1).all()):
        return "it lost every comparison: its score is below every number"
    return f"no finite score ({status})"


def _compared(prefs: Preferences) -> Tensor:
    """Instances on which each system was compared with any other."""
    count = torch.zeros(len(prefs.systems), dtype=torch.int64)
    mask, pairs = prefs.mask.cpu(), prefs.pairs.cpu()
    if bool(mask.all()):
        return count + (len(mask) if len(pairs) else 0)
    for system in range(len(prefs.systems)):
        count[system] = mask[:, (pairs == system).any(1)].any(1).sum()
    return count


def _rescaled(values: Tensor, scale: str) -> Tensor:
    return values * _ELO_PER_LOG_ODDS + _ELO_MEAN if scale == "elo" else values


def _family_wise(tests: Significance) -> NDArray[np.float64]:
    """p-values corrected so that any false one among all pairs is rare."""
    corrected = tests.adjusted if tests.correction in ("holm", "max-t") else None
    return np.nan_to_num(adjust(tests.p.numpy(), "holm") if corrected is None else corrected.numpy(), nan=1.0)


def _certain(tests: Significance, alpha: float) -> Tensor:
    """bool ``[system, system]``: the tests, corrected for all pairs, tell the row's system above the column's."""
    sure = torch.from_numpy(_family_wise(tests) <= alpha + 1e-12)
    above = as_square(torch.sign(torch.nan_to_num(tests.mean)) * sure, tests.pairs, len(tests.systems), -1)
    return above > 0


def _no_ranks(tests: Significance, alpha: float) -> str:
    """Why no rank can be narrowed, whatever the data: no test of all pairs could reach the level."""
    pairs = int((tests.instances > 0).sum())
    most = int(tests.decided.max()) if len(tests.decided) else 0
    if pairs and 2.0 ** (1 - most) * pairs > alpha:
        return (
            f"at most {counted(most, 'instance')} decided in any pair: no test of {counted(pairs, 'pair')} can reach "
            f"{100 * alpha:.2g} %, at least {least_decided(pairs, alpha)} are needed"
        )
    return ""


def least_decided(pairs: int, alpha: float) -> int:
    """The least number of decided instances with which the smallest p of so many pairs can reach α after Holm."""
    return math.ceil(1 + math.log2(pairs / alpha) - 1e-12)


def order_doubt(tests: Significance) -> str:
    """Why the order of a board is not established, in words; empty where some pair of systems differs significantly."""
    if not tests.tested:
        return "no two systems share an instance"
    reason = _no_ranks(tests, tests.alpha)
    if reason:
        return reason
    if not bool((torch.from_numpy(_family_wise(tests)) <= tests.alpha).any()):
        return f"none of {counted(tests.tested, 'pair')} of systems differs significantly after Holm"
    return ""


def groups(tests: Significance, order: Sequence[str], alpha: float) -> tuple[tuple[str, ...], ...]:
    """Maximal runs of ``order`` in which no pair is significant at α."""
    place = {name: position for position, name in enumerate(order)}
    # For each position the nearest earlier one from which it differs significantly.
    barrier = np.full(len(order), -1)
    pairs = tests.pairs[torch.nan_to_num(tests.adjusted, nan=1.0) <= alpha]
    for a, b in pairs.tolist():
        low, high = sorted((place[tests.systems[a]], place[tests.systems[b]]))
        barrier[high] = max(barrier[high], low)
    starts = np.maximum.accumulate(barrier + 1) if len(order) else barrier
    found = []
    for last in range(len(order)):
        ends_here = last + 1 == len(order) or starts[last + 1] > starts[last]
        if ends_here:
            found.append(tuple(order[starts[last] : last + 1]))
    return tuple(found)
