"""What one rollout reached, and when, as trainers hand it over: one Python object per rollout.

Trainers for language models pass lists, one entry per completion. A :class:`Trace` is such an entry; :func:`pad_traces`
makes one group of tensors of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from torchpref.errors import DataError, UsageError
from torchpref.rl.rollouts import ROUNDING


@dataclass(frozen=True)
class Trace:
    """Return curve of one rollout.

    Attributes:
        returns: return reached so far at each step, in [0, 1].
        times: the time of each step in the clock's unit, None or NaN where not known; None: steps count 1, 2, 3, …
        truncated: stopped by its limit, at the time of the last step.
    """

    returns: tuple[float, ...]
    times: tuple[float, ...] | None = None
    truncated: bool = False

    def __post_init__(self) -> None:
        for number, value in enumerate(self.returns):
            if not -ROUNDING <= value <= 1 + ROUNDING:
                raise DataError(
                    f"the return at step {number + 1} of a trace is {value!r}, not in [0, 1]; give the return reached so far, "
                    "summed rewards divided by the maximum score; None instead of a trace for a rollout that cannot be scored"
                )
        if self.times is None:
            return
        if len(self.times) != len(self.returns):
            raise DataError(f"a trace has {len(self.returns)} returns and {len(self.times)} times")
        latest = 0.0
        for number, time in enumerate(self.times):
            if time != time:
                continue
            if time < latest or time == float("inf"):
                raise DataError(
                    f"the time at step {number + 1} of a trace is {time!r}, after {latest!r}; "
                    "times are at least 0, never fall, and are NaN where not known"
                )
            latest = time

    @classmethod
    def of(cls, value: Any) -> Trace | None:
        """A trace from what users have: a trace, a sequence of returns, or a mapping with ``returns`` and more.

        None stays None: a rollout that cannot be scored. A single number is the return at the only step.
        """
        if value is None or isinstance(value, Trace):
            return value
        if isinstance(value, Mapping):
            unknown = set(value) - {"returns", "times", "truncated"}
            if unknown or "returns" not in value:
                raise DataError(
                    f"a trace as a mapping has returns, and may have times and truncated; got {sorted(map(str, value))}"
                )
            times = value.get("times")
            return cls(
                _numbers(value["returns"]), None if times is None else _numbers(times), bool(value.get("truncated"))
            )
        return cls(_numbers(value))


def _numbers(values: Any) -> tuple[float, ...]:
    if isinstance(values, str):
        raise DataError(f"a trace holds numbers, got the text {values[:40]!r}")
    if isinstance(values, Tensor) or hasattr(values, "tolist"):
        values = values.tolist()
    try:
        if isinstance(values, (int, float)):
            return (float(values),)
        return tuple(float("nan") if value is None else float(value) for value in values)
    except (TypeError, ValueError) as error:
        raise DataError(f"a trace holds numbers, got {values!r}") from error


def pad_traces(traces: Sequence[Any], group_size: int) -> dict[str, Tensor | None]:
    """Traces of consecutive groups, in any form that :meth:`Trace.of` takes, as arguments of ``preference_rewards``.

    ``returns`` and ``times`` are float64 ``[batch, group, step]``, ``lengths`` int64, ``valid`` and ``truncated`` bool
    ``[batch, group]``; ``times`` is None where no trace has any, ``truncated`` where no trace is. None among the traces is
    a rollout that does not count. Where no trace has a step there is nothing to time: ``times`` is there, and empty, so that
    any clock will do.

    Raises:
        DataError: some traces have times and others have none, or the number of traces is no multiple of the group size.
    """
    if group_size < 1 or len(traces) % group_size:
        raise DataError(f"{len(traces)} rollouts cannot be put into groups of {group_size}")
    traces = [Trace.of(trace) for trace in traces]
    here = [trace for trace in traces if trace is not None]
    # A trace without a step has nothing to time.
    timed = {trace.times is not None for trace in here if trace.returns}
    if len(timed) > 1:
        raise DataError("some traces have times and others have none; one comparison uses one clock")
    steps = max((len(trace.returns) for trace in here), default=0)

    def rows(values: Sequence[Sequence[float]]) -> Float[Tensor, "batch group step"]:
        full = [[*row, *[0.0] * (steps - len(row))] for row in values]
        return torch.tensor(full, dtype=torch.float64).reshape(len(traces) // group_size, group_size, steps)

    def marks(values: Sequence[bool]) -> Tensor:
        return torch.tensor(values, dtype=torch.bool).reshape(-1, group_size)

    return {
        "returns": rows([() if trace is None else trace.returns for trace in traces]),
        "lengths": torch.tensor([0 if trace is None else len(trace.returns) for trace in traces])
        .long()
        .reshape(-1, group_size),
        "times": rows([() if trace is None else trace.times or () for trace in traces])
        if True in timed or not steps
        else None,
        "truncated": marks([t is not None and t.truncated for t in traces]) if any(t.truncated for t in here) else None,
        "valid": marks([trace is not None for trace in traces]),
    }


def curve_of_rewards(rewards: Float[Tensor, " step"], max_score: float = 1.0) -> Float[Tensor, " step"]:
    """Rewards of the steps as the return reached so far: summed, divided by the maximum score, never below 0.

    A sum that exceeds the maximum score by less than a millionth, as sums of float32 do, is the maximum score; one that
    exceeds it by more is left as it is, for :func:`torchpref.rl.preference_rewards` to refuse.
    """
    if not 0 < max_score < float("inf"):
        raise UsageError(
            f"max_score is what the rewards of a perfect run sum to and must be positive, got {max_score!r}"
        )
    curve = rewards.double().flatten().cumsum(0) / max_score
    return torch.where((curve > 1) & (curve < 1 + 1e-6), 1.0, curve.clamp(min=0))
