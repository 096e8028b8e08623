"""Two systems side by side, as tables in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from torchpref.report.numbers import printable, signed
from torchpref.report.pieces import add, bullets, heading, table

if TYPE_CHECKING:
    from torchpref.report.shapes import ComparisonLike, PairMeasureLike

#: How many deciding instances are shown.
_SHOWN = 8


def comparison_tables(result: ComparisonLike) -> list[RenderableType]:
    """The tables of :func:`torchpref.compare`: all measures, the split of LR, levels, and the instances that decide."""
    by = f", clock {result.clock}" if result.known_times else ", no known times" if result.clock else ""
    head = f"{result.first} (first) against {result.second} (second){by}: above 0 prefers the first"
    interval = f"{100 * result.level:g} % interval"
    measures = table(("measure", "<"), "mean\npref.", interval, "p", "won", "lost", "tied", "without")
    for name, one in sorted(result.measures.items(), key=lambda item: item[0] != result.judge):
        low, high = signed(one.low), signed(one.high)
        limits = f"{low} to {high}" if low and high else None
        add(
            measures,
            name.upper(),
            signed(one.mean),
            limits,
            _p(one.p),
            one.won,
            one.lost,
            one.tied,
            one.reversal or None,
        )
    note = (
        f"{_judges(result)}p: two-sided, for each measure by itself; {_tests(result)}. Without: the number of instances "
        "without which the mean preference would lose its sign."
    )
    parts: list[RenderableType] = [Text(printable(head)), Text(""), measures, Text(note)]
    if result.clock and not result.known_times:
        parts.insert(1, Text("No times are known, so only what was reached is compared."))
    parts += _effects(result) + _verdicts(result)
    lr = result.measures.get("lr")
    if lr is not None:
        parts += _split(result, lr)
    for more in (result.history, result.bounds):
        if more is not None:
            parts += [Text(""), *(Text(printable(line)) for line in str(more).splitlines())]
    if result.disagreement:
        parts += [Text(""), bullets([("–", sentence) for sentence in result.disagreement])]
    chosen = result.measures[result.judge]
    return parts + _levels(chosen) + _deciding(result, chosen)


#: How p was found, in words.
_TESTS = {
    "binomial": "sign flips over instances",
    "enumeration": "sign flips over instances",
    "lattice": "sign flips over instances",
    "simulation": "sign flips over instances",
    "larger of sign flips and label permutation": "the larger of sign flips over instances and trial labels permuted "
    "within them, since runs differ in number",
    "paired t": "t over instances",
    "betting on the mean": "betting on the mean",
}


def _effects(result: ComparisonLike) -> list[RenderableType]:
    """How large the difference is in words that need no preference."""
    if result.effects is None:
        return []
    sizes = table(("effect of the first", "<"), "", f"{100 * result.level:g} % interval", "inst.")
    rows = [("difference in success rate", result.effects.success_difference)]
    if result.effects.clock:
        rows.append((f"its {result.effects.clock} / the second's, median where both solve", result.effects.time_ratio))
        rows.append(("chance to be sooner where both solve", result.effects.sooner))
    for name, one in rows:
        if one.value == one.value:
            show = signed if one is result.effects.success_difference else "{:.3f}".format
            limits = f"{show(one.low)} to {show(one.high)}" if one.low == one.low else None
            add(sizes, name, show(one.value), limits, one.instances)
    return [Text(""), sizes]


def _verdicts(result: ComparisonLike) -> list[RenderableType]:
    """What the judge says where two ways to judge disagree, and about equivalence."""
    one = result.measures[result.judge]
    words = [("!", f"{result.judge.upper()}: {remark}") for remark in one.remarks]
    if result.margin:
        found = "within" if one.equivalence_p <= 1 - result.level else "not shown to be within"
        tests = f"(two one-sided tests, p = {_p(one.equivalence_p)})"
        words.append(("-", f"{result.judge.upper()}: {found} ±{result.margin:g} of each other {tests}"))
    return [bullets(words)] if words else []


def _judges(result: ComparisonLike) -> str:
    return f"{result.judge.upper()} judges, the other measures describe. " if len(result.measures) > 1 else ""


def _tests(result: ComparisonLike) -> str:
    used = dict.fromkeys(_TESTS[one.method] for one in result.measures.values() if one.method in _TESTS)
    return " and ".join(used) or "nothing to test"


def _p(value: float) -> str:
    if value != value:
        return ""
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"


def _split(result: ComparisonLike, lr: PairMeasureLike) -> list[RenderableType]:
    split = table(("LR's mean preference is the sum of", "<"), "pref.")
    for name, value in (lr.split or {}).items():
        add(split, name, signed(value))
    add(split, "mean preference", signed(lr.mean), style="bold")
    parts: list[RenderableType] = [Text(""), split]
    if lr.contradiction:
        preferred, other = (result.first, result.second) if lr.mean > 0 else (result.second, result.first)
        parts.append(bullets([("!", f"LR prefers {preferred}, which solves less than {other}")]))
    return parts


def _levels(one: PairMeasureLike) -> list[RenderableType]:
    if not one.levels:
        return []
    levels = table("return", "instances", "first sooner", "second sooner")
    for level in one.levels:
        add(levels, f"{level.level:g}", level.instances, level.first, level.second)
    return [heading("Levels", "on how many instances who was sooner at a level that either reaches"), levels]


def _deciding(result: ComparisonLike, one: PairMeasureLike) -> list[RenderableType]:
    preferred = result.first if one.mean > 0 else result.second
    note = f"those that speak most for {preferred}, the preferred one, by {one.measure.upper()}"
    if one.mean == 0:
        note = f"neither is preferred by {one.measure.upper()}"
    benchmarks = any(instance.benchmark for instance in one.deciding)
    columns: list[str | tuple[str, str]] = [("instance", "<"), "preference", "adds"]
    deciding = table(*([("benchmark", "<")] if benchmarks else []), *columns)
    for instance in one.deciding[:_SHOWN]:
        name = [instance.benchmark] if benchmarks else []
        add(deciding, *name, instance.instance, signed(instance.delta), signed(instance.share, 4))
    more = len(one.deciding) - _SHOWN
    parts: list[RenderableType] = [heading("Instances", note), deciding]
    return [*parts, Text(f"and {more:,} more, all of them in the JSON")] if more > 0 else parts
