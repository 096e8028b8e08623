"""SWE-bench leaderboards: instances count, reported rates are compared."""

import json
from pathlib import Path

from reader_logs import Read, log, put


def test_values_by_hand(tmp_path: Path) -> None:
    read = Read(log("swebench", tmp_path))
    assert read.name == "swebench"
    assert read.cells("Alpha", "i-1", "success", "turns", "cost", benchmark="bash-only") == (1.0, 10.0, 0.5)
    assert len(read.rows) == 4


def test_reported_and_counted_rates_can_disagree(tmp_path: Path) -> None:
    finding = Read(log("swebench", tmp_path)).findings["rates_disagree"]
    assert (finding.count, finding.systems, finding.severity) == (1, ("Beta",), "warning")
    assert finding.examples == ("bash-only: Beta: reported 74.4 %, 50.00 % of 2 instances",)


def test_results_without_instances_are_left_out_and_counted(tmp_path: Path) -> None:
    read = Read(log("swebench", tmp_path))
    assert "Gamma" not in read.systems
    assert read.findings["systems_without_instances"].systems == ("Gamma",)


def test_two_results_of_one_name_are_two_systems(tmp_path: Path) -> None:
    path = log("swebench", tmp_path) / "leaderboards.json"
    page = json.loads(path.read_text())
    results = page["leaderboards"][0]["results"]
    results.append(results[0] | {"folder": "second"})
    put(path, page)
    assert {"Alpha (2026_Alpha)", "Alpha (second)"} <= Read(path).systems


def test_null_outcome_is_counted(tmp_path: Path) -> None:
    path = log("swebench", tmp_path) / "leaderboards.json"
    put(path, path.read_text().replace('"resolved": true', '"resolved": null', 1))
    assert Read(path).findings["outcomes_not_given"].count == 1
