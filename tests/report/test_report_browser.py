"""The page in a browser: it asks for nothing, names do nothing, and what one clicks does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import IN_BROWSER, open_page, view, wait_until
from playwright.sync_api import Page
from report_sample import HOSTILE, HOSTILE_TOO, sample

from tests.support.job_results import job_result
from traceanalyzer.report.html import render_html

pytestmark = IN_BROWSER


def interval(tab: Page, finding: int, item: int) -> tuple[int, int]:
    """An item of evidence in ns since the timeline's origin."""
    origin = int(tab.evaluate("window.traceanalyzer.timeline.data.groups[0].origin"))
    evidence = sample()[0].findings[finding].evidence[item]
    return evidence.start_ns - origin, evidence.end_ns - origin


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
    tab.evaluate("window.traceanalyzer.timeline.showEvidence(0, 0)")
    tab.mouse.click(box["x"] + box["width"] * 0.55, canvas.bounding_box()["y"] + 62)  # type: ignore[index]
    assert HOSTILE_TOO in tab.inner_text("#pinned").replace("\n", "\u2028")
    assert tab.locator("img, iframe, [onerror], [onload]").count() == 0
    assert HOSTILE in tab.inner_text("#kernel-table")


@pytest.mark.parametrize(("finding", "item"), [(0, 0), (0, 2), (1, 0)])
def test_evidence_zooms_the_timeline(tab: Page, finding: int, item: int) -> None:
    before = view(tab)
    for summary in tab.locator(f"#finding-{finding} .evidence details:not([open]) summary").all():
        summary.click()
    tab.click(f'button.link[data-finding="{finding}"][data-evidence="{item}"]')
    low, high = view(tab)
    start, end = interval(tab, finding, item)
    assert low <= start and end <= high and high - low < (before[1] - before[0]) / 3
    assert (low + high) / 2 == pytest.approx((start + end) / 2)
    assert tab.evaluate("location.hash") == f"#finding={finding}&e={item}"
    assert tab.evaluate("document.activeElement.id") == "lanes"


def test_links_reproduce_the_view(tab: Page, page_path: str) -> None:
    open_page(tab, page_path + "#finding=0&e=2")
    start, end = interval(tab, 0, 2)
    low, high = view(tab)
    assert low <= start and end <= high <= low + 3 * (end - start)
    open_page(tab, page_path + "#t=2000000-3000000")
    assert view(tab) == (2_000_000, 3_000_000)


def test_keys_wheel_and_drag(tab: Page) -> None:
    home = view(tab)
    tab.focus("#lanes")
    tab.keyboard.press("w")
    assert view(tab)[1] - view(tab)[0] < home[1] - home[0]
    narrow = view(tab)
    tab.keyboard.press("d")
    assert view(tab)[0] > narrow[0]
    tab.keyboard.press("0")
    assert view(tab) == home
    tab.locator("#canvas").scroll_into_view_if_needed()
    box = tab.locator("#canvas").bounding_box()
    assert box
    x, y = box["x"] + 600, box["y"] + 60
    time_at = "([x]) => window.traceanalyzer.timeline.timeAt(x)"
    under = tab.evaluate(time_at, [600])
    tab.mouse.move(x, y)
    tab.mouse.wheel(0, -300)
    wait_until(tab, "window.traceanalyzer.timeline.to - window.traceanalyzer.timeline.from < 5e7")
    assert tab.evaluate(time_at, [600]) == pytest.approx(under, rel=1e-6)
    zoomed = view(tab)
    tab.mouse.down()
    tab.mouse.move(x - 200, y, steps=4)
    tab.mouse.up()
    assert view(tab)[0] > zoomed[0]
    wait_until(tab, "location.hash.startsWith('#t=')")
    tab.keyboard.press("?")
    assert tab.is_visible("#keys")


def test_the_wheel_scrolls_the_page_until_the_timeline_is_clicked(tab: Page) -> None:
    home = view(tab)
    tab.locator("#canvas").scroll_into_view_if_needed()
    box = tab.locator("#canvas").bounding_box()
    assert box
    tab.mouse.move(box["x"] + 600, box["y"] + 60)
    tab.mouse.wheel(0, 100)
    tab.wait_for_timeout(100)
    assert view(tab) == home


def test_theme_toggle_recolours_page_and_timeline(tab: Page) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    pixel = "[...window.traceanalyzer.timeline.ctx.getImageData(5, 5, 1, 1).data].join()"
    before = tab.evaluate(background), tab.evaluate(pixel)
    tab.click("#theme")
    after = tab.evaluate(background), tab.evaluate(pixel)
    assert before[0] != after[0] and before[1] != after[1]
    tab.click("#theme")
    assert (tab.evaluate(background), tab.evaluate(pixel)) == before


def test_slices_are_labelled_with_the_point_of_a_name(tab: Page) -> None:
    short = "shortName('void at::native::(anonymous namespace)::pool<at::native::F>(int)')"
    assert tab.evaluate(short) == "pool<F>(int)"
    assert tab.evaluate("shortName('void ')") == "void "


def test_paper_shows_all_and_the_screen_comes_back(tab: Page) -> None:
    folded = "document.querySelectorAll('details:not([open])').length"
    before = tab.evaluate(folded)
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert before and tab.evaluate(folded) == 0
    tab.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate(folded) == before


def test_table_sorts_and_filters(tab: Page) -> None:
    def counts() -> list[int]:
        return [
            int(cell.replace(",", ""))
            for cell in tab.locator("#kernel-table tbody tr:visible td:nth-child(2)").all_inner_texts()
        ]

    tab.click("#kernel-table th:nth-child(2) button")
    assert counts() == sorted(counts(), reverse=True)
    tab.click("#kernel-table th:nth-child(2) button")
    assert counts() == sorted(counts())
    assert tab.get_attribute("#kernel-table th:nth-child(2)", "aria-sort") == "ascending"
    tab.fill('input[data-filter="kernel-table"]', "NCCL")
    assert counts() == [4]
    # the full name is searched, not only the part that is shown
    tab.fill('input[data-filter="kernel-table"]', "at::native::vectorized")
    assert len(counts()) == 1
    assert tab.inner_text("#kernel-table tbody tr:visible th") == "vectorized_elementwise_kernel<4, AddFunctor<float>>"


def test_a_phone_shows_everything_without_sideways_scrolling(tab: Page) -> None:
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.wait_for_timeout(200)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("ranks", [4, 512])
def test_the_job_fits_a_phone_in_the_dark_and_its_tables_sort(tab: Page, tmp_path: Path, ranks: int) -> None:
    file = tmp_path / "job.html"
    file.write_bytes(render_html(job_result(ranks, steps=3 if ranks == 4 else 40), None))
    tab.emulate_media(color_scheme="dark")
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.goto(file.as_uri())
    for summary in tab.locator("#ledger > details summary").all():
        summary.click()
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    shades = "[...document.querySelectorAll('#heat-2 ~ table td[class^=h]')].map((cell) => getComputedStyle(cell).backgroundColor)"
    assert len(set(tab.evaluate(shades))) == 2  # the late rank, and those that wait for it
    tab.click("#collective-table th:nth-child(5) button")
    assert tab.locator("#collective-table tbody th").all_inner_texts() == ["all-reduce", "all-gather"]
    tab.click("#collective-table th:nth-child(5) button")
    assert tab.locator("#collective-table tbody th").all_inner_texts() == ["all-gather", "all-reduce"]
    if ranks == 512:
        tab.click("#gpu-table th:nth-child(3) button")
        assert tab.locator("#gpu-table tbody th").first.inner_text() == "rank 2"
