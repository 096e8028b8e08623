"""Tables of deterministic tasks, on tasks small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from torchpref.sgrl.tabular import (
    UNREACHABLE,
    TabularTask,
    concatenate,
    noise,
    random_actions,
    steps_to,
)


def chain(successors: list[list[int]], level: list[float], starts: tuple[int, ...] = (0,)) -> TabularTask:
    states, actions = len(successors), len(successors[0])
    return TabularTask(
        successors=np.array(successors),
        level=np.array(level),
        starts=np.array(starts),
        instances=tuple(f"i{k}" for k in range(len(starts))),
        actions=tuple(f"a{k}" for k in range(actions)),
        environment_actions=tuple(range(actions)),
        labels=np.arange(states)[:, None],
        features=("state",),
    )


def corridor() -> TabularTask:
    """0 - 1 - 2 - 3: left, right; half the return at 2 (latched: no way back to 1), success at 3."""
    return chain([[0, 1], [0, 2], [2, 3], [3, 3]], [0, 0, 0.5, 1])


def test_distances_levels_and_shortest_path() -> None:
    task = corridor()
    assert task.distance.tolist() == [3, 2, 1, 0]
    assert task.subgoal_distance.tolist() == [2, 1, 1, 0]
    assert task.levels.tolist() == [0.5, 1.0]
    assert task.shortest.tolist() == [3]
    assert task.planner[:3].tolist() == [1, 1, 1]


def test_policy_mixes_planner_and_chance() -> None:
    expected = [[0.1, 0.9], [0.1, 0.9], [0.1, 0.9], [0.9, 0.1]]
    np.testing.assert_allclose(corridor().policy(0.2), expected, rtol=1e-15)


def test_state_without_a_way_to_the_target() -> None:
    assert steps_to(np.array([[0, 0], [0, 2], [2, 2]]), np.array([False, False, True])).tolist() == [
        UNREACHABLE,
        1,
        0,
    ]


def test_planner_prefers_the_nearer_subgoal_among_shortest_ways() -> None:
    # From 0 both ways to 4 take three steps; the one by 2 earns the subgoal one step sooner.
    task = chain([[1, 2], [3, 3], [5, 5], [6, 6], [4, 4], [4, 4], [4, 4]], [0, 0, 0.5, 0, 1, 0.5, 0.5])
    assert task.distance[0] == 3
    assert task.planner[0] == 1


def test_a_level_that_falls_is_refused() -> None:
    with pytest.raises(ValueError, match="latched"):
        chain([[1], [2], [2]], [0, 0.5, 0])


def test_success_must_be_absorbing() -> None:
    with pytest.raises(ValueError, match="absorbing"):
        chain([[1], [2], [2]], [0, 1, 1])


def test_shapes_must_fit() -> None:
    task = corridor()
    with pytest.raises(ValueError, match="columns of successors"):
        TabularTask(task.successors, task.level, task.starts, ("i",), ("a",), (0,), task.labels, ("state",))
    with pytest.raises(ValueError, match="4 states"):
        chain([[0, 1], [0, 2], [2, 3], [3, 3]], [0, 0, 1])


def test_rollout_follows_the_actions() -> None:
    task = corridor()
    visited = task.rollout(np.array([[1, 0, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0]]), np.array([0, 0]))
    assert visited.tolist() == [[1, 0, 1, 2, 3, 3], [1, 2, 3, 3, 3, 3]]


def test_concatenated_tasks_do_not_touch() -> None:
    one, two = corridor(), chain([[1, 0], [1, 1]], [0, 1])
    both = concatenate([one, two, one])
    assert both.starts.tolist() == [0, 4, 6]
    assert both.shortest.tolist() == [3, 1, 3]
    actions = np.random.default_rng(0).integers(0, 2, (3, 20))
    visited = both.rollout(actions)
    for row, (task, offset) in enumerate([(one, 0), (two, 4), (one, 6)]):
        assert (visited[row] - offset == task.rollout(actions[row : row + 1])[0]).all()
    assert (both.planner[4:6] == two.planner).all()


def test_concatenated_tasks_must_share_actions() -> None:
    with pytest.raises(ValueError, match="different actions"):
        concatenate([corridor(), chain([[1], [1]], [0, 1])])


def test_noise_depends_on_its_key_alone_and_never_changes() -> None:
    values = noise("demo/planner-eps-0.10/seed-0000/0", 3)
    assert values.shape == (3, 2)
    expected = [0.6045276547877473, 0.02038882926455965]
    np.testing.assert_array_equal(values[0], expected)
    np.testing.assert_array_equal(noise("demo/planner-eps-0.10/seed-0000/0", 2), values[:2])
    assert not np.array_equal(noise("demo/planner-eps-0.10/seed-0000/1", 3), values)


def test_random_actions_are_as_frequent_as_asked() -> None:
    drawn = random_actions("frequency", 0.4, 5, 100_000)
    share = np.array([(drawn == action).mean() for action in range(-1, 5)])
    np.testing.assert_allclose(share, [0.6, *[0.08] * 5], atol=0.006)
    assert (random_actions("never", 0.0, 5, 1000) == -1).all()
    assert (random_actions("always", 1.0, 5, 1000) >= 0).all()
