"""The report page in a real browser: sorts, filters, hovers, copies, opens a pair, prints; nothing leaves the machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import torchpref as tp

pytest.importorskip("jinja2", reason="needs the extra 'report'")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium on the PATH")

from torchpref.report.page import evaluation_page  # noqa: E402

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def evaluation() -> tp.evaluation.Evaluation:
    generator = torch.Generator().manual_seed(5)
    returns = ((torch.rand(70, 5, 4, generator=generator) * torch.linspace(0.6, 1.5, 5)[:, None]) * 4).floor() / 4
    names = ["alpha", "beta", "gamma", HOSTILE, "delta " + "x" * 80]
    return tp.evaluate(tp.Trajectories(returns.clamp(0, 1), systems=names), bootstrap=50)


class Seen:
    def __init__(self) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []


@pytest.fixture
def page(browser, evaluation, tmp_path: Path, request) -> Iterator[object]:
    path = tmp_path / "report.html"
    path.write_text(evaluation_page(evaluation), encoding="utf-8")
    options = getattr(request, "param", {})
    context = browser.new_context(**options)
    seen = Seen()

    def guard(route) -> None:
        if route.request.url.startswith("file:"):
            route.continue_()
        else:
            seen.requests.append(route.request.url)
            route.abort()

    context.route("**/*", guard)
    page = context.new_page()
    page.on(
        "console", lambda message: seen.errors.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("dialog", lambda dialog: (seen.errors.append("a dialog opened"), dialog.dismiss()))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    yield page
    assert seen.requests == [] and seen.errors == []
    context.close()


def column(page, number: int) -> list[str]:
    cells = page.query_selector_all(f"#leaderboard tbody tr > :nth-child({number})")
    return [cell.inner_text() for cell in cells]


def test_the_leaderboard_is_the_evaluation_s(page, evaluation):
    wanted = [row["system"] for row in evaluation.rows("lr")]
    assert column(page, 2) == wanted
    page.click("#tab-sr")
    assert column(page, 2) == [row["system"] for row in evaluation.rows("sr")]


def test_sorting(page):
    page.click("#leaderboard [data-sort=system]")
    names = column(page, 2)
    assert names == sorted(names)
    assert page.get_attribute("#leaderboard th.name", "aria-sort") == "ascending"
    page.click("#leaderboard [data-sort=system]")
    assert column(page, 2) == names[::-1]
    page.click("#leaderboard [data-sort=mean]")
    heads = [head.inner_text() for head in page.query_selector_all("#leaderboard thead th")]
    values = [float(text.replace("−", "-")) for text in column(page, heads.index("mean pref.") + 1)]
    assert values == sorted(values, reverse=True)
    assert "Sorted by mean pref." in page.inner_text("#status")


def test_sorting_by_keyboard(page):
    page.focus("#leaderboard [data-sort=system]")
    page.keyboard.press("Enter")
    assert column(page, 2) == sorted(column(page, 2))
    assert page.evaluate("document.activeElement.dataset.sort") == "system"


def test_filter(page):
    page.fill("#filter", "ALP")
    assert column(page, 2) == ["alpha"]
    page.fill("#filter", "<script>")
    assert column(page, 2) == [HOSTILE]
    page.fill("#filter", "nobody")
    assert column(page, 2) == []


@pytest.mark.parametrize(
    ("kind", "start"), [("markdown", "| rank | system |"), ("latex", r"\begin{tabular}"), ("csv", "rank,system")]
)
def test_copy(page, kind, start):
    page.click(f"[data-copy={kind}]")
    page.wait_for_selector("html[data-copied]", state="attached")
    text = page.evaluate("document.documentElement.dataset.copied")
    assert text.startswith(start) and "alpha" in text
    if kind == "csv":
        assert len(text.strip().splitlines()) == 6


def test_hover_and_keys_on_the_heat_map(page, evaluation):
    order = [row["system"] for row in evaluation.rows("lr")]
    box = page.locator("#matrix").bounding_box()
    page.locator("#matrix").scroll_into_view_if_needed()
    box = page.locator("#matrix").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 10, box["y"] + box["height"] - 60)
    told = page.inner_text("#cell")
    assert told.startswith(f"{order[3]} over {order[4]}: mean preference")
    page.focus("#matrix")
    for _ in range(6):
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    mean = (
        evaluation["lr"].mean_preference[evaluation.systems.index(order[0]), evaluation.systems.index(order[1])].item()
    )
    assert page.inner_text("#cell").startswith(f"{order[0]} over {order[1]}: mean preference {mean:+.3f}")
    page.keyboard.press("Enter")
    assert order[0] in page.inner_text("#pair-summary")


def test_two_systems(page, evaluation):
    page.click("#tab-rpp")
    page.select_option("#first", label="beta")
    page.select_option("#second", label="gamma")
    pair = evaluation["rpp"].preferences["beta", "gamma"]
    won, lost = int((pair.delta > 0).sum()), int((pair.delta < 0).sum())
    assert f"beta is preferred on {won}, gamma on {lost}" in page.inner_text("#pair-summary")
    assert page.locator("#instances tbody tr").count() == 60
    page.click("#more")
    assert page.locator("#instances tbody tr").count() == 70
    first = page.locator("#instances tbody tr").first
    assert abs(float(first.locator("td").first.inner_text().replace("−", "-"))) == pytest.approx(
        pair.delta.abs().max().item(), abs=0.0051
    )
    first.locator("button").click()
    assert page.locator("#curves path").count() == 2
    assert "beta reaches" in page.inner_text("#curves-caption")
    before = page.inner_text("#pair-summary")
    page.click("#swap")
    assert f"gamma is preferred on {lost}, beta on {won}" in page.inner_text("#pair-summary") != before
    page.fill("#instance-filter", "instance-07")
    assert page.locator("#instances tbody tr").count() == 1


@pytest.mark.parametrize(
    "page",
    [
        {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
        for scheme in ("light", "dark")
        for width in (1280, 390)
    ],
    indirect=True,
)
def test_fits_every_screen(page):
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert ink != paper


def test_prints(page, tmp_path):
    target = tmp_path / "report.pdf"
    page.pdf(path=target)
    assert target.read_bytes().startswith(b"%PDF") and target.stat().st_size > 10_000
