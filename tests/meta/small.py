"""Small data for the tests of meta-evaluation, and its figures by the definitions read aloud, in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import torch

from torchpref import Preferences, Trajectories
from torchpref.meta.compiled import tail
from torchpref.meta.fast_test import _inputs
from torchpref.meta.values import PairValues


def success(*rows: str, **options: object) -> Trajectories:
    """One character per system and row per instance: 1 success, 0 failure, . no run."""
    values = torch.tensor([[float(mark == "1") for mark in row] for row in rows])
    present = torch.tensor([[mark != "." for mark in row] for row in rows])
    systems = [chr(ord("A") + k) for k in range(len(rows[0]))]
    return Trajectories(values.unsqueeze(-1), present=present.unsqueeze(-1), systems=systems, **options)


def partial(rows: list[list[float]], times: list[list[float]] | None = None, **options: object) -> Trajectories:
    """The return reached by every system on every instance, at time 1 or at the given times."""
    values = torch.tensor(rows, dtype=torch.float64)
    systems = [chr(ord("A") + k) for k in range(values.shape[1])]
    when = torch.ones_like(values) if times is None else torch.tensor(times, dtype=torch.float64)
    return Trajectories(values.unsqueeze(-1), times={"time": when.unsqueeze(-1)}, systems=systems, **options)


def random_runs(
    seed: int, instances: int = 12, systems: int = 4, trials: int = 1, missing: float = 0.0, benchmarks: int = 1
) -> Trajectories:
    """Runs with three levels, times that repeat, and perhaps holes."""
    generator = torch.Generator().manual_seed(seed)
    shape = (instances, systems, trials)
    reached = torch.randint(0, 4, shape, generator=generator)
    steps = torch.arange(1, 4)
    returns = torch.minimum(steps.expand(*shape, 3), reached.unsqueeze(-1)).double() / 3
    times = torch.randint(1, 4, (*shape, 3), generator=generator).cumsum(-1).double()
    present = torch.rand(shape, generator=generator) >= missing
    names = [f"b{k % benchmarks}" for k in range(instances)] if benchmarks > 1 else None
    return Trajectories(returns, times={"time": times}, present=present, benchmarks=names)


def exact_deltas(prefs: Preferences) -> list[dict[tuple[int, int], Fraction]]:
    """Per instance, Δ of every pair that both ran."""
    rows = []
    for sums, counts in zip(prefs.sums.tolist(), prefs.trial_pairs.tolist(), strict=True):
        cells = zip(prefs.pairs.tolist(), sums, counts, strict=True)
        rows.append({tuple(pair): Fraction(total, count * prefs.unit) for pair, total, count in cells if count})
    return rows


def total(rows: list[dict[tuple[int, int], Fraction]], pair: tuple[int, int]) -> Fraction:
    return sum((row[pair] for row in rows if pair in row), Fraction(0))


def flips(rows: list[dict[tuple[int, int], Fraction]]) -> tuple[Fraction, Fraction]:
    """Share of pairs, and of (pair, instance), that leaving one out strictly reverses."""
    pairs = sorted({pair for row in rows for pair in row})
    flipped, cells, count = 0, 0, 0
    for pair in pairs:
        everything = total(rows, pair)
        hits = 0
        for left_out, row in enumerate(rows):
            if pair not in row:
                continue
            count += 1
            rest = total([other for k, other in enumerate(rows) if k != left_out], pair)
            hits += (everything > 0 > rest) or (everything < 0 < rest)
        flipped += hits > 0
        cells += hits
    return Fraction(flipped, len(pairs)), Fraction(cells, count)


def kendall_tau_b(mine: list[float], other: list[float]) -> float:
    together = untied_mine = untied_other = 0
    for i, j in combinations(range(len(mine)), 2):
        a = (mine[i] > mine[j]) - (mine[i] < mine[j])
        b = (other[i] > other[j]) - (other[i] < other[j])
        together, untied_mine, untied_other = together + a * b, untied_mine + a * a, untied_other + b * b
    return together / (untied_mine * untied_other) ** 0.5 if untied_mine and untied_other else float("nan")


def fast_p(values: PairValues, drawn: torch.Tensor, sums: torch.Tensor) -> torch.Tensor:
    """The p-value of every pair in every replicate by which the compiled loops decide; NaN where nothing was tested."""
    total, columns, copies, unit, span, square, fourth, count = _inputs(values, drawn, sums)
    result = torch.full(sums.shape, torch.nan, dtype=torch.float64)
    for row, pair in values.tested(drawn).nonzero().tolist():
        result[row, pair] = tail(
            total[row, pair], columns[pair], copies[row], unit[pair], span[pair], square[row, pair], fourth[row, pair],
            count[row, pair],
        )  # fmt: skip
    return result
