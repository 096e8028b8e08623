"""Preferences as rewards in training loops.

:func:`preference_rewards` is the core: returns of a batch of groups in, rewards out, on the device of the input. The
adapters for trainers and environments are imported where they are first used; each needs the extra of its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchpref.rl.advantages import group_advantages
from torchpref.rl.ragged import ragged_advantages, ragged_rewards
from torchpref.rl.rewards import pool_rewards, preference_rewards

# Public name -> module that defines it; these may need packages that torchpref does not bring.
_EXPORTS = {
    "CompareWithReference": "sb3",
    "LatchedEvents": "gymnasium",
    "PreferenceAdvantage": "torchrl",
    "PreferenceReward": "trl",
    "RecordReturns": "gymnasium",
    "Trace": "traces",
    "curve_of_rewards": "traces",
    "desirable_runs": "datasets",
    "pad_traces": "traces",
    "preference_dataset": "datasets",
    "preference_pairs": "datasets",
}

if TYPE_CHECKING:
    from torchpref.rl.datasets import desirable_runs as desirable_runs
    from torchpref.rl.datasets import preference_dataset as preference_dataset
    from torchpref.rl.datasets import preference_pairs as preference_pairs
    from torchpref.rl.gymnasium import LatchedEvents as LatchedEvents
    from torchpref.rl.gymnasium import RecordReturns as RecordReturns
    from torchpref.rl.sb3 import CompareWithReference as CompareWithReference
    from torchpref.rl.torchrl import PreferenceAdvantage as PreferenceAdvantage
    from torchpref.rl.traces import Trace as Trace
    from torchpref.rl.traces import curve_of_rewards as curve_of_rewards
    from torchpref.rl.traces import pad_traces as pad_traces
    from torchpref.rl.trl import PreferenceReward as PreferenceReward

__all__ = [*_EXPORTS, "group_advantages", "pool_rewards", "preference_rewards", "ragged_advantages", "ragged_rewards"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _EXPORTS:
        value = getattr(import_module(f"torchpref.rl.{_EXPORTS[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'torchpref.rl' has no attribute {name!r}")
