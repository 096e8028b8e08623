"""What compare says where measures disagree: on pairs of policies of which it is known why they do."""

from __future__ import annotations

import numpy as np
import pytest

import torchpref as tp
from torchpref.sgrl.ladders import PAIRS, make


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("gives up at the end", ["first gains early, second at the end"]),
        ("fast first", ["first gains early, second at the end"]),
        ("one slow stretch", ["second gains early, first at the end", "(accidents) cost first what it gains"]),
    ],
)
def test_the_reason_is_named(name: str, wanted: list[str]) -> None:
    bench = make(PAIRS[name])
    runs = bench.runs(bench.play(20, seed=0))
    found = tp.compare(runs, "first", "second")
    assert len(found.disagreement) == len(wanted)
    for part, sentence in zip(wanted, found.disagreement, strict=True):
        assert part in sentence
        assert sentence in repr(found)
    assert found.to_dict()["disagreement"] == list(found.disagreement)
    turned = tp.compare(runs, "second", "first").disagreement
    assert turned == found.disagreement


def test_nothing_is_said_where_measures_agree() -> None:
    times = np.array([[[k + 1], [2 * k + 3]] for k in range(20)])
    runs = tp.Trajectories(np.ones_like(times, dtype=float), times={"steps": times}, systems=["a", "b"])
    assert tp.compare(runs, "a", "b").disagreement == ()
    assert tp.compare(runs, "a", "b", ["sr", "pr"]).disagreement == ()
