"""MiniGrid's FourRooms and DoorKey: walk to a goal, in DoorKey past a door that must be unlocked with a key
first.

Every state is set up in the environment itself and every action stepped once, so the tables are the
environment's own transition function. Observations are not needed and are replaced, which makes stepping
about 30 times faster.

The actions are those that do something in the task: turning and moving, and in DoorKey picking up and
toggling. Without ``drop`` the key cannot be put away, so a DoorKey state is the agent's place and direction
and a phase; a door that was opened can be closed again, but the level it gave stays.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from torchpref.errors import MissingExtraError
from torchpref.sgrl.environments import Environment
from torchpref.sgrl.tabular import IntArray

#: Phases of DoorKey: key on the floor, key in hand and door locked, door open, door closed again.
NO_KEY, KEY, OPEN, CLOSED = range(4)
_KEY_OPENED_GOAL = 3


def make(environment_id: str, horizon: int) -> Any:
    """The environment with a limit of ``horizon`` steps and without observations."""
    try:
        import gymnasium
        import minigrid  # noqa: F401  (registers the environments)
    except ImportError as error:
        raise MissingExtraError(error.name or "minigrid", "sgrl") from error
    env = gymnasium.make(environment_id, max_steps=horizon, disable_env_checker=True)
    env.unwrapped.gen_obs = dict
    return env


def layout(env: Any) -> object:
    """Two instances differ in their grid, the agent's place or its direction."""
    base = env.unwrapped
    return base.grid.encode().tobytes(), tuple(map(int, base.agent_pos)), int(base.agent_dir)


def _pose(env: Any) -> tuple[int, int, int]:
    base = env.unwrapped
    return int(base.agent_pos[0]), int(base.agent_pos[1]), int(base.agent_dir)


def four_rooms_label(env: Any, reached: int) -> tuple[int, ...]:
    """Place, direction, and whether the goal was reached."""
    return *_pose(env), reached


def four_rooms_reached(env: Any, terminated: bool, reward: float) -> int:
    """1 when the goal was reached."""
    return int(terminated and reward > 0)


def _door(env: Any) -> Any:
    return next(cell for cell in env.unwrapped.grid.grid if cell is not None and cell.type == "door")


def door_key_label(env: Any, reached: int) -> tuple[int, ...]:
    """Place, direction, phase, and how many subgoals were reached."""
    door = _door(env)
    if env.unwrapped.carrying is None:
        phase = NO_KEY
    elif door.is_locked:
        phase = KEY
    else:
        phase = OPEN if door.is_open else CLOSED
    return *_pose(env), phase, reached


def door_key_reached(env: Any, terminated: bool, reward: float) -> int:
    """1 with the key in hand, 2 with the door open, 3 when the goal was reached."""
    if terminated and reward > 0:
        return _KEY_OPENED_GOAL
    carrying = env.unwrapped.carrying
    if carrying is None or carrying.type != "key":
        return 0
    return 2 if _door(env).is_open else 1


def _explore(env: Any, kind: Environment, restore: Any) -> tuple[IntArray, IntArray, IntArray]:
    """Every state that can be reached from the present one, by stepping ``env`` from each state with each
    action.

    ``restore(label)`` puts the environment into a state.
    """
    total = len(kind.subgoals)
    index = {kind.label(env, 0): 0}
    order = list(index)
    rows: list[list[int]] = []
    for state in order:
        row = []
        for action in kind.environment_actions:
            if state[-1] == total:
                row.append(index[state])
                continue
            restore(state)
            _, reward, terminated, _, _ = env.step(action)
            reached = max(state[-1], kind.reached(env, terminated, reward))
            after = kind.label(env, reached)
            if after not in index:
                index[after] = len(order)
                order.append(after)
            row.append(index[after])
        rows.append(row)
    labels = np.array(order, dtype=np.int64)
    return np.array(rows, dtype=np.int64), labels, labels[:, -1]


def four_rooms_tables(env: Any) -> tuple[IntArray, IntArray, IntArray]:
    """Successors, labels and subgoals reached of every state that can be reached from the present one."""
    base = env.unwrapped

    def restore(state: tuple[int, ...]) -> None:
        base.agent_pos, base.agent_dir, base.step_count = state[:2], state[2], 0

    return _explore(env, FOUR_ROOMS, restore)


def door_key_tables(env: Any) -> tuple[IntArray, IntArray, IntArray]:
    """Successors, labels and subgoals reached of every state that can be reached from the present one."""
    base = env.unwrapped
    door = _door(env)
    key = next(cell for cell in base.grid.grid if cell is not None and cell.type == "key")
    place = tuple(map(int, key.cur_pos))

    def restore(state: tuple[int, ...]) -> None:
        base.agent_pos, base.agent_dir, base.step_count = state[:2], state[2], 0
        phase = state[3]
        base.carrying = None if phase == NO_KEY else key
        base.grid.set(*place, key if phase == NO_KEY else None)
        door.is_locked, door.is_open = phase in (NO_KEY, KEY), phase == OPEN

    return _explore(env, DOOR_KEY, restore)


FOUR_ROOMS = Environment(
    name="fourrooms",
    benchmark="MiniGrid-FourRooms-v0",
    subgoals=("goal",),
    actions=("left", "right", "forward"),
    environment_actions=(0, 1, 2),
    features=("x", "y", "direction", "reached"),
    make=partial(make, "MiniGrid-FourRooms-v0"),
    label=four_rooms_label,
    reached=four_rooms_reached,
    layout=layout,
    tables=four_rooms_tables,
)

DOOR_KEY = Environment(
    name="doorkey",
    benchmark="MiniGrid-DoorKey-8x8-v0",
    subgoals=("key", "door", "goal"),
    actions=("left", "right", "forward", "pickup", "toggle"),
    environment_actions=(0, 1, 2, 3, 5),
    features=("x", "y", "direction", "phase", "reached"),
    make=partial(make, "MiniGrid-DoorKey-8x8-v0"),
    label=door_key_label,
    reached=door_key_reached,
    layout=layout,
    tables=door_key_tables,
)
