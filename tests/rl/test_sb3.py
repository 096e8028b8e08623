"""CompareWithReference in Stable-Baselines3's own PPO."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import torchpref as tp

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra sb3")
stable_baselines3 = pytest.importorskip("stable_baselines3", reason="needs the extra sb3")
pytestmark = pytest.mark.filterwarnings("ignore")  # its dependencies announce their own future

import numpy as np  # noqa: E402

from torchpref.rl import CompareWithReference, LatchedEvents  # noqa: E402


class Walk(gymnasium.Env):  # type: ignore[misc, name-defined]
    """Walk right from a place that the seed deals, to 5; three steps back at most."""

    observation_space = gymnasium.spaces.Box(-10, 10, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(0, 3))
        return np.array([self.place], np.float32), {}

    def step(self, action: int) -> Any:
        self.place += 1 if action else -1
        done = self.place >= 5
        return np.array([self.place], np.float32), float(done), done, self.place < -3, {}


def make_env() -> Any:
    env = gymnasium.wrappers.TimeLimit(Walk(), 20)
    return LatchedEvents(env, {"four": lambda s: s.env.place >= 4, "five": lambda s: s.terminated})


def to_the_right(observation: Any) -> int:
    return 1


def dawdling(observation: Any) -> int:
    """One step back for every two forward, by place."""
    dawdling.count += 1  # type: ignore[attr-defined]
    return int(dawdling.count % 3 != 0)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_checkpoints_are_compared(tmp_path: Path) -> None:
    callback = CompareWithReference(
        make_env, to_the_right, seeds=range(5), every=256, save_best=tmp_path / "best.zip", verbose=0
    )
    model = stable_baselines3.PPO("MlpPolicy", make_env(), n_steps=128, batch_size=64, device="cpu", seed=0)
    model.learn(1024, callback=callback)
    assert [entry["steps"] for entry in callback.history] == [256, 512, 768, 1024]
    runs = callback.runs
    assert runs.systems[0].startswith("checkpoint-") and runs.systems[-1] == "reference"
    assert runs.instances == tuple(f"seed-{seed:04d}" for seed in range(5))
    prefs = tp.preferences(runs, "rpp")
    for entry, name in zip(callback.history, runs.systems, strict=False):
        assert entry["rpp"] == pytest.approx(prefs[name, "reference"].mean)
        assert entry["rpp"] <= 0  # nothing walks faster than straight on
    assert (tmp_path / "best.zip").exists()
    best = stable_baselines3.PPO.load(tmp_path / "best.zip")
    again = CompareWithReference(make_env, best, seeds=range(5), every=10_000)
    stable_baselines3.PPO("MlpPolicy", make_env(), n_steps=64, batch_size=64, device="cpu", seed=1).learn(
        64, callback=again
    )
    assert len(again.history) == 1  # the last checkpoint is always compared


@pytest.mark.slow
def test_what_it_logs_and_sums_of_rewards() -> None:
    dawdling.count = 0  # type: ignore[attr-defined]
    callback = CompareWithReference(
        lambda: gymnasium.wrappers.TimeLimit(Walk(), 20), dawdling, seeds=[3, 4], every=64, max_score=1.0, measure="lr"
    )
    model = stable_baselines3.PPO("MlpPolicy", make_env(), n_steps=64, batch_size=64, device="cpu", seed=0)
    logged: dict[str, Any] = {}
    from stable_baselines3.common.logger import KVWriter, Logger

    class Kept(KVWriter):
        def write(self, key_values: dict[str, Any], key_excluded: Any, step: int = 0) -> None:
            logged.update(key_values)

        def close(self) -> None:
            pass

    model.set_logger(Logger(None, [Kept()]))
    model.learn(128, callback=callback)
    assert {"preference/lr", "preference/success"} <= set(logged)
    assert len(callback.history) == 2


def test_time_is_the_mean_over_the_solved() -> None:
    """Without any training: a model that goes straight on from places that the seeds deal."""
    logged: dict[str, float] = {}
    model = SimpleNamespace(
        predict=lambda observation, deterministic: (1, None), logger=SimpleNamespace(record=logged.__setitem__)
    )
    callback = CompareWithReference(make_env, to_the_right, seeds=range(5), every=10)
    callback.model = model  # type: ignore[assignment]
    callback._on_training_start()
    callback.num_timesteps = 9
    assert callback._on_step() and not callback.history
    callback.num_timesteps = 10
    assert callback._on_step()
    walk, steps = Walk(), []
    for seed in range(5):
        walk.reset(seed=seed)
        steps.append(5 - walk.place)
    assert len(set(steps)) > 1
    assert callback.history == [{"steps": 10.0, "rpp": 0.0, "success": 1.0, "time": sum(steps) / 5}]
    assert logged == {"preference/rpp": 0.0, "preference/success": 1.0, "preference/time": sum(steps) / 5}


def test_refusals() -> None:
    with pytest.raises(tp.UsageError, match="seeds"):
        CompareWithReference(make_env, to_the_right, seeds=[], every=5)
    with pytest.raises(tp.UsageError, match="not both"):
        CompareWithReference(make_env, to_the_right, seeds=[1], every=5, key="return", max_score=1.0)
    callback = CompareWithReference(Walk, to_the_right, seeds=[1], every=5)
    callback._env = Walk()
    with pytest.raises(tp.UsageError, match="LatchedEvents"):
        callback._play(to_the_right)
