"""The demo's words: what success rate cannot tell and the preferences can, on runs whose true order is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from torchpref.report.numbers import percent
from torchpref.report.pieces import add, heading, table
from torchpref.report.tables import evaluation_tables
from torchpref.runs.measures import describe

if TYPE_CHECKING:
    from torchpref.report.shapes import EvaluationLike


def demo_tables(result: EvaluationLike, known: Sequence[str], about: str, paths: str) -> list[RenderableType]:
    """The tables of an evaluation, and how many pairs each measure puts in the known order.

    Args:
        result: the evaluation.
        known: the systems in their known order, best first.
        about: what the data are.
        paths: the data's file, for the closing line.
    """
    pairs = len(known) * (len(known) - 1) // 2
    right = table(("measure", "<"), "right", "wrong", "tied", "run pairs tied")
    position = {name: i for i, name in enumerate(result.systems)}
    for name, measured in result.measures.items():
        signs = [
            float(measured.mean_preference[position[first], position[second]])
            for place, first in enumerate(known)
            for second in known[place + 1 :]
        ]
        wins, losses = sum(sign > 0 for sign in signs), sum(sign < 0 for sign in signs)
        title = f"{name.upper():<3}  {describe(name).title}"
        add(right, title, wins, losses, len(signs) - wins - losses, percent(measured.tie_rate, 2))
    return [
        Text(about),
        Text(""),
        *evaluation_tables(result),
        heading("Against the known order", f"how many of the {pairs} pairs of systems a measure puts right"),
        right,
        Text(f"\nThe same on data of your own:  torchpref evaluate FILE\nThis was:  torchpref evaluate {paths}"),
    ]
