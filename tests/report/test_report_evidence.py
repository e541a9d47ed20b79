"""Sections of other kinds of evidence: in their place on the page, as text only, drawn in a browser, on paper, and said by text."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from browsing import open_page, violations, wait_until
from conftest import blob_of, decode
from evidence_sample import MIB, flame, grid, levels, scatter, section
from playwright.sync_api import Page
from report_sample import HOSTILE, sample
from test_report_html import elements

from traceanalyzer.errors import InputError
from traceanalyzer.render.markdown import render_markdown
from traceanalyzer.render.text import render_text
from traceanalyzer.report.evidence.flames import flame_view
from traceanalyzer.report.evidence.levels import MOST_POINTS, levels_chart
from traceanalyzer.report.evidence.lines import MOST_LINES, lines_chart
from traceanalyzer.report.evidence.scatters import LARGEST, SMALLEST, scatter_chart
from traceanalyzer.report.html import render_html
from traceanalyzer.report.stills.chart import chart_still
from traceanalyzer.report.stills.drawing import WIDTH
from traceanalyzer.result.sections import Flame, Grid, Levels, Mark, Point, Scatter, Section, Words


@pytest.fixture(scope="module")
def evidence_page() -> bytes:
    return render_html(*sample(), sections=[section()])


def test_it_stands_where_it_says(evidence_page: bytes, page: bytes) -> None:
    text = evidence_page.decode()
    assert '<a href="#memory-snapshot">Memory</a>' in text
    assert text.index('id="findings"') < text.index('id="memory-snapshot"') < text.index('id="timeline"')
    late = render_html(*sample(), sections=[section(order=400)]).decode()
    assert late.index('id="tables"') < late.index('id="memory-snapshot"') < late.index('id="rules"')
    assert b"FlameGraph" in evidence_page and b"FlameGraph" not in page and b".flame" not in page


def test_what_it_says_is_text(evidence_page: bytes) -> None:
    assert HOSTILE.encode() not in evidence_page
    assert not [tag for tag, _ in elements(evidence_page) if tag in {"img", "iframe"}]
    assert "<code>attention.py:7</code>" in evidence_page.decode()


def test_without_a_trace_it_is_a_report_of_its_own() -> None:
    text = render_html(sample()[0], None, sections=[section(rows=5)]).decode()
    assert 'id="memory-snapshot"' in text and 'id="timeline"' not in text and "Owners at the peak" in text


def test_an_empty_section_is_not_shown_and_a_wrong_one_is_an_error() -> None:
    empty = Section("nothing", "Nothing", [Grid("none", [("a", "text")], []), Flame("none", "bytes", [])])
    assert b'id="nothing"' not in render_html(*sample(), sections=[empty])
    wrong = [
        replace(empty, name="No Anchor!"),
        replace(empty, blocks=[Levels("x", "bytes", [1, 2], [("a", [1])])]),
        replace(empty, blocks=[Levels("x", "bytes", [2, 1], [("a", [1, 1])])]),
        replace(empty, blocks=[Flame("x", "bytes", [(("a",), -1)])]),
        replace(empty, blocks=[Grid("x", [("a", "text")], [["one", "two"]])]),
        replace(empty, blocks=[Scatter("x", "a", "b", [Point("a", 0.0, 1.0)])]),
        replace(empty, blocks=[Scatter("x", "a", "b", [Point("a", 1.0, float("nan"))])]),
        replace(empty, blocks=[Scatter("x", "a", "b", [Point("a", 1.0, 1.0, -1.0)])]),
        replace(empty, blocks=[Scatter("x", "a", "b", [Point("a", 1.0, 1.0)], [("line", [(1.0, -1.0)])])]),
    ]
    for one in wrong:
        with pytest.raises(ValueError, match=r"\w"):
            render_html(*sample(), sections=[one])
    with pytest.raises(InputError, match="two sections of the report are called 'findings'"):
        render_html(*sample(), sections=[replace(empty, name="findings", blocks=[Words("x")])])


def test_the_highest_moment_is_among_those_that_are_drawn() -> None:
    given = levels(5_000, 9)
    chart = levels_chart(given, "x")
    assert chart
    areas = [trace for trace in chart.first.data if trace.get("stackgroup")]
    assert len(areas) == 6 and areas[-1]["name"] == "4 others" and len(areas[0]["x"]) <= MOST_POINTS + 2
    highest = max(sum(values) for values in zip(*(values for _, values in given.series), strict=True))
    drawn = max(sum(values) for values in zip(*(trace["y"] for trace in areas), strict=True))
    assert drawn == pytest.approx(highest / 2**30, rel=1e-4)


def test_points_of_a_plane_are_as_large_as_they_weigh() -> None:
    given = scatter(2_500)
    few = replace(given, points=[replace(one, y=one.y if one.y < 1e6 else 1e6) for one in given.points])
    chart = scatter_chart(few, "x")
    assert chart and scatter_chart(replace(few, points=[]), "x") is None
    *lines, marks = chart.first.data
    assert [line["mode"] for line in lines] == ["lines", "lines"] and lines[0]["x"] == [0.5, 295.0, 4096.0]
    assert len(marks["x"]) == 2_000 and "Of 2,500 points the 2,000 largest are drawn." in chart.first.caption
    assert marks["marker"]["size"][0] == LARGEST and min(marks["marker"]["size"]) >= SMALLEST
    assert chart.first.caption.startswith(
        "The larger a point, the more it weighs. The largest is kernel 0: FLOP per byte 1,"
    )
    axes = chart.first.layout["xaxis"], chart.first.layout["yaxis"]
    assert [axis["type"] for axis in axes] == ["log", "log"] and axes[0]["range"][0] < -0.3
    still = chart_still("x", "large", chart.first.data, chart.first.layout)
    assert still.count('class="c-series-1"') and "bf16: 989 TFLOP/s" in still
    alone = scatter_chart(Scatter("x", "a", "b", [Point("one", 1.0, 2.0, 0.0)]), "x")
    assert alone and alone.first.caption == "one: a 1, b 2."


def clocks(points: int, gpus: int) -> Levels:
    """Clocks that differ by GPU; the last one's is held down now and then, and unknown at one moment."""
    times = [1_000_000 * at for at in range(points)]
    series: list[tuple[str, list[int | float | None]]] = [
        (f"GPU {gpu}", [1_900 + gpu + (at % 7 == 0) for at in range(points)]) for gpu in range(gpus)
    ]
    series[-1][1][points // 2] = None
    series[-1][1][points // 3] = 1_200.5
    return Levels("Clocks", "count", times, series, stacked=False, axis="MHz")


def test_lines_are_not_summed() -> None:
    chart = lines_chart(clocks(5_000, 3), "x")
    assert chart
    lines = chart.first.data
    assert [one["name"] for one in lines] == ["GPU 0", "GPU 1", "GPU 2"] and not any(
        "stackgroup" in one for one in lines
    )
    assert len({one["meta"] for one in lines}) == 3 and len(lines[0]["x"]) <= 2 * MOST_POINTS
    known = [value for value in lines[2]["y"] if value is not None]
    assert (min(known), max(known), None in lines[2]["y"]) == (1_200.5, 1_903, True)
    assert chart.first.caption.startswith("From 1,200 to 1,903 MHz. Of 5,000 moments")
    # What is far from nothing has an axis of its own reach; what comes near it begins there.
    assert chart.first.layout["yaxis"]["range"][0] > 1_000 and chart.first.layout["yaxis"]["title"]["text"] == "MHz"
    low = lines_chart(Levels("x", "share", [0, 1, 2], [("a", [0.1, None, 0.99])], stacked=False), "x")
    assert low and -20 < low.first.layout["yaxis"]["range"][0] < 0 and low.first.data[0]["y"] == [10.0, None, 99.0]


def test_of_many_lines_those_stay_that_stand_out() -> None:
    given = clocks(50, 40)
    given.series[7][1][:] = [900] * 50
    chart = lines_chart(given, "x")
    assert chart and len(chart.first.data) == MOST_LINES and "GPU 7" in [one["name"] for one in chart.first.data]
    assert len({(one["meta"], one["line"].get("dash")) for one in chart.first.data}) == MOST_LINES
    assert f"Of 40 lines those {MOST_LINES} that are furthest" in chart.first.caption


def test_lines_in_pictures_and_words() -> None:
    given = replace(clocks(20, 2), marks=[Mark(3_000_000, 9_000_000, "held")], spans=steps(0, 5, 3))
    chart = lines_chart(given, "x")
    assert chart
    still = chart_still("x", "medium", chart.first.data, chart.first.layout)
    assert still.count('class="c-series-') >= 2 and ">held<" in still and ">GPU 1<" in still
    one = Section("x", "X", [given])
    assert "Clocks: GPU 0 1,900 to 1,901; GPU 1 1,200 to 1,902." in render_text(sample()[0], [one])
    assert 'data-chart="x-1"' in render_html(*sample(), sections=[one]).decode()


def test_lines_without_values_are_not_drawn_and_wrong_ones_are_errors() -> None:
    good = Levels("x", "count", [1, 2], [("a", [None, None])], stacked=False)
    assert lines_chart(good, "x") is None and lines_chart(replace(good, series=[]), "x") is None
    for wrong in (
        replace(good, series=[("a", [1])]),
        replace(good, times_ns=[2, 1]),
        replace(good, series=[("a", [1.0, float("inf")])]),
    ):
        with pytest.raises(ValueError, match="x: "):
            lines_chart(wrong, "x")


def labels(spans: list[Mark], marks: list[Mark] | None = None) -> list[tuple[str, float, str]]:
    """The labels of a chart of 1 s: text, where it is in ms and which way it goes from there."""
    times = [0, 500_000_000, 1_000_000_000]
    chart = levels_chart(Levels("x", "count", times, [("a", [1, 2, 1])], marks or [], spans), "x")
    assert chart
    texts = [trace for trace in chart.first.data if trace.get("mode") == "text"]
    found = [one for trace in texts for one in zip(trace["text"], trace["x"], trace["textposition"], strict=True)]
    return [(text, round(seconds * 1_000, 3), place) for text, seconds, place in found]


def steps(first: int, length: int, count: int) -> list[Mark]:
    """In ms."""
    at = [(first + one * length) * 1_000_000 for one in range(count)]
    return [Mark(start, start + length * 1_000_000, f"step {one}") for one, start in enumerate(at)]


def test_steps_that_have_room_have_their_names() -> None:
    assert labels(steps(100, 300, 3)) == [
        ("step 0", 100.0, "middle right"),
        ("step 1", 400.0, "middle right"),
        ("step 2", 700.0, "middle right"),
    ]


def test_names_of_short_steps_do_not_overlap() -> None:
    found = labels(steps(720, 40, 7))
    assert found[0] == ("step 0", 770.0, "middle left")
    assert [one[0] for one in found[1:]] == ["2", "4", "6"]
    assert all(later - sooner >= 50 for (_, sooner, _), (_, later, _) in pairwise(found[1:]))
    # Without room on its left the first is written out to the right, and hides those below it.
    assert [one[0] for one in labels(steps(0, 40, 7))] == ["step 0", "5"]
    assert [
        one[0] for one in labels([Mark(0, 9, "load"), Mark(9, 30, "train"), Mark(990_000_000, 999_000_000, "test")])
    ] == [
        "load",
        "test",
    ]


@pytest.mark.parametrize(("at", "place"), [(0, "top right"), (500, "top right"), (990, "top left")])
def test_the_name_of_a_mark_is_not_cut_off(at: int, place: str) -> None:
    assert labels([], [Mark(at * 1_000_000, at * 1_000_000, "peak: 7 GiB")]) == [("peak: 7 GiB", float(at), place)]


def test_a_still_picture_has_them_on_the_same_side() -> None:
    times = [0, 1_000_000_000]
    chart = levels_chart(Levels("x", "count", times, [("a", [1, 2])], [Mark(times[1], times[1], "peak: 2")]), "x")
    assert chart
    view = chart.first
    found = re.search(
        r'<text x="([\d.]+)"[^>]*text-anchor="end"[^>]*>peak: 2<', chart_still("x", "large", view.data, view.layout)
    )
    assert found and float(found[1]) < WIDTH


def test_a_flame_graph_keeps_its_total_when_nodes_are_merged() -> None:
    paths = [((f"outer {at % 50}", f"inner {at}"), at + 1) for at in range(5_000)]
    whole, part = (flame_view(Flame("x", "bytes", paths), "x", most) for most in (100_000, 100))
    assert whole and part and whole.total == part.total == sum(amount for _, amount in paths)
    assert not whole.left and part.left and sum(part.data["self"]) == part.total
    assert len(part.data["self"]) < 300


def test_a_lane_lies_on_the_timeline_of_its_gpu(evidence_page: bytes) -> None:
    header, rows = decode(blob_of(evidence_page))
    group = next(one for one in header["groups"] if "GPU 0" in one["label"])
    lane = next(lane for lane in group["lanes"] if lane["label"] == "snapshot: allocated")
    assert (lane["kind"], lane["unit"]) == ("counter", "bytes")
    row = next(row for row in rows if row.lane == lane["label"])
    assert row.value.tolist()[:2] == [MIB, 5 * MIB] and row.start[1] - row.start[0] == 5_000_000
    away = replace(section(), lanes=[replace(section().lanes[0], times_ns=[0, 1, 2])])
    assert "no time in common with this recording (1)" in render_html(*sample(), sections=[away]).decode()


def test_long_tables_are_among_the_others_and_short_ones_are_not(evidence_page: bytes) -> None:
    found = re.search(rb'id="tables-data">([^<]*)<', evidence_page)
    assert found
    tables = json.loads(gzip.decompress(base64.b64decode(found[1])))
    assert tables[-1]["title"] == "Owners at the peak" and len(tables[-1]["columns"][0]["values"]) == 30
    assert b'href="#memory-snapshot-3"' in evidence_page
    assert b'href="#memory-snapshot-3"' not in render_html(*sample(), sections=[section(rows=3)])


def test_people_and_paths_are_left_out() -> None:
    path = "/home/alice/secret/train.py"
    one = Section("one", "One", [Words(f"see {path}"), Flame("x", "bytes", [((f"{path}:3",), 5)])])
    assert b"alice" not in render_html(*sample(), sections=[one])
    assert b"alice" in render_html(*sample(), sections=[one], redact=False)


def test_text_and_markdown_say_it_shortly() -> None:
    result = sample()[0]
    text, markdown = render_text(result, [section()]), render_markdown(result, [section()])
    assert "MEMORY\nThe peak is owned by `attention.py:7`" in text
    assert "Owners at the peak (the first 5 of 30)" in text and "Memory by owner: at most 1.0" in text
    assert "Roofline: kernel 0 weighs most: FLOP per byte 1, TFLOP/s 3." in text
    assert "Who owns the peak: 900 MiB of 2.25 GiB on the path with most, which ends in attention.py:7 scores." in text
    assert (
        "#### Memory" in markdown and "owned by <code>attention.py:7</code>, " in markdown and HOSTILE not in markdown
    )
    assert "| owner | held |" in markdown
    assert render_text(result) == render_text(result, [Section("x", "X", [])])


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("evidence") / "report.html"
    path.write_bytes(render_html(*sample(), sections=[section()]))
    yield path.as_uri()


class TestInABrowser:
    @pytest.fixture
    def shown(self, empty_tab: Page, address: str) -> Page:
        open_page(empty_tab, address)
        wait_until(empty_tab, "() => window.traceanalyzer.flames")
        return empty_tab

    def test_a_flame_graph_by_keyboard_alone(self, shown: Page) -> None:
        name = shown.locator(".flame-node b")
        assert name.text_content() == "all of it"
        shown.locator(".flame-box").focus()
        for key, words in (
            ("ArrowDown", "train.py:10 main"),
            ("ArrowDown", "model.py:33 forward"),
            ("ArrowRight", "loss.py:3 logits"),
        ):
            shown.keyboard.press(key)
            assert name.text_content() == words
        shown.keyboard.press("Enter")
        assert shown.locator(".flame-path [aria-current]").text_content() == "loss.py:3 logits"
        assert "700 MiB" in (shown.locator(".flame-node span").text_content() or "")
        shown.keyboard.press("Escape")
        assert shown.locator(".flame-path [aria-current]").text_content() != "loss.py:3 logits"

    def test_it_is_painted_and_in_other_colours_at_night(self, shown: Page) -> None:
        pixel = "() => [...document.querySelector('.flame canvas').getContext('2d').getImageData(300, 30, 1, 1).data].join()"
        light = shown.evaluate(pixel)
        shown.click("#theme")
        wait_until(shown, f"() => ({pixel})() !== '{light}'")

    def test_levels_are_drawn_as_areas(self, shown: Page) -> None:
        shown.locator("#memory-snapshot").scroll_into_view_if_needed()
        wait_until(shown, "() => document.querySelector('[data-chart=memory-snapshot-2] .scatterlayer')")
        assert shown.locator("[data-chart=memory-snapshot-2] .legend .traces").count() == 6

    def test_points_and_lines_are_drawn(self, shown: Page) -> None:
        shown.locator("#chart-memory-snapshot-5").scroll_into_view_if_needed()
        wait_until(shown, "() => document.querySelector('[data-chart=memory-snapshot-5] .scatterlayer')")
        assert shown.locator("[data-chart=memory-snapshot-5] .scatterlayer .point").count() == 40
        assert shown.locator("[data-chart=memory-snapshot-5] .legend .traces").count() == 2

    def test_a_long_table_opens_in_its_tab(self, shown: Page) -> None:
        shown.click('a[href="#memory-snapshot-3"]')
        wait_until(shown, "() => !document.getElementById('memory-snapshot-3').hidden")

    def test_it_is_accessible(self, unguarded: Page, address: str) -> None:
        assert violations(unguarded, address) == []


def test_samples_are_of_use() -> None:
    assert sum(amount for _, amount in flame().paths) == 2_300 * MIB and len(grid(30).rows) == 30
