"""Pictures: what was drawn, in which order, under which labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import torchpref as tp

matplotlib = pytest.importorskip("matplotlib", reason="needs the extra 'plot'")

from torchpref.report import plots  # noqa: E402
from torchpref.report.plots.style import short, short_names, spread  # noqa: E402


def example(systems: int = 3, instances: int = 12, clock: str = "steps") -> tp.Trajectories:
    generator = torch.Generator().manual_seed(3)
    strength = torch.linspace(0.4, 1.4, systems)[None, :, None]
    returns = ((torch.rand(instances, systems, 4, generator=generator) * strength).clamp(0, 1) * 4).floor() / 4
    names = [f"system-{k:03d}" for k in range(systems)]
    times = torch.arange(1.0, 5.0).expand(instances, systems, 4)
    return tp.Trajectories(returns, times={clock: times}, systems=names)


def labels(axis) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def lines_with(ax, marker: str):
    return [line for line in ax.lines if line.get_marker() == marker]


@pytest.fixture(params=[2, 34, 100])
def runs(request) -> tp.Trajectories:
    return example(request.param)


def test_leaderboard(runs):
    board = tp.rank(tp.preferences(runs, "pr"), bootstrap=50)
    ax = plots.leaderboard(board)
    rows = board.rows()
    assert [text.split("  ")[0] for text in labels(ax.yaxis)] == [row["system"] for row in rows]
    points = lines_with(ax, "o")[0]
    scored = [(place, row["score"]) for place, row in enumerate(rows) if row["score"] is not None]
    assert points.get_ydata().tolist() == [place for place, _ in scored]
    assert points.get_xdata().tolist() == [score for _, score in scored]
    intervals = {tuple(np.round(line.get_xdata(), 9)) for line in ax.lines if len(line.get_xdata()) == 2}
    for row in rows:
        if row["low"] is not None:
            assert (round(row["low"], 9), round(row["high"], 9)) in intervals
    assert len(lines_with(ax, "D")) == sum(row["score"] is None for row in rows)
    assert "PR" in ax.get_label()
    ax.figure.canvas.draw()


def test_groups_that_cannot_be_told_apart():
    board = tp.rank(tp.preferences(example(5), "sr"), bootstrap=50)
    ax = plots.leaderboard(board)
    bars = [line for line in ax.lines if line.get_transform() == ax.get_yaxis_transform()]
    assert len(bars) == sum(len(group) > 1 for group in board.groups)


def test_bump_chart(runs):
    result = tp.evaluate(runs, measures=("sr", "rpp"), bootstrap=0)
    ax = plots.bump_chart(result)
    assert labels(ax.xaxis) == ["SR", "RPP"]
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
    for i, name in enumerate(result.systems):
        assert drawn[name].tolist() == [result["sr"].rank[i], result["rpp"].rank[i]]
    ax.figure.canvas.draw()


def test_bump_chart_with_a_gap():
    ax = plots.bump_chart({"sr": {"a": 1, "b": 1}, "rpp": {"b": 1}})
    assert np.isnan({line.get_label(): line.get_ydata() for line in ax.lines}["a"][1])


def test_preference_matrix(runs):
    prefs = tp.preferences(runs, "lr")
    order = list(reversed(runs.systems))
    ax = plots.preference_matrix(prefs, order=order)
    shown = ax.images[0].get_array()
    mean = prefs.mean().numpy()[::-1, ::-1]
    off = ~np.eye(len(order), dtype=bool)
    assert np.array_equal(np.asarray(shown)[off], mean[off])
    assert np.asarray(shown.mask).diagonal().all()
    assert labels(ax.yaxis) == labels(ax.xaxis) == order
    first = plots.preference_matrix(prefs)
    best = prefs.systems[int(prefs.system_means().argmax())]
    assert labels(first.yaxis)[0] == best
    ax.figure.canvas.draw()


def test_coverage():
    present = torch.ones(4, 2, 2, dtype=torch.bool)
    present[0, 1] = False
    present[1, 1, 0] = False
    runs = tp.Trajectories(torch.ones(4, 2, 2, 1), present=present, benchmarks=["a", "a", "b", "b"])
    ax = plots.coverage(runs)
    assert np.asarray(ax.images[0].get_array()).tolist() == [[2, 2, 2, 2], [0, 1, 2, 2]]
    assert labels(ax.xaxis) == ["a", "b"]
    assert "1 of 8" in ax.get_label()


def test_tie_rates():
    result = tp.evaluate(example(), bootstrap=0)
    ax = plots.tie_rates(result)
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(
        [100 * one.tie_rate for one in result.measures.values()]
    )
    assert labels(ax.yaxis)[0].endswith("SR")
    missing = plots.tie_rates({"sr": 0.5, "lr": float("nan")})
    assert len(missing.patches) == 1 and "not compared" in [text.get_text() for text in missing.texts]


def test_advantage(runs):
    prefs = tp.preferences(runs, "lr")
    ax = plots.advantage(prefs)
    count = len(runs.systems)
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(3, count)
    dots = lines_with(ax, "o")[0].get_xdata()
    assert np.allclose(widths.sum(0), dots, atol=1e-12)
    means = dict(zip(prefs.systems, prefs.system_means().tolist(), strict=True))
    assert np.allclose(dots, [means[name] for name in labels(ax.yaxis)], atol=1e-12)
    one = plots.advantage(prefs, system=prefs.systems[0])
    assert len(labels(one.yaxis)) == count - 1
    with pytest.raises(tp.UsageError, match="only LR"):
        plots.advantage(tp.preferences(runs, "rpp"))


def test_advantage_by_level_and_by_instance():
    prefs = tp.preferences(example(2, 30), "rpp")
    pair = prefs["system-001", "system-000"]
    ax = plots.advantage_by_level(pair)
    assert labels(ax.xaxis) == ["0.25", "0.5", "0.75", "1"]
    heights = [bar.get_height() for bar in ax.patches]
    assert all(height >= 0 for height in heights[:4]) and all(height <= 0 for height in heights[4:])
    at_half = [s for signs in (pair.level_signs(name) for name in pair.instances) for r, s in signs.items() if r == 0.5]
    assert heights[1] == pytest.approx(100 * sum(s > 0 for s in at_half) / len(at_half))
    bars = plots.advantage_by_instance(pair)
    assert sorted(bar.get_height() for bar in bars.patches) == sorted(pair.delta.tolist())
    few = plots.advantage_by_level(pair, bins=2)
    assert labels(few.xaxis) == ["≤0.5", "≤1"]
    with pytest.raises(tp.UsageError, match="knows no levels"):
        plots.advantage_by_level(tp.preferences(example(2), "sr")["system-000", "system-001"])


def test_budget_curves():
    curves = tp.budget_curves(example(30), "sr", budgets=[1.0, 2.0, 4.0])
    ax = plots.budget_curves(curves)
    assert len(ax.lines) == 30
    assert ax.lines[0].get_ydata().tolist() == pytest.approx((100 * curves.solved[:, 0]).tolist())
    assert len([line for line in ax.lines if not line.get_label().startswith("_")]) == 8
    with pytest.raises(tp.UsageError, match="value must be one of"):
        plots.budget_curves(curves, value="speed")


@pytest.mark.parametrize("plot", [plots.data_efficiency, plots.saturation])
def test_series(plot):
    series = {"sr": ([0.1, 1.0], [0.2, 0.4], [(0.1, 0.3), (0.3, 0.5)]), "lr": ([0.1, 1.0], [0.8, 0.9])}
    ax = plot(series)
    assert [line.get_label() for line in ax.lines] == ["SR", "LR"]
    assert ax.lines[1].get_ydata().tolist() == pytest.approx([80, 90])
    assert len(ax.collections) == 1


def three_runs() -> tp.Trajectories:
    returns = torch.tensor([[[0.5, 1.0], [0.25, 0.5], [0.0, 0.75]]])
    times = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [4.0, float("nan")]]])
    return tp.Trajectories(returns, times={"cost": times}, systems=["a", "b", "c"], instances=["x"])


def test_return_curves():
    ax = plots.return_curves(three_runs(), "x")
    a, b, c = [line for line in ax.lines if not line.get_label().startswith("_")]
    assert a.get_xdata()[:3].tolist() == pytest.approx([0, 1, 2]) and a.get_ydata()[:3].tolist() == [0, 0.5, 1]
    assert b.get_ydata()[-1] == 0.5
    assert c.get_label() == "c (reached 0.75 at an unknown time)"
    with pytest.raises(tp.UsageError, match="is not among the runs"):
        plots.return_curves(three_runs(), "y")
    with pytest.raises(tp.UsageError, match="too many for one picture"):
        plots.return_curves(example(30), "instance-01")


def test_time_to_levels():
    ax = plots.time_to_levels(three_runs(), "x")
    assert labels(ax.xaxis) == ["0.25", "0.5", "0.75", "1"]
    by_label = {line.get_label(): line for line in ax.lines}
    assert by_label["a"].get_ydata().tolist() == pytest.approx([1, 1, 2, 2])
    assert by_label["b"].get_ydata().tolist() == pytest.approx([3, 6])
    assert len(lines_with(ax, "x")) == 3
    assert [text.get_text() for text in ax.texts].count("?") == 3


def test_an_axes_that_is_given_is_used_and_returned():
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    prefs = tp.preferences(example(), "lr")
    assert plots.preference_matrix(prefs, ax=ax) is ax
    assert plots.coverage(example(), ax=Figure().add_subplot()).get_title(loc="left") == "Coverage"


def test_a_notebook_shows_the_picture():
    ax = plots.tie_rates({"sr": 0.9, "lr": 0.1})
    assert ax._repr_png_().startswith(b"\x89PNG")


def test_names():
    assert short("a" * 50, 11) == "aaaaa…aaaaa"
    assert short("cost in $") == r"cost in \$"
    long = [f"organisation/model-{k}-instruct-with-a-long-name" for k in range(3)]
    assert len(set(short_names(long, 20))) == 3
    assert short_names(["x", "y"]) == ["x", "y"]
    assert spread([1.0, 1.0, 5.0], 1.0) == [0.5, 1.5, 5.0]


def test_dark_pages():
    import matplotlib.style

    with matplotlib.style.context("dark_background"):
        ax = plots.tie_rates({"sr": 0.5})
        assert ax.figure.get_facecolor()[:3] == (0, 0, 0)
        assert ax.texts[0].get_color() == "white"


LONG = "some-organisation/agent-framework-v2__a-large-model-2026-05-{:03d}-thinking-high-effort"


def pictures(count: int, long: bool):
    """Every kind of picture of ``count`` systems, with names of one length or the other."""
    runs = example(count)
    names = [LONG.format(k) if long else f"system-{k:03d}" for k in range(count)]
    instances = [("a-repository__a-project-{}-with-a-long-name" if long else "task-{}").format(k) for k in range(12)]
    present = torch.rand(12, count, 1, generator=torch.Generator().manual_seed(1)) > 0.1
    present[0] = True
    runs = tp.Trajectories(
        runs.returns.squeeze(2) / 1e6, times={"steps": runs.times["steps"].squeeze(2)}, present=present.squeeze(2),
        systems=names, instances=instances, benchmarks=["bench-a"] * 6 + ["another-benchmark"] * 6,
    )  # fmt: skip
    prefs = tp.preferences(runs, "lr")
    pair = prefs[runs.systems[0], runs.systems[1]]
    result = tp.evaluate(runs, measures=("sr", "lr", "rpp"))
    some = list(runs.systems[:24])
    yield plots.leaderboard(tp.rank(prefs))
    yield plots.bump_chart(result)
    yield plots.tie_rates(result)
    yield plots.preference_matrix(prefs)
    yield plots.coverage(runs)
    yield plots.advantage(prefs)
    yield plots.advantage(prefs, runs.systems[0])
    yield plots.advantage_by_level(pair)
    yield plots.advantage_by_instance(pair)
    yield plots.return_curves(runs, runs.instances[0], some)
    yield plots.time_to_levels(runs, runs.instances[0], some)
    yield plots.budget_curves(tp.budget_curves(runs, budgets=[1, 2, 4]))
    lines = {name: ([0.1, 0.5, 1], [0.2, 0.9, 1], [(0.1, 0.3), (0.8, 1), (1, 1)]) for name in tp.MEASURES}
    yield plots.data_efficiency(lines)
    yield plots.saturation(lines)


def hidden_ticks(ax) -> set:
    """Labels of ticks outside the view, which are there but not drawn."""
    found = set()
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not low - 1e-9 <= tick.get_loc() <= high + 1e-9:
                found |= {tick.label1, tick.label2}
    return found


@pytest.mark.parametrize("long", [False, True], ids=["short names", "long names"])
@pytest.mark.parametrize("count", [2, 10, pytest.param(34, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.slow)])
def test_nothing_is_cut_and_legends_lie_off_the_data(count, long):
    from matplotlib.text import Text

    for ax in pictures(count, long):
        figure = ax.figure
        figure.canvas.draw()
        page = figure.bbox
        for text in set(figure.findobj(Text)) - hidden_ticks(ax):
            if text.get_visible() and text.get_text():
                box = text.get_window_extent()
                inside = box.x0 > -1 and box.y0 > -1 and box.x1 < page.x1 + 1 and box.y1 < page.y1 + 1
                assert inside, f"{ax.get_label()[:40]}: {text.get_text()!r} is cut"
        assert ax.get_window_extent().width > 0.35 * page.width, ax.get_label()
        if ax.get_legend() is not None:
            assert not ax.get_legend().get_window_extent().overlaps(ax.get_window_extent()), ax.get_label()


def test_coverage_shows_every_gap():
    """Where instances are more than columns, one missing run of a thousand still shows, and is counted."""
    present = torch.ones(1000, 3, dtype=torch.bool)
    present[417, 1] = False
    ax = plots.coverage(tp.Trajectories(torch.ones(1000, 3, 1), present=present))
    image = ax.images[0].get_array()
    assert image.shape[1] < 1000 and int((image[1] == 0).sum()) == 1 and int((image[[0, 2]] == 0).sum()) == 0
    assert "1" in [text.get_text() for text in ax.texts]
