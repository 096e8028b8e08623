"""Saying how far a long computation has come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Called with what is being done, how many steps are done, and how many there are.
Report = Callable[[str, int, int], None]


class Steps:
    """Counts steps and reports them."""

    def __init__(self, total: int, report: Report | None) -> None:
        self._total, self._report, self._done = total, report, 0

    def start(self, what: str) -> None:
        """Say what comes next."""
        if self._report:
            self._report(what, self._done, self._total)

    def done(self, count: int = 1) -> None:
        """Count steps as done."""
        self._done += count


@contextmanager
def reporting(progress: bool | Report | None) -> Iterator[Report | None]:
    """The report to use: none, the caller's own, or a bar on standard error that is gone when all is done.

    None is a bar on a terminal, and none elsewhere.
    """
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
