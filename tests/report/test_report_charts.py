"""The charts' figures: plotly knows them, they say what the tables say, names in them are literal, and none has too many marks."""

from __future__ import annotations

import html
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from report_sample import HOSTILE, Sample, rows, sample

from tests.support.job_results import MS, job_result
from traceanalyzer.analysis import ReportTables, analyze_parts, load, parts_of
from traceanalyzer.config import Config
from traceanalyzer.model.tables import Tables
from traceanalyzer.report.charts import Charts, build_charts
from traceanalyzer.report.charts.figure import MOST_MARKS, Chart, categories, log_axis, size_axis, text, wrap_name
from traceanalyzer.report.charts.late import arrivals
from traceanalyzer.report.charts.memory import highest
from traceanalyzer.report.charts.sizes import Points, cells
from traceanalyzer.report.charts.use import bin_coverage
from traceanalyzer.result.document import Result

FIXTURES = Path(__file__).parents[1] / "fixtures"
MARKUP = "<b>%{x}</b> $x$ &amp; <a href='javascript:alert(1)'>n</a>"


def built(result: Result, tables: Tables | None) -> Charts:
    return build_charts(result, tables, lambda rank: f"rank {rank}", lambda _: None, {})


def analysed(path: Path) -> tuple[Result, Tables]:
    parts = parts_of(load(path))
    found = analyze_parts(parts)
    return found.result, ReportTables(parts, Config(), found.tables)


@pytest.fixture(scope="module")
def loader() -> tuple[Result, Tables]:
    return analysed(FIXTURES / "kineto" / "dataloader.slow.pt.trace.json.gz")


@pytest.fixture(scope="module")
def job() -> tuple[Result, Tables]:
    return analysed(FIXTURES / "jobs" / "ddp_loader_late.slow")


def chart(charts: Charts, id: str) -> Chart:
    return next(one for one in charts.every if one.id == id)


def marks(trace: dict[str, Any]) -> int:
    """Elements of the page that a trace becomes."""
    if trace["type"] == "heatmap" or trace.get("mode") == "lines":
        return 1
    return sum(value is not None for value in trace["y"])


def test_plotly_knows_every_figure_and_none_has_too_many_marks(
    loader: tuple[Result, Tables], job: tuple[Result, Tables]
) -> None:
    pageable = analysed(FIXTURES / "pairs" / "mem_full.slow.json.xz")
    ids = set()
    for result, tables in (loader, job, pageable):
        for one in built(result, tables).every:
            ids.add(one.id)
            for view in one.views.values():
                go.Figure(view.data, view.layout)
                assert view.caption.endswith(".") and sum(map(marks, view.data)) <= MOST_MARKS
    assert ids == {"steps", "use", "kinds", "top-kernels", "memory", "copies", "collectives", "arrivals", "late-bars",
                   "step-heat", "wait-heat"}  # fmt: skip


def test_the_lines_of_a_step_add_up_to_it(loader: tuple[Result, Tables]) -> None:
    view = chart(built(*loader), "steps").first
    steps = loader[1].table("step_ledger").to_pylist()
    stacks = [np.array(trace["y"], dtype=float) for trace in view.data if trace["type"] == "bar"]
    durations = [(step["end_ns"] - step["start_ns"]) / MS for step in steps]
    assert np.nansum(stacks, axis=0) == pytest.approx(durations, abs=0.001)
    assert view.data[0]["x"] == ["3", "4", "5", "6"]
    assert "ProfilerStep#4, takes 337 ms, 88% of it idle (input)" in view.caption


def test_shares_over_time_add_up_to_the_ledger(loader: tuple[Result, Tables]) -> None:
    view = chart(built(*loader), "use").first
    (device,) = loader[0].devices
    shares = {trace["meta"]: np.array(trace["y"][:-1]) for trace in view.data}
    assert sum(shares.values()) == pytest.approx(np.full(200, 100), abs=0.1)
    assert shares["compute"].mean() == pytest.approx(100 * device.compute_ns / device.window_ns, abs=0.01)
    idle = device.idle_by_cause_ns["input"] / device.window_ns
    assert shares["idle.input"].mean() == pytest.approx(100 * idle, abs=0.01)
    assert "85%, is idle (input)" in view.caption


def test_kinds_of_work_add_up_to_all_operations(loader: tuple[Result, Tables]) -> None:
    charts = built(*loader)
    ops = loader[1].table("gpu_ops")
    whole = np.sum(ops["end_ns"].to_numpy() - ops["start_ns"].to_numpy()) / MS
    bars = chart(charts, "kinds").first.data[0]
    assert sum(bars["x"]) == pytest.approx(whole, abs=0.01) and bars["x"] == sorted(bars["x"], reverse=True)
    top = chart(charts, "top-kernels").first.data[0]
    stats = loader[1].table("kernel_stats")
    assert top["x"][0] == pytest.approx(max(stats["total"].to_pylist()) / MS, abs=1e-4)
    assert len(top["x"]) == 12 and "of 73 kernels" in chart(charts, "top-kernels").first.caption


def test_copies_are_where_their_size_and_bandwidth_say(loader: tuple[Result, Tables]) -> None:
    view = chart(built(*loader), "copies").first
    copies = loader[1].table("copies").to_pylist()
    largest = max(copies, key=lambda one: one["bandwidth"])
    (trace,) = view.data
    at = int(np.argmax(trace["y"]))
    assert trace["x"][at] == largest["bytes"]
    assert trace["y"][at] == pytest.approx(largest["bandwidth"] / 1e9, rel=0.03)
    assert trace["name"] == "from host to GPU (8)" and "8 copies move 73.5 MiB" in view.caption


def test_memory_is_drawn_at_its_peak(loader: tuple[Result, Tables]) -> None:
    rng = np.random.default_rng(3)
    allocated = rng.integers(1 << 20, 1 << 29, 5_000)
    times = np.sort(rng.integers(0, 10**9, 5_000))
    events = rows("memory_events", rank=0, process=1, device=0, time_ns=times, bytes=1, total_allocated=allocated,
                  total_reserved=np.full(5_000, 1 << 30))  # fmt: skip
    devices = rows("devices", rank=0, device=[0], name="GPU", memory=2 << 30)
    base = sample()[1].tables
    view = chart(built(sample()[0], Sample(**{**base, "memory_events": events, "devices": devices})), "memory").first
    names = [trace["name"] for trace in view.data]
    assert names == ["in use by the program", "reserved by its allocator", "memory of the device"]
    assert max(view.data[0]["y"]) * (1 << 30) == pytest.approx(allocated.max(), rel=1e-3)
    assert len(view.data[0]["x"]) <= 500 and "25% of the device's 2 GiB" in view.caption


def test_late_ranks_are_as_late_as_the_result_says(job: tuple[Result, Tables]) -> None:
    result, tables = job
    assert result.job
    late = result.job.late_ranks[0]
    view = chart(built(*job), "arrivals").first
    assert view.data[0]["name"] == f"rank {late.rank}"
    assert max(view.data[0]["y"]) == pytest.approx(late.max_late_ns / MS, abs=0.001)
    bars = chart(built(*job), "late-bars").first.data[0]
    assert bars["x"][0] == pytest.approx(late.waited_ns / MS, abs=0.001)
    found = arrivals(tables.table("communication"), {})
    assert found and (np.diff(found.began) >= 0).all() and found.late.min() == 0


def test_many_gpus_share_a_line_of_the_latest() -> None:
    count, gpus = 30, 20
    each = {"rank": np.repeat(np.arange(gpus), count), "instance": np.tile(np.arange(count), gpus)}
    wait = np.where(each["rank"] == 7, 0, 1000 + each["rank"])
    start = each["instance"] * 10**6
    parts = rows("communication", device=0, start_ns=start, end_ns=start + 2000, wait=wait, **each)
    view = chart(built(job_result(gpus, late=7), Sample(communication=parts)), "arrivals").first
    assert view.data[0]["name"] == "rank 7" and len(view.data) == 6
    assert view.data[-1]["name"] == "the latest of 15 others"
    assert view.data[0]["y"] == [pytest.approx(1.019)] * count  # µs


def test_who_is_last_is_said_as_in_the_table_of_late_ranks(job: tuple[Result, Tables]) -> None:
    result, _ = job
    assert result.job
    late = replace(result.job.late_ranks[0], late_count=17, collective_count=60, max_late_ns=74_000)
    told = replace(result, job=replace(result.job, late_ranks=[late]))
    view = chart(built(told, job[1]), "arrivals").first
    said = f"Rank {late.rank} causes most waiting: it comes last to 17 of 60 collectives, at most 74 µs after the first GPU."
    assert view.caption.startswith(said)
    nobody = replace(result, job=replace(result.job, late_ranks=[]))
    assert chart(built(nobody, job[1]), "arrivals").first.caption.startswith("No GPU comes so late")


def test_memory_that_cannot_be_told_is_no_chart() -> None:
    """A release of what was never allocated, and two allocators side by side: neither has one level."""
    base, both = sample()[1].tables, {"rank": 0, "device": 0, "time_ns": [0, 1, 2]}
    known = rows("memory_events", process=1, address=[1, 2, 1], bytes=[5, 6, -5], **both)
    unknown = rows("memory_events", process=1, address=[1, 2, 3], bytes=[5, 6, -4], **both)
    two = rows("memory_events", process=[1, 2, 1], bytes=1, total_allocated=[5, 9, 6], **both)
    view = chart(built(sample()[0], Sample(**{**base, "memory_events": known})), "memory").first
    assert view.data[0]["y"] == [5, 11, 6] and view.caption.startswith("At most 11 B is given out by the driver")
    for events in (unknown, two):
        assert "memory" not in {one.id for one in built(sample()[0], Sample(**{**base, "memory_events": events})).every}


def test_memory_of_a_single_moment_is_no_chart() -> None:
    base = sample()[1].tables
    events = rows("memory_events", rank=0, process=1, device=0, time_ns=0, bytes=[5, 6, 7])
    charts = built(sample()[0], Sample(**{**base, "memory_events": events}))
    assert "memory" not in {one.id for one in charts.every}


def test_copies_of_part_of_the_ranks_are_said_to_be(loader: tuple[Result, Tables]) -> None:
    charts = build_charts(*loader, str, lambda _: None, {}, None, "8 of 64 ranks: 0-7")
    assert chart(charts, "copies").first.caption.startswith("For 8 of 64 ranks: 0-7. ")


def test_waiting_that_nobody_told_is_not_said_to_be_taken_out() -> None:
    parts = {"device": 0, "start_ns": 0, "end_ns": 9, "bytes": 1 << 20, "bus_bandwidth": 10.0, "kind": "all-reduce"}
    one, both = (
        chart(built(job_result(2), Sample(communication=rows("communication", rank=[0, 1], transfer=known, **parts))),
              "collectives").first.caption
        for known in ([None, 4], [None, None])
    )  # fmt: skip
    assert "waiting for late ranks taken out; how long 1 of 2 parts waited is not known" in one
    assert "taken out;" not in both and "is not taken out, so it is a lower bound" in both


def test_hostile_names_are_literal_in_every_text() -> None:
    assert html.unescape(text(MARKUP)) == MARKUP and "<" not in text(MARKUP)
    assert html.unescape(wrap_name(MARKUP * 9, 40).replace("<br>", "")).startswith(MARKUP)
    result, tables = sample()
    charts = built(result, tables)
    names = chart(charts, "top-kernels").first.data[1]["text"]
    assert any(name.startswith("&lt;/script&gt;") for name in names)
    job = job_result(3)
    assert job.job
    steps = replace(job.job.steps, names=[f"{HOSTILE}{n}x" for n in range(3)])
    late = [replace(job.job.late_ranks[0], why=HOSTILE, doing=HOSTILE, line=HOSTILE)]
    charts = built(replace(job, job=replace(job.job, steps=steps, late_ranks=late)), None)
    for one in charts.every:
        for view in one.views.values():
            for trace in view.data:
                for key in ("x", "y", "text", "hovertext", "name"):
                    for value in np.ravel(trace.get(key, [])).tolist():
                        assert "<" not in str(value).replace("<br>", "")


def test_equal_names_stay_apart_on_an_axis() -> None:
    assert categories(["GPU 0", "GPU 0", "GPU 1"]) == ["GPU 0 (1)", "GPU 0 (2)", "GPU 1"]


def test_time_is_binned_exactly() -> None:
    start, end = np.array([0, 10, 35]), np.array([5, 30, 40])
    assert bin_coverage(start, end - start, np.array([0.0, 10, 20, 30, 40]), np.arange(len(start))).tolist() == [
        5,
        10,
        10,
        5,
    ]
    assert bin_coverage(start[:0], start[:0], np.array([0.0, 1]), np.arange(0)).tolist() == [0]


def test_folding_keeps_the_highest_and_the_count() -> None:
    time, values = highest(np.arange(1000), np.arange(1000)[::-1].copy(), 10)
    assert len(time) == 10 and values.max() == 999 and (np.diff(time) > 0).all()
    rng = np.random.default_rng(1)
    size, bandwidth = 2 ** rng.uniform(0, 40, 50_000), 10 ** rng.uniform(-3, 3, 50_000)
    found = cells(Points(["a", "b"], rng.integers(0, 2, 50_000), size, bandwidth))
    assert len(found) <= MOST_MARKS and sum(count for *_, count in found) == 50_000


def test_axes_of_one_value_have_room() -> None:
    low, high = size_axis(1 << 20, 1 << 20)["range"]
    assert 10**low < 1 << 20 < 10**high
    axis = log_axis("", 9.9, 10.1)
    assert axis["range"][1] - axis["range"][0] >= 1 and "10" in axis["ticktext"]


def test_thousands_of_steps_share_bars_that_show_the_longest() -> None:
    count = 3_000
    length = np.where(np.arange(count) == 1234, 50, 10) * MS
    end = np.cumsum(length)
    lines = {"compute": length - MS, "idle_host_work": np.full(count, MS)}
    steps = rows("step_ledger", rank=0, device=0, index=np.arange(count), name=None, method="nvtx", start_ns=end - length,
                 end_ns=end, complete=[False] + [True] * (count - 1), typical=10 * MS, **lines)  # fmt: skip
    view = chart(built(sample()[0], Sample(step_ledger=steps)), "steps").first
    bars = [trace for trace in view.data if trace["type"] == "bar"]
    assert len(bars) == 2 and max(bars[0]["y"]) == 49 and sum(map(marks, view.data)) <= MOST_MARKS
    assert "A bar is 19 steps and shows the longest of them, of 3,000 in all." in view.caption


@pytest.mark.parametrize(
    ("method", "cut", "said", "caption"),
    [("repetition", 0, "the recording holds only its end", True), ("nvtx", 3, "the recording lacks work that it launched", False)],
)  # fmt: skip
def test_what_is_cut_off_is_said(method: str, cut: int, said: str, caption: bool) -> None:
    """A first step without a mark has no beginning; a marked one lacks what was still to run when the recording ended."""
    start, complete = np.arange(4) * MS, [n != cut for n in range(4)]
    steps = rows("step_ledger", rank=0, device=0, index=np.arange(4), name=None, method=method, start_ns=start,
                 end_ns=start + MS, complete=complete, compute=np.full(4, MS))  # fmt: skip
    view = chart(built(sample()[0], Sample(step_ledger=steps)), "steps").first
    told = [text for trace in view.data for text in trace.get("hovertext", [])]
    assert [n for n, text in enumerate(told) if text.endswith(f"cut off: {said}")] == [cut]
    assert ("Of the first step the recording holds only the end" in view.caption) == caption


def test_without_data_there_is_no_chart() -> None:
    charts = built(sample()[0], Sample())
    assert charts.every == [] and charts.code == ""
