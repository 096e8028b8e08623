"""The reference figures of the shared data, each by one command with options only."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _benchmark() -> ModuleType:
    path = Path(__file__).parents[1] / "benchmarks/reference_figures.py"
    spec = importlib.util.spec_from_file_location("reference_figures", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference_figures"] = module
    spec.loader.exec_module(module)
    return module


reference = _benchmark()
pytestmark = pytest.mark.skipif(
    not reference.DATA.is_dir(), reason=f"the reference data are not there: {reference.DATA}"
)


@cache
def result(position: int) -> dict[str, Any]:
    found: dict[str, Any] = reference.evaluate(reference.ROWS[position])
    return found


def finding(record: dict[str, Any], kind: str) -> dict[str, Any]:
    (found,) = [each for each in record["audit"]["findings"] if each["kind"] == kind]
    return dict(found)


@pytest.mark.parametrize("position", range(len(reference.ROWS)), ids=[row.name for row in reference.ROWS])
def test_tie_rates_are_the_reference_figures(position: int) -> None:
    row = reference.ROWS[position]
    record = result(position)
    assert (len(record["systems"]), record["n_instances"]) == (row.systems, row.instances)
    assert reference.tie_rates(row, record) == pytest.approx(row.expected, abs=row.tolerance)


def test_by_cost_the_order_is_another_one_and_the_contradicting_pairs_are_counted() -> None:
    from scipy.stats import kendalltau

    record = result(0)
    means = {name: record["measures"][name]["mean_preference"] for name in ("sr", "lr")}
    order = {name: [sum(row) for row in rows] for name, rows in means.items()}
    assert kendalltau(order["sr"], order["lr"]).statistic == pytest.approx(0.09, abs=0.005)
    contradictions = finding(record, "contradicting_pairs")
    opposite = 0
    for i in range(34):
        opposite += sum(means["sr"][i][j] * means["lr"][i][j] < 0 for j in range(i))
    assert contradictions["count"] == opposite == 253
    assert contradictions["examples"][0].startswith(
        "Trinity-Large-Thinking over claude-fable-5: +0.070 = solved more -0.390"
    )


def test_unknown_outcomes_and_times_stand_in_the_audit_with_their_systems() -> None:
    record = result(0)
    unknown = finding(record, "unknown_outcomes")
    assert unknown["count"] == 9
    assert unknown["systems"] == ["DeepSeek-V3.2-Reasoner", "Kimi-K2-Thinking", "Kimi-K2.5", "Nemotron-3-Nano"]
    zero = [each for each in record["audit"]["findings"] if "reached at exactly 0" in each["message"]]
    assert any(each["systems"] for each in zero)
