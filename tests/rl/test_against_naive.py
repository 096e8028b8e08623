"""Random groups, all options, all dtypes, against rewards read off the definitions."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from unittest.mock import patch

import pytest
import torch

from rl import naive
from rl.naive import Rollout
from torchpref.kernels import choice
from torchpref.rl import group_advantages, pool_rewards, preference_rewards, ragged_rewards

CLOCKS = {"steps": 1, "turns": 1, "tokens": 1, "seconds": 10**6, "lines": 10**6, "cost": 10**9}
ZERO = ("tokens", "seconds", "cost")
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
FINE = (*LEVELS, 1 / 3, 0.333333, 2 / 3, 0.66667, 0.999995, 0.00001, 0.000011, 1.0000001, -1e-8)


def _rollouts(rng: random.Random, count: int, steps: int, clocks: list[str], values: tuple[float, ...]):
    """Rollouts of one group once per clock, and the numbers that the tensors hold."""
    runs, rows = [], []
    for _ in range(count):
        length = rng.randint(0, steps)
        truncated, valid = rng.random() < 0.25, rng.random() < 0.85
        returns = [rng.choice(values) for _ in range(length)]
        levels = [round(value * 1e6) for value in returns]
        times, per_clock = {}, []
        for clock in clocks:
            if clock == "steps":
                ticks: list[int | None] = [k + 1 for k in range(length)]
            else:
                ticks = sorted(rng.choice((0, 1, 2, 2, 3, 5)) for _ in range(length))
                ticks = [None if rng.random() < 0.15 else tick for tick in ticks]
            times[clock] = [math.nan if tick is None else float(tick) for tick in ticks]
            scaled = [None if tick is None else tick * CLOCKS[clock] for tick in ticks]
            per_clock.append(Rollout(tuple(zip(scaled, levels, strict=True)), truncated, valid))
        runs.append(per_clock)
        rows.append({"returns": returns, "times": times, "truncated": truncated, "valid": valid, "length": length})
    return runs, rows


def _tensors(
    rng: random.Random, groups: list, steps: int, clocks: list[str], dtype: torch.dtype, counted: bool
) -> dict:
    pad = rng.choice((math.nan, 0.0, 7.0))

    def full(name: str, clock: str | None = None) -> list:
        return [
            [[*(row[name] if clock is None else row[name][clock]), *[pad] * (steps - row["length"])] for row in rows]
            for _, rows in groups
        ]

    def flags(name: str, kind: torch.dtype) -> torch.Tensor:
        return torch.tensor([[row[name] for row in rows] for _, rows in groups], dtype=kind)

    timed = {
        clock: None if clock == "steps" and counted else torch.tensor(full("times", clock), dtype=torch.float64)
        for clock in clocks
    }
    return {
        "returns": torch.tensor(full("returns"), dtype=torch.float64).to(dtype),
        "lengths": flags("length", torch.long),
        "times": timed if len(clocks) > 1 else timed[clocks[0]],
        "truncated": flags("truncated", torch.bool),
        "valid": flags("valid", torch.bool),
    }


def one_case(seed: int) -> None:
    rng = random.Random(seed)
    dtype = rng.choice(
        (torch.float64, torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool, torch.int64)
    )
    values = (
        FINE
        if dtype in (torch.float64, torch.float32)
        else (0.0, 1.0)
        if dtype in (torch.bool, torch.int64)
        else LEVELS
    )
    measure = rng.choice(("sr", "pr", "spl", "lr", "rpp", "rpp", "ipp"))
    several = measure in ("lr", "rpp", "ipp") and rng.random() < 0.25
    clocks = rng.sample(sorted(CLOCKS), rng.choice((2, 3)) if several else 1)
    counted = rng.random() < 0.5
    steps, count = rng.randint(1, 5), rng.randint(1, 5)
    groups = [_rollouts(rng, count, steps, clocks, values) for _ in range(rng.randint(1, 2))]
    batch = _tensors(rng, groups, steps, clocks, dtype, counted)
    if dtype in (torch.bool, torch.int64):
        batch["returns"] = torch.where(torch.arange(steps) < batch["lengths"].unsqueeze(-1), batch["returns"], 0)
    options: dict = {"measure": measure, "output": rng.choice(("signed", "win_rate")),
                     "anchor": rng.choice(("success", "return", None))}  # fmt: skip
    weight = Fraction(rng.choice((0, 10, 49)), 100)
    if options["anchor"] is not None:
        options["weight"] = float(weight)
    if several:
        options["combine"] = rng.choice(("mean", "lexicographic", None))
    elif batch["times"] is not None:
        options["clock"] = rng.choice((clocks[0], clocks[0].upper()))
    combine = options.get("combine")
    zeros = [clock in ZERO for clock in clocks]
    exact = dtype is torch.float64
    tolerance = {"rtol": 0, "atol": 1e-12 if exact else 2e-7}
    per_batch = None
    if measure == "spl" and rng.random() < 0.5:
        per_batch = torch.tensor([float(rng.choice((0, 1, 3))) for _ in groups])
        options["reference_time"] = per_batch

    def references(position: int, mine: list) -> list[int | None]:
        if measure != "spl":
            return [None] * len(clocks)
        given = None if per_batch is None else round(float(per_batch[position]) * CLOCKS[clocks[0]])
        return [given or naive.least_success([runs[0] for runs in mine], zeros[0])]

    def wanted(position: int, mine: list, rivals: list | None) -> list[Fraction]:
        result = []
        for i, runs in enumerate(mine):
            if not runs[0].valid:
                result.append(Fraction(0))
                continue
            others = [other for j, other in enumerate(mine) if j != i] if rivals is None else rivals
            others = [other for other in others if other[0].valid]
            mean = naive.mean_delta(runs, others, measure, zeros, combine, references(position, mine))
            result.append(naive.anchored(runs[0].final, mean, options["output"], options["anchor"], weight))
        return result

    compiled = rng.random() < 0.5
    with patch.object(choice, "groups_compiled", lambda device, pairs, steps, by_step: compiled):
        rewards = preference_rewards(**batch, **options)
        assert rewards.dtype is (torch.float64 if exact else torch.float32)
        expected = torch.tensor(
            [[float(x) for x in wanted(k, runs, None)] for k, (runs, _) in enumerate(groups)], dtype=torch.float64
        )
        torch.testing.assert_close(rewards.double(), expected, **tolerance)

        if rng.random() < 0.3 and measure != "spl":  # the same in any order, told apart by id
            order = torch.tensor(rng.sample(range(rewards.numel()), rewards.numel()))
            flat = {
                name: value if value is None
                else {k: None if v is None else v.flatten(0, 1)[order] for k, v in value.items()} if isinstance(value, dict)
                else value.flatten(0, 1)[order]
                for name, value in batch.items()
            }  # fmt: skip
            ids = torch.arange(len(groups)).repeat_interleave(count)[order]
            ragged = ragged_rewards(group=rng.choice((ids, ids.tolist(), list(ids), ids.numpy())), **flat, **options)
            assert torch.equal(ragged, rewards.flatten()[order])

        if measure == "rpp" and (not several or combine == "mean"):
            credit = preference_rewards(credit="to-go", **batch, **options)
            assert credit.dtype is rewards.dtype and credit.shape == batch["returns"].shape
            for k, (runs, _) in enumerate(groups):
                by_hand = naive.to_go(runs, options["output"], options["anchor"], weight, zeros)
                for got, row in zip(credit[k].double(), by_hand, strict=True):
                    full = torch.tensor([*map(float, row), *[0.0] * (steps - len(row))], dtype=torch.float64)
                    torch.testing.assert_close(got, full, **tolerance)

        if measure != "spl" or per_batch is not None:
            pool_steps, pool_count = rng.randint(1, 4), rng.randint(0, 3)
            pools = [_rollouts(rng, pool_count, pool_steps, clocks, values) for _ in groups]
            pool = {
                f"pool_{name}": value
                for name, value in _tensors(rng, pools, pool_steps, clocks, torch.float64, counted).items()
            }
            if not pool_count:
                empty = torch.zeros(len(groups), 0, pool_steps)
                pool = {name: value for name, value in pool.items() if name in ("pool_times",)} | {
                    "pool_returns": empty
                }
                if isinstance(pool["pool_times"], dict):
                    pool["pool_times"] = {k: None if v is None else empty for k, v in pool["pool_times"].items()}
                elif pool["pool_times"] is not None:
                    pool["pool_times"] = empty
            against = pool_rewards(**batch, **pool, **options)
            expected = torch.tensor(
                [[float(x) for x in wanted(k, runs, pools[k][0])] for k, (runs, _) in enumerate(groups)],
                dtype=torch.float64,
            )
            torch.testing.assert_close(against.double(), expected, **tolerance)

    advantages = group_advantages(rewards, batch["valid"])
    for row, value, here in zip(advantages.double(), rewards.double(), batch["valid"], strict=True):
        mean = value[here].mean() if bool(here.any()) else 0.0
        torch.testing.assert_close(row, torch.where(here, value - mean, 0), **tolerance)


def test_a_few_hundred_random_cases() -> None:
    for seed in range(400):
        one_case(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_fifty_thousand_random_cases(part: int) -> None:
    for seed in range(1000 + 5000 * part, 1000 + 5000 * (part + 1)):
        one_case(seed)
