"""Looks while runs arrive as one HTML page with a picture, without any request to the network."""

from __future__ import annotations

import html
import io

from torchpref.report.shapes import MonitorLike, PlannedGateLike

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
svg {{ max-width: 100%; height: auto }}</style></head>
<body><h1>{title}</h1><p>{text}</p><figure role="img" aria-label="{text}">{picture}</figure></body></html>
"""


def looking_page(result: PlannedGateLike | MonitorLike) -> str:
    """The page of a gate with ``planned`` or of a board.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    from torchpref.report.plots.looks import look_path, strips

    if isinstance(result, PlannedGateLike):
        ax, title, text = look_path(result), f"{result.new} against {result.base}: {result.verdict}", result.line
    else:
        ax, title, text = strips(result), "Who needs more runs", result.status
    figure = ax.get_figure(root=True)
    assert figure is not None
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    picture = buffer.getvalue()
    return _PAGE.format(title=html.escape(title), text=html.escape(text), picture=picture[picture.index("<svg") :])
