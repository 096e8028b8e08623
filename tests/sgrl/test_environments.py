"""The tables against the real environments, and the rules of an episode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="the environments need the extra sgrl: pip install 'torchpref[sgrl]'")
pytest.importorskip("minigrid", reason="the environments need the extra sgrl: pip install 'torchpref[sgrl]'")

import gymnasium

from torchpref.sgrl.environments import Environment, Player
from torchpref.sgrl.minigrid import DOOR_KEY, FOUR_ROOMS
from torchpref.sgrl.tabular import random_actions
from torchpref.sgrl.taxi import TAXI

KINDS = pytest.mark.parametrize("kind", [TAXI, FOUR_ROOMS, DOOR_KEY], ids=lambda kind: kind.name)


@KINDS
@pytest.mark.parametrize("seed", [0, 1, 7, 23])
def test_table_agrees_with_the_real_environment_step_by_step(kind: Environment, seed: int) -> None:
    task = kind.task(seed)
    env = gymnasium.make(kind.benchmark, **({"max_steps": 5000} if kind is not TAXI else {}))
    total = len(kind.subgoals)
    for run in range(10):
        env.reset(seed=seed)
        state, reached = int(task.starts[0]), 0
        actions = random_actions(f"{seed}/{run}", run / 10, len(kind.actions), 150)
        for drawn in actions:
            assert kind.label(env, reached) == tuple(task.labels[state])
            action = int(task.planner[state] if drawn < 0 else drawn)
            _, reward, terminated, _, _ = env.step(kind.environment_actions[action])
            state = int(task.successors[state, action])
            reached = max(reached, kind.reached(env, terminated, reward))
            assert task.level[state] == reached / total
            assert terminated == (reached == total)
            if terminated:
                break


@KINDS
def test_planner_takes_the_shortest_path(kind: Environment) -> None:
    for seed in range(5):
        task = kind.task(seed)
        run = Player(kind, task, seed, kind.make(500)).play(np.full(500, -1))
        assert run.steps[-1] == task.shortest[0]
        assert run.returns[-1] == 1.0 and not run.truncated


def test_no_random_run_is_shorter_than_the_shortest_path() -> None:
    for seed in range(3):
        task = DOOR_KEY.task(seed)
        player = Player(DOOR_KEY, task, seed, DOOR_KEY.make(100))
        for run in range(30):
            episode = player.play(random_actions(f"shorter/{run}", 0.5, 5, 100))
            assert episode.truncated or episode.steps[-1] >= task.shortest[0]


@KINDS
def test_episode_is_that_of_the_table(kind: Environment) -> None:
    task = kind.task(3)
    player = Player(kind, task, 3, kind.make(60))
    for run in range(40):
        drawn = random_actions(f"episode/{run}", 0.7, len(kind.actions), 60)
        state, level, points = int(task.starts[0]), 0.0, []
        for step, action in enumerate(drawn, start=1):
            state = int(task.successors[state, task.planner[state] if action < 0 else action])
            if task.level[state] > level:
                level = float(task.level[state])
                points.append((step, level))
        if level < 1 and (not points or points[-1][0] < 60):
            points.append((60, level))
        episode = player.play(drawn)
        assert list(zip(episode.steps, episode.returns, strict=True)) == points
        assert episode.truncated == (level < 1)


def _episode(kind: Environment, seed: int, actions: list[str]) -> Any:
    task = kind.task(seed)
    codes = np.array([kind.actions.index(name) for name in actions])
    return Player(kind, task, seed, kind.make(len(codes))).play(codes)


def _path(kind: Environment, seed: int, until: float) -> list[str]:
    """The planner's actions up to a level."""
    task = kind.task(seed)
    state, names = int(task.starts[0]), []
    while task.level[state] < until:
        names.append(kind.actions[task.planner[state]])
        state = int(task.successors[state, task.planner[state]])
    return names


def test_a_passenger_set_down_again_does_not_lower_the_return() -> None:
    fetch = _path(TAXI, 0, 0.5)
    episode = _episode(TAXI, 0, [*fetch, "dropoff", "north", "south"])
    assert episode.returns == (0.5, 0.5)
    assert episode.steps == (len(fetch), len(fetch) + 3)
    assert episode.truncated


def test_a_door_closed_again_does_not_lower_the_return() -> None:
    opened = _path(DOOR_KEY, 0, 2 / 3)
    episode = _episode(DOOR_KEY, 0, [*opened, "toggle", "left"])
    assert episode.returns == (1 / 3, 2 / 3, 2 / 3)
    assert episode.steps[1:] == (len(opened), len(opened) + 2)
    assert episode.truncated


@KINDS
def test_success_is_the_event_and_not_the_end(kind: Environment) -> None:
    """A run stopped one step before its goal has no success, whatever the environment says about being done."""
    path = _path(kind, 2, 1.0)
    whole, short = _episode(kind, 2, path), _episode(kind, 2, path[:-1])
    assert whole.returns[-1] == 1.0 and not whole.truncated
    assert short.returns[-1] < 1.0 and short.truncated
    assert short.steps[-1] == len(path) - 1


def test_nothing_reached_is_one_point_at_the_horizon() -> None:
    episode = _episode(FOUR_ROOMS, 0, ["left"] * 7)
    assert episode.returns == (0.0,) and episode.steps == (7,) and episode.truncated


def test_a_missing_environment_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from torchpref.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(MissingExtraError, match=r"torchpref\[sgrl\]"):
        TAXI.make(10)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "minigrid", None)
    with pytest.raises(MissingExtraError, match=r"torchpref\[sgrl\]"):
        FOUR_ROOMS.make(10)


@KINDS
def test_instances_differ(kind: Environment) -> None:
    seeds = kind.seeds(30)
    assert len(set(seeds)) == 30 and list(seeds) == sorted(seeds) and seeds[:3] == (0, 1, 2)
    env = kind.make(10)
    layouts = set()
    for seed in seeds:
        env.reset(seed=seed)
        layouts.add(kind.layout(env))
    assert len(layouts) == 30
