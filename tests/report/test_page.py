"""The report page as text: what is in it, that nothing in the data can break out of it, and its size."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pytest
import torch

import torchpref as tp

pytest.importorskip("jinja2", reason="needs the extra 'report'")

from torchpref.report.page import evaluation_page
from torchpref.report.page.data import NOT_COMPARED, page_data

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    '"><svg onload=alert(3)>',
    "{{ 7 * 7 }}",
    "a & b \u2028 line",
    "名前",
)


def runs(n_systems=3, n_instances=5, **options) -> tp.Trajectories:
    generator = torch.Generator().manual_seed(1)
    returns = (torch.rand(n_instances, n_systems, 3, generator=generator) * 4).floor() / 3
    return tp.Trajectories(returns.clamp(0, 1), **options)


def data_of(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))


def test_names_from_logs_are_text_and_nothing_else():
    page = evaluation_page(tp.evaluate(runs(len(HOSTILE), systems=list(HOSTILE), instances=list(HOSTILE[:5]))))
    assert (
        "<script>alert" not in page
        and "<img src=x" not in page
        and "<svg onload" not in page
        and "49" not in page[:400]
    )
    assert page.count("<script") == 2 and page.count("</script>") == 2
    assert set(data_of(page)["systems"]) >= {HOSTILE[0], HOSTILE[3], "名前"}


def test_nothing_is_loaded_from_elsewhere():
    page = evaluation_page(tp.evaluate(runs()))
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page


def test_leaderboards_and_preferences():
    result = tp.evaluate(runs(), bootstrap=20)
    data = page_data(result, 10**7)
    for name, one in result.measures.items():
        shown = data["measures"][name]
        assert [row["rank"] for row in shown["rows"]] == [row["rank"] for row in result.rows(name)]
        assert [result.systems[row["system"]] for row in shown["rows"]] == [row["system"] for row in result.rows(name)]
        assert np.allclose(np.array(shown["mean"], dtype=float), one.mean_preference.numpy(), atol=5e-5, equal_nan=True)
    assert data["measures"]["lr"]["split"] and not data["measures"]["rpp"]["split"]
    assert data["limits"] == []


def test_deltas_and_curves():
    present = torch.ones(5, 3, dtype=torch.bool)
    present[2, 1] = False
    result = tp.evaluate(runs(present=present))
    data = page_data(result, 10**7)
    packed = np.frombuffer(base64.b64decode(data["deltas"]["rpp"]), dtype=np.int8).reshape(3, 5)
    delta = result["rpp"].preferences.delta.numpy().T
    assert (packed == NOT_COMPARED).tolist() == np.isnan(delta).tolist()
    assert np.allclose(packed[~np.isnan(delta)] / 100, delta[~np.isnan(delta)], atol=0.0051)
    assert data["curves"][2][1] == []
    jumps = tp.time_to_return(result.runs)
    flat = data["curves"][0][0][0]
    assert len(flat) % 2 == 0 and flat[1::2] == sorted(flat[1::2])
    assert all(time in jumps.times()[0, 0, 0].tolist() for time in flat[::2])


def test_small_preferences_are_not_shown_as_ties():
    returns = torch.tensor([[[0.5, 0.502], [0.5, 0.5]]], dtype=torch.float64)
    data = page_data(tp.evaluate(tp.Trajectories(returns), measures="rpp"), 10**7)
    assert np.frombuffer(base64.b64decode(data["deltas"]["rpp"]), dtype=np.int8).tolist() == [1]


def test_a_page_that_would_be_too_large_says_what_it_leaves_out():
    result = tp.evaluate(runs(20, 400))
    full = len(json.dumps(page_data(result, 10**8)))
    small = page_data(result, full // 2)
    assert len(json.dumps(small)) < full * 0.6
    assert small["limits"]
    tiny = page_data(result, 40_000)
    assert len(json.dumps(tiny)) < 60_000 and any("of 20 systems only" in limit for limit in tiny["limits"])
    page = evaluation_page(result, data_budget=40_000)
    assert "to keep the page small" in page


def test_few_and_none():
    alone = evaluation_page(tp.evaluate(runs(1)))
    assert data_of(alone)["systems"] == ["system-1"]
    no_clock = evaluation_page(tp.evaluate(runs(times={})))
    assert "curves" not in data_of(no_clock)


def test_warnings_stand_at_the_top():
    present = torch.ones(5, 3, dtype=torch.bool)
    present[0, 0] = False
    page = evaluation_page(tp.evaluate(runs(present=present)))
    assert page.index("What to know about these data") < page.index("Tie rates")


def test_title():
    assert "<title>Mine &amp; yours" in evaluation_page(tp.evaluate(runs()), title="Mine & yours")
