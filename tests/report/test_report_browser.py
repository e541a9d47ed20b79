"""The page in a browser: it asks for nothing, names do nothing, and what one clicks does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import IN_BROWSER, wait_until
from playwright.sync_api import Browser, Page
from report_sample import HOSTILE, HOSTILE_TOO

from tests.support.job_results import job_result
from traceanalyzer.report.html import render_html

pytestmark = IN_BROWSER


def test_nothing_but_the_page_is_asked_for(tab: Page, page_path: str, seen: dict[str, list[str]]) -> None:
    tab.click("button.show >> nth=0")
    tab.click("#theme")
    tab.wait_for_timeout(500)
    assert {url for url in seen["requests"] if url != "about:blank"} == {page_path}


def test_a_request_would_be_refused(tab: Page, seen: dict[str, list[str]]) -> None:
    refused = tab.evaluate("fetch('https://example.invalid/').then(() => false, () => true)")
    evaluated = tab.evaluate("""() => {
        const script = document.createElement('script');
        script.textContent = 'window.injected = true';
        document.body.append(script);
        return window.injected === true;
    }""")
    assert refused and not evaluated
    assert seen["trouble"] and all("Content Security Policy" in text for text in seen["trouble"])
    assert not [url for url in seen["requests"] if url.startswith("http")]
    seen["trouble"].clear()


def test_names_are_inert(tab: Page) -> None:
    canvas = tab.locator("#canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box
    tab.evaluate("window.traceanalyzer.timeline.address.goToEvidence(0, 0)")
    tab.mouse.click(box["x"] + box["width"] * 0.55, canvas.bounding_box()["y"] + 62)  # type: ignore[index]
    assert HOSTILE_TOO in tab.inner_text("#pinned").replace("\n", "\u2028")
    assert tab.locator("img, iframe, [onerror], [onload]").count() == 0
    tab.locator("#tables").scroll_into_view_if_needed()
    wait_until(tab, "document.querySelector('#kernels table') !== null")
    assert HOSTILE in tab.inner_text("#kernels")


def test_theme_toggle_recolours_page_and_timeline(tab: Page) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    pixel = "[...window.traceanalyzer.timeline.ctx.getImageData(5, 5, 1, 1).data].join()"
    before = tab.evaluate(background), tab.evaluate(pixel)
    tab.click("#theme")
    after = tab.evaluate(background), tab.evaluate(pixel)
    assert before[0] != after[0] and before[1] != after[1]
    tab.click("#theme")
    assert (tab.evaluate(background), tab.evaluate(pixel)) == before


def test_paper_shows_all_and_the_screen_comes_back(tab: Page) -> None:
    folded = "document.querySelectorAll('details:not([open])').length"
    before = tab.evaluate(folded)
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert before and tab.evaluate(folded) == 0
    tab.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate(folded) == before


def test_a_phone_shows_everything_without_sideways_scrolling(tab: Page) -> None:
    tab.set_viewport_size({"width": 320, "height": 844})
    tab.evaluate("for (const folded of document.querySelectorAll('details')) folded.open = true")
    wait_until(tab, "document.documentElement.scrollWidth <= 320")


def test_without_scripts_there_is_nothing_dead(browser: Browser, page_path: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page_path)
    assert tab.locator("h1").is_visible()
    assert tab.locator("#timeline noscript p").is_visible()
    assert tab.locator("button:not(.term):not(.link):visible, canvas:visible, input:visible").count() == 0
    context.close()


def test_swatches_keep_their_colours_when_colours_are_forced(tab: Page) -> None:
    colour = "getComputedStyle(document.querySelector('#ledger .swatch')).backgroundColor"
    before = tab.evaluate(colour)
    tab.emulate_media(forced_colors="active")
    assert tab.evaluate(colour) == before


@pytest.mark.parametrize("ranks", [4, 512])
def test_a_job_fits_a_phone_in_the_dark(empty_tab: Page, tmp_path: Path, ranks: int) -> None:
    file = tmp_path / "job.html"
    file.write_bytes(render_html(job_result(ranks, steps=3 if ranks == 4 else 40), None))
    empty_tab.emulate_media(color_scheme="dark")
    empty_tab.set_viewport_size({"width": 390, "height": 844})
    empty_tab.goto(file.as_uri())
    empty_tab.evaluate("for (const folded of document.querySelectorAll('details')) folded.open = true")
    empty_tab.evaluate("for (const part of document.querySelectorAll('section')) part.scrollIntoView()")
    empty_tab.wait_for_timeout(200)
    assert empty_tab.evaluate("document.documentElement.scrollWidth") <= 390
