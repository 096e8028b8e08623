"""Compare runs of agents by when each reached each level of return, and rank the systems that made them.

The method is *Offline Preference-Based Trajectory Evaluation*, arXiv 2606.17541. Names are imported where they are
first used, so that ``import torchpref`` costs next to nothing.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

# Public name -> module that defines it.
_EXPORTS = {
    "Trajectories": "runs.trajectories",
    "time_to_return": "runs.curves",
    "preferences": "pairwise.preferences",
    "all_preferences": "pairwise.preferences",
    "Preferences": "pairwise.preferences",
    "MEASURES": "runs.measures",
    "bradley_terry": "stats.bradley_terry.model",
    "BradleyTerry": "stats.bradley_terry.model",
    "read": "io.reading",
    "audit": "runs.audit",
    "convert": "io.convert",
    "formats": "io.convert",
    "evaluate": "evaluation.evaluate",
    "Evaluation": "evaluation.result",
    "rank": "stats.ranking.ranking",
    "rank_all": "stats.ranking.ranking",
    "significance": "stats.significance.significance",
    "compare": "evaluation.comparison",
    "gate": "evaluation.gating",
    "clock_bounds": "evaluation.clock_bounds",
    "monitor": "evaluation.monitor",
    "next_runs": "evaluation.monitor",
    "plan": "stats.planning.planning",
    "influence": "stats.ranking.influence",
    "budget_curves": "evaluation.budget",
    "meta_evaluate": "meta",
    "mean_preferences": "pairwise.means",
    "MeanPreferences": "pairwise.means",
    "stream_preferences": "pairwise.streaming",
    "sharded_preferences": "pairwise.sharding",
    "TorchPrefError": "errors",
    "DataError": "errors",
    "UsageError": "errors",
    "MissingExtraError": "errors",
    "TorchPrefWarning": "errors",
}
_MODULES = ("io", "kernels", "meta", "report", "rl", "sgrl")
# Paths of version 0.1 that the documentation named, and where they are now; they import, with a warning, until 0.3.
_MOVED = {
    "bradley_terry": "stats.bradley_terry.model",
    "budget": "evaluation.budget",
    "comparison": "evaluation.comparison",
    "evaluate": "evaluation.evaluate",
    "findings": "runs.findings",
    "gating": "evaluation.gating",
    "grid": "runs.curves",
    "influence": "stats.ranking.influence",
    "io.audit": "runs.audit",
    "io.frames": "runs.trajectories",
    "leaderboard": "stats.ranking.leaderboard",
    "mean_preferences": "pairwise.means",
    "measures": "runs.measures",
    "pair": "pairwise.one_pair",
    "planning": "stats.planning.planning",
    "preferences": "pairwise.preferences",
    "ranking": "stats.ranking.ranking",
    "significance": "stats.significance.significance",
    "streaming": "pairwise.streaming",
    "trajectories": "runs.trajectories",
}

if TYPE_CHECKING:
    __version__: str
    from torchpref.errors import DataError as DataError
    from torchpref.errors import MissingExtraError as MissingExtraError
    from torchpref.errors import TorchPrefError as TorchPrefError
    from torchpref.errors import TorchPrefWarning as TorchPrefWarning
    from torchpref.errors import UsageError as UsageError
    from torchpref.evaluation.budget import budget_curves as budget_curves
    from torchpref.evaluation.clock_bounds import clock_bounds as clock_bounds
    from torchpref.evaluation.comparison import compare as compare
    from torchpref.evaluation.evaluate import evaluate as evaluate
    from torchpref.evaluation.gating import gate as gate
    from torchpref.evaluation.monitor import monitor as monitor
    from torchpref.evaluation.monitor import next_runs as next_runs
    from torchpref.evaluation.result import Evaluation as Evaluation
    from torchpref.io.convert import convert as convert
    from torchpref.io.convert import formats as formats
    from torchpref.io.reading import read as read
    from torchpref.meta import meta_evaluate as meta_evaluate
    from torchpref.pairwise.means import MeanPreferences as MeanPreferences
    from torchpref.pairwise.means import mean_preferences as mean_preferences
    from torchpref.pairwise.preferences import Preferences as Preferences
    from torchpref.pairwise.preferences import all_preferences as all_preferences
    from torchpref.pairwise.preferences import preferences as preferences
    from torchpref.pairwise.sharding import sharded_preferences as sharded_preferences
    from torchpref.pairwise.streaming import stream_preferences as stream_preferences
    from torchpref.runs.audit import audit as audit
    from torchpref.runs.curves import time_to_return as time_to_return
    from torchpref.runs.measures import MEASURES as MEASURES
    from torchpref.runs.trajectories import Trajectories as Trajectories
    from torchpref.stats.bradley_terry.model import BradleyTerry as BradleyTerry
    from torchpref.stats.bradley_terry.model import bradley_terry as bradley_terry
    from torchpref.stats.planning.planning import plan as plan
    from torchpref.stats.ranking.influence import influence as influence
    from torchpref.stats.ranking.ranking import rank as rank
    from torchpref.stats.ranking.ranking import rank_all as rank_all
    from torchpref.stats.significance.significance import significance as significance


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _EXPORTS:
        value = getattr(import_module(f"torchpref.{_EXPORTS[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"torchpref.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("torchpref")
    elif name == "grid":
        value = import_module("torchpref.runs.curves")
    else:
        raise AttributeError(f"module 'torchpref' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS, *_MODULES, "grid"})


class _MovedPaths:
    """Finds modules under the paths that they had in version 0.1; asked only after every other finder."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        old = name.removeprefix("torchpref.")
        return ModuleSpec(name, _MovedPaths) if old != name and old in _MOVED else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        return _Moved(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        import warnings
        from importlib import import_module

        old = module.__name__.removeprefix("torchpref.")
        warnings.warn(f"torchpref.{old} is now torchpref.{_MOVED[old]}; the old path goes with 0.3", FutureWarning, 3)
        module.__dict__.update({**vars(import_module(f"torchpref.{_MOVED[old]}")), "__name__": module.__name__})


class _Moved(ModuleType):
    """A module under its old path. Importing it hides the function of that name, so it can be called in its stead."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.__dict__[self.__name__.rpartition(".")[2]](*arguments, **options)


sys.meta_path.append(_MovedPaths)
