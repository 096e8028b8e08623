"""The simulation behind the page *How sure is it?*: its truth, its page, and a small run of it."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def trust():
    path = ROOT / "benchmarks" / "trust_coverage.py"
    specification = importlib.util.spec_from_file_location("trust_coverage", path)
    module = importlib.util.module_from_spec(specification)
    sys.modules["trust_coverage"] = module
    specification.loader.exec_module(module)
    return module


def test_the_truth_is_the_mean_of_many_samples(trust):
    for setting in (
        trust.Setting("plain", 20_000, 3),
        trust.Setting("trials 1–5", 20_000, 3, trials="1–5"),
        trust.Setting("families", 20_000, 3, families=(4_000, 5)),
        trust.Setting("skewed", 20_000, 2, skewed=True),
    ):
        found = trust.draw(setting, np.random.default_rng(0)).pair_means().numpy()
        assert found == pytest.approx(trust.truth(setting)[0], abs=0.03), setting.name


def test_every_cell_is_there_once(trust):
    cells = [(setting.name, setting.systems, setting.instances) for setting in trust.settings()]
    assert len(cells) == len(set(cells)) == 3 * (3 * 12 + 10 + 2)


def test_the_page_has_a_place_for_every_table(trust, tmp_path):
    page = tmp_path / "page.md"
    text = (ROOT / "docs" / "how-sure.md").read_text(encoding="utf-8")
    assert re.findall(r"<!-- trust (\w+) -->", text) == list(trust.PARTS)
    page.write_text(text, encoding="utf-8")
    row = {key: [1.0, 0.5] for key in trust.COLUMNS["families"]} | {"case": "3×4", "samples": 7}
    trust.write_page(page, {"families": [row]})
    trust.write_page(page, {"families": [row]})  # twice is once
    assert page.read_text(encoding="utf-8").count("| 3×4 | 7 | 1.0 ± 0.5 | 1.0 ± 0.5 |") == 1


@pytest.mark.slow
def test_intervals_cover_in_a_small_run(trust):
    chosen = {
        "plain",
        "identical systems",
        "30 % missing at random",
        "own weights, sd 0.7",
        "benchmarks 3/27/70",
        "95 % ties",
    }
    for setting in trust.settings():
        if setting.systems == 5 and setting.instances in (30, 100) and setting.name in chosen:
            row = trust.interval_cell(setting, 60)
            for what, least in (("pairs", 93), ("scores", 93), ("ranks", 94)):
                if row[what] is not None:
                    assert row[what][0] + 3 * row[what][1] >= least, (row["case"], what, row[what])


@pytest.mark.slow
def test_no_test_rejects_too_often_in_a_small_run(trust):
    for name in ("exchangeable, success .9", "each task solved by one of the two"):
        row = trust.null_cell(name, trust.NULLS[name], "1 v 8", 30, 200)
        assert row["default"][0] - 3 * row["default"][1] <= 6
    row = trust.many_cell("plain", 5, 30, 60)
    assert all(row[test][0] - 3 * row[test][1] <= 6 for test in ("holm", "max-t", "bh"))
