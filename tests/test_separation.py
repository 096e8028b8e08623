"""The tables that separate the measures, small: they are printed, and the figures that carry the advice come out."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from torchpref.runs.measures import MEASURES
from torchpref.sgrl.ladders import LADDERS, PAIRS, ladder, make


def _benchmark() -> ModuleType:
    path = Path(__file__).parents[1] / "benchmarks/separation.py"
    spec = importlib.util.spec_from_file_location("separation", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["separation"] = module
    spec.loader.exec_module(module)
    return module


separation = _benchmark()


def test_a_ladder_is_judged_in_the_proved_order() -> None:
    found = separation.judge(make(ladder("speed, no failures")), 4, seed=1)
    assert found["sr"].accuracy == found["pr"].accuracy == 0
    for measure in ("spl", "lr", "rpp", "ipp"):
        assert found[measure].accuracy > 94 and found[measure].significant > 70


def test_the_generated_parts_of_a_page_are_replaced() -> None:
    page = "a\n<!-- measured: x -->\n\nold\n\n<!-- end -->\nb\n"
    new = separation.fill(page, {"x": "new"})
    assert new == "a\n<!-- measured: x -->\n\nnew\n\n<!-- end -->\nb\n"
    assert separation.fill(new, {"x": "new"}) == new
    with pytest.raises(SystemExit, match="no mark"):
        separation.fill(page, {"y": ""})


@pytest.mark.slow
def test_the_whole_page_small(tmp_path: Path) -> None:
    for package in ("gymnasium", "minigrid"):
        pytest.importorskip(package, reason="the real environments need the extra sgrl: pip install 'torchpref[sgrl]'")
    page = separation.Separation(10, tmp_path)
    text = dict(separation.sections(page))
    assert "theagentcompany_14.csv is absent" in text["TheAgentCompany, 14 systems"]
    for name in (*LADDERS, *PAIRS):
        assert any(f"| {name}" in body for body in text.values())
    worst = page.worst(5)
    assert worst["lr"][0] > 85
    assert worst["rpp"][1] == "reliability, last level" and worst["rpp"][0] < 75
    pairs = page.pairs()
    assert pairs["gives up at the end"].means["rpp"] > 0.5 > pairs["gives up at the end"].means["lr"]
    assert pairs["slow start"].means["ipp"] < 0 < pairs["slow start"].means["rpp"]
    assert set(page.mean_worst()) == set(MEASURES)
