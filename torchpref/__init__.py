"""Compare runs of agents by when each reached each level of return, and rank the systems that made them.

The method is *Offline Preference-Based Trajectory Evaluation*, arXiv 2606.17541. Names are imported where they are
first used, so that ``import torchpref`` costs next to nothing.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name -> module that defines it.
_EXPORTS = {
    "Trajectories": "trajectories",
    "time_to_return": "grid",
    "preferences": "preferences",
    "all_preferences": "preferences",
    "Preferences": "preferences",
    "MEASURES": "measures",
    "bradley_terry": "bradley_terry",
    "BradleyTerry": "bradley_terry",
    "read": "io",
    "audit": "io.audit",
    "convert": "io.convert",
    "formats": "io.convert",
    "evaluate": "evaluate",
    "Evaluation": "evaluation",
    "rank": "ranking",
    "rank_all": "ranking",
    "significance": "significance",
    "compare": "comparison",
    "gate": "gating",
    "plan": "planning",
    "influence": "influence",
    "budget_curves": "budget",
    "meta_evaluate": "meta",
    "mean_preferences": "mean_preferences",
    "MeanPreferences": "mean_preferences",
    "stream_preferences": "streaming",
    "sharded_preferences": "distributed",
    "TorchPrefError": "errors",
    "DataError": "errors",
    "UsageError": "errors",
    "MissingExtraError": "errors",
    "TorchPrefWarning": "errors",
}
_MODULES = ("grid", "io", "kernels", "meta", "report", "rl", "sgrl")

if TYPE_CHECKING:
    from torchpref.bradley_terry import BradleyTerry as BradleyTerry
    from torchpref.bradley_terry import bradley_terry as bradley_terry
    from torchpref.budget import budget_curves as budget_curves
    from torchpref.comparison import compare as compare
    from torchpref.distributed import sharded_preferences as sharded_preferences
    from torchpref.errors import DataError as DataError
    from torchpref.errors import MissingExtraError as MissingExtraError
    from torchpref.errors import TorchPrefError as TorchPrefError
    from torchpref.errors import TorchPrefWarning as TorchPrefWarning
    from torchpref.errors import UsageError as UsageError
    from torchpref.evaluate import evaluate as evaluate
    from torchpref.evaluation import Evaluation as Evaluation
    from torchpref.gating import gate as gate
    from torchpref.grid import time_to_return as time_to_return
    from torchpref.influence import influence as influence
    from torchpref.io import read as read
    from torchpref.io.audit import audit as audit
    from torchpref.io.convert import convert as convert
    from torchpref.io.convert import formats as formats
    from torchpref.mean_preferences import MeanPreferences as MeanPreferences
    from torchpref.mean_preferences import mean_preferences as mean_preferences
    from torchpref.measures import MEASURES as MEASURES
    from torchpref.meta import meta_evaluate as meta_evaluate
    from torchpref.planning import plan as plan
    from torchpref.preferences import Preferences as Preferences
    from torchpref.preferences import all_preferences as all_preferences
    from torchpref.preferences import preferences as preferences
    from torchpref.ranking import rank as rank
    from torchpref.ranking import rank_all as rank_all
    from torchpref.significance import significance as significance
    from torchpref.streaming import stream_preferences as stream_preferences
    from torchpref.trajectories import Trajectories as Trajectories


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _EXPORTS:
        value = getattr(import_module(f"torchpref.{_EXPORTS[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"torchpref.{name}")
    else:
        raise AttributeError(f"module 'torchpref' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS, *_MODULES})


class _Package(ModuleType):
    """The package, whose functions win over modules of the same name.

    When a module such as ``torchpref.preferences`` is first imported from anywhere, the import system stores it under its
    name in the package, where users expect the function :func:`preferences`.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _EXPORTS.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
