"""Results as tables for papers and pages: Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchpref.report.numbers import amount, counted, percent, plain, printable, signed
from torchpref.runs.measures import describe

if TYPE_CHECKING:
    from torchpref.report.shapes import EvaluationLike


@dataclass(frozen=True)
class Grid:
    """A table as text: its title, its heads, whether each column holds text, and its cells."""

    title: str
    heads: tuple[str, ...]
    text: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]


def evaluation_markdown(result: EvaluationLike) -> str:
    """Tie rates and leaderboards as Markdown tables."""
    return "\n\n".join(map(markdown_table, _grids(result))) + "\n"


def evaluation_latex(result: EvaluationLike) -> str:
    """Tie rates and leaderboards as LaTeX tables; the package booktabs is needed."""
    return "\n\n".join(map(_latex, _grids(result))) + "\n"


def _grids(result: EvaluationLike) -> list[Grid]:
    by = f", clock {result.clock}" if result.known_times else ", no known times" if result.clock else ""
    size = f"{counted(len(result.systems), 'system')}, {counted(len(result.runs.instances), 'instance')}{by}"
    ties = [
        [name.upper(), describe(name).title, percent(part.tie_rate, 2), f"{part.run_pairs:,}"]
        for name, part in result.measures.items()
    ]
    grids = [text_grid(f"Tie rates ({size})", ["measure", "", "tied", "run pairs"], 2, ties)]
    for name, part in result.measures.items():
        heads = ["rank", "system", "score"]
        heads += ["95 % interval"] if part.interval is not None else []
        heads += ["mean preference", "success rate", "partial return"]
        heads += [f"median {result.clock}"] if result.known_times else []
        heads += ["instances"]
        digits = 3 if part.interval is None else 2
        rows = []
        for row in result.rows(name):
            low, high = signed(row["score_low"], digits), signed(row["score_high"], digits)
            cells = [row["rank"], row["system"], signed(row["score"], digits)]
            cells += [f"[{low}, {high}]" if low and high else None] if part.interval is not None else []
            cells += [signed(row["mean_preference"]), percent(row["success_rate"]), plain(row["partial_return"])]
            cells += [amount(row["median_time"])] if result.known_times else []
            rows.append([*cells, row["instances"]])
        status = "" if part.status == "ok" else f" ({part.status})"
        grids.append(text_grid(f"{name.upper()}, {describe(name).title}{status}", heads, 2, rows))
    return grids


def text_grid(title: str, heads: Sequence[str], text: int, rows: Sequence[Sequence[Any]]) -> Grid:
    """A grid whose column of that number (from 1) holds text."""
    cells = tuple(tuple("" if cell is None else printable(str(cell)) for cell in row) for row in rows)
    return Grid(printable(title), tuple(heads), tuple(i + 1 == text for i in range(len(heads))), cells)


_MARKDOWN = str.maketrans({char: f"\\{char}" for char in "\\`*_{}[]<>#|~"})
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "%": r"\%",
        "&": r"\&",
        "#": r"\#",
        "$": r"\$",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "−": "$-$",
    }
)


def markdown_table(grid: Grid) -> str:
    """A grid in Markdown, under its title if it has one."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    marks = [":---" if text else "---:" for text in grid.text]
    rows = [line([cell.translate(_MARKDOWN) for cell in row]) for row in grid.rows]
    title = [f"**{grid.title.translate(_MARKDOWN)}**", ""] if grid.title else []
    return "\n".join([*title, line(grid.heads), line(marks), *rows])


def _latex(grid: Grid) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join(cell.translate(_LATEX) for cell in cells) + r" \\"

    columns = "".join("l" if text else "r" for text in grid.text)
    body = [line(row) for row in grid.rows]
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{grid.title.translate(_LATEX)}}}",
            r"\centering",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            line(grid.heads),
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )
