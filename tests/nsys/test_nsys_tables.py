"""What the importer makes of each table, on small exports."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from nsys_export import Collected, Tables, global_id, kernel, make_export, memcpy, nvtx, process_id, read, runtime

from traceanalyzer.ingest.formats.nsys.sqlite.database import BATCH_ROWS
from traceanalyzer.ingest.rows.steps import find_steps, step_marks

GPU = "CUPTI_ACTIVITY_KIND_KERNEL"
COPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
API = "CUPTI_ACTIVITY_KIND_RUNTIME"
MEMORY_KINDS = ["PAGEABLE", "PINNED", "DEVICE", "ARRAY", "MANAGED", "DEVICE_STATIC", "MANAGED_STATIC", "UNKNOWN"]


@pytest.fixture
def export(tmp_path: Path) -> Any:
    def make(tables: Tables, **options: Any) -> Collected:
        return read(make_export(tmp_path / "e.sqlite", tables, **options))

    return make


def test_a_kernel_keeps_everything(export: Any) -> None:
    (row,) = export({GPU: [kernel(graphNodeId=(5 << 32) + 3)], API: [runtime()]}).table("gpu_ops").to_pylist()
    assert row == {
        "process": process_id(7),
        "start_ns": 1000,
        "end_ns": 2000,
        "device": 0,
        "context": 1,
        "stream": 7,
        "kind": "kernel",
        "name": "void f<int>(int)",
        "class": "compute",
        "correlation": 1,
        "external_id": None,
        "graph_id": 5,
        "graph_node_id": (5 << 32) + 3,
        "bytes": None,
        "copy_kind": None,
        "src_memory": None,
        "migration_cause": None,
        "dst_memory": None,
        "grid": [4, 4, 4],
        "block": [128, 128, 128],
        "registers": 32,
        "shared_memory": 64,
        "occupancy": None,
        "quarantined": False,
    }


def test_negative_global_ids(export: Any) -> None:
    call = runtime() | {"globalTid": global_id(7, 8, hw=200)}
    assert call["globalTid"] < 0
    sink = export({GPU: [kernel(globalPid=global_id(7, hw=200))], API: [call]})
    assert sink.column("gpu_ops", "process") == sink.column("api_calls", "process") == [process_id(7, hw=200)]
    assert sink.column("api_calls", "thread") == [8]
    assert sink.column("processes", "pid") == [7]


def test_the_same_pid_in_two_vms_is_two_processes(export: Any) -> None:
    sink = export({GPU: [kernel(), kernel(globalPid=global_id(7, vm=2))]})
    assert sink.column("processes", "process") == [process_id(7), process_id(7, vm=2)]


def test_correlations_collide_between_processes(export: Any) -> None:
    kernels = [kernel(5000, 6000, pid=8), kernel(1000, 2000, pid=7)]
    sink = export({GPU: kernels, API: [runtime(pid=8, tid=1), runtime(pid=7, tid=2)]})
    assert sink.column("gpu_ops", "process") == sink.column("api_calls", "process") == [process_id(7), process_id(8)]
    assert sink.column("gpu_ops", "correlation") == [1, 1]
    assert "TRC006" in sink.codes
    assert sink.facts.process is None


@pytest.mark.parametrize("from_file", [True, False])
def test_memory_kinds(export: Any, from_file: bool) -> None:
    copies = [memcpy(3000 + i, 3001 + i, src=i, dst=1) for i in range(8)] + [memcpy(4000, 4001, src=99, dst=None)]
    tables: Tables = {COPY: copies}
    if from_file:
        # Numbers of this file alone, so that a default cannot pass for them.
        shift = {i: (i + 3) % 8 for i in range(8)}
        tables["ENUM_CUDA_MEM_KIND"] = [
            {"id": shift[i], "name": f"CUDA_MEMOPR_MEMORY_KIND_{name}", "label": name.title()}
            for i, name in enumerate(MEMORY_KINDS)
        ]
        for row in copies[:8]:
            row["srcKind"] = shift[row["srcKind"]]
    expected = ["pageable", "pinned", "device", "array", "managed", "device", "managed", "unknown", "unknown"]
    assert export(tables).column("gpu_ops", "src_memory") == expected


def test_copy_kinds_and_names(export: Any) -> None:
    kinds = [1, 2, 3, 8, 9, 10, 11, 12, 13, 0, 77]
    sink = export({COPY: [memcpy(3000 + i, 3001 + i, kind, 1, 2) for i, kind in enumerate(kinds)]})
    expected = "htod dtoh htod dtod htoh ptop uvm_htod uvm_dtoh uvm_dtod other other"
    assert " ".join(sink.column("gpu_ops", "copy_kind")) == expected
    names = sink.column("gpu_ops", "name")
    assert names[0] == "Memcpy HtoD (Pinned -> Device)"
    assert names[6] == "Memcpy Unified HtoD (Pinned -> Device)"
    assert names[-1] == "Memcpy (Pinned -> Device)"


def test_copy_kinds_from_the_file(export: Any) -> None:
    kinds = [{"id": 1, "name": "CUDA_MEMCPY_KIND_DTOH", "label": "Device-to-Host"}, {"id": 4, "name": "", "label": "x"}]
    sink = export({COPY: [memcpy(kind=1), memcpy(5000, 6000, kind=4)], "ENUM_CUDA_MEMCPY_OPER": kinds})
    assert sink.column("gpu_ops", "copy_kind") == ["dtoh", "other"]


def test_migrations_have_no_launch(export: Any) -> None:
    sink = export({COPY: [memcpy(kind=11, src=7, dst=7, correlationId=0, contextId=0, streamId=0)]})
    assert sink.column("gpu_ops", "correlation") == [None]
    assert sink.column("gpu_ops", "copy_kind") == ["uvm_htod"]
    assert sink.column("gpu_ops", "name") == ["Memcpy Unified HtoD"]


def test_reduced_columns(export: Any) -> None:
    four = {"start": 10, "end": 20, "bytes": 64, "copyKind": 2}
    sink = export({COPY: [four], GPU: [{"start": 30, "end": 40, "shortName": 2}]})
    rows = sink.table("gpu_ops").to_pylist()
    assert [(row["kind"], row["device"], row["process"]) for row in rows] == [("memcpy", 0, 0), ("kernel", 0, 0)]
    assert (rows[0]["copy_kind"], rows[0]["src_memory"], rows[0]["stream"]) == ("dtoh", "unknown", None)
    assert (rows[1]["name"], rows[1]["grid"], rows[1]["registers"], rows[1]["shared_memory"]) == ("f", None, None, None)


def test_rows_without_a_process_belong_to_the_only_one(export: Any) -> None:
    sink = export({COPY: [{"start": 10, "end": 20, "bytes": 64, "copyKind": 2}], API: [runtime()]})
    assert sink.column("gpu_ops", "process") == [process_id(7)]


def test_columns_that_start_with_nulls(export: Any) -> None:
    count = BATCH_ROWS + 100
    rows = [runtime(i, i + 1) | {"correlationId": None} for i in range(count)]
    rows[-1] |= {"correlationId": 4294967295}
    rows[-2] |= {"correlationId": "not a number"}
    ranges = [nvtx(i, i + 1, text_id=5) for i in range(count)]
    ranges[-1]["text"] = "late"
    sink = export({API: rows, "NVTX_EVENTS": ranges})
    assert sink.column("api_calls", "correlation")[-3:] == [None, None, 4294967295]
    assert sink.column("host_ranges", "name")[-2:] == ["step_0", "late"]
    assert len(sink.batches["api_calls"]) == 2


def test_missing_strings(export: Any) -> None:
    sink = export(
        {GPU: [kernel(), kernel(3000, 4000, demangledName=77), kernel(5000, 6000, demangledName=77, shortName=78)]}
    )
    assert sink.column("gpu_ops", "name") == ["void f<int>(int)", "f", "#77"]


def test_no_string_table(export: Any) -> None:
    sink = export({GPU: [kernel()], API: [runtime()], "NVTX_EVENTS": [nvtx(1, 2, text_id=5)]}, strings=None)
    assert sink.column("gpu_ops", "name") == ["#1"]
    assert sink.column("api_calls", "name") == ["#3"]
    assert sink.column("host_ranges", "name") == ["#5"]


def test_text_that_is_not_utf8(export: Any, tmp_path: Path) -> None:
    path = make_export(tmp_path / "broken.sqlite", {"NVTX_EVENTS": [nvtx(1, 2, "x")], GPU: [kernel()]})
    connection = sqlite3.connect(path)
    connection.execute("update NVTX_EVENTS set text = cast(x'61ff' as text)")
    connection.execute("update StringIds set value = cast(x'66ff' as text) where id = 1")
    connection.commit()
    connection.close()
    sink = read(path)
    assert sink.column("host_ranges", "name") == ["a\N{REPLACEMENT CHARACTER}"]
    assert sink.column("gpu_ops", "name") == ["f\N{REPLACEMENT CHARACTER}"]


def test_api_calls(export: Any) -> None:
    sink = export({API: [runtime(900, 950, name=4), runtime(500, 600) | {"eventClass": 1}, runtime(700, None)]})
    assert sink.column("api_calls", "start_ns") == [500, 700, 900]
    assert sink.column("api_calls", "end_ns") == [600, 950, 950]
    assert sink.column("api_calls", "name") == ["cudaLaunchKernel", "cudaLaunchKernel", "cudaMemcpyAsync"]
    assert sink.column("api_calls", "raw_name")[0] == "cudaLaunchKernel_v7000"
    assert sink.column("api_calls", "class") == ["launch", "launch", "copy"]


def test_nvtx_ranges(export: Any) -> None:
    events = [
        nvtx(10, 20, "text"),
        nvtx(30, 40, None, 5),
        nvtx(50, None, "open"),
        nvtx(60, 70, "start/end", kind=60),
        nvtx(65, None, "mark", kind=34),
        nvtx(-9000, None, "NCCL", kind=75),
        nvtx(80, 90),
        nvtx(90, 85, "reversed"),
    ]
    sink = export({"NVTX_EVENTS": events, GPU: [kernel(100, 200)], API: [runtime(-9, -8)]})
    names = ["text", "step_0", "open", "start/end", "(unnamed range)", "reversed"]
    assert sink.column("host_ranges", "name") == names
    assert sink.column("host_ranges", "end_ns") == [20, 40, 200, 70, 90, 90]
    assert set(sink.column("host_ranges", "category")) == {"nvtx"}
    assert [(code, count) for code, _, _, count, _ in sink.messages] == [("TRC007", 1), ("TRC001", 1)]


def test_nvtx_without_a_text_id_column(export: Any) -> None:
    events = [{key: value for key, value in nvtx(10, 20, "text").items() if key != "textId"}]
    assert export({"NVTX_EVENTS": events}).column("host_ranges", "name") == ["text"]


def test_operators_of_emit_nvtx_group_by_name(export: Any) -> None:
    add = "aten::add, seq = 72, op_id = {}, sizes = [[3, 2], []], input_op_ids = [(1,0), (0,-1)]"
    texts = [add.format(1), add.format(2), "aten::mul, op_id = 3", "optimizer, op_id = 4", "plain, op_id"]
    sink = export({"NVTX_EVENTS": [nvtx(10 * i, 10 * i + 5, text) for i, text in enumerate(texts)]})
    assert sink.column("host_ranges", "name") == ["aten::add", "aten::add", "aten::mul", "optimizer", "plain, op_id"]
    assert sink.column("host_ranges", "category") == ["operator", "operator", "operator", "nvtx", "nvtx"]
    assert sink.column("host_ranges", "sequence") == [72, 72, None, None, None]
    assert sink.column("host_ranges", "shapes") == ["[[3, 2], []]"] * 2 + [None] * 3


def test_steps(export: Any) -> None:
    events = [nvtx(100 * i, 100 * i + 90, f"iteration {i}") for i in range(4)]
    events += [nvtx(100 * i + 10, 100 * i + 40, "train_step") for i in range(4)]
    events += [nvtx(100 * i + 50, 100 * i + 51, f"step_{i}") for i in range(4)]
    events += [nvtx(0, 400, "step 0/1"), nvtx(5, 6, "load_batch")]
    sink = export({"NVTX_EVENTS": events})
    steps = find_steps(step_marks(sink.table("host_ranges")))
    assert steps["name"].to_pylist() == [f"iteration {i}" for i in range(4)]
    assert steps["index"].to_pylist() == [0, 1, 2, 3]
    assert set(steps["method"].to_pylist()) == {"nvtx"}


def test_markers_of_another_thread_are_no_steps(export: Any) -> None:
    events = [nvtx(100 * i, 100 * i + 90, f"step {i}") for i in range(3)]
    events += [nvtx(100 * i + 5, 100 * i + 60, f"batch {i}") | {"globalTid": global_id(7, 9)} for i in range(3)]
    steps = find_steps(step_marks(export({"NVTX_EVENTS": events}).table("host_ranges")))
    assert steps["name"].to_pylist() == ["step 0", "step 1", "step 2"]


def test_one_marker_is_one_step(export: Any) -> None:
    steps = find_steps(step_marks(export({"NVTX_EVENTS": [nvtx(0, 90, "step_0")]}).table("host_ranges")))
    assert steps["name"].to_pylist() == ["step_0"]


def test_graph_level_capture(export: Any) -> None:
    graph = {"start": 10, "end": 90, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 5}
    graph |= {"globalPid": global_id(7), "graphId": 3, "graphExecId": 4}
    graphs = [graph, graph | {"start": 100, "end": 190}]
    sink = export({"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": graphs, GPU: [kernel()], API: [runtime()]})
    rows = sink.table("gpu_ops").to_pylist()
    assert [(r["kind"], r["name"], r["graph_id"]) for r in rows[:2]] == [("graph", "CUDA graph 3", 3)] * 2
    assert ("TRC008", 2) in [(code, count) for code, _, _, count, _ in sink.messages]
    assert "--cuda-graph-trace=node" in sink.messages[0][2]


def test_devices_are_physical(export: Any) -> None:
    device = [
        {"gpuId": 3, "cudaId": 0, "pid": 7},
        {"gpuId": 2, "cudaId": 0, "pid": 8},
        {"gpuId": 5, "cudaId": 1, "pid": 8},
    ]
    gpus = [{"id": i, "name": f"GPU {i}", "smCount": 0 if i == 4 else 100, "uuid": None} for i in range(6)]
    kernels = [
        kernel(pid=7),
        kernel(pid=8),
        kernel(3000, 4000, pid=8, deviceId=1),
        kernel(5000, 6000, pid=8, deviceId=6),
    ]
    sink = export({GPU: kernels, "TARGET_INFO_CUDA_DEVICE": device, "TARGET_INFO_GPU": gpus})
    assert sink.column("gpu_ops", "device") == [2, 3, 5, 6]
    assert sink.column("gpu_ops", "process") == [process_id(pid) for pid in (8, 7, 8, 8)]
    assert sink.column("devices", "device") == [0, 1, 2, 3, 5]
    assert sink.column("devices", "sm_count") == [100] * 5


def test_impossible_times_are_set_aside(export: Any) -> None:
    week = 7 * 86_400 * 10**9
    sound = [kernel(start, start + 1000) for start in (-500, 1000, 3000, 5000)]  # the first began before the recording
    impossible = [
        kernel(3000, 2900),
        kernel(0, 0),
        kernel(4000, 4000 + 2 * week),
        kernel(5000, None),
        kernel(-3 * week, -3 * week + 5),
        kernel(9 * week, 9 * week + 5),
    ]
    sink = export({GPU: sound + impossible, API: [runtime()]})
    rows = sorted(sink.table("gpu_ops").to_pylist(), key=lambda row: row["start_ns"])
    assert [row["start_ns"] for row in rows if not row["quarantined"]] == [-500, 1000, 3000, 5000]
    assert sink.said() == [("TRC007", "low", 6)]


def test_memory_events(export: Any) -> None:
    rows = [
        {"start": 10, "globalPid": global_id(7), "deviceId": 0, "address": -4096, "bytes": 64, "memKind": 2},
        {"start": 20, "globalPid": global_id(7), "deviceId": 0, "address": -4096, "bytes": 64, "memKind": 2},
        {"start": 30, "globalPid": global_id(7), "deviceId": 0, "address": 8192, "bytes": 32, "memKind": 1},
    ]
    rows = [row | {"memoryOperationType": int(i == 1)} for i, row in enumerate(rows)]
    sink = export({"CUDA_GPU_MEMORY_USAGE_EVENTS": rows})
    assert sink.column("memory_events", "bytes") == [64, -64]
    assert sink.column("memory_events", "address") == [2**64 - 4096] * 2


@pytest.mark.parametrize("filler", [0, BATCH_ROWS])
def test_counters(export: Any, filler: int) -> None:
    kind = (1 << 48) + (1 << 32) + 2
    names = ["GPC Clock Frequency [MHz]", "SMs Active [Throughput %]"]
    metrics = [{"typeId": kind, "metricId": i, "metricName": name} for i, name in enumerate(names)]
    values = [1_980_000_000, 87.5, 5]
    samples = [{"timestamp": i, "typeId": kind, "metricId": i, "value": value} for i, value in enumerate(values)]
    samples = [{"timestamp": -5, "typeId": kind - 1, "metricId": 0, "value": 1}] * filler + samples
    sink = export({"GPU_METRICS": samples, "TARGET_INFO_GPU_METRICS": metrics})
    assert sink.column("counters", "device") == [1] * filler + [2, 2, 2]
    assert sink.column("counters", "metric")[filler:] == [*names, "metric 2"]
    assert sink.column("counters", "unit")[filler:] == ["MHz", "Throughput %", None]
    assert sink.column("counters", "value") == [1.0] * filler + [1980.0, 87.5, 5.0]


def test_overheads(export: Any) -> None:
    own = {"start": 10, "end": 20, "globalTid": global_id(7), "nameId": 1}
    cupti = {"start": 30, "end": 40, "globalTid": global_id(7, 8), "overheadKind": 1 << 16}
    sink = export({"PROFILER_OVERHEAD": [own], "CUPTI_ACTIVITY_KIND_OVERHEAD": [cupti]})
    assert sink.column("overheads", "name") == ["void f<int>(int)", "CUPTI: buffer flush"]
    assert sink.column("overheads", "thread") == [None, 8]


def test_only_processes_and_threads_with_events(export: Any) -> None:
    tables: Tables = {
        API: [runtime()],
        "PROCESSES": [{"globalPid": global_id(pid), "pid": pid, "name": f"p{pid}"} for pid in range(5, 100)],
        "ThreadNames": [
            {"nameId": 9, "priority": 10, "globalTid": global_id(7, 8)},
            {"nameId": 5, "priority": 20, "globalTid": global_id(7, 8)},
            {"nameId": 9, "priority": 10, "globalTid": global_id(50, 50)},
        ],
        "TARGET_INFO_SYSTEM_ENV": [{"name": "Hostname", "value": "node1"}],
    }
    sink = export(tables)
    assert sink.table("processes").to_pylist() == [{"process": process_id(7), "pid": 7, "name": "p7", "host": "node1"}]
    assert sink.table("threads").to_pylist() == [{"process": process_id(7), "thread": 8, "name": "step_0"}]
