"""Return curves out of Gymnasium's vector environments: the same episodes under all three autoreset modes."""

from __future__ import annotations

from typing import Any

import pytest

import torchpref as tp

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra rl")

import numpy as np  # noqa: E402
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv  # noqa: E402

from torchpref.rl import LatchedEvents, RecordReturns, pad_traces, preference_rewards  # noqa: E402

MODES = list(AutoresetMode)


class Line(gymnasium.Env):  # type: ignore[misc, name-defined]
    """Walk to 3 and stay alive: action 1 goes right, 0 goes left. Ends at 3 by itself; may go on past a limit."""

    observation_space = gymnasium.spaces.Box(-10, 10, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> Any:
        self.place += 1 if action else -1
        done = self.place == 3
        return np.array([self.place], np.float32), float(done), done, False, {}


def line(limit: int = 6) -> Any:
    env = gymnasium.wrappers.TimeLimit(Line(), limit)
    return LatchedEvents(
        env, {"one": lambda s: s.env.place >= 1, "two": lambda s: s.env.place >= 2, "three": lambda s: s.terminated}
    )


R, L = 1, 0
#: Actions of two environments, and the episodes that they make: a success; a failure that steps back (latched) and is cut
#: off at 6; a second success of the first.
SCRIPTS = ([[R, R, R], [R, L, R, R, L, R, R][:6]], [[L, R, R, L, L, L], [R, R, R]])
THIRD, TWO = pytest.approx(1 / 3), pytest.approx(2 / 3)


def play(env: Any, mode: Any, scripts: Any) -> list[Any]:
    """Feed each environment its episodes' actions; a step that only resets gets an action that must not matter."""
    queues = [[action for episode in script for action in episode] for script in scripts]
    env.reset(seed=0)
    over = np.zeros(len(scripts), dtype=bool)
    while any(queues):
        actions = []
        for queue, was_over in zip(queues, over, strict=True):
            dummy = was_over and mode == AutoresetMode.NEXT_STEP
            actions.append(R if dummy or not queue else queue.pop(0))
        _, _, terminated, truncated, _ = env.step(np.array(actions))
        over = terminated | truncated
        if mode == AutoresetMode.DISABLED and over.any():
            env.reset(options={"reset_mask": over})
    return env.pop()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["sync", pytest.param("async", marks=pytest.mark.slow)])
def test_episodes_are_the_same_under_every_mode(mode: Any, kind: str) -> None:
    make = SyncVectorEnv if kind == "sync" else AsyncVectorEnv
    env = RecordReturns(make([line, line], autoreset_mode=mode))
    episodes = play(env, mode, SCRIPTS)
    env.close()
    found = {(e.env, e.number): (e.returns, e.terminated, e.truncated) for e in episodes}
    assert found[0, 0] == ((THIRD, TWO, 1.0), True, False)
    assert found[0, 1] == ((THIRD, THIRD, THIRD, TWO, TWO, TWO), False, True)
    assert found[1, 0] == ((0.0, 0.0, THIRD, THIRD, THIRD, THIRD), False, True)
    assert found[1, 1] == ((THIRD, TWO, 1.0), True, False)
    assert env.pop() == []


@pytest.mark.parametrize("mode", MODES)
def test_rewards_summed_instead_of_events(mode: Any) -> None:
    env = RecordReturns(SyncVectorEnv([line, line], autoreset_mode=mode), max_score=1.0)
    episodes = play(env, mode, SCRIPTS)
    found = {(e.env, e.number): e.returns for e in episodes}
    assert found[0, 0] == (0.0, 0.0, 1.0)
    assert found[1, 0] == (0.0,) * 6
    with pytest.raises(tp.DataError, match="max_score"):
        play(RecordReturns(SyncVectorEnv([line, line], autoreset_mode=mode), max_score=0.5), mode, SCRIPTS)


def test_success_at_the_limit_is_no_truncation() -> None:
    """Termination and truncation in one step: the episode ended by itself."""
    env = RecordReturns(SyncVectorEnv([lambda: line(3)], autoreset_mode=AutoresetMode.NEXT_STEP))
    (episode,) = play(env, AutoresetMode.NEXT_STEP, [[[R, R, R]]])
    assert (episode.terminated, episode.truncated) == (True, False)
    (cut,) = play(env, AutoresetMode.NEXT_STEP, [[[L, R, R]]])
    assert (cut.terminated, cut.truncated) == (False, True)
    assert cut.trace.truncated


class Endless(gymnasium.vector.VectorEnv):  # type: ignore[misc, name-defined]
    """A vector environment that lets itself be stepped on after the end, which Gymnasium's own refuse."""

    metadata = {"autoreset_mode": AutoresetMode.DISABLED}
    num_envs = 2

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        mask = np.ones(2, bool) if options is None else options["reset_mask"]
        self.count = np.where(mask, 0, getattr(self, "count", np.zeros(2, int)))
        return self.count, {}

    def step(self, actions: Any) -> Any:
        self.count = self.count + 1
        done = self.count >= np.array([3, 5])
        return self.count, done.astype(float), done, np.zeros(2, bool), {}


def test_stepping_past_the_end_does_not_count() -> None:
    env = RecordReturns(Endless(), max_score=1.0)
    env.reset()
    for _ in range(5):
        env.step(np.zeros(2))
    first, second = env.pop()
    assert first.returns == (0.0, 0.0, 1.0)
    assert second.returns == (0.0, 0.0, 0.0, 0.0, 1.0)
    env.reset(options={"reset_mask": np.array([True, False])})
    for _ in range(3):
        env.step(np.zeros(2))
    assert [(e.env, e.number) for e in env.pop()] == [(0, 1)]


def test_a_full_reset_drops_what_is_unfinished() -> None:
    env = RecordReturns(SyncVectorEnv([line, line]))
    env.reset()
    env.step(np.array([R, R]))
    env.reset()
    for _ in range(3):
        env.step(np.array([R, L]))
    (episode,) = env.pop()
    assert episode.returns == (THIRD, TWO, 1.0)


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(tp.DataError, match="LatchedEvents"):
        env = RecordReturns(SyncVectorEnv([Line]))
        env.reset()
        env.step(np.array([R]))
    vector = SyncVectorEnv([line])
    vector.metadata = {}
    with pytest.raises(tp.UsageError, match="autoreset_mode"):
        RecordReturns(vector)
    with pytest.raises(tp.UsageError, match="not both"):
        RecordReturns(SyncVectorEnv([line]), key="return", max_score=1.0)
    with pytest.raises(tp.UsageError, match="sum to 1"):
        LatchedEvents(Line(), {"one": bool}, {"one": 0.5})
    with pytest.raises(tp.UsageError, match="no event"):
        LatchedEvents(Line(), {})


def test_weights_of_events() -> None:
    env = LatchedEvents(
        Line(), {"one": lambda s: s.env.place >= 1, "three": lambda s: s.terminated}, {"one": 0.25, "three": 0.75}
    )
    _, info = env.reset()
    assert info["return"] == 0 and info["events"].tolist() == [False, False]
    _, _, _, _, info = env.step(R)
    assert info["return"] == 0.25
    _, _, _, _, info = env.step(L)
    assert info["return"] == 0.25 and info["events"].tolist() == [True, False]
    for _ in range(3):
        _, _, _, _, info = env.step(R)
    assert info["return"] == 1.0


def test_from_episodes_to_rewards() -> None:
    """The group is the two environments' first episodes."""
    env = RecordReturns(SyncVectorEnv([line, line]))
    episodes = play(env, AutoresetMode.NEXT_STEP, SCRIPTS)
    group = [e.trace for e in sorted(episodes, key=lambda e: (e.number, e.env)) if e.number == 0]
    rewards = preference_rewards(**pad_traces(group, 2))
    assert rewards.tolist() == [[1.49, -0.49]]


@pytest.mark.parametrize("mode", MODES)
def test_real_environments(mode: Any) -> None:
    """Taxi, whose episodes gymnasium cuts off, and DoorKey, which cuts itself off and allows stepping on."""
    taxi = {"aboard": lambda s: (s.env.s // 4) % 5 == 4, "delivered": lambda s: s.terminated}

    def make() -> Any:
        return LatchedEvents(gymnasium.make("Taxi-v4", max_episode_steps=30), taxi)

    env = RecordReturns(SyncVectorEnv([make] * 3, autoreset_mode=mode))
    _run_at_random(env, mode, 130)
    episodes = env.pop()
    assert len(episodes) >= 9
    assert all(len(e.returns) <= 30 and (e.terminated or len(e.returns) == 30) for e in episodes)
    pytest.importorskip("minigrid", reason="needs the extra sgrl")
    door = {
        "key": lambda s: s.env.carrying is not None and s.env.carrying.type == "key",
        "goal": lambda s: s.terminated and s.reward > 0,
    }

    def make_door() -> Any:
        return LatchedEvents(gymnasium.make("MiniGrid-DoorKey-5x5-v0", max_steps=20), door)

    env = RecordReturns(SyncVectorEnv([make_door] * 2, autoreset_mode=mode))
    _run_at_random(env, mode, 90)
    assert all(len(e.returns) <= 20 and e.returns == tuple(sorted(e.returns)) for e in env.pop())


def _run_at_random(env: Any, mode: Any, steps: int) -> None:
    env.reset(seed=1)
    env.action_space.seed(1)
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if mode == AutoresetMode.DISABLED and (terminated | truncated).any():
            env.reset(options={"reset_mask": terminated | truncated})
