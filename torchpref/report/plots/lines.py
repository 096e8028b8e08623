"""Lines over a budget, over the share of instances, over the success rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from torchpref.errors import UsageError
from torchpref.report.plots.style import (
    GREY,
    caption,
    legend,
    line_style,
    new_axes,
    plain_frame,
    short,
    spread,
)
from torchpref.runs.measures import describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from torchpref.report.shapes import BudgetLike

#: What a line can stand for: x, y, and the limits of its interval where it has one.
Series = (
    tuple[Sequence[float], Sequence[float]] | tuple[Sequence[float], Sequence[float], Sequence[tuple[float, float]]]
)


def budget_curves(curves: BudgetLike, value: str = "solved", highlight: int = 8, ax: Axes | None = None) -> Axes:
    """How systems fare as the budget grows.

    Args:
        curves: what :func:`torchpref.budget_curves` gives.
        value: ``"solved"`` (share of runs that succeed within the budget), ``"score"`` or ``"mean_preference"``.
        highlight: at most so many systems in colour: those that lead at some budget, then the best at the largest one.
        ax: where to draw; a new figure if None.
    """
    titles = {
        "solved": "solved within the budget (%)",
        "score": "score (log-odds)",
        "mean_preference": "mean preference",
    }
    if value not in titles:
        raise UsageError(f"value must be one of {', '.join(titles)}, got {value!r}")
    values = getattr(curves, value).cpu().numpy() * (100 if value == "solved" else 1)
    leaders = [name for lead in curves.leaders if len(lead) < len(curves.systems) for name in lead]
    final = np.nan_to_num(values[-1], nan=-np.inf) if len(values) else np.zeros(len(curves.systems))
    by_end = [curves.systems[i] for i in np.argsort(-final, kind="stable")]
    coloured = list(dict.fromkeys([*leaders, *by_end]))[:highlight]
    ax = new_axes(ax, 7.5, 4.0)
    for i, name in enumerate(curves.systems):
        strong = name in coloured
        style = line_style(coloured.index(name)) if strong else {"color": GREY, "linestyle": "-"}
        ax.plot(
            curves.budgets, values[:, i], lw=1.8 if strong else 0.7, alpha=1.0 if strong else 0.35,
            zorder=3 if strong else 2, label=short(name) if strong else None, **style,
        )  # fmt: skip
    budgets = np.array(curves.budgets)
    if len(budgets) > 2 and budgets[budgets > 0].size and budgets.max() > 20 * budgets[budgets > 0].min():
        ax.set_xscale("symlog", linthresh=float(budgets[budgets > 0].min()))
        ax.xaxis.set_major_formatter(lambda number, _: f"{number:g}")
    if len(budgets):
        ax.set_xlim(budgets.min(), budgets.max())
        ends = [values[-1, curves.systems.index(name)] for name in coloured]
        known = [(name, end) for name, end in zip(coloured, ends, strict=True) if np.isfinite(end)]
        low, high = ax.get_ylim()
        for (name, end), y in zip(known, spread([end for _, end in known], 0.055 * (high - low)), strict=True):
            ax.annotate(
                short(name, 28), (budgets.max(), end), (budgets.max() * 1.03, y), fontsize="x-small", va="center",
                color=line_style(coloured.index(name))["color"], annotation_clip=False,
            )  # fmt: skip
    ax.set_xlabel(f"budget ({curves.clock})")
    ax.set_ylabel(titles[value])
    plain_frame(ax, grid="both")
    changes = curves.leader_changes
    caption(
        ax,
        f"{curves.measure.upper()} within a budget of {curves.clock}",
        f"The first place changes {changes} time{'' if changes == 1 else 's'} as the budget grows.",
    )
    return ax


def data_efficiency(series: Mapping[str, Series], label: str = "accuracy (%)", ax: Axes | None = None) -> Axes:
    """How much each measure knows from a share of the instances.

    Args:
        series: per measure the shares (0 to 1), the figure (0 to 1), and optionally its limits.
        label: what the figure is called.
        ax: where to draw; a new figure if None.
    """
    ax = new_axes(ax, 6.0, 3.6)
    _measure_lines(ax, series)
    ax.set_xlim(0, 102)
    ax.set_xlabel("instances kept (%)")
    ax.set_ylabel(label)
    legend(ax, columns=6)
    caption(ax, "Data efficiency", "Higher with fewer instances is better; bands are intervals over draws.")
    return ax


def saturation(series: Mapping[str, Series], label: str = "discriminative power (%)", ax: Axes | None = None) -> Axes:
    """Discriminative power against the success rate of the instances compared, in bins of equal count.

    Args:
        series: per measure the mean success rate of each bin (0 to 1), the power (0 to 1), and optionally its limits.
        label: what the figure is called.
        ax: where to draw; a new figure if None.
    """
    ax = new_axes(ax, 6.0, 3.6)
    _measure_lines(ax, series)
    ax.set_xlim(-2, 102)
    ax.set_xlabel("success rate of the instances compared (%)")
    ax.set_ylabel(label)
    legend(ax, columns=6)
    caption(ax, "Saturation", "Success rate says little where nearly all or nearly none succeed.")
    return ax


def _measure_lines(ax: Axes, series: Mapping[str, Series]) -> None:
    for measure, values in series.items():
        x, y = 100 * np.asarray(values[0], dtype=float), 100 * np.asarray(values[1], dtype=float)
        look = describe(measure)
        ax.plot(x, y, color=look.colour, marker=look.marker, ms=4, lw=1.5, label=measure.upper())
        if len(values) == 3:
            limits = 100 * np.asarray(values[2], dtype=float).reshape(-1, 2)
            ax.fill_between(x, limits[:, 0], limits[:, 1], color=look.colour, alpha=0.15, linewidth=0)
    ax.set_ylim(-3, 103)
    plain_frame(ax, grid="both")
