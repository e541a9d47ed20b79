"""The page of a history in a browser: it draws its charts, asks for nothing, and is for everyone."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from browsing import IN_BROWSER, NARROW, WIDE, violations, wait_until
from playwright.sync_api import Page, ViewportSize
from trend_sample import HISTORIES, rendered

pytestmark = IN_BROWSER


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("histories")
    for name, entries in HISTORIES.items():
        (folder / f"{name}.html").write_bytes(rendered(entries))
    return {name: Path(folder / f"{name}.html").as_uri() for name in HISTORIES}


def test_charts_are_drawn_and_nothing_is_asked_for(
    empty_tab: Page, pages: dict[str, str], seen: dict[str, list[str]]
) -> None:
    empty_tab.goto(pages["month"])
    for chart in ("level", "lines", "findings", "families"):
        empty_tab.locator(f"#chart-{chart}").scroll_into_view_if_needed()
        wait_until(empty_tab, f"document.querySelectorAll('#chart-{chart} .main-svg').length > 0")
    wait_until(empty_tab, "document.querySelectorAll('#chart-level .points path').length >= 30")
    assert {url for url in seen["requests"] if url != "about:blank"} == {pages["month"]}


def test_another_series_is_chosen(empty_tab: Page, pages: dict[str, str]) -> None:
    empty_tab.goto(pages["many"])
    empty_tab.locator("#chart-level").scroll_into_view_if_needed()
    wait_until(empty_tab, "document.querySelectorAll('#chart-level .points path').length >= 30")
    choice = empty_tab.locator("#chart-level select")
    choice.select_option(index=2)
    wait_until(empty_tab, "document.querySelectorAll('#chart-level .points path').length >= 30")
    assert choice.evaluate("one => one.options.length") == 3


@pytest.mark.parametrize("name", HISTORIES)
def test_a_phone_in_the_dark_needs_no_sideways_scrolling(empty_tab: Page, pages: dict[str, str], name: str) -> None:
    empty_tab.emulate_media(color_scheme="dark")
    empty_tab.set_viewport_size({"width": 320, "height": 844})
    empty_tab.goto(pages[name])
    empty_tab.evaluate("for (const part of document.querySelectorAll('section')) part.scrollIntoView()")
    wait_until(empty_tab, "document.documentElement.scrollWidth <= 320")


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", NARROW)])
@pytest.mark.parametrize("name", ["month", "many", "none"])
def test_axe_finds_nothing(
    unguarded: Page, pages: dict[str, str], name: str, scheme: Literal["light", "dark"], size: ViewportSize
) -> None:
    unguarded.emulate_media(color_scheme=scheme)
    unguarded.set_viewport_size(size)
    assert not violations(unguarded, pages[name])
