"""Compare runs of agents by when each reached each level of return, and rank the systems that made them.

The method is *Offline Preference-Based Trajectory Evaluation*, arXiv 2606.17541. Names are imported where they are
first used, so that ``import torchpref`` costs next to nothing.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any


def _public_names() -> dict[str, str]:
    """Public name -> module that defines it, as ``__init__.pyi`` lists them for type checkers, one a line."""
    lines = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line.startswith("from torchpref.")]
    return {line[-1]: line[1].removeprefix("torchpref.") for line in words}


_EXPORTS = _public_names()
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
