"""The heat map of steps in a browser: any line of the ledger at a choice, on its own scale."""

from __future__ import annotations

import pytest
from browsing import IN_BROWSER, wait_until
from playwright.sync_api import Page
from test_report_job import shaped

from traceanalyzer.report.html import render_html

pytestmark = IN_BROWSER

DRAWN = "window.traceanalyzer?.charts?.stale.size === 0"
CELLS = "document.querySelector('#chart-step-heat .drawing').data[0].z"


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("heat") / "report.html"
    path.write_bytes(render_html(shaped(4), None))
    return path.as_uri()


def test_the_line_is_chosen_beside_the_heat_map(empty_tab: Page, page_path: str, seen: dict[str, list[str]]) -> None:
    empty_tab.goto(page_path)
    wait_until(empty_tab, DRAWN)
    figure = empty_tab.locator("#chart-step-heat")
    assert figure.locator("select option").all_text_contents() == [
        "step time",
        "waiting for other ranks",
        "compute",
        "exposed copies",
    ]
    assert empty_tab.evaluate(CELLS)[0][1] == 44.0
    figure.locator("select").select_option(label="exposed copies")
    wait_until(empty_tab, f"{DRAWN} && {CELLS}[3][0] === 6")
    assert empty_tab.evaluate(CELLS) == [[3.0 + rank] * 3 for rank in range(4)]
    assert figure.locator(".scale span").all_text_contents() == ["0 ns", "6 ms"]
    assert "Exposed copies: up to 6 ms" in figure.locator(".caption").inner_text()
    waits = empty_tab.evaluate("document.querySelector('#chart-wait-heat .drawing').data[0].z")
    figure.locator("select").select_option(label="waiting for other ranks")
    wait_until(empty_tab, f"{DRAWN} && {CELLS}[0][0] === 21")
    assert empty_tab.evaluate(CELLS) == waits
    assert {url for url in seen["requests"] if url != "about:blank"} == {page_path}
