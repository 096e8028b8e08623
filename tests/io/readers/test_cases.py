"""Kinds of logs that were once read wrongly, small ones of our own in full; the collected cases where they lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reader_logs import Read, log, put, terminal_trial

import torchpref as tp
from torchpref.errors import DataError, UsageError
from torchpref.runs.audit import audit

CASES = Path(__file__).parents[4] / "shared/cases"
collected = pytest.mark.skipif(not CASES.is_dir(), reason="the collected cases are not here (../shared/cases)")


def rates(paths: Any, **options: Any) -> dict[str, tuple[int, float | None]]:
    """Runs and success rate in per cent, by system."""
    found = audit(tp.read(paths, **options))
    return {
        name: (s.runs, None if s.success_rate is None else round(100 * s.success_rate, 1))
        for name, s in found.systems.items()
    }


def kinds(paths: Any, **options: Any) -> set[str]:
    return {finding.kind for finding in audit(tp.read(paths, **options)).findings}


def ends(runs: tp.Trajectories, clock: str) -> dict[str, set[int]]:
    return {name: set(runs.times[clock][:, s].flatten().tolist()) for s, name in enumerate(runs.systems)}


# ------------------------------------------------------------------------------------------------ the collected cases


@collected
def test_three_models_of_one_agent() -> None:
    assert rates(CASES / "01-terminal-bench-three-models-one-system/results") == {
        "Some Agent (20260101_agent_five)": (3, 0.0),
        "Some Agent (20260101_agent_opus)": (3, 100.0),
        "Some Agent (20260101_agent_sonnet)": (3, 33.3),
    }


@collected
def test_a_second_submission_with_the_same_names_of_trials() -> None:
    assert rates(CASES / "02-terminal-bench-second-submission-dropped/results") == {
        "LeadAgent (20260101_agent_coder)": (3, 0.0),
        "LeadAgent (20260101_agent_opus)": (3, 100.0),
    }


@collected
def test_calls_of_the_grader() -> None:
    runs = tp.read(CASES / "03-inspect-judge-calls-counted/logs")
    assert ends(runs, "turns") == {"openai/a": {1}, "openai/b": {2}}
    assert ends(runs, "tokens") == {"openai/a": {100}, "openai/b": {300}}
    assert float(tp.preferences(runs, "lr").mean()[0, 1]) == 1.0


@collected
@pytest.mark.parametrize("form", ["mapping", "text", "folder", "arguments"])
def test_two_versions_of_one_model(form: str) -> None:
    case = CASES / "04-same-model-two-versions-no-name"
    base, new = case / "base", case / "new"
    right = {"base": (3, 66.7), "new": (3, 0.0)}
    if form == "mapping":
        assert rates({"base": base, "new": new}) == right
    elif form == "text":
        assert rates([f"base={base}", f"new={new}"]) == right
    elif form == "folder":
        assert rates([base, new], columns="system=@folder") == right
    else:
        assert rates([base, new]) == {
            'openai/m + react (solver_args={"prompt": "v1"})': (3, 66.7),
            'openai/m + react (solver_args={"prompt": "v2"})': (3, 0.0),
        }


@collected
def test_a_score_that_is_nan_where_others_are_objects() -> None:
    assert rates(CASES / "06-inspect-nan-root-dict-scorer/logs", scorer="m.correct") == {
        "openai/a": (1, 100.0),
        "openai/b": (2, 0.0),
    }


@collected
def test_an_invalidated_sample_is_no_run() -> None:
    logs = CASES / "07-inspect-invalidated-sample/logs"
    assert rates(logs)["openai/a"] == (1, 100.0)
    assert "samples_invalidated" in kinds(logs)


@collected
def test_task_arguments_make_another_task() -> None:
    logs = CASES / "10-inspect-task-args-mixed/logs"
    runs = tp.read(logs)
    assert len(runs.instances) == 6 and "tasks_told_apart" in kinds(logs)
    assert int(runs.present[:, :2].any(-1).all(-1).sum()) == 0  # a ran the easy ones, b the hard ones


@collected
def test_agents_in_a_folder_above() -> None:
    runs = CASES / "13-agent-is-not-the-direct-folder/runs"
    columns = "instance=@file,step=Step,reward=Reward"
    with pytest.raises(DataError, match="system=@folder-1"):
        tp.read(runs, columns=f"system=@folder,{columns}")
    assert rates(runs, columns=f"system=@folder-1,{columns}") == {"agentA": (1, 100.0), "agentB": (1, 100.0)}


@collected
def test_a_crash_of_the_agent_is_its_failure() -> None:
    logs = CASES / "18-agent-failures-excluded/results"
    assert rates(logs) == {"crashing + m": (5, 60.0), "steady + m": (5, 60.0)}
    assert "agent_failures" in kinds(logs)


@collected
@pytest.mark.parametrize(
    ("part", "right"),
    [
        ("run_reports", {"alpha": (5, 60.0), "beta": (5, 40.0)}),
        ("logs", {"alpha": (3, 100.0), "beta": (3, 66.7)}),
        ("experiments", {"2026_a": (3, 66.7), "2026_b": (3, 33.3)}),
    ],
)
def test_evaluation_reports_alone(part: str, right: dict[str, tuple[int, float]]) -> None:
    assert rates(CASES / "15-swebench-evaluation-report-alone" / part) == right


@collected
def test_results_of_verifiers() -> None:
    runs = tp.read(CASES / "16-verifiers-results/evals")
    assert rates(CASES / "16-verifiers-results/evals") == {"m1": (4, 75.0), "m2": (4, 25.0)}
    assert set(runs.clocks) == {"turns", "tokens", "seconds"}


# ------------------------------------------------------------------------------------- the same kinds in other formats


def inspect_log(path: Path, model: str | None, values: list[Any], **more: Any) -> Path:
    """A log of Inspect with a sample per value; ``more`` goes into ``eval``, but for ``samples`` into every sample."""
    extra = more.pop("samples", {})
    scores = [{"id": n, "epoch": 1, "input": f"q{n}", "scores": {"m": {"value": v}}} for n, v in enumerate(values)]
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "t", "model": model, **more},
        "samples": [{"working_time": 5.0, **score, **extra} for score in scores],
    }
    return put(path, log)


def terminal(path: Path, outcomes: list[bool | None], failure: str = "unset", **meta: Any) -> None:
    trials = [terminal_trial(f"t{n}", f"t{n}.1-of-1", value, None, failure) for n, value in enumerate(outcomes)]
    put(path / "results.json", {"results": trials})
    if meta:
        put(path / "run_metadata.json", {"run_id": path.name, **meta})


def harbor_trial(folder: Path, reward: float | None, **more: Any) -> None:
    trial = {
        "task_name": "t", "trial_name": folder.name, "agent_info": {"name": "a", "model_info": {"name": "m"}},
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
    }  # fmt: skip
    put(folder / "result.json", {**trial, **more})


def test_a_null_model_is_told_apart_by_the_file(tmp_path: Path) -> None:
    inspect_log(tmp_path / "x.json", None, ["C", "C"], solver="react")
    inspect_log(tmp_path / "y.json", None, ["I", "I"], solver="react")
    assert rates(tmp_path) == {"react (x.json)": (2, 100.0), "react (y.json)": (2, 0.0)}


def test_run_folders_of_one_name_in_two_submissions(tmp_path: Path) -> None:
    terminal(tmp_path / "opus/run", [True, True])
    terminal(tmp_path / "five/run", [False, True])
    assert rates(tmp_path) == {"five/run": (2, 50.0), "opus/run": (2, 100.0)}


def test_runs_of_one_submission_are_trials(tmp_path: Path) -> None:
    for agent, value in (("x", True), ("y", False)):
        for run in ("run1", "run2"):
            terminal(tmp_path / agent / run, [value], agent_name="A", model_name=None)
    assert rates(tmp_path) == {"A (x)": (2, 100.0), "A (y)": (2, 0.0)}


def test_versions_and_arguments_of_an_agent(tmp_path: Path) -> None:
    info = {"name": "a", "model_info": {"name": "m"}}
    harbor_trial(tmp_path / "job/t__1", 1.0, agent_info={**info, "version": "1"})
    harbor_trial(tmp_path / "job/t__2", 0.0, agent_info={**info, "version": "2"})
    assert rates(tmp_path) == {"a + m (version=1)": (1, 100.0), "a + m (version=2)": (1, 0.0)}


def test_nothing_tells_two_logs_apart(tmp_path: Path) -> None:
    base = inspect_log(tmp_path / "base/log.json", "m", ["C", "C"])
    new = inspect_log(tmp_path / "new/log.json", "m", ["I", "C"])
    with pytest.raises(DataError) as error:
        tp.read(tmp_path)
    for word in (str(base), str(new), "columns system=@folder", "NAME=PATH", "trial=@folder"):
        assert word in str(error.value)
    assert rates(tmp_path, columns="system=@folder") == {"base": (2, 100.0), "new": (2, 50.0)}
    assert rates(tmp_path, columns="trial=@folder") == {"m": (4, 75.0)}


def test_a_copy_counts_once_and_a_near_copy_is_refused(tmp_path: Path) -> None:
    log = inspect_log(tmp_path / "a.json", "m", ["C", "C"])
    put(tmp_path / "b.json", log.read_text())
    assert rates(tmp_path) == {"m": (2, 100.0)} and "records_repeated" in kinds(tmp_path)
    put(tmp_path / "b.json", log.read_text().replace('"q0"', '"q0"').replace("5.0", "6.0"))
    with pytest.raises(DataError, match=r"a\.json.*trial=@file"):
        tp.read(tmp_path)


def test_one_system_in_several_jobs_is_said(tmp_path: Path) -> None:
    harbor_trial(tmp_path / "job1/t__1", 1.0)
    harbor_trial(tmp_path / "job2/t__2", 0.0)
    found = {f.kind: f for f in tp.read(tmp_path).findings}["systems_in_several_places"]
    assert "job1" in found.examples[0] and "job2" in found.examples[0]


def test_one_name_for_several_systems_is_said(tmp_path: Path) -> None:
    terminal(tmp_path / "all/x", [True])
    terminal(tmp_path / "all/y", [False])
    assert rates({"both": tmp_path / "all"}) == {"both": (2, 50.0)}
    assert "systems_named_as_one" in kinds({"both": tmp_path / "all"})


def test_names_of_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put(Path("model=gpt/r.csv"), "instance,success,steps\na,1,2\n")
    put(Path("x.csv"), "instance,success,steps\na,0,3\n")
    assert tp.read("model=gpt", columns="system=@folder").systems == ("model=gpt",)  # an existing path goes first
    assert tp.read(["old=model=gpt", "new=x.csv"]).systems == ("new", "old")
    with pytest.raises(UsageError, match="nor NAME=PATH"):
        tp.read("old=nothing.csv")
    with pytest.raises(UsageError, match="named twice"):
        tp.read("old=x.csv", columns="system=instance")


@pytest.mark.parametrize("file", ["result", "record", "batch"])
def test_tasks_of_one_id_with_other_inputs(tmp_path: Path, file: str) -> None:
    if file == "result":
        harbor_trial(tmp_path / "job/t__1", 1.0, task_checksum="abc")
        harbor_trial(tmp_path / "job/t__2", 1.0, task_checksum="def")
        assert set(tp.read(tmp_path).instances) == {"t (input abc)", "t (input def)"}
    elif file == "record":
        for name, goal in (("x", "find it"), ("y", "lose it")):
            record = {"id": 0, "goal": goal, "progress_rate": 1.0, "score_change_record": [[0, 1.0]], "trajectory": {}}
            put(tmp_path / name / "logs/t.jsonl", record)
        assert len(tp.read(tmp_path).instances) == 2 and "inputs_differ" in kinds(tmp_path)
    else:
        for name, user in (("x", "user-1"), ("y", "user-2")):
            info = {"agent_info": {"llm": name}, "user_info": {"llm": user}, "environment_info": {"domain_name": "air"}}
            one = {"id": name, "task_id": "0", "trial": 0, "reward_info": {"reward": 1.0}, "messages": []}
            put(tmp_path / f"{name}.json", {"info": info, "tasks": [], "simulations": [one]})
        assert set(tp.read(tmp_path).benchmarks) == {"air (user=user-1)", "air (user=user-2)"}


def test_graders_by_role_and_of_the_agents_own_model(tmp_path: Path) -> None:
    def call(model: str, tokens: int, span: str, role: str | None = None) -> dict[str, Any]:
        return {
            "event": "model",
            "model": model,
            "role": role,
            "span_id": span,
            "output": {"usage": {"total_tokens": tokens}},
        }

    events = [
        {"event": "span_begin", "id": "solve", "type": "solver"},
        call("m", 100, "solve"),
        call("other", 70, "solve", "user"),
        {"event": "span_begin", "id": "scorers", "type": "scorers"},
        {"event": "span_begin", "id": "inner", "parent_id": "scorers", "type": "tool"},
        call("m", 900, "inner"),
    ]
    usage = {"m": {"total_tokens": 1000}, "other": {"total_tokens": 70}}
    inspect_log(tmp_path / "a.json", "m", ["C"], samples={"events": events, "model_usage": usage})
    runs = tp.read(tmp_path)
    assert ends(runs, "turns") == {"m": {1}} and ends(runs, "tokens") == {"m": {100}}


def test_no_calls_recorded_is_not_no_calls(tmp_path: Path) -> None:
    info = {
        "exit_status": "submitted",
        "model_stats": {"instance_cost": 0, "tokens_sent": 0, "tokens_received": 0, "api_calls": 0},
    }
    for name in ("x", "y"):
        put(tmp_path / f"run-1/{name}.traj", {"trajectory": [{"action": "a", "execution_time": 1.0}], "info": info})
    put(tmp_path / "run-1/results.json", {"resolved_ids": ["x"], "unresolved_ids": ["y"]})
    runs = tp.read(tmp_path)
    assert {f.kind: f for f in runs.findings}["calls_contradict_steps"].count == 2
    assert set(runs.times.get("turns", -runs.present.long()).flatten().tolist()) == {-1}


def test_limits_and_crashes_are_failures_and_broken_tests_are_not(tmp_path: Path) -> None:
    terminal(tmp_path / "r", [True, None], "agent_timeout")
    terminal(tmp_path / "s", [True, None], "agent_installation_failed")
    assert rates(tmp_path) == {"r": (2, 50.0), "s": (1, 100.0)}


def test_samples_with_nan_and_words_in_one_log(tmp_path: Path) -> None:
    inspect_log(
        tmp_path / "a.json", "m", [{"ok": 1}, float("nan"), {}, None, "strange", {"ok": float("nan")}, {"ok": 0}]
    )
    assert rates(tmp_path, scorer="m.ok") == {"m": (2, 50.0)}
    assert json.loads((tmp_path / "a.json").read_text())["samples"]


def test_new_formats_by_hand(tmp_path: Path) -> None:
    reports = Read(log("swebench-reports", tmp_path / "a"))
    assert reports.cells("alpha", "p-2", "return") == (0.0,) and reports.cells("alpha", "p-3", "return") == (None,)
    assert reports.cells("beta", "p-0", "return") == (1 / 3,) and "gpt-4.1" in reports.systems
    rollouts = Read(log("verifiers", tmp_path / "b"))
    assert rollouts.cells("m1", "0", "score", "turns", "tokens", "seconds", trial=1, benchmark="env") == (
        0.5,
        3,
        120,
        1.5,
    )
    tests = Read(log("promptfoo", tmp_path / "c"))
    assert tests.cells("x:m1", "0", "success", "seconds", "tokens", "cost") == (1.0, 1.25, 30.0, 0.25)
    assert tests.cells("x:m2", "0", "success") == (None,) and tests.findings["results_with_errors"].count == 1
