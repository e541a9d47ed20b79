"""`make pictures`: the screenshots of docs/report.md, docs/compare.md and docs/history.md, made from the fixtures and, for a history,
from made-up nights. They are made again when a page changes."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.nights import nights
from benchmarks.page import CHROMIUM, FLAGS
from benchmarks.ranks import JOB, renumber
from traceanalyzer.cli.command import own_commands
from traceanalyzer.cli.commands import program
from traceanalyzer.report.trend_page import render_trend_html
from traceanalyzer.result.history.trend import trend_of

INPUT = Path("tests/fixtures/kineto/dataloader.slow.pt.trace.json.gz")
LAUNCHES = Path("tests/fixtures/kineto/launch_storm.slow.pt.trace.json.gz")
SLOW, FIXED = (Path(f"tests/fixtures/kineto/h2d_pageable.{state}.pt.trace.json.gz") for state in ("slow", "fixed"))
RANKS = 8
WIDE, NARROW, HIGH = (1280, 800), (390, 844), (1280, 1010)
DRAWN = "document.querySelectorAll('.js-plotly-plot .main-svg').length > 0"
PIN = """() => {
    const timeline = window.traceanalyzer.timeline;
    const row = timeline.data.rows.find((row) => row.lane.label.startsWith('stream') && row.link);
    const i = Math.floor(row.n / 2);
    timeline.show(row.start[i] - 150e3, row.start[i] + 90e3);
    timeline.pin({ row, i });
}"""


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        job = Path(scratch) / "job"
        renumber(JOB, job, RANKS)
        one, launches, many = (_report(path, Path(scratch)) for path in (INPUT, LAUNCHES, job))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        _open(browser, one).screenshot(path=folder / "report.png")
        _open(browser, one, dark=True).screenshot(path=folder / "report-dark.png")
        _open(browser, one, size=NARROW).screenshot(path=folder / "report-narrow.png")
        _open(browser, many).screenshot(path=folder / "report-ranks.png")
        tab = _open(browser, one)
        tab.click("#findings button.show >> nth=0")
        tab.wait_for_timeout(500)
        tab.locator("#timeline").screenshot(path=folder / "report-timeline.png")
        tab = _open(browser, launches)
        tab.evaluate(PIN)
        tab.wait_for_timeout(800)
        tab.locator("#timeline").screenshot(path=folder / "report-arrows.png")
        tab = _open(browser, many)
        tab.evaluate("document.getElementById('job').scrollIntoView()")
        tab.wait_for_timeout(1000)
        tab.screenshot(path=folder / "report-job.png")
        _pictures_of_a_comparison(browser, Path(scratch) / "comparison.html", folder)
        _picture_of_a_history(browser, Path(scratch) / "trend.html", folder)
        browser.close()


def _pictures_of_a_comparison(browser: Browser, page: Path, folder: Path) -> None:
    program(own_commands())(
        ["compare", str(SLOW), str(FIXED), "--format", "html", "-o", str(page)], standalone_mode=False
    )
    tab = _open(browser, page)
    tab.screenshot(path=folder / "comparison.png")
    tab.locator("#timeline").screenshot(path=folder / "comparison-timelines.png")


def _picture_of_a_history(browser: Browser, page: Path, folder: Path) -> None:
    entries = nights()
    page.write_bytes(render_trend_html(trend_of(entries), entries))
    _open(browser, page, size=HIGH).screenshot(path=folder / "trend.png")


def _report(source: Path, scratch: Path) -> Path:
    page = scratch / f"{source.stem}.html"
    program(own_commands())(["report", str(source), "-o", str(page)], standalone_mode=False)
    return page


def _open(browser: Browser, page: Path, *, size: tuple[int, int] = WIDE, dark: bool = False) -> Page:
    tab = browser.new_page(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    tab.goto(page.as_uri())
    while not tab.evaluate(DRAWN):
        tab.wait_for_timeout(50)
    tab.wait_for_timeout(500)  # the last of the charts
    return tab


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/images"))
