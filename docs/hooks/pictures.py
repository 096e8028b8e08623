"""The pictures of the documentation, drawn by torchpref's own plots from data that ship with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import torchpref as tp
from torchpref.report import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from torchpref.evaluation.result import Evaluation


@cache
def _demo() -> Evaluation:
    return tp.evaluate(tp.sgrl.load("demo"), bootstrap=500, seed=0)


def two_runs() -> tp.Trajectories:
    """The pair of runs that the page of definitions works through."""
    levels = [0.25, 0.5, 0.75, 1.0]
    times = [[10, 11, 12, 13], [1, 8, 15, 22]]
    return tp.Trajectories([[levels, levels]], times={"steps": [times]}, systems=["A", "B"], instances=["task"])


def tie_rates() -> Axes:
    return plots.tie_rates(_demo())


def leaderboard() -> Axes:
    board = _demo()["rpp"].board
    assert board is not None
    return plots.leaderboard(board)


def preference_matrix() -> Axes:
    prefs = _demo()["rpp"].preferences
    assert prefs is not None
    return plots.preference_matrix(prefs)


def advantage() -> Axes:
    mixed = tp.sgrl.load("doorkey-mixed")
    return plots.advantage(tp.preferences(mixed, "lr"))


def two_curves() -> Axes:
    return plots.return_curves(two_runs(), "task")


def two_times() -> Axes:
    return plots.time_to_levels(two_runs(), "task")


def budgets() -> Axes:
    return plots.budget_curves(tp.budget_curves(tp.sgrl.load("taxi-mixed")))


_DRAWN: tuple[Callable[[], Axes], ...] = (
    tie_rates, leaderboard, preference_matrix, advantage, two_curves, two_times, budgets,
)  # fmt: skip
NAMES = tuple(function.__name__ for function in _DRAWN)


def draw(name: str, path: Path) -> None:
    """Draw one picture as SVG, the same bytes each time."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "torchpref"}):
        axes = _DRAWN[NAMES.index(name)]()
        axes.get_figure(root=True).savefig(path, format="svg", metadata={"Date": None}, facecolor="white")
