"""Histories of others: joined by name, refused where there is too little."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import torchpref as tp
from torchpref.errors import UsageError


def board(ran=20, others=4, total=40):
    rng = np.random.default_rng(0)
    ease = rng.normal(0, 1, total)
    names = ["base", "new", *[f"o{i}" for i in range(others)]]
    returns = torch.from_numpy((ease[:, None] + rng.normal(0, 0.4, (total, len(names))) > 0).astype(float))[..., None]
    present = torch.ones(returns.shape[:2], dtype=torch.bool)
    present[ran:, 1] = False
    return tp.Trajectories(returns, present=present, systems=names, instances=[f"t{i:02}" for i in range(total)])


def test_all_is_estimated_from_a_part():
    runs = board()
    found = tp.compare(runs, "new", "base", "sr", history=runs).history
    assert (found.new, found.base, found.instances, found.planned, len(found.others)) == ("new", "base", 20, 40, 4)
    assert found.low <= found.mean <= found.high and found.low_new <= found.low and found.high_new >= found.high
    delta = tp.preferences(runs, "sr")["new", "base"].delta.numpy()
    assert found.plain == pytest.approx(delta.mean())
    assert "on all 40 instances, from 20 and the runs of 4 others" in str(found)
    result = tp.compare(runs, "base", "new", "sr", history=runs)
    assert result.history.mean == found.mean and "history" in result.to_dict() and str(found) in repr(result)
    json.dumps(result.to_dict(), allow_nan=False)


def test_too_little_is_refused():
    with pytest.raises(UsageError, match="from 15 instances on; the new system ran 14"):
        tp.compare(board(14), "new", "base", "sr", history=board(14))
    with pytest.raises(UsageError, match="at least 3 other systems that ran all 40"):
        tp.compare(board(others=2), "new", "base", "sr", history=board(others=2))
    with pytest.raises(UsageError, match="must hold the runs of 'base'"):
        tp.compare(board(), "new", "base", "sr", history=board().select(systems="!base"))
