"""The page of a history in a browser: charts of the series that is chosen, links that lead to reports only, and a page for everyone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from browsing import IN_BROWSER, NARROW, WIDE, violations, wait_until
from playwright.sync_api import Browser, Page, ViewportSize

from tests.history.nights import Case, entries_of, host_longer, new_driver
from traceanalyzer.report.trend_page import render_trend_html
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.trend import trend_of
from traceanalyzer.result.history.verdicts import HARDWARE, REAL

pytestmark = IN_BROWSER

NAME = "a <b>bold</b> %{x} &amp; <script>alert(1)</script>"
DRAWN = "window.traceanalyzer?.charts?.stale.size === 0"
CHARTS = ("level", "lines")
NO_LINKS = (
    "javascript:alert(1)",
    " javascript:alert(1)",
    "JavaScript:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "file:///etc/passwd",
    "//example.org/r.html",
    "\t//example.org/r.html",
    "\\\\example.org\\r.html",
    "/etc/passwd",
    "x\" onclick=\"alert(1)\" y=\"javascript:",
)  # fmt: skip
LINKS = ("https://example.org/r.html", "http://example.org/a?b=c:d", "reports/r.html", "../reports/0.html", "r.html")


def entries() -> list[Entry]:
    """Two series; in the last captures of the second one there are reports at all kinds of places."""
    first = entries_of(Case("host", REAL, 0.08, host_longer), 0)
    second = entries_of(Case("driver", HARDWARE, 0.05, new_driver, nights=30, change_at=15), 1)
    second = [
        replace(one, unit_ns=2 * (one.unit_ns or 0), lines={k: 2 * ns for k, ns in one.lines.items()}) for one in second
    ]
    links = [*NO_LINKS, *LINKS]
    last = second[-len(links) :]
    placed = [
        replace(one, report=link, name=f"to {at}") for at, (one, link) in enumerate(zip(last, links, strict=True))
    ]
    return [
        *(replace(one, labels=one.labels | {"config": "first"}) for one in first),
        *(replace(one, labels=one.labels | {"config": NAME}) for one in [*second[: -len(links)], *placed]),
    ]


@pytest.fixture(scope="module")
def trend_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("trend") / "trend.html"
    path.write_bytes(render_trend_html(trend_of(entries()), entries(), title="Nights"))
    return Path(path).as_uri()


@pytest.fixture
def shown(empty_tab: Page, trend_page: str) -> Page:
    """`empty_tab` fails the test for errors and dialogs of scripts."""
    empty_tab.goto(trend_page)
    wait_until(empty_tab, DRAWN)
    return empty_tab


def test_charts_are_drawn_and_nothing_is_asked_for(shown: Page, trend_page: str, seen: dict[str, list[str]]) -> None:
    for name in CHARTS:
        assert shown.locator(f"#chart-{name} .drawing .scatterlayer .trace").count() > 0
    assert shown.locator("#chart-level .drawing .points path").count() == 30
    assert {url for url in seen["requests"] if url != "about:blank"} == {trend_page}


def test_the_choice_of_a_series_changes_the_charts(shown: Page) -> None:
    choice = shown.locator("select[data-chart=level]")
    assert choice.locator("option").all_text_contents() == [NAME, "first"]
    said = "document.querySelector('#chart-level').closest('figure').textContent"
    before = shown.evaluate(said)
    assert "30 captures on 2 levels" in before
    choice.select_option(label="first")
    wait_until(shown, DRAWN)
    wait_until(shown, "document.querySelectorAll('#chart-level .drawing .points path').length === 40")
    after = shown.evaluate(said)
    assert after != before and "40 captures on 2 levels" in after


def test_links_lead_to_the_web_or_beside_the_page(shown: Page) -> None:
    found = shown.evaluate(
        "[...document.querySelectorAll('#captures td a, #changes a')].map((one) => one.getAttribute('href'))"
    )
    assert set(found) == set(LINKS)
    assert shown.evaluate("document.querySelectorAll('[onclick]').length") == 0
    texts = shown.locator("#captures td").all_text_contents()
    assert all(f"to {at}" in texts for at in range(len(NO_LINKS)))


def test_names_are_shown_as_they_are(shown: Page) -> None:
    assert shown.locator("#top th[scope=row]").all_text_contents() == [NAME, "first"]
    assert shown.locator("#captures b, #top b, figure b").count() == 0


def test_what_changed_is_told_with_its_verdict(shown: Page) -> None:
    rows = shown.locator("#changes tbody tr").all_text_contents()
    assert len(rows) == 2
    assert any("hardware" in row and "Another driver (13.1 instead of 13.0)" in row for row in rows)
    assert any("real" in row and "c0024" in row and "c0025" in row for row in rows)


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_the_page_is_for_everyone(browser: Browser, trend_page: str, size: ViewportSize, colours: str) -> None:
    context = browser.new_context(bypass_csp=True, reduced_motion="reduce", viewport=size, color_scheme=colours)  # type: ignore[arg-type]
    tab = context.new_page()
    assert violations(tab, trend_page) == []
    assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    context.close()


def test_a_page_of_an_empty_history(empty_tab: Page, tmp_path: Path) -> None:
    path = tmp_path / "trend.html"
    path.write_bytes(render_trend_html(trend_of([]), []))
    empty_tab.goto(path.as_uri())
    assert empty_tab.locator("h1").text_content() == "The history is empty."
