"""Write the Inspect logs of this folder with the mock model: python make_inspect.py FOLDER (needs inspect_ai).

Written with inspect_ai 0.3.285. ``toy``: three samples in two epochs, three scorers and intermediate scores after each of two
turns; the third sample fails. ``limited``: the token limit stops every sample. ``older``: the same as JSON, one scorer.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, mean, score, scorer
from inspect_ai.solver import TaskState, solver


def outputs() -> Iterator[ModelOutput]:
    while True:
        output = ModelOutput.from_content("mockllm/model", "four")
        output.usage = ModelUsage(input_tokens=100, output_tokens=20, total_tokens=120)
        yield output


@scorer(metrics=[mean()])
def partial():
    async def judge(state, target):
        turns = len([message for message in state.messages if message.role == "assistant"])
        return Score(value=min(1.0, {"a": 0.25, "b": 0.5}.get(str(state.sample_id), 0.0) * turns))

    return judge


@scorer(metrics={"x": [mean()], "y": [mean()]})
def multi():
    async def judge(state, target):
        return Score(value={"x": 0.75, "y": 1})

    return judge


@scorer(metrics=[accuracy()])
def letter():
    async def judge(state, target):
        return Score(value={"a": "C", "b": "P", "c": "I"}.get(str(state.sample_id), "N"))

    return judge


@solver
def twice():
    async def solve(state: TaskState, generate):
        for _ in range(2):
            state = await generate(state)
            await score(state)
        if str(state.sample_id) == "broken":
            raise RuntimeError("broken on purpose")
        return state

    return solve


def write(folder: Path, name: str, samples: list[str], scorers: list, kind: str, **options) -> None:
    dataset = MemoryDataset([Sample(id=sample, input="2 + 2?", target="four") for sample in samples])
    (log,) = eval(
        Task(dataset=dataset, solver=twice(), scorer=scorers, name=name, epochs=options.pop("epochs", 1)),
        model=get_model("mockllm/model", custom_outputs=outputs()),
        log_dir=str(folder),
        display="none",
        log_format=kind,
        fail_on_error=False,
        **options,
    )
    log.eval.revision = None
    samples_read = list(log.samples or [])
    for sample in samples_read:  # a traceback says where somebody's packages are
        for error in (sample.error, *(event.error for event in sample.events if event.event == "error")):
            if error is not None:
                error.traceback = error.traceback_ansi = ""
    log = log.model_copy(update={"samples": samples_read})
    write_eval_log(log, str(folder / f"{name}.{kind}"), format=kind)
    Path(log.location.removeprefix("file://")).unlink()


if __name__ == "__main__":
    folder = Path(sys.argv[1]).absolute()
    write(folder, "toy", ["a", "b", "broken"], [partial(), multi(), letter()], "eval", epochs=2)
    write(folder, "limited", ["a", "c"], [letter()], "eval", token_limit=200)
    write(folder, "older", ["a", "b"], [letter()], "json")
