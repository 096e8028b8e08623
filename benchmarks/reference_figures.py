"""The reference figures of the shared data: tie rates of all six measures, each row by one ``torchpref evaluate`` command.

Prints every command, what it gives beside what is expected, and the largest difference. Needs ``../shared/data``.
"""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEASURES = ("sr", "pr", "spl", "lr", "rpp", "ipp")
DATA = (Path(__file__).resolve().parents[1] / "../shared/data").resolve()
OPENHANDS = "openhands_index.csv --columns success=resolved,cost=cost_usd --clock cost --where 'system!=*/*'"


@dataclass(frozen=True)
class Figures:
    """One row of the table: options that follow ``torchpref evaluate``, and tie rates in per cent, SR to IPP."""

    name: str
    command: str
    systems: int
    instances: int
    expected: tuple[float, float, float, float, float, float]
    benchmark_mean: bool = False
    tolerance: float = 0.01


ROWS = (
    Figures(
        "OpenHands Index, swe-bench, cost",
        f"{OPENHANDS} --where benchmark=swe-bench",
        34,
        500,
        (82.55, 82.55, 19.16, 19.84, 19.84, 19.84),
    ),
    Figures(
        "the same, zero time kept",
        f"{OPENHANDS} --where benchmark=swe-bench --zero-time keep",
        34,
        500,
        (82.55, 82.55, 19.00, 18.97, 18.97, 18.97),
    ),
    Figures(
        "OpenHands Index, gaia, cost",
        f"{OPENHANDS} --where benchmark=gaia",
        34,
        165,
        (62.85, 62.85, 24.10, 24.95, 24.95, 24.95),
    ),
    Figures(
        "the same, zero time kept",
        f"{OPENHANDS} --where benchmark=gaia --zero-time keep",
        34,
        165,
        (62.85, 62.85, 23.88, 24.45, 24.45, 24.45),
    ),
    Figures(
        "OpenHands Index, mean of its five benchmarks, cost",
        OPENHANDS,
        34,
        1217,
        (73.9, 73.9, 36.7, 37.1, 37.1, 37.1),
        benchmark_mean=True,
        tolerance=0.05,  # given with one decimal
    ),
    Figures(
        "TheAgentCompany, steps",
        "theagentcompany.csv --columns score=result,max_score=total --clock steps",
        6,
        175,
        (80.61, 49.87, 73.58, 28.45, 32.81, 32.81),
    ),
    Figures(
        "InterCode bash, turns",
        "intercode.csv --columns instance=split+task_id,return=rewards --where env=bash",
        10,
        200,
        (72.39, 41.80, 64.84, 25.70, 26.16, 26.18),
    ),
)


def arguments(row: Figures) -> list[str]:
    """The command line of a row, without the program's name."""
    table, *options = shlex.split(row.command)
    return ["evaluate", str(DATA / table), *options]


def evaluate(row: Figures) -> dict[str, Any]:
    """The JSON that the command of a row writes."""
    from torchpref.cli.app import main

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            main([*arguments(row), "--json", "-"])
        except SystemExit as ended:
            if ended.code:
                raise RuntimeError(f"torchpref {row.command} ended with {ended.code}") from ended
    result: dict[str, Any] = json.loads(printed.getvalue())
    return result


def tie_rates(row: Figures, result: dict[str, Any]) -> list[float]:
    """Tie rates in per cent, over all instances or as the mean of the benchmarks."""
    rates = []
    for name in MEASURES:
        measure = result["measures"][name]
        parts = [part["tie_rate"] for part in measure["benchmarks"].values()]
        rates.append(100 * (sum(parts) / len(parts) if row.benchmark_mean else measure["tie_rate"]))
    return rates


def main() -> int:
    if not DATA.is_dir():
        print(f"skipped: there is no folder {DATA}")
        return 0
    wrong = 0
    for row in ROWS:
        result = evaluate(row)
        found = tie_rates(row, result)
        size = (len(result["systems"]), result["n_instances"])
        print(f"{row.name}: {size[0]} systems, {size[1]} instances")
        print(f"  torchpref evaluate {row.command}")
        print("  " + "  ".join(f"{name.upper():>6}" for name in MEASURES))
        print("  " + "  ".join(f"{rate:6.2f}" for rate in found) + "  found")
        print("  " + "  ".join(f"{rate:6.2f}" for rate in row.expected) + "  expected")
        off = max(abs(a - b) for a, b in zip(found, row.expected, strict=True))
        good = off <= row.tolerance and size == (row.systems, row.instances)
        wrong += not good
        print(f"  largest difference {off:.4f} points, at most {row.tolerance}: {'yes' if good else 'NO'}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
