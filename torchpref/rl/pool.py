"""Runs of past policies, task by task, as what new rollouts are compared with."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from torchpref.errors import DataError, UsageError
from torchpref.rl.ragged import value_of
from torchpref.rl.rewards import pool_rewards
from torchpref.rl.traces import Trace, pad_traces


class Pool:
    """The latest runs of each task, to compare with; the reward changes slowly, as a critic needs it.

    Every task keeps its ``size`` latest runs, none older than ``age``. A rollout of a task without runs has no preference,
    and its anchor alone as reward.

    Args:
        size: runs kept per task.
        age: the oldest run that counts, in whatever :meth:`add` and :meth:`rewards` are told as ``now`` (updates, mostly);
            None: all count.
        measure, options: as in :func:`torchpref.rl.pool_rewards`, with ``clock`` where traces have times.
    """

    def __init__(self, size: int, age: int | None = None, measure: str = "rpp", **options: Any) -> None:
        if size < 1 or (age is not None and age < 0):
            raise UsageError(f"a pool keeps at least one run per task, of age 0 or more; got size={size}, age={age}")
        self.size = size
        self.age = age
        self.options = {"measure": measure, **options}
        self._runs: dict[Hashable, deque[tuple[int, Trace]]] = {}
        self.rewards(["-"], [None])  # refuses wrong options now

    def __len__(self) -> int:
        """Runs in the pool, of all tasks."""
        return sum(len(runs) for runs in self._runs.values())

    def add(self, tasks: Sequence[Hashable], traces: Sequence[Any], now: int = 0) -> None:
        """Keep these runs, one trace per task name; None, a run that cannot be scored, is not kept."""
        for task, trace in zip(_names(tasks, traces), traces, strict=True):
            run = Trace.of(trace)
            if run is not None:
                self._runs.setdefault(task, deque(maxlen=self.size)).append((now, run))

    def runs(self, task: Hashable, now: int = 0) -> list[Trace]:
        """The runs that a rollout of this task is compared with, the oldest first."""
        return [run for when, run in self._runs.get(task, ()) if self.age is None or now - when <= self.age]

    def rewards(self, tasks: Sequence[Hashable], traces: Sequence[Any], now: int = 0) -> Float[Tensor, " rollout"]:
        """The reward of every rollout against the pool of its task; 0 for one that cannot be scored (None).

        Call it before :meth:`add`, or rollouts are compared with themselves.
        """
        rivals = [self.runs(task, now) for task in _names(tasks, traces)]
        if not rivals:
            return torch.zeros(0)
        wide = max(1, *map(len, rivals))
        mine = pad_traces(traces, 1)
        theirs = pad_traces([run for runs in rivals for run in [*runs, *[None] * (wide - len(runs))]], wide)
        for one, other in ((mine, theirs), (theirs, mine)):
            returns = one["returns"]
            assert returns is not None
            if other["times"] is None and not returns.shape[-1]:
                one["times"] = None  # traces without a step have nothing to time, and go with any clock and with none
        arguments = {f"pool_{name}": value for name, value in theirs.items()}
        rewards = pool_rewards(**mine, **arguments, **self.options)  # type: ignore[arg-type]
        return rewards.squeeze(1).float()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the options, in lists and numbers: for ``torch.save``, also with ``weights_only=True``, and JSON."""
        return {
            "size": self.size,
            "age": self.age,
            "runs": [
                [task, [[now, list(run.returns), None if run.times is None else list(run.times), run.truncated]
                        for now, run in runs]]
                for task, runs in self._runs.items()
            ],
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state; the pool's own size and age apply."""
        self._runs = {
            task: deque(
                (
                    (now, Trace(tuple(returns), None if times is None else tuple(times), truncated))
                    for now, returns, times, truncated in runs
                ),
                maxlen=self.size,
            )
            for task, runs in state["runs"]
        }


def _names(tasks: Sequence[Hashable], traces: Sequence[Any]) -> list[Hashable]:
    if len(tasks) != len(traces):
        raise DataError(f"there are {len(tasks)} tasks for {len(traces)} traces")
    return [value_of(task) for task in tasks]


__all__ = ["Pool"]
