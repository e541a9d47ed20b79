"""The timeline in a browser: what one clicks, drags, types and presses does what it says, and its figures are those of the tables."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import IN_BROWSER, open_page, view, wait_until
from conftest import blob_of, decode
from playwright.sync_api import Page
from report_sample import ORIGIN, Sample, rows, sample

from traceanalyzer.report.html import render_html

pytestmark = IN_BROWSER

TIMELINE = "window.traceanalyzer.timeline"
GRAPH_KERNELS = 250
PIN = f"([label, i]) => {TIMELINE}.goTo({{row: {TIMELINE}.data.rows.find((row) => row.lane.label === label), i}})"
# The middle of a slice on the canvas, in px.
PLACE = f"""([label, i]) => {{
  const timeline = {TIMELINE};
  const row = timeline.data.rows.find((row) => row.lane.label === label);
  const box = timeline.layout.boxOf(row);
  return [timeline.window.xOf((row.start[i] + row.end[i]) / 2), box.y + box.height / 2 - timeline.lanes.scrollTop];
}}"""


def canvas(tab: Page) -> tuple[float, float]:
    """The canvas's corner in the window, once it is in view."""
    tab.locator("#timeline .toolbar").scroll_into_view_if_needed()
    tab.locator("#canvas").scroll_into_view_if_needed()
    box = tab.locator("#canvas").bounding_box()
    assert box
    return box["x"], box["y"]


def pinned(tab: Page) -> tuple[str, int] | None:
    """Lane and number of the pinned slice."""
    found: Any = tab.evaluate(f"{TIMELINE}.pinned && [{TIMELINE}.pinned.row.lane.label, {TIMELINE}.pinned.i]")
    return found and (found[0], found[1])


def interval(tab: Page, finding: int, item: int) -> tuple[int, int]:
    """An item of evidence in ns since the timeline's origin."""
    origin = int(tab.evaluate(f"{TIMELINE}.data.groups[0].origin"))
    evidence = sample()[0].findings[finding].evidence[item]
    return evidence.start_ns - origin, evidence.end_ns - origin


# ---- evidence and addresses ----


@pytest.mark.parametrize(("finding", "item"), [(0, 0), (0, 2), (1, 0)])
def test_evidence_zooms_the_timeline(tab: Page, finding: int, item: int) -> None:
    before = view(tab)
    rule = sample()[0].findings[finding].rule
    for summary in tab.locator(f"#finding-{rule} .evidence details:not([open]) summary").all():
        summary.click()
    tab.click(f'#finding-{rule} button.link[data-finding="{finding}"][data-evidence="{item}"]')
    low, high = view(tab)
    start, end = interval(tab, finding, item)
    assert low <= start and end <= high and high - low < (before[1] - before[0]) / 3
    assert (low + high) / 2 == pytest.approx((start + end) / 2)
    assert tab.evaluate("location.hash") == f"#finding={rule}&e={item}"
    assert tab.evaluate("document.activeElement.id") == "lanes"
    assert tab.evaluate(
        f"[{TIMELINE}.pinned.row.start[{TIMELINE}.pinned.i], {TIMELINE}.pinned.row.end[{TIMELINE}.pinned.i]]"
    ) == [start, end]
    assert "Idle: " in tab.inner_text("#pinned-text")


def test_addresses_reproduce_the_view(tab: Page, page_path: str) -> None:
    open_page(tab, page_path + "#finding=0&e=2")
    start, end = interval(tab, 0, 2)
    low, high = view(tab)
    assert low <= start and end <= high <= low + 3 * (end - start)
    open_page(tab, page_path + "#finding=INP001")
    start, end = interval(tab, 0, 0)
    assert view(tab)[0] <= start and end <= view(tab)[1]
    tab.set_viewport_size({"width": 1280, "height": 380})
    open_page(tab, page_path + "#t=2000000-3000000&y=20")
    assert view(tab) == (2_000_000, 3_000_000)
    assert tab.evaluate(f"{TIMELINE}.lanes.scrollTop") == 20
    tab.evaluate(f"{TIMELINE}.lanes.scrollTop = 33")
    wait_until(tab, "location.hash === '#t=2000000-3000000&y=33'")


def test_others_on_the_page_can_show_a_range(tab: Page) -> None:
    event = "document.dispatchEvent(new CustomEvent('showrange', {detail: {from: 4e6, to: 5e6, group: null}}))"
    tab.evaluate(event)
    assert view(tab) == (3_500_000, 5_500_000)
    tab.evaluate("""() => {
        const button = document.createElement('button');
        Object.assign(button, {className: 'show-range', textContent: 'x'});
        Object.assign(button.dataset, {from: '6000000', to: '8000000', group: '1'});
        document.querySelector('main').prepend(button);
        button.click();
    }""")
    assert view(tab) == (5_000_000, 9_000_000)


# ---- moving about ----


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
    left, top = canvas(tab)
    x, y = left + 600, top + 60
    time_at = f"{TIMELINE}.timeAt(600)"
    under = tab.evaluate(time_at)
    tab.mouse.move(x, y)
    tab.mouse.wheel(0, -300)
    wait_until(tab, f"{TIMELINE}.to - {TIMELINE}.from < 5e7")
    assert tab.evaluate(time_at) == pytest.approx(under, rel=1e-6)
    zoomed = view(tab)
    tab.mouse.down()
    tab.mouse.move(x - 200, y, steps=4)
    tab.mouse.up()
    assert view(tab)[0] > zoomed[0] and pinned(tab) is None
    wait_until(tab, "location.hash.startsWith('#t=')")
    tab.keyboard.press("?")
    assert tab.is_visible("#keys")


def test_the_wheel_scrolls_the_page_until_the_timeline_is_clicked(tab: Page) -> None:
    home = view(tab)
    left, top = canvas(tab)
    tab.mouse.move(left + 600, top + 60)
    tab.mouse.wheel(0, 100)
    tab.wait_for_timeout(100)
    assert view(tab) == home


def test_two_fingers_zoom_where_they_are(tab: Page) -> None:
    home = view(tab)
    left, top = canvas(tab)
    touch = tab.context.new_cdp_session(tab)

    def fingers(kind: str, *xs: float) -> None:
        points = [{"x": left + x, "y": top + 60, "id": number} for number, x in enumerate(xs)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    middle = tab.evaluate(f"{TIMELINE}.timeAt(600)")
    fingers("touchStart", 550, 650)
    for spread in (70, 90, 110, 150):
        fingers("touchMove", 600 - spread, 600 + spread)
    fingers("touchEnd")
    wait_until(tab, f"{TIMELINE}.input.pointers.size === 0")
    assert view(tab)[1] - view(tab)[0] == pytest.approx((home[1] - home[0]) / 3, rel=0.1)
    assert tab.evaluate(f"{TIMELINE}.timeAt(600)") == pytest.approx(middle, rel=0.02)


def test_the_minimap_moves_and_resizes_the_view(tab: Page) -> None:
    canvas(tab)
    box = tab.locator("#minimap").bounding_box()
    assert box
    y = box["y"] + box["height"] / 2
    tab.evaluate(f"{TIMELINE}.show(1e7, 2e7)")

    def x(time: float) -> float:
        return box["x"] + float(tab.evaluate(f"{TIMELINE}.minimap.window.xOf({time})"))

    tab.mouse.click(x(4e7), y)
    low, high = view(tab)
    assert (low + high) / 2 == pytest.approx(4e7, rel=0.01) and high - low == pytest.approx(1e7)
    tab.mouse.move(x(4e7), y)
    tab.mouse.down()
    tab.mouse.move(x(2e7), y, steps=3)
    tab.mouse.up()
    assert sum(view(tab)) / 2 == pytest.approx(2e7, rel=0.02)
    low, high = view(tab)
    tab.mouse.move(x(high), y)
    tab.mouse.down()
    tab.mouse.move(x(high + 1e7), y, steps=3)
    tab.mouse.up()
    assert view(tab) == pytest.approx((low, high + 1e7), rel=0.02)


def test_headings_fold_their_lanes_but_for_the_ledger(tab: Page) -> None:
    lanes = f"{TIMELINE}.layout.boxes.filter((box) => box.row).map((box) => box.lane.label)"
    before = tab.evaluate(lanes)
    left, top = canvas(tab)
    tab.mouse.click(left + 40, top + 36)
    assert [label for label in tab.evaluate(lanes) if label.startswith(("where", "st"))] == ["where time went"]
    tab.evaluate(PIN, ["stream 7", 5])
    assert tab.evaluate(lanes) == before
    tab.click('[data-act="fold"]')
    assert tab.evaluate(lanes) == ["where time went"]
    tab.click('[data-act="fold"]')
    assert tab.evaluate(lanes) == before


# ---- the selected range ----


def ledger_of_tables(low: int, high: int) -> Counter[str]:
    """ns by ledger line within [low, high) on the trace's clock."""
    table = sample()[1].table("ledger_intervals")
    found: Counter[str] = Counter()
    for line, start, end in zip(*(table[c].to_pylist() for c in ("line", "start_ns", "end_ns")), strict=True):
        found[line.replace(".", "-").replace("_", "-")] += max(0, min(end, high) - max(start, low))
    return +found


def ledger_on_page(tab: Page) -> dict[str, int]:
    """The same from the panel, by the line's style, from the tooltips of the table's cells."""
    found = tab.evaluate("""() => [...document.querySelectorAll('#selection tbody tr[class^=c-]')].map(
        (row) => [row.className.slice(2), row.cells[1].title])""")
    return {line: int(re.sub(r"\D", "", ns)) for line, ns in found}


def test_a_range_is_selected_and_broken_down_to_the_nanosecond(tab: Page) -> None:
    before = view(tab)
    origin = int(tab.evaluate(f"{TIMELINE}.data.groups[0].origin"))
    left, top = canvas(tab)
    tab.mouse.move(left + 400, top + 70)
    tab.keyboard.down("Shift")
    tab.mouse.down()
    tab.mouse.move(left + 617, top + 90, steps=3)
    tab.mouse.up()
    tab.keyboard.up("Shift")
    low, high = tab.evaluate(f"[{TIMELINE}.selection.from, {TIMELINE}.selection.to]")
    assert low == pytest.approx(tab.evaluate(f"{TIMELINE}.timeAt(400)"), abs=1) and view(tab) == before
    assert ledger_on_page(tab) == ledger_of_tables(origin + low, origin + high)
    assert sum(ledger_on_page(tab).values()) == high - low  # all of it lies in the GPU's window
    tab.click('[data-act="zoom-selection"]')
    assert view(tab) == pytest.approx((low, high))
    tab.click('[data-act="clear-selection"]')
    assert not tab.is_visible("#selection") and tab.evaluate(f"{TIMELINE}.selection") is None


@pytest.mark.parametrize(
    ("low", "high"), [(0, 10**9), (2_000_001, 2_000_002), (9_876_543, 31_415_926), (-50, 1_999_999)]
)
def test_any_range_sums_to_its_part_of_the_window(tab: Page, low: int, high: int) -> None:
    tab.evaluate(f"{TIMELINE}.select({low}, {high})")
    origin = int(tab.evaluate(f"{TIMELINE}.data.groups[0].origin"))
    assert ledger_on_page(tab) == ledger_of_tables(origin + low, origin + high)


def test_the_view_is_selected_by_a_key(tab: Page) -> None:
    tab.evaluate(f"{TIMELINE}.show(4e6, 5e6)")
    tab.focus("#lanes")
    tab.keyboard.press("m")
    assert tab.evaluate(f"[{TIMELINE}.selection.from, {TIMELINE}.selection.to]") == [4_000_000, 5_000_000]
    ops = sample()[1].table("gpu_ops").to_pylist()
    origin = int(tab.evaluate(f"{TIMELINE}.data.groups[0].origin")) + 4_000_000
    times: Counter[str] = Counter()
    for op in ops:
        times[op["name"]] += max(0, min(op["end_ns"], origin + 1_000_000) - max(op["start_ns"], origin))
    shown = tab.locator("#selection table").last.locator("tbody tr")
    found = shown.evaluate_all("(rows) => rows.map((row) => [row.cells[0].title, row.cells[1].title])")
    assert [(name, int(re.sub(r"\D", "", ns))) for name, ns in found] == (+times).most_common(5)
    tab.keyboard.press("Escape")
    assert tab.evaluate(f"{TIMELINE}.selection") is None


# ---- search, and from slice to slice ----


def test_search_counts_and_goes_from_match_to_match(tab: Page, page: bytes) -> None:
    tab.focus("#lanes")
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "find"
    tab.keyboard.type("NCCL")
    slices = [row for row in decode(blob_of(page))[1] if row.kind != "counter"]
    count = sum("nccl" in name.lower() for row in slices for name in row.name)
    assert tab.inner_text("#found") == f"{count} events match"
    visited = []
    for _ in range(3):
        tab.keyboard.press("Enter")
        visited.append(pinned(tab))
        assert "nccl" in tab.inner_text("#pinned-text").lower()
    assert len(set(visited)) == 3
    tab.keyboard.press("Shift+Enter")
    assert pinned(tab) == visited[1]
    tab.fill("#find", "nothing has this name")
    assert tab.inner_text("#found") == "no name on the timeline contains this" and tab.is_disabled(
        '[data-act="find-next"]'
    )


def test_brackets_go_to_the_slices_of_the_same_name(tab: Page, page: bytes) -> None:
    stream = next(row for row in decode(blob_of(page))[1] if row.lane == "stream 7")
    same = np.flatnonzero(stream.name == stream.name[100])
    at = int(np.searchsorted(same, 100))
    tab.evaluate(PIN, ["stream 7", 100])
    tab.focus("#lanes")
    tab.keyboard.press("]")
    assert pinned(tab) == ("stream 7", same[at + 1])
    low, high = view(tab)
    assert low <= stream.start[same[at + 1]] and stream.end[same[at + 1]] <= high
    tab.keyboard.press("[")
    tab.click('[data-act="same-previous"]')
    assert pinned(tab) == ("stream 7", same[at - 1])
    tab.focus("#lanes")
    tab.keyboard.press("f")
    low, high = view(tab)
    length = stream.end[same[at - 1]] - stream.start[same[at - 1]]
    assert length < high - low <= 2.01 * max(length, 50)


# ---- what is under the pointer ----


def test_a_pixel_of_many_slices_says_so_and_a_wide_slice_says_what_it_is(tab: Page) -> None:
    left, top = canvas(tab)
    x, y = tab.evaluate(PLACE, ["stream 7", 300])
    tab.mouse.move(left + x, top + y)
    found = re.match(r"(\d+) slices in this pixel\nmost time: ", tab.inner_text("#tip"))
    assert found and int(found[1]) > 1
    x, y = tab.evaluate(PLACE, ["steps", 1])
    tab.mouse.move(left + x, top + y)
    assert tab.inner_text("#tip").startswith("ProfilerStep#1\n")


def test_slices_are_labelled_with_the_point_of_a_name(tab: Page) -> None:
    short = "shortName('void at::native::(anonymous namespace)::pool<at::native::F>(int)')"
    assert tab.evaluate(short) == "pool<F>(int)"
    assert tab.evaluate("shortName('void ')") == "void "


# ---- launches and counters ----


def test_a_kernel_leads_to_its_launch_and_back(tab: Page) -> None:
    tab.evaluate(PIN, ["stream 7", 40])
    text = tab.inner_text("#pinned-launches")
    assert text == "launched by cudaLaunchKernel, 60.0 µs before it started"
    assert tab.evaluate(f"{TIMELINE}.arrows().length") == 1
    tab.click("#pinned-launches button")
    lane, _ = pinned(tab) or ("", 0)
    assert lane == "runtime calls" and tab.inner_text("#pinned-launches").endswith(", 60.0 µs after the call began")
    tab.click("#pinned-launches button")
    assert pinned(tab) == ("stream 7", 40)


@pytest.fixture
def graph_tab(empty_tab: Page, tmp_path: Path) -> Page:
    """A page of one graph launch with many kernels, and of a counter with a spike."""
    begin = [ORIGIN + 100_000 + 2_000 * k for k in range(GRAPH_KERNELS)]
    end = [start + 1_500 for start in begin]
    call = {"rank": 0, "process": 1, "thread": 1}
    kernel = {
        "rank": 0,
        "process": 1,
        "device": 0,
        "context": 1,
        "stream": 7,
        "kind": "kernel",
        "name": "k",
        "class": "compute",
    }
    times = [ORIGIN + 1_000 * k for k in range(500)]
    tables = Sample(
        gpu_ops=rows("gpu_ops", **kernel, quarantined=False, start_ns=begin, end_ns=end),
        api_calls=rows(
            "api_calls",
            **call,
            **{"class": "launch"},
            name="cudaGraphLaunch",
            start_ns=[ORIGIN],
            end_ns=[ORIGIN + 9_000],
        ),
        launches=rows(
            "launches",
            **call,
            device=0,
            api_name="cudaGraphLaunch",
            start_ns=ORIGIN,
            end_ns=ORIGIN + 9_000,
            op=list(range(GRAPH_KERNELS)),
            op_start_ns=begin,
            op_end_ns=end,
        ),
        counters=rows(
            "counters",
            rank=0,
            device=0,
            metric="SM active",
            unit="%",
            time_ns=times,
            value=[97.5 if k == 333 else 10.0 for k in range(500)],
        ),
    )
    file = tmp_path / "graph.html"
    file.write_bytes(render_html(sample()[0], tables))
    open_page(empty_tab, file.as_uri())
    return empty_tab


def test_a_graph_launch_names_some_of_its_kernels_and_counts_all(graph_tab: Page) -> None:
    graph_tab.evaluate(PIN, ["runtime calls", 0])
    assert graph_tab.evaluate(f"{TIMELINE}.arrows().length") == 100
    items = graph_tab.locator("#pinned-launches li").all_inner_texts()
    assert items[0] == "started k, 100 µs after the call began"
    assert items[-1] == f"and {GRAPH_KERNELS - 6} more operations; 100 of {GRAPH_KERNELS} arrows are drawn"


def test_a_counter_tells_its_value_where_the_pointer_is(graph_tab: Page) -> None:
    row = f"{TIMELINE}.data.rows.find((row) => row.lane.kind === 'counter')"
    left, top = canvas(graph_tab)
    y = graph_tab.evaluate(f"{TIMELINE}.layout.boxOf({row}).y + 17 - {TIMELINE}.lanes.scrollTop")
    for time, text in ((50_500, "10%"), (333_500, "97.5%")):
        graph_tab.evaluate(f"{TIMELINE}.show({time} - 400, {time} + 400); {TIMELINE}.drawNow()")
        graph_tab.mouse.move(left + 600, top + y - 1)
        graph_tab.mouse.move(left + 660, top + y)
        assert graph_tab.inner_text("#tip").startswith(f"{text}\nSM active\n")
    # Of a whole recording every pixel shows the extremes within it, so the spike is there.
    high = graph_tab.evaluate(f"extremesIn({row}, 0, 5e5)")
    assert (high["low"], high["high"]) == (10.0, 97.5)
    assert graph_tab.evaluate(f"{row}.most") == 97.5


def test_merged_slices_are_not_counted_under_one_name(tab: Page) -> None:
    found = tab.evaluate("""() => {
        const row = { n: 3, start: [0, 10, 20], end: [10, 20, 40], name: [0, 1, 0], count: [1, 7, 1] };
        return topNames([row], 5, 30, 2, 5);
    }""")
    assert found == {"found": [{"name": 0, "ns": 15, "count": 2}], "merged": 10}


# A ledger of so many ns of computing and of idling in turns, a pixel a µs; gives the share of pixels in the colour of computing.
PAINT_LEDGER = """([busy, idle]) => {
  const n = 2 * Math.ceil(1e6 / (busy + idle));
  const durations = Float64Array.from({ length: n }, (_, i) => (i % 2 ? idle : busy));
  const colour = Uint8Array.from({ length: n }, (_, i) => (i % 2 ? 13 : 0));
  const end = runningSum(durations);
  const times = { end, start: end.map((at, i) => at - durations[i]), covered: Float64Array.of(0, ...end) };
  const row = { n, ...times, name: colour, colour, lane: { kind: "ledger" }, ...sumsByColour(n, colour, durations) };
  const shown = Object.assign(new TimeWindow([0, 1e6], [0, 1e6]), { width: 1000, height: 24 });
  const ctx = Object.assign(document.createElement("canvas"), { width: 1000, height: 24 }).getContext("2d");
  const colours = window.traceanalyzer.timeline.colours;
  paintSlices(ctx, row, 0, 24, { window: shown, colours, matches: null });
  const pixels = ctx.getImageData(0, 0, 1000, 24).data;
  const wanted = [1, 3, 5].map((at) => parseInt(colours.fill[0].slice(at, at + 2), 16));
  let count = 0;
  for (let at = 0; at < pixels.length; at += 4) count += wanted.every((part, k) => Math.abs(pixels[at + k] - part) < 3);
  return count / 24_000;
}"""


@pytest.mark.parametrize(("busy", "idle"), [(1300, 13), (400, 100), (1500, 500), (5, 15)])
def test_a_ledger_is_painted_by_its_shares_of_each_pixel(tab: Page, busy: int, idle: int) -> None:
    assert tab.evaluate(PAINT_LEDGER, [busy, idle]) == pytest.approx(busy / (busy + idle), abs=0.03)
