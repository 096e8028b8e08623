"""Axes that a notebook shows. Imported where a figure is made, since it needs matplotlib."""

from __future__ import annotations

from io import BytesIO

from matplotlib.axes import Axes

#: Dots per inch in notebooks.
DPI = 110


class ShownAxes(Axes):
    """Axes of a figure that no window manages; as the last value of a notebook's cell they show that figure."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        figure = self.get_figure(root=True)
        assert figure is not None
        figure.savefig(picture, format="png", dpi=DPI, facecolor="white")
        return picture.getvalue()
