"""Rankings as pictures: scores with intervals, and how the measures' rankings differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from torchpref.report.plots.style import (
    FIRST,
    GREY,
    SECOND,
    caption,
    label_width,
    line_style,
    name_size,
    new_axes,
    plain_frame,
    short_names,
    spread,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from torchpref.report.shapes import BoardLike, EvaluationLike


def leaderboard(board: BoardLike, ax: Axes | None = None) -> Axes:
    """A forest plot: score and interval of every system in rank order, first at the top.

    Bars at the right join systems that cannot be told apart: no pair among them is significant after Holm. A system
    without a finite score stands in its place with an open mark at the edge.
    """
    rows = board.rows()
    count = len(rows)
    names = short_names([row["system"] for row in rows])
    ax = new_axes(ax, 5.2 + label_width(names), max(2.0, 0.9 + 0.24 * count if count <= 45 else 0.9 + 0.16 * count))
    scores = [row["score"] for row in rows]
    finite = [value for row in rows for value in (row["score"], row["low"], row["high"]) if value is not None]
    left, right = (min(finite), max(finite)) if finite else (-1.0, 1.0)
    room = 0.04 * (right - left or 1.0)
    for place, row in enumerate(rows):
        if row["score"] is None:
            ax.plot(left - room, place, marker="D", mfc="none", mec=GREY, ms=5, clip_on=False)
        elif row["low"] is not None:
            ax.plot([row["low"], row["high"]], [place, place], color=FIRST, lw=1.6, solid_capstyle="butt")
    shown = [place for place, score in enumerate(scores) if score is not None]
    ax.plot([scores[place] for place in shown], shown, "o", color=FIRST, ms=4.5, label="score")
    for number, group in enumerate(_groups_of_several(board)):
        places = [place for place, row in enumerate(rows) if row["system"] in group]
        x = 1.015 + 0.02 * (number % 6)
        ax.plot(
            [x, x], [min(places) - 0.3, max(places) + 0.3], color=SECOND, lw=2.2, alpha=0.85, clip_on=False,
            transform=ax.get_yaxis_transform(),
        )  # fmt: skip
    labels = [f"{name}  {row['rank']}" for name, row in zip(names, rows, strict=True)]
    ax.set_yticks(range(count), labels, fontsize=name_size(count))
    ax.set_ylim(count - 0.4, -0.6)
    unit = "Elo points" if board.scale == "elo" else "log-odds"
    ax.set_xlabel(f"Bradley–Terry score ({unit})")
    plain_frame(ax)
    on = f", clock {board.clock}" if board.clock else ""
    text = f"Score with {100 * board.level:g} % interval; a bar at the right joins systems that cannot be told apart."
    if any(score is None for score in scores):
        text += " Open mark: no finite score."
    caption(ax, f"{board.measure.upper()}{on}", text)
    return ax


def _groups_of_several(board: BoardLike) -> list[tuple[str, ...]]:
    return [group for group in board.groups if len(group) > 1]


def bump_chart(result: EvaluationLike | Mapping[str, Mapping[str, int]], ax: Axes | None = None) -> Axes:
    """The rank of every system under each measure; a line that crosses others is a system that measures disagree on.

    Args:
        result: an evaluation, or per measure a mapping from systems to ranks.
        ax: where to draw; a new figure if None.
    """
    from matplotlib.ticker import MaxNLocator

    ranks = _ranks(result)
    measures = list(ranks)
    systems = sorted({name for by_system in ranks.values() for name in by_system})
    last = ranks[measures[-1]] if measures else {}
    order = sorted(systems, key=lambda name: (last.get(name, math.inf), name))
    count = len(order)
    ax = new_axes(
        ax,
        1.2 + label_width(short_names(order)) + max(2.4, 0.9 * len(measures)),
        max(2.4, 0.9 + (0.22 if count <= 45 else 0.15) * count),
    )
    # Systems that move most between measures are in colour; with many systems the others stay grey.
    moves = {name: _span([ranks[measure].get(name) for measure in measures]) for name in order}
    movers = order if count <= 12 else sorted(order, key=lambda name: (-moves[name], name))[:8]
    for name in order:
        places = [ranks[measure].get(name, math.nan) for measure in measures]
        strong = name in movers
        style = line_style(movers.index(name)) if strong else {"color": GREY, "linestyle": "-"}
        ax.plot(
            range(len(measures)), places, marker="o", ms=4 if strong else 2.5, lw=1.6 if strong else 0.8,
            alpha=1.0 if strong else 0.45, zorder=3 if strong else 2, label=name, **style,
        )  # fmt: skip
    size = name_size(count)
    ends = _label_places([last.get(name) for name in order])
    for name, y in zip(short_names(order), ends, strict=True):
        if y is not None:
            ax.annotate(name, (len(measures) - 1, y), (7, 0), textcoords="offset points", va="center", fontsize=size)
    ax.set_xticks(range(len(measures)), [measure.upper() for measure in measures])
    ax.set_xlim(-0.3, len(measures) - 0.7)
    ax.set_ylim(count + 0.6, 0.4)
    ax.set_ylabel("rank")
    ax.set_yticks(sorted({1, *(tick for tick in MaxNLocator(integer=True).tick_values(1, count) if 2 < tick <= count)}))
    plain_frame(ax, grid="y" if count <= 20 else None)
    ax.margins(x=0.05)
    text = "A line per system; crossings are disagreements."
    if count > 12:
        text = "The eight systems that measures disagree on most are in colour."
    caption(ax, "Rank under each measure", text)
    return ax


def _ranks(result: EvaluationLike | Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    if isinstance(result, Mapping):
        return {measure: dict(by_system) for measure, by_system in result.items()}
    return {
        name: {system: rank for system, rank in zip(result.systems, one.rank, strict=True) if rank is not None}
        for name, one in result.measures.items()
    }


def _span(places: list[int | None]) -> int:
    known = [place for place in places if place is not None]
    return max(known) - min(known) if known else 0


def _label_places(ranks: list[int | None]) -> list[float | None]:
    """Where names stand at the right edge: at their rank, those of tied systems one below the other."""
    known = [float(rank) for rank in ranks if rank is not None]
    places = iter(spread(known, 0.9))
    return [None if rank is None else next(places) for rank in ranks]
