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
    label_width,
    name_size,
    new_axes,
    short,
    short_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from torchpref.report.shapes import PreferencesLike
    from torchpref.runs.trajectories import Trajectories

#: Up to this many systems the numbers stand in the cells.
NUMBERS_UP_TO = 12
#: Columns that a picture of coverage shows apart.
_COLUMNS = 300


def preference_matrix(prefs: PreferencesLike, order: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
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
    side, beside = min(9.0, max(3.2, 0.34 * count if count <= 20 else 2.6 + 0.2 * count)), label_width(names)
    ax = new_axes(ax, side + beside + 1.4, side + beside + 0.7)
    colours = LinearSegmentedColormap.from_list("preference", PREFERENCE_MAP).with_extremes(bad=GREY + "55")
    image = ax.imshow(np.ma.masked_invalid(values), cmap=colours, vmin=-1, vmax=1, interpolation="nearest")
    ax.set_xticks(range(count), names, rotation=90, fontsize=name_size(count))
    ax.set_yticks(range(count), names, fontsize=name_size(count))
    ax.tick_params(length=0)
    if count <= NUMBERS_UP_TO:
        size = min(8.0, 22 * side / count)  # five characters fill six sevenths of a cell
        for (i, j), value in np.ndenumerate(values):
            if not np.isnan(value):
                dark = abs(value) > 0.6
                ax.text(
                    j, i, f"{value:+.2f}", ha="center", va="center", fontsize=size, color="white" if dark else "black"
                )
    ax.figure.colorbar(image, ax=ax, shrink=0.7, label="Δ̄ of the row over the column", ticks=[-1, -0.5, 0, 0.5, 1])
    on = f", clock {prefs.clock}" if prefs.clock else ""
    caption(
        ax, f"{prefs.measure.upper()}{on}: preferences between pairs", "Blue: row preferred. Grey: no shared instance."
    )
    return ax


def coverage(runs: Trajectories, ax: Axes | None = None) -> Axes:
    """Who ran what: runs per system and instance; a gap is a run that is missing, counted at the right.

    Where instances are more than columns of the picture, a column shows the worst of its instances, so no gap is lost.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.ticker import MaxNLocator

    here = runs.present.sum(-1).cpu().numpy().T  # [system, instance]
    most = int(here.max()) if here.size else 0
    state = np.where(here == 0, 0, np.where(here < most, 1, 2))
    count, missing = len(runs.systems), (here == 0).sum(1)
    names = short_names(runs.systems)
    height = min(12.0, max(1.8, 1.2 + (0.2 if count <= 45 else 0.12) * count))
    ax = new_axes(ax, 6.6 + label_width(names), height)
    edges = [0, *(i for i in range(1, len(runs.benchmarks)) if runs.benchmarks[i] != runs.benchmarks[i - 1])]
    edges.append(len(runs.benchmarks))
    width = max(1, -(-here.shape[1] // _COLUMNS))
    parts = []
    for start, end in zip(edges, edges[1:], strict=False):
        parts += [state[:, a : min(a + width, end)].min(1) for a in range(start, end, width)]
    shown = np.stack(parts, 1) if parts else state
    colours = ListedColormap([SECOND, "#9CCBE8", FIRST])
    ax.imshow(
        shown, cmap=colours, vmin=0, vmax=2, aspect="auto", interpolation="nearest",
        extent=(-0.5, here.shape[1] - 0.5, count - 0.5, -0.5),
    )  # fmt: skip
    ax.set_yticks(range(count), names, fontsize=name_size(count))
    ax.tick_params(axis="y", length=0)
    for place in np.flatnonzero(missing):
        ax.annotate(
            f"{missing[place]:,}", (1, place), (5, 0), xycoords=ax.get_yaxis_transform(), textcoords="offset points",
            va="center", fontsize=name_size(count), color=SECOND, annotation_clip=False,
        )  # fmt: skip
    for edge in edges[1:-1]:
        ax.axvline(edge - 0.5, color="white", lw=1.5)
    if any(runs.benchmarks):
        middles = [(a + b - 1) / 2 for a, b in zip(edges, edges[1:], strict=False)]
        letters = max(6, int(6.2 * 72 / (0.56 * 8) / max(1, len(middles))))
        ax.set_xticks(middles, [short(runs.benchmarks[a], letters) for a in edges[:-1]], fontsize=8)
        ax.tick_params(axis="x", length=0)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("instances" + (" by benchmark" if any(runs.benchmarks) else ""))
    text = f"Blue: {'all ' + str(most) + ' trials' if most > 1 else 'run'}; orange: no run ({missing.sum():,} of {here.size:,}"
    text += ", per system at the right)." if missing.any() else ")."
    if most > 1:
        text += " Light blue: fewer trials."
    if width > 1:
        text += f" A column stands for up to {width} instances and shows the worst of them."
    caption(ax, "Coverage", text)
    return ax
