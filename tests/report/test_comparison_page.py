"""The page of a comparison as text: complete, deterministic, closed to the network, and with both timelines on one axis."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from comparison_sample import LATER, QUICKER, base, compared, complete, new, rendered
from conftest import blob_of, decode
from report_sample import HOSTILE, ORIGIN, Sample, sample

from tests.support.comparisons import US, change, comparison, refused, side
from traceanalyzer.errors import InputError
from traceanalyzer.report.charts.step_samples import samples_chart
from traceanalyzer.report.comparison_page import render_comparison_html
from traceanalyzer.report.sections.comparison_view import line_views, main_cause, side_views, sum_of_lines
from traceanalyzer.report.tables.changes import change_tables
from traceanalyzer.report.timeline.stacked_timeline import Trace, draft_stacked_timeline
from traceanalyzer.result.comparing.comparison import Comparison, Noise


@pytest.fixture(scope="module")
def compared_page() -> bytes:
    return rendered()


class Elements(HTMLParser):
    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def text_of(page: bytes, selector: str) -> str:
    """The text of a section, by its id."""
    found = re.search(rf'<section id="{selector}".*?</section>', page.decode(), re.S)
    assert found
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", found[0])).split())


def test_same_input_same_bytes(compared_page: bytes) -> None:
    assert rendered() == compared_page


def test_names_are_text(compared_page: bytes) -> None:
    found = Elements(compared_page).found
    assert not [tag for tag, _ in found if tag in {"img", "iframe", "object", "embed"}]
    assert not [attrs for _, attrs in found if any(name.startswith("on") or name == "style" for name in attrs)]
    assert HOSTILE.encode() not in compared_page
    assert HOSTILE in text_of(compared_page, "top")


def test_nothing_is_loaded_and_the_policy_names_what_runs(compared_page: bytes) -> None:
    found = Elements(compared_page).found
    assert not [attrs for _, attrs in found if "src" in attrs]
    (policy,) = [a["content"] or "" for t, a in found if t == "meta" and a.get("http-equiv")]
    text = compared_page.decode()
    for block in [*re.findall(r"<script>(.*?)</script>", text, re.S), *re.findall(r"<style>(.*?)</style>", text, re.S)]:
        assert base64.b64encode(hashlib.sha256(block.encode()).digest()).decode() in policy
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy


def test_who_and_where_is_left_out_unless_told_otherwise(compared_page: bytes) -> None:
    assert b"alice" not in compared_page
    assert b"alice" in rendered(redact=False)


def test_the_first_screen_has_the_answer(compared_page: bytes) -> None:
    words = text_of(compared_page, "top")
    assert "A step is 1.52 times as fast" in words and " faster " in words
    assert "What changed most is idle (input), 8 ms less a step; the whole takes 6.3 ms less." in words
    assert "new.json" in words and "18.4 ms on average" in words
    assert "changes below 2.0% do not count" in text_of(compared_page, "health")


def test_a_refusal_says_why_and_what_to_do() -> None:
    page = render_comparison_html(refused(), None, None)
    assert "base ran on an NVIDIA H100, new on an NVIDIA A100" in text_of(page, "top").replace("Base", "base")
    assert "Record both on the same model of GPU." in text_of(page, "top")
    assert text_of(page, "findings") == "Findings Findings were not compared."
    assert b'id="timeline-data"' not in page and b"BASE and NEW have no timeline" in page


def test_lines_add_up_to_the_change_of_a_step(compared_page: bytes) -> None:
    found, step = sum_of_lines(compared()), compared().step
    assert step and (found.base_ns, found.new_ns, found.change_ns) == (step.base_ns, step.new_ns, step.change_ns)
    assert "Sum 18.400 12.100 −6.300" in text_of(compared_page, "lines")
    lines = line_views(compared())
    assert [line.label for line in lines] == [
        *("Idle: input", "Idle: launch latency", "Compute"),
        *("Idle: host work", "Exposed copies"),  # these did not change
    ]
    assert (lines[0].begins, lines[0].width, lines[1].begins) == (0, 0.5, 0.5)  # less to the left, more to the right
    assert [line.words for line in lines[-2:]] == ["no change", "no change"]


def test_bars_of_both_sides_have_one_scale() -> None:
    slow, quick = side_views(compared())
    assert slow.share == 1 and quick.share == pytest.approx(12.1 / 18.4)
    for one in (slow, quick):
        assert sum(segment.share for segment in one.segments) == pytest.approx(1)


def test_what_changed_most_goes_the_way_of_the_step() -> None:
    slower = change("step", 10_000 * US, 12_000 * US)
    lines = [change("compute", 4_000 * US, 9_000 * US), change("idle.input", 6_000 * US, 3_000 * US)]
    said = main_cause(comparison(outcome="slower", step=slower, lines=lines))
    assert said == "What changed most is compute, 5 ms more a step; the whole takes 2 ms more."
    assert main_cause(comparison(step=change("step", 100, 100))) is None


def test_findings_say_what_became_of_them(compared_page: bytes) -> None:
    words = text_of(compared_page, "findings")
    order = [
        words.index(part) for part in ("fixed 1", "new 1", "worse 1", "uncovered 1", "could not judge", "no change")
    ]
    assert order == sorted(order)
    assert "8 ms before, now none" in words and "new has no memory events" in words


def test_buttons_lead_to_evidence_on_both_timelines(compared_page: bytes) -> None:
    data = json.loads(re.search(r'id="page-data">(.*?)</script>', compared_page.decode(), re.S)[1])  # type: ignore[index]
    header, _ = decode(blob_of(compared_page))
    shows = re.findall(r'data-finding="(\d+)" data-evidence="(\d+)">Show in (\w+)', compared_page.decode())
    assert {title for *_, title in shows} == {"BASE", "NEW"}
    for number, item, title in shows:
        start, end, group, _ = data["evidence"][number][int(item)]
        assert header["groups"][group]["label"] == f"{title} · GPU 0"
        assert header["extent"][0] <= start < end <= header["extent"][1]


def tables_of(page: bytes) -> dict[str, dict[str, list[object]]]:
    """The data tables by id, their columns by title."""
    packed = re.search(r'id="tables-data">([^<]*)<', page.decode())
    assert packed
    data = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    return {table["id"]: {column["title"]: column["values"] for column in table["columns"]} for table in data}


def test_tables_have_both_sides(compared_page: bytes) -> None:
    tables = tables_of(compared_page)
    assert list(tables) == ["families", "kernels", "operators", "collectives"]
    kernels = tables["kernels"]
    row = {title: values[0] for title, values in kernels.items()}
    assert row["Kernel"] == HOSTILE and row["change"] == 600 * US and row["ratio"] == 1.1 and row["BASE count"] == 24
    assert [abs(value) for value in kernels["change"]] == sorted(map(abs, kernels["change"]), reverse=True)  # type: ignore[arg-type]
    gone = kernels["outcome"].index("gone")
    assert kernels["NEW"][gone] is None and kernels["ratio"][gone] is None
    assert tables["collectives"]["outcome"] == ["new"]


def test_tables_are_cut_and_say_so() -> None:
    (kernels,) = [table for table in change_tables(compared(), 5) if table.id == "kernels"]
    assert (kernels.rows, kernels.count) == (5, 42)
    assert "The 5 that changed most; 37 are not listed." in kernels.note


def test_samples_of_both_sides_are_drawn_on_one_axis() -> None:
    chart = samples_chart(compared())
    assert chart
    dots = [trace for trace in chart.first.data if trace["meta"] != "ink"]
    assert [trace["name"] for trace in dots] == ["BASE", "NEW"]
    assert [len(trace["x"]) for trace in dots] == [12, 12]
    means = [trace for trace in chart.first.data if trace["meta"] == "ink"]
    assert [trace["x"] for trace in means] == [[18.4], [12.1]]
    assert means[0]["error_x"]["array"] == [0.1472]  # 0.8 % of it
    assert "BASE takes 18.4 ms on average (18.2 ms to 18.6 ms)" in chart.first.caption
    assert "NEW takes 0.658 times as long as BASE, between 0.651 and 0.664." in chart.first.caption


def test_without_samples_or_noise_there_is_less_to_draw() -> None:
    none = comparison(base=side("a", None), new=side("b", None), noise=Noise(None, None, None, 0.02, 0.95))
    assert samples_chart(none) is None
    assert "Noise could not be measured" in text_of(render_comparison_html(none, None, None), "health")


# ---- the timelines ----


def test_both_sides_begin_with_their_first_complete_step(compared_page: bytes) -> None:
    header, rows = decode(blob_of(compared_page))
    assert [group["label"] for group in header["groups"]] == [
        f"{title} · {lane}" for title in ("BASE", "NEW") for lane in ("GPU 0", "python3 · thread 4242")
    ]
    begins = {}
    for number, group in enumerate(header["groups"]):
        (steps,) = [row for row in rows if row.group == number and row.lane == "steps"] if group["device"] else [None]
        if steps is not None:
            assert list(steps.name) == [f"ProfilerStep#{n}" for n in range(4)]
            assert steps.start[0] < 0 and steps.start[1] == 0
            begins[group["label"][:4]] = steps
    lengths = [row.end[1] - row.start[1] for row in begins.values()]
    assert lengths[0] / lengths[1] == pytest.approx(QUICKER, rel=1e-3)


def test_times_are_exact_on_each_clock(compared_page: bytes) -> None:
    header, rows = decode(blob_of(compared_page))
    for number, (_, tables) in ((0, base()), (2, new())):
        zero = int(header["groups"][number]["origin"])
        (stream,) = [row for row in rows if row.group == number and row.lane == "stream 20"]
        ops = tables.table("gpu_ops")
        mine = ops.filter(pa.array(np.array(ops["stream"].to_pylist()) == 20))
        assert [int(time) + zero for time in stream.start] == sorted(mine["start_ns"].to_pylist())
    assert int(header["groups"][2]["origin"]) - ORIGIN > LATER


def test_the_first_view_shows_as_many_steps_of_both(compared_page: bytes) -> None:
    header, rows = decode(blob_of(compared_page))
    last = max(row.end[-1] for row in rows if row.lane == "steps")
    low, high = header["home"]
    assert low < 0 < last < high < last * 1.02
    assert header["extent"][0] < low  # what lies before is there too
    assert [group.get("folded", False) for group in header["groups"]] == [False, True, False, True]


def test_launches_of_one_side_are_none_of_the_other(compared_page: bytes) -> None:
    _, rows = decode(blob_of(compared_page))
    links = [
        {link for row in rows if row.group in side and row.link.any() for link in row.link if link}
        for side in ((0, 1), (2, 3))
    ]
    assert links[0] and links[1] and not links[0] & links[1]


def test_ranks_of_both_sides_keep_their_own_lanes() -> None:
    _, tables = base()
    two = Sample(
        **{
            name: pa.concat_tables([tables.tables[name], _as_rank(tables.tables[name], 1)])
            for name in ("gpu_ops", "ledger_intervals", "step_stats")
        }
    )
    name = lambda rank: f"rank {rank}"  # noqa: E731
    timeline = draft_stacked_timeline([Trace("BASE", two, name), Trace("NEW", two, name, ahead={1: 500})])
    labels = [group.label for group in timeline.groups]
    assert labels == [f"{title} · rank {rank} (GPU 0)" for title in ("BASE", "NEW") for rank in (0, 1)]
    assert [group.rank for group in timeline.groups] == [0, 1, 2, 3]
    zeros = timeline.origins
    assert zeros[0] == zeros[1] and zeros[3] - zeros[2] == 500
    assert all(group.folded for group in timeline.groups)


def _as_rank(table: pa.Table, rank: int) -> pa.Table:
    at = table.schema.get_field_index("rank")
    return table.set_column(at, table.schema.field("rank"), pa.array([rank] * table.num_rows, pa.int32()))


def test_without_steps_gpu_work_begins_at_0() -> None:
    _, tables = sample()
    tables = Sample(**{name: table for name, table in tables.tables.items() if name != "step_stats"})
    timeline = draft_stacked_timeline(
        [Trace("BASE", tables, lambda _: ""), Trace("NEW", complete(sample()[1]), lambda _: "")]
    )
    first = min(tables.tables["gpu_ops"]["start_ns"].to_pylist())
    assert timeline.origins[0] == first
    assert "BASE: No complete step is known: 0 is where its GPU work begins." in timeline.notes


def test_one_side_without_events() -> None:
    page = render_comparison_html(compared(), None, new()[1])
    header, _ = decode(blob_of(page))
    assert {group["label"][:3] for group in header["groups"]} == {"NEW"}
    assert b"BASE has no timeline" in page


def test_the_page_keeps_its_limit() -> None:
    limit = 2_300_000
    assert len(rendered(limit=limit)) <= limit
    with pytest.raises(InputError, match="does not fit"):
        rendered(limit=100_000)


def test_of_more_than_fits_both_sides_keep_their_totals() -> None:
    tables = [base()[1], new()[1]]
    traces = [Trace("BASE", tables[0], lambda _: ""), Trace("NEW", tables[1], lambda _: "")]
    timeline = draft_stacked_timeline(traces).timeline(2_000)
    assert timeline.merged_events > 0
    header, rows = decode(timeline.blob)
    for number, own in ((0, tables[0]), (2, tables[1])):
        shown = sum(
            float((row.end - row.start).sum()) for row in rows if row.group == number and row.lane == "where time went"
        )
        intervals = own.table("ledger_intervals")
        assert shown == sum(intervals["end_ns"].to_pylist()) - sum(intervals["start_ns"].to_pylist())
    assert header["extent"][0] < 0


def test_a_plain_number_of_unit_fits_too() -> None:
    whole: Comparison = comparison(base=side("a", 10 * US, 1, unit="capture"), new=side("b", 5 * US, 1, unit="capture"))
    page = render_comparison_html(replace(whole, lines=[]), None, None)
    assert b"Time of each capture" in page and b'id="lines"' not in page
