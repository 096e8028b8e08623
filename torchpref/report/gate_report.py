"""The verdict of a gate for the places where continuous integration shows it: Markdown, JUnit, GitHub's annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from torchpref.report.numbers import counted, printable, signed
from torchpref.report.shapes import VerdictLike
from torchpref.report.text import markdown_table, text_grid

#: What each verdict means for a reader who sees nothing else.
MARKS = {"worse": "❌ worse", "fine": "✅ fine", "undecided": "❔ undecided", "go on": "⏳ go on"}


def gate_markdown(result: VerdictLike) -> str:
    """A heading with the verdict, the line that says it all, and its figures as a table."""
    head = f"### {MARKS[result.verdict]}: {_plain(result.new)} against {_plain(result.base)}"
    rows = [[name, value] for name, value in _figures(result.to_dict())]
    return f"{head}\n\n{_plain(result.line)}\n\n{markdown_table(text_grid('', ['figure', 'value'], 1, rows))}\n"


def _plain(text: str) -> str:
    return printable(text).replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")


def _figures(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = [("measure", values["measure"].upper() + (f", by {values['clock']}" if values["clock"] else ""))]
    found.append(("mean preference of the new", signed(values["mean"]) or "–"))
    if values.get("low") is not None:
        limits = f"{signed(values['low'])} to {signed(values['high'])}"
        found.append((f"{100 * values['level']:g} % interval", limits))
    if "p" in values:  # a look of a gate that may stop has none
        found.append(("one-sided p of “not worse”", f"{values['p']:.3g}"))
    if values["margin"]:
        found.append(("margin", f"{values['margin']:g}"))
    seen = (
        counted(values["instances"], "instance")
        if "instances" in values
        else f"{values['seen']} of {values['planned']} planned"
    )
    found.append(("instances", f"{seen}, {values['decided']:,} decided"))
    for name, value in (values.get("split") or {}).items():
        found.append((f"of it {name}", signed(value) or "–"))
    return found


def gate_junit(result: VerdictLike) -> str:
    """One test case; a verdict whose exit code is not 0 is its failure, an undecided one that passes is skipped."""
    name = f"{result.new} is not worse than {result.base} ({result.measure.upper()})"
    body = ""
    if result.exit_code == 1 or result.exit_code == 3:
        body = f"<failure message={quoteattr(printable(result.verdict))}>{escape(printable(result.line))}</failure>"
    elif result.verdict != "fine":
        body = f"<skipped message={quoteattr(printable(result.line))}/>"
    failed, skipped = int(body.startswith("<failure")), int(body.startswith("<skipped"))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites><testsuite name="torchpref" tests="1" failures="{failed}" errors="0" skipped="{skipped}">'
        f'<testcase classname="torchpref.gate" name={quoteattr(printable(name))}>{body}'
        f"<system-out>{escape(printable(result.line))}</system-out></testcase></testsuite></testsuites>\n"
    )


def gate_annotation(result: VerdictLike) -> str:
    """A line that GitHub Actions shows beside the run."""
    level = {1: "error", 3: "error"}.get(result.exit_code, "warning" if result.verdict == "undecided" else "notice")
    text = printable(result.line).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{level} title=torchpref gate: {result.verdict}::{text}"
