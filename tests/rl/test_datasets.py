"""Data sets for offline training from preferences, and TRL's own trainers on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import torchpref as tp
from torchpref.rl import desirable_runs, preference_dataset, preference_pairs


def three_samples() -> tp.Trajectories:
    """Two prompts, three samples; the third sample of the second prompt is missing."""
    returns = torch.zeros(2, 3, 4)
    returns[0, 0, 1:] = 1.0  # solved at 2
    returns[0, 1, 3:] = 1.0  # solved at 4
    returns[0, 2, 1:] = 0.5  # half at 2
    returns[1, 0, 2:] = 1.0
    returns[1, 1, 2:] = 1.0  # tied
    present = torch.tensor([[True, True, True], [True, True, False]])
    return tp.Trajectories(returns, present=present, systems=["s1", "s2", "s3"], instances=["add", "mul"])


PROMPTS = {"add": "1 + 1 = ", "mul": "2 × 2 = "}


def completion(instance: str, system: str) -> str:
    return f"{system} on {instance}"


def test_pairs_and_margins() -> None:
    rows = preference_pairs(tp.preferences(three_samples(), "rpp"), PROMPTS, completion)
    # s1 is sooner at 1, so all of the scale; s2 has the upper half of it over s3, which has the lower half: a tie.
    assert rows == [
        {"prompt": "1 + 1 = ", "chosen": "s1 on add", "rejected": "s2 on add", "margin": 1.0},
        {"prompt": "1 + 1 = ", "chosen": "s1 on add", "rejected": "s3 on add", "margin": 0.5},
    ]
    by_lr = preference_pairs(tp.preferences(three_samples(), "lr"), PROMPTS, completion)
    assert [(row["chosen"], row["rejected"]) for row in by_lr] == [
        ("s1 on add", "s2 on add"), ("s1 on add", "s3 on add"), ("s2 on add", "s3 on add"),
    ]  # fmt: skip
    assert len(preference_pairs(tp.preferences(three_samples(), "rpp"), PROMPTS, completion, least=0.5)) == 1


def test_desirable_runs() -> None:
    rows = desirable_runs(tp.preferences(three_samples(), "rpp"), PROMPTS.get, completion)
    # s1: (1 + 1/2)/2; s2: (-1 + 0)/2; s3: (-1/2 + 0)/2; on mul the two are tied: undecided, left out.
    assert [(row["completion"], row["label"]) for row in rows] == [
        ("s1 on add", True), ("s2 on add", False), ("s3 on add", False),
    ]  # fmt: skip
    assert [row["completion"] for row in desirable_runs(
        tp.preferences(three_samples(), "rpp"), PROMPTS, completion, least=0.25)] == ["s1 on add", "s2 on add"]  # fmt: skip


def test_trials_become_systems() -> None:
    runs = tp.Trajectories(torch.tensor([[[[0.0, 1.0], [1.0, 1.0]]]]), systems=["model"], instances=["add"])
    with pytest.raises(tp.UsageError, match="split_trials"):
        preference_pairs(tp.preferences(runs), PROMPTS, completion)
    (row,) = preference_pairs(tp.preferences(runs.split_trials()), PROMPTS, completion)
    assert row["chosen"] == "model#2 on add"


def test_names_that_stand_in_several_benchmarks() -> None:
    returns = torch.tensor([[[1.0], [0.0]], [[0.0], [1.0]]])
    runs = tp.Trajectories(returns, systems=["a", "b"], instances=["x", "x"], benchmarks=["p", "q"])
    rows = preference_pairs(tp.preferences(runs, "sr"), {"p/x": "P", "q/x": "Q"}, completion)
    assert [(row["prompt"], row["chosen"]) for row in rows] == [("P", "a on p/x"), ("Q", "b on q/x")]


def test_what_is_missing_is_named() -> None:
    prefs = tp.preferences(three_samples())
    with pytest.raises(tp.UsageError, match="no prompt is given for 'add'"):
        preference_pairs(prefs, {}, completion)
    with pytest.raises(tp.UsageError, match=r"no completion is given for \('add', 's1'\)"):
        preference_pairs(prefs, PROMPTS, {})
    pytest.importorskip("datasets", reason="needs the extra trl")
    with pytest.raises(tp.UsageError, match="nothing to learn"):
        preference_dataset(replace(prefs, sums=prefs.sums * 0), PROMPTS, completion)
    with pytest.raises(tp.UsageError, match="kind"):
        preference_dataset(prefs, PROMPTS, completion, "orpo")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # TRL and transformers announce their own future
@pytest.mark.parametrize("kind", ["dpo", "reward", "kto"])
def test_trl_trains_on_them(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    trl = pytest.importorskip("trl", reason="needs the extra trl")
    from rl import tiny_llm

    tokens = tiny_llm.tokenizer()
    returns = torch.zeros(4, 3, 4)
    returns[:, 0, 1:], returns[:, 1, 3:], returns[:, 2, 1:] = 1.0, 1.0, 0.5
    runs = tp.Trajectories(returns, instances=[f"task {n}" for n in range(4)])
    data = preference_dataset(
        tp.preferences(runs), lambda name: f"{name}: ", lambda name, system: f"{system} solves {name}", kind
    )
    options = tiny_llm.quiet(tmp_path / "out", max_steps=3, per_device_train_batch_size=4, logging_steps=1)
    if kind == "dpo":
        assert data.column_names == ["prompt", "chosen", "rejected"]
        model = tiny_llm.saved(tmp_path / "model", tokens)
        trainer = trl.DPOTrainer(
            model=model, args=trl.DPOConfig(**options), train_dataset=data, processing_class=tokens
        )
    elif kind == "reward":
        assert data.column_names == ["prompt", "chosen", "rejected", "margin"]
        model = tiny_llm.saved(tmp_path / "model", tokens, "score")
        trainer = trl.RewardTrainer(
            model=model, args=trl.RewardConfig(**options), train_dataset=data, processing_class=tokens
        )
    else:
        assert data.column_names == ["prompt", "completion", "label"]
        model = tiny_llm.saved(tmp_path / "model", tokens)
        trainer = trl.KTOTrainer(
            model=model, args=trl.KTOConfig(**options), train_dataset=data, processing_class=tokens
        )
    trainer.train()
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    assert len(losses) == 3 and all(0 < loss < 10 for loss in losses)
