"""Scores, ranks and means of every measure, over all instances and over those of each benchmark, from one batch of fits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from torchpref.evaluation.result import MeasureResult
from torchpref.pairwise.preferences import SPLIT_PARTS, Preferences, all_pairs
from torchpref.pairwise.square import mean_over_rivals
from torchpref.runs.measures import describe
from torchpref.runs.trajectories import Trajectories
from torchpref.stats.bradley_terry.model import bradley_terry
from torchpref.stats.ranking.leaderboard import Leaderboard


def measure_results(
    prefs: Mapping[str, Preferences], clock: str | None, bootstrap: int, seed: int
) -> dict[str, MeasureResult]:
    """Scores of every measure over all instances and over those of each named benchmark.

    Systems without a usable clock take no part in the scores of measures that compare times.

    Args:
        prefs: the preferences of each measure, all on the same runs.
        clock: the clock that they are compared on.
        bootstrap: replicates behind the intervals; 0 for none.
        seed: of the bootstrap.
    """
    if not prefs:
        return {}
    runs = next(iter(prefs.values())).runs
    problems: dict[tuple[str, str | None], _Problem] = {}
    for name, rows in _parts(runs).items():
        part_runs = runs if rows is None else runs.take(instances=rows)
        out = _unusable(part_runs, clock) if any(describe(measure).temporal for measure in prefs) else frozenset()
        for measure, whole in prefs.items():
            part = whole if rows is None else _on(whole, part_runs, rows)
            problems[measure, name] = _Problem.of(part, out if describe(measure).temporal else frozenset())
    fits = _fit(list(problems.values()))
    found = {key: _result(problem, fit) for (key, problem), fit in zip(problems.items(), fits, strict=True)}
    boards: dict[str, Leaderboard] = {}
    if bootstrap:
        from torchpref.stats.ranking.ranking import rank_all

        boards = rank_all({name: problems[name, None].used for name in prefs}, bootstrap=bootstrap, seed=seed)
    results = {}
    for measure in prefs:
        result = found[measure, None]
        if bootstrap:
            result = _with_board(result, problems[measure, None], boards[measure])
        named = [name for name in sorted(set(runs.benchmarks)) if name]
        benchmarks = {name: found.get((measure, name), found[measure, None]) for name in named}
        results[measure] = replace(result, benchmarks=benchmarks)
    return results


def _parts(runs: Trajectories) -> dict[str | None, list[int] | None]:
    """The instances of every named benchmark, and all of them under None; a benchmark that has all is left out."""
    parts: dict[str | None, list[int] | None] = {None: None}
    for name in sorted(set(runs.benchmarks) - {""}):
        rows = [i for i, own in enumerate(runs.benchmarks) if own == name]
        if len(rows) < len(runs.instances):
            parts[name] = rows
    return parts


def _unusable(runs: Trajectories, clock: str | None) -> frozenset[str]:
    from torchpref.runs.audit import unusable_clock

    return frozenset() if clock is None else frozenset(unusable_clock(runs, clock))


@dataclass(frozen=True)
class _Problem:
    """Preferences of one measure over some instances, between the systems that take part in its scores.

    Attributes:
        all: the preferences between all systems.
        used: those between the systems that take part.
        positions: where these systems stand among all.
    """

    all: Preferences
    used: Preferences
    positions: tuple[int, ...]

    @cached_property
    def mean(self) -> Tensor:
        """Δ̄ between the systems that take part."""
        return self.used.mean()

    @classmethod
    def of(cls, prefs: Preferences, unusable: frozenset[str]) -> _Problem:
        keep = [i for i, name in enumerate(prefs.systems) if name not in unusable]
        return cls(prefs, prefs if len(keep) == len(prefs.systems) else _between(prefs, keep), tuple(keep))


def _between(prefs: Preferences, keep: list[int]) -> Preferences:
    """The preferences between some of the systems."""
    inside = torch.zeros(len(prefs.systems), dtype=torch.bool, device=prefs.pairs.device)
    inside[keep] = True
    columns = (inside[prefs.pairs[:, 0]] & inside[prefs.pairs[:, 1]]).nonzero().squeeze(-1)
    return replace(
        prefs,
        runs=prefs.runs.take(systems=keep),
        pairs=all_pairs(len(keep), prefs.pairs.device),
        sums=prefs.sums[:, columns],
        trial_pairs=prefs.trial_pairs[:, columns],
        ties=prefs.ties[:, columns],
        parts=None if prefs.parts is None else prefs.parts[:, :, columns],
    )


def _on(prefs: Preferences, runs: Trajectories, rows: list[int]) -> Preferences:
    """The preferences on some of the instances, ``runs`` being those of these instances."""
    chosen = torch.tensor(rows, dtype=torch.long, device=prefs.sums.device)
    return replace(
        prefs,
        runs=runs,
        sums=prefs.sums[chosen],
        trial_pairs=prefs.trial_pairs[chosen],
        ties=prefs.ties[chosen],
        weights=prefs.weights[chosen],
        parts=None if prefs.parts is None else prefs.parts[:, chosen],
    )


@dataclass(frozen=True)
class _Fit:
    theta: Tensor
    status: str
    message: str
    ranks: list[int | None]


def _fit(problems: Sequence[_Problem]) -> list[_Fit]:
    """Bradley–Terry of all problems, those with the same systems in one batch."""
    batches: dict[tuple[int, ...], list[int]] = {}
    for index, problem in enumerate(problems):
        batches.setdefault(problem.positions, []).append(index)
    fits: dict[int, _Fit] = {}
    for members in batches.values():
        y = torch.stack([(problems[index].mean + 1) / 2 for index in members])
        w = torch.stack([problems[index].used.weight_sums() for index in members])
        batch = bradley_terry(y, w, systems=problems[members[0]].used.systems)
        ranks = batch.ranks().cpu()
        for row, index in enumerate(members):
            places = [None if math.isnan(place) else int(place) for place in ranks[row].tolist()]
            fits[index] = _Fit(batch.theta[row].detach().cpu(), batch.status[row], batch.message[row], places)
    return [fits[index] for index in range(len(problems))]


def _result(problem: _Problem, fit: _Fit) -> MeasureResult:
    prefs, used, positions = problem.all, problem.used, list(problem.positions)
    size = len(prefs.systems)
    words = [] if fit.status == "ok" else [f"{fit.status}: {fit.message}"]
    left_out = [name for i, name in enumerate(prefs.systems) if i not in set(positions)]
    if left_out:
        words.append(f"no usable {prefs.clock}: {', '.join(left_out)}")
    means = mean_over_rivals(problem.mean).cpu()
    places = fit.ranks
    if None in places:
        places = _rank_by_mean(means)
        words.append("ranked by mean preference")
    theta, mean = _nans(size), _nans(size)
    theta[positions], mean[positions] = fit.theta, means
    mean_preference = _nans(size, size)
    mean_preference[torch.tensor(positions, dtype=torch.long).unsqueeze(1), positions] = problem.mean.cpu()
    split = None
    if used.parts is not None:
        split = {name: _nans(size) for name in SPLIT_PARTS}
        for name, values in used.split().items():
            split[name][positions] = mean_over_rivals(values).cpu()
    rank: list[int | None] = [None] * size
    for position, place in zip(positions, places, strict=True):
        rank[position] = place
    return MeasureResult(
        measure=prefs.measure,
        clock=prefs.clock,
        status="; ".join(words) or "ok",
        theta=theta,
        interval=None,
        rank=tuple(rank),
        mean_preference=mean_preference,
        mean=mean,
        tie_rate=prefs.tie_rate(),
        run_pairs=prefs.run_pairs,
        instances=len(prefs.instances),
        split=split,
        preferences=used,
    )


def _rank_by_mean(means: Tensor) -> list[int | None]:
    """Competition ranks by mean preference; None for a system without a rival."""
    listed = means.tolist()
    return [None if math.isnan(own) else 1 + sum(other > own + 1e-9 for other in listed) for own in listed]


def _nans(*shape: int) -> Tensor:
    return torch.full(shape, torch.nan, dtype=torch.float64)


def without_clock(runs: Trajectories, measure: str) -> MeasureResult:
    """What is left of a measure that compares times where there are none."""
    size = len(runs.systems)
    return MeasureResult(
        measure=measure,
        clock=None,
        status="no clock: these runs carry no clock, and this measure compares times",
        theta=_nans(size),
        interval=None,
        rank=(None,) * size,
        mean_preference=_nans(size, size),
        mean=_nans(size),
        tie_rate=math.nan,
        run_pairs=0,
        instances=len(runs.instances),
    )


def _with_board(result: MeasureResult, problem: _Problem, board: Leaderboard) -> MeasureResult:
    """The result with the intervals of a leaderboard of the systems that take part."""
    interval = torch.full((len(problem.all.systems), 2), torch.nan, dtype=torch.float64)
    interval[list(problem.positions)] = board.interval.double().cpu()
    return replace(result, interval=interval, board=board)
