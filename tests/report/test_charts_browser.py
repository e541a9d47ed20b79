"""The charts in a browser: drawn under the page's policy, in its colours, with names as text, and leading to the timeline."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from browsing import IN_BROWSER, open_page, view, wait_until
from playwright.sync_api import Browser, Page
from report_sample import HOSTILE, ORIGIN, STEPS, Sample, rows, sample

from tests.support.job_results import MS
from traceanalyzer.report.html import render_html

pytestmark = IN_BROWSER

DRAWN = "window.traceanalyzer?.charts?.stale.size === 0"
MARKUP = "a <b>bold</b> %{x} $x^2$ &amp; <br> <a href='x:y'>n"
FILL = "getComputedStyle(document.querySelector('#chart-steps .bars path')).fill"


@pytest.fixture(scope="module")
def charts_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The sample with step ledgers of two GPUs, one of which has nothing else, and kernels whose names are markup."""
    result, tables = sample()
    spans = tables.table("step_stats")
    start, end = spans["start_ns"].to_pylist(), spans["end_ns"].to_pylist()
    each = {"method": "annotation", "complete": [False, True, True, True] * 2, "typical": 5 * MS}
    steps = rows("step_ledger", rank=0, device=[0] * STEPS + [1] * STEPS, index=[*range(STEPS)] * 2, start_ns=start * 2,
                 end_ns=end * 2, name=[f"{HOSTILE}{n}" for n in range(STEPS)] * 2, compute=4 * MS, idle_input=MS, **each)  # fmt: skip
    stats = rows("kernel_stats", rank=0, device=0, name=[MARKUP, HOSTILE], count=1, total=[2 * MS, MS], longest=MS,
                 family="matmul", **{"class": "compute"})  # fmt: skip
    other = rows("ledger_intervals", rank=0, device=[0, 1], line="compute", start_ns=start[0], end_ns=end[-1])
    tables = Sample(**{**tables.tables, "step_ledger": steps, "kernel_stats": stats, "ledger_intervals": other})
    path = tmp_path_factory.mktemp("charts") / "report.html"
    path.write_bytes(render_html(result, tables))
    return path.as_uri()


@pytest.fixture
def charts(empty_tab: Page, charts_path: str) -> Page:
    open_page(empty_tab, charts_path)
    wait_until(empty_tab, DRAWN)
    return empty_tab


def test_charts_appear_and_ask_for_nothing(charts: Page, charts_path: str, seen: dict[str, list[str]]) -> None:
    for name in ("steps", "use", "kinds", "top-kernels"):
        assert charts.locator(f"#chart-{name} .drawing .trace, #chart-{name} .drawing .scatterlayer > *").count() > 0
    assert charts.locator("#chart-steps .bars path").count() == 2 * STEPS
    assert charts.locator(".modebar, #charts a").count() == 0
    assert {url for url in seen["requests"] if url != "about:blank"} == {charts_path}


def test_names_are_shown_as_they_are(charts: Page) -> None:
    shown = charts.locator("#chart-top-kernels .drawing text").all_text_contents()
    assert any(MARKUP.startswith(text.rstrip("…")) and len(text) > 30 for text in shown)
    assert any(HOSTILE.startswith(text.rstrip("…")) and len(text) > 30 for text in shown)
    assert charts.locator("#charts img, #charts a, #charts b, #charts [onerror]").count() == 0
    assert HOSTILE in charts.inner_text("#chart-steps .caption")


def test_a_click_on_a_step_zooms_the_timeline_to_it(charts: Page) -> None:
    charts.locator("#chart-steps").scroll_into_view_if_needed()
    bar = charts.locator("#chart-steps .trace.bars").first.locator("path").nth(2).bounding_box()
    assert bar
    x, y = bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2
    charts.mouse.move(x, y)
    charts.wait_for_timeout(150)
    charts.mouse.click(x, y)
    spans = sample()[1].table("step_stats")
    origin = int(charts.evaluate("window.traceanalyzer.timeline.data.groups[0].origin"))
    start, end = spans["start_ns"][2].as_py() - origin, spans["end_ns"][2].as_py() - origin
    wait_until(
        charts, f"window.traceanalyzer.view().start_ns <= {start} && window.traceanalyzer.view().end_ns >= {end}"
    )
    low, high = view(charts)
    assert high - low < 4 * (end - start) and origin >= ORIGIN


def test_the_longest_step_is_a_button_too(charts: Page) -> None:
    home = view(charts)
    charts.click('#chart-steps [data-tool="best"]')
    wait_until(
        charts, f"window.traceanalyzer.view().end_ns - window.traceanalyzer.view().start_ns < {(home[1] - home[0]) / 2}"
    )


def test_charts_take_the_colours_of_the_page(charts: Page) -> None:
    charts.locator("#chart-steps").scroll_into_view_if_needed()
    light, paper = (
        charts.evaluate(FILL),
        "document.querySelector('#chart-steps .bg, #chart-steps .main-svg').style.background",
    )
    before = charts.evaluate(paper)
    charts.click("#theme")
    wait_until(charts, DRAWN)
    assert charts.evaluate(FILL) != light and charts.evaluate(paper) != before
    charts.click("#theme")
    wait_until(charts, DRAWN)
    assert charts.evaluate(FILL) == light


def test_another_gpu_has_its_own_charts(charts: Page) -> None:
    assert charts.is_visible("#chart-top-kernels")
    charts.select_option("#chart-gpu", label="GPU 1")
    wait_until(charts, DRAWN)
    assert charts.is_visible("#chart-steps") and not charts.is_visible("#chart-top-kernels")
    charts.select_option("#chart-gpu", label="GPU 0")
    wait_until(charts, DRAWN)
    assert charts.is_visible("#chart-top-kernels")


def test_zooming_offers_the_way_back(charts: Page) -> None:
    charts.locator("#chart-use").scroll_into_view_if_needed()
    box = charts.locator("#chart-use .nsewdrag").bounding_box()
    assert box
    reach = "document.querySelector('#chart-use .drawing').layout.xaxis.range.map(Math.round).join()"
    whole = charts.evaluate(reach)
    charts.mouse.move(box["x"] + 200, box["y"] + 60)
    charts.mouse.down()
    charts.mouse.move(box["x"] + 500, box["y"] + 70, steps=4)
    charts.mouse.up()
    wait_until(charts, f"{reach} !== '{whole}'")
    charts.click('#chart-use [data-tool="reset"]')
    wait_until(charts, f"{reach} === '{whole}'")


def test_a_chart_is_saved_as_a_picture(charts: Page, tmp_path: Path) -> None:
    with charts.expect_download() as download:
        charts.click('#chart-steps [data-tool="save"]')
    download.value.save_as(tmp_path / "steps.svg")
    assert ElementTree.parse(tmp_path / "steps.svg").getroot().tag.endswith("svg")


def test_charts_fit_a_phone_and_paper(charts: Page) -> None:
    charts.set_viewport_size({"width": 390, "height": 844})
    wait_until(charts, "document.querySelector('#chart-use .main-svg').clientWidth <= 390")
    assert charts.evaluate("document.documentElement.scrollWidth") <= 390
    charts.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    widths = "[...document.querySelectorAll('#charts .main-svg')].map((svg) => svg.clientWidth)"
    assert set(charts.evaluate(widths)) == {660}
    charts.evaluate("window.dispatchEvent(new Event('afterprint'))")
    wait_until(charts, f"{DRAWN} && Math.max(...{widths}) <= 390")


def test_without_scripts_the_captions_say_the_point(browser: Browser, charts_path: str) -> None:
    tab = browser.new_page(java_script_enabled=False)
    tab.goto(charts_path)
    assert "with scripts allowed" in tab.inner_text("#charts noscript")
    assert "% of it compute" in tab.inner_text("#chart-steps .caption") and tab.is_visible("#chart-steps .still")
    assert "GPU 0" in tab.inner_text("#charts noscript")  # the pictures are of the first
    shown = tab.locator("#chart-top-kernels .still text").all_text_contents()
    assert any(MARKUP.startswith(text.rstrip("…")) and len(text) > 30 for text in shown)
    assert tab.locator("#charts img, #charts a, #charts b, #charts [onerror]").count() == 0
    tab.close()
