"""The page under test, rendered once: as bytes, and decoded back for the timeline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from browsing import CHROMIUM, FLAGS, open_page
from payloads import Block
from playwright.sync_api import Browser, Page, sync_playwright
from report_sample import sample

from traceanalyzer.report.html import render_html


@dataclass
class Row:
    """One decoded row: the number of its group, its lane's label, and the arrays a browser sees; of a counter `start` and `value`."""

    group: int
    lane: str
    start: np.ndarray
    end: np.ndarray
    name: np.ndarray
    colour: np.ndarray
    count: np.ndarray
    link: np.ndarray
    kind: str = "slices"
    rough: np.ndarray = field(default_factory=lambda: np.empty(0, bool))
    hidden: list[tuple[int, str]] = field(default_factory=list)
    value: np.ndarray = field(default_factory=lambda: np.empty(0))


def decode(blob: str) -> tuple[dict[str, Any], list[Row]]:
    """Read the blob by its documented layout; independent of the encoder."""
    block = Block(blob)
    header, read = block.header, block.read
    index = header["index"]
    names = np.array(header["names"], dtype=object)
    columns = [read(dtype, index["n"]) for dtype in ("<u4", "u1", "<f8", "<f8")]
    index["counts"] = {
        (names[name], index["kinds"][kind]): (int(count), int(time))
        for name, kind, count, time in zip(*(column.tolist() for column in columns), strict=True)
    }
    rows = []
    for number, group in enumerate(header["groups"]):
        for lane in group["lanes"]:
            for row in lane["rows"]:
                n, times = row["n"], "<f8" if row["wide"] else "<u4"
                start = np.cumsum(read(times, n).astype(np.float64))
                if lane["kind"] == "counter":
                    none = np.empty(0)
                    value = read("<f8", n)
                    rows.append(Row(number, lane["label"], start, none, none, none, none, none, "counter", value=value))
                    continue
                end = start + read(times, n)
                name = names[read("<u4", n)]
                count = read("<u4", n) if row["merged"] else np.ones(n, dtype=np.uint32)
                link = np.cumsum(read("<i4", n) if row["linked"] else np.zeros(n, dtype=np.int32))
                code = read("u1", n)
                rows.append(Row(number, lane["label"], start, end, name, code & 127, count, link, lane["kind"]))
                rows[-1].rough = code > 127
    for row, n in zip((row for row in rows if row.kind != "counter"), index["hidden"], strict=True):
        if n:
            row.hidden = list(zip(np.cumsum(read("<u4", n)).tolist(), names[read("<u4", n)].tolist(), strict=True))
    assert block.is_read
    return header, rows


def blob_of(page: bytes) -> str:
    found = re.search(r'id="timeline-data">([^<]*)<', page.decode())
    assert found
    return found[1]


@pytest.fixture(scope="session")
def page() -> bytes:
    return render_html(*sample())


@pytest.fixture(scope="session")
def page_path(page: bytes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("a folder with spaces") / "report.html"
    path.write_bytes(page)
    yield path.as_uri()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all: each test has a context of its own in it."""
    assert CHROMIUM, "chromium is not installed"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def seen() -> dict[str, list[str]]:
    """What the tab asked for, and what went wrong in it."""
    return {"requests": [], "trouble": []}


@pytest.fixture
def empty_tab(browser: Browser, seen: dict[str, list[str]]) -> Iterator[Page]:
    """A browser tab. Errors and dialogs in what it opens fail the test."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    tab.on("request", lambda request: seen["requests"].append(request.url))
    tab.on("console", lambda message: seen["trouble"].append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: seen["trouble"].append(str(error)))
    tab.on("dialog", lambda dialog: (seen["trouble"].append(dialog.message), dialog.dismiss()))
    yield tab
    assert seen["trouble"] == []
    tab.close()


@pytest.fixture
def unguarded(browser: Browser) -> Iterator[Page]:
    """A tab without the page's content policy, which forbids to bring axe in."""
    context = browser.new_context(bypass_csp=True, reduced_motion="reduce")
    yield context.new_page()
    context.close()


@pytest.fixture
def tab(empty_tab: Page, page_path: str) -> Page:
    """The sample's report in such a tab."""
    open_page(empty_tab, page_path)
    return empty_tab
