"""Bars: how often each measure ties, and where an advantage comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from torchpref.report.plots.style import (
    COLOURS,
    FIRST,
    GREY,
    SECOND,
    caption,
    label_width,
    legend,
    name_size,
    new_axes,
    plain_frame,
    short,
    short_names,
)
from torchpref.runs.measures import describe
from torchpref.runs.units import MILLION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from torchpref.report.shapes import EvaluationLike, PairLike, PreferencesLike


def tie_rates(result: EvaluationLike | Mapping[str, float], ax: Axes | None = None) -> Axes:
    """The share of run pairs that each measure cannot tell apart.

    Args:
        result: an evaluation, or tie rates by measure.
        ax: where to draw; a new figure if None.
    """
    rates = (
        dict(result) if isinstance(result, Mapping) else {name: one.tie_rate for name, one in result.measures.items()}
    )
    ax = new_axes(ax, 7.2, 0.9 + 0.36 * len(rates))
    for place, (measure, rate) in enumerate(rates.items()):
        if np.isnan(rate):
            ax.annotate("not compared", (0, place), (4, 0), textcoords="offset points", va="center", fontsize=8)
            continue
        ax.barh(place, 100 * rate, color=describe(measure).colour, height=0.7)
        ax.annotate(
            f"{100 * rate:.1f} %", (100 * rate, place), (4, 0), textcoords="offset points", va="center", fontsize=8
        )
    labels = [f"{describe(measure).title}  {measure.upper()}" for measure in rates]
    ax.set_yticks(range(len(rates)), labels, fontsize=9)
    ax.invert_yaxis()
    ax.set_xlim(0, 108)
    ax.set_xticks([0, 25, 50, 75, 100])
    ax.set_xlabel("tied run pairs (%)")
    plain_frame(ax)
    caption(ax, "Tie rates", "What a measure ties on it cannot tell apart, however many tasks are run.")
    return ax


def advantage(prefs: PreferencesLike, system: str | None = None, ax: Axes | None = None) -> Axes:
    """Where LR's advantage comes from: solved more, sooner (both solved), further (neither solved).

    Args:
        prefs: preferences of LR.
        system: one system against each of its rivals; without it every system against the mean of its rivals.
        ax: where to draw; a new figure if None.
    """
    parts = {name: values.cpu().numpy() for name, values in prefs.split().items()}
    if system is None:
        bars = {name: _mean_over_rivals(values) for name, values in parts.items()}
        keep = list(range(len(prefs.systems)))
        title, whose = "LR: where the preference comes from", "Mean over rivals."
    else:
        own = prefs.systems.index(system)
        keep = [i for i in range(len(prefs.systems)) if i != own]
        bars = {name: values[own] for name, values in parts.items()}
        title, whose = f"LR: {short(system)} against each rival", "Right of 0 prefers it."
    total = np.nansum(list(bars.values()), axis=0)
    order = sorted(keep, key=lambda i: (-total[i], prefs.systems[i]))
    count = len(order)
    names = short_names([prefs.systems[i] for i in order])
    ax = new_axes(ax, 5.2 + label_width(names), max(2.6, 1.4 + (0.24 if count <= 45 else 0.15) * count))
    right, left = np.zeros(count), np.zeros(count)
    for colour, (name, values) in zip((COLOURS[0], COLOURS[5], COLOURS[2]), bars.items(), strict=True):
        shown = np.nan_to_num(values[order])
        start = np.where(shown >= 0, right, left)
        ax.barh(range(count), shown, left=start, color=colour, height=0.75, label=name)
        right, left = right + np.maximum(shown, 0), left + np.minimum(shown, 0)
    ax.plot(total[order], range(count), "o", ms=4, mfc="white", mec="black", mew=1.0, label="LR, their sum")
    ax.axvline(0, color=GREY, lw=0.8)
    ax.set_yticks(range(count), names, fontsize=name_size(count))
    ax.set_ylim(count - 0.4, -0.6)
    ax.set_xlabel("Δ̄")
    plain_frame(ax)
    ax.margins(x=0.04)
    legend(ax)
    caption(ax, title, f"{whose} A dot on the other side of 0 than its blue bar: preferred although it solves less.")
    return ax


def _mean_over_rivals(values: Any) -> Any:
    off = ~np.eye(len(values), dtype=bool) & ~np.isnan(values)
    return np.where(off, values, 0).sum(1) / np.maximum(off.sum(1), 1)


def advantage_by_level(pair: PairLike, bins: int = 10, ax: Axes | None = None) -> Axes:
    """At which returns one system is sooner: shares of shared instances, by the level of return.

    Args:
        pair: two systems, such as ``prefs["A", "B"]``.
        bins: levels are gathered in this many steps of return where there are more different ones.
        ax: where to draw; a new figure if None.
    """
    ax = new_axes(ax, 6.5, 3.0)
    edges, first, second = _level_shares(pair, bins)
    places = np.arange(len(edges))
    ax.bar(places, 100 * first, color=FIRST, width=0.75, label=f"{short(pair.first)} sooner")
    ax.bar(places, -100 * second, color=SECOND, width=0.75, label=f"{short(pair.second)} sooner")
    ax.axhline(0, color=GREY, lw=0.8)
    ax.set_xticks(places, edges, fontsize=8)
    around = max(0.6, 2 - len(edges) / 2)  # one or two levels do not fill the picture
    ax.set_xlim(-around, len(edges) - 1 + around)
    ax.set_xlabel("return reached")
    ax.set_ylabel("instances with the level (%)")
    ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    plain_frame(ax, grid="y")
    legend(ax, columns=2)
    caption(
        ax, f"{pair.measure.upper()}: who is sooner, by level", "The rest ties. Levels that either of the two attains."
    )
    return ax


def _level_shares(pair: PairLike, bins: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    from torchpref.errors import UsageError
    from torchpref.runs.curves import LEVEL_PAD

    if pair.levels is None or pair.signs is None:
        raise UsageError(f"{pair.measure.upper()} knows no levels; use lr, rpp or ipp")
    levels, signs = pair.levels.cpu().numpy(), pair.signs.cpu().numpy()
    real = levels != LEVEL_PAD
    distinct = np.unique(levels[real])
    if len(distinct) <= bins:
        group = np.searchsorted(distinct, levels)
        names = [f"{level / MILLION:.3g}" for level in distinct]
    else:
        limits = np.linspace(0, MILLION, bins + 1)
        group = np.clip(np.searchsorted(limits, levels) - 1, 0, bins - 1)
        names = [f"≤{limit / MILLION:.2g}" for limit in limits[1:]]
    first, second = np.zeros(len(names)), np.zeros(len(names))
    for k in range(len(names)):
        chosen = signs[real & (group == k)]
        if chosen.size:
            first[k], second[k] = np.maximum(chosen, 0).mean(), np.maximum(-chosen, 0).mean()
    return names, first, second


def advantage_by_instance(pair: PairLike, ax: Axes | None = None) -> Axes:
    """Δ of every shared instance in order: how many decide, and how one-sided they are."""
    ax = new_axes(ax, 6.5, 2.6)
    delta = np.sort(pair.delta.cpu().numpy())[::-1]
    colours = np.where(delta > 0, FIRST, np.where(delta < 0, SECOND, GREY))
    ax.bar(np.arange(len(delta)), delta, width=1.0, color=colours)
    ax.axhline(pair.mean, color=GREY, ls="--", lw=1.0)
    ax.annotate(
        f"mean {pair.mean:+.3f}",
        (len(delta) - 0.5, pair.mean),
        (0, 3),
        textcoords="offset points",
        ha="right",
        fontsize=8,
    )
    ax.axhline(0, color=GREY, lw=0.8)
    won, lost = int((delta > 0).sum()), int((delta < 0).sum())
    ax.set_xlim(-0.5, max(len(delta), 1) - 0.5)
    ax.set_ylim(-1.05, 1.05)
    ax.set_xlabel("instances, sorted")
    ax.set_ylabel("Δ")
    plain_frame(ax, grid="y")
    tied = len(delta) - won - lost
    text = f"{won} for {short(pair.first, 24)} (blue), {lost} for {short(pair.second, 24)} (orange), {tied} tied."
    caption(ax, f"{pair.measure.upper()} by instance", text)
    return ax
