"""The sets of the suite: which policies play which environment, from how many starts, how often.

Each set ships as one Parquet file, so loading it needs none of the environments; :func:`generate` plays it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.errors import UsageError

if TYPE_CHECKING:
    import polars

    from torchpref.runs.trajectories import Trajectories
    from torchpref.sgrl.environments import Environment
    from torchpref.sgrl.tabular import TabularTask

DATA = Path(__file__).resolve().parent / "data"


@dataclass(frozen=True)
class Suite:
    """One set: an environment, a horizon in steps, the policies' chances to act at random, and how often."""

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
_LOW = tuple(i / 20 for i in range(11))
_HIGH = tuple(i / 20 for i in range(12, 20))

_ALL = (
    Suite("demo", "taxi", 200, _TENTHS, 100, 1, "Taxi, ten policies that nearly all succeed"),
    Suite("taxi-saturated", "taxi", 200, _LOW, 100, 5, "Taxi, all succeed, only time differs"),
    Suite("taxi-mixed", "taxi", 100, _HIGH, 100, 5, "Taxi, some runs fail"),
    Suite("fourrooms-saturated", "fourrooms", 300, _LOW, 100, 5, "FourRooms, all succeed, only time differs"),
    Suite("fourrooms-mixed", "fourrooms", 100, _HIGH, 100, 5, "FourRooms, some runs fail"),
    Suite("doorkey-saturated", "doorkey", 300, _LOW, 100, 5, "DoorKey-8x8, all succeed, only time differs"),
    Suite("doorkey-mixed", "doorkey", 100, _HIGH, 100, 5, "DoorKey-8x8, some runs fail"),
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
    from torchpref.sgrl.minigrid import DOOR_KEY, FOUR_ROOMS
    from torchpref.sgrl.taxi import TAXI

    return {kind.name: kind for kind in (TAXI, FOUR_ROOMS, DOOR_KEY)}[name]


def load(name: str) -> Trajectories:
    """The runs of a set, as they ship with the package; needs none of the environments."""
    from torchpref.io import read

    return read(suite(name).path, format="table")


@cache
def _task(kind: str, seed: int) -> TabularTask:
    return environment(kind).task(seed, _environment(kind))


@cache
def _environment(kind: str) -> Any:
    return environment(kind).make(1_000)


@cache
def seeds(name: str) -> tuple[int, ...]:
    """The seeds under which the environment deals the instances of a set, in the order of their positions."""
    return environment(suite(name).environment).seeds(suite(name).instances)


def tasks(name: str, instances: Iterable[int] | None = None) -> list[TabularTask]:
    """The instances of a set as tables read off the real environment; ``instances`` are positions."""
    available = suite(name).instances
    chosen = list(range(available) if instances is None else instances)
    if not all(0 <= position < available for position in chosen):
        raise UsageError(f"{name!r} has instances 0 to {available - 1}, got {chosen}")
    return [_task(suite(name).environment, seeds(name)[position]) for position in chosen]


def generate(
    name: str, systems: Iterable[str] | None = None, instances: Iterable[int] | None = None
) -> polars.DataFrame:
    """Play a set, or a part of it, in the real environments.

    ``systems`` are names of policies, ``instances`` positions among the set's instances; all by default.
    Every run draws its own random numbers from its names, so a part equals that part of the whole. Returns a
    tidy table with a row per run and list cells; the last step of a run that was stopped by the horizon is in
    it, marked ``truncated``.
    """
    import polars

    from torchpref.sgrl.environments import Player, instance_name
    from torchpref.sgrl.tabular import random_actions

    chosen = suite(name)
    kind = environment(chosen.environment)
    wanted = set(chosen.systems if systems is None else systems)
    unknown = sorted(wanted.difference(chosen.systems))
    if unknown:
        raise UsageError(f"{name!r} has no system {unknown[0]!r}; it has {', '.join(chosen.systems)}")
    positions = list(range(chosen.instances) if instances is None else sorted(instances))
    env = kind.make(chosen.horizon)
    rows: list[dict[str, Any]] = []
    for position, task in zip(positions, tasks(name, positions), strict=True):
        seed = seeds(name)[position]
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
    schema: dict[str, Any] = {
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
