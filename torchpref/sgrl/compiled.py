"""Compiled loops of policies that stumble. Import this module where it is used: it imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchpref.kernels.compiled import jit, uint64


@jit
def propagate(
    successors: Any, planner: Any, earned: Any, start: Any, epsilon: Any, steady: Any, recovery: Any, horizon: Any, at: Any
) -> None:  # fmt: skip
    """The chance that each level is earned at each step.

    Args:
        successors: int64 ``[state, action]``.
        planner, earned: int64 ``[state]``: the planner's action, the levels earned.
        start: a state.
        epsilon, steady: float64 ``[policy, level]``.
        recovery: float64 ``[policy]``.
        horizon: steps.
        at: float64 ``[policy, level, step]``, zeros; filled.
    """
    states, actions = successors.shape
    policies, levels = epsilon.shape
    for policy in range(policies):
        # mass[0] plans, mass[1] has stumbled
        mass, after = np.zeros((2, states)), np.zeros((2, states))
        first = earned[start]
        sure = steady[policy, first]
        mass[0, start], mass[1, start] = sure, 1.0 - sure
        back = recovery[policy]
        for step in range(1, horizon + 1):
            after[:] = 0.0
            for state in range(states):
                planning, random = mass[0, state], mass[1, state]
                if planning == 0.0 and random == 0.0:
                    continue
                level = earned[state]
                if level == levels:
                    continue
                share = epsilon[policy, level] * planning / actions
                stray = random / actions
                for action in range(actions):
                    to = successors[state, action]
                    plan = share
                    if action == planner[state]:
                        plan += planning * (1.0 - epsilon[policy, level])
                    now = earned[to]
                    if now > level:
                        moved = plan + stray
                        for each in range(level, now):
                            at[policy, each, step] += moved
                        if now < levels:
                            after[0, to] += moved * steady[policy, now]
                            after[1, to] += moved * (1.0 - steady[policy, now])
                    else:
                        after[0, to] += plan + stray * back
                        after[1, to] += stray * (1.0 - back)
            mass, after = after, mass


@jit
def _mixed(x: Any) -> Any:
    """The finaliser of splitmix64 (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*, 2014)."""
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@jit
def roll(
    successors: Any, planner: Any, earned: Any, start: Any, epsilon: Any, steady: Any, recovery: Any, horizon: Any,
    key: Any, times: Any,
) -> None:  # fmt: skip
    """Play runs of policies; arguments as for :func:`propagate`.

    Args:
        key: uint64, of which all random numbers are made, by splitmix64.
        times: int32 ``[run, policy, level]``, filled where a level is earned.
    """
    actions = successors.shape[1]
    runs, policies, levels = times.shape
    golden = uint64(0x9E3779B97F4A7C15)
    unit = 2.0**-53
    for run in range(runs):
        for policy in range(policies):
            seed = _mixed(key + golden * uint64(run * policies + policy + 1))
            state = start
            level = earned[start]
            count = uint64(1)
            lost = (_mixed(seed + golden * count) >> uint64(11)) * unit >= steady[policy, level]
            for step in range(1, horizon + 1):
                count += uint64(1)
                draw = (_mixed(seed + golden * count) >> uint64(11)) * unit
                chance = 1.0 if lost else epsilon[policy, level]
                if draw < chance:
                    action = min(int(draw / chance * actions), actions - 1)
                else:
                    action = planner[state]
                state = successors[state, action]
                now = earned[state]
                if now > level:
                    for each in range(level, now):
                        times[run, policy, each] = step
                    level = now
                    if level == levels:
                        break
                    count += uint64(1)
                    lost = (_mixed(seed + golden * count) >> uint64(11)) * unit >= steady[policy, level]
                elif lost and recovery[policy] > 0.0:
                    count += uint64(1)
                    lost = (_mixed(seed + golden * count) >> uint64(11)) * unit >= recovery[policy]
