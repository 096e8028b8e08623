"""Does it train? Group-relative policy gradient on Taxi, DoorKey and FourRooms under seven rewards.

A softmax policy, one table entry per state and action, starts from the shortest-path planner that acts at random in
``START`` of all steps, and learns from groups of rollouts of one start at horizon 100. Every seed is an instance of its
own. All rewards and seeds of a task advance side by side in one batch, so that the whole table takes minutes on a core.

    python benchmarks/training.py [--seeds 10] [--updates 600] [--write benchmarks/TRAINING.md]

Needs the extra ``sgrl``.
"""

from __future__ import annotations

import argparse
import math
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

import torchpref as tp
from torchpref.rl import group_advantages, preference_rewards
from torchpref.sgrl.rollouts import Rollouts, Tables, rollouts
from torchpref.sgrl.suites import environment
from torchpref.sgrl.tabular import TabularTask, concatenate

TASKS = ("taxi", "doorkey", "fourrooms")
HORIZON = 100
GROUP = 16
START = 0.8
#: Step sizes tried for every reward; the table shows the one at which that reward ends with the shortest paths.
STEP_SIZES = (1.0, 2.0)
SCALES = ("none", "group")
DISCOUNT = 0.95


@dataclass(frozen=True)
class Reward:
    """A reward of the table: its name, and rewards ``[batch, group]`` of rollouts with that shape."""

    name: str
    of: Callable[[Rollouts], Tensor]


def _preference(measure: str, anchor: str | None) -> Callable[[Rollouts], Tensor]:
    return lambda runs: preference_rewards(runs.returns, runs.lengths, measure, anchor=anchor)


REWARDS = (
    Reward("success", lambda runs: runs.solved.float()),
    Reward("subgoal fraction", lambda runs: runs.returns[..., -1]),
    Reward(f"success × {DISCOUNT}^t", lambda runs: runs.solved * DISCOUNT ** runs.lengths.float()),
    Reward("RPP", _preference("rpp", None)),
    Reward("LR", _preference("lr", None)),
    Reward("IPP", _preference("ipp", None)),
    Reward("success + 0.49·RPP", _preference("rpp", "success")),
)


@dataclass(frozen=True)
class Arm:
    """One way to train: a reward, whether advantages are divided by the group's deviation, and a step size."""

    reward: Reward
    scale: str
    step_size: float


def arms() -> list[Arm]:
    return [Arm(reward, scale, size) for reward in REWARDS for scale in SCALES for size in STEP_SIZES]


def instances(name: str, seeds: int) -> TabularTask:
    """One instance per training seed, side by side in one table."""
    kind = environment(name)
    env = kind.make(1_000)
    return concatenate([kind.task(seed, env) for seed in kind.seeds(seeds)])


def repeat(tables: Tables, times: int) -> Tables:
    """Copies of the same states, each with policies of its own."""
    states = len(tables.level)
    offset = torch.arange(times) * states
    return Tables(
        successors=(tables.successors + offset[:, None, None]).flatten(0, 1),
        level=tables.level.repeat(times),
        starts=(tables.starts + offset[:, None]).flatten(),
        shortest=tables.shortest.repeat(times),
    )


def policy_gradient(logits: Tensor, runs: Rollouts, advantages: Tensor) -> Tensor:
    """Gradient of the mean over the group of A · log-probability of its actions, by ``logits`` ``[state, action]``."""
    actions = logits.shape[1]
    weight = (advantages[..., None] * runs.mask / advantages.shape[-1]).flatten()
    taken = (runs.states * actions + runs.actions).flatten()
    gradient = torch.zeros(logits.numel(), dtype=logits.dtype).index_add_(0, taken, weight).view_as(logits)
    return gradient - logits.softmax(1) * gradient.sum(1, keepdim=True)


@dataclass(frozen=True)
class Outcome:
    """Success rate and path length over the shortest, ``[arm, seed]``, by update ``[update, arm, seed]`` too."""

    success: Tensor
    length: Tensor


def train(task: TabularTask, chosen: list[Arm], updates: int, generator: torch.Generator) -> Outcome:
    """Train every arm on every instance; the figures of the rollouts of each update."""
    seeds = len(task.instances)
    tables = repeat(Tables.of(task), len(chosen))
    logits = torch.as_tensor(task.policy(START)).float().log().repeat(len(chosen), 1)
    states = len(task.level)
    size = torch.tensor([arm.step_size for arm in chosen]).repeat_interleave(states)[:, None]
    start = torch.arange(len(chosen) * seeds)[:, None].expand(-1, GROUP)
    success = torch.empty(updates, len(chosen), seeds)
    length = torch.empty_like(success)
    for update in range(updates):
        runs = rollouts(tables, logits, start, HORIZON, generator)
        advantages = torch.empty(len(chosen), seeds, GROUP)
        for reward in REWARDS:
            mine = [i for i, arm in enumerate(chosen) if arm.reward is reward]
            if not mine:
                continue
            rows = torch.cat([torch.arange(i * seeds, (i + 1) * seeds) for i in mine])
            part = Rollouts(
                *(getattr(runs, name)[rows] for name in ("states", "actions", "returns", "lengths", "solved"))
            )
            values = reward.of(part).view(len(mine), seeds, GROUP)
            for place, i in enumerate(mine):
                advantages[i] = group_advantages(values[place], scale=chosen[i].scale)
        logits += size * policy_gradient(logits, runs, advantages.flatten(0, 1))
        won = runs.solved.view(len(chosen), seeds, GROUP)
        success[update] = won.float().mean(-1)
        steps = (runs.lengths.view_as(won) * won).sum(-1) / won.sum(-1)
        length[update] = steps / torch.as_tensor(task.shortest)
    return Outcome(success, length)


@dataclass(frozen=True)
class Line:
    """A reward's figures on one task, over the rollouts of the last tenth of the updates; one number per seed."""

    task: str
    reward: str
    scale: str
    step_size: float
    success: Tensor
    length: Tensor


def summarise(name: str, chosen: list[Arm], outcome: Outcome) -> list[Line]:
    """One line per reward and scale, at the step size with the shortest paths; failures never count as short."""
    last = max(1, len(outcome.success) // 10)
    success = outcome.success[-last:].mean(0)
    # A seed that never succeeds has no path length: worse than any.
    length = torch.nan_to_num(torch.nanmean(outcome.length[-last:], 0), nan=math.inf)
    lines = []
    for reward in REWARDS:
        for scale in SCALES:
            mine = [i for i, arm in enumerate(chosen) if arm.reward is reward and arm.scale == scale]
            best = min(mine, key=lambda i: (float(length[i].mean()), -float(success[i].mean())))
            lines.append(Line(name, reward.name, scale, chosen[best].step_size, success[best], length[best]))
    return lines


def interval(values: Tensor) -> str:
    """Mean and 95 % t-interval over seeds."""
    from scipy.stats import t

    mean = float(values.mean())
    if len(values) < 2 or not math.isfinite(mean):
        return f"{mean:.3f}"
    half = float(t.ppf(0.975, len(values) - 1)) * float(values.std()) / math.sqrt(len(values))
    return f"{mean:.3f} ± {half:.3f}"


def table(lines: list[Line]) -> str:
    """Markdown: a row per reward and scale, a column pair per task."""
    tasks = list(dict.fromkeys(line.task for line in lines))
    head = "| reward | ÷ deviation | " + " | ".join(f"{task}: path | success" for task in tasks) + " |"
    rows = [head, "|---" * (2 + 2 * len(tasks)) + "|"]
    for reward in dict.fromkeys(line.reward for line in lines):
        for scale in SCALES:
            cells = [reward, "yes" if scale == "group" else "no"]
            for task in tasks:
                (line,) = [x for x in lines if (x.task, x.reward, x.scale) == (task, reward, scale)]
                cells += [interval(line.length), f"{float(line.success.mean()):.3f}"]
            rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def verdicts(lines: list[Line]) -> list[str]:
    """What the acceptance of this benchmark asks, as measured."""
    plain = {(line.task, line.reward): line for line in lines if line.scale == "none"}
    tasks = list(dict.fromkeys(line.task for line in lines))
    result = []
    for task in tasks:
        anchored, success = plain[task, REWARDS[-1].name], plain[task, REWARDS[0].name]
        scaled = next(x for x in lines if (x.task, x.reward, x.scale) == (task, REWARDS[0].name, "group"))
        above = 100 * (float(anchored.length.mean()) - 1)
        alone, divided = float(success.length.mean()), float(scaled.length.mean())
        result.append(
            f"{task}: success + 0.49·RPP ends {above:.1f} % above the shortest path; success alone at {alone:.2f} times it, "
            f"{divided:.2f} with division by the deviation"
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--write", type=Path, help="write the table to this Markdown file")
    options = parser.parse_args()

    torch.set_num_threads(1)
    began = time.perf_counter()
    lines: list[Line] = []
    for name in options.tasks:
        start = time.perf_counter()
        task, chosen = instances(name, options.seeds), arms()
        outcome = train(task, chosen, options.updates, torch.Generator().manual_seed(0))
        lines += summarise(name, chosen, outcome)
        print(
            f"{name}: {len(chosen)} ways to train × {options.seeds} seeds in {time.perf_counter() - start:.0f} s",
            flush=True,
        )
    text = "\n".join(
        [
            "# Training with preferences as rewards",
            "",
            f"Written by `python benchmarks/training.py --seeds {options.seeds} --updates {options.updates}` "
            f"(torchpref {tp.__version__}, torch {torch.__version__.split('+')[0]}, {platform.machine()}, one thread, "
            f"{time.perf_counter() - began:.0f} s).",
            "",
            "Tabular softmax policies, started from the shortest-path planner that acts at random in "
            f"{100 * START:.0f} % of all",
            f"steps; horizon {HORIZON}, groups of {GROUP} rollouts of one start, one group per update, plain gradient steps.",
            "Every seed is an instance of its own. *Path* is the mean length of successful rollouts over the shortest path,",
            "in the last tenth of the updates (the sampled policy, not its mode), mean and 95 % interval over seeds;",
            "*success* is the share of rollouts that succeed. Of the step sizes "
            f"{', '.join(map(str, STEP_SIZES))} every row shows its own best.",
            "",
            table(lines),
            "",
            *[f"- {verdict}" for verdict in verdicts(lines)],
            "",
            "FourRooms has one level only, so that RPP, LR and IPP are the same there and the subgoal fraction is success:",
            "what their rows differ by is chance. Where the preference does not win: with division by the deviation the",
            "time-discounted success is as good, its discount having been chosen for these path lengths.",
        ]
    )
    print("\n" + text)
    if options.write:
        options.write.write_text(text + "\n")


if __name__ == "__main__":
    main()
