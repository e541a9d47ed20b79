"""What tests in a browser share: which browser, and how to wait in a page that forbids eval."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize

from tests.support.needed import find_chromium, skip_without

CHROMIUM = find_chromium()
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]
WIDE: ViewportSize = {"width": 1280, "height": 800}
NARROW: ViewportSize = {"width": 390, "height": 844}
ACCESSIBLE = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "resultTypes": ["violations"]}
IN_BROWSER = [pytest.mark.browser, skip_without(CHROMIUM, "chromium")]


def open_page(tab: Page, url: str) -> None:
    tab.goto("about:blank")
    tab.goto(url)
    wait_until(tab, "window.traceanalyzer.view() !== null")


def wait_until(tab: Page, condition: str) -> None:
    """Wait for a condition in the page, from outside: playwright's own way polls with eval, which the page forbids."""
    for _ in range(200):
        if tab.evaluate(condition):
            return
        tab.wait_for_timeout(25)
    raise AssertionError(f"never came true: {condition}")


def view(tab: Page) -> tuple[float, float]:
    """What the timeline shows, in ns since its origin."""
    found: dict[str, Any] = tab.evaluate("window.traceanalyzer.view()")
    return found["start_ns"], found["end_ns"]


def violations(tab: Page, url: str) -> list[tuple[Any, ...]]:
    """What axe finds in a page with everything unfolded; the tab must let it in."""
    tab.goto(url)
    tab.evaluate("for (const folded of document.querySelectorAll('details')) folded.open = true")
    tab.evaluate("for (const part of document.querySelectorAll('section')) part.scrollIntoView()")
    tab.wait_for_timeout(300)
    return [
        (one["id"], node["target"], node["any"][0]["message"] if node["any"] else node["html"])
        for one in Axe().run(tab, options=ACCESSIBLE).response["violations"]
        for node in one["nodes"][:3]
    ]
