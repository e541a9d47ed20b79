"""What is said of exports that lack something: work that was not recorded must not look like an idle GPU."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from nsys_export import Row, Tables, facts, global_id, kernel, make_export, nvtx, process_id, read, runtime

from traceanalyzer import load
from traceanalyzer.analysis import analyze

GPU = "CUPTI_ACTIVITY_KIND_KERNEL"
API = "CUPTI_ACTIVITY_KIND_RUNTIME"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
TRACED, UNTRACED = (facts("META_DATA_CAPTURE", **{"PROCESS_0:COLLECT_CUDA_TRACE": said}) for said in ("true", "false"))
SAMPLES: Tables = {"COMPOSITE_EVENTS": [{"id": i, "start": i} for i in range(3)]}
RANGES: Tables = {"NVTX_EVENTS": [nvtx(10, 20, "a"), nvtx(30, 40, "b")]}
QUIET = runtime(name=6)  # cudaDeviceSynchronize


def exported(**values: str) -> Tables:
    return facts("META_DATA_EXPORT", **{f"EXPORT_PARAM_{name}": value for name, value in values.items()})


@pytest.mark.parametrize(
    ("tables", "code", "says", "example"),
    [
        (RANGES | exported(TABLES_TO_EXPORT="NVTX*,StringIds"), "TRC009", "left out at export", "2 NVTX ranges"),
        (RANGES | SAMPLES | UNTRACED, "TRC002", "CUDA was not traced", "2 NVTX ranges, CPU samples"),
        (
            SAMPLES | facts("META_DATA_CAPTURE", CAPTURE_EVENT_TYPE="OsRt"),
            "TRC002",
            "CUDA was not traced",
            "CPU samples",
        ),
        (
            {API: [QUIET]} | TRACED | exported(TIMES_TO_EXPORT="1s-2s"),
            "TRC002",
            "part of the recording",
            "1 CUDA API calls",
        ),
        ({API: [QUIET]}, "TRC002", "nothing was launched", "1 CUDA API calls"),
        (TRACED, "TRC002", "nothing was launched", "no events"),
        (RANGES, "TRC002", "does not say whether CUDA was traced", "2 NVTX ranges"),
        ({GPU: [], API: []}, "TRC002", "does not say", "no events"),
    ],
)
def test_why_there_is_no_gpu_work(tmp_path: Path, tables: Tables, code: str, says: str, example: str) -> None:
    sink = read(make_export(tmp_path / "e.sqlite", tables))
    ((found, message, shown),) = [
        (c, text, shown) for c, severity, text, _, shown in sink.messages if severity == "high"
    ]
    assert (found, shown) == (code, f"the file holds {example}")
    assert says in message


def test_launches_without_gpu_work_are_left_to_the_health_of_all_formats(tmp_path: Path) -> None:
    sink = read(make_export(tmp_path / "e.sqlite", {API: [runtime()]}))
    assert sink.said() == []
    assert sink.column("api_calls", "class") == ["launch"]


@pytest.mark.parametrize(
    ("tables", "says"), [({}, "no CUDA API calls"), (exported(TABLES_TO_EXPORT=f"{GPU}"), "left out")]
)
def test_gpu_work_without_api_calls(tmp_path: Path, tables: Tables, says: str) -> None:
    sink = read(make_export(tmp_path / "e.sqlite", tables | {GPU: [kernel()]}))
    assert [(code, severity) for code, severity, _, _, _ in sink.messages][-1] == ("TRC009", "low")
    assert says in sink.messages[-1][2]


def graph_launches(count: int) -> list[Row]:
    return [runtime(500 + i, 501 + i, correlation=10 + i, name=7) for i in range(count)]


def test_graphs_that_left_no_trace(tmp_path: Path) -> None:
    sink = read(make_export(tmp_path / "e.sqlite", {GPU: [kernel()], API: [runtime(), *graph_launches(3)]}))
    assert sink.said() == [("TRC008", "high", 3)]


def test_graphs_in_exports_that_do_not_tell_them_apart(tmp_path: Path) -> None:
    old = {name: value for name, value in kernel().items() if name != "graphNodeId"}
    sink = read(make_export(tmp_path / "e.sqlite", {GPU: [old], API: graph_launches(3)}))
    assert sink.said() == []


def test_graphs_recorded_node_by_node(tmp_path: Path) -> None:
    sink = read(make_export(tmp_path / "e.sqlite", {GPU: [kernel(graphNodeId=5 << 32)], API: graph_launches(3)}))
    assert sink.said() == []


def test_a_table_without_a_needed_column(tmp_path: Path) -> None:
    lame = [{name: value for name, value in kernel().items() if name != "end"}]
    sink = read(make_export(tmp_path / "e.sqlite", {GPU: lame, API: [runtime()], "GPU_METRICS": [{"typeId": 1}]}))
    assert [(severity, example) for _, severity, _, _, example in sink.messages] == [
        ("high", f"{GPU} without end"),
        ("low", "GPU_METRICS without timestamp, value"),
    ]


def test_processes_on_one_gpu(tmp_path: Path) -> None:
    tables: Tables = {GPU: [kernel(pid=7), kernel(pid=8)], API: [runtime(pid=7), runtime(pid=8)]}
    tables["TARGET_INFO_GPU"] = [{"id": 0, "name": "H100", "smCount": 132}]
    sink = read(make_export(tmp_path / "e.sqlite", tables))
    assert [(c, s, n) for c, s, _, n, _ in sink.messages] == [("TRC006", "info", 1), ("TRC006", "info", 2)]
    assert "same GPU" in sink.messages[0][2]


def test_hosts_with_the_same_gpu_number(tmp_path: Path) -> None:
    ids = [global_id(7, hw=hw) for hw in (1, 200)]
    calls = [runtime() | {"globalTid": one + 8} for one in ids]
    sink = read(make_export(tmp_path / "e.sqlite", {GPU: [kernel(globalPid=one) for one in ids], API: calls}))
    assert sink.column("gpu_ops", "process") == [process_id(7, hw=1), process_id(7, hw=200)]
    assert ("TRC006", "high") in [(code, severity) for code, severity, _, _, _ in sink.messages]


def test_the_verdict_names_the_cause(tmp_path: Path) -> None:
    found = analyze(load(make_export(tmp_path / "e.sqlite", RANGES | UNTRACED)))
    assert not found.judged
    assert found.verdict.headline.startswith("Could not judge: CUDA was not traced")


def test_a_file_without_gpu_work_does_not_hide_that_of_others(tmp_path: Path) -> None:
    make_export(tmp_path / "a.sqlite", {GPU: [kernel(), kernel(5000, 6000)], API: [runtime()]})
    make_export(tmp_path / "b.sqlite", RANGES | UNTRACED)
    found = analyze(load(tmp_path))
    assert found.judged
    assert [(note.code, note.severity) for note in found.health if note.code != "TRC010"] == [("TRC002", "low")]


def test_a_part_of_the_recording(tmp_path: Path) -> None:
    tables = exported(TIMES_TO_EXPORT="1s-2s") | {GPU: [kernel()], API: [runtime()]}
    sink = read(make_export(tmp_path / "e.sqlite", tables))
    assert [(code, severity, example) for code, severity, _, _, example in sink.messages] == [
        ("TRC009", "info", "1s-2s")
    ]


def test_a_sound_export_says_nothing(tmp_path: Path) -> None:
    tables: dict[str, Any] = {GPU: [kernel()], API: [runtime()], "NVTX_EVENTS": [nvtx(1, 2, "a")]} | TRACED
    assert read(make_export(tmp_path / "e.sqlite", tables)).said() == []


ON_STREAM: Row = {"start": 1, "end": 9, "deviceId": 0, "streamId": 7}


class TestUnknownTablesOfWork:
    MESSAGE = (
        "tables of work on streams of a GPU that are not known were not read: the GPU may be busy where it looks idle"
    )

    def said(self, tmp_path: Path, tables: Tables) -> list[tuple[str, int, str | None]]:
        sink = read(make_export(tmp_path / "e.sqlite", {GPU: [kernel(100, 200)], API: [runtime()]} | tables))
        return [(severity, count, shown) for _, severity, text, count, shown in sink.messages if text == self.MESSAGE]

    def test_no_gate_passes(self, tmp_path: Path) -> None:
        tables: Tables = {"CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS": [ON_STREAM, ON_STREAM], "GPU_THING": [ON_STREAM]}
        assert self.said(tmp_path, tables) == [("medium", 3, "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS, GPU_THING")]

    @pytest.mark.parametrize("rowid", [-(2**63), 2**63 - 1])
    def test_row_numbers_do_not_tell_how_many(self, tmp_path: Path, rowid: int) -> None:
        path = make_export(tmp_path / "e.sqlite", {GPU: [kernel()], "GPU_A": [ON_STREAM], "GPU_B": [ON_STREAM]})
        with sqlite3.connect(path) as database:
            for table in ("GPU_A", "GPU_B"):
                database.execute(f"update {table} set rowid = {rowid}")
        database.close()
        counts = [(count, shown) for _, _, text, count, shown in read(path).messages if text == self.MESSAGE]
        assert counts == [(2, "GPU_A, GPU_B")]

    @pytest.mark.parametrize(
        "tables",
        [
            {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [ON_STREAM]},
            {"CUPTI_ACTIVITY_KIND_CUDA_EVENT_V2": [ON_STREAM]},
            {"CUPTI_ACTIVITY_KIND_NEW": []},
            {"OSRT_API": [{"start": 1, "end": 9, "globalTid": 5}]},
        ],
    )
    def test_waits_and_what_is_on_no_stream_are_none(self, tmp_path: Path, tables: Tables) -> None:
        assert self.said(tmp_path, tables) == []
