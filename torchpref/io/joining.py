"""Tidy rows of several readings put together, and the rows of one reading under the name of one system."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import replace

from torchpref.errors import DataError
from torchpref.runs.findings import Finding
from torchpref.runs.tidy.schema import ROW, VALUES, Tidy


def under_name(tidy: Tidy, name: str) -> Tidy:
    """The rows as runs of one system; where they were of several, the runs of each are further trials, which is noted."""
    import polars as pl

    from torchpref.runs.tidy.cells import names_expr

    frame = tidy.frame
    called = frame.select(names_expr("system", frame.schema["system"])).to_series()
    systems = called.drop_nulls().unique().sort().to_list()
    findings = tidy.findings
    if len(systems) > 1:
        old = (
            frame.select(names_expr("trial", frame.schema["trial"])).to_series().fill_null("")
            if "trial" in frame.columns
            else pl.Series([""] * frame.height, dtype=pl.String)
        )
        if "trial" in frame.columns or "step" in frame.columns:
            frame = frame.with_columns((called + "/" + old).alias("trial"))
        message = f"systems of these logs were named {name!r} and taken as trials of one; systems"
        findings = (
            *findings,
            Finding("systems_named_as_one", "warning", len(systems), message, (name,), tuple(systems[:5])),
        )
    frame = frame.with_columns(pl.lit(name, dtype=pl.String).alias("system"))
    return replace(tidy, frame=frame, findings=findings)


def joined(parts: Sequence[Tidy]) -> Tidy:
    """All rows in one table.

    Raises:
        DataError: they say in different columns what was reached.
    """
    import polars as pl

    from torchpref.io.tables.tables import concatenated

    kinds = [[name for name in VALUES if name in part.frame.columns] for part in parts]
    for kind, part in zip(kinds, parts, strict=True):
        if kind != kinds[0]:
            raise DataError(
                f"{parts[0].place} says what was reached in {', '.join(kinds[0])}, but {part.place} in {', '.join(kind)}; "
                "map both to one of return, success or score with columns"
            )
    starts: list[int] = []
    frames: list[pl.DataFrame] = []
    numbers: list[list[int]] = []
    total = 0
    for part in parts:
        rows = part.frame[ROW].to_list() if ROW in part.frame.columns else list(range(part.frame.height))
        starts.append(total)
        numbers.append(rows)
        frames.append(part.frame.drop(ROW, strict=False))
        total += part.frame.height

    def locate(row: int) -> str:
        number = bisect.bisect_right(starts, row) - 1
        while number and starts[number] == starts[number - 1] and row - starts[number] >= len(numbers[number]):
            number -= 1
        return parts[number].locate(numbers[number][row - starts[number]])

    findings: dict[tuple[str, str, str], Finding] = {}
    for finding in (finding for part in parts for finding in part.findings):
        key = (finding.kind, finding.severity, finding.message)
        known = findings.get(key)
        findings[key] = finding if known is None else _added(known, finding)
    return Tidy(
        concatenated(frames).with_row_index(ROW),
        tuple(findings.values()),
        locate,
        {name: column for part in parts for name, column in part.mapped.items()},
        f"{parts[0].place} and {len(parts) - 1} more",
        tuple(dict.fromkeys(name for part in parts for name in part.columns)),
    )


def _added(one: Finding, other: Finding) -> Finding:
    systems = tuple(sorted({*one.systems, *other.systems}))
    return replace(one, count=one.count + other.count, systems=systems, examples=(*one.examples, *other.examples)[:5])
