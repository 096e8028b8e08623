"""Small logs in the schema of each format, and a way to read them.

``LOGS[name]`` writes a log of the format into a folder; each holds a few runs with what is peculiar about the format. Logs of
Inspect and Harbor were written by their own packages (``data/make_inspect.py``, ``data/make_harbor.py``).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torchpref.io.detect import detect_format
from torchpref.io.files.walk import walk
from torchpref.io.logs.runs import settled
from torchpref.io.readers import reader_named

DATA = Path(__file__).parent / "data"
Row = dict[str, Any]


def put(path: Path, content: Any, *, indent: int | None = None) -> Path:
    """Write text, bytes, or anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        text = content if isinstance(content, str) else json.dumps(content, indent=indent)
        path.write_text(text, encoding="utf-8")
    return path


def lines(records: Sequence[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def agentboard(folder: Path) -> None:
    def turns(values: Sequence[float], key: str = "Progress Rate") -> Row:
        return {
            f"Interaction Turn {n}": {"Observation": "o", "Action": "a", key: value} for n, value in enumerate(values)
        }

    records: list[Row] = [
        {
            "id": 0,
            "task_name": "weather",
            "goal": "g",
            "difficulty": "easy",
            "is_done": True,
            "progress_rate": 1.0,
            "grounding_acc": 0.7,
            "score_change_record": [[2, 0.5], [5, 1.0]],
            "trajectory": turns([0, 0, 0.5, 0.5, 0.5, 1.0]),
        },
        {
            "id": 1,
            "task_name": "weather",
            "goal": "g",
            "difficulty": "hard",
            "is_done": False,
            "progress_rate": 0.25,
            "grounding_acc": 0.9,
            "score_change_record": [[0, 0.5], [3, 0.75], [6, 0.25]],
            "trajectory": turns([0.5, 0.5, 0, 0.75, 0.75, 0, 0.25, 0.25]),
        },
        {
            "id": 2,
            "task_name": "weather",
            "goal": "g",
            "difficulty": "hard",
            "is_done": False,
            "progress_rate": 0.0,
            "grounding_acc": 1.0,
            "score_change_record": [],
            "trajectory": turns([0, 0, 0]),
        },
    ]
    put(folder / "alpha/logs/tool-query.jsonl", "".join(json.dumps(record, indent=2) + "\n" for record in records))
    web = {
        "id": 7,
        "task_name": "shop",
        "is_done": 0.0,
        "progress_rate": 0.5,
        "grounding_acc": 1.0,
        "trajectory": turns([0, 0.5, 0.5], "Reward"),
    }
    put(folder / "alpha/logs/webarena.jsonl", json.dumps(web, indent=2))
    text = (
        "[EXP] 0: [success_rate]: False, [progress_rate]: 0.5, [grounding_acc]: 0.8, [score_state]: [(4, 0.5)] \n"
        "[EXP] 1: [success_rate]: True, [progress_rate]: 1.0, [grounding_acc]: 0.8, [score_state]: [(0, 0.25), (8, 1.0)] \n"
    )
    put(folder / "beta/tool-query.txt", text)
    put(
        folder / "beta/all_results.txt",
        json.dumps({"task_name": "tool-query", "success_rate": 0.5, "progress_rate": 0.75, "grounding_acc": 0.8}),
    )


def tales_rows(scores: Sequence[float], moves: Sequence[int], tokens: Sequence[int], most: int = 100) -> list[Row]:
    return [
        {
            "Step": n,
            "Score": score,
            "Max Score": most,
            "Normalized Score": score / most,
            "Moves": move,
            "Observation": "o",
            "Action": "a",
            "Feedback": "f",
            "Prompt": "p" if n % 2 else {"messages": []},
            "Response": "r",
            "Token Usage": used,
        }
        for n, (score, move, used) in enumerate(zip(scores, moves, tokens, strict=True), 1)
    ]


def tales(folder: Path) -> None:
    put(
        folder / "gpt-x/ZorkOne/a0_s20241001.jsonl",
        lines(tales_rows([0, 30, 80, 20, 50], [1, 2, 3, 1, 2], [100, 110, 120, 130, 140])),
    )
    put(folder / "gpt-x/ZorkOne/a0_s20241002_steps100.jsonl", lines(tales_rows([0, 100], [1, 1], [10, 20])))
    new = {"Thinking": None, "Prompt Tokens": 9, "Response Tokens": 1, "Thinking Tokens": 0}
    put(
        folder / "gpt-y/ZorkOne/a1_s20241001_steps100.jsonl",
        lines([row | new for row in tales_rows([10, 10], [2, 3], [10, 10])]),
    )
    summary = {
        "status": "finished",
        "env_name": "ZorkOne",
        "env_params": "a0_s20241001",
        "nb_steps": 5,
        "nb_moves": 5,
        "nb_resets": 1,
        "nb_wins": 0,
        "nb_losts": 1,
        "highscore": 80,
        "max_score": 100,
        "norm_score": 0.8,
        "duration": 12.5,
    }
    put(folder / "gpt-x/ZorkOne/a0_s20241001.json", summary)
    put(folder / "gpt-z/ZorkOne/a0_s20241001_steps100.json", summary | {"highscore": 0, "norm_score": 0.0})


def theagentcompany(folder: Path) -> None:
    def evaluation(parts: Sequence[tuple[float, float]], result: float) -> Row:
        whole = sum(total for total, _ in parts)
        return {
            "checkpoints": [{"total": t, "result": r} for t, r in parts],
            "final_score": {"total": whole, "result": result},
        }

    put(folder / "one/results/eval_ds-sql-image.json", evaluation([(1, 1), (2, 0), (3, 3)], 4))
    put(folder / "one/results/eval_pm-slides-image.json", evaluation([(2, 2)], 2))
    table = (
        "# Evaluation Results Report\n\n## Results per File\n\n"
        "| Filename | Total | Result | Score | Steps | Cost |\n|---|---|---|---|---|---|\n"
        "| pm-slides-image | 2 | 2 | 1.00 ⭐ | 9 | 0.10 |\n| ds-sql-image | 6 | 4 | 0.33 | 99 | 14.70 |\n"
        "| hr-mail-image | 4 | 1 | 0.12 | 100 | 0.00 |\n\n## Summary\n\n**Tasks Evaluated:** 3\n"
    )
    put(folder / "one/README.md", table)
    newer = {"task_id": "ds-sql", "score": 3, "total": 4, "error": None, "timestamp": "2026-06-25T16:57:06+00:00"}
    put(folder / "two/eval_ds-sql.json", newer | evaluation([(2, 2), (2, 1)], 3))


def openhands_index(folder: Path) -> None:
    one = {
        "a": {"cost": 1.5, "resolved": True},
        "b": {"cost": None, "resolved": True},
        "c": {"cost": 0.0, "resolved": False},
        "d": {"cost": 2.5, "resolved": None},
    }
    put(folder / "results/model-1/instance_results/swe-bench.json", one)
    put(folder / "results/model-1/scores.json", [{"benchmark": "swe-bench", "score": 90.0, "metric": "accuracy"}])
    put(
        folder / "results/model-1/metadata.json",
        {"agent_name": "OpenHands", "model": "model-1", "directory_name": "model-1"},
    )
    put(
        folder / "results/model-2/instance_results/swe-bench.json",
        {"a": {"cost": 3.0, "resolved": False}, "e": {"cost": 1.0, "resolved": True}},
    )
    put(folder / "alternative_agents/acp/model-1/instance_results/gaia.json", {"a": {"cost": 4.0, "resolved": True}})


def openhands(folder: Path) -> None:
    def event(number: int, **more: Any) -> Row:
        return {"id": number, "timestamp": f"2026-01-01T10:00:{number:02d}", "source": "agent", **more}

    history = [
        event(0, action="system"),
        event(1, source="user", action="message"),
        event(2, action="run"),
        event(3, observation="run"),
        event(9, action="finish"),
    ]
    metrics = {"accumulated_cost": 0.75, "accumulated_token_usage": {"prompt_tokens": 1000, "completion_tokens": 50}}
    base = {
        "test_result": {"git_patch": "diff"},
        "instruction": "i",
        "metadata": {"llm_config": {"model": "m"}},
        "error": None,
    }
    records = [
        {"instance_id": "x-1", "attempt": 1, **base, "history": history, "metrics": metrics},
        {
            "instance_id": "x-2",
            "attempt": 1,
            **base,
            "history": history[:3],
            "metrics": metrics | {"accumulated_cost": 0.5},
        },
        {
            "instance_id": "x-2",
            "attempt": 2,
            **base,
            "history": history,
            "metrics": metrics | {"accumulated_cost": 1.5},
            "error": "RuntimeError: Agent reached maximum iteration in headless mode",
        },
        {"instance_id": "x-3", "attempt": 1, **base, "history": [], "metrics": {"accumulated_cost": 0.0}},
    ]
    put(folder / "m_maxiter_100/output.jsonl", lines(records))
    put(
        folder / "m_maxiter_100/output.report.json",
        {"total_instances": 3, "resolved_ids": ["x-1"], "unresolved_ids": ["x-2"], "error_ids": []},
    )


def swe_agent(folder: Path) -> None:
    def run(steps: Sequence[float], cost: float, status: str) -> Row:
        return {
            "environment": "swe_main",
            "trajectory": [
                {"action": "ls", "observation": "o", "response": "r", "execution_time": spent} for spent in steps
            ],
            "history": [],
            "info": {
                "exit_status": status,
                "model_stats": {
                    "instance_cost": cost,
                    "tokens_sent": 900,
                    "tokens_received": 100,
                    "api_calls": len(steps) + 1,
                },
            },
        }

    put(folder / "trajectories/run-1/x-1/x-1.traj", run([0.5, 0.25, 1.0], 0.4, "submitted"))
    put(folder / "trajectories/run-1/x-2/x-2.traj", run([1.0], 3.0, "submitted (exit_cost)"))
    put(folder / "trajectories/run-1/x-9/x-9.traj", run([1.0], 3.0, "submitted"))
    put(
        folder / "trajectories/run-1/results.json",
        {"total_instances": 2, "submitted_ids": ["x-1", "x-2"], "resolved_ids": ["x-1"], "unresolved_ids": ["x-2"]},
    )
    messages = [
        {"role": "system", "content": "s", "extra": {"timestamp": 1760000000.0}},
        {"role": "assistant", "content": "a", "extra": {"timestamp": 1760000004.5, "cost": 0.1}},
        {"role": "user", "content": "o", "extra": {"timestamp": 1760000005.0}},
        {"role": "assistant", "content": "a", "extra": {"timestamp": 1760000010.25, "cost": 0.2}},
    ]
    mini = {
        "info": {
            "model_stats": {"instance_cost": 0.3, "api_calls": 2},
            "mini_version": "1.16.0",
            "exit_status": "LimitsExceeded",
            "submission": "",
        },
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": "x-1",
    }
    put(folder / "mini/x-1/x-1.traj.json", mini)
    put(
        folder / "mini/x-1/report.json",
        {"x-1": {"patch_is_None": False, "patch_exists": True, "resolved": True, "tests_status": {}}},
    )


def swebench(folder: Path) -> None:
    def result(name: str, rate: float, details: Mapping[str, tuple[int, float, Any]] | None) -> Row:
        given = {
            id_: {"api_calls": calls, "cost": cost, "resolved": solved}
            for id_, (calls, cost, solved) in (details or {}).items()
        }
        return {
            "name": name,
            "folder": f"2026_{name}",
            "resolved": rate,
            "cost": 1.0,
            "tags": [],
            **({"per_instance_details": given} if details else {}),
        }

    board = [
        result("Alpha", 50.0, {"i-1": (10, 0.5, True), "i-2": (20, 0.25, False)}),
        result("Beta", 74.4, {"i-1": (5, 0.0, True), "i-2": (8, 0.75, False)}),
        result("Gamma", 39.58, None),
    ]
    put(folder / "leaderboards.json", {"leaderboards": [{"name": "bash-only", "results": board}]})


def terminal_trial(
    task: str, name: str, resolved: Any, tests: Mapping[str, str] | None, failure: str = "unset", **more: Any
) -> Row:
    return {
        "trial_name": name,
        "task_id": task,
        "instruction": "i",
        "is_resolved": resolved,
        "failure_mode": failure,
        "parser_results": tests,
        **more,
    }


def terminal_bench(folder: Path) -> None:
    times = {"agent_started_at": "2025-09-24T00:33:00+00:00", "agent_ended_at": "2025-09-24T00:34:30.500000+00:00"}
    results = [
        terminal_trial(
            "maze",
            "maze.1-of-2.r1",
            True,
            {"a": "passed", "b": "passed"},
            "agent_timeout",
            total_input_tokens=900,
            total_output_tokens=100,
            **times,
        ),
        terminal_trial(
            "maze",
            "maze.2-of-2.r1",
            False,
            {"a": "passed", "b": "failed", "c": "failed"},
            total_input_tokens=None,
            total_output_tokens=None,
            **times,
        ),
        terminal_trial("kernel", "kernel.1-of-2.r1", None, None, "unknown_agent_error"),
        terminal_trial("kernel", "kernel.2-of-2.r1", False, None, "agent_timeout"),
    ]
    run = {
        "id": "r",
        "results": results,
        "pass_at_k": {},
        "n_resolved": 1,
        "n_unresolved": 3,
        "resolved_ids": ["maze"],
        "unresolved_ids": ["kernel"],
        "accuracy": 0.25,
    }
    put(folder / "r1/results.json", run, indent=4)
    put(folder / "r1/maze/maze.1-of-2.r1/results.json", results[0], indent=4)
    put(
        folder / "r2/results.json",
        {**run, "results": [terminal_trial("maze", "maze.1-of-1.r2", True, {"a": "passed"})], "accuracy": 1.0},
    )
    put(folder / "r2/run_metadata.json", {"run_id": "r2", "agent_name": "terminus", "model_name": "acme/m-1"})


def harbor(folder: Path) -> None:
    shutil.copytree(DATA / "harbor", folder, dirs_exist_ok=True)


def atif(folder: Path) -> None:
    source = DATA / "harbor/weather__aaa/agent/trajectory.json"
    put(folder / "weather__aaa/agent/trajectory.json", source.read_text())
    put(folder / "weather__bbb/agent/trajectory.json", source.read_text().replace("weather__aaa", "other"))
    put(folder / "report.json", {"resolved_ids": ["weather__aaa"], "unresolved_ids": ["weather__bbb"]})


def inspect_ai(folder: Path) -> None:
    for name in ("toy.eval", "limited.eval", "older.json"):
        put(folder / name, (DATA / name).read_bytes())


def tau2(folder: Path) -> None:
    def message(role: str, number: int, calls: list[Row] | None = None, tokens: int | None = None) -> Row:
        usage = {"prompt_tokens": tokens, "completion_tokens": 10} if tokens else None
        return {
            "role": role,
            "content": "c",
            "tool_calls": calls,
            "turn_idx": number,
            "timestamp": f"2025-10-31T07:35:{number:02d}",
            "cost": 0.0,
            "usage": usage,
        }

    def call(name: str, **arguments: Any) -> Row:
        return {"id": "1", "name": name, "arguments": arguments}

    def check(name: str, match: bool, **arguments: Any) -> Row:
        action = {
            "action_id": "1",
            "requestor": "assistant",
            "name": name,
            "arguments": arguments,
            "info": None,
            "compare_args": None,
        }
        return {"action": action, "action_match": match, "action_reward": float(match)}

    messages = [
        message("assistant", 0),
        message("user", 1),
        message("assistant", 2, [call("find", id=1)], 100),
        message("tool", 3),
        message("assistant", 4, [call("book", id=2), call("pay", sum=3)], 200),
    ]
    checks = [check("find", True, id=1), check("book", True, id=2), check("cancel", False)]
    info = {"reward": 1.0, "action_checks": checks, "reward_breakdown": {"DB": 1.0}, "reward_basis": ["DB"]}
    base = {
        "id": "s1",
        "task_id": "3",
        "timestamp": "t",
        "start_time": "2025-10-31T07:35:00",
        "end_time": "2025-10-31T07:36:00",
        "duration": 59.5,
        "termination_reason": "user_stop",
        "agent_cost": 0.125,
        "user_cost": 0.5,
        "reward_info": info,
        "messages": messages,
        "trial": 0,
        "seed": 1,
    }
    simulations = [
        base,
        base
        | {
            "id": "s2",
            "trial": 1,
            "agent_cost": None,
            "duration": 0.0,
            "reward_info": info | {"reward": 0.0},
            "termination_reason": "max_steps",
        },
        base | {"id": "s3", "task_id": "4", "reward_info": None},
    ]
    settings = {
        "num_trials": 2,
        "max_steps": 200,
        "user_info": {"llm": "u"},
        "agent_info": {"implementation": "llm_agent", "llm": "m-1", "llm_args": {}},
        "environment_info": {"domain_name": "airline", "policy": "p"},
    }
    put(
        folder / "results.json",
        {"timestamp": "t", "info": settings, "tasks": [{"id": "3"}], "simulations": simulations},
    )
    put(
        folder / "split/results.json",
        {"timestamp": "t", "info": settings | {"agent_info": {"implementation": "solo", "llm": "m-2"}}, "tasks": []},
    )
    put(folder / "split/simulations/s1.json", base)


def tau_bench(folder: Path) -> None:
    traj = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "a"},
        {"role": "tool", "content": "t"},
        {"role": "assistant", "content": "a"},
    ]
    records = [
        {"task_id": 0, "reward": 1.0, "info": {"task": {}}, "traj": traj, "trial": 0},
        {"task_id": 0, "reward": 0.0, "info": {"task": {}}, "traj": traj[:3], "trial": 1},
        {"task_id": 1, "reward": None, "info": {"error": "x"}, "traj": [], "trial": 0},
    ]
    put(folder / "tool-calling-m-1.json", records, indent=2)


def intercode_run(
    rewards: Sequence[float], task: int, most: int | None = 10, dataset: str = "./data/nl2bash/nl2bash_fs_1.json"
) -> Row:
    summary = {
        "max_reward": max(rewards, default=0),
        "max_reward_idx": 0,
        **({"turns_taken": len(rewards), "turns_max": most} if most else {}),
    }
    history = {
        "actions": ["a"] * len(rewards),
        "observations": ["o"] * len(rewards),
        "rewards": list(rewards),
        "valid_action": [True] * len(rewards),
    }
    return {
        "environment": "ic_bash",
        "dataset": dataset,
        "task_id": task,
        "query": "q",
        "turn_history": history,
        "summary": summary,
    }


def intercode(folder: Path) -> None:
    one = {
        "0": intercode_run([0.67, 0.5, 1.0], 0),
        "1": intercode_run([0.67] * 10, 1),
        "2": intercode_run([-0.5, 0.25], 2),
        "3": intercode_run([0.67] * 11, 3),
    }
    put(folder / "ic_bash_multiturn_10_turns_fs_1.json", one)
    other = "./data/nl2bash/nl2bash_fs_2.json"
    put(folder / "ic_bash_multiturn_10_turns_fs_2.json", {"0": intercode_run([1.0], 0, dataset=other)})
    put(
        folder / "ic_bash_plan_solve.json",
        {
            "meta": {"env": "bash", "seed": None},
            "logs": {"0": intercode_run([0, 0, 1.0, 1.0], 0, None) | {"hardness": "easy"}},
        },
    )


def minari(folder: Path) -> None:
    import h5py

    folder.mkdir(parents=True, exist_ok=True)
    with h5py.File(folder / "main_data.hdf5", "w") as file:
        file.attrs["dataset_id"] = "toy/demo-v0"
        for number, (rewards, ended, cut, success) in enumerate(
            [([0, 0.5, 0, 0.5], True, False, [0, 0, 0, 0, 1]), ([0, 0.25, 0], False, True, [0, 0, 0, 0])]
        ):
            group = file.create_group(f"episode_{number}")
            group.attrs["seed"] = 100 + number
            length = len(rewards)
            group["rewards"] = np.asarray(rewards, dtype=np.float64)
            group["terminations"] = np.asarray([False] * (length - 1) + [ended])
            group["truncations"] = np.asarray([False] * (length - 1) + [cut])
            group["observations"] = np.zeros((length + 1, 2))
            group["actions"] = np.zeros(length)
            group["infos/success"] = np.asarray(success, dtype=bool)


def episodes(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    returns = np.asarray([[[0.0, 0.5, 1.0], [0.25, 0.25, 0.25]], [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]])
    lengths = np.asarray([[3, 2], [3, 1]])
    seconds = np.cumsum(np.ones_like(returns), axis=-1) * 1.5
    np.savez(
        folder / "batch.npz",
        returns=returns,
        lengths=lengths,
        seconds=seconds,
        systems=np.asarray(["A", "B"]),
        instances=np.asarray(["x", "y"]),
        truncated=np.asarray([[False, True], [True, False]]),
    )


def swebench_reports(folder: Path) -> None:
    summary = {"submitted_ids": ["p-0", "p-1", "p-2", "p-3"], "resolved_ids": ["p-0"], "unresolved_ids": ["p-1"]}
    put(folder / "alpha.run1.json", {**summary, "empty_patch_ids": ["p-2"], "error_ids": ["p-3"]}, indent=4)
    put(folder / "gpt-4.1.run1.json", {"submitted_ids": ["p-0"], "resolved_ids": [], "unresolved_ids": ["p-0"]})
    tests = {"FAIL_TO_PASS": {"success": ["a"], "failure": ["b"]}, "PASS_TO_PASS": {"success": [], "failure": []}}
    one = {"patch_is_None": False, "patch_exists": True, "resolved": False, "tests_status": tests}
    put(folder / "run2/beta/p-0/report.json", {"p-0": one})


def verifiers(folder: Path) -> None:
    def rollout(example: int, reward: float | None, turns: int, **more: Any) -> Row:
        return {
            "example_id": example, "task": "default", "prompt": [{"role": "user", "content": f"q{example}"}],
            "reward": reward, "error": None, "generation_ms": 1500.0, "turns": turns, "prompt_tokens": 100,
            "completion_tokens": 20, **more,
        }  # fmt: skip

    for model, rewards in (("m1", (1.0, 0.5)), ("m2", (0.0, 1.0))):
        where = folder / f"env--{model}/aaa"
        put(where / "results.jsonl", lines([rollout(0, rewards[0], 2), rollout(0, rewards[1], 3), rollout(1, 1.0, 4)]))
        put(where / "metadata.json", {"env_id": "env", "model": model, "num_examples": 2, "sampling_args": {}})


def promptfoo(folder: Path) -> None:
    def result(provider: str, number: int, success: bool, reason: int = 0) -> Row:
        return {
            "provider": {"id": provider, "label": ""}, "prompt": {"label": "p", "raw": "q"}, "vars": {"topic": f"t{number}"},
            "testIdx": number, "promptIdx": 0, "success": success, "score": float(success), "latencyMs": 1250, "cost": 0.25,
            "failureReason": reason, "response": {"output": "o", "tokenUsage": {"total": 30}}, "testCase": {"vars": {}},
        }  # fmt: skip

    results = [
        result("x:m1", 0, True),
        result("x:m1", 1, False, 1),
        result("x:m2", 0, False, 2),
        result("x:m2", 1, True),
    ]
    put(
        folder / "output.json",
        {"evalId": "e", "results": {"version": 3, "results": results, "stats": {}}, "config": {}},
    )


LOGS: dict[str, Callable[[Path], None]] = {
    "agentboard": agentboard,
    "tales": tales,
    "theagentcompany": theagentcompany,
    "openhands-index": openhands_index,
    "openhands": openhands,
    "swe-agent": swe_agent,
    "swebench-reports": swebench_reports,
    "verifiers": verifiers,
    "promptfoo": promptfoo,
    "swebench": swebench,
    "terminal-bench": terminal_bench,
    "harbor": harbor,
    "atif": atif,
    "inspect": inspect_ai,
    "tau2": tau2,
    "tau-bench": tau_bench,
    "intercode": intercode,
    "minari": minari,
    "episodes": episodes,
}


class Read:
    """What a reader made of files: its rows by system, benchmark, instance and trial, and its findings by kind."""

    def __init__(self, path: Path | Sequence[Path], format: str = "auto", **options: Any) -> None:
        found = detect_format(walk(path))
        reader = found.reader if format == "auto" else reader_named(format)
        assert reader is not None, "no format was recognised"
        self.name = reader.name
        tidy = settled(reader.read(found.sources, options))
        self.frame = tidy.frame.drop("__place__", strict=False)
        self.findings = {finding.kind: finding for finding in (*found.findings, *tidy.findings)}
        self.rows = {
            (row["system"], row.get("benchmark", ""), row["instance"], row.get("trial", 0)): row
            for row in tidy.frame.iter_rows(named=True)
        }

    def row(self, system: str, instance: str, trial: int = 0, benchmark: str = "") -> Row:
        return self.rows[(system, benchmark, instance, trial)]

    def cells(self, system: str, instance: str, *columns: str, trial: int = 0, benchmark: str = "") -> tuple[Any, ...]:
        row = self.row(system, instance, trial, benchmark)
        return tuple(row.get(column) for column in columns)

    @property
    def systems(self) -> set[str]:
        return set(self.frame["system"])


def log(name: str, folder: Path) -> Path:
    """The log of a format, written into a folder of its own."""
    path = folder / "log"
    path.mkdir(parents=True, exist_ok=True)
    LOGS[name](path)
    return path
