"""In verifiers itself: ``make test-trainers``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

vf = pytest.importorskip(
    "verifiers.v1", reason="needs verifiers, which has an environment of its own: make test-trainers"
)
pytestmark = pytest.mark.filterwarnings("ignore")

CURVES = [[0.0, 0.5, 1.0], [0.5, 1.0], [0.5], []]


def trace(curve: Any) -> Any:
    """A trace as verifiers makes it, with what its task put into ``info``."""
    from verifiers.v1.trace import AgentInfo, Trace, TraceTask

    fields = {name: field for name, field in Trace.model_fields.items() if not field.is_required()}
    made = Trace.model_construct(
        **{name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    )
    made.agent = AgentInfo.model_construct(trainable=True, name="agent")
    made.task = TraceTask.model_construct(type="task")
    made.info = {"curve": curve}
    made.rewards, made.metrics = {}, {}
    return made


def test_finalize_records_the_reward_of_every_trace() -> None:
    from types import SimpleNamespace

    from verifiers.v1.envs.best_of_n.env import BestOfNEnv

    from torchpref.rl import pad_traces, preference_rewards
    from torchpref.rl.integrations.verifiers import prefer

    class Preferred(BestOfNEnv):
        async def finalize(self, task: Any, episode: Any) -> None:
            prefer(episode)
            await super().finalize(task, episode)

    traces = [trace(curve) for curve in CURVES]
    env = Preferred.__new__(Preferred)
    env.config = SimpleNamespace(threshold=1.0)
    asyncio.run(env.finalize(None, SimpleNamespace(traces=traces)))
    wanted = preference_rewards(**pad_traces(CURVES, 4))[0].tolist()
    assert [one.reward for one in traces] == pytest.approx(wanted)
    assert [one.metrics["best"] for one in traces] == [float(value == max(wanted)) for value in wanted]
