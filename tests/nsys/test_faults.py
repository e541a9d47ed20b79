"""Cells, rows and pages that are not as Nsight Systems writes them: what can be read is read, the rest is counted."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from nsys_export import Row, Tables, global_id, kernel, make_export, memcpy, nvtx, process_id, read, runtime

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.formats.nsys.sqlite.database import BATCH_ROWS

GPU = "CUPTI_ACTIVITY_KIND_KERNEL"
COPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
API = "CUPTI_ACTIVITY_KIND_RUNTIME"
MANY = BATCH_ROWS + 100
BIG = (1 << 53) + 1  # no float has it


def calls(count: int, **last: Any) -> list[Row]:
    """API calls one after the other, the last of them with other cells."""
    rows = [runtime(10 * i, 10 * i + 5, correlation=BIG + i) for i in range(count)]
    rows[-1] |= last
    return rows


@pytest.mark.parametrize("count", [3, MANY])
@pytest.mark.parametrize(
    ("cell", "value", "misfits"), [("12", 12, 0), ("twelve", None, 1), (b"12", None, 1), (12.5, 12, 0)]
)
def test_a_cell_of_another_type(tmp_path: Path, count: int, cell: Any, value: int | None, misfits: int) -> None:
    rows = calls(count)
    path = make_export(tmp_path / "e.sqlite", {API: rows, GPU: [kernel()]}, typed=False)
    connection = sqlite3.connect(path)
    connection.execute(f"update {API} set correlationId = ? where rowid = ?", (cell, count))
    connection.commit()
    connection.close()
    sink = read(path)
    assert sink.column("api_calls", "start_ns") == [10 * i for i in range(count)]
    assert sink.column("api_calls", "correlation") == [*(BIG + i for i in range(count - 1)), value]
    assert [(c, n, e) for c, _, _, n, e in sink.messages] == ([("TRC001", 1, f"{API}, correlation")] if misfits else [])


def test_an_index_changes_nothing(tmp_path: Path) -> None:
    rows = [runtime(10 * ((i * 7919) % MANY), 10 * MANY) | {"nameId": 3} for i in range(MANY)]
    path = make_export(tmp_path / "e.sqlite", {API: rows, GPU: [kernel()]}, typed=False)
    connection = sqlite3.connect(path)
    columns = "start, end, globalTid, correlationId, nameId"
    connection.execute(f"create index i on {API} ({columns})")
    connection.execute(f"update {API} set correlationId = 'x' where rowid = ?", (MANY,))
    connection.commit()
    connection.close()
    sink = read(path)
    assert sink.column("api_calls", "start_ns") == [10 * i for i in range(MANY)]
    assert sink.table("api_calls")["correlation"].null_count == 1


def test_rows_without_a_start(tmp_path: Path) -> None:
    tables: Tables = {GPU: [kernel(), kernel(None)], API: [runtime(), runtime(None)], COPY: [memcpy(None)]}
    sink = read(make_export(tmp_path / "e.sqlite", tables))
    assert (sink.table("gpu_ops").num_rows, sink.table("api_calls").num_rows) == (1, 1)
    assert sink.said() == [("TRC001", "low", 3)]


def test_an_operation_without_an_end(tmp_path: Path) -> None:
    tables: Tables = {GPU: [kernel(), kernel(5000, None)], API: [runtime()]}
    sink = read(make_export(tmp_path / "e.sqlite", tables))
    assert sink.column("gpu_ops", "end_ns") == [2000, 5000]
    assert sink.column("gpu_ops", "quarantined") == [False, True]
    assert sink.table("health").to_pylist()[0]["example"] == "void f<int>(int)"
    assert sink.said() == [("TRC007", "low", 1)]


def test_numbers_that_do_not_fit(tmp_path: Path) -> None:
    odd = kernel(5000, 6000, registersPerThread=1 << 40, gridX=-1, blockY=1 << 31, deviceId=(1 << 32) + 1)
    sink = read(make_export(tmp_path / "e.sqlite", {GPU: [kernel(), odd], API: [runtime()]}))
    assert sink.column("gpu_ops", "device") == [0, None]
    assert sink.column("gpu_ops", "registers") == [32, None]
    assert sink.column("gpu_ops", "grid") == [[4, 4, 4], None]
    assert sink.column("gpu_ops", "block") == [[128, 128, 128], None]
    assert [(c, s, n) for c, s, _, n, _ in sink.messages] == [("TRC001", "low", 4), ("TRC001", "low", 1)]


def test_operations_without_device_numbers(tmp_path: Path) -> None:
    bare = {name: value for name, value in kernel().items() if name != "deviceId"}
    sink = read(make_export(tmp_path / "e.sqlite", {GPU: [bare], API: [runtime()]}))
    assert sink.column("gpu_ops", "device") == [0]
    assert sink.said() == [("TRC001", "low", 1)]


def test_ids_that_stand_for_two_strings(tmp_path: Path) -> None:
    path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()], API: [runtime()]})
    connection = sqlite3.connect(path)
    connection.execute("insert into StringIds values (1, 'other')")
    connection.commit()
    connection.close()
    sink = read(path)
    assert sink.column("gpu_ops", "name") == ["void f<int>(int)"]
    assert sink.said() == [("TRC001", "low", 1)]


def test_ranges_that_another_thread_ends(tmp_path: Path) -> None:
    here, there = global_id(7, 8), global_id(7, 9)
    kinds = [(60, here), (60, there), (60, None), (71, there), (59, there)]
    events = [nvtx(10 * i, 10 * i + 5, "r", kind=kind) | {"endGlobalTid": end} for i, (kind, end) in enumerate(kinds)]
    sink = read(make_export(tmp_path / "e.sqlite", {"NVTX_EVENTS": events}))
    threads = dict(zip(sink.column("host_ranges", "start_ns"), sink.column("host_ranges", "thread"), strict=True))
    assert threads == {0: 8, 10: None, 20: 8, 30: None, 40: 8}


def test_ranges_and_calls_still_open_end_with_the_last_record(tmp_path: Path) -> None:
    events = [
        nvtx(10, 20, "a"),
        nvtx(30, None, "b"),
        nvtx(40, None, "late start", kind=60),
        nvtx(7, None, "m", kind=34),
    ]
    tables: Tables = {"NVTX_EVENTS": events, API: [runtime(), runtime(700, None)], GPU: [kernel(800, 900)]}
    sink = read(make_export(tmp_path / "e.sqlite", tables))
    assert sink.column("host_ranges", "end_ns") == [20, 900, 900]
    assert sink.column("api_calls", "end_ns") == [600, 900]
    assert sink.said() == [("TRC001", "info", 3)]


def test_graph_ids(tmp_path: Path) -> None:
    ids = [(None, None), (0, 0), (3, None), (None, (5 << 32) + 1), (3, (5 << 32) + 1), (0, 5)]
    rows = [kernel(i, i + 1, graphId=graph, graphNodeId=node) for i, (graph, node) in enumerate(ids, 1000)]
    sink = read(make_export(tmp_path / "e.sqlite", {GPU: rows, API: [runtime()]}))
    assert sink.column("gpu_ops", "graph_id") == [None, None, 3, 5, 3, None]
    assert sink.column("gpu_ops", "graph_node_id") == [None, None, None, (5 << 32) + 1, (5 << 32) + 1, 5]


def test_gpus_by_uuid(tmp_path: Path) -> None:
    devices = [{"gpuId": None, "cudaId": i, "pid": 7, "uuid": f"u{i}"} for i in range(2)]
    gpus = [{"id": 4 - i, "name": "H100", "smCount": 132, "uuid": f"u{i}"} for i in range(2)]
    tables: Tables = {"TARGET_INFO_CUDA_DEVICE": devices, "TARGET_INFO_GPU": gpus, API: [runtime()]}
    sink = read(make_export(tmp_path / "e.sqlite", tables | {GPU: [kernel(), kernel(deviceId=1)]}))
    assert sink.column("gpu_ops", "device") == [0, 1]
    assert sink.column("devices", "uuid") == ["u0", "u1"]


def gpus(*rows: tuple[int, int | None, str]) -> Tables:
    """GPUs by (the profiler's number, the machine's CUDA number, place on the PCI bus)."""
    named = [{"id": gpu, "cuDevice": cuda, "busLocation": bus, "name": f"at {bus}"} for gpu, cuda, bus in rows]
    return {"TARGET_INFO_GPU": [row | {"smCount": 132} for row in named]}


def seen(**by_pid: tuple[int, ...]) -> Tables:
    """The profiler's numbers of the GPUs that each process sees, in the process's own order."""
    rows = [
        {"gpuId": gpu, "cudaId": cuda, "pid": int(pid[1:])}
        for pid, own in by_pid.items()
        for cuda, gpu in enumerate(own)
    ]
    return {"TARGET_INFO_CUDA_DEVICE": rows}


CROSSED = gpus((0, 1, "0000:41:00.0"), (1, 0, "0000:01:00.0"))
UNNUMBERED = gpus((0, None, "0000:41:00.0"), (1, None, "0000:01:00.0"))


@pytest.mark.parametrize(
    ("tables", "shown"),
    [
        # As the one process calls them, of which it may see only some.
        (CROSSED | seen(p7=(1, 0)), {7: 0}),
        (CROSSED | seen(p7=(0,)), {7: 0}),
        # Each of two processes has a GPU 0 of its own: as the machine numbers them, else in the order of the bus.
        (CROSSED | seen(p7=(0,), p8=(1,)), {7: 1, 8: 0}),
        (UNNUMBERED | seen(p7=(0,), p8=(1,)), {7: 1, 8: 0}),
        # Nothing tells: the profiler's numbers.
        (seen(p7=(4,), p8=(2,)), {7: 4, 8: 2}),
        # The process's own numbers are CUDA's already.
        (CROSSED, {7: 0}),
    ],
)
def test_gpus_are_numbered_as_cuda_numbers_them(tmp_path: Path, tables: Tables, shown: dict[int, int]) -> None:
    found = {GPU: [kernel(pid=pid) for pid in shown], API: [runtime(pid=pid) for pid in shown]}
    sink = read(make_export(tmp_path / "e.sqlite", tables | found))
    ops = sink.table("gpu_ops").select(["process", "device"]).to_pylist()
    assert {op["process"] & 0xFFFFFF: op["device"] for op in ops} == shown


def test_a_display_adapter_takes_no_number_of_a_gpu(tmp_path: Path) -> None:
    adapter = {"id": 0, "name": "display adapter", "smCount": 0}
    tables = gpus((1, 0, "0000:01:00.0")) | seen(p7=(1,)) | {GPU: [kernel()], API: [runtime()]}
    tables["TARGET_INFO_GPU"] = [adapter, *tables["TARGET_INFO_GPU"]]
    assert read(make_export(tmp_path / "e.sqlite", tables)).column("devices", "name") == ["at 0000:01:00.0"]


def test_everything_said_of_a_gpu_has_its_number(tmp_path: Path) -> None:
    metrics = {
        "GPU_METRICS": [{"timestamp": 1, "typeId": 0x5000001, "metricId": 1, "value": 9}],
        "TARGET_INFO_GPU_METRICS": [{"typeId": 0x5000001, "metricId": 1, "metricName": "SMs Active"}],
    }
    tables = CROSSED | seen(p7=(1, 0)) | metrics | {GPU: [kernel()], API: [runtime()]}
    sink = read(make_export(tmp_path / "e.sqlite", tables))
    assert sink.column("devices", "name") == ["at 0000:01:00.0", "at 0000:41:00.0"]
    assert sink.column("counters", "device") == [0]


def test_operations_without_a_process_take_that_of_their_launch(tmp_path: Path) -> None:
    bare = {"start": 10, "end": 20, "bytes": 64, "copyKind": 2}
    copies = [
        bare | {"correlationId": 1},
        bare | {"correlationId": 2, "start": 12},
        bare | {"correlationId": 9, "start": 14},
    ]
    launches = [runtime(pid=7, correlation=1), runtime(pid=8, correlation=2)]
    sink = read(make_export(tmp_path / "e.sqlite", {COPY: copies, API: launches}))
    assert sink.column("gpu_ops", "process") == [process_id(7), process_id(8), None]


@pytest.mark.parametrize("where", [0.4, 0.6, 0.9])
def test_a_page_of_zeros_is_refused(tmp_path: Path, where: float) -> None:
    path = make_export(tmp_path / "e.sqlite", {API: calls(20_000), GPU: [kernel()]})
    data = bytearray(path.read_bytes())
    page = 4096 * int(len(data) * where / 4096)
    data[page : page + 4096] = bytes(4096)
    path.write_bytes(data)
    with pytest.raises(InputError, match="nsys export again"):
        read(path)


def test_gpus_with_numbers_that_no_column_holds(tmp_path: Path) -> None:
    gpus = [{"id": 0, "name": "H100", "smCount": 2**32}, {"id": 2**31, "name": "none", "smCount": 132}]
    sink = read(make_export(tmp_path / "e.sqlite", {GPU: [kernel()], API: [runtime()], "TARGET_INFO_GPU": gpus}))
    assert [(row["device"], row["name"], row["sm_count"]) for row in sink.table("devices").to_pylist()] == [
        (0, "H100", None)
    ]
    assert sink.said() == [("TRC001", "low", 2)]


def test_ranges_of_an_export_without_a_column_of_ends(tmp_path: Path) -> None:
    ranges = [{name: value for name, value in nvtx(n, n + 1, "r").items() if name != "end"} for n in (100, 200)]
    sink = read(make_export(tmp_path / "e.sqlite", {GPU: [kernel()], API: [runtime()], "NVTX_EVENTS": ranges}))
    found = sink.table("host_ranges").to_pylist()
    assert [(row["start_ns"], row["end_ns"]) for row in found] == [(100, 2000), (200, 2000)]
    assert sink.said() == [("TRC001", "info", 2)]


def test_times_that_no_clock_shows(tmp_path: Path) -> None:
    """They are cut so that every difference of two fits into 64 bits, and calls that last for years then take no time."""
    farthest = 2**62 - 1
    rows = [runtime(-(2**63), 5), runtime(10, 2**63 - 1), runtime(20, 30)]
    sink = read(make_export(tmp_path / "e.sqlite", {GPU: [kernel()], API: rows}))
    found = sink.table("api_calls").to_pylist()
    assert [(row["start_ns"], row["end_ns"]) for row in found] == [(-farthest, -farthest), (10, 10), (20, 30)]
    assert sink.said() == [("TRC007", "low", 2), ("TRC007", "low", 2)]


def test_a_metric_that_no_float_holds(tmp_path: Path) -> None:
    metrics = [{"timestamp": 1, "typeId": 0, "metricId": 0, "value": -(2**63)}]
    sink = read(make_export(tmp_path / "e.sqlite", {GPU: [kernel()], API: [runtime()], "GPU_METRICS": metrics}))
    assert sink.column("counters", "value") == [-(2.0**63)]
