"""Which measure judges a result."""

import pytest

import torchpref as tp
from torchpref.runs.measures import JUDGE, judge_of, resolve_measures


def test_the_first_that_is_named_judges_else_lr():
    assert judge_of() == judge_of("all") == JUDGE == "lr"
    assert judge_of("IPP, sr") == "ipp" and judge_of(["sr", "LR"]) == "sr"
    assert resolve_measures("IPP, sr") == ("sr", "ipp")


def test_one_that_could_not_be_computed_does_not_judge():
    assert judge_of("all", ("sr", "pr")) == "sr"
    assert judge_of("lr,pr", ("pr",)) == "pr"
    assert judge_of("lr", ()) is None


def test_no_measure_and_unknown_ones_are_errors():
    for given in ("", [], " , "):
        with pytest.raises(tp.UsageError, match="no measure named"):
            judge_of(given)
    with pytest.raises(tp.UsageError, match="unknown measure 'success'"):
        judge_of("success")
