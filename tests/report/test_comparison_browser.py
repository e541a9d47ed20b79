"""The page of a comparison in a browser: it asks for nothing, paints both timelines, and is for everyone."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from browsing import IN_BROWSER, NARROW, WIDE, open_page, view, violations, wait_until
from comparison_sample import rendered
from playwright.sync_api import Browser, Page, ViewportSize
from report_sample import HOSTILE

from tests.support.comparisons import refused
from traceanalyzer.report.comparison_page import render_comparison_html

pytestmark = IN_BROWSER


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("comparisons")
    made = {"compared": rendered(), "refused": render_comparison_html(refused(), None, None)}
    for name, page in made.items():
        (folder / f"{name}.html").write_bytes(page)
    return {name: Path(folder / f"{name}.html").as_uri() for name in made}


@pytest.fixture
def compared(empty_tab: Page, pages: dict[str, str]) -> Page:
    open_page(empty_tab, pages["compared"])
    return empty_tab


def test_nothing_but_the_page_is_asked_for(compared: Page, pages: dict[str, str], seen: dict[str, list[str]]) -> None:
    compared.click("button.show >> nth=0")
    compared.click("#theme")
    compared.wait_for_timeout(500)
    assert {url for url in seen["requests"] if url != "about:blank"} == {pages["compared"]}


PAINTED = """(label) => {
    const { timeline } = window.traceanalyzer;
    const group = timeline.data.groups.find((one) => one.label === label);
    const row = group.lanes.find((lane) => lane.label === 'steps').rows[0];
    const box = timeline.layout.boxOf(row);
    const ratio = devicePixelRatio;
    const line = timeline.ctx.getImageData(0, (box.y + 8 - timeline.lanes.scrollTop) * ratio, timeline.canvas.width, 1).data;
    const painted = (x) => line[x * 4] !== 255 || line[x * 4 + 1] !== 255 || line[x * 4 + 2] !== 255;
    const colours = new Set();
    for (let x = 0; x < timeline.canvas.width; x++) if (painted(x)) colours.add([...line.slice(x * 4, x * 4 + 3)].join());
    const [from, zero, to] = [row.start[1], 0, row.end[3]].map((time) => timeline.window.xOf(time));
    return { from, zero, to, colours: colours.size };
}"""


def test_both_timelines_are_painted_from_their_first_step(compared: Page) -> None:
    compared.locator("#lanes").scroll_into_view_if_needed()
    base, new = (compared.evaluate(PAINTED, f"{title} · GPU 0") for title in ("BASE", "NEW"))
    assert base["from"] == new["from"] == base["zero"] == new["zero"]
    assert base["colours"] > 1 and new["colours"] > 1
    assert base["to"] - base["zero"] == pytest.approx(4 * (new["to"] - new["zero"]), rel=0.01)


def test_evidence_of_either_side_is_shown_on_its_lanes(compared: Page) -> None:
    for title in ("BASE", "NEW"):
        compared.click(f"button.show:has-text('Show in {title}') >> nth=0")
        low, high = view(compared)
        pinned = compared.inner_text("#pinned")
        assert high - low < 40e6 and f"{title} · GPU 0" in pinned


def test_what_began_before_the_first_step_is_within_reach(compared: Page) -> None:
    low, _ = view(compared)
    compared.evaluate("window.traceanalyzer.timeline.show(-15e6, -1e6)")
    compared.evaluate("window.traceanalyzer.timeline.drawNow()")
    assert compared.inner_text("#range").startswith("-15")
    compared.wait_for_timeout(400)
    address = compared.evaluate("location.hash")
    compared.evaluate("window.traceanalyzer.timeline.home()")
    compared.evaluate("(hash) => (location.hash = hash)", address)
    compared.wait_for_timeout(50)
    compared.evaluate("window.traceanalyzer.timeline.address.follow()")
    assert view(compared)[0] < low


def test_the_trace_for_perfetto_counts_from_its_first_event(compared: Page) -> None:
    times = compared.evaluate("""async () => {
        const { data } = window.traceanalyzer.timeline;
        const facts = JSON.parse(document.getElementById('page-data').textContent);
        const trace = JSON.parse(await (await chromeTrace(data, facts.findings, facts.evidence)).text());
        return trace.traceEvents.filter((one) => one.ph === 'X').map((one) => one.ts);
    }""")
    assert min(times) == 0 and len(times) > 10_000


def test_tables_sort_and_search(compared: Page) -> None:
    compared.click("#tab-kernels")
    wait_until(compared, "document.querySelector('#kernels table') !== null")
    changes = "[...document.querySelectorAll('#kernels tbody tr')].map((row) => row.cells[4].textContent)"
    shown = compared.evaluate(changes)
    assert shown[:3] == ["+600.00", "−400.00", "−39.04"]
    assert HOSTILE in compared.inner_text("#kernels")
    compared.click("#kernels thead button >> nth=4")
    assert compared.evaluate(changes)[0] == "0"
    compared.fill("#kernels input[type=search]", "kernel_7")
    assert compared.evaluate(changes) == ["−7.01"]


def test_the_chart_has_both_sides(compared: Page) -> None:
    compared.locator("#chart-samples").scroll_into_view_if_needed()
    wait_until(compared, "document.querySelectorAll('#chart-samples .points path').length >= 26")


def test_a_phone_in_the_dark_needs_no_sideways_scrolling(empty_tab: Page, pages: dict[str, str]) -> None:
    empty_tab.emulate_media(color_scheme="dark")
    empty_tab.set_viewport_size({"width": 320, "height": 844})
    open_page(empty_tab, pages["compared"])
    empty_tab.evaluate("for (const folded of document.querySelectorAll('details')) folded.open = true")
    empty_tab.evaluate("for (const part of document.querySelectorAll('section')) part.scrollIntoView()")
    wait_until(empty_tab, "document.documentElement.scrollWidth <= 320")


def test_without_scripts_all_but_timeline_and_chart_is_there(browser: Browser, pages: dict[str, str]) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(pages["compared"])
    assert tab.locator("h1, #lines table, .finding").first.is_visible()
    assert tab.locator(".plain table >> nth=1").is_visible() and "kernel_39" in tab.inner_text("main")
    assert tab.locator("#timeline noscript p").is_visible()
    assert tab.locator("button:not(.term):not(.link):visible, canvas:visible, input:visible").count() == 0
    context.close()


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", NARROW)])
@pytest.mark.parametrize("name", ["compared", "refused"])
def test_axe_finds_nothing(
    unguarded: Page, pages: dict[str, str], name: str, scheme: Literal["light", "dark"], size: ViewportSize
) -> None:
    unguarded.emulate_media(color_scheme=scheme)
    unguarded.set_viewport_size(size)
    assert not violations(unguarded, pages[name])
