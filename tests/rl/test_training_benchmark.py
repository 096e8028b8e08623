"""The training benchmark in small: the gradient is the gradient, and the anchored reward shortens paths."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("gymnasium", reason="needs the extra sgrl")
pytest.importorskip("minigrid", reason="needs the extra sgrl")


@pytest.fixture(scope="module")
def training() -> Any:
    path = Path(__file__).parents[2] / "benchmarks" / "training.py"
    spec = importlib.util.spec_from_file_location("training_benchmark", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["training_benchmark"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["training_benchmark"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_gradient_is_that_of_autograd(training: Any) -> None:
    task = training.instances("taxi", 2)
    generator = torch.Generator().manual_seed(0)
    logits = torch.as_tensor(task.policy(0.8)).log()
    tables = training.Tables.of(task)
    runs = training.rollouts(tables, logits, torch.arange(2)[:, None].expand(-1, 4), 30, generator)
    advantages = torch.randn(2, 4, generator=generator, dtype=torch.float64)
    leaf = logits.clone().requires_grad_()
    log_probability = leaf.log_softmax(1)[runs.states, runs.actions]
    (advantages[..., None] * runs.mask * log_probability).sum().div(4).backward()
    torch.testing.assert_close(training.policy_gradient(logits, runs, advantages), leaf.grad)
    by_step = advantages[..., None].expand(-1, -1, 30)
    torch.testing.assert_close(training.policy_gradient(logits, runs, by_step), leaf.grad)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_chain_and_the_pace_on_it(training: Any) -> None:
    task = training.instances("chain", 2)
    assert task.shortest.tolist() == [32, 32]
    assert len(task.levels) == 8
    anchored = training.REWARDS[-1]
    chosen = [training.Arm(anchored, "none", 8.0, to_go) for to_go in (False, True)]
    outcome = training.train(task, chosen, 25, torch.Generator().manual_seed(0))
    for one in training.pace("chain", chosen, outcome):
        assert one.arrived.all() and (one.updates >= training.NEAR_UPDATES).all()


def test_sections_of_the_page_are_replaced_by_title(training: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    training.write(page, {"credit": "## Credit along the run\n\nold"})
    training.write(page, {"rewards": "## Rewards\n\nfirst"})
    training.write(page, {"credit": "## Credit along the run\n\nnew"})
    assert page.read_text() == (
        "# Training with preferences as rewards\n\n## Rewards\n\nfirst\n\n## Credit along the run\n\nnew\n"
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_success_stalls_and_the_anchored_preference_does_not(training: Any) -> None:
    by_name = {reward.name: reward for reward in training.REWARDS}
    chosen = [training.Arm(by_name[name], "none", 2.0) for name in ("success", "success + 0.49·RPP")]
    outcome = training.train(training.instances("taxi", 4), chosen, 150, torch.Generator().manual_seed(0))
    success, length = outcome.success[-15:].mean((0, 2)), outcome.length[-15:].mean((0, 2))
    assert (success > 0.98).all()
    assert length[0] > 1.5
    assert length[1] < 1.1
