"""Looks while runs arrive: the sum against the number of instances, and how far each system has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchpref.report.plots.style import (
    FIRST,
    GREY,
    SECOND,
    THIRD,
    caption,
    legend,
    name_size,
    new_axes,
    plain_frame,
    short_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from torchpref.report.shapes import MonitorLike, PlannedGateLike


def look_path(result: PlannedGateLike, ax: Axes | None = None) -> Axes:
    """S = ΣΔ(new, base) after every instance, the boundary of "worse", and where going on is futile.

    Args:
        result: what :func:`torchpref.gate` gives with ``planned``.
        ax: where to draw; a new figure if None.
    """
    ax = new_axes(ax, 7.5, 4.0)
    n = np.arange(1, result.seen + 1)
    ax.plot(
        [0, *n], [0.0, *result.sums], color=FIRST, lw=1.8, label=f"sum of preferences, {result.new} − {result.base}"
    )
    below = np.array(result.worse_below, dtype=float)
    known = ~np.isnan(below)
    if known.any():
        ax.plot(n[known], below[known], color=SECOND, lw=1.4, drawstyle="steps-post", label="worse at or below")
    if result.stopped:
        ax.plot([result.stopped], [result.sums[result.stopped - 1]], "o", color=SECOND, label=f"{result.verdict} here")
    elif result.futile and result.seen:
        ax.plot([result.seen], [result.sums[-1]], "s", color=THIRD, label="going on is futile from here")
    ax.axvline(result.planned, color=GREY, lw=1, ls=":")
    ax.axhline(0, color=GREY, lw=0.6)
    ax.set_xlim(0, result.planned * 1.01)
    ax.set_xlabel("instances in the planned order")
    ax.set_ylabel("sum of preferences")
    plain_frame(ax, "y")
    legend(ax, 2)
    caption(ax, f"{result.verdict}: {result.new} against {result.base}", result.line)
    return ax


def strips(result: MonitorLike, ax: Axes | None = None) -> Axes:
    """A strip per system over the runs that it spent: in, out, open or done.

    Args:
        result: what :func:`torchpref.monitor` gives.
        ax: where to draw; a new figure if None.
    """
    colours = {"in": FIRST, "out": GREY, "open": SECOND, "done": THIRD}
    place = {"in": 0, "open": 1, "done": 2, "out": 3}
    rows = sorted(result.rows(), key=lambda row: (place[row["state"]], -row["beats"], row["system"]))
    ax = new_axes(ax, 7.5, 1.6 + 0.24 * len(rows))
    for state, colour in colours.items():
        at = [number for number, row in enumerate(rows) if row["state"] == state]
        if at:
            ax.barh(at, [rows[number]["seen"] for number in at], height=0.7, color=colour, label=state)
    ax.set_yticks(range(len(rows)), short_names([row["system"] for row in rows]), fontsize=name_size(len(rows)))
    ax.invert_yaxis()
    ax.set_xlim(0, result.planned)
    ax.set_xlabel(f"runs spent of {result.planned} planned")
    plain_frame(ax)
    legend(ax)
    caption(ax, "Who needs more runs", result.status)
    return ax
