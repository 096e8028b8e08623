"""Collecting what is noticed while rows become runs; under ``strict`` a repair is an error instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import DataError
from torchpref.runs.findings import Finding, Severity

EXAMPLES = 3


@dataclass
class Notes:
    """Findings in the order in which they were made.

    Attributes:
        strict: raise instead of repairing.
        locate: says where a row stands.
        systems: names of the systems, for findings given by their positions.
        findings: what was noticed so far.
    """

    strict: bool
    locate: Callable[[int], str]
    systems: Sequence[str] = ()
    findings: list[Finding] = field(default_factory=list)

    def add(
        self,
        kind: str,
        message: str,
        count: int,
        *,
        severity: Severity = "warning",
        systems: NDArray[np.int64] | None = None,
        rows: NDArray[np.int64] | Iterable[int] = (),
        repair: bool = False,
    ) -> None:
        """Note one kind of thing.

        Args:
            kind: its stable word.
            message: one sentence without the count.
            count: how often; 0 is not noted.
            severity: see :class:`torchpref.runs.findings.Finding`.
            systems: positions of the systems concerned, in any order and number.
            rows: some rows where it was seen.
            repair: whether the value was changed, which ``strict`` forbids.
        """
        if not count:
            return
        some = dict.fromkeys(int(row) for row in islice(rows, 100))
        places = tuple(self.locate(row) for row in islice(some, EXAMPLES))
        if repair and self.strict:
            at = f"{places[0]}: " if places else ""
            raise DataError(f"{at}{message} ({count} in all); correct the data, or read them without strict")
        found = () if systems is None else tuple(self.systems[int(i)] for i in np.unique(systems))
        self.findings.append(Finding(kind, severity, count, message, found, places))
