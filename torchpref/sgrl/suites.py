"""The sets of the suite: which policies play which environment, from how many starts, how often.

Each set ships as one Parquet file, so loading it needs none of the environments; :func:`generate` plays it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.errors import UsageError

if TYPE_CHECKING:
    import polars

    from torchpref.sgrl.environments import Environment
    from torchpref.trajectories import Trajectories

DATA = Path(__file__).resolve().parents[1] / "data"


@dataclass(frozen=True)
class Suite:
    """One set: an environment, a horizon in steps, policies by how often they act at random, instances and trials."""

    name: str
    environment: str
    horizon: int
    epsilons: tuple[float, ...]
    instances: int
    trials: int
    about: str

    @property
    def systems(self) -> tuple[str, ...]:
        """The policies' names in the known order, best first."""
        return tuple(system_name(epsilon) for epsilon in self.epsilons)

    @property
    def path(self) -> Path:
        """The file that ships with the package."""
        return DATA / f"{self.name if self.name == 'demo' else 'sgrl-' + self.name}.parquet"


def system_name(epsilon: float) -> str:
    """Name of the shortest-path planner that acts uniformly at random with probability ``epsilon``."""
    return f"planner-eps-{epsilon:.2f}"


_TENTHS = tuple(i / 10 for i in range(10))

_ALL = (
    Suite("demo", "taxi", 200, _TENTHS, 100, 1, "Taxi, ten policies that nearly all succeed"),
)

#: The sets by name.
SUITES: dict[str, Suite] = {suite.name: suite for suite in _ALL}


def suite(name: str) -> Suite:
    """The set of that name; raises :class:`torchpref.errors.UsageError` if there is none."""
    if name not in SUITES:
        raise UsageError(f"there is no set {name!r}; the sets are {', '.join(SUITES)}")
    return SUITES[name]


def environment(name: str) -> Environment:
    """The environment of that name."""
    from torchpref.sgrl.taxi import TAXI

    return {kind.name: kind for kind in (TAXI,)}[name]


def load(name: str) -> Trajectories:
    """The runs of a set, as they ship with the package."""
    from torchpref.io import read

    return read(suite(name).path)


def generate(
    name: str, systems: Iterable[str] | None = None, instances: Iterable[int] | None = None
) -> polars.DataFrame:
    """Play a set, or a part of it, in the real environments.

    ``systems`` are names of policies, ``instances`` positions among the set's instances; all by default. Every run
    draws its own random numbers from its names, so a part equals that part of the whole. Returns a tidy table with a
    row per run and list cells; the last step of a run that was stopped by the horizon is in it, marked ``truncated``.
    """
    import polars

    from torchpref.sgrl.environments import Player, instance_name
    from torchpref.sgrl.tabular import random_actions

    chosen = suite(name)
    kind = environment(chosen.environment)
    wanted = set(chosen.systems if systems is None else systems)
    positions = range(chosen.instances) if instances is None else sorted(instances)
    seeds = kind.seeds(chosen.instances)
    env = kind.make(chosen.horizon)
    rows: list[dict[str, Any]] = []
    for seed in (seeds[position] for position in positions):
        task = kind.task(seed, env)
        player = Player(kind, task, seed, env)
        for epsilon, system in zip(chosen.epsilons, chosen.systems, strict=True):
            if system not in wanted:
                continue
            for trial in range(chosen.trials):
                key = f"{name}/{system}/{instance_name(seed)}/{trial}"
                run = player.play(random_actions(key, epsilon, len(kind.actions), chosen.horizon))
                rows.append(
                    {
                        "benchmark": kind.benchmark,
                        "instance": instance_name(seed),
                        "system": system,
                        "trial": trial,
                        "return": list(run.returns),
                        "steps": list(run.steps),
                        "truncated": run.truncated,
                        "reference_time": int(task.shortest[0]),
                    }
                )
    schema = {
        "benchmark": polars.String,
        "instance": polars.String,
        "system": polars.String,
        "trial": polars.Int32,
        "return": polars.List(polars.Float64),
        "steps": polars.List(polars.Int32),
        "truncated": polars.Boolean,
        "reference_time": polars.Int32,
    }
    frame = polars.DataFrame(rows, schema=schema).sort("system", "instance", "trial")
    return frame.drop("trial") if chosen.trials == 1 else frame


def write(name: str, folder: Path) -> Path:
    """Play a set and write it where a copy for shipping belongs; returns the file's path."""
    path = folder / suite(name).path.name
    generate(name).write_parquet(path, compression="zstd", compression_level=19, statistics=False)
    return path
