"""Preferences as rewards in training loops.

:func:`preference_rewards` is the core: returns of a batch of groups in, rewards out, on the device of the input. Everything
is imported where it is first used, so that a trainer's entry point costs nothing; the adapters for trainers and
environments need the extra of their name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# Public name -> module that defines it.
_EXPORTS = {
    "CompareWithReference": "sb3",
    "GroupsInPieces": "groups",
    "LatchedEvents": "gymnasium",
    "Pool": "pool",
    "PreferenceAdvantage": "torchrl",
    "PreferenceReward": "trl",
    "RecordReturns": "gymnasium",
    "Trace": "traces",
    "curve_of_rewards": "traces",
    "curve_of_token_rewards": "tokens",
    "desirable_runs": "datasets",
    "group_advantages": "advantages",
    "pad_traces": "traces",
    "pool_rewards": "rewards",
    "preference_dataset": "datasets",
    "preference_pairs": "datasets",
    "preference_rewards": "rewards",
    "ragged_advantages": "ragged",
    "ragged_rewards": "ragged",
    "solved_groups": "groups",
    "tied_groups": "groups",
    "trace_of_messages": "messages",
}

if TYPE_CHECKING:
    from torchpref.rl.advantages import group_advantages as group_advantages
    from torchpref.rl.datasets import desirable_runs as desirable_runs
    from torchpref.rl.datasets import preference_dataset as preference_dataset
    from torchpref.rl.datasets import preference_pairs as preference_pairs
    from torchpref.rl.groups import GroupsInPieces as GroupsInPieces
    from torchpref.rl.groups import solved_groups as solved_groups
    from torchpref.rl.groups import tied_groups as tied_groups
    from torchpref.rl.gymnasium import LatchedEvents as LatchedEvents
    from torchpref.rl.gymnasium import RecordReturns as RecordReturns
    from torchpref.rl.messages import trace_of_messages as trace_of_messages
    from torchpref.rl.pool import Pool as Pool
    from torchpref.rl.ragged import ragged_advantages as ragged_advantages
    from torchpref.rl.ragged import ragged_rewards as ragged_rewards
    from torchpref.rl.rewards import pool_rewards as pool_rewards
    from torchpref.rl.rewards import preference_rewards as preference_rewards
    from torchpref.rl.sb3 import CompareWithReference as CompareWithReference
    from torchpref.rl.tokens import curve_of_token_rewards as curve_of_token_rewards
    from torchpref.rl.torchrl import PreferenceAdvantage as PreferenceAdvantage
    from torchpref.rl.traces import Trace as Trace
    from torchpref.rl.traces import curve_of_rewards as curve_of_rewards
    from torchpref.rl.traces import pad_traces as pad_traces
    from torchpref.rl.trl import PreferenceReward as PreferenceReward

__all__ = [*_EXPORTS]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _EXPORTS:
        value = getattr(import_module(f"torchpref.rl.{_EXPORTS[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'torchpref.rl' has no attribute {name!r}")
