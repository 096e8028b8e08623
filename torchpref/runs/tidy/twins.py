"""A success beside a score or a return: where both say the same of every run, the finer one is used; else it is asked for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from torchpref.errors import DataError
from torchpref.runs.findings import Finding
from torchpref.runs.tidy.cells import Column, numbers, yes_or_no
from torchpref.runs.tidy.schema import ROW, VALUES, Tidy


def finer_of(names: Collection[str]) -> str | None:
    """The column beside ``success`` that may say the same and more; None where it does not stand so."""
    values = {name for name in VALUES if name in names}
    if values == {"success", "return"}:
        return "return"
    return "score" if values == {"success", "score"} and "max_score" in names else None


def without_twin(names: Collection[str]) -> set[str]:
    """The names as they will be if the two columns agree."""
    finer = finer_of(names)
    return set(names) - ({"success"} if finer else set())


def settled_twin(tidy: Tidy) -> Tidy:
    """The table with one of the two columns, where neither was chosen by the user alone.

    Raises:
        DataError: the two disagree about a run; the message says where, and how to choose.
    """
    frame = tidy.frame
    finer = finer_of(frame.columns)
    if finer is None:
        return tidy
    chosen = [name for name in (finer, "success") if name in tidy.mapped]
    if len(chosen) == 1:
        return tidy
    rows = frame[ROW].to_numpy().astype(np.int64) if ROW in frame.columns else np.arange(frame.height)

    def column(name: str) -> Column:
        return Column(name, frame[name], rows, tidy.locate)

    solved, reached = yes_or_no(column("success")), numbers(column(finer), words=finer == "return")
    most = numbers(column("max_score")) if finer == "score" else np.ones(len(reached))
    with np.errstate(invalid="ignore"):
        odd = ~np.isnan(solved) & ~np.isnan(reached) & ((solved == 1) != (reached >= most))
    lost = ~np.isnan(solved) & np.isnan(reached)
    if odd.any() or lost.any():
        hit = odd if odd.any() else lost
        at = int(hit.argmax())
        called = {name: tidy.mapped.get(name, name) for name in ("success", finer)}
        score = f"score={called[finer]}" if finer == "score" else f"return={called[finer]}"
        raise DataError(
            f"{tidy.place}: {called['success']} and {called[finer]} both say what was reached, and they do not agree on "
            f"{int(odd.sum() + lost.sum())} rows, such as {tidy.locate(int(rows[at]))} ({called['success']} "
            f"{frame['success'][at]!r}, {called[finer]} {frame[finer][at]!r}); choose with columns: --columns {score} or "
            f"--columns success={called['success']}"
        )
    message = f"columns success and {finer} say the same of every run: {finer} is used, which tells more; columns"
    note = Finding("outcome_in_two_columns", "note", 2, message, (), ())
    return replace(tidy, frame=frame.drop("success"), findings=(*tidy.findings, note))
