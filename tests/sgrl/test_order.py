"""The order of the policies: the evidence that ships, and that it can be worked out again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars
import pytest

from torchpref.errors import DataError
from torchpref.sgrl import order
from torchpref.sgrl.order import compute_dominance, dominance, known_order
from torchpref.sgrl.suites import SUITES, suite

NAMES = pytest.mark.parametrize("name", SUITES)


@NAMES
def test_every_level_is_dominated_on_every_instance(name: str) -> None:
    chosen = suite(name)
    times = dominance(name).filter(kind="time")
    assert len(times) == chosen.instances * (len(chosen.epsilons) - 1) * times["level"].n_unique()
    assert times["holds"].all()
    assert known_order(name) == chosen.systems


@NAMES
def test_waiting_times_are_dominated_except_between_key_and_door(name: str) -> None:
    waiting = dominance(name).filter(kind="waiting")
    failed = waiting.filter(holds=False)
    assert failed["level"].unique().to_list() == ([2 / 3] if name.startswith("doorkey") else [])
    layouts = {"doorkey-saturated": 43, "doorkey-mixed": 3}
    assert failed["instance"].n_unique() == layouts.get(name, 0)


@NAMES
@pytest.mark.parametrize("kind", ["time", "waiting"])
def test_expected_preference_favours_the_better_on_every_instance(name: str, kind: str) -> None:
    """RPP from the times, IPP from the waiting times: the heights of levels times the chance to be sooner."""
    evidence = dominance(name).filter(kind=kind)
    count = evidence["level"].n_unique()
    expected = evidence.group_by("instance", "system").agg((polars.col("advantage") / count).sum())
    # The easiest task at the highest noise leaves a gap that four decimals no longer show.
    assert (expected["advantage"] > (-1e-9 if name == "fourrooms-mixed" else 0.02)).all()


@NAMES
def test_evidence_can_be_worked_out_again(name: str) -> None:
    pytest.importorskip("gymnasium", reason="this needs the extra sgrl: pip install 'torchpref[sgrl]'")
    pytest.importorskip("minigrid", reason="this needs the extra sgrl: pip install 'torchpref[sgrl]'")
    again = compute_dominance(name, [0, 57])
    names = again["instance"].unique().to_list()
    shipped = dominance(name).filter(polars.col("instance").is_in(names))
    words = ["suite", "instance", "system", "slower", "level", "kind", "holds"]
    assert again.select(words).equals(shipped.select(words))
    for column in ("smallest_gap", "largest_gap", "advantage"):
        np.testing.assert_allclose(again[column].to_numpy(), shipped[column].to_numpy(), atol=1.1e-4)


def test_no_order_without_evidence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    frame = polars.read_parquet(order.PATH)
    broken = frame.with_columns(
        holds=polars.col("holds") & (polars.int_range(polars.len()) != 0),
    )
    broken.write_parquet(tmp_path / "dominance.parquet")
    monkeypatch.setattr(order, "PATH", tmp_path / "dominance.parquet")
    with pytest.raises(DataError, match="no known order of 'demo': 1 of 1800 comparisons fail"):
        known_order("demo")
    assert known_order("taxi-mixed")
