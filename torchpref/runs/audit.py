"""What is in the data, and what is suspicious about them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from torchpref.runs.checks import CHECKS, unusable_clock
from torchpref.runs.findings import Finding
from torchpref.runs.seen import Seen
from torchpref.runs.trajectories import Trajectories
from torchpref.runs.units import MILLION, UNKNOWN

if TYPE_CHECKING:
    import polars

__all__ = ["Audit", "ClockSummary", "SystemSummary", "audit", "unusable_clock"]


@dataclass(frozen=True)
class ClockSummary:
    """One clock: range of its known times in the clock's unit, and the share of steps at a known time.

    Attributes:
        resolution: size of a tick.
        known: share of all steps whose time is known; None where there is no step.
        least, median, most: of the known times at which runs end; None where there is none.
    """

    resolution: float
    known: float | None
    least: float | None
    median: float | None
    most: float | None


@dataclass(frozen=True)
class SystemSummary:
    """One system: its instances, runs, and what they reached (means over runs; None without a run).

    Attributes:
        instances: instances with a run of known outcome.
        runs: runs of known outcome.
        success_rate: share of runs that reached 1.
        partial_return: mean of what runs reached.
    """

    instances: int
    runs: int
    success_rate: float | None
    partial_return: float | None


@dataclass(frozen=True, repr=False)
class Audit:
    """What is in some runs, and what is suspicious about them.

    Attributes:
        systems: a summary per system.
        n_instances: number of instances.
        benchmarks: number of instances per benchmark (``""`` where there is none).
        runs: number of runs of known outcome; ``without_a_step`` and ``truncated`` of them.
        without_a_step: runs that have no step.
        truncated: runs stopped by their limit.
        trials: least and highest number of trials per (instance, system) that has any.
        coverage: share of (instance, system) cells with a run.
        shared_instances: instances that all systems with a run have in common.
        clock: the clock that is meant where none is named, or None where it has to be named.
        clocks: a summary per clock.
        levels: number of distinct levels above 0; and per instance the least, median and highest number.
        levels_per_instance: least, median and highest number of distinct levels above 0 of an instance.
        horizons: least, median and highest number of steps of a run.
        findings: everything that was noticed, worst first.
    """

    systems: dict[str, SystemSummary]
    n_instances: int
    benchmarks: dict[str, int]
    runs: int
    without_a_step: int
    truncated: int
    trials: tuple[int, int]
    coverage: float
    shared_instances: int
    clock: str | None
    clocks: dict[str, ClockSummary]
    levels: int
    levels_per_instance: tuple[int, float, int]
    horizons: tuple[int, float, int]
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that may change results; the rest are notes."""
        return tuple(finding for finding in self.findings if finding.severity != "note")

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and values, ready for JSON."""
        record = asdict(self)
        record["findings"] = [finding.to_dict() for finding in self.findings]
        record["systems"] = {name: asdict(summary) for name, summary in self.systems.items()}
        for name in ("trials", "levels_per_instance", "horizons"):
            record[name] = list(record[name])
        return record

    def to_frame(self) -> polars.DataFrame:
        """A row per finding, worst first."""
        import polars as pl

        names = ("kind", "severity", "count", "message", "systems", "examples")
        lists: dict[str, Any] = {"count": pl.Int64, "systems": pl.List(pl.String), "examples": pl.List(pl.String)}
        records = [finding.to_dict() for finding in self.findings]
        return pl.DataFrame(
            {name: [record[name] for record in records] for name in names},
            schema={name: lists.get(name, pl.String) for name in names},
        )

    def __repr__(self) -> str:
        return "\n".join([*_described(self), *_suspicious(self)])


def audit(runs: Trajectories) -> Audit:
    """What is in some runs, and what is suspicious: what was noticed when reading, and what shows in the tensors."""
    seen = Seen(runs)
    lengths = runs.lengths.cpu().numpy()
    trials = seen.present.sum(-1)
    there = trials > 0
    taking_part = there.any(0)
    counts = _levels_per_instance(seen)
    found = [*runs.findings, *(finding for check in CHECKS for finding in check(seen))]
    rank = {"error": 0, "warning": 1, "note": 2}
    own = lengths[seen.present]
    names, sizes = np.unique(np.asarray(runs.benchmarks, dtype=object).astype(str), return_counts=True)
    return Audit(
        systems={name: _system(seen, position) for position, name in enumerate(runs.systems)},
        n_instances=len(runs.instances),
        benchmarks={str(name): int(size) for name, size in zip(names, sizes, strict=True)},
        runs=int(seen.present.sum()),
        without_a_step=int((own == 0).sum()),
        truncated=0 if runs.truncated is None else int(runs.truncated.sum()),
        trials=(int(trials[there].min()), int(trials[there].max())) if there.any() else (0, 0),
        coverage=float(there.mean()) if there.size else 0.0,
        shared_instances=int(there[:, taking_part].all(1).sum()) if taking_part.any() else 0,
        clock=seen.clock,
        clocks={name: _clock(seen, name) for name in runs.clocks},
        levels=len(np.unique(seen.returns[seen.rises])),
        levels_per_instance=_spread(counts),
        horizons=_spread(own),
        findings=tuple(sorted(found, key=lambda finding: rank[finding.severity])),
    )


def _levels_per_instance(seen: Seen) -> np.ndarray[Any, Any]:
    instance, system, trial, step = np.nonzero(seen.rises)
    level = seen.returns[instance, system, trial, step].astype(np.int64)
    pairs = np.unique(instance * (2 * MILLION) + level)
    return np.bincount(pairs // (2 * MILLION), minlength=len(seen.runs.instances))


def _spread(values: np.ndarray[Any, Any]) -> tuple[int, float, int]:
    if not len(values):
        return 0, 0.0, 0
    return int(values.min()), float(np.median(values)), int(values.max())


def _system(seen: Seen, position: int) -> SystemSummary:
    present = seen.present[:, position]
    final = seen.final[:, position][present]
    return SystemSummary(
        instances=int(present.any(-1).sum()),
        runs=int(present.sum()),
        success_rate=float((final >= MILLION).mean()) if len(final) else None,
        partial_return=float(final.mean()) / MILLION if len(final) else None,
    )


def _clock(seen: Seen, clock: str) -> ClockSummary:
    resolution = seen.runs.resolution[clock]
    ticks = seen.ticks(clock)
    lengths = seen.runs.lengths.cpu().numpy()
    inside = np.arange(ticks.shape[-1]) < lengths[..., None]
    steps = int(inside.sum())
    ends = ticks[..., -1][lengths > 0] if ticks.shape[-1] else np.zeros(0, dtype=np.int64)
    ends = ends[ends != UNKNOWN] * resolution
    return ClockSummary(
        resolution=resolution,
        known=int((inside & (ticks != UNKNOWN)).sum()) / steps if steps else None,
        least=float(ends.min()) if len(ends) else None,
        median=float(np.median(ends)) if len(ends) else None,
        most=float(ends.max()) if len(ends) else None,
    )


def _described(audit: Audit) -> list[str]:
    benchmarks = {name: size for name, size in audit.benchmarks.items() if name}
    least, most = audit.trials
    trials = f"{least}" if least == most else f"{least} to {most}"
    lines = [
        f"{len(audit.systems)} systems × {audit.n_instances} instances"
        + (f" in {len(benchmarks)} benchmarks" if benchmarks else "")
        + f", {audit.runs} runs of known outcome",
        f"  coverage    {audit.coverage:.1%} of all (instance, system) cells; {audit.shared_instances} instances in every one",
        f"  trials      {trials} per (instance, system)",
        f"  steps       {_range(audit.horizons)} per run; {audit.without_a_step} runs without a step"
        + (f"; {audit.truncated} stopped by their limit" if audit.truncated else ""),
        f"  levels      {audit.levels} distinct above 0; {_range(audit.levels_per_instance)} per instance",
    ]
    for name, size in benchmarks.items():
        lines.append(f"  benchmark   {name}: {size} instances")
    for name, clock in audit.clocks.items():
        known = "no step" if clock.known is None else f"known for {clock.known:.1%} of the steps"
        ends = (
            "" if clock.least is None else f"; runs end at {clock.least:g} to {clock.most:g} (median {clock.median:g})"
        )
        meant = " (the one that is meant)" if name == audit.clock and len(audit.clocks) > 1 else ""
        lines.append(f"  clock       {name}{meant}: {known}{ends}")
    width = min(max((len(name) for name in audit.systems), default=6), 48)
    lines.append(f"  {'system':<{width}}  instances  runs  success  return")
    for name, system in audit.systems.items():
        rates = (
            f"{100 * rate:.1f}%" if rate is not None else "-" for rate in (system.success_rate, system.partial_return)
        )
        shown = name if len(name) <= width else name[: width - 1] + "…"
        lines.append("  {:<{}}  {:>9}  {:>4}  {:>7}  {:>6}".format(shown, width, system.instances, system.runs, *rates))
    return lines


def _range(spread: tuple[int, float, int]) -> str:
    least, median, most = spread
    return f"{least}" if least == most else f"{least} to {most} (median {median:g})"


def _suspicious(audit: Audit) -> list[str]:
    if not audit.findings:
        return ["nothing suspicious"]
    lines = ["suspicious:"]
    for finding in audit.findings:
        lines.append(f"  {finding.severity:<7}  {finding}")
        if finding.systems:
            shown = ", ".join(finding.systems[:6])
            more = f", … {len(finding.systems)} systems" if len(finding.systems) > 6 else ""
            lines.append(f"           systems: {shown}{more}")
        if finding.examples:
            lines.append(f"           such as: {'; '.join(finding.examples)}")
    return lines
