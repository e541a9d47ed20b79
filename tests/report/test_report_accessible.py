"""The page for everyone: no violation of WCAG 2 A or AA that axe-core finds, and every control within reach of the keyboard."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from browsing import IN_BROWSER, NARROW, WIDE, violations, wait_until
from playwright.sync_api import Page, ViewportSize
from report_sample import Sample, sample

from tests.support.job_results import job_result
from traceanalyzer.report.html import render_html
from traceanalyzer.result.document import Verdict
from traceanalyzer.result.verdict import NOTHING_TO_JUDGE

pytestmark = IN_BROWSER


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The addresses of pages of each kind."""
    result, tables = sample()
    nothing = replace(
        result, findings=[], health=[], devices=[], steps=[], rules=[], verdict=Verdict("unknown", NOTHING_TO_JUDGE)
    )
    rendered = {
        "sample": render_html(result, tables),
        "empty": render_html(nothing, Sample()),
        "job": render_html(job_result(4), None),
        "many": render_html(job_result(40, steps=20), None),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, page in rendered.items():
        (folder / f"{name}.html").write_bytes(page)
    return {name: Path(folder / f"{name}.html").as_uri() for name in rendered}


# Contrast depends on the colours, and reach on the width: two of the four combinations show all of both.
@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", NARROW)])
@pytest.mark.parametrize("name", ["sample", "empty", "job", "many"])
def test_axe_finds_nothing(
    unguarded: Page, pages: dict[str, str], name: str, scheme: Literal["light", "dark"], size: ViewportSize
) -> None:
    unguarded.emulate_media(color_scheme=scheme)
    unguarded.set_viewport_size(size)
    assert not violations(unguarded, pages[name])


FOCUSED = """() => {
    const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
    if (one === document.body) return null;
    const before = [...document.querySelectorAll('[data-met]')].at(-1);
    const inOrder = !before || Boolean(before.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING);
    const marked = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1 || style.boxShadow !== 'none';
    one.dataset.met = '';
    return inOrder && marked && box.bottom > 0 && box.top < innerHeight ? 'well' : one.outerHTML.slice(0, 300);
}"""
MISSED = """() => [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled && one.tabIndex >= 0 && !('met' in one.dataset))
    .map((one) => one.outerHTML.slice(0, 300))"""


def test_the_keyboard_reaches_every_control_in_order_and_shows_where_it_is(tab: Page) -> None:
    for _ in range(500):
        tab.keyboard.press("Tab")
        focused = tab.evaluate(FOCUSED)
        if focused is None:
            break
        assert focused == "well"
    assert tab.evaluate(MISSED) == []


def test_definitions_show_on_focus_and_hide_on_escape(tab: Page) -> None:
    shown = "getComputedStyle(document.activeElement, '::after').display !== 'none'"
    tip = "getComputedStyle(document.activeElement, '::after').content"
    tab.locator("#ledger .facts .term").first.focus()
    assert tab.evaluate(shown) and "first GPU operation" in tab.evaluate(tip)
    tab.keyboard.press("Escape")
    assert not tab.evaluate(shown)
    tab.locator("#ledger .facts .term").nth(1).focus()
    assert tab.evaluate(shown)


def test_copying_says_so(tab: Page) -> None:
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.locator("#finding-INP001 .copy").first.click()
    wait_until(tab, "document.getElementById('said').textContent === 'Copied'")
    copied = tab.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("DataLoader(dataset, num_workers=8,")


def test_the_navigation_marks_where_the_reader_is(tab: Page) -> None:
    current = "document.querySelector('nav [aria-current]').hash"
    assert tab.evaluate(current) == "#top"
    for place in ("#findings", "#rules", "#top"):
        tab.click(f"nav a[href='{place}']")
        wait_until(tab, f"{current} === '{place}'")


def test_the_first_screen_holds_the_verdict(tab: Page) -> None:
    tab.set_viewport_size(WIDE)
    bottom = "(selector) => document.querySelector(selector).getBoundingClientRect().bottom"
    for part in ("#headline", ".verdict", ".matter", "#health", "svg.ledger", "#ledger .legend"):
        assert tab.evaluate(bottom, part) < WIDE["height"], part
