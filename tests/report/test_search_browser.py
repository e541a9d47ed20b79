"""Search on a page that could not hold every event: what it says is what ran, and Enter goes to where it is."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from browsing import IN_BROWSER, open_page
from conftest import Row, blob_of, decode
from playwright.sync_api import Page
from report_sample import named_kernels, sample

from traceanalyzer.report.html import render_html

pytestmark = IN_BROWSER

KERNELS = 40_000
RARE = 2_000
"""Every so manieth kernel is a rare one."""
LIMIT = 980_000


@pytest.fixture(scope="module")
def large() -> bytes:
    rng = np.random.default_rng(2)
    names = [f"gemm_{k}" for k in rng.integers(0, 7, KERNELS)]
    for at in range(RARE // 2, KERNELS, RARE):
        names[at] = "needle_kernel"
    page = render_html(sample()[0], named_kernels(names), limit=LIMIT)
    assert 0.9 * LIMIT < len(page) <= LIMIT
    return page


@pytest.fixture
def large_tab(empty_tab: Page, large: bytes, tmp_path: Path) -> Page:
    (tmp_path / "large.html").write_bytes(large)
    open_page(empty_tab, (tmp_path / "large.html").as_uri())
    return empty_tab


def holders(rows: list[Row], name: str) -> list[tuple[float, str, int]]:
    """Start, lane and number of every slice that has a name or hides it."""
    found = set()
    for row in rows:
        if row.kind != "counter":
            found |= {(row.start[at], row.lane, at) for at in np.flatnonzero(row.name == name).tolist()}
            found |= {(row.start[at], row.lane, at) for at, one in row.hidden if one == name}
    return sorted(found)


def test_what_is_inside_merged_slices_is_counted_and_reached(large_tab: Page, large: bytes) -> None:
    header, rows = decode(blob_of(large))
    places = holders(rows, "needle_kernel")
    total = KERNELS // RARE
    single = sum(
        int((row.name == "needle_kernel")[row.count == 1].sum()) for row in rows if row.lane.startswith("stream")
    )
    assert single < total and len(places) <= total
    large_tab.fill("#find", "Needle")
    said = large_tab.inner_text("#found")
    assert said.startswith(f"{total} events match") and "inside merged slices" in said
    cells = large_tab.locator("#found-names tbody tr").evaluate_all(
        "(rows) => rows.map((r) => [...r.cells].map((c) => c.textContent))"
    )
    assert [(name, count, alone, on) for name, count, alone, _, on in cells] == [
        ("needle_kernel", str(total), str(single), "streams")
    ]
    exact = large_tab.locator("#found-names tbody td").nth(2).get_attribute("title")
    assert exact and int(re.sub(r"\D", "", exact)) == header["index"]["counts"]["needle_kernel", "streams"][1]
    visited = []
    large_tab.evaluate("window.traceanalyzer.timeline.show(0, 1)")
    for _ in places:
        large_tab.press("#find", "Enter")
        pinned = large_tab.evaluate(
            "(({row, i}) => [row.start[i], row.lane.label, i])(window.traceanalyzer.timeline.pinned)"
        )
        visited.append(tuple(pinned))
        assert "needle_kernel" in large_tab.inner_text("#pinned-text")
    assert sorted(visited) == places


def test_a_name_in_the_list_leads_to_its_first_place(large_tab: Page) -> None:
    large_tab.fill("#find", "gemm")
    names = large_tab.locator("#found-names tbody tr")
    assert names.count() == 7
    totals = names.evaluate_all("(rows) => rows.map((row) => Number(row.cells[3].title.replace(/\\D/g, '')))")
    assert totals == sorted(totals, reverse=True)
    names.nth(3).locator("button").click()
    wanted = names.nth(3).locator("button").inner_text()
    assert wanted in large_tab.inner_text("#pinned-text")


def test_a_moved_slice_says_so(large_tab: Page, large: bytes) -> None:
    """What merging has moved has no exact start, whether it stands for one event or for many."""
    _, rows = decode(blob_of(large))
    stream = next(row for row in rows if row.lane == "stream 7")
    moved = int(np.flatnonzero(stream.rough & (stream.count > 1))[0])
    exact = int(np.flatnonzero(~stream.rough)[0])
    for at, says in ((moved, "starts at about "), (exact, " ns on the trace's clock")):
        large_tab.evaluate(
            """([i]) => { const { timeline } = window.traceanalyzer;
            timeline.goTo({ row: timeline.data.rows.find((row) => row.lane.label === "stream 7"), i }); }""",
            [at],
        )
        assert says in large_tab.inner_text("#pinned-text")
    assert "on the trace's clock" in large_tab.inner_text("#pinned-text")
