"""The runs themselves: return over time, and the time to each return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from torchpref.errors import UsageError
from torchpref.report.plots.style import caption, legend, line_style, marker, new_axes, plain_frame, short
from torchpref.runs.curves import LEVEL_PAD, curves, time_to_return
from torchpref.runs.units import MILLION, NEVER, UNKNOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from torchpref.runs.trajectories import Trajectories


def _chosen(runs: Trajectories, instance: str, systems: Sequence[str] | str | None) -> Trajectories:
    """One instance and some systems; all of them if None, at most 24, beyond which lines look alike."""
    found = [
        i
        for i, (name, bench) in enumerate(zip(runs.instances, runs.benchmarks, strict=True))
        if instance in (name, f"{bench}/{name}")
    ]
    if len(found) != 1:
        problem = "stands in several benchmarks; write benchmark/instance" if found else "is not among the runs"
        raise UsageError(f"instance {instance!r} {problem}")
    picked = runs.take(instances=found)
    if systems is not None:
        picked = picked.select(systems=systems)
    if len(picked.systems) > 24:
        raise UsageError(f"{len(picked.systems)} systems are too many for one picture of curves; name up to 24 of them")
    return picked


def return_curves(
    runs: Trajectories,
    instance: str,
    systems: Sequence[str] | str | None = None,
    clock: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """f(t) of one instance: the return each system has reached by each time, a line per run.

    A run at an unknown time is not drawn as a curve; what it reached is written into the legend.
    """
    clock = runs.clock(clock)
    one = _chosen(runs, instance, systems)
    jumps = curves(one, clock)
    size = one.resolution[clock]
    ax = new_axes(ax, 7.0, 3.6)
    ends = [one.times[clock].max().item() * size if one.times[clock].numel() else 0.0]
    end = max(1e-12, *ends) * 1.05
    for s, system in enumerate(one.systems):
        label: str | None = short(system)
        for t in range(one.shape[2]):
            if not bool(one.present[0, s, t]):
                continue
            levels, ticks = jumps.levels[0, s, t].numpy(), jumps.ticks[0, s, t].numpy()
            real = levels != LEVEL_PAD
            levels, ticks = levels[real] / MILLION, ticks[real]
            known = ticks != UNKNOWN
            if not known.all():
                label = label and f"{label} (reached {levels[~known].max():g} at an unknown time)"
            x = np.concatenate([[0.0], ticks[known] * size, [end]])
            y = np.concatenate([[0.0], levels[known], [levels[known].max() if known.any() else 0.0]])
            ax.step(x, y, where="post", lw=1.6, alpha=1.0 if one.shape[2] == 1 else 0.6, label=label, **line_style(s))
            if known.any():
                style = line_style(s)
                ax.plot(ticks[known] * size, levels[known], marker(s), ms=3.5, color=style["color"])
            label = None
    ax.set_xlim(0, end)
    ax.set_ylim(-0.03, 1.05)
    ax.set_xlabel(clock)
    ax.set_ylabel("return reached")
    plain_frame(ax, grid="both")
    legend(ax, columns=3)
    caption(ax, f"Return curves of {short(instance, 50)}", "Higher and further left is better; 1 is success.")
    return ax


def time_to_levels(
    runs: Trajectories,
    instance: str,
    systems: Sequence[str] | str | None = None,
    clock: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """g(R) of one instance: the time at which each system reached each level; lower is better.

    A level that was never reached stands at the top edge as a cross, one at an unknown time as a question mark.
    """
    clock = runs.clock(clock)
    one = _chosen(runs, instance, systems)
    g = time_to_return(one, clock=clock)
    levels = g.levels[0].numpy()
    names = [f"{level / MILLION:.3g}" for level in levels if level != LEVEL_PAD]
    ax = new_axes(ax, 7.0, 3.6)
    ticks = g.ticks[0].numpy()  # [system, trial, level]
    usable = ticks[(ticks != NEVER) & (ticks != UNKNOWN)]
    top = (usable.max() if usable.size else 1) * g.resolution * 1.12 or 1.0
    for s, system in enumerate(one.systems):
        style = line_style(s)
        label: str | None = short(system)
        shift = 0.5 * (s - (len(one.systems) - 1) / 2) / max(len(one.systems), 1)
        for t in range(one.shape[2]):
            if not bool(one.present[0, s, t]):
                continue
            row = ticks[s, t, : len(names)]
            x = np.arange(len(names)) + shift
            known, never = (row != NEVER) & (row != UNKNOWN), row == NEVER
            ax.plot(x[known], row[known] * g.resolution, marker(s), ms=5, color=style["color"], label=label)
            ax.plot(x[never], np.full(never.sum(), top), "x", ms=5, color=style["color"], clip_on=False)
            for place in x[row == UNKNOWN]:
                ax.annotate("?", (place, top), ha="center", va="center", color=style["color"], fontsize=9)
            label = None
    ax.set_xticks(range(len(names)), names, fontsize=8)
    ax.set_xlim(-0.6, max(len(names), 1) - 0.4)
    ax.set_ylim(0, top)
    ax.set_xlabel("level of return")
    ax.set_ylabel(f"time to reach it ({clock})")
    plain_frame(ax, grid="y")
    legend(ax, columns=3)
    caption(ax, f"Time to return on {short(instance, 50)}", "Lower is better; × never reached, ? at an unknown time.")
    return ax
