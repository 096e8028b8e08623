"""Runs of agents as padded return tensors: levels in millionths, times in ticks, names and what is missing.

docs/definitions.md in integers: levels are rounded to millionths once, when data enter, and times to ticks of the
clock's resolution. From then on nothing is rounded again, so differences are exact and sums do not depend on order.

Three things that look alike are kept apart: a run that is missing (``present`` is False), a run without a step
(``lengths`` is 0) and a run that reached nothing (its returns are 0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.runs.fields import best_times, checked_families, sort_names, tidy_padding
from torchpref.runs.findings import Finding
from torchpref.runs.names import matching
from torchpref.runs.units import (
    PREFERRED_CLOCKS,
    UNKNOWN,
    ZERO_IS_UNKNOWN,
    ZeroTime,
    default_resolution,
    ticks_per_unit,
)

if TYPE_CHECKING:
    import polars

    from torchpref.runs.tidy.columns import ColumnsLike
    from torchpref.runs.tidy.where import WhereLike


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Trajectories:
    """Runs of systems on instances, once or over several trials.

    Like tensors they are compared with a method, :meth:`equals`; ``==`` asks whether they are one object.

    Attributes:
        returns: int32 ``[instance, system, trial, step]``, return reached so far in millionths (running maximum).
        lengths: int64 ``[instance, system, trial]``, number of steps.
        present: bool ``[instance, system, trial]``, False where there is no such run.
        times: per clock int64 ``[instance, system, trial, step]`` in ticks, ``UNKNOWN`` where the log does not say.
        truncated: bool ``[instance, system, trial]``, runs stopped by their limit at the time of their last step; or None.
        systems: names, sorted.
        instances: names, sorted by (benchmark, name).
        benchmarks: the benchmark of each instance, ``""`` where there is none.
        resolution: size of a tick per clock, in the clock's unit.
        reference_times: per clock int64 ``[instance]``, SPL's L where it is given.
        best_times: per clock int64 ``[instance]``, the least positive time of success over all runs that were read.
        families: the family of each instance, None for one that is of no family; None where no families are known.
            Instances of one benchmark and one family (tasks of one repository) share their luck: tests, intervals and
            resampling then take families, not instances, as independent.
        findings: what was noticed when the data entered.
        default_clock: the clock that is meant where none is named, if it was chosen when reading.
        zero_time: whether a level at exactly 0 on seconds, tokens and cost is at an unknown time (``"unknown"``) or at 0.
    """

    returns: Int[Tensor, "instance system trial step"]
    lengths: Int[Tensor, "instance system trial"]
    present: Bool[Tensor, "instance system trial"]
    times: dict[str, Int[Tensor, "instance system trial step"]]
    truncated: Bool[Tensor, "instance system trial"] | None
    systems: tuple[str, ...]
    instances: tuple[str, ...]
    benchmarks: tuple[str, ...]
    resolution: dict[str, float]
    reference_times: dict[str, Int[Tensor, " instance"]]
    best_times: dict[str, Int[Tensor, " instance"]]
    findings: tuple[Finding, ...]
    default_clock: str | None
    zero_time: ZeroTime
    families: tuple[str | None, ...] | None

    def __init__(
        self,
        returns: Tensor,
        lengths: Tensor | None = None,
        *,
        times: Mapping[str, Tensor] | None = None,
        present: Tensor | None = None,
        truncated: Tensor | None = None,
        systems: Sequence[str] | None = None,
        instances: Sequence[str] | None = None,
        benchmarks: Sequence[str] | str | None = None,
        reference_time: Tensor | Mapping[str, Tensor] | None = None,
        resolution: Mapping[str, float] | None = None,
        clock: str | None = None,
        zero_time: ZeroTime = "unknown",
        families: Sequence[str | None] | None = None,
    ) -> None:
        """Runs from tensors, checked.

        Args:
            returns: ``[instance, system, trial, step]`` or ``[instance, system, step]``: the return reached at each step,
                in [0, 1]; bool or 0/1 for success. A return that falls later keeps what it had reached.
            lengths: steps of each run, all by default. What stands behind the last step is ignored.
            times: per clock, of the shape of ``returns``: the time of each step in the clock's unit, at least 0 and not
                falling; NaN where it is not known. By default the clock ``steps`` counts 1, 2, 3, …
            present: False where there is no such run.
            truncated: True where a run was stopped by its limit, at the time of its last step.
            systems, instances, benchmarks: names; ``system-1`` …, ``instance-1`` … and none by default.
            reference_time: SPL's reference time per instance, for the only or the chosen clock, or a mapping from clocks.
            resolution: size of a tick per clock, in the clock's unit.
            clock: the clock that is meant where none is named.
            zero_time: ``"unknown"`` or ``"keep"``, see the class.
            families: a label per instance, None for one of no family.

        Raises:
            DataError: shapes that do not fit, a NaN, a return outside [0, 1], a clock that goes backwards.
        """
        from torchpref.runs.tensors import checked_fields

        fields = checked_fields(
            returns,
            lengths,
            times=times,
            present=present,
            truncated=truncated,
            systems=systems,
            instances=instances,
            benchmarks=benchmarks,
            reference_time=reference_time,
            resolution=resolution,
            clock=clock,
        )
        self._set(default_clock=clock, zero_time=zero_time, findings=(), best_times=None, families=families, **fields)

    @classmethod
    def from_integers(
        cls,
        *,
        returns: Int[Tensor, "instance system trial step"],
        lengths: Int[Tensor, "instance system trial"],
        present: Bool[Tensor, "instance system trial"],
        times: Mapping[str, Int[Tensor, "instance system trial step"]],
        systems: Sequence[str],
        instances: Sequence[str],
        benchmarks: Sequence[str],
        truncated: Bool[Tensor, "instance system trial"] | None = None,
        resolution: Mapping[str, float] | None = None,
        reference_times: Mapping[str, Int[Tensor, " instance"]] | None = None,
        best_times: Mapping[str, Int[Tensor, " instance"]] | None = None,
        findings: Sequence[Finding] = (),
        default_clock: str | None = None,
        zero_time: ZeroTime = "unknown",
        families: Sequence[str | None] | None = None,
    ) -> Trajectories:
        """Runs from millionths and ticks, as readers produce them; the values are trusted, names are sorted."""
        runs = object.__new__(cls)
        runs._set(
            returns=returns,
            lengths=lengths,
            present=present,
            times=dict(times),
            truncated=truncated,
            systems=tuple(systems),
            instances=tuple(instances),
            benchmarks=tuple(benchmarks),
            resolution={clock: (resolution or {}).get(clock, default_resolution(clock)) for clock in times},
            reference_times=dict(reference_times or {}),
            best_times=None if best_times is None else dict(best_times),
            findings=tuple(findings),
            default_clock=default_clock,
            zero_time=zero_time,
            families=families,
        )
        return runs

    def _set(self, **fields: Any) -> None:
        if fields["zero_time"] not in ("unknown", "keep"):
            raise UsageError(f"zero_time must be 'unknown' or 'keep', got {fields['zero_time']!r}")
        fields["families"] = checked_families(fields["families"], len(fields["instances"]))
        chosen, clocks = fields["default_clock"], fields["times"]
        if chosen is not None and chosen not in clocks:
            raise UsageError(f"no clock {chosen!r} in these runs; there is {', '.join(clocks) or 'none'}")
        tidy_padding(fields)
        sort_names(fields)
        if fields["best_times"] is None:
            fields["best_times"] = {
                clock: best_times(fields["returns"], fields["present"], ticks)
                for clock, ticks in fields["times"].items()
            }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    # ------------------------------------------------------------------------------------------------------ reading

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        clock: str | None = None,
        columns: ColumnsLike = None,
        where: WhereLike = None,
        strict: bool = False,
        zero_time: ZeroTime = "unknown",
        resolution: Mapping[str, float] | None = None,
        missing: Literal["exclude", "failure"] = "exclude",
        clip: bool = False,
    ) -> Trajectories:
        """Runs from a table in memory: pandas, polars (eager or lazy), Arrow, a dict of columns or a list of rows.

        In pandas NaN means an empty cell; elsewhere a NaN among the values is an error. The other arguments are those of
        :func:`torchpref.read`.

        Raises:
            DataError: a cell that cannot be used; the message names its row, its value and the remedy.
            UsageError: this is no table, or an option is wrong.
        """
        from torchpref.runs.tidy.frames import fields_of_frame

        fields = fields_of_frame(
            frame,
            clock=clock,
            columns=columns,
            where=where,
            strict=strict,
            zero_time=zero_time,
            resolution=resolution,
            missing=missing,
            clip=clip,
        )
        return cls.from_integers(**fields)

    def to_frame(self) -> polars.DataFrame:
        """The runs as a tidy polars table with a row per run and list cells; ``from_frame`` of it gives equal runs.

        Columns: ``benchmark`` where there are any, ``instance``, ``system``, ``trial`` (from 1) where there are several,
        ``return`` and the clocks as lists with an element per step (null at an unknown time; an empty list for a run
        without a step), ``truncated`` where any run is, ``families`` where they are known,
        reference times per clock. A clock with a name of its own is called
        ``clock:NAME``. Rows with ``present`` false stand for systems, instances and trials that have no run.

        Resolutions of clocks that are not the default ones are not in the table: give them to ``from_frame`` again.
        """
        from torchpref.runs.tidy.frames import frame_of_fields

        return frame_of_fields(vars(self))

    # ------------------------------------------------------------------------------------------------------ describing

    @property
    def clocks(self) -> tuple[str, ...]:
        """Names of the clocks that the runs carry."""
        return tuple(self.times)

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.returns.device

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Numbers of instances, systems, trials and steps (padded)."""
        instances, systems, trials, steps = self.returns.shape
        return instances, systems, trials, steps

    def clock(self, name: str | None = None) -> str:
        """The clock that is meant: the named one, else the one chosen when reading, else steps, turns or the only one.

        Raises:
            UsageError: there is no such clock, or several and none of them is preferred.
        """
        name = name or self.default_clock
        if name is not None:
            if name not in self.times:
                raise UsageError(f"no clock {name!r} in these runs; there is {', '.join(self.times) or 'none'}")
            return name
        for candidate in PREFERRED_CLOCKS:
            if candidate in self.times:
                return candidate
        if len(self.times) == 1:
            return next(iter(self.times))
        if not self.times:
            raise UsageError("these runs carry no clock; give times, or use the measures sr and pr, which need none")
        raise UsageError(
            f"these runs carry several clocks ({', '.join(self.times)}); name one, such as clock={self.clocks[0]!r}"
        )

    def reference_ticks(self, clock: str | None = None) -> Int[Tensor, " instance"]:
        """SPL's L per instance in ticks: the reference time, else the least positive time of success; UNKNOWN if neither."""
        clock = self.clock(clock)
        best = self.best_times[clock]
        given = self.reference_times.get(clock)
        return best if given is None else torch.where(given > 0, given, best)

    def __repr__(self) -> str:
        instances, systems, trials, steps = self.shape
        count = int(self.present.sum())
        benchmarks = len(set(self.benchmarks) - {""})
        return (
            f"Trajectories({systems} systems × {instances} instances"
            + (f" in {benchmarks} benchmarks" if benchmarks else "")
            + f", {count} runs of up to {trials} trials and {steps} steps, clocks {', '.join(self.times) or 'none'})"
        )

    def equals(self, other: Trajectories) -> bool:
        """Whether names, levels, times and marks are the same, however far the step axis is padded."""
        if (self.systems, self.instances, self.benchmarks) != (other.systems, other.instances, other.benchmarks):
            return False
        if self.families != other.families:
            return False
        if set(self.times) != set(other.times) or self.resolution != other.resolution:
            return False
        none = torch.zeros_like(self.present)
        tensors = [
            (self.lengths, other.lengths),
            (self.present, other.present),
            (none if self.truncated is None else self.truncated, none if other.truncated is None else other.truncated),
        ]
        tensors += [(self.reference_ticks(clock), other.reference_ticks(clock)) for clock in self.times]
        if not all(torch.equal(mine, theirs) for mine, theirs in tensors):
            return False
        steps = int(self.lengths.max()) if self.lengths.numel() else 0
        padded = [(self.returns, other.returns), *((self.times[clock], other.times[clock]) for clock in self.times)]
        return all(torch.equal(mine[..., :steps], theirs[..., :steps]) for mine, theirs in padded)

    # ------------------------------------------------------------------------------------------------------ choosing

    def select(
        self,
        *,
        systems: str | Sequence[str] | None = None,
        instances: str | Sequence[str] | None = None,
        benchmarks: str | Sequence[str] | None = None,
    ) -> Trajectories:
        """Some of the systems, instances or benchmarks, by name or glob; ``!name`` leaves out.

        SPL's reference times stay those of all runs that were read.
        """
        keep_systems = range(len(self.systems)) if systems is None else matching(self.systems, systems, "system")
        keep = set(range(len(self.instances)))
        if benchmarks is not None:
            keep &= set(matching(self.benchmarks, benchmarks, "benchmark"))
        if instances is not None:
            keep &= set(matching(self.instances, instances, "instance"))
        return self.take(systems=list(keep_systems), instances=sorted(keep))

    def take(self, *, systems: Sequence[int] | None = None, instances: Sequence[int] | None = None) -> Trajectories:
        """Systems and instances by position from 0, in the order given; repeated positions are an error."""
        device = self.device
        row_list = _positions(instances, len(self.instances), "instance")
        col_list = _positions(systems, len(self.systems), "system")
        rows = torch.as_tensor(row_list, dtype=torch.long, device=device)
        cols = torch.as_tensor(col_list, dtype=torch.long, device=device)

        def cut(tensor: Tensor) -> Tensor:
            if instances is not None:
                tensor = tensor.index_select(0, rows)
            return tensor if systems is None else tensor.index_select(1, cols)

        return self._with(
            returns=cut(self.returns),
            lengths=cut(self.lengths),
            present=cut(self.present),
            times={clock: cut(ticks) for clock, ticks in self.times.items()},
            truncated=None if self.truncated is None else cut(self.truncated),
            systems=tuple(self.systems[i] for i in col_list),
            instances=tuple(self.instances[i] for i in row_list),
            benchmarks=tuple(self.benchmarks[i] for i in row_list),
            families=None if self.families is None else tuple(self.families[i] for i in row_list),
            reference_times={clock: ticks.index_select(0, rows) for clock, ticks in self.reference_times.items()},
            best_times={clock: ticks.index_select(0, rows) for clock, ticks in self.best_times.items()},
        )

    def until(self, limit: float, clock: str | None = None) -> Trajectories:
        """What had been reached by ``limit`` (in the clock's unit, inclusive); later steps are cut off.

        A step at an unknown time stays if a later step of its run is known to lie within the limit, else nobody can say
        and it is cut off too. No run becomes missing; one that had not started by then is a run without a step.
        """
        clock = self.clock(clock)
        if not limit >= 0 or not np.isfinite(limit):
            raise UsageError(f"the limit must be a finite number that is at least 0, got {limit!r}")
        last = round(limit * ticks_per_unit(self.resolution[clock]))
        ticks = self.times[clock]
        number = torch.arange(1, ticks.shape[-1] + 1, device=self.device)
        within = (number <= self.lengths.unsqueeze(-1)) & (ticks != UNKNOWN) & (ticks <= last)
        if self.zero_time == "unknown" and clock in ZERO_IS_UNKNOWN:
            within &= ticks > 0
        lengths = (within * number).amax(-1) if len(number) else self.lengths
        truncated = None if self.truncated is None else self.truncated & (lengths == self.lengths)
        return self._with(lengths=lengths, truncated=truncated)

    def split_trials(self) -> Trajectories:
        """Every (system, trial) as a system of its own, named ``system#trial``; trials count from 1."""
        instances, systems, trials, steps = self.shape
        names = [f"{system}#{trial + 1}" for system in self.systems for trial in range(trials)]

        def flat(tensor: Tensor) -> Tensor:
            return tensor.reshape(instances, systems * trials, 1, *tensor.shape[3:])

        return self._with(
            returns=flat(self.returns),
            lengths=flat(self.lengths),
            present=flat(self.present),
            times={clock: flat(ticks) for clock, ticks in self.times.items()},
            truncated=None if self.truncated is None else flat(self.truncated),
            systems=tuple(names),
        )

    def to(self, device: str | torch.device) -> Trajectories:
        """The same runs with all tensors on ``device``; one that is not there is a UsageError."""
        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError, TypeError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise UsageError(f"the device {str(device)!r} cannot be used here ({reason}); use 'cpu'") from error

        def move(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
            return {name: tensor.to(device) for name, tensor in tensors.items()}

        return self._with(
            returns=self.returns.to(device),
            lengths=self.lengths.to(device),
            present=self.present.to(device),
            times=move(self.times),
            truncated=None if self.truncated is None else self.truncated.to(device),
            reference_times=move(self.reference_times),
            best_times=move(self.best_times),
        )

    def with_options(self, *, clock: str | None = None, zero_time: ZeroTime | None = None) -> Trajectories:
        """The same runs with another default clock or another rule for times of exactly 0."""
        changes: dict[str, Any] = {}
        if clock is not None:
            changes["default_clock"] = self.clock(clock)
        if zero_time is not None:
            changes["zero_time"] = zero_time
        return self._with(**changes)

    def _with(self, **changes: Any) -> Trajectories:
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fields.update(changes)
        runs = object.__new__(type(self))
        runs._set(**fields)
        return runs


def _positions(wanted: Any, count: int, what: str) -> list[int]:
    if wanted is None:
        return list(range(count))
    positions = wanted.tolist() if isinstance(wanted, Tensor | np.ndarray) else list(wanted)
    for position in positions:
        if not isinstance(position, int | np.integer) or not 0 <= position < count:
            raise UsageError(
                f"no {what} at position {position!r}; there are {count}, counted from 0; names go to select()"
            )
    return [int(position) for position in positions]


#: Under the names that they had as functions.
from_frame, to_frame = Trajectories.from_frame, Trajectories.to_frame
