"""The adapter in real runs of inspect_ai with its mock model; skipped where inspect_ai is not installed."""

from __future__ import annotations

import pytest

inspect_ai = pytest.importorskip(
    "inspect_ai", reason="needs inspect_ai; install it with: pip install 'torchpref[inspect-ai]'"
)

pytestmark = pytest.mark.filterwarnings("default")


def task_of(answers, manager, count=40):
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import match

    samples = [Sample(input=f"question {i}", target="yes", id=f"s{i:02}") for i in range(count)]
    return Task(dataset=MemoryDataset(samples), scorer=match(), early_stopping=manager)


def model_of(answer, name="model"):
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def output(*_):
        # with its usage, or the mock model would count tokens with a file from the network
        usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return ModelOutput.from_content(f"mockllm/{name}", answer).model_copy(update={"usage": usage})

    return get_model(f"mockllm/{name}", custom_outputs=output)


def run(tasks, model, tmp_path, **options):
    return inspect_ai.eval(
        tasks, model=model, log_dir=str(tmp_path), display="none", max_samples=1, fail_on_error=True, **options
    )


def test_a_worse_system_stops(tmp_path):
    from torchpref.evaluation.inspect_stop import GateStop

    manager = GateStop({f"s{i:02}": 1.0 for i in range(40)})
    (log,) = run(task_of("no", manager), model_of("no"), tmp_path)
    assert log.status == "success" and manager.result.verdict == "worse"
    done = len([sample for sample in log.samples if sample.scores])
    assert manager.result.stopped <= done <= manager.result.stopped + 2 < 40
    stopping = log.results.early_stopping
    assert stopping.manager == "torchpref" and stopping.metadata["verdict"] == "worse" and stopping.early_stops
    assert "worse: SR of new against base" in stopping.early_stops[0].reason


def test_against_a_stored_log(tmp_path):
    from torchpref.evaluation.inspect_stop import GateStop

    (stored,) = run(task_of("yes", None), model_of("yes"), tmp_path / "base")
    manager = GateStop(stored.location, margin=0.2)
    (log,) = run(task_of("yes", manager), model_of("yes"), tmp_path / "new")
    assert manager.result.verdict == "fine" and manager.result.seen == 20
    assert len([sample for sample in log.samples if sample.scores]) < 25


def test_several_models(tmp_path):
    from torchpref.evaluation.inspect_stop import BoardStop

    board = BoardStop(systems=2, goal="top1")
    logs = run([task_of("", board.manager())], model_of("yes", "good"), tmp_path)
    logs += run([task_of("", board.manager())], model_of("no", "bad"), tmp_path)
    assert board.result.top == ("mockllm/good",)
    counts = [len([sample for sample in log.samples if sample.scores]) for log in logs]
    assert counts[0] == 40 and counts[1] < 25


def test_a_base_without_some_samples(tmp_path):
    from torchpref.evaluation.inspect_stop import GateStop

    manager = GateStop({"s00": 1.0})
    logs = inspect_ai.eval(task_of("no", manager), model=model_of("no"), log_dir=str(tmp_path), display="none")
    assert logs[0].status == "error" and "no score of 39 samples" in logs[0].error.message
