"""The page on paper: printed by the command line at once, without scripts, and after everything was drawn, it holds the same."""

from __future__ import annotations

import io
import re
import subprocess
from pathlib import Path

import pytest
from browsing import CHROMIUM, FLAGS, IN_BROWSER, open_page, wait_until
from comparison_sample import rendered
from playwright.sync_api import Browser, Page
from pypdf import PdfReader
from report_sample import HOSTILE, sample

from tests.support.job_results import job_result
from traceanalyzer.report.html import render_html

pytestmark = IN_BROWSER

SHEET = {"format": "A4", "print_background": True}
DRAWN = "window.traceanalyzer?.charts?.stale.size === 0 && document.querySelector('.panel table') !== null"
STEPS = ["Time of each step", "time, ms", "step", "typical"]
REPORT = [
    *STEPS,
    "What the GPU did over time",
    "share of the time, %",
    "GPU time by kind of work",
    "Kernels that take longest",
    "Copies: size and bandwidth",
    "bandwidth, GB/s",
    "where time went",
    "stream 7",
    "Figures and references",
    "What would change our mind",
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("paper")
    made = {
        "report": render_html(*sample()),
        "job": render_html(job_result(12), None),
        "compared": rendered(),
    }
    for name, page in made.items():
        (folder / f"{name}.html").write_bytes(page)
    return {name: folder / f"{name}.html" for name in made}


def texts(pdf: bytes) -> list[str]:
    """The text of each sheet, on one line; signs that only keep words together are left out."""
    return [re.sub(r"\s+", " ", page.extract_text().replace("\u2060", "")) for page in PdfReader(io.BytesIO(pdf)).pages]


def printed_at_once(page: Path, tmp_path: Path, *flags: str) -> bytes:
    """As anybody would do it on a command line."""
    assert CHROMIUM
    out = tmp_path / "out.pdf"
    command = [
        CHROMIUM,
        "--headless",
        *FLAGS,
        *flags,
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--print-to-pdf={out}",
    ]
    subprocess.run([*command, page.as_uri()], check=True, capture_output=True, timeout=240)
    return out.read_bytes()


def without_scripts(browser: Browser, page: Path) -> bytes:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page.as_uri())
    pdf = tab.pdf(**SHEET)
    context.close()
    return pdf


def when_drawn(tab: Page, page: Path) -> bytes:
    open_page(tab, page.as_uri())
    wait_until(tab, DRAWN)
    return tab.pdf(**SHEET)


def figures_of(said: str) -> set[str]:
    return set(re.findall(r"\d[\d,]*\.\d{2,3}\b", said))


@pytest.mark.parametrize("way", ["at once", "without scripts", "when drawn"])
def test_a_report_has_everything_on_paper(
    browser: Browser, empty_tab: Page, pages: dict[str, Path], tmp_path: Path, way: str
) -> None:
    if way == "at once":
        pdf = printed_at_once(pages["report"], tmp_path)
    elif way == "without scripts":
        pdf = without_scripts(browser, pages["report"])
    else:
        pdf = when_drawn(empty_tab, pages["report"])
    said = " ".join(texts(pdf))
    missing = [words for words in REPORT if words not in said and not (way == "when drawn" and words in CANVAS)]
    assert missing == []
    assert "print the page again" not in said and HOSTILE in said


CANVAS = {"where time went", "stream 7", "typical"}
"""What a canvas or a hover says is no text of the sheet."""


def test_ledgers_keep_the_labels_of_their_rows_on_every_sheet(pages: dict[str, Path], tmp_path: Path) -> None:
    sheets = texts(printed_at_once(pages["job"], tmp_path))
    said = " ".join(sheets)
    for row in ("Window", "busy", "longest gap", "GPU operations", "kernels"):
        assert row in said
    figures = [sheet.count("Window ") for sheet in sheets]
    assert sum(figures) == 1  # a table's foot stands once, with its labels, and not on every sheet without
    for chart in ("Step times, GPU by GPU", "Waiting that each GPU causes", "others wait, ms"):
        assert chart in said


def test_a_comparison_has_everything_on_paper(browser: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    at_once = " ".join(texts(printed_at_once(pages["compared"], tmp_path)))
    plain = " ".join(texts(without_scripts(browser, pages["compared"])))
    for said in (at_once, plain):
        for words in ("Time of each", "BASE", "NEW", "time of one", "Where the difference comes from", "kernel_39"):
            assert words in said
        assert "· GPU 0" in said


def test_tables_say_the_same_with_and_without_scripts(
    browser: Browser, empty_tab: Page, pages: dict[str, Path]
) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(pages["report"].as_uri())
    read = "(table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.replaceAll('\\u2060', '')))"
    plain = {one.get_attribute("id"): one.locator("table").evaluate(read) for one in tab.locator(".panel").all()}
    context.close()
    open_page(empty_tab, pages["report"].as_uri())
    empty_tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    wait_until(empty_tab, DRAWN)
    empty_tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    drawn = {one.get_attribute("id"): one.locator("table").evaluate(read) for one in empty_tab.locator(".panel").all()}
    assert plain == drawn and len(plain) >= 4


def test_paper_is_light_and_nothing_is_wider_than_it(empty_tab: Page, pages: dict[str, Path]) -> None:
    empty_tab.emulate_media(color_scheme="dark", media="print")
    empty_tab.set_viewport_size({"width": 700, "height": 1000})
    for page in pages.values():
        empty_tab.goto(page.as_uri())
        wait_until(empty_tab, "document.getElementById('asked') !== null")
        assert empty_tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert empty_tab.evaluate("document.documentElement.scrollWidth") <= 700


def test_the_timeline_takes_a_sheet_and_gives_it_back(tab: Page) -> None:
    size = "[window.traceanalyzer.timeline.window.width, window.traceanalyzer.timeline.canvas.width].join()"
    before = tab.evaluate(size)
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate(size) == "660,1320"
    tab.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate(size) == before


def test_still_pictures_are_small(pages: dict[str, Path]) -> None:
    for page in pages.values():
        text = page.read_text()
        stills = re.findall(r'<svg class="still".*?</svg>', text, re.DOTALL)
        plain = re.findall(r'<div class="before-scripts scroll.*?</div>', text, re.DOTALL)
        assert stills and sum(map(len, stills)) < 200_000 and sum(map(len, plain)) < 200_000
