"""Stopping an evaluation of inspect_ai early (extra ``inspect-ai``): its protocol ``EarlyStopping`` over looks.

Samples are looked at in the order of the task's dataset, which must be random: shuffle it with a fixed seed. Samples run
side by side, so some that were begun still end after the decision; they are in the log, and the decision keeps to the planned
order. Only scores are known while a task runs, so looks are by what was reached (SR, or PR for graded scores), not by time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from torchpref.errors import DataError, MissingExtraError, UsageError
from torchpref.evaluation.looking import PlannedGate, planned_gate
from torchpref.evaluation.monitor import Monitor, monitor

if TYPE_CHECKING:
    from torchpref.runs.trajectories import Trajectories

_BASE, _NEW = "base", "new"


class _Scores:
    """Scores of one task's samples while it runs.

    Attributes:
        samples: ids in the order of the dataset.
        values: per id the scores of its epochs so far.
    """

    def __init__(self, scorer: str | None) -> None:
        self._scorer = scorer
        self.samples: list[str] = []
        self.epochs = 1
        self.values: dict[str, list[float]] = {}

    def begin(self, samples: Sequence[Any], epochs: int) -> None:
        """Take the samples of a task that starts."""
        self.samples = [str(sample.id) for sample in samples]
        self.epochs = epochs
        self.values = {}

    def add(self, sample: str, scores: Mapping[str, Any]) -> None:
        """Take the scores of one epoch of a sample."""
        name = self._scorer or next(iter(scores), None)
        if name is None or name not in scores:
            raise UsageError(f"sample {sample!r} has no score {name!r}; there is {', '.join(scores) or 'none'}")
        self.values.setdefault(sample, []).append(_number(scores[name].score.value, sample))

    def complete(self) -> dict[str, list[float]]:
        """Samples of which every epoch has a score."""
        return {sample: values for sample, values in self.values.items() if len(values) >= self.epochs}


class GateStop:
    """An ``EarlyStopping`` that ends a task once its system is worse than, or as fine as, one whose log is stored.

    Args:
        base: a log of the system in use (read with inspect_ai), or a score per sample id.
        planned: N; all samples of the task if None.
        scorer: whose score counts; the first if None.
        options: of :func:`torchpref.gate` with ``planned``: ``measure`` (``"sr"`` by default), ``margin``, ``alpha``, ….

    Attributes:
        result: the last look, or None before the first.
    """

    def __init__(
        self,
        base: str | os.PathLike[str] | Mapping[Any, float],
        planned: int | None = None,
        scorer: str | None = None,
        **options: Any,
    ) -> None:
        self._base = (
            {str(name): [float(value)] for name, value in base.items()}
            if isinstance(base, Mapping)
            else _stored_scores(base, scorer)
        )
        self._planned = planned
        self._options = {"measure": "sr", **options}
        self._scores = _Scores(scorer)
        self.result: PlannedGate | None = None

    async def start_task(self, task: Any, samples: Sequence[Any], epochs: int) -> str:
        """Called by inspect_ai before the first sample."""
        self._scores.begin(samples, epochs)
        unknown = [sample for sample in self._scores.samples if sample not in self._base]
        if unknown:
            raise DataError(f"the base has no score of {len(unknown)} samples, the first of them {unknown[0]!r}")
        self.result = None
        return "torchpref"

    async def schedule_sample(self, id: str | int, epoch: int) -> Any:
        """Called by inspect_ai before a sample; an ``EarlyStop`` once the verdict is reached."""
        if self.result is None or self.result.verdict == "go on":
            return None
        return _early_stop(id, epoch, self.result.line)

    async def complete_sample(self, id: str | int, epoch: int, scores: Mapping[str, Any]) -> None:
        """Called by inspect_ai after a sample: one more look."""
        self._scores.add(str(id), scores)
        samples = self._scores.samples
        runs = _runs(samples, {_BASE: self._base, _NEW: self._scores.complete()})
        planned = len(samples) if self._planned is None else self._planned
        self.result = planned_gate(runs, _BASE, _NEW, planned=planned, order=samples, **self._options)

    async def complete_task(self) -> dict[str, Any]:
        """Called by inspect_ai at the end: what goes into the log."""
        if self.result is None:
            return {}
        kept = self.result.to_dict()
        return {
            key: kept[key]
            for key in ("verdict", "line", "seen", "planned", "stopped", "mean", "spent", "alpha", "measure")
        }


class BoardStop:
    """Early stopping for one task run by several models: each ends once it is in or out of the first places.

    Give every task a manager of its own, ``Task(..., early_stopping=board.manager())``, and the same order of samples.

    Args:
        systems: how many models there will be; nobody is in or out before all have begun.
        goal, planned, scorer, options: as in :func:`torchpref.monitor`; ``measure`` is ``"sr"`` by default.

    Attributes:
        result: the last look, or None before the first.
    """

    def __init__(
        self, systems: int, goal: str = "top1", planned: int | None = None, scorer: str | None = None, **options: Any
    ) -> None:
        self._count = systems
        self._goal = goal
        self._planned = planned
        self._scorer = scorer
        self._options = {"measure": "sr", **options}
        self._tasks: dict[str, _Scores] = {}
        self.result: Monitor | None = None

    def manager(self) -> _OneOfBoard:
        """An ``EarlyStopping`` for the task of one model."""
        return _OneOfBoard(self)

    def begin(self, model: str, samples: Sequence[Any], epochs: int) -> None:
        """Take a model whose task starts."""
        scores = _Scores(self._scorer)
        scores.begin(samples, epochs)
        others = [one.samples for one in self._tasks.values()]
        if others and others[0] != scores.samples:
            raise UsageError(
                f"the samples of {model} are not those of the other models in their order; shuffle all alike"
            )
        self._tasks[model] = scores

    def add(self, model: str, sample: str, scores: Mapping[str, Any]) -> None:
        """Take a score, and look."""
        self._tasks[model].add(sample, scores)
        if len(self._tasks) < self._count:
            return
        samples = self._tasks[model].samples
        runs = _runs(samples, {name: one.complete() for name, one in self._tasks.items()})
        planned = len(samples) if self._planned is None else self._planned
        self.result = monitor(runs, planned=planned, goal=self._goal, order=samples, **self._options)

    def settled(self, model: str) -> bool:
        """Whether a model needs no more runs."""
        return self.result is not None and model not in self.result.open


class _OneOfBoard:
    def __init__(self, board: BoardStop) -> None:
        self._board = board
        self._model = ""

    async def start_task(self, task: Any, samples: Sequence[Any], epochs: int) -> str:
        self._model = str(task.model)
        self._board.begin(self._model, samples, epochs)
        return "torchpref"

    async def schedule_sample(self, id: str | int, epoch: int) -> Any:
        if not self._board.settled(self._model):
            return None
        assert self._board.result is not None
        return _early_stop(id, epoch, self._board.result.status)

    async def complete_sample(self, id: str | int, epoch: int, scores: Mapping[str, Any]) -> None:
        self._board.add(self._model, str(id), scores)

    async def complete_task(self) -> dict[str, Any]:
        result = self._board.result
        return {} if result is None else {"status": result.status, "settled": self._board.settled(self._model)}


def _early_stop(id: str | int, epoch: int, reason: str) -> Any:
    return _inspect("inspect_ai.util").EarlyStop(id=id, epoch=epoch, reason=reason)


def _number(value: Any, sample: str) -> float:
    """A score in [0, 1]."""
    try:
        number = float(_inspect("inspect_ai.scorer").value_to_float()(value))
    except (TypeError, ValueError) as error:
        raise DataError(f"sample {sample!r} has the score {value!r}, which is no number") from error
    if not 0 <= number <= 1:
        raise DataError(f"sample {sample!r} has the score {number!r}; wanted one in [0, 1]")
    return number


def _stored_scores(path: str | os.PathLike[str], scorer: str | None) -> dict[str, list[float]]:
    log = _inspect("inspect_ai.log").read_eval_log(os.fspath(path))
    found: dict[str, list[float]] = {}
    for sample in log.samples or ():
        scores = sample.scores or {}
        name = scorer or next(iter(scores), None)
        if name in scores:
            found.setdefault(str(sample.id), []).append(_number(scores[name].value, str(sample.id)))
    if not found:
        raise DataError(f"{os.fspath(path)}: no sample has a score" + (f" {scorer!r}" if scorer else ""))
    return found


def _inspect(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError("inspect_ai", "inspect-ai") from error


def _runs(samples: Sequence[str], scores: Mapping[str, Mapping[str, Sequence[float]]]) -> Trajectories:
    """Runs of one step: what was reached."""
    from torchpref.runs.trajectories import Trajectories

    names = sorted(scores)
    trials = max((len(values) for one in scores.values() for values in one.values()), default=1)
    returns = torch.zeros((len(samples), len(names), trials, 1), dtype=torch.float64)
    present = torch.zeros((len(samples), len(names), trials), dtype=torch.bool)
    for row, sample in enumerate(samples):
        for column, name in enumerate(names):
            for trial, value in enumerate(scores[name].get(sample, ())):
                returns[row, column, trial, 0], present[row, column, trial] = value, True
    return Trajectories(returns, present=present, systems=names, instances=list(samples))
