"""The icicle of call stacks in a browser: choosing, zooming, searching, turning it over, by mouse, by keys, small and on paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browsing import IN_BROWSER, NARROW, WIDE, open_page, violations, wait_until
from playwright.sync_api import Page
from report_sample import HOSTILE, Sample, rows, sample
from trees_sample import LONG, call_trees, wide_tree

from traceanalyzer.report.html import render_html

pytestmark = IN_BROWSER

STACKS = "window.traceanalyzer.stacks"
ROW = 20
NODES = """() => { const {tree, data} = window.traceanalyzer.stacks; return Array.from(tree.parent, (p, i) =>
    [data.names[data.frames.name[tree.frame[i]]], tree.total[i], tree.self[i], p, tree.start[i]]); }"""


@pytest.fixture(scope="module")
def stacks_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    result, tables = sample()
    result = replace(result, devices=[replace(result.devices[0], rank=rank) for rank in (0, 1)])
    ledger = rows("ledger", rank=[0, 1], device=0, duration=4_000_000, step_count=4, step_time=1_000_000)
    page = render_html(result, Sample(**tables.tables, call_trees=call_trees(), ledger=ledger))
    path = tmp_path_factory.mktemp("stacks") / "report.html"
    path.write_bytes(page)
    yield path.as_uri()


def open_stacks(tab: Page, url: str) -> Page:
    open_page(tab, url)
    wait_until(tab, f"Boolean({STACKS})")
    tab.locator("#stacks").scroll_into_view_if_needed()
    return tab


@pytest.fixture
def stacks(empty_tab: Page, stacks_path: str) -> Page:
    return open_stacks(empty_tab, stacks_path)


def nodes(tab: Page) -> list[tuple[str, int, int, int, float]]:
    return [tuple(one) for one in tab.evaluate(NODES)]


def number(tab: Page, name: str) -> int:
    """The first node of that name."""
    return next(i for i, node in enumerate(nodes(tab)) if node[0] == name)


def place(tab: Page, i: int) -> dict[str, float]:
    """The middle of a node on the canvas."""
    found: dict[str, float] = tab.evaluate(
        f"""(i) => {{ const s = {STACKS}, t = s.tree, x = (t.start[i] + t.total[i] / 2 - s.from) / (s.to - s.from) * s.width;
        return {{x, y: t.level[i] * {ROW} + {ROW / 2} - s.box.scrollTop}}; }}""",
        i,
    )
    return found


def click(tab: Page, name: str) -> None:
    tab.click("#stacks-canvas", position=place(tab, number(tab, name)))


def zoomed(tab: Page) -> str:
    return tab.inner_text("#stacks-path li:last-child")


def ink(tab: Page) -> set[tuple[int, ...]]:
    """The colours in the middle of the canvas's rows."""
    found: list[list[int]] = tab.evaluate(
        f"""() => {{ const {{canvas, ctx}} = {STACKS}, seen = new Set();
        const data = ctx.getImageData(0, 0, canvas.width, canvas.height).data;
        for (let i = 0; i < data.length; i += 4) seen.add(data.slice(i, i + 3).join());
        return [...seen].map((one) => one.split(',').map(Number)); }}"""
    )
    return {tuple(one) for one in found}


def test_the_whole_is_shown_first_over_all_ranks(stacks: Page) -> None:
    whole = nodes(stacks)[0]
    assert whole[:3] == ("Idle time", 2_000_000, 0)
    assert stacks.input_value("#stacks-tree") == "idle" and stacks.input_value("#stacks-part") == "all"
    assert stacks.inner_text("#stacks-part option:checked") == "all 2 GPUs"
    figures = stacks.inner_text("#stacks-figures")
    assert "2.00 ms" in figures and "25.0% of the windows" in figures and "250 µs a step" in figures
    assert len(ink(stacks)) > 5 and stacks.locator("#stacks > .before-scripts").count() == 0


def test_a_click_lets_a_box_fill_the_width_and_one_above_leads_back(stacks: Page) -> None:
    click(stacks, "train.py(12): next_batch")
    assert zoomed(stacks) == "train.py(12): next_batch"
    i = number(stacks, "train.py(12): next_batch")
    start, total = nodes(stacks)[i][4], nodes(stacks)[i][1]
    assert stacks.evaluate(f"[{STACKS}.from, {STACKS}.to]") == [start, start + total]
    assert [*stacks.locator("#stacks-path button").all_inner_texts()] == ["Idle time", "input", "python3"]
    figures = stacks.inner_text("#stacks-figures")
    assert "1.20 ms" in figures and "60.0% of Idle time" in figures and "100 µs in itself" in figures
    click(stacks, "input")
    assert zoomed(stacks) == "input"
    stacks.click("#stacks-path button >> text=Idle time")
    assert zoomed(stacks) == "Idle time" and stacks.is_disabled("[data-stacks=out]")


def test_hovering_says_what_a_box_is(stacks: Page) -> None:
    stacks.hover("#stacks-canvas", position=place(stacks, number(stacks, "read")))
    assert stacks.inner_text("#stacks-name") == "read"
    figures = stacks.inner_text("#stacks-figures")
    assert figures.startswith("system call · 300 µs · 15.0% of Idle time · 3.8% of the windows · 300 µs in itself")
    assert stacks.get_attribute("#stacks-figures", "title") == "300,000 ns"
    stacks.hover("#stacks-title")
    assert stacks.inner_text("#stacks-name") == "Idle time"


def test_search_counts_nested_matches_once_and_fades_the_rest(stacks: Page) -> None:
    before = ink(stacks)
    stacks.fill("#stacks-find", "DECODE")
    said = stacks.inner_text("#stacks-found")
    assert said == "3 nodes, 1.24 ms in them: 62.0% of Idle time"
    wait_until(stacks, f"{STACKS}.frame === 0")
    assert ink(stacks) != before
    stacks.fill("#stacks-find", "e")  # next_batch, decode and read nest
    within = stacks.inner_text("#stacks-found")
    stacks.click("[data-stacks=invert]")
    assert stacks.inner_text("#stacks-found").split(", ")[1] == within.split(", ")[1]
    stacks.fill("#stacks-find", "no such")
    assert stacks.inner_text("#stacks-found") == "no match"
    stacks.press("#stacks-find", "Escape")
    assert stacks.input_value("#stacks-find") == "" and stacks.inner_text("#stacks-found") == ""


def test_inverted_it_begins_with_what_the_time_was_spent_in(stacks: Page) -> None:
    own: dict[str, int] = {}
    for name, _, self_ns, *_ in nodes(stacks):
        own[name] = own.get(name, 0) + self_ns
    stacks.click("[data-stacks=invert]")
    assert stacks.get_attribute("[data-stacks=invert]", "aria-pressed") == "true"
    upside = nodes(stacks)
    first = {}
    for name, total, _, parent, _ in upside:
        if parent == 0:
            first[name] = first.get(name, 0) + total
    assert first == {name: ns for name, ns in own.items() if ns}
    assert upside[0][1] == sum(first.values()) == sum(node[2] for node in upside)
    for i, (_, total, self_ns, *_) in enumerate(upside):
        assert total == self_ns + sum(other[1] for other in upside if other[3] == i)
    assert "From the leaves" in stacks.inner_text("#stacks-notes")
    click(stacks, "decode")
    assert "in itself" in stacks.inner_text("#stacks-figures")
    below = [node[0] for node in upside if node[3] == number(stacks, "decode")]
    assert below == ["train.py(12): next_batch", LONG]
    stacks.click("[data-stacks=invert]")
    assert nodes(stacks)[1][0] == "input"


def test_other_trees_and_other_ranks(stacks: Page) -> None:
    labels = stacks.locator("#stacks-part option").all_inner_texts()
    assert labels == ["all 2 GPUs", "rank 0 (GPU 0)", "rank 1 (GPU 0)"]
    stacks.select_option("#stacks-part", "1")
    assert nodes(stacks)[0][1] == 1_000_000
    stacks.select_option("#stacks-tree", "host")
    assert stacks.input_value("#stacks-part") == "1" and nodes(stacks)[0][0] == "Host time"
    assert "of the window" not in stacks.inner_text("#stacks-figures")
    assert stacks.inner_text("#stacks-part option >> nth=0") == "all 2 ranks"
    legend = stacks.locator("#stacks-legend li").all_inner_texts()
    assert legend == ["Thread", "Python frame", "Annotation", "Operator", "System call"]
    stacks.select_option("#stacks-tree", "gpu")
    assert [node[0] for node in nodes(stacks)][:2] == ["GPU time", "forward"]


def test_the_keyboard_goes_everywhere(stacks: Page) -> None:
    def name() -> str:
        return stacks.inner_text("#stacks-name")

    stacks.focus("#stacks-box")
    for key, wanted in (
        ("ArrowDown", "input"),
        ("ArrowRight", "unattributed"),
        ("ArrowRight", "host work"),
        ("ArrowLeft", "unattributed"),
        ("ArrowUp", "Idle time"),
        ("ArrowDown", "input"),
        ("ArrowDown", "python3"),
        ("ArrowDown", "train.py(12): next_batch"),
        ("ArrowDown", "decode"),
    ):
        stacks.keyboard.press(key)
        assert name() == wanted
    assert "900 µs" in stacks.inner_text("#said")
    stacks.keyboard.press("Enter")
    assert zoomed(stacks) == "decode" and "Zoomed to decode" in stacks.inner_text("#said")
    stacks.keyboard.press("Escape")
    assert zoomed(stacks) == "train.py(12): next_batch" and name() == "decode"
    for _ in range(3):
        stacks.keyboard.press("Escape")
    assert zoomed(stacks) == "Idle time"
    stacks.keyboard.press("Home")
    assert name() == "Idle time"
    stacks.keyboard.press("/")
    assert stacks.evaluate("document.activeElement.id") == "stacks-find"
    stacks.keyboard.type("/e")
    assert stacks.input_value("#stacks-find") == "/e"


def test_arrows_out_of_what_is_zoomed_widen_it(stacks: Page) -> None:
    click(stacks, "read")
    stacks.focus("#stacks-box")
    stacks.keyboard.press("ArrowUp")
    assert stacks.inner_text("#stacks-name") == "decode" and zoomed(stacks) == "decode"


def test_hostile_names_are_text(stacks: Page, seen: dict[str, list[str]]) -> None:
    click(stacks, HOSTILE)
    assert zoomed(stacks) == HOSTILE and stacks.inner_text("#stacks-name") == HOSTILE
    assert stacks.locator("#stacks img").count() == 0
    stacks.locator("#stacks details summary").click()
    assert HOSTILE in stacks.inner_text("#stacks details")
    assert [url for url in seen["requests"] if not url.startswith(("file:", "data:", "about:", "blob:"))] == []


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_it_fits_and_axe_finds_nothing(unguarded: Page, stacks_path: str, size: Any) -> None:
    unguarded.set_viewport_size(size)
    unguarded.emulate_media(color_scheme="dark" if size is NARROW else "light")
    found = violations(unguarded, stacks_path)
    assert not found
    wait_until(unguarded, f"Boolean({STACKS})")
    unguarded.evaluate(f"{STACKS}.zoom({STACKS}.tree.n - 1)")
    assert unguarded.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert unguarded.evaluate(f"{STACKS}.canvas.getBoundingClientRect().right <= innerWidth")


def test_colours_follow_the_page(stacks: Page) -> None:
    light = ink(stacks)
    stacks.click("#theme")
    assert ink(stacks) != light


def test_on_paper_it_has_the_sheets_width_and_its_stacks_as_text(stacks: Page) -> None:
    wide = stacks.evaluate(f"{STACKS}.width")
    click(stacks, "input")
    stacks.evaluate("dispatchEvent(new Event('beforeprint'))")
    stacks.emulate_media(media="print")
    assert stacks.evaluate(f"{STACKS}.width") == 660
    assert stacks.locator("#stacks details table").first.is_visible()
    assert not stacks.locator("#stacks .toolbar").is_visible()
    assert zoomed(stacks) == "input"
    stacks.emulate_media(media="screen")
    stacks.evaluate("dispatchEvent(new Event('afterprint'))")
    assert stacks.evaluate(f"{STACKS}.width") == wide and zoomed(stacks) == "input"


def test_without_scripts_there_is_a_picture(browser: Any, stacks_path: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(stacks_path)
    assert tab.locator("#stacks .still").is_visible() and not tab.locator("#stacks-box").is_visible()
    assert not tab.locator("#stacks .toolbar").is_visible()
    tab.locator("#stacks summary").click()
    assert "next_batch" in tab.inner_text("#stacks details")
    context.close()


def test_many_nodes_are_all_reached(empty_tab: Page, tmp_path: Path) -> None:
    """What the page draws as columns is found under the pointer, and the deepest node can be zoomed to."""
    page = render_html(sample()[0], Sample(**sample()[1].tables, call_trees=wide_tree(20_000)))
    (tmp_path / "wide.html").write_bytes(page)
    tab = open_stacks(empty_tab, (tmp_path / "wide.html").as_uri())
    table = wide_tree(20_000)
    assert nodes(tab)[0][1] == sum(table["self_ns"].to_pylist())
    deepest = tab.evaluate(f"{STACKS}.tree.n - 1")
    tab.evaluate(f"{STACKS}.zoom({deepest})")
    at = place(tab, deepest)
    assert tab.evaluate(f"({{x, y}}) => {STACKS}.nodeAt({{offsetX: x, offsetY: y}})", at) == deepest
    assert (
        tab.evaluate(f"{STACKS}.tree.find(new Uint8Array({STACKS}.data.frames.name.length).fill(1)).time")
        == nodes(tab)[0][1]
    )
    tab.click("[data-stacks=invert]")
    assert sum(node[2] for node in nodes(tab)) == nodes(tab)[0][1]
