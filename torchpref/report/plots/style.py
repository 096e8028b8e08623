"""How the pictures look: colours that the colour-blind can tell apart, on paper and on dark pages.

Colours of text, axes and grid come from matplotlib's current style, so that a figure made under
``matplotlib.style.context("dark_background")`` is readable there.
"""

from __future__ import annotations

from collections.abc import Sequence
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

from torchpref.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's palette without black and yellow, which vanish on one kind of page or the other.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
FIRST, SECOND, THIRD = COLOURS[:3]
#: Neutral on white and on black.
GREY = "#8C8C8C"
#: Line styles beside colours: more than six lines, or a print without colour.
DASHES = ("-", "--", "-.", ":")
#: Marks that go with the dashes.
MARKERS = ("o", "s", "^", "D")
#: Diverging from the second system's colour over white to the first's.
PREFERENCE_MAP = ("#B34700", "#F5A76C", "#F7F7F7", "#6CB3DB", "#00558C")

#: Names are cut to this many characters in pictures.
NAME_LENGTH = 34
#: Width of a letter by the font's size, on average; bold letters are wider.
_LETTER = 0.56
_BOLD = 1.12
#: Points between the axes and a legend below them: room for the numbers and the name of the axis.
_BELOW = 38


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The given axes, or those of a new figure of that size in inches, which needs no display and is shown in notebooks."""
    if ax is not None:
        return ax
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        from torchpref.report.plots.shown import ShownAxes
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot") from error
    figure: Figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot(axes_class=ShownAxes)


def label_width(names: Sequence[str], count: int | None = None) -> float:
    """Inches that the longest of some names takes at the size for ``count`` names side by side."""
    size = name_size(len(names) if count is None else count)
    return max((len(name) for name in names), default=0) * _LETTER * size / 72


def caption(ax: Axes, title: str, text: str) -> None:
    """A title, and below it what the picture shows, as the axes' accessible label too; called when all else is drawn.

    Both are wrapped to the width of the axes, which is known only once the names beside them have taken theirs.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    points = ax.get_window_extent().width * 72 / figure.dpi
    title_lines = _wrapped(title, points, 10 * _BOLD)
    lines = _wrapped(text, points, 7)
    ax.set_title(
        "\n".join(title_lines),
        loc="left",
        fontsize="medium",
        fontweight="bold",
        pad=8 + 9.5 * len(lines) + 4 * bool(lines),
    )
    if lines:
        ax.annotate(
            "\n".join(lines), (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points", fontsize="x-small",
            va="bottom",
        )  # fmt: skip
    ax.set_label(f"{title}. {text}")


def _wrapped(text: str, width: float, size: float) -> list[str]:
    """Lines of at most ``width`` points at a font size; a word that is longer is broken."""
    from textwrap import wrap

    return wrap(text, max(16, int(width / (_LETTER * size))), break_on_hyphens=False)


def plain_frame(ax: Axes, grid: str | None = "x") -> None:
    """Axes without the two lines that say nothing, and a quiet grid."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if grid is not None:
        ax.grid(True, axis=grid, color=GREY, alpha=0.25, linewidth=0.6)  # type: ignore[arg-type]
    ax.set_axisbelow(True)


def short(name: str, length: int = NAME_LENGTH) -> str:
    """A name that fits: the middle is cut out, since names often differ at both ends. Dollar signs stay text."""
    if len(name) > length:
        head = (length - 1) // 2
        name = f"{name[:head]}…{name[len(name) - (length - 1 - head) :]}"
    return name.replace("$", r"\$")


def short_names(names: Sequence[str], length: int = NAME_LENGTH) -> list[str]:
    """Names that fit and still differ: where cutting makes two alike, what all names share is cut out first."""
    cut = [short(name, length) for name in names]
    if len(set(cut)) == len(set(names)) or len(set(names)) < 2:
        return cut
    start = len(commonprefix(list(names)))
    end = len(commonprefix([name[start:][::-1] for name in names]))
    rest = [name[start : len(name) - end] for name in names]
    return [short(f"{'…' if start else ''}{part}{'…' if end else ''}", length) for part in rest]


def name_size(count: int) -> float:
    """Font size in points for ``count`` names side by side."""
    return 9.0 if count <= 20 else 7.5 if count <= 45 else 5.5


def line_style(number: int) -> dict[str, Any]:
    """Colour and dashes of the n-th line; the first 24 differ."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number // len(COLOURS) % len(DASHES)]}


def marker(number: int) -> str:
    """The mark of the n-th series, which changes where colours begin anew."""
    return MARKERS[number // len(COLOURS) % len(MARKERS)]


def legend(ax: Axes, columns: int = 4) -> None:
    """A legend without a box that lies off the data: below the axes, or beside them if it has many entries."""
    from matplotlib.transforms import ScaledTranslation

    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    options: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    if len(handles) <= 6:
        widest = label_width(labels, 99) + 0.5
        columns = max(1, min(columns, int(ax.get_window_extent().width / ax.figure.dpi / widest)))
        below = ScaledTranslation(0, -_BELOW / 72, ax.figure.dpi_scale_trans)
        options = {
            "loc": "upper left",
            "bbox_to_anchor": (0, 0),
            "bbox_transform": ax.transAxes + below,
            "ncols": columns,
        }
        options["borderaxespad"] = 0.0
    ax.legend(handles, labels, frameon=False, fontsize="x-small", **options)


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Positions of labels moved apart so that neighbours are at least ``gap`` apart, order kept."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    blocks: list[list[float]] = []  # [centre, count] of labels that touch
    for i in order:
        blocks.append([positions[i], 1.0])
        while len(blocks) > 1 and blocks[-1][0] - blocks[-2][0] < gap * (blocks[-1][1] + blocks[-2][1]) / 2:
            (one, n), (two, m) = blocks[-2], blocks.pop()
            blocks[-1] = [(one * n + two * m) / (n + m), n + m]
    placed: list[float] = []
    for centre, count in blocks:
        placed += [centre + gap * (k - (count - 1) / 2) for k in range(int(count))]
    result = [0.0] * len(positions)
    for i, place in zip(order, placed, strict=True):
        result[i] = place
    return result
