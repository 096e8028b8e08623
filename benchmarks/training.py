"""Does it train? Group-relative policy gradient on Taxi, DoorKey and FourRooms under seven rewards, and credit to-go.

A softmax policy, one table entry per state and action, starts from the shortest-path planner that acts at random in
``START`` of all steps, and learns from groups of rollouts of one start at horizon 100. Every seed is an instance of its
own. All rewards and seeds of a task advance side by side in one batch, so that the whole table takes minutes on a core.

The second part trains on one number per rollout and on credit to-go, on Taxi, DoorKey and a chain of eight levels, each at
four step sizes, and counts the updates until paths are near the shortest.

    python benchmarks/training.py [--parts rewards credit] [--seeds 10] [--updates 600] [--write benchmarks/TRAINING.md]

Needs the extra ``sgrl``.
"""

from __future__ import annotations

import argparse
import math
import platform
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
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

CREDIT_TASKS = ("taxi", "doorkey", "chain")
CREDIT_STEP_SIZES = (2.0, 4.0, 8.0, 16.0)
#: Paths are near the shortest where the mean over this many updates is within this factor; a failure counts as the horizon.
NEAR_UPDATES = 5
NEAR = {"taxi": 1.10, "doorkey": 1.10, "chain": 1.25}
#: The chain: so many levels, and so many steps from one to the next.
CHAIN_LEVELS, CHAIN_STEPS = 8, 4


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
    """One way to train: a reward, whether advantages are divided by the group's deviation, a step size, credit to-go."""

    reward: Reward
    scale: str
    step_size: float
    to_go: bool = False


def arms() -> list[Arm]:
    return [Arm(reward, scale, size) for reward in REWARDS for scale in SCALES for size in STEP_SIZES]


def instances(name: str, seeds: int) -> TabularTask:
    """One instance per training seed, side by side in one table."""
    if name == "chain":
        return concatenate([chain(f"chain-{seed}") for seed in range(seeds)])
    kind = environment(name)
    env = kind.make(1_000)
    return concatenate([kind.task(seed, env) for seed in kind.seeds(seeds)])


def chain(name: str) -> TabularTask:
    """A corridor with a level every few cells: one action goes on, one goes back, two stay.

    Going back ends at the last level that was reached, which is kept.
    """
    cells = CHAIN_LEVELS * CHAIN_STEPS
    place = np.arange(cells + 1)
    forward = np.minimum(place + 1, cells)
    back = np.where(place % CHAIN_STEPS == 0, place, place - 1)
    return TabularTask(
        successors=np.stack([forward, back, place, place], axis=1),
        level=place // CHAIN_STEPS / CHAIN_LEVELS,
        starts=np.zeros(1, dtype=np.int64),
        instances=(name,),
        actions=("forward", "back", "stay", "wait"),
        environment_actions=(0, 1, 2, 3),
        labels=place[:, None],
        features=("cell",),
    )


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
    """Gradient of the mean over the group of A · log-probability of its actions, by ``logits`` ``[state, action]``.

    ``advantages`` ``[batch, group]``, or ``[batch, group, step]``.
    """
    actions = logits.shape[1]
    if advantages.dim() == runs.lengths.dim():
        advantages = advantages[..., None]
    weight = (advantages * runs.mask / runs.lengths.shape[-1]).flatten()
    taken = (runs.states * actions + runs.actions).flatten()
    gradient = torch.zeros(logits.numel(), dtype=logits.dtype).index_add_(0, taken, weight).view_as(logits)
    return gradient - logits.softmax(1) * gradient.sum(1, keepdim=True)


@dataclass(frozen=True)
class Outcome:
    """Success rate, and path length over the shortest, by update ``[update, arm, seed]``.

    ``length`` is that of successes, ``path`` that of all rollouts, failures counted as the horizon.
    """

    success: Tensor
    length: Tensor
    path: Tensor


def train(task: TabularTask, chosen: list[Arm], updates: int, generator: torch.Generator) -> Outcome:
    """Train every arm on every instance; the figures of the rollouts of each update."""
    seeds = len(task.instances)
    tables = repeat(Tables.of(task), len(chosen))
    logits = torch.as_tensor(task.policy(START)).float().log().repeat(len(chosen), 1)
    states = len(task.level)
    size = torch.tensor([arm.step_size for arm in chosen]).repeat_interleave(states)[:, None]
    start = torch.arange(len(chosen) * seeds)[:, None].expand(-1, GROUP)
    success = torch.empty(updates, len(chosen), seeds)
    length, path = torch.empty_like(success), torch.empty_like(success)
    for update in range(updates):
        runs = rollouts(tables, logits, start, HORIZON, generator)
        advantages = torch.empty(len(chosen), seeds, GROUP, HORIZON if any(arm.to_go for arm in chosen) else 1)
        for reward, to_go in {(arm.reward, arm.to_go): None for arm in chosen}:
            mine = [i for i, arm in enumerate(chosen) if arm.reward is reward and arm.to_go == to_go]
            rows = torch.cat([torch.arange(i * seeds, (i + 1) * seeds) for i in mine])
            part = Rollouts(
                *(getattr(runs, name)[rows] for name in ("states", "actions", "returns", "lengths", "solved"))
            )
            if to_go:
                values = preference_rewards(part.returns, part.lengths, "rpp", credit="to-go")
                advantages[mine] = values.view(len(mine), seeds, GROUP, HORIZON)
                continue
            values = reward.of(part).view(len(mine), seeds, GROUP)
            for place, i in enumerate(mine):
                advantages[i] = group_advantages(values[place], scale=chosen[i].scale)[..., None]
        logits += size * policy_gradient(logits, runs, advantages.flatten(0, 1))
        won = runs.solved.view(len(chosen), seeds, GROUP)
        success[update] = won.float().mean(-1)
        taken = runs.lengths.view_as(won)
        length[update] = (taken * won).sum(-1) / won.sum(-1) / torch.as_tensor(task.shortest)
        path[update] = taken.float().mean(-1) / torch.as_tensor(task.shortest)
    return Outcome(success, length, path)


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


def interval(values: Tensor, digits: int = 3) -> str:
    """Mean and 95 % t-interval over seeds."""
    from scipy.stats import t

    mean = float(values.mean())
    if len(values) < 2 or not math.isfinite(mean):
        return f"{mean:.{digits}f}"
    half = float(t.ppf(0.975, len(values) - 1)) * float(values.std()) / math.sqrt(len(values))
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


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


@dataclass(frozen=True)
class Pace:
    """How many updates one way to train took on one task, per seed; all there were where it never got there."""

    task: str
    to_go: bool
    step_size: float
    updates: Tensor
    arrived: Tensor
    success: float


def pace(name: str, chosen: list[Arm], outcome: Outcome) -> list[Pace]:
    """Updates until the paths of all rollouts are near the shortest, for every way to train."""
    window = outcome.path.unfold(0, NEAR_UPDATES, 1).mean(-1)
    near = window <= NEAR[name]
    arrived = near.any(0)
    first = torch.where(arrived, near.float().argmax(0) + NEAR_UPDATES, len(outcome.path))
    last = outcome.success[-max(1, len(outcome.success) // 10) :].mean((0, 2))
    return [
        Pace(name, arm.to_go, arm.step_size, first[i].float(), arrived[i], float(last[i]))
        for i, arm in enumerate(chosen)
    ]


def best(paces: list[Pace], task: str, to_go: bool) -> Pace:
    return min((x for x in paces if (x.task, x.to_go) == (task, to_go)), key=lambda x: float(x.updates.mean()))


def credit_section(seeds: int, updates: int) -> str:
    """One number per rollout beside credit to-go."""
    began = time.perf_counter()
    anchored = REWARDS[-1]
    chosen = [Arm(anchored, "none", size, to_go) for to_go in (False, True) for size in CREDIT_STEP_SIZES]
    paces: list[Pace] = []
    for name in CREDIT_TASKS:
        start = time.perf_counter()
        paces += pace(name, chosen, train(instances(name, seeds), chosen, updates, torch.Generator().manual_seed(0)))
        print(f"{name}: {len(chosen)} ways to train × {seeds} seeds in {time.perf_counter() - start:.0f} s", flush=True)
    rows = ["| task (levels) | step size | one number | to-go |", "|---|---|---|---|"]
    titles = {"taxi": "Taxi (2)", "doorkey": "DoorKey (3)", "chain": f"chain ({CHAIN_LEVELS})"}
    for task in CREDIT_TASKS:
        for size in CREDIT_STEP_SIZES:
            cells = []
            for to_go in (False, True):
                (one,) = [x for x in paces if (x.task, x.to_go, x.step_size) == (task, to_go, size)]
                text = interval(one.updates, 1)
                if not bool(one.arrived.all()):
                    text += f", {int(one.arrived.sum())} of {seeds} seeds get there"
                cells.append(f"**{text}**" if one is best(paces, task, to_go) else text)
            rows.append(f"| {titles[task]} | {size:g} | {cells[0]} | {cells[1]} |")
    verdict = []
    for task in CREDIT_TASKS:
        one, two = best(paces, task, False), best(paces, task, True)
        verdict.append(
            f"- {titles[task]}: {float(two.updates.mean()):.1f} updates to-go against {float(one.updates.mean()):.1f} with one "
            f"number, {float(two.updates.mean() / one.updates.mean()):.2f} of them, each at its best step size "
            f"({two.step_size:g} and {one.step_size:g}); {100 * two.success:.1f} % and {100 * one.success:.1f} % of rollouts "
            "succeed at the end"
        )
    return "\n".join(
        [
            "## Credit along the run",
            "",
            f"Written by `python benchmarks/training.py --parts credit --seeds {seeds} --credit-updates {updates}` "
            f"({version()}, {time.perf_counter() - began:.0f} s).",
            "",
            'success + 0.49·RPP as one number per rollout, and with `credit="to-go"`: every step gets the parts of the levels',
            "that its rollout had not reached before it. Otherwise as above. Updates until the mean path of all rollouts,",
            f"failures counted as the horizon, is within {NEAR['taxi']:.2f} of the shortest (chain {NEAR['chain']:.2f}) over "
            f"{NEAR_UPDATES} updates; mean and",
            f"95 % interval over {seeds} seeds, {updates} where a seed does not get there. In bold each one's best step size.",
            "",
            *rows,
            "",
            *verdict,
            "",
            f"The chain has {CHAIN_LEVELS} levels, {CHAIN_STEPS} steps from one to the next; one action goes on, one back,",
            "two stay. No language model was trained.",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=["rewards", "credit"], choices=["rewards", "credit"])
    parser.add_argument("--credit-updates", type=int, default=200, help="updates of the second part")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--write", type=Path, help="write the table to this Markdown file")
    options = parser.parse_args()

    torch.set_num_threads(1)
    began = time.perf_counter()
    lines: list[Line] = []
    sections = {}
    if "credit" in options.parts:
        sections["credit"] = credit_section(options.seeds, options.credit_updates)
    for name in options.tasks if "rewards" in options.parts else ():
        start = time.perf_counter()
        task, chosen = instances(name, options.seeds), arms()
        outcome = train(task, chosen, options.updates, torch.Generator().manual_seed(0))
        lines += summarise(name, chosen, outcome)
        print(
            f"{name}: {len(chosen)} ways to train × {options.seeds} seeds in {time.perf_counter() - start:.0f} s",
            flush=True,
        )
    if "rewards" in options.parts:
        sections["rewards"] = rewards_section(lines, options.seeds, options.updates, time.perf_counter() - began)
    for section in sections.values():
        print("\n" + section)
    if options.write:
        write(options.write, sections)


def rewards_section(lines: list[Line], seeds: int, updates: int, seconds: float) -> str:
    """What the rewards end at."""
    return "\n".join(
        [
            "## Rewards",
            "",
            f"Written by `python benchmarks/training.py --parts rewards --seeds {seeds} --updates {updates}` "
            f"({version()}, {seconds:.0f} s).",
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
            "time-discounted success is as good, its discount having been chosen for these path lengths. What division by",
            "the deviation does is mostly a matter of step size: it makes every group's advantages as large as those of the",
            "first updates, so that a step size that fits the beginning still moves the policy at the end.",
        ]
    )


def version() -> str:
    return f"torchpref {tp.__version__}, torch {torch.__version__.split('+')[0]}, {platform.machine()}, one thread"


def write(path: Path, sections: dict[str, str]) -> None:
    """Put sections into the page in the place of those of the same title; the others stay."""
    old = path.read_text() if path.exists() else ""
    kept = {part.split("\n", 1)[0]: part.strip() for part in re.split(r"^(?=## )", old, flags=re.M)[1:]}
    fresh = {section.split("\n", 1)[0]: section for section in sections.values()}
    titles = ["## Rewards", "## Credit along the run"]
    body = [(kept | fresh)[title] for title in titles if title in kept | fresh]
    path.write_text("\n\n".join(["# Training with preferences as rewards", *body]) + "\n")


if __name__ == "__main__":
    main()
