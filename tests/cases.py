"""Small data sets for property tests: the same runs as the judge's ``Run`` objects and as ``Trajectories``."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import strategies as st

from exact import Run
from torchpref import Trajectories

# Ties, dips, thirds as two loggers write them, sums of floats, levels closer than the tie rule, no level, success.
RETURNS = (
    *(0.0, 0.25, 1 / 3, 0.333333, 0.33333334, 0.5, 2 / 3, 0.666666, 0.75, 0.1 + 0.2, 0.3),
    *(0.00001, 0.000011, 0.50001, 0.999999, sum([0.1] * 10), 1.0),
)
# Float clocks whose sums are not what they look like.
TIMES = (0.0, 0.1, 0.2, 0.1 + 0.2, 0.3, 1.0, 1.1, 1.1 * 3, 3.3, 7.0, 7.0, 12.5, 1e6, 123456.789)


@dataclass(frozen=True)
class Case:
    """Runs as [instance][system][trial]; None where there is no such run."""

    runs: list[list[list[Run | None]]]
    resolution: float = 1e-6

    def present(self, instance: int, system: int) -> list[Run]:
        return [run for run in self.runs[instance][system] if run is not None]

    def trajectories(self, padding: int = 0, clock: str = "time", **options: object) -> Trajectories:
        instances, systems = len(self.runs), len(self.runs[0]) if self.runs else 0
        trials = len(self.runs[0][0]) if systems else 1
        cells = [run for row in self.runs for cell in row for run in cell if run is not None]
        steps = max((len(run.points) for run in cells), default=0) + padding
        shape = (instances, systems, trials)
        returns = torch.zeros((*shape, steps), dtype=torch.float64)
        times = torch.full((*shape, steps), float("nan"), dtype=torch.float64)
        lengths = torch.zeros(shape, dtype=torch.long)
        present = torch.zeros(shape, dtype=torch.bool)
        truncated = torch.zeros(shape, dtype=torch.bool)
        for i, row in enumerate(self.runs):
            for s, cell in enumerate(row):
                for t, run in enumerate(cell):
                    if run is None:
                        continue
                    present[i, s, t] = True
                    truncated[i, s, t] = run.truncated
                    lengths[i, s, t] = len(run.points)
                    for k, (tick, value) in enumerate(run.points):
                        returns[i, s, t, k] = value
                        if tick is not None:
                            times[i, s, t, k] = tick * self.resolution
        return Trajectories(
            returns, lengths, times={clock: times}, present=present, truncated=truncated,
            resolution={clock: self.resolution}, **options,
        )  # fmt: skip


@st.composite
def runs(draw: st.DrawFn, max_steps: int = 5, unknown: bool = True, truncation: bool = True) -> Run:
    count = draw(st.integers(0, max_steps))
    values = draw(st.lists(st.sampled_from(RETURNS), min_size=count, max_size=count))
    ticks = sorted(round(time * 1e6) for time in draw(st.lists(st.sampled_from(TIMES), min_size=count, max_size=count)))
    points = [
        (None if unknown and draw(st.integers(0, 5)) == 0 else tick, value)
        for tick, value in zip(ticks, values, strict=True)
    ]
    return Run(tuple(points), truncated=truncation and draw(st.booleans()) and draw(st.booleans()))


@st.composite
def cases(
    draw: st.DrawFn,
    max_instances: int = 3,
    max_systems: int = 4,
    max_trials: int = 3,
    max_steps: int = 5,
    unknown: bool = True,
    truncation: bool = True,
    missing: bool = True,
) -> Case:
    instances = draw(st.integers(1, max_instances))
    systems = draw(st.integers(1, max_systems))
    trials = draw(st.integers(1, max_trials))
    run = runs(max_steps=max_steps, unknown=unknown, truncation=truncation)
    cell = st.one_of(st.none(), run, run, run) if missing else run
    size = instances * systems * trials
    flat = draw(st.lists(cell, min_size=size, max_size=size))
    iterator = iter(flat)
    return Case([[[next(iterator) for _ in range(trials)] for _ in range(systems)] for _ in range(instances)])
