"""An audit as tables in the terminal: what is in the data, and what is suspicious."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from torchpref.report.numbers import amount, counted, percent, printable
from torchpref.report.pieces import add, bullets, heading, table
from torchpref.report.tables import findings_parts

if TYPE_CHECKING:
    from torchpref.runs.audit import Audit

#: How many systems a finding names here; all of them stand in the JSON.
_NAMED = 50


def audit_tables(audit: Audit) -> list[RenderableType]:
    """The tables of :func:`torchpref.audit`."""
    benchmarks = {name: size for name, size in audit.benchmarks.items() if name}
    parts: list[RenderableType] = [
        Text(
            f"{counted(len(audit.systems), 'system')}, {counted(audit.n_instances, 'instance')}, {counted(audit.runs, 'run')} "
            "of known outcome"
        ),
        bullets(_facts(audit)),
    ]
    if benchmarks:
        by = table(("benchmark", "<"), "instances")
        for name, size in benchmarks.items():
            add(by, name, f"{size:,}")
        parts += [Text(""), by]
    if audit.clocks:
        clocks = table(("clock", "<"), "known", "runs end at", "median", "at most", "tick")
        for name, clock in audit.clocks.items():
            ends = (amount(value) for value in (clock.least, clock.median, clock.most))
            meant = f"{name} (meant)" if name == audit.clock and len(audit.clocks) > 1 else name
            add(clocks, meant, percent(clock.known), *ends, f"{clock.resolution:g}")
        parts += [Text(""), clocks]
    systems = table(("system", "<"), "instances", "runs", "success\nrate", "partial\nreturn")
    for name, system in audit.systems.items():
        reached = None if system.partial_return is None else f"{system.partial_return:.3f}"
        add(systems, name, f"{system.instances:,}", f"{system.runs:,}", percent(system.success_rate), reached)
    parts += [Text(""), systems]
    warnings = [finding for finding in audit.findings if finding.severity != "note"]
    notes = [finding for finding in audit.findings if finding.severity == "note"]
    parts += findings_parts(warnings, limit=_NAMED) + findings_parts(notes, "Notes", limit=_NAMED)
    if not audit.findings:
        parts.append(heading("Nothing suspicious"))
    return parts


def _facts(audit: Audit) -> list[tuple[str, str]]:
    least, most = audit.trials
    trials = f"{least}" if least == most else f"{least} to {most}"
    steps = f"{_range(audit.horizons)} {'step' if audit.horizons[0] == audit.horizons[2] == 1 else 'steps'} per run, "
    steps += f"{counted(audit.without_a_step, 'run')} without a step"
    stopped = f", {audit.truncated:,} stopped by their limit" if audit.truncated else ""
    return [
        (
            "-",
            f"{percent(audit.coverage)} of all (instance, system) cells have a run; "
            f"all systems share {counted(audit.shared_instances, 'instance')}",
        ),
        ("-", f"{trials} {'trial' if trials == '1' else 'trials'} per (instance, system)"),
        ("-", steps + stopped),
        (
            "-",
            f"{audit.levels:,} distinct levels of return above 0, {_range(audit.levels_per_instance)} per instance",
        ),
        ("-", f"clock: {printable(audit.clock)}" if audit.clock else f"clock: {_no_clock(audit)}"),
    ]


def _no_clock(audit: Audit) -> str:
    return "has to be named" if audit.clocks else "none; only success rate and partial return can be compared"


def _range(spread: tuple[int, float, int]) -> str:
    least, median, most = spread
    return f"{least:,}" if least == most else f"{least:,} to {most:,} (median {median:g})"
