"""Write the Harbor trials of this folder with Harbor's own models: python make_harbor.py FOLDER (needs harbor, Python 3.12).

Written with harbor 0.26.0. ``weather__aaa``: half a reward, with a trajectory. ``weather__bbb``: another trial of it, stopped
by the agent's time limit. ``build__ccc``: no verifier result. ``chain__ddd``: three steps, the trial's reward their mean.
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harbor.models.agent.context import AgentContext
from harbor.models.task.id import LocalTaskId
from harbor.models.trajectories import Agent, FinalMetrics, Metrics, Step, Trajectory
from harbor.models.trial.config import AgentConfig, TaskConfig, TrialConfig
from harbor.models.trial.result import AgentInfo, ExceptionInfo, ModelInfo, StepResult, TimingInfo, TrialResult
from harbor.models.verifier.result import VerifierResult

START = datetime(2026, 1, 1, 10, 0, 0, tzinfo=UTC)


def timing(start: float, end: float) -> TimingInfo:
    return TimingInfo(started_at=START + timedelta(seconds=start), finished_at=START + timedelta(seconds=end))


def used(tokens: int, cost: float) -> AgentContext:
    return AgentContext(n_input_tokens=tokens, n_cache_tokens=tokens // 2, n_output_tokens=tokens // 10, cost_usd=cost)


def trial(folder: Path, name: str, **fields) -> Path:
    task = name.split("__")[0]
    result = TrialResult(
        task_name=task,
        trial_name=name,
        trial_uri=f"file:///trials/{name}",
        task_id=LocalTaskId(path=Path(f"tasks/{task}")),
        task_checksum="0" * 64,
        source="toy-bench",
        config=TrialConfig(
            task=TaskConfig(path=Path(f"tasks/{task}")), trial_name=name, agent=AgentConfig(name="oracle")
        ),
        agent_info=AgentInfo(name="oracle", version="1.0", model_info=ModelInfo(name="m-1", provider="acme")),
        started_at=START,
        finished_at=START + timedelta(seconds=100),
        **fields,
    )
    path = folder / "harbor" / name
    path.mkdir(parents=True, exist_ok=True)
    (path / "result.json").write_text(result.model_dump_json(indent=2))
    TrialResult.model_validate_json((path / "result.json").read_text())
    return path


def error(kind: str) -> ExceptionInfo:
    return ExceptionInfo(exception_type=kind, exception_message="x", exception_traceback="", occurred_at=START)


def step(number: int, reward: float, start: float, end: float) -> StepResult:
    return StepResult(
        step_name=f"step-{number}",
        agent_result=used(100 * number, 0.5),
        verifier_result=VerifierResult(rewards={"reward": reward}),
        agent_execution=timing(start, end),
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    half = {"verifier_result": VerifierResult(rewards={"reward": 0.5}), "agent_result": used(1000, 0.25)}
    first = trial(folder, "weather__aaa", agent_execution=timing(10, 40), **half)
    trial(folder, "weather__bbb", agent_execution=timing(5, 65), exception_info=error("AgentTimeoutError"), **half)
    trial(folder, "build__ccc", agent_execution=timing(5, 6), exception_info=error("RuntimeError"))
    steps = [step(1, 1.0, 0, 10), step(2, 0.0, 20, 25), step(3, 1.0, 30, 45)]
    mean = VerifierResult(rewards={"reward": 2 / 3})
    trial(folder, "chain__ddd", verifier_result=mean, step_results=steps)
    trajectory = Trajectory(
        session_id="weather__aaa",
        agent=Agent(name="oracle", version="1.0", model_name="m-1"),
        steps=[
            Step(step_id=1, timestamp="2026-01-01T10:00:10Z", source="user", message="Do it."),
            Step(step_id=2, timestamp="2026-01-01T10:00:12Z", source="agent", message="old", is_copied_context=True),
            Step(
                step_id=3,
                timestamp="2026-01-01T10:00:20Z",
                source="agent",
                message="a",
                metrics=Metrics(prompt_tokens=400, completion_tokens=40, cached_tokens=10, cost_usd=0.1),
            ),
            Step(
                step_id=4,
                timestamp="2026-01-01T10:00:39.500000Z",
                source="agent",
                message="b",
                metrics=Metrics(prompt_tokens=600, completion_tokens=60, cost_usd=0.15),
            ),
        ],
        final_metrics=FinalMetrics(total_steps=4),
    )
    (first / "agent").mkdir(exist_ok=True)
    (first / "agent" / "trajectory.json").write_text(json.dumps(trajectory.to_json_dict(), indent=2))
