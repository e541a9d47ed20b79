"""Which stretch of a recording is judged, and what is said of the rest."""

from __future__ import annotations

import pytest

import traceanalyzer as ta
from tests.nsys.nsys_export import STRINGS, facts, global_id, kernel, make_export, nvtx, runtime
from tests.support.kineto import KinetoTrace
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.model.markers import bounds_window
from traceanalyzer.render.text import render_text


def catalog(trace: KinetoTrace, tmp_path) -> Catalog:
    return Catalog(ta.load(trace.write(tmp_path / "trace.json")))


def window(trace: KinetoTrace, tmp_path) -> tuple[int, int]:
    (row,) = catalog(trace, tmp_path).table("windows").to_pylist()
    return row["start_ns"], row["end_ns"]


def late_first_kernel() -> KinetoTrace:
    """Two steps of 100 us, each with 60 us of preprocessing before its only kernel; the last one ends with 20 us of logging."""
    trace = KinetoTrace()
    for start in (0, 100):
        trace.range("preprocess", start, start + 60, category="user_annotation")
        trace.op(start + 62, start + 80, launch=(start + 60, start + 61))
    return trace.range("log", 180, 200, category="user_annotation")


def test_a_window_reaches_over_the_marked_steps(tmp_path):
    trace = late_first_kernel().range("ProfilerStep#7", 0, 100).range("ProfilerStep#8", 100, 200)
    tables = catalog(trace, tmp_path)
    (row,) = tables.table("ledger").to_pylist()
    assert (row["duration"], row["compute"], row["idle"], row["max_gap"]) == (200_000, 36_000, 164_000, 82_000)
    lead, *_, tail = tables.table("gaps").to_pylist()
    assert (lead["start_ns"], lead["cause"], lead["place"]) == (0, "host_work", "preprocess")
    assert lead["previous_op_name"] is None
    assert (tail["end_ns"], tail["cause"], tail["place"]) == (200_000, "host_work", "log")
    assert (tail["next_op_name"], tail["next_op_duration"], tail["launching_operator"], tail["api_name"]) == (None,) * 4


def test_marked_steps_last_from_mark_to_mark(tmp_path):
    trace = late_first_kernel().range("ProfilerStep#7", 0, 100).range("ProfilerStep#8", 100, 200)
    rows = catalog(trace, tmp_path).table("step_stats").to_pylist()
    assert [(r["start_ns"], r["end_ns"], r["done_ns"], r["complete"]) for r in rows] == [
        (0, 100_000, 80_000, True),
        (100_000, 200_000, 180_000, True),
    ]


def test_a_step_on_a_gpu_that_runs_behind_lasts_to_the_end_of_its_work(tmp_path):
    trace = KinetoTrace().op(-20, 30).op(30, 130, launch=(5, 6)).op(130, 230, launch=(15, 16))
    rows = catalog(trace.range("ProfilerStep#1", 0, 10).range("ProfilerStep#2", 10, 20), tmp_path).table("step_stats")
    assert [(r["start_ns"], r["end_ns"]) for r in rows.to_pylist()] == [(30_000, 130_000), (130_000, 230_000)]


def test_steps_found_by_repetition_move_no_border(tmp_path):
    assert window(late_first_kernel(), tmp_path) == (62_000, 180_000)


@pytest.mark.parametrize("name", ["iteration {}", "batch {}"])
def test_rounds_that_may_be_of_a_solver_or_a_loader_move_no_border(name, tmp_path):
    trace = late_first_kernel().range(name.format(0), 0, 100).range(name.format(1), 100, 200)
    assert window(trace, tmp_path) == (62_000, 180_000)


def test_a_last_step_whose_kernels_were_not_recorded_moves_no_border(tmp_path):
    trace = late_first_kernel().range("ProfilerStep#7", 0, 100).range("ProfilerStep#8", 100, 195)
    assert window(trace.call("cudaLaunchKernel", 190, 191, correlation=99), tmp_path) == (0, 180_000)


def test_a_step_that_was_open_when_the_recording_ended_moves_no_border(tmp_path):
    rows = [nvtx(0, 100_000, "step_0"), nvtx(100_000, None, "step_1"), nvtx(180_000, 200_000, "log")]
    tables = {"CUPTI_ACTIVITY_KIND_KERNEL": [kernel(62_000, 80_000), kernel(162_000, 180_000, correlation=2)]}
    path = make_export(tmp_path / "export.sqlite", tables | {"NVTX_EVENTS": rows})
    (row,) = Catalog(ta.load(path)).table("windows").to_pylist()
    assert (row["start_ns"], row["end_ns"]) == (0, 180_000)


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("ProfilerStep#5", True),
        ("step_0", True),
        ("train_step 12", True),
        ("train step_num=3", True),
        ("step", False),
        ("iteration 3", False),
        ("batch 3", False),
        ("forward", False),
    ],
)
def test_names_that_bound_a_window(name, bounds):
    assert bounds_window(name) == bounds


def recorded(tmp_path, tables, names=None, start=9_000_000_000):
    """A recording of 10 s of which the GPU works for the last one but 1 ms, analysed."""
    tables = {
        "ANALYSIS_DETAILS": [{"globalVid": 1, "duration": 10_000_000_000, "startTime": 0, "stopTime": 10_000_000_000}],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            kernel(start + n * 99_900_000, start + (n + 1) * 99_900_000, correlation=n + 1) for n in range(10)
        ],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            runtime(start + n * 99_900_000 - 20_000, start + n * 99_900_000 - 10_000, correlation=n + 1)
            for n in range(10)
        ],
        **tables,
    }
    return ta.analyze(ta.load(make_export(tmp_path / "export.sqlite", tables, {**STRINGS, **(names or {})})))


def test_what_lies_outside_of_the_window_is_in_the_result_and_said_first(tmp_path):
    setup = {"NVTX_EVENTS": [nvtx(0, 8_000_000_000, "read_mesh"), nvtx(8_000_000_000, 8_900_000_000, "partition")]}
    result = recorded(tmp_path, setup)
    (recording,) = result.recordings
    assert (recording.start_ns, recording.end_ns) == (0, 10_000_000_000)
    assert (recording.before_ns, recording.after_ns, recording.bounded) == (9_000_000_000, 1_000_000, False)
    assert [(work.side, work.name, work.ns) for work in recording.did][:2] == [
        ("before", "read_mesh", 8_000_000_000),
        ("before", "partition", 900_000_000),
    ]
    assert "REC001" in {finding.rule for finding in result.findings}
    assert result.verdict.headline.startswith(
        "9 s of the 10 s recorded lie before the first GPU work, 8 s of it in read_mesh; in the 999 ms judged, GPU 0 "
    )
    assert "length  10 s, of which 9 s before the first GPU work (read_mesh 8 s, partition 900 ms)" in render_text(
        result
    )


def test_a_capture_range_bounds_the_recording(tmp_path):
    result = recorded(tmp_path, facts("META_DATA_CAPTURE", START_TRIGGER="CudaProfilerApi"))
    assert result.recordings[0].bounded
    assert "REC001" not in {finding.rule for finding in result.findings}
    assert "recorded lie" not in result.verdict.headline


def test_the_first_call_that_takes_long_makes_the_context(tmp_path):
    calls = [runtime(100, 2_000_000_000, correlation=99), runtime(8_990_000_000, 8_990_010_000)]
    first = {"CUPTI_ACTIVITY_KIND_RUNTIME": calls}
    (recording,) = recorded(tmp_path, first).recordings
    assert [(work.name, work.ns) for work in recording.did] == [("creating the CUDA context", 1_999_999_900)]


@pytest.mark.parametrize(
    ("before", "told"), [("cuModuleGetLoadingMode", True), ("cudaGetDeviceCount_v3020", True), ("cuMemAlloc_v2", False)]
)
def test_what_needs_no_context_may_come_before_the_call_that_makes_it(tmp_path, before, told):
    calls = [runtime(100, 1_100, name=60, correlation=98), runtime(2_000, 250_002_000, name=61, correlation=99)]
    calls.append(runtime(8_990_000_000, 8_990_010_000))
    names = {60: before, 61: "cudaEventCreate_v3020"}
    result = recorded(tmp_path, {"CUPTI_ACTIVITY_KIND_RUNTIME": calls}, names)
    assert ("creating the CUDA context" in {work.name for work in result.recordings[0].did}) is told


def test_the_profilers_own_start_is_named(tmp_path):
    overhead = {"start": 1_000, "end": 3_000_001_000, "globalTid": global_id(7, 8), "nameId": 60}
    result = recorded(tmp_path, {"PROFILER_OVERHEAD": [overhead]}, {60: "CUDA profiling initialization"})
    assert [(work.name, work.ns) for work in result.recordings[0].did] == [("starting the profiler", 3_000_000_000)]


def test_a_kineto_recording_is_the_profilers_own_span(tmp_path):
    trace = KinetoTrace().op(100, 200, launch=(90, 95))
    trace.add(cat="Trace", name="PyTorch Profiler (0)", pid="Spans", tid="PyTorch Profiler", ts=10, dur=390)
    # The profiler stops only then.
    trace.events.append({"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 9_000})
    (recording,) = ta.analyze(ta.load(trace.write(tmp_path / "trace.json"))).recordings
    assert (recording.start_ns, recording.end_ns) == (10_000, 400_000)
    assert (recording.before_ns, recording.after_ns) == (90_000, 200_000)
