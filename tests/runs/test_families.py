"""Families of instances: from a column of a table, through choosing and writing, to what is drawn together."""

import polars as pl
import pytest
import torch

import torchpref as tp
from torchpref.io.convert import convert
from torchpref.stats.resampling.instances import resampling_units, units_of

ROWS = [
    {"system": system, "instance": instance, "repo": repo, "success": success}
    for system, success in (("A", 1), ("B", 0))
    for instance, repo in (("t3", "y"), ("t1", "x"), ("t2", None), ("t4", "x"))
]


def runs():
    return tp.Trajectories.from_frame(pl.DataFrame(ROWS), columns="families=repo")


def test_a_column_gives_one_label_per_instance_in_the_order_of_instances():
    assert runs().instances == ("t1", "t2", "t3", "t4")
    assert runs().families == ("x", None, "y", "x")
    assert tp.Trajectories.from_frame(pl.DataFrame(ROWS)).families is None


def test_differing_labels_within_an_instance_are_an_error_that_names_both_rows():
    rows = [*ROWS[:4], {**ROWS[5], "repo": "z"}]
    with pytest.raises(tp.DataError, match=r"row 2: families is 'x', but 'z' in row 5 for the same instance 't1'"):
        tp.Trajectories.from_frame(pl.DataFrame(rows), columns="families=repo")


def test_one_empty_cell_beside_a_label_says_nothing():
    rows = [*ROWS[:4], {**ROWS[5], "repo": None}]
    assert tp.Trajectories.from_frame(pl.DataFrame(rows), columns="families=repo").families == ("x", None, "y", "x")


def test_choosing_and_writing_keep_them(tmp_path):
    chosen = runs().select(instances=["t4", "t3"])
    assert chosen.families == ("y", "x")
    assert runs().until(5, "steps").split_trials().to("cpu").families == runs().families
    assert tp.Trajectories.from_frame(runs().to_frame()).equals(runs())
    assert not runs().equals(tp.Trajectories.from_frame(pl.DataFrame(ROWS)))
    pl.DataFrame(ROWS).write_csv(tmp_path / "in.csv")
    convert(tmp_path / "in.csv", tmp_path / "out.csv", columns="families=repo")
    assert tp.read(tmp_path / "out.csv").families == ("x", None, "y", "x")


def test_tensors_are_sorted_with_their_labels_and_checked():
    tensor = torch.zeros(3, 2, 1)
    made = tp.Trajectories(tensor, instances=["c", "a", "b"], families=["1", "2", None])
    assert made.families == ("2", None, "1")
    with pytest.raises(tp.DataError, match="families has 2 labels; wanted one per instance, 3"):
        tp.Trajectories(tensor, families=["1", "2"])
    with pytest.raises(tp.UsageError, match="got the one string"):
        tp.Trajectories(tensor, families="abc")


def test_what_is_drawn_together():
    prefs = tp.preferences(runs(), "sr")
    assert prefs.families == ("x", None, "y", "x")
    assert units_of(prefs).cluster.tolist() == [0, 1, 2, 0]
    assert units_of(prefs, ["q", "q", "q", "r"]).cluster.tolist() == [0, 0, 0, 1]
    # The same label in two benchmarks is two families, and no label is a family of one.
    units = resampling_units(["m", "n", "n", "n"], ["x", "x", None, None])
    assert units.cluster.tolist() == [0, 1, 2, 3]
