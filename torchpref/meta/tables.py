"""A meta-evaluation as text and as Markdown: rows are figures, columns measures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from torchpref.meta.definitions import DEFINITIONS, GROUPS
from torchpref.report.shapes import EstimateLike, MetaLike, MetaTableLike, SeriesLike

_TITLES = {
    "ranking_of_all": "ranking, τ with that of all instances",
    "ranking_as_annotated": "ranking, τ with that as annotated",
    "same_sign": "pairs with the sign as annotated",
}
_CORRELATIONS = {"ranking_of_all", "ranking_as_annotated"}
_WIDTH = 15
_ALONG = {
    "share": "instances kept",
    "success_rate": "success rate of the instances",
    "budget": "budget",
    "pair_success": "success rate of the pair",
    "annotation": "annotation",
}


def _is_percent(key: str) -> bool:
    return DEFINITIONS[key].percent if key in DEFINITIONS else key not in _CORRELATIONS


def _title(key: str) -> str:
    title = DEFINITIONS[key].title if key in DEFINITIONS else _TITLES[key]
    return title + (", %" if _is_percent(key) else "")


def number(value: float, percent: bool) -> str:
    """A figure in per cent with one or two digits, or a correlation with two; a dash where there is none."""
    if math.isnan(value):
        return "–"
    if percent:
        return f"{100 * value:.2f}"
    return f"{value + 0.0:.2f}"


def _limits(estimate: EstimateLike, percent: bool) -> str:
    if math.isnan(estimate.low) or not estimate.exists:
        return ""
    digits = 1 if percent else 2
    low, high = (limit * (100 if percent else 1) + 0.0 for limit in (estimate.low, estimate.high))
    return f"{low:.{digits}f}…{high:.{digits}f}"


def _reasons(figures: Mapping[str, Mapping[str, EstimateLike]]) -> list[str]:
    """Why figures are missing: measures with one reason for one figure together."""
    found: dict[tuple[str, str], list[str]] = {}
    for measure, row in figures.items():
        for key, estimate in row.items():
            if estimate.reason:
                found.setdefault((key, estimate.reason), []).append(measure.upper())
    merged: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (key, reason), measures in found.items():
        merged.setdefault((reason, tuple(measures)), []).append(DEFINITIONS[key].title.strip())
    lines = []
    for (reason, names), titles in merged.items():
        who = "" if len(names) == len(figures) else f" ({', '.join(names)})"
        lines.append(f"– {', '.join(titles)}{who}: {reason}")
    return lines


def text_table(table: MetaTableLike) -> str:
    """The table for the terminal; intervals stand below the values."""
    measures = list(table.figures)
    width = max(len(_title(key)) for key in DEFINITIONS if DEFINITIONS[key].group) + 2
    lines = [" " * width + "".join(name.upper().rjust(_WIDTH) for name in measures)]
    for group in GROUPS:
        lines.append(group)
        for key, definition in DEFINITIONS.items():
            if definition.group != group:
                continue
            row = [table.figures[name][key] for name in measures]
            cells = "".join(number(each.value, definition.percent).rjust(_WIDTH) for each in row)
            lines.append(f"  {_title(key)}".ljust(width) + cells)
            limits = [_limits(each, definition.percent) for each in row]
            if any(limits):
                lines.append(" " * width + "".join(limit.rjust(_WIDTH) for limit in limits))
    lines += _reasons(table.figures)
    lines += _excluded(table)
    return "\n".join(line.rstrip() for line in lines)


def _excluded(table: MetaTableLike) -> list[str]:
    some = {name: count for name, count in table.excluded.items() if count}
    if not some:
        return []
    counts = ", ".join(f"{name.upper()} {count}" for name, count in some.items())
    return [f"pairs that share no instance, of {table.pairs}: {counts}"]


def text(result: MetaLike) -> str:
    """The whole evaluation for the terminal."""
    parts = [_head(result), text_table(result.overall)]
    for name, table in result.benchmarks.items():
        parts.append(f"{name or 'no benchmark'}: {table.instances} instances\n{text_table(table)}")
    if result.mean is not None:
        parts.append(f"mean of {len(result.benchmarks)} benchmarks\n{text_table(result.mean)}")
    for series in _all_series(result):
        parts.append(text_series(series))
    parts.append('What a figure means: .explain("leave_one_out")')
    return "\n\n".join(parts)


def _all_series(result: MetaLike) -> tuple[SeriesLike, ...]:
    return result.efficiency, result.saturation, result.power_by_budget, result.power_by_pair, result.subgoals


def _head(result: MetaLike) -> str:
    options = result.options
    clock = f", clock {result.clock}" if result.clock else ""
    return (
        f"Meta-evaluation: {len(result.systems)} systems × {result.overall.instances} instances{clock}; "
        f"{options['resamples']:,} resamples, {100 * options['level']:g} % intervals, α = {options['alpha']:g}, "
        f"seed {options['seed']}"
    )


def _series_keys(series: SeriesLike) -> list[str]:
    keys = next(iter(series.figures.values()), {})
    order = [*DEFINITIONS, *_TITLES]
    return sorted((key for key in keys if key != "success_rate"), key=order.index)


def _points(series: SeriesLike) -> list[str]:
    if series.along == "annotation":
        return [str(point) for point in series.points]
    if series.along == "budget":
        rates = next(iter(series.figures.values()))["success_rate"]
        pairs = zip(series.points, rates, strict=True)
        return [f"{point:g} ({100 * rate.value:.0f} % solved)" for point, rate in pairs]
    return [f"{100 * float(point):.0f} %" for point in series.points]


def text_series(series: SeriesLike) -> str:
    """A block per figure: rows are points, columns measures."""
    definition = DEFINITIONS[series.name]
    if series.reason:
        return f"{definition.title}: {series.reason}"
    along = _ALONG[series.along]
    width = max(16, *(len(point) + 4 for point in _points(series)))
    lines = [f"{definition.title} (against {along})"]
    for key in _series_keys(series):
        lines.append(f"  {_title(key).strip()}")
        lines.append(" " * width + "".join(name.upper().rjust(9) for name in series.figures))
        for place, point in enumerate(_points(series)):
            cells = (
                number(figures[key][place].value, _is_percent(key)).rjust(9) for figures in series.figures.values()
            )
            lines.append(f"    {point}".ljust(width) + "".join(cells))
    return "\n".join(line.rstrip() for line in lines)


def rows_markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    lines = ["| " + " | ".join(head) + " |", "| --- " + "| ---: " * (len(head) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def markdown_table(table: MetaTableLike) -> str:
    """The table in Markdown."""
    measures = list(table.figures)
    rows = []
    for group in GROUPS:
        for key, definition in DEFINITIONS.items():
            if definition.group != group:
                continue
            cells = []
            for name in measures:
                estimate = table.figures[name][key]
                limits = _limits(estimate, definition.percent)
                cells.append(number(estimate.value, definition.percent) + (f" ({limits})" if limits else ""))
            rows.append([f"{group}: {_title(key).strip()}", *cells])
    notes = [*_reasons(table.figures), *_excluded(table)]
    body = rows_markdown(["figure", *(name.upper() for name in measures)], rows)
    return body + ("\n\n" + "\n".join(f"- {note.removeprefix('– ')}" for note in notes) if notes else "")


def markdown_series(series: SeriesLike, keys: Sequence[str] | None = None) -> str:
    """A Markdown table per figure."""
    definition = DEFINITIONS[series.name]
    if series.reason:
        return f"{definition.title}: {series.reason}."
    along = _ALONG[series.along]
    parts = []
    for key in keys if keys is not None else _series_keys(series):
        rows = [
            [point, *(number(figures[key][place].value, _is_percent(key)) for figures in series.figures.values())]
            for place, point in enumerate(_points(series))
        ]
        head = [f"{_title(key).strip()} by {along}", *(name.upper() for name in series.figures)]
        parts.append(rows_markdown(head, rows))
    return "\n\n".join(parts)


def markdown(result: MetaLike) -> str:
    """All tables in Markdown."""
    parts = [_head(result), markdown_table(result.overall)]
    for name, table in result.benchmarks.items():
        parts += [f"## {name or 'no benchmark'}", markdown_table(table)]
    if result.mean is not None:
        parts += ["## Mean of benchmarks", markdown_table(result.mean)]
    for series in _all_series(result):
        parts += [f"## {DEFINITIONS[series.name].title.capitalize()}", markdown_series(series)]
    return "\n\n".join(parts) + "\n"
