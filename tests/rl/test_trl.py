"""PreferenceReward by itself, and in TRL's own GRPOTrainer: one process, and two with groups split between them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import torchpref as tp
from exact import Run, rpp
from torchpref.rl import PreferenceReward
from torchpref.rl.traces import Trace

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def by_hand(traces: list[dict[str, Any] | None], weight: float = 0.49) -> list[float | None]:
    """Success + weight × mean RPP against the others of one group, from the definitions."""
    runs = []
    for trace in traces:
        if trace is None:
            runs.append(None)
            continue
        times = trace.get("times") or [k + 1 for k in range(len(trace["returns"]))]
        points = tuple((int(time), value) for time, value in zip(times, trace["returns"], strict=True))
        runs.append(Run(points, bool(trace.get("truncated"))))
    rewards: list[float | None] = []
    for i, mine in enumerate(runs):
        if mine is None:
            rewards.append(None)
            continue
        rivals = [run for j, run in enumerate(runs) if j != i and run is not None]
        mean = sum((rpp(mine, run) for run in rivals), Fraction(0)) / max(1, len(rivals))
        rewards.append(float((mine.final() >= 10**6) + Fraction(weight).limit_denominator(100) * mean))
    return rewards


def check(values: list[float | None], wanted: list[float | None]) -> None:
    assert [value is None for value in values] == [value is None for value in wanted]
    numbers = [value for value in values if value is not None]
    assert numbers == pytest.approx([value for value in wanted if value is not None], abs=1e-9)


# ------------------------------------------------------------------------------------------------------ by itself


GOOD = {"returns": [0.5, 1.0], "times": [3, 8]}
SLOW = {"returns": [0.5, 1.0], "times": [4, 30]}
HALF = {"returns": [0.5], "times": [1]}
CUT = {"returns": [0.0, 0.5], "times": [2, 6], "truncated": True}


def test_rewards_of_two_groups_with_an_unscorable_rollout() -> None:
    traces = [GOOD, SLOW, HALF, None, CUT, CUT, HALF, GOOD]
    reward = PreferenceReward("trace", 4, clock="tokens")
    logged: dict[str, float] = {}
    values = reward(
        ["a"] * 4 + ["b"] * 4, ["x"] * 8, trace=traces, log_metric=logged.__setitem__, trainer_state=object()
    )
    check(values, by_hand(traces[:4]) + by_hand(traces[4:]))
    assert logged["preference/success"] == pytest.approx(3 / 7)
    assert logged["preference/time"] == pytest.approx((8 + 30 + 8) / 3)
    assert logged["preference/tied_groups"] == 0.0
    assert reward.__name__ == "preference_rpp"


def test_tied_and_unscorable_groups() -> None:
    reward = PreferenceReward("trace", 2)
    logged: dict[str, float] = {}
    values = reward(["a", "a", "b", "b", "c", "c"], [""] * 6, trace=[[0.5], [0.5], [1.0], [0.0], None, [1.0]],
                    log_metric=logged.__setitem__)  # fmt: skip
    assert values == [0.0, 0.0, 1.49, -0.49, None, 1.0]
    assert logged["preference/tied_groups"] == 0.5
    assert reward([], [], trace=[]) == []
    assert reward(["a", "a"], ["", ""], trace=[None, None], log_metric=logged.__setitem__) == [None, None]


def test_where_traces_come_from() -> None:
    class Game:
        def __init__(self, history: list[float]) -> None:
            self.history = history

    games = [Game([0.0, 1.0]), Game([1.0])]
    wanted = by_hand([{"returns": [0.0, 1.0]}, {"returns": [1.0]}])
    check(PreferenceReward("history", 2)(["p", "p"], ["", ""], environments=games), wanted)
    check(PreferenceReward(lambda row: row["environment"].history, 2)(["p", "p"], ["", ""], environments=games), wanted)
    check(PreferenceReward("extra", 2)(["p", "p"], ["", ""], extra=[[0.0, 1.0], Trace((1.0,))]), wanted)
    by_tokens = PreferenceReward(lambda row: {"returns": [1], "times": [len(row["completion_ids"])]}, 2)
    check(
        by_tokens(["p", "p"], ["", ""], [[5, 5, 5], [5]]),
        by_hand([{"returns": [1], "times": [3]}, {"returns": [1], "times": [1]}]),
    )
    with pytest.raises(tp.UsageError, match="no trace 'history'.*there is completion, completion_text, prompt"):
        PreferenceReward("history", 2)(["p", "p"], ["", ""])


def test_refusals() -> None:
    reward = PreferenceReward("trace", 4)
    with pytest.raises(tp.UsageError, match="6 completions do not make groups of 4"):
        reward(["a"] * 6, [""] * 6, trace=[[1.0]] * 6)
    with pytest.raises(tp.UsageError, match="completions 4 to 7 do not share their prompt"):
        reward(["a"] * 6 + ["b"] * 2, [""] * 8, trace=[[1.0]] * 8)
    with pytest.raises(tp.UsageError, match="at least two"):
        PreferenceReward("trace", 1)
    with pytest.raises(tp.UsageError, match="outscore"):
        PreferenceReward("trace", 4, weight=0.7)
    with pytest.raises(tp.DataError, match="step 2 of a trace is 3.0"):
        reward(["a"] * 4, [""] * 4, trace=[[0.0, 3.0]] * 4)
    with pytest.raises(tp.DataError, match="some traces have times"):
        reward(["a"] * 4, [""] * 4, trace=[GOOD, [1.0], GOOD, GOOD])
    with pytest.raises(tp.DataError, match="never fall"):
        reward(["a"] * 4, [""] * 4, trace=[{"returns": [0.5, 1], "times": [3, 2]}] * 4)
    with pytest.raises(tp.DataError, match="1 returns and 2 times"):
        Trace.of({"returns": [1.0], "times": [1, 2]})
    with pytest.raises(tp.DataError, match="got \\['return'\\]"):
        Trace.of({"return": [1.0]})
    with pytest.raises(tp.DataError, match="holds numbers"):
        Trace.of("1.0")
    with pytest.raises(tp.DataError, match="needs traces with times"):
        PreferenceReward("trace", 2, clock="tokens")(["a"] * 2, [""] * 2, trace=[[1.0]] * 2)


def test_chat_prompts_group_by_content() -> None:
    chat = [{"role": "user", "content": "hello"}]
    other = [{"role": "user", "content": "hullo"}]
    reward = PreferenceReward("trace", 2)
    assert len(reward([chat, list(chat), other, other], [""] * 4, trace=[[1.0]] * 4)) == 4
    with pytest.raises(tp.UsageError, match="0 to 1"):
        reward([chat, other], ["", ""], trace=[[1.0]] * 2)


def test_the_text_of_a_completion() -> None:
    """In plain prompts the completion is text, in chats a list of messages; the model's own words are the same."""
    parts = [{"type": "text", "text": "the answer is"}, {"type": "image"}]
    chat = [
        {"role": "assistant", "content": parts, "tool_calls": []},
        {"role": "tool", "content": "7"},
        {"role": "assistant", "content": "5"},
        {"role": "assistant", "content": None},
    ]
    seen: list[str] = []
    reward = PreferenceReward(lambda row: seen.append(row["completion_text"]) or [1.0], 2)
    reward(["p", "p"], [chat, "5"])
    assert seen == ["the answer is\n5", "5"]


# ------------------------------------------------------------------------------------------------------ in the trainer


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pytest.importorskip("trl", reason="needs the extra trl")
    pytest.importorskip("datasets", reason="needs the extra trl")


trainer_warnings = pytest.mark.filterwarnings("ignore")  # TRL and transformers announce their own future


class Recorded(PreferenceReward):
    """Keeps what the trainer handed over and what it was given back."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.calls: list[tuple[list[Any], list[dict[str, Any] | None], list[float | None]]] = []

    def __call__(self, prompts: Any, completions: Any, completion_ids: Any = None, **rest: Any) -> list[float | None]:
        values = super().__call__(prompts, completions, completion_ids, **rest)
        rows = [{**{k: v[i] for k, v in rest.items() if isinstance(v, list)}, "completion_ids": completion_ids[i]}
                for i in range(len(prompts))]  # fmt: skip
        if "environments" in rest:
            rows = [{**row, "environment": env} for row, env in zip(rows, rest["environments"], strict=True)]
        found = [Trace.of(self.trace(row) if callable(self.trace) else row[self.trace]) for row in rows]
        traces = [
            None if t is None else {"returns": t.returns, "times": t.times, "truncated": t.truncated} for t in found
        ]
        self.calls.append((list(prompts), traces, values))
        return values

    def check(self) -> None:
        size = self.group_size
        for prompts, traces, values in self.calls:
            assert len(prompts) % size == 0
            for start in range(0, len(prompts), size):
                check(values[start : start + size], by_hand(traces[start : start + size]))


def every_third_token(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return rises with every third token id; a completion that starts with a seventh cannot be scored."""
    ids = row["completion_ids"]
    if len(ids) and ids[0] % 7 == 0:
        return None
    steps = [1 + k for k, token in enumerate(ids) if token % 3 == 0][:4]
    return {"returns": [(k + 1) / 4 for k in range(len(steps))], "times": [float(step) for step in steps]}


@pytest.mark.slow
@trainer_warnings
def test_grpo_trainer(offline: None, tmp_path: Path) -> None:
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from rl import tiny_llm

    tokens = tiny_llm.tokenizer()
    model = tiny_llm.model(tokens)
    before = model.lm_head.weight.detach().clone()
    reward = Recorded(every_third_token, 4, clock="tokens")
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=reward,
        args=GRPOConfig(
            **tiny_llm.quiet(tmp_path),
            max_steps=20,
            learning_rate=1e-2,
            num_generations=4,
            per_device_train_batch_size=8,
            max_completion_length=16,
            scale_rewards="none",
        ),  # fmt: skip
        train_dataset=Dataset.from_list([{"prompt": f"task {number}"} for number in range(8)]),
        processing_class=tokens,
    )
    trainer.train()
    assert trainer.state.global_step == 20
    assert len(reward.calls) == 20
    reward.check()
    assert any(value is None for _, _, values in reward.calls for value in values)
    assert not model.lm_head.weight.equal(before)
    logged = [line for line in trainer.state.log_history if "preference/success" in line]
    assert logged and all("preference/tied_groups" in line and "rewards/preference_rpp/mean" in line for line in logged)


@pytest.mark.slow
@trainer_warnings
def test_grpo_trainer_with_rollout_func(offline: None, tmp_path: Path) -> None:
    """Whole trajectories come out of the rollout function as an extra list."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from rl import tiny_llm

    tokens = tiny_llm.tokenizer()
    count = 0

    def rollout(prompts: list[str], trainer: Any) -> dict[str, list[Any]]:
        nonlocal count
        result: dict[str, list[Any]] = {"prompt_ids": [], "completion_ids": [], "logprobs": [], "episode": []}
        for prompt in prompts:
            count += 1
            length = 3 + count % 5
            result["prompt_ids"].append(tokens(prompt)["input_ids"])
            result["completion_ids"].append([10 + k for k in range(length)])
            result["logprobs"].append([-1.0] * length)
            result["episode"].append(
                {"returns": [k / length for k in range(1, length + 1)], "truncated": count % 3 == 0}
            )
        return result

    reward = Recorded("episode", 4)
    trainer = GRPOTrainer(
        model=tiny_llm.model(tokens),
        reward_funcs=reward,
        args=GRPOConfig(
            **tiny_llm.quiet(tmp_path),
            max_steps=3,
            num_generations=4,
            per_device_train_batch_size=4,
            max_completion_length=16,
            scale_rewards="none",
        ),  # fmt: skip
        train_dataset=Dataset.from_list([{"prompt": f"task {number}"} for number in range(8)]),
        processing_class=tokens,
        rollout_func=rollout,
    )
    trainer.train()
    assert len(reward.calls) == 3
    reward.check()
    assert any(len(set(values)) > 1 for _, _, values in reward.calls)


@pytest.mark.slow
@trainer_warnings
def test_grpo_trainer_with_environments(offline: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool environment keeps its own return curve; the trace is an attribute of it."""
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    import trl
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from rl import tiny_llm

    class Counter:
        """Reach three by counting."""

        def reset(self, **columns: Any) -> str | None:
            self.value = columns["start"]
            self.curve: list[float] = []
            return None

        def count(self, by: int) -> str:
            """Count on.

            Args:
                by: how far to count.

            Returns:
                Where the counter stands.
            """
            self.value += by
            self.curve.append(min(self.value, 3) / 3)
            return str(self.value)

    tokens = tiny_llm.tokenizer()
    tokens.chat_template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text()
    reward = Recorded(lambda row: list(row["environment"].curve), 4)
    trainer = GRPOTrainer(
        model=tiny_llm.model(tokens),
        reward_funcs=reward,
        args=GRPOConfig(
            **tiny_llm.quiet(tmp_path),
            max_steps=2,
            num_generations=4,
            per_device_train_batch_size=4,
            max_completion_length=256,
            scale_rewards="none",
        ),  # fmt: skip
        train_dataset=Dataset.from_list(
            [{"prompt": [{"role": "user", "content": f"Count {n}"}], "start": 0} for n in range(4)]
        ),
        processing_class=tokens,
        environment_factory=Counter,
    )
    generate = trainer._generate_single_turn
    calls = 0

    def with_tool_calls(prompt_ids: Any, *rest: Any, **options: Any) -> Any:
        """Random weights never call a tool: let some completions be a call of it."""
        nonlocal calls
        ids, logprobs = generate(prompt_ids, *rest, **options)
        for row in range(len(ids)):
            calls += 1
            if calls % 3:
                call = json.dumps({"name": "count", "arguments": {"by": calls % 4}})
                text = f"<tool_call>\n{call}\n</tool_call><|im_end|>"
                ids[row] = tokens(text)["input_ids"]
                if logprobs is not None:
                    logprobs[row] = [-1.0] * len(ids[row])
        return ids, logprobs

    trainer._generate_single_turn = with_tool_calls
    trainer.train()
    reward.check()
    assert any(trace is not None and trace["returns"] for _, traces, _ in reward.calls for trace in traces)


def two_processes(folder: Path, batch: int, mode: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
               str(HERE / "grpo_worker.py"), str(folder), str(batch), mode]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE)]), "OMP_NUM_THREADS": "1",
                   "CUDA_VISIBLE_DEVICES": ""}  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.slow
def test_groups_split_over_two_processes_are_gathered(offline: None, tmp_path: Path) -> None:
    """Two completions per process and groups of four: each process holds half of the same group."""
    ranks = two_processes(tmp_path, 2, "gather")
    assert [rank["outcome"] for rank in ranks] == ["trained"] * 2
    assert [rank["world"] for rank in ranks] == [2, 2]
    calls = list(zip(ranks[0]["calls"], ranks[1]["calls"], strict=True))
    assert len(calls) == 20
    for first, second in calls:
        assert len(set(first["prompts"] + second["prompts"])) == 1
        assert len(first["prompts"]) == len(second["prompts"]) == 2
        check(first["rewards"] + second["rewards"], by_hand(first["traces"] + second["traces"]))
    # What a process alone would have computed is something else.
    alone = [by_hand(first["traces"]) for first, _ in calls]
    assert any(
        a != pytest.approx(first["rewards"]) for a, (first, _) in zip(alone, calls, strict=True) if None not in a
    )
    assert ranks[0]["logs"]


@pytest.mark.slow
def test_groups_split_over_two_processes_are_refused_without_gathering(offline: None, tmp_path: Path) -> None:
    ranks = two_processes(tmp_path, 2, "alone")
    for rank in ranks:
        assert "2 completions do not make groups of 4" in rank["outcome"]
        assert "gather=True" in rank["outcome"]


# ------------------------------------------------------------------------------------------------- options of training


def test_a_weight_that_changes_with_the_step() -> None:
    from types import SimpleNamespace

    reward = PreferenceReward("trace", 2, weight=lambda step: 0.4 if step < 10 else 0.1)
    for step, value in ((0, 1.4), (9, 1.4), (10, 1.1)):
        state = SimpleNamespace(global_step=step)
        assert reward(["a"] * 2, [""] * 2, trace=[[1.0], [0.0]], trainer_state=state)[0] == pytest.approx(value)
    with pytest.raises(tp.UsageError, match="needs trainer_state"):
        reward(["a"] * 2, [""] * 2, trace=[[1.0], [0.0]])
    with pytest.raises(tp.UsageError, match="outscore"):
        PreferenceReward("trace", 2, weight=lambda step: 0.5)


def test_an_evaluation_with_another_number_of_generations() -> None:
    traces = [[1.0], [0.0]] * 4
    wanted = PreferenceReward("trace", 2)(["a"] * 2 + ["b"] * 2, [""] * 4, trace=traces[:4])
    reward = PreferenceReward("trace", 4, eval_group_size=2)
    assert reward(["a"] * 2 + ["b"] * 2, [""] * 4, trace=traces[:4]) == wanted
    four = PreferenceReward("trace", 4)
    assert reward(["a"] * 4 + ["b"] * 4, [""] * 8, trace=traces) == four(["a"] * 4 + ["b"] * 4, [""] * 8, trace=traces)
    larger = PreferenceReward("trace", 2, eval_group_size=4)
    assert larger(["a"] * 4, [""] * 4, trace=traces[:4]) == four(["a"] * 4, [""] * 4, trace=traces[:4])
    alone = PreferenceReward("trace", 4, eval_group_size=1)
    assert alone(["a", "b", "c"], [""] * 3, trace=[[1.0], [0.5], None]) == [1.0, 0.0, None]
    with pytest.raises(tp.UsageError, match="give eval_group_size"):
        four(["a"] * 2 + ["b"] * 2, [""] * 4, trace=traces[:4])


def test_other_columns_of_one_prompt_are_noticed_once() -> None:
    reward = PreferenceReward("trace", 2)
    columns = {"seed": [1, 2, 3, 3], "answer": ["x"] * 4, "trace": [[1.0], [0.5]] * 2, "notes": [{"a": 1}, {}, {}, {}]}
    with pytest.warns(tp.TorchPrefWarning, match="differ in seed: they are compared as runs of one task"):
        reward(["a"] * 2 + ["b"] * 2, [""] * 4, **columns)
    reward(["a"] * 2 + ["b"] * 2, [""] * 4, **columns)


def test_a_row_says_whether_it_was_cut() -> None:
    class Tokens:
        eos_token_id = 2

    seen: list[bool] = []
    reward = PreferenceReward(lambda row: seen.append(row["truncated"]) or [1.0], 2, tokenizer=Tokens())
    reward(["p", "p"], ["", ""], [[5, 2], [5, 5]])
    assert seen == [False, True]


# ------------------------------------------------------------------------------------------------ an agent, fifty steps


@pytest.mark.slow
@trainer_warnings
def test_fifty_steps_with_tools(offline: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of the page; some batches hold no tool call, no success, or completions that were cut."""
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    import torch
    import trl
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from rl import tiny_llm
    from rl.test_docs import example

    tokens = tiny_llm.tokenizer()
    tokens.chat_template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text()
    page: dict[str, Any] = {"__name__": "example", "tokenizer": tokens}
    exec(example("agent"), page)
    reward = page["reward"]
    calls: list[tuple[list[Any], list[float | None], dict[str, float]]] = []

    class Watched(PreferenceReward):
        def __call__(self, prompts: Any, completions: Any, completion_ids: Any = None, **rest: Any) -> Any:
            logged: dict[str, float] = {}
            log = rest.pop("log_metric")

            def both(name: str, value: float) -> None:
                logged[name] = value
                log(name, value)

            values = super().__call__(prompts, completions, completion_ids, log_metric=both, **rest)
            traces = [
                page["trace"]({"completion": c, "completion_ids": i, "environment": e})
                for c, i, e in zip(completions, completion_ids, rest["environments"], strict=True)
            ]
            calls.append((traces, values, logged))
            return values

    watched = Watched(reward.trace, reward.group_size, tokenizer=tokens, clock=reward.options["clock"])
    trainer = GRPOTrainer(
        model=tiny_llm.model(tokens),
        reward_funcs=watched,
        args=GRPOConfig(
            **tiny_llm.quiet(tmp_path),
            max_steps=50,
            learning_rate=1e-3,
            num_generations=4,
            per_device_train_batch_size=4,
            max_completion_length=260,
            scale_rewards="none",
        ),
        train_dataset=Dataset.from_list(
            [{"prompt": [{"role": "user", "content": f"Open the door, {n}"}], "steps": 1} for n in range(4)]
        ),
        processing_class=tokens,
        environment_factory=page["Door"],
    )
    rounds = 0

    def acting(prompt_ids: Any, *rest: Any, **options: Any) -> Any:
        """Random weights never call a tool. Every fifth batch does not either, and some completions are cut."""
        nonlocal rounds
        generation = torch.Generator().manual_seed(rounds)
        rounds += 1
        ids = []
        for _ in prompt_ids:
            choice = int(torch.randint(0, 7, (1,), generator=generation))
            name = {0: "walk", 1: "walk", 2: "open", 3: "open", 4: "fly"}.get(choice)
            if len(calls) % 5 == 4:
                name = None
            text = "hm" if name is None else f'<tool_call>\n{{"name": "{name}", "arguments": {{}}}}\n</tool_call>'
            ids.append(tokens(text)["input_ids"] + ([] if choice == 5 else tokens("<|im_end|>")["input_ids"]))
        return ids, None

    trainer._generate_single_turn = acting
    trainer.train()
    assert trainer.state.global_step == 50 and len(calls) == 50
    for traces, values, logged in calls:
        found = [Trace.of(trace) for trace in traces]
        assert all(value == value for value in values if value is not None)
        solved = [trace for trace in found if trace is not None and trace.returns and trace.returns[-1] >= 1]
        assert logged["preference/success"] == pytest.approx(len(solved) / 4)
        assert ("preference/time" in logged) == bool(solved)
        assert logged["preference/tied_groups"] == float(len(set(values)) == 1)
        assert all((value or 0) > 0.5 for trace, value in zip(found, values, strict=True) if trace in solved)
    assert any(not any(Trace.of(t).returns for t in traces) for traces, _, _ in calls), "no batch without a tool call"
    assert any(logged["preference/success"] == 0 for _, _, logged in calls)
    assert any(logged["preference/success"] > 0 for _, _, logged in calls)
    assert any(Trace.of(t).truncated for traces, _, _ in calls for t in traces)
    assert any(len(set(values)) > 1 for _, values, _ in calls)
