"""Results as tables in the terminal: tie rates first, then a leaderboard per measure, then what to beware of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from torchpref.report.numbers import amount, counted, percent, plain, printable, signed
from torchpref.report.pieces import add, bullets, heading, names, table
from torchpref.runs.measures import describe

if TYPE_CHECKING:
    from torchpref.report.shapes import BoardLike, EvaluationLike, MeasureLike
    from torchpref.runs.findings import Finding

_BAR = 20
#: So many benchmarks are listed one by one.
_BENCHMARKS = 20
#: Findings that are said beside the board that they concern.
_BESIDE_THE_BOARD = ("contradicting_pairs", "order_not_established")
_SIGN = {"warning": "!", "note": "-", "error": "!!"}


def finding_text(finding: Finding, limit: int = 4) -> str:
    """A finding in a sentence: what, how often, which systems (the first ones), where for example."""
    text = f"{finding.message} ({finding.count:,})"
    if finding.systems:
        text += f"; {counted(len(finding.systems), 'system')}: {names(finding.systems, limit)}"
    if finding.examples:
        text += f"; e.g. {finding.examples[0]}"
    return text


def findings_parts(findings: Sequence[Finding], title: str = "Warnings", limit: int = 4) -> list[RenderableType]:
    """Findings as marked lines under a headline, each with so many systems named; nothing if there are none."""
    if not findings:
        return []
    return [heading(title), bullets([(_SIGN[each.severity], finding_text(each, limit)) for each in findings])]


# ------------------------------------------------------------------------------------------------------ evaluation


def evaluation_tables(result: EvaluationLike) -> list[RenderableType]:
    """The tables of :func:`torchpref.evaluate`."""
    benchmarks = sorted(set(result.runs.benchmarks) - {""})
    on = f", {len(benchmarks)} benchmarks" if len(benchmarks) > 1 else f" of {benchmarks[0]}" if benchmarks else ""
    clock = f"clock {result.clock}" if result.known_times else "no known times" if result.clock else "no clock"
    clock += "" if result.options["weights"] == "instance" else f", weights by {result.options['weights']}"
    size = f"{counted(len(result.systems), 'system')}, {counted(len(result.runs.instances), 'instance')}"
    parts: list[RenderableType] = [Text(printable(f"{size}{on}, {clock}"))]
    parts += _tie_rates(result)
    doubts = [(_SIGN["warning"], each.message) for each in result.findings if each.kind == "order_not_established"]
    if doubts:
        parts += [Text(""), bullets([(mark, text.removesuffix("; systems") + ".") for mark, text in doubts])]
    for name in sorted(result.measures, key=lambda name: name != result.judge):
        parts += _board(result, name)
    warnings = [finding for finding in result.findings if finding.severity != "note"]
    parts += findings_parts([finding for finding in warnings if finding.kind not in _BESIDE_THE_BOARD])
    notes = len(result.findings) - len(warnings)
    if notes:
        parts.append(Text(f"\n{counted(notes, 'note')} more: torchpref audit"))
    return parts


def _tie_rates(result: EvaluationLike) -> list[RenderableType]:
    overview = table(("measure", "<"), "ties", ("", "<"), "run pairs")
    for name, measured in result.measures.items():
        full = 0 if math.isnan(measured.tie_rate) else round(_BAR * measured.tie_rate)
        share = percent(measured.tie_rate, 2) or _why_none(result, name)
        add(overview, _title(name), share, "█" * full + "░" * (_BAR - full), f"{measured.run_pairs:,}")
    parts = [heading("Tie rates", "the share of run pairs that a measure cannot tell apart"), overview]
    benchmarks = list(next(iter(result.measures.values())).benchmarks)
    if len(benchmarks) > 1:
        parts += [Text(""), _tie_rates_by_benchmark(result, benchmarks)]
    return parts


def _why_none(result: EvaluationLike, name: str) -> str:
    """Why a measure has no tie rate: it needs times and there are none, or no two runs can be compared."""
    if not describe(name).temporal or result.known_times:
        return "–"
    return "no times" if result.clock else "no clock"


def _tie_rates_by_benchmark(result: EvaluationLike, benchmarks: Sequence[str]) -> Table:
    """A row per benchmark as long as they are few, and their mean."""
    by = table(("ties in %", "<"), *(name.upper() for name in result.measures), "inst.")

    def row(name: str, rates: Sequence[float], instances: int, style: str | None = None) -> None:
        add(by, name, *(plain(100 * rate, 2) for rate in rates), f"{instances:,}", style=style)

    for benchmark in benchmarks if len(benchmarks) <= _BENCHMARKS else []:
        of = [measured.benchmarks.get(benchmark) for measured in result.measures.values()]
        instances = next(part.instances for part in of if part)
        row(benchmark, [part.tie_rate if part else math.nan for part in of], instances)
    means = [measured.benchmark_mean_tie_rate for measured in result.measures.values()]
    row(f"mean of {len(benchmarks)} benchmarks", means, len(result.runs.instances), "bold")
    return by


def _title(name: str) -> str:
    return f"{name.upper():<3}  {describe(name).title}"


def _columns(result: EvaluationLike) -> list[tuple[str | tuple[str, str], Callable[[dict[str, Any]], object]]]:
    """The columns of a leaderboard: the head, and what stands in the cell of a row."""
    time = (f"median\n{result.clock}", lambda row: amount(row["median_time"]))
    return [
        ("rank", lambda row: row["rank"]),
        (("system", "<"), lambda row: row["system"]),
        ("score", lambda row: signed(row["score"])),
        ("mean\npref.", lambda row: signed(row["mean_preference"])),
        ("success\nrate", lambda row: percent(row["success_rate"])),
        ("partial\nreturn", lambda row: plain(row["partial_return"])),
        *([time] if result.known_times else []),
        ("inst.", lambda row: row["instances"]),
    ]


def _board(result: EvaluationLike, name: str) -> list[RenderableType]:
    measured = result[name]
    by = f", by {measured.clock}" if measured.clock and result.known_times else ""
    role = "the measure that judges, the others describe" if name == result.judge and len(result.measures) > 1 else ""
    title = heading(f"{name.upper()}, {describe(name).title}{by}", role)
    if measured.preferences is None:
        return [title, Text(printable(measured.status))]
    columns = _columns(result)
    board = table(*(head for head, _ in columns))
    for row in result.rows(name):
        add(board, *(cell(row) for _, cell in columns))
    parts = [title, board]
    if measured.status != "ok":
        parts.append(Text(printable(f"Scores: {measured.status}"), style="yellow"))
    if measured.board is not None and measured.board.systems:
        parts += _trust(measured.board)
    if name == "lr" and any(row["rank"] is not None for row in result.rows(name)):
        parts += _split(result, measured)
    return parts


def _trust(board: BoardLike) -> list[RenderableType]:
    """What of the order can be relied on: rank intervals, who comes first how often, who cannot be told apart."""
    level = f"{100 * board.level:g} %"
    trust = table(
        "rank", ("system", "<"), "score", f"{level} interval", f"{level}\nranks", "comes\nfirst", ("group", "<")
    )
    for row in board.rows():
        letters = "".join(chr(96 + group) if group <= 26 else f"({group})" for group in row["groups"])
        low, high = signed(row["low"], 2), signed(row["high"], 2)
        interval = f"{low} to {high}" if low and high else None
        ranks = f"{row['rank_low']}-{row['rank_high']}"
        score = signed(row["score"], 2)
        add(trust, row["rank"], row["system"], score, interval, ranks, percent(row["share_first"]), letters)
    words = (
        f"Ranks hold together at {level}; systems with a letter in common cannot be told apart; comes first: share "
        f"of {board.bootstrap:,} resamples of the instances."
    )
    parts: list[RenderableType] = [Text(""), trust, Text(words)]
    for reason in dict.fromkeys(filter(None, board.reasons)):
        without = [name for name, why in zip(board.systems, board.reasons, strict=True) if why == reason]
        parts.append(Text(printable(f"No interval for {names(without)}: {reason}"), style="yellow"))
    return parts


def _split(result: EvaluationLike, measured: MeasureLike) -> list[RenderableType]:
    """Where the mean preferences of LR come from, and the pairs in which it prefers the one that solves less."""
    split = measured.split or {}
    terms_heads = [part.replace(" ", "\n") for part in split]
    board = table("rank", ("LR's mean preference is the sum of", "<"), "mean\npref.", *terms_heads)
    for i in measured.order:
        terms = [signed(values[i].item()) for values in split.values()]
        add(board, measured.rank[i], result.systems[i], signed(measured.mean[i].item()), *terms)
    parts: list[RenderableType] = [Text(""), board]
    against = [finding for finding in result.findings if finding.kind == "contradicting_pairs"]
    for finding in against:
        pairs = len(measured.rank) * (len(measured.rank) - 1) // 2
        head = f"{finding.count:,} of {pairs:,} {finding.message}. The worst:"
        parts += [Text(""), bullets([("!", head), *((" ", example) for example in finding.examples)])]
    return parts
