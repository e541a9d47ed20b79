"""The tables of the page: their figures against the tables they are made of, and what they do in a browser."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from browsing import IN_BROWSER, open_page, view, wait_until
from playwright.sync_api import Browser, Page
from report_sample import HOSTILE, HOSTILE_TOO, Sample, rows, sample

import traceanalyzer as ta
from tests.support.job_results import MS, job_result
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.report.html import render_html
from traceanalyzer.report.kinds import FAMILIES
from traceanalyzer.report.sections.gpu_names import rank_namer
from traceanalyzer.report.tables import build_tables
from traceanalyzer.report.tables.plain import plain_table
from traceanalyzer.report.tables.table import DataTable
from traceanalyzer.report.timeline.timeline import build_timeline
from traceanalyzer.result.document import Result

FIXTURES = Path(__file__).parent.parent / "fixtures"
REAL = (
    "kineto/item_sync.slow.pt.trace.json.gz",
    "kineto/h2d_pageable.slow.pt.trace.json.gz",
    "nsys/nvtx_dataloader.slow.sqlite",
)
FORMULA = '=SUM(A1:A9), "b"'
SHAPES = "[[64, 3, 224, 224], [64, 3, 7, 7], []]"


def tables_of(result: Result, source: Any, most: int = 1000) -> dict[str, DataTable]:
    timeline = build_timeline(source, rank_namer(result), [])
    return {table.id: table for table in build_tables(result, source, timeline, most=most)}


def column(table: DataTable, title: str) -> list[Any]:
    return list(next(one for one in table.columns if one.title == title).values)


def total(table: pa.Table, name: str) -> int:
    return int(pc.sum(table[name]).as_py() or 0)


def length(table: pa.Table) -> int:
    return int(pc.sum(pc.subtract(table["end_ns"], table["start_ns"])).as_py())


@pytest.fixture(scope="module", params=REAL)
def real(request: pytest.FixtureRequest) -> tuple[Result, Catalog]:
    trace = ta.load(FIXTURES / request.param)
    return ta.analyze(trace), Catalog(trace)


def test_every_table_adds_up_to_the_table_it_is_made_of(real: tuple[Result, Catalog]) -> None:
    result, catalog = real
    found = tables_of(result, catalog, most=100_000)
    assert sum(column(found["kernels"], "total")) == total(catalog.table("kernel_stats"), "total")
    assert sum(column(found["copies"], "time")) == length(catalog.table("copies"))
    assert sum(column(found["copies"], "exposed")) == total(catalog.table("copies"), "exposed")
    assert sum(column(found["copies"], "size")) == total(catalog.table("copies"), "bytes")
    assert sum(column(found["syncs"], "GPU idle")) == total(catalog.table("ledger"), "idle_synchronization")
    assert sum(column(found["gaps"], "length")) == total(catalog.table("ledger"), "idle")
    steps = pc.unique(catalog.table("steps")["name"].cast(pa.string()))
    own = catalog.table("operator_stats")
    listed = own.filter(pc.invert(pc.is_in(own["name"].cast(pa.string()), steps)))
    assert sum(column(found["operators"], "own time")) == total(listed, "self")


def test_idle_stretches_lie_on_the_timeline_where_the_gaps_are(real: tuple[Result, Catalog]) -> None:
    result, catalog = real
    timeline = build_timeline(catalog, rank_namer(result), [])
    table = tables_of(result, catalog)["gaps"]
    gaps = catalog.table("gaps").select(["start_ns", "end_ns", "gap_duration", "cause"]).to_pylist()
    lengths = column(table, "length")
    assert lengths == sorted(lengths, reverse=True) and lengths[0] == max(gap["gap_duration"] for gap in gaps)
    assert table.ranges
    (start, end, group), origin = table.ranges[0], timeline.origins[timeline.groups[0].rank]
    assert timeline.groups[group].device is not None and end - start == lengths[0]
    inside = [gap for gap in gaps if start + origin <= gap["start_ns"] and gap["end_ns"] <= end + origin]
    assert sum(gap["end_ns"] - gap["start_ns"] for gap in inside) == lengths[0]
    time: Counter[str] = Counter()
    for gap in inside:
        time[gap["cause"]] += gap["end_ns"] - gap["start_ns"]
    main = time.most_common(1)[0][0].replace("_", "")
    assert column(table, "cause")[0].replace(", ", "").replace(" ", "").startswith(main)


def test_the_main_cause_is_the_one_of_most_parts_together() -> None:
    result, base = sample()
    gaps = rows("gaps", rank=0, device=0, gap=0, start_ns=[0, 30, 60, 100], end_ns=[30, 60, 100, 130], gap_duration=130,
                cause=["input", "input", "host_work", "input"], place=["a", "b", "c", "d"])  # fmt: skip
    table = tables_of(result, Sample(**{**base.tables, "gaps": gaps}))["gaps"]
    assert (column(table, "cause"), column(table, "the host was in")) == (["input 69%"], ["a"])


def test_what_is_left_out_is_said_with_its_sum(real: tuple[Result, Catalog]) -> None:
    result, catalog = real
    few, every = tables_of(result, catalog, most=1), tables_of(result, catalog, most=100_000)
    assert all(table.rows == 1 for table in few.values())
    gaps = few["gaps"]
    assert gaps.count == every["gaps"].rows and column(gaps, "length") == column(every["gaps"], "length")[:1]
    said = re.fullmatch(rf"The 1 longest; the other {gaps.count - 1:,} add up to (\S+) (\S+)\. ", gaps.note)
    assert said
    assert float(said[1]) * {"ms": 1e6, "µs": 1e3}[said[2]] == pytest.approx(
        sum(column(every["gaps"], "length")[1:]), rel=0.01
    )
    assert all("; the other" in table.note for table in few.values() if table.count > 1)


def test_kernels_of_several_gpus_are_one_row() -> None:
    stats = rows(
        "kernel_stats",
        rank=[0, 1, 0],
        device=0,
        name=["gemm", "gemm", "ncclKernel"],
        count=[2, 3, 1],
        total=[30, 60, 10],
        longest=[20, 25, 10],
        family=["matmul", "matmul", "communication"],
        **{"class": ["compute", "compute", "communication"]},
    )
    result = job_result(2)
    table = tables_of(result, Sample(kernel_stats=stats))["kernels"]
    assert [(c.title, c.values[0]) for c in table.columns] == [
        ("Kernel", "gemm"), ("family", FAMILIES["matmul"]), ("GPUs", 2), ("count", 5), ("total", 90), ("mean", 18), ("longest", 25),
        ("share", round(90 / 2e9, 6)),
    ]  # fmt: skip
    assert table.colours == ["compute", "exposed-communication"]


def test_collectives_and_gpus_are_those_of_the_result() -> None:
    found = {table.id: table for table in build_tables(job_result(4), None, None)}
    collectives, gpus = found["collectives"], found["gpus"]
    assert column(collectives, "exposed") == [239 * MS, 8 * MS]
    assert column(collectives, "bandwidth") == [171.021, None]
    assert column(collectives, "waiting") == [288 * MS, None]
    payload = {one["title"]: one for one in collectives.payload()["columns"]}
    assert payload["bus bandwidth"]["atLeast"] == [1] and payload["transfer"]["unit"] == "µs"
    assert column(gpus, "GPU") == [f"rank {n}" for n in range(4)]
    told = build_tables(job_result(2), None, None, gpu_names=["a.json", "b.json"])
    assert column(told[-1], "GPU") == ["a.json", "b.json"]
    assert column(gpus, "compute")[2] == 0.9 and column(gpus, "median step")[1] == 44 * MS + 1


def test_collectives_that_the_result_does_not_list_are_counted() -> None:
    result = job_result(4)
    assert result.job
    result = replace(result, job=replace(result.job, collectives_left=38, collectives_left_exposed_ns=7 * MS))
    whole, cut = (build_tables(result, None, None, most=most)[0] for most in (1000, 1))
    assert (whole.rows, whole.count) == (2, 40) and plain_table(whole).left == 38
    assert whole.note == "The 2 with the most exposed time; the other 38 add up to 7 ms. "
    assert cut.note == "The 1 with the most exposed time; the other 39 add up to 15 ms. "
    page = render_html(result, None).decode()
    assert whole.note in page and 'aria-selected="true">Collectives <span class="dim">40</span>' in page


def test_of_part_of_the_ranks_it_is_said() -> None:
    stats = rows("operator_stats", rank=0, name=["aten::mm"], category="operator", count=1, total=9, self=9, self_calls=0,
                 gpu_time=0, self_gpu_time=0, shapes_count=0, distinct_shapes=0)  # fmt: skip
    source = Sample(operator_stats=stats)
    found = build_tables(job_result(4), source, build_timeline(source, str, []), "2 of 4 ranks: 0, 1")
    assert next(table for table in found if table.id == "operators").note.endswith("For 2 of 4 ranks: 0, 1.")


def test_sizes_that_are_not_all_known_are_lower_bounds() -> None:
    table = rows("copies", rank=0, device=0, copy_kind="htod", src_memory="pinned", dst_memory="device",
                 bytes=[100, None], start_ns=[0, 10], end_ns=[5, 20], exposed=[5, 10])  # fmt: skip
    (copies,) = [one for one in tables_of(job_result(1), Sample(copies=table)).values() if one.id == "copies"]
    sizes = [column for column in copies.columns if column.kind == "bytes"]
    assert [(column.title, column.values, column.at_least) for column in sizes] == [
        ("size", [100], [True]),
        ("largest", [100], [True]),
    ]


def test_long_names_are_whole_and_shown_short() -> None:
    name = "void at::native::f<" + "x" * 5000 + ">(int)"
    stats = rows("kernel_stats", rank=0, device=0, name=[name], count=1, total=5, longest=5, **{"class": "compute"})
    cell = tables_of(job_result(1), Sample(kernel_stats=stats))["kernels"].columns[0]
    assert cell.values[0] == name and cell.short and cell.short[0] and len(cell.short[0]) <= 90


def with_host_tables() -> tuple[Result, Sample]:
    result, tables = sample()
    # Names that mean harm, one that a spreadsheet would run, and enough rows to show them in parts.
    names = [HOSTILE, FORMULA, "void at::native::hidden<int>(char)", *(f"aten::op{n}" for n in range(200))]
    tables.tables["operator_stats"] = rows(
        "operator_stats", rank=0, name=names, category="operator", count=[n + 1 for n in range(203)],
        total=[2_000 * (n + 1) for n in range(203)], self=[1_000 * (n + 1) for n in range(203)], self_calls=0, gpu_time=0,
        self_gpu_time=0, shapes=[SHAPES] * 203, shapes_count=1, distinct_shapes=2,
    )  # fmt: skip
    return result, tables


def test_the_page_carries_the_values_exactly() -> None:
    page = render_html(*with_host_tables()).decode()
    found = re.search(r'id="tables-data">([^<]*)<', page)
    assert found
    data = {table["id"]: table for table in json.loads(gzip.decompress(base64.b64decode(found[1])))}
    own = next(one for one in data["operators"]["columns"] if one["title"] == "own time")
    assert own["values"] == [1_000 * n for n in range(203, 0, -1)] and (own["unit"], own["raw"]) == ("µs", "ns")
    assert render_html(*with_host_tables()).decode() == page


@pytest.fixture(scope="module")
def tables_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("tables") / "report.html"
    path.write_bytes(render_html(*with_host_tables()))
    yield path.as_uri()


@pytest.fixture
def operators(empty_tab: Page, tables_path: str) -> Page:
    """The page at its table of operators, which a link opened."""
    open_page(empty_tab, f"{tables_path}#operators")
    wait_until(empty_tab, "document.querySelectorAll('#operators tbody tr').length > 0")
    return empty_tab


def cells(tab: Page, at: int, panel: str = "operators") -> list[str]:
    return tab.locator(f"#{panel} tbody tr > :nth-child({at})").all_inner_texts()


def heading(tab: Page, title: str) -> Any:
    return tab.locator("#operators thead button", has_text=re.compile(rf"^{title}"))


class TestInABrowser:
    pytestmark = IN_BROWSER

    def test_only_tables_that_are_opened_are_built(self, tab: Page, tables_path: str) -> None:
        open_page(tab, tables_path)
        wait_until(tab, "document.querySelectorAll('#kernels tbody tr').length > 0")
        assert tab.locator(".panel table").count() == 1
        tab.click("#tab-operators")
        assert tab.locator(".panel table").count() == 2

    def test_a_jump_to_what_lies_below_the_tables_stays_there(self, tab: Page, tables_path: str) -> None:
        open_page(tab, tables_path)
        wait_until(tab, "document.querySelectorAll('#kernels tbody tr').length > 0")
        tab.click('nav a[href="#rules"]')
        tab.wait_for_timeout(300)
        assert tab.locator("#rules h2").bounding_box()["y"] < 900  # type: ignore[index]

    def test_a_column_sorts_both_ways(self, operators: Page) -> None:
        assert cells(operators, 4)[:2] == ["203.00", "202.00"] and len(cells(operators, 4)) == 25
        calls = operators.locator("#operators thead th", has_text="calls").first
        calls.locator("button").click()
        assert cells(operators, 3)[:2] == ["203", "202"] and calls.get_attribute("aria-sort") == "descending"
        calls.locator("button").click()
        assert cells(operators, 3)[:2] == ["1", "2"] and calls.get_attribute("aria-sort") == "ascending"
        heading(operators, "Operator").click()
        assert [text for text in cells(operators, 1) if text.startswith("aten")][:3] == [
            "aten::op0",
            "aten::op1",
            "aten::op2",
        ]
        assert operators.locator("#operators [aria-sort]").count() == 1

    def test_more_rows_on_demand(self, operators: Page) -> None:
        assert "25 rows of 203" in operators.inner_text("#operators .more")
        operators.get_by_role("button", name="Show 100 more").click()
        assert len(cells(operators, 1)) == 125
        operators.get_by_role("button", name="Show all").click()
        assert len(cells(operators, 1)) == 203 and operators.locator("#operators .more button:visible").count() == 0

    def test_the_filter_searches_whole_names(self, operators: Page) -> None:
        operators.fill("#operators input", "AT::native")
        assert cells(operators, 1) == ["hidden<int>"]
        assert operators.input_value("#operators input") and operators.inner_text("#operators output") == "1 row of 203"
        operators.fill("#operators input", "nothing like it")
        assert cells(operators, 1) == [] and operators.inner_text("#operators output") == "0 rows of 203"

    def test_csv_has_all_filtered_rows_exactly_and_no_formula(self, browser: Browser, tables_path: str) -> None:
        context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
        tab = context.new_page()
        tab.goto(f"{tables_path}#operators")
        wait_until(tab, "document.querySelectorAll('#operators tbody tr').length > 0")
        tab.click("text=Copy as CSV >> visible=true")
        wait_until(tab, "document.querySelector('#operators output').value.includes('copied')")
        text = tab.evaluate("navigator.clipboard.readText()")
        context.close()
        found = list(csv.reader(io.StringIO(text)))
        assert found[0][:5] == ["Operator", "kind", "calls", "own time (ns)", "in GPU calls (ns)"]
        assert len(found) == 204 and found[1][3] == "203000"
        names = [line[0] for line in found]
        assert HOSTILE in names and f"'{FORMULA}" in names and FORMULA not in names
        assert found[1][-1] == f"{SHAPES} and 1 other"

    def test_csv_says_which_figures_are_lower_bounds(self, operators: Page) -> None:
        """In a column of its own, so that figures stay figures; and whatever a name begins with, no spreadsheet runs it."""
        names = [*("=1+1", " +1", "\t-1", '"@x"', "＝x", "a-b"), "void f<" + "x" * 9000 + ">"]
        rates = [1.5, 2.5, None, 3, 4, 5, 6]
        text = operators.evaluate(
            """([names, values]) => new TableData({id: "t", title: "T", order: 0, columns: [
              {title: "name", kind: "text", values: names}, {title: "rate", kind: "rate", raw: "GB/s", values, atLeast: [1, 2]},
            ]}).csv()""",
            [names, rates],
        )
        head, *lines = csv.reader(io.StringIO(text))
        assert head == ["name", "rate (GB/s)", "rate is"]
        assert [line[0] for line in lines] == [*(f"'{name}" for name in names[:5]), *names[5:]]
        assert [line[1:] for line in lines][:4] == [["1.5", "exact"], ["2.5", "at least"], ["", ""], ["3", "exact"]]

    def test_by_keyboard_alone(self, operators: Page) -> None:
        operators.focus("#tab-operators")
        operators.keyboard.press("ArrowLeft")
        assert operators.evaluate("document.activeElement.id") == "tab-kernels" and operators.is_visible("#kernels")
        operators.keyboard.press("ArrowRight")
        assert operators.is_visible("#operators tbody") and not operators.is_visible("#kernels")
        heading(operators, "calls").focus()
        assert "How often it ran" in operators.inner_text("#operators .about")
        operators.keyboard.press("Enter")
        assert cells(operators, 3)[0] == "203"

    def test_whole_names_by_focus_and_by_click(self, operators: Page) -> None:
        operators.fill("#operators input", "hidden")
        name = operators.locator("#operators tbody th .long")
        operators.locator("#operators thead button").last.focus()
        operators.keyboard.press("Tab")
        assert name.inner_text() == "void at::native::hidden<int>(char)"
        operators.keyboard.press("Tab")
        assert name.inner_text() == "hidden<int>"
        name.click()
        assert (
            name.inner_text() == "void at::native::hidden<int>(char)" and name.get_attribute("aria-expanded") == "true"
        )

    def test_hostile_names_are_text(self, operators: Page) -> None:
        operators.get_by_role("button", name="Show all").click()
        assert HOSTILE in operators.inner_text("#operators")
        assert operators.locator("#operators img").count() == 0
        operators.click("#tab-gaps")
        assert HOSTILE_TOO.replace("\u2028", "")[:20] in operators.inner_text("#gaps")

    def test_an_idle_stretch_is_shown_on_the_timeline(self, operators: Page) -> None:
        operators.click("#tab-gaps")
        button = operators.locator("#gaps .show-range").first
        start, end = (float(button.get_attribute(f"data-{name}") or "nan") for name in ("from", "to"))
        assert end - start == 8_000_000 + 137 * 3
        button.click()
        operators.wait_for_timeout(300)
        low, high = view(operators)
        assert low <= start and end <= high and high - low < 4 * (end - start)

    def test_a_phone_scrolls_tables_in_their_own_box(self, operators: Page) -> None:
        operators.set_viewport_size({"width": 390, "height": 844})
        for panel in ("operators", "gaps", "kernels"):
            operators.click(f"#tab-{panel}")
            assert operators.evaluate("document.documentElement.scrollWidth") <= 390
        assert operators.evaluate(
            "(box => box.scrollWidth > box.clientWidth)(document.querySelector('#kernels .scroll'))"
        )

    def test_paper_has_the_first_rows_of_every_table(self, operators: Page) -> None:
        operators.get_by_role("button", name="Show all").click()
        operators.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert len(cells(operators, 1)) == 25
        panels = operators.locator(".panel")
        assert all(panels.nth(at).locator("tbody tr").count() for at in range(panels.count()))
        operators.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert len(cells(operators, 1)) == 203 and not operators.is_visible("#kernels")

    def test_without_scripts_it_is_said(self, browser: Browser, tables_path: str) -> None:
        context = browser.new_context(java_script_enabled=False)
        tab = context.new_page()
        tab.goto(tables_path)
        said = tab.inner_text("#tables")
        assert "need scripts to be allowed" in said and "more rows are not printed here" in said
        context.close()
