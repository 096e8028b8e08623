"""verl: the advantage estimators ``preference`` and ``preference_to_go`` (run against verl 0.9.1).

verl loads what the entry point group ``verl.plugins`` names in every process that imports verl, Ray's workers among them, so
that installing torchpref suffices: ``algorithm.adv_estimator=preference``. Loading this module costs nothing: the estimators
are put into verl's registry when verl itself imports that. ``TORCHPREF_VERL=0`` switches it off, as does verl's own
``VERL_USE_EXTERNAL_PLUGINS=none``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial, wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_REGISTRY = "verl.trainer.ppo.core_algos"
_SESSIONS = "verl.trainer.ppo.v1.utils"
#: Keys ``{uid}_{session}_{index}`` of the rows that advantages are computed for, where the trainer tells them apart.
_ROWS: ContextVar[Sequence[str] | None] = ContextVar("torchpref_verl_rows", default=None)


def register(name: str, **options: Any) -> None:
    """Register an estimator under that name: :func:`torchpref.rl.tokens.token_advantages` with these options.

    Works before and after verl is imported. In a training over several processes it must be called in all of them: name your
    module in ``VERL_USE_EXTERNAL_MODULES``, or in an entry point of the group ``verl.plugins``.
    """
    _when_imported(_REGISTRY, partial(_add, name=name, options=options))


def _add(module: ModuleType, name: str, options: dict[str, Any]) -> None:
    def estimator(
        token_level_rewards: Any, response_mask: Any, index: Any = None, config: Any = None, **others: Any
    ) -> tuple[Any, Any]:
        from torchpref.errors import UsageError
        from torchpref.rl.tokens import token_advantages

        if index is None:
            raise UsageError(f"the estimator {name!r} compares rollouts of one prompt, but the batch has no uid")
        run, order = _sessions(len(token_level_rewards))
        advantages = token_advantages(token_level_rewards, response_mask, list(index), run=run, order=order, **options)
        return advantages, advantages

    estimator.__name__ = name
    module.register_adv_est(name)(estimator)


def _sessions(rows: int) -> tuple[list[str] | None, list[int] | None]:
    """The session of each row and its place there: several outputs of one session are one run."""
    keys = _ROWS.get()
    if keys is None or len(keys) != rows:
        return None, None
    fields = [key.rsplit("_", 1) for key in keys]
    if not all(len(parts) == 2 and parts[1].isdigit() for parts in fields):
        return None, None
    return [session for session, _ in fields], [int(place) for _, place in fields]


def _keep_rows(module: ModuleType) -> None:
    """Let the estimator know the rows' keys, which verl's trainer has and does not hand on."""
    compute: Callable[..., Any] | None = getattr(module, "compute_advantage_for_multi_trajectories", None)
    if compute is None:
        return

    @wraps(compute)
    def knowing(data: Any, batch_keys: Sequence[str], *rest: Any, **options: Any) -> Any:
        token = _ROWS.set([str(key) for key in batch_keys])
        try:
            return compute(data, batch_keys, *rest, **options)
        finally:
            _ROWS.reset(token)

    module.compute_advantage_for_multi_trajectories = knowing  # type: ignore[attr-defined]


class _WhenImported(MetaPathFinder):
    """Calls something with a module right after that was imported."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self.name = name
        self.then = then

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            self.then(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _when_imported(name: str, then: Callable[[ModuleType], None]) -> None:
    if name in sys.modules:
        then(sys.modules[name])
    else:
        sys.meta_path.insert(0, _WhenImported(name, then))


if os.environ.get("TORCHPREF_VERL", "1").strip().lower() not in ("0", "false", "no", "off"):
    _when_imported(_SESSIONS, _keep_rows)
    register("preference")
    register("preference_to_go", credit="to-go")

__all__ = ["register"]
