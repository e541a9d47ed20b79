"""The page on paper: printed by the command line at once, without scripts, and after everything was drawn, it holds the same."""

from __future__ import annotations

import io
import json
import re
import subprocess
import unicodedata
from pathlib import Path

import pytest
from browsing import CHROMIUM, FLAGS, IN_BROWSER, open_page, wait_until
from comparison_sample import rendered
from playwright.sync_api import Browser, Page
from pypdf import PdfReader
from report_sample import sample

from tests.support.job_results import job_result
from traceanalyzer.report.html import render_html
from traceanalyzer.report.tables.plain import plain_table
from traceanalyzer.report.tables.table import Column, DataTable, Kind

pytestmark = IN_BROWSER

SHEET = {"format": "A4", "print_background": True}
DRAWN = "window.traceanalyzer?.charts?.stale.size === 0 && document.querySelector('.panel table') !== null"
WORDS = """() => {
    const texts = (selector) => [...document.querySelectorAll(selector)].map((one) => one.textContent);
    return { titles: texts('h2:not(.unseen), h3, figcaption p, summary, .legend li'), stills: texts('.drawing > .still text'),
        lanes: texts('.before-scripts > .still text'), labels: texts('.figures th') };
}"""
"""What a page says without scripts: titles, captions, legends, all texts of its charts and its timeline, the labels of tables."""


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


def words_of(browser: Browser, page: Path) -> dict[str, list[str]]:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page.as_uri())
    found: dict[str, list[str]] = tab.evaluate(WORDS)
    context.close()
    return found


def bare(text: str) -> str:
    """Without blanks and signs that only keep words together: a sheet breaks lines as it likes."""
    return re.sub(r"[\s\u2060]+", "", unicodedata.normalize("NFKC", text))


def missing(words: list[str], pdf: bytes) -> list[str]:
    said = bare(" ".join(texts(pdf))).lower()
    return [one for one in words if any(bare(word).lower() not in said for word in one.split())]


@pytest.mark.parametrize("name", ["report", "job", "compared"])
def test_a_page_printed_at_once_has_everything(
    browser: Browser, pages: dict[str, Path], tmp_path: Path, name: str
) -> None:
    words = words_of(browser, pages[name])
    assert len(words["stills"]) > 5 and len(words["titles"]) > 10
    pdf = printed_at_once(pages[name], tmp_path)
    assert missing(words["titles"] + words["labels"], pdf) == []
    # A chart may have been drawn already: its ticks are plotly's then, which chooses others.
    assert len(missing(words["stills"], pdf)) <= len(words["stills"]) / 3


@pytest.mark.parametrize("name", ["report", "job", "compared"])
def test_a_page_printed_without_scripts_has_everything(browser: Browser, pages: dict[str, Path], name: str) -> None:
    words = words_of(browser, pages[name])
    pdf = without_scripts(browser, pages[name])
    assert missing([one for each in words.values() for one in each], pdf) == []


def test_a_page_printed_when_drawn_has_everything(browser: Browser, empty_tab: Page, pages: dict[str, Path]) -> None:
    words = words_of(browser, pages["report"])
    pdf = when_drawn(empty_tab, pages["report"])
    assert missing(words["titles"] + words["labels"], pdf) == []
    assert len(missing(words["stills"], pdf)) <= len(words["stills"]) / 3


def test_rows_of_ledgers_keep_their_labels(pages: dict[str, Path], tmp_path: Path) -> None:
    """A table's foot stands once, with its labels, and not on every sheet without."""
    sheets = texts(printed_at_once(pages["job"], tmp_path))
    feet = [sheet for sheet in sheets if "Window " in sheet]
    assert len(feet) == 1
    for row in ("busy", "longest gap", "GPU operations", "kernels"):
        assert row in feet[0].partition("Window ")[2]


def test_tables_say_the_same_with_and_without_scripts(
    browser: Browser, empty_tab: Page, pages: dict[str, Path]
) -> None:
    read = "(table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent))"
    for name in ("report", "compared"):
        context = browser.new_context(java_script_enabled=False)
        tab = context.new_page()
        tab.goto(pages[name].as_uri())
        stand_ins = tab.locator(".plain").all()
        plain = {one.get_attribute("data-table"): one.locator("table").evaluate(read) for one in stand_ins}
        context.close()
        open_page(empty_tab, pages[name].as_uri())
        wait_until(empty_tab, DRAWN)
        empty_tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        panels = empty_tab.locator(".panel").all()
        drawn = {one.get_attribute("id"): one.locator("table").evaluate(read) for one in panels}
        assert json.loads(json.dumps(plain).replace("\\u2060", "")) == drawn and len(plain) >= 2


FIGURES: dict[Kind, list[float]] = {
    "count": [0, 7, 1234567, 0.25, 1234.5, 10.0],
    "duration": [0, 3, 4, 5, 1234, 987_654_321],
    "change": [0, -3, 5, -1234, 999_995, -2_000_000],
    "bytes": [0, 1023, 1024, 1536, 67_108_864, 1_048_052],
    "share": [0, 0.0004, 0.0005, 0.5, 0.123456, 1],
    "rate": [0, 0.004, 0.005, 1.005, 171.021, 12_345.6],
    "ratio": [0, 0.0995, 0.1, 0.5, 1.0, 12.345],
}


@pytest.mark.parametrize("longest", [1_000_000, 20_000_000])
def test_figures_are_written_alike_by_both(tab: Page, longest: int) -> None:
    columns = tuple(Column(kind, kind, "", [*values, longest]) for kind, values in FIGURES.items())
    table = DataTable("t", "T", "", 7, columns, 0)
    drawn = tab.evaluate(
        "(table) => { const data = new TableData(table); return data.rows.map((row) => data.columns.map((c) => data.text(c, row))); }",
        table.payload(),
    )
    assert plain_table(table).rows == drawn


def test_paper_is_light_and_nothing_is_wider_than_it(empty_tab: Page, pages: dict[str, Path]) -> None:
    empty_tab.emulate_media(color_scheme="dark", media="print")
    empty_tab.set_viewport_size({"width": 700, "height": 1000})
    for page in pages.values():
        empty_tab.goto(page.as_uri())
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
        plain = re.findall(r'<div class="before-scripts plain.*?</div>', text, re.DOTALL)
        assert stills and sum(map(len, stills)) < 200_000 and sum(map(len, plain)) < 200_000
