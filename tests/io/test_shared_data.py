"""Real tables from public repositories, read as they are with options only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import torchpref as tp
from torchpref.io import read
from torchpref.runs.audit import audit, unusable_clock

DATA = Path(__file__).parents[2] / "../shared/data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the real data in ../shared/data are not here")

OPENHANDS: dict[str, Any] = {"columns": "success=resolved,cost=cost_usd", "clock": "cost"}
AGENTS = ["system!=*/*"]


def counts(runs: tp.Trajectories) -> tuple[int, int, int]:
    return len(runs.systems), len(runs.instances), int(runs.present.sum())


def rates(runs: tp.Trajectories) -> list[float]:
    return [round(100 * prefs.tie_rate(), 2) for prefs in tp.all_preferences(runs).values()]


def kinds(runs: tp.Trajectories) -> dict[str, tuple[int, tuple[str, ...]]]:
    return {finding.kind: (finding.count, finding.systems) for finding in audit(runs).findings}


@pytest.mark.parametrize(
    ("benchmark", "zero_time", "expected"),
    [
        ("swe-bench", "unknown", [82.55, 82.55, 19.16, 19.84, 19.84, 19.84]),
        ("swe-bench", "keep", [82.55, 82.55, 19.00, 18.97, 18.97, 18.97]),
        ("gaia", "unknown", [62.85, 62.85, 24.10, 24.95, 24.95, 24.95]),
        ("gaia", "keep", [62.85, 62.85, 23.88, 24.45, 24.45, 24.45]),
    ],
)
def test_openhands(benchmark: str, zero_time: Any, expected: list[float]) -> None:
    where = [f"benchmark={benchmark}", *AGENTS]
    runs = read(DATA / "openhands_index.csv", where=where, zero_time=zero_time, **OPENHANDS)
    assert counts(runs)[:2] == (34, {"swe-bench": 500, "gaia": 165}[benchmark])
    assert rates(runs) == expected


def test_openhands_audit() -> None:
    runs = read(DATA / "openhands_index.csv", where=["benchmark=swe-bench", *AGENTS], **OPENHANDS)
    assert counts(runs) == (34, 500, 16991)
    found = kinds(runs)
    assert found["unknown_outcomes"] == (
        9,
        ("DeepSeek-V3.2-Reasoner", "Kimi-K2-Thinking", "Kimi-K2.5", "Nemotron-3-Nano"),
    )
    assert found["zero_times_solved"] == (85, ("GLM-5", "Qwen3-Coder-Next", "claude-sonnet-4-6"))
    assert found["unknown_times_nothing"][0] == 25 and len(found["unknown_times_nothing"][1]) == 10
    assert found["missing_runs"][0] == 8
    assert unusable_clock(runs) == ()


def test_openhands_whole() -> None:
    runs = read(DATA / "openhands_index.csv", **OPENHANDS)
    assert len(runs.systems) == 43 and len(set(runs.benchmarks)) == 5
    assert int(runs.present.sum()) + kinds(runs)["unknown_outcomes"][0] == 51_451
    every = {
        finding.kind: finding
        for finding in audit(read(DATA / "openhands_index.csv", where=AGENTS, **OPENHANDS)).findings
    }
    assert every["zero_times_solved"].count == 190
    assert every["zero_times_solved"].count + every["zero_times_nothing"].count <= 500


def test_theagentcompany() -> None:
    runs = read(DATA / "theagentcompany.csv", columns="score=result,max_score=total,cost=cost_usd")
    assert counts(runs) == (6, 175, 1048) and runs.clocks == ("steps", "cost")
    assert rates(runs) == [80.61, 49.87, 73.58, 28.45, 32.81, 32.81]
    assert kinds(runs)["differing_maximum_scores"][0] == 1
    assert kinds(runs)["missing_runs"] == (2, ("OpenHands-0.28.1-gemini-2.5-pro",))


def test_intercode() -> None:
    runs = read(DATA / "intercode.csv", columns="instance=split+task_id,return=rewards", where="env=bash")
    assert counts(runs) == (10, 200, 1802) and runs.clocks == ("steps",)
    assert rates(runs) == [72.39, 41.80, 64.84, 25.70, 26.16, 26.18]
    assert kinds(runs)["returns_falling"][0] == 524
    assert (
        len(read(DATA / "intercode.csv", columns="instance=split+task_id,return=rewards", where="env=sql").systems)
        == 16
    )


def test_tales() -> None:
    runs = read(DATA / "tales_rollouts.csv", columns="instance=game,turns=moves,tokens=token_usage")
    assert counts(runs) == (10, 2, 11) and runs.clocks == ("steps", "turns", "tokens")
    assert int(runs.lengths.sum()) == 1700
    assert {"returns_falling", "clock_backwards"} <= set(kinds(runs))


def test_metr() -> None:
    columns = ["return=score_binarized", "success=score_binarized"]
    both = [read(DATA / "metr_runs.csv", columns=f"{column},seconds=duration_s") for column in columns]
    assert counts(both[0]) == (11, 83, 7063) and both[0].equals(both[1])
    assert both[0].shape[2] == 96
    assert "unequal_trials" in kinds(both[0])
