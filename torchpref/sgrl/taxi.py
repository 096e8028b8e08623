"""Taxi-v4: fetch a passenger and bring them to their destination (gymnasium; Dietterich 2000).

Subgoals: passenger aboard, passenger delivered. The transition function is the environment's own ``P``. A
passenger set down elsewhere does not lower the return, so a state is the environment's state with how many
subgoals were reached.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchpref.errors import MissingExtraError
from torchpref.sgrl.environments import Environment
from torchpref.sgrl.tabular import IntArray

ABOARD = 4  # the passenger's location while in the taxi
DELIVERED = 2


def make(horizon: int) -> Any:
    """Taxi-v4 with a time limit of ``horizon`` steps."""
    try:
        import gymnasium
    except ImportError as error:
        raise MissingExtraError("gymnasium", "sgrl") from error
    return gymnasium.make("Taxi-v4", max_episode_steps=horizon, disable_env_checker=True)


def label(env: Any, reached: int) -> tuple[int, ...]:
    """The environment's state number and how many subgoals were reached."""
    return int(env.unwrapped.s), reached


def reached(env: Any, terminated: bool, reward: float) -> int:
    """Subgoals that hold now: 1 with the passenger aboard, 2 when the passenger was delivered."""
    if terminated:
        return DELIVERED
    return int((env.unwrapped.s // 4) % 5 == ABOARD)


def layout(env: Any) -> object:
    """Two instances differ in their start state."""
    return int(env.unwrapped.s)


def tables(env: Any) -> tuple[IntArray, IntArray, IntArray]:
    """All states that can be reached from the present one, read from the environment's ``P``."""
    transitions = env.unwrapped.P
    states: dict[tuple[int, int], int] = {(int(env.unwrapped.s), 0): 0}
    order = list(states)
    rows: list[list[int]] = []
    for state, had in order:
        row = []
        for action in range(6):
            ((probability, after, _, delivered),) = transitions[state][action]
            assert probability == 1.0
            if had == DELIVERED:
                key = (state, had)
            elif delivered:
                key = (int(after), DELIVERED)
            else:
                key = (int(after), max(had, int((after // 4) % 5 == ABOARD)))
            if key not in states:
                states[key] = len(order)
                order.append(key)
            row.append(states[key])
        rows.append(row)
    labels = np.array(order, dtype=np.int64)
    return np.array(rows, dtype=np.int64), labels, labels[:, 1]


TAXI = Environment(
    name="taxi",
    benchmark="Taxi-v4",
    subgoals=("aboard", "delivered"),
    actions=("south", "north", "east", "west", "pickup", "dropoff"),
    environment_actions=(0, 1, 2, 3, 4, 5),
    features=("state", "reached"),
    make=make,
    label=label,
    reached=reached,
    layout=layout,
    tables=tables,
)
