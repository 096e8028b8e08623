"""The report page: one HTML file without any request to the network (extra ``report``).

The page is a Jinja template with its own style and a small script instead of a plotting library: plotly alone would be
4.8 MB of every report and most of its opening time, and the page needs three pictures only.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from torchpref.errors import MissingExtraError
from torchpref.report.page.data import page_data

if TYPE_CHECKING:
    from torchpref.report.shapes import EvaluationLike

__all__ = ["evaluation_page"]

#: Largest size of the data in the page, in bytes; beyond it curves and instances are thinned out, which the page says.
DATA_BUDGET = 4_500_000


def evaluation_page(result: EvaluationLike, title: str | None = None, data_budget: int = DATA_BUDGET) -> str:
    """The report as one HTML page.

    Args:
        result: what :func:`torchpref.evaluate` gives.
        title: heading of the page; made from the data if None.
        data_budget: bound on the size of the data that the page carries, in bytes.
    """
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtraError("jinja2", "report") from error
    from importlib.metadata import version

    source = files("torchpref.report.page")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(source.joinpath("page.html").read_text(encoding="utf-8"))
    data = page_data(result, data_budget)
    page: str = template.render(
        title=title or f"{len(result.systems)} systems on {len(result.runs.instances)} instances",
        data=data,
        json=_script_json(data),
        style=_raw(source.joinpath("page.css").read_text(encoding="utf-8")),
        script=_raw(source.joinpath("page.js").read_text(encoding="utf-8")),
        findings=result.findings,
        versions=_versions(version("torchpref")),
        options=_options(result),
    )
    return page


def _raw(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)


def _script_json(data: dict[str, Any]) -> Any:
    """JSON that can stand inside a script element: nothing in it can end the element or start markup."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return _raw(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _options(result: EvaluationLike) -> dict[str, str]:
    """What was asked for, in words."""
    words = {}
    for name, value in {**result.options, "clock": result.clock, "seed": result.seed}.items():
        listed = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        words[name.replace("_", " ")] = "none" if listed is None else str(listed)
    return words


def _versions(own: str) -> dict[str, str]:
    import platform

    import numpy
    import torch

    return {
        "torchpref": own,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "Python": platform.python_version(),
    }
