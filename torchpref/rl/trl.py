"""The preference as a reward function of TRL's GRPOTrainer (read and run against TRL 1.16).

TRL hands a reward function the rollouts of one process, as lists, before anything is gathered, and does not say how large
a group is. With several processes a process may hold half a group; a reward that compares rollouts would then be computed
on the half, and nothing would warn. So :class:`PreferenceReward` is told the group size, checks that the rows of a group
share their prompt, and gathers the traces of all processes.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from torchpref.errors import DataError, TorchPrefWarning, UsageError
from torchpref.rl.messages import trace_of_messages
from torchpref.rl.rewards import Anchor, Output, checked_weight, preference_rewards
from torchpref.rl.rollouts import clock_name
from torchpref.rl.traces import Trace, pad_traces
from torchpref.runs.measures import describe
from torchpref.runs.units import MILLION

Row = dict[str, Any]


class PreferenceReward:
    """A reward function for ``GRPOTrainer(reward_funcs=...)`` that compares the completions of each group.

    Set ``scale_rewards="none"`` in the ``GRPOConfig``: dividing by the group's standard deviation turns a difference of
    one step into an advantage of full size. An environment's own ``get_reward`` would be added to this reward: leave it
    out. Async reward functions run beside each other in another thread; this one is not async and may gather.

    Logged under the trainer's metrics: ``preference/success`` (share of scorable rollouts that reach full return),
    ``preference/time`` (mean time of those), ``preference/tied_groups`` (share of groups without any difference).

    Args:
        trace: where the trace of a completion is: the name of a column (of the data set, or an extra of ``rollout_func``)
            or of an attribute of the environment; or a function of a row, a dict with ``prompt``, ``completion``,
            ``completion_text`` (what the model said, also where ``completion`` is a list of messages), ``completion_ids``,
            ``environment`` if there is one, ``truncated`` if there is a tokenizer, and all columns. A trace is a
            :class:`Trace`, a sequence of returns, a mapping with ``returns`` and perhaps ``times`` and ``truncated``, or None
            for a completion that cannot be scored: it gets no reward, and no other is compared with it.
        group_size: completions per prompt, ``num_generations`` of the ``GRPOConfig``.
        eval_group_size: ``num_generations_eval`` of the ``GRPOConfig``, where it differs; 1 is a group without rivals, whose
            reward is the anchor.
        measure, clock, resolution, output, anchor: as in :func:`torchpref.rl.preference_rewards`.
        weight: as there; or a function of the trainer's step, for a weight that changes in training.
        tokenizer: whose ``eos_token_id`` ends a completion: ``truncated`` of a row is whether it was cut, see
            :func:`torchpref.rl.trace_of_messages`.
        gather: whether to gather traces where torch.distributed runs several processes. Without it a process that holds
            part of a group raises.

    Raises:
        UsageError: when called, if the rows of a group differ in their prompt or do not make whole groups.
    """

    def __init__(
        self,
        trace: str | Callable[[Row], Any],
        group_size: int,
        measure: str = "rpp",
        *,
        clock: str | None = None,
        resolution: float | None = None,
        output: Output = "signed",
        anchor: Anchor = "success",
        weight: float | Callable[[int], float] | None = None,
        gather: bool = True,
        eval_group_size: int | None = None,
        tokenizer: Any = None,
    ) -> None:
        if group_size < 2:
            raise UsageError(f"a group needs at least two completions to compare, got group_size={group_size}")
        if eval_group_size is not None and eval_group_size < 1:
            raise UsageError(f"eval_group_size is num_generations_eval, at least 1, got {eval_group_size}")
        self.trace = trace
        self.group_size = group_size
        self.eval_group_size = eval_group_size
        self.gather = gather
        self.tokenizer = tokenizer
        self._warned = False
        self._warned_of_columns = False
        self.options: dict[str, Any] = {
            "measure": describe(measure).name,
            "clock": clock,
            "resolution": resolution,
            "output": output,
            "anchor": anchor,
            "weight": weight,
        }
        self.__name__ = f"preference_{describe(measure).name}"
        checked_weight(output, anchor, weight(0) if callable(weight) else weight)  # refuses wrong options now
        clock_name(clock)

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Any] | None = None,
        *,
        environments: Sequence[Any] | None = None,
        trainer_state: Any = None,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Sequence[Any],
    ) -> list[float | None]:
        """The reward of every completion of this process; None for those that cannot be scored."""
        self._check_neighbours(prompts, columns)
        rows: list[tuple[str, Trace | None]] = []
        for position, prompt in enumerate(prompts):
            row: Row = {name: values[position] for name, values in columns.items()}
            completion = completions[position]
            row |= {"prompt": prompt, "completion": completion, "completion_text": _text(completion)}
            if completion_ids is not None:
                row["completion_ids"] = completion_ids[position]
            if environments is not None:
                row["environment"] = environments[position]
            if self.tokenizer is not None:
                ids = row.get("completion_ids")
                row["truncated"] = trace_of_messages(completion, ids, self.tokenizer).truncated
            rows.append((_fingerprint(prompt), self._trace_of(row)))
        everything, start = self._gathered(rows)
        size = self._size_of_groups([key for key, _ in everything])
        traces = [trace for _, trace in everything]
        if not traces:
            return []
        self._check_columns(columns, size, len(rows))
        arguments = pad_traces(traces, size)
        options = dict(self.options)
        if callable(options["weight"]):
            if trainer_state is None:
                raise UsageError("a weight that changes with the trainer's step needs trainer_state, which TRL passes")
            options["weight"] = options["weight"](int(trainer_state.global_step))
        if arguments["times"] is None:
            if clock_name(options["clock"]) not in (None, "steps"):
                raise DataError(f"the clock {options['clock']!r} needs traces with times")
            options["resolution"] = None
        rewards = preference_rewards(**arguments, **options)  # type: ignore[arg-type]
        if log_metric is not None:
            for name, value in _metrics(traces, rewards, arguments["valid"]).items():
                log_metric(f"preference/{name}", value)
        values = rewards.flatten().tolist()[start : start + len(rows)]
        own = traces[start : start + len(rows)]
        return [None if trace is None else value for trace, value in zip(own, values, strict=True)]

    def _trace_of(self, row: Row) -> Trace | None:
        if callable(self.trace):
            return Trace.of(self.trace(row))
        if self.trace in row:
            return Trace.of(row[self.trace])
        environment = row.get("environment")
        if environment is not None and hasattr(environment, self.trace):
            return Trace.of(getattr(environment, self.trace))
        known = ", ".join(sorted(row))
        raise UsageError(
            f"no trace {self.trace!r}: neither a column nor an attribute of the environment has that name; there is {known}"
        )

    def _gathered(self, rows: list[tuple[str, Trace | None]]) -> tuple[list[tuple[str, Trace | None]], int]:
        """The rows of all processes, in the order of the generation batch, and where this process's own begin."""
        if not self.gather or not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
            return rows, 0
        parts: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(parts, rows)
        start = sum(len(part) for part in parts[: dist.get_rank()])
        return [row for part in parts for row in part], start

    def _size_of_groups(self, keys: Sequence[str]) -> int:
        """Rollouts per group of this call: that of training or of evaluation, the larger one where both fit."""
        if self.eval_group_size is not None:
            for size in sorted((self.group_size, self.eval_group_size), reverse=True):
                blocks = [keys[start : start + size] for start in range(0, len(keys), size)]
                if all(len(block) == size and len(set(block)) == 1 for block in blocks):
                    return size
        self._check_groups(keys)
        return self.group_size

    def _check_columns(self, columns: Mapping[str, Sequence[Any]], size: int, count: int) -> None:
        """Warn once where rollouts of one prompt differ in a plain value of another column: in their seed or answer, say."""
        if self._warned_of_columns or count % size:
            return
        differing = [
            name
            for name, values in sorted(columns.items())
            if name != self.trace
            and len(values) == count
            and all(isinstance(value, str | int | float | bool | None) for value in values)
            and any(len(set(map(repr, values[start : start + size]))) > 1 for start in range(0, count, size))
        ]
        if differing:
            self._warned_of_columns = True
            warnings.warn(
                f"rollouts of one prompt differ in {', '.join(differing)}: they are compared as runs of one task, although the "
                "prompt hides a difference; give different tasks different prompts. Extras of a rollout_func may differ",
                TorchPrefWarning,
                stacklevel=3,
            )

    def _check_groups(self, keys: Sequence[str]) -> None:
        size = self.group_size
        remedy = (
            f"group_size={size} must equal num_generations of the GRPOConfig; give eval_group_size where num_generations_eval "
            "is another"
        )
        if not self.gather:
            remedy += "; with several processes leave gather=True, or give every process whole groups"
        if len(keys) % size:
            raise UsageError(f"{len(keys)} completions do not make groups of {size}; {remedy}")
        for start in range(0, len(keys), size):
            if len(set(keys[start : start + size])) > 1:
                raise UsageError(
                    f"completions {start} to {start + size - 1} do not share their prompt, so they are no group; {remedy}. "
                    "If an environment's reset adds an observation to the prompt, take its seed from the data set"
                )

    def _check_neighbours(self, prompts: Sequence[Any], columns: Mapping[str, Sequence[Any]]) -> None:
        """Warn once where every group stands beside one of the same row of the data: these may be parts of one group."""
        size = self.group_size
        if self._warned or len(prompts) < 2 * size or len(prompts) % size:
            return
        rows = [
            _fingerprint([prompts[i], *(columns[name][i] for name in sorted(columns))]) for i in range(len(prompts))
        ]
        groups = [rows[start] for start in range(0, len(rows), size) if len(set(rows[start : start + size])) == 1]
        last = len(groups) - 1
        if len(groups) * size == len(rows) and all(
            (i > 0 and groups[i - 1] == groups[i]) or (i < last and groups[i + 1] == groups[i]) for i in range(last + 1)
        ):
            self._warned = True
            warnings.warn(
                f"all {len(groups)} groups of {size} completions stand beside a group of the same row of the data: if "
                f"num_generations of the GRPOConfig is larger than group_size={size}, make them equal, or completions are "
                "compared with a part of their group only",
                TorchPrefWarning,
                stacklevel=3,
            )

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items() if value is not None)
        return f"PreferenceReward(trace={self.trace!r}, group_size={self.group_size}, {options})"


def _text(completion: Any) -> str:
    """What the model said: the completion, or the text of the assistant's messages among it."""
    if isinstance(completion, str):
        return completion
    said = []
    for message in completion or ():
        content = (
            message.get("content") if isinstance(message, Mapping) and message.get("role") == "assistant" else None
        )
        if isinstance(content, str):
            said.append(content)
        elif content:
            said += [
                part["text"] for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str)
            ]
    return "\n".join(said)


def _fingerprint(prompt: Any) -> str:
    """Short text that is the same in every process for the same prompt; images and the like count by their type."""
    text = (
        prompt
        if isinstance(prompt, str)
        else json.dumps(prompt, sort_keys=True, default=lambda value: type(value).__name__)
    )
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _metrics(traces: Sequence[Trace | None], rewards: torch.Tensor, valid: torch.Tensor | None) -> Mapping[str, float]:
    """Raw success, mean time of success, and the share of groups without any difference."""
    scored = [trace for trace in traces if trace is not None]
    times = [time for trace in scored if (time := _time_of_success(trace)) is not None]
    result = {}
    if scored:
        result["success"] = len(times) / len(scored)
        known = [time for time in times if time == time]
        if known:
            result["time"] = sum(known) / len(known)
    assert valid is not None
    compared = valid.sum(-1) > 1
    if bool(compared.any()):
        low = torch.where(valid, rewards, torch.inf).amin(-1)
        high = torch.where(valid, rewards, -torch.inf).amax(-1)
        result["tied_groups"] = float((low == high)[compared].double().mean())
    return result


def _time_of_success(trace: Trace) -> float | None:
    """When full return was reached; None if it was not, NaN if the time is not known."""
    for number, value in enumerate(trace.returns):
        if round(value * MILLION) >= MILLION:
            return float(number + 1) if trace.times is None else trace.times[number]
    return None


__all__ = ["PreferenceReward", "Trace"]
