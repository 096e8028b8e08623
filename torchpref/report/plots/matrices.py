"""Square pictures: preferences between all pairs, and who ran what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from torchpref.report.plots.style import (
    FIRST,
    GREY,
    PREFERENCE_MAP,
    SECOND,
    caption,
    name_size,
    new_axes,
    short,
    short_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from torchpref.pairwise.preferences import Preferences
    from torchpref.runs.trajectories import Trajectories

#: Up to this many systems the numbers stand in the cells.
NUMBERS_UP_TO = 12


def preference_matrix(prefs: Preferences, order: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """A heat map of Δ̄: blue where the system of the row is preferred to that of the column, orange where not.

    Args:
        prefs: the preferences.
        order: systems from first to last; by mean preference over rivals if None.
        ax: where to draw; a new figure if None.
    """
    from matplotlib.colors import LinearSegmentedColormap

    mean = prefs.mean().cpu().numpy()
    if order is None:
        own = np.nan_to_num(prefs.system_means().cpu().numpy(), nan=-2.0)
        positions = sorted(range(len(own)), key=lambda i: (-own[i], prefs.systems[i]))
    else:
        positions = [prefs.systems.index(name) for name in order]
    values = mean[np.ix_(positions, positions)]
    np.fill_diagonal(values, np.nan)
    names = short_names([prefs.systems[i] for i in positions], 26)
    count = len(names)
    side = min(11.0, max(4.2, 2.6 + 0.2 * count))
    ax = new_axes(ax, side + 0.8, side)
    colours = LinearSegmentedColormap.from_list("preference", PREFERENCE_MAP).with_extremes(bad=GREY + "55")
    image = ax.imshow(np.ma.masked_invalid(values), cmap=colours, vmin=-1, vmax=1, interpolation="nearest")
    ax.set_xticks(range(count), names, rotation=90, fontsize=name_size(count))
    ax.set_yticks(range(count), names, fontsize=name_size(count))
    ax.tick_params(length=0)
    if count <= NUMBERS_UP_TO:
        for (i, j), value in np.ndenumerate(values):
            if not np.isnan(value):
                dark = abs(value) > 0.6
                ax.text(j, i, f"{value:+.2f}", ha="center", va="center", fontsize=7, color="white" if dark else "black")
    ax.figure.colorbar(image, ax=ax, shrink=0.7, label="Δ̄ of the row over the column", ticks=[-1, -0.5, 0, 0.5, 1])
    on = f", clock {prefs.clock}" if prefs.clock else ""
    caption(
        ax, f"{prefs.measure.upper()}{on}: preferences between pairs", "Blue: row preferred. Grey: no shared instance."
    )
    return ax


def coverage(runs: Trajectories, ax: Axes | None = None) -> Axes:
    """Who ran what: runs per system and instance; a gap is a run that is missing."""
    from matplotlib.colors import ListedColormap

    here = runs.present.sum(-1).cpu().numpy().T  # [system, instance]
    most = int(here.max()) if here.size else 0
    state = np.where(here == 0, 0, np.where(here < most, 1, 2))
    count = len(runs.systems)
    ax = new_axes(ax, 8.0, min(12.0, max(1.8, 1.2 + (0.2 if count <= 45 else 0.12) * count)))
    colours = ListedColormap([SECOND, "#9CCBE8", FIRST])
    ax.imshow(state, cmap=colours, vmin=0, vmax=2, aspect="auto", interpolation="nearest")
    ax.set_yticks(range(count), short_names(runs.systems), fontsize=name_size(count))
    ax.tick_params(axis="y", length=0)
    edges = [i for i in range(1, len(runs.benchmarks)) if runs.benchmarks[i] != runs.benchmarks[i - 1]]
    for edge in edges:
        ax.axvline(edge - 0.5, color="white", lw=1.5)
    starts = [0, *edges, len(runs.benchmarks)]
    if any(runs.benchmarks):
        middles = [(a + b - 1) / 2 for a, b in zip(starts, starts[1:], strict=False)]
        ax.set_xticks(middles, [short(runs.benchmarks[int(a)], 18) for a in starts[:-1]], fontsize=8)
        ax.tick_params(axis="x", length=0)
    ax.set_xlabel("instances" + (" by benchmark" if any(runs.benchmarks) else ""))
    missing = int((here == 0).sum())
    text = f"Blue: {'all ' + str(most) + ' trials' if most > 1 else 'run'}; orange: no run ({missing} of {here.size})."
    if most > 1:
        text += " Light blue: fewer trials."
    caption(ax, "Coverage", text)
    return ax
