"""Faults that exports are known to have and that would pass for an answer: what is made of each, in exact figures."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from nsys_export import Row, Tables, facts, global_id, kernel, make_export, memcpy, nvtx, runtime

import traceanalyzer as ta
from traceanalyzer.analysis import analyze
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.report.html import render_html
from traceanalyzer.result.document import Result

GPU = "CUPTI_ACTIVITY_KIND_KERNEL"
COPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
API = "CUPTI_ACTIVITY_KIND_RUNTIME"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
SYNCS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
EVENTS = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """The tables and the result of one export."""

    def of(tables: Tables) -> tuple[Catalog, Result]:
        path = tmp_path / "e.sqlite"
        path.unlink(missing_ok=True)
        loaded = ta.load(make_export(path, tables))
        return Catalog(loaded), analyze(loaded)

    return of


def windows(result: Result) -> list[tuple[int, int, int, int]]:
    """(GPU, window, compute, idle) of each."""
    return [(d.device, d.window_ns, d.compute_ns, d.idle_ns) for d in result.devices]


def health(result: Result) -> list[tuple[str, str, int]]:
    """What health says, but for TRC010: these exports are short on purpose."""
    return [(note.code, note.severity, note.count) for note in result.health if note.code != "TRC010"]


def graph(start: int, end: int, correlation: int) -> Row:
    place = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": global_id(7), "graphId": 3, "graphExecId": 4}
    return {"start": start, "end": end, "correlationId": correlation} | place


def test_whole_graphs_are_busy(run: Any) -> None:
    """Recorded graph by graph, the kernels are hidden; without the graphs the GPU would look idle all the time."""
    launches = [runtime(500, 600, correlation=5, name=7), runtime(700, 800, correlation=6, name=7)]
    _, result = run({GRAPHS: [graph(1000, 9000, 5), graph(10_000, 19_000, 6)], API: launches})
    assert windows(result) == [(0, 18_000, 17_000, 1000)]
    assert (result.devices[0].gpu_op_count, result.devices[0].kernel_count) == (2, 0)
    assert health(result) == [("TRC008", "low", 2)]
    assert result.judged


def test_graphs_and_kernels_in_one_file(run: Any) -> None:
    """Both are work of the same GPU, and a kernel under a graph is not counted twice."""
    kernels = [kernel(8000, 10_000, correlation=1), kernel(12_000, 13_000, correlation=2)]
    launches = [runtime(500, 600, correlation=5, name=7), runtime(600, 650), runtime(650, 690, correlation=2)]
    catalog, result = run({GRAPHS: [graph(1000, 9000, 5)], GPU: kernels, API: launches})
    assert windows(result) == [(0, 12_000, 10_000, 2000)]
    assert catalog.table("launches")["queue_delay"].to_pylist() == [500, 7400, 11_350]
    assert health(result) == [("TRC008", "low", 1)]


def test_one_correlation_in_two_processes(run: Any) -> None:
    """Joined by the number alone, there are four launches and kernels begin 85 ms before theirs."""
    kernels = [kernel(5_000_000, 6_000_000, pid=7), kernel(90_000_000, 91_000_000, pid=8)]
    launches = [runtime(4_990_000, 4_991_000, pid=7), runtime(89_988_000, 89_990_000, pid=8)]
    catalog, _ = run({GPU: kernels, API: launches})
    assert catalog.table("launches")["queue_delay"].to_pylist() == [10_000, 12_000]


def test_a_driver_call_within_a_runtime_call_is_no_second_launch(run: Any) -> None:
    """The table of runtime calls holds driver calls too, with the same correlation."""
    calls = [runtime(500, 900), runtime(600, 800) | {"eventClass": 1}]
    catalog, _ = run({GPU: [kernel()], API: calls})
    assert catalog.table("launches").select(["start_ns", "end_ns"]).to_pylist() == [{"start_ns": 500, "end_ns": 900}]
    assert catalog.table("ledger")["launch_count"].to_pylist() == [1]


def sharing(**first: Any) -> Tables:
    """Two processes that each use what they call GPU 0, one after the other and then once more the first."""
    kernels = [kernel(1000, 5000), kernel(5000, 9000, pid=8), kernel(12_000, 13_000, correlation=2)]
    return {GPU: kernels, API: [runtime(), runtime(pid=8), runtime(610, 690, correlation=2)]} | first


def placed(*gpus: int) -> Tables:
    rows = [{"gpuId": gpu, "cudaId": 0, "pid": pid} for pid, gpu in zip((7, 8), gpus, strict=True)]
    return {"TARGET_INFO_CUDA_DEVICE": rows}


def listed(count: int) -> Tables:
    return {"TARGET_INFO_GPU": [{"id": n, "name": "H100", "smCount": 132} for n in range(count)]}


def test_processes_on_one_gpu_share_its_idle_time(run: Any) -> None:
    """Each alone leaves the GPU idle while the other uses it."""
    for same in (placed(2, 2), listed(1)):
        _, result = run(sharing() | same)
        assert [row[1:] for row in windows(result)] == [(12_000, 9000, 3000)]
        assert health(result) == [("TRC006", "info", 2), ("TRC006", "info", 1)]


def test_processes_on_gpus_that_each_call_0(run: Any) -> None:
    """Every process sees its own GPU as number 0; added up they would be one GPU that is hardly ever idle."""
    _, result = run(sharing() | placed(2, 3))
    assert windows(result) == [(2, 12_000, 5000, 7000), (3, 4000, 4000, 0)]
    assert health(result) == [("TRC006", "info", 2)]


def test_processes_on_gpus_that_nobody_tells_apart(run: Any) -> None:
    """Trimmed exports do not say which GPU a process used: then it is said that idle time may be hidden."""
    for unknown in ({}, listed(8)):
        _, result = run(sharing() | unknown)
        assert windows(result) == [(0, 12_000, 9000, 3000)]
        assert health(result) == [("TRC006", "info", 2), ("TRC006", "low", 1)]
        assert "does not say whether it was the same GPU" in result.health[1].message


@pytest.mark.parametrize("kind", [0, 2, 3, 4])
def test_waits_are_told_by_the_call_and_not_by_their_recorded_type(run: Any, kind: int) -> None:
    """One call has another type in each release, and records of events have the time 0; neither is time of the GPU."""
    tables: Tables = {
        GPU: [kernel(1000, 2000), kernel(105_000, 106_000, correlation=2)],
        API: [runtime(), runtime(700, 2500, correlation=9, name=6), runtime(104_000, 104_500, correlation=2)],
    }
    plain, expected = run(tables)
    sync = {"start": 0, "end": 999_000, "deviceId": 0, "streamId": 7, "correlationId": 9, "syncType": kind}
    event = {"timestamp": 0, "deviceId": 0, "eventId": 1, "eventSyncId": 2}
    sync |= {"globalPid": global_id(7), "eventId": 2**32 - 1}
    catalog, result = run(tables | {SYNCS: [sync], EVENTS: [event]})
    assert catalog.table("ledger").equals(plain.table("ledger"))
    assert health(result) == health(expected) == []
    assert result.devices[0].idle_by_cause_ns["synchronization"] == 50_500


def test_migrations_are_no_copies_to_pin(run: Any) -> None:
    """Pages of managed memory move on their own: no call asked for it, and pinned memory would not help."""

    def of(copies: list[Row], calls: list[Row]) -> set[str]:
        kernels = [kernel(1000, 2000), kernel(900_000, 901_000, correlation=2)]
        _, result = run({GPU: kernels, COPY: copies, API: [runtime(), runtime(650, 700, correlation=2), *calls]})
        assert result.devices[0].exposed_memcpy_ns == 20 * 39_000
        return {finding.rule for finding in result.findings}

    starts = range(2000, 802_000, 40_000)
    moved = [memcpy(s, s + 39_000, kind=11, src=7, dst=7, correlationId=0, bytes=2 << 20) for s in starts]
    copied = [memcpy(s, s + 39_000, correlationId=s, bytes=2 << 20) for s in starts]
    calls = [runtime(s - 1000, s - 500, correlation=s, name=4) for s in starts]
    assert "CPY002" not in of(moved, [])
    assert "CPY002" in of(copied, calls)


def test_samples_of_a_gpu_that_was_not_used(run: Any) -> None:
    """Metrics are sampled on every GPU of the machine, all the time; they are no work and no window."""
    kind = (1 << 48) + (1 << 32) + 5
    samples = [{"timestamp": n * 100_000, "typeId": kind, "metricId": 0, "value": 50} for n in range(99)]
    catalog, result = run({GPU: [kernel()], API: [runtime()], "GPU_METRICS": samples})
    assert catalog.table("counters")["device"].to_pylist() == [5] * 99
    assert windows(result) == [(0, 1000, 1000, 0)]


def test_a_kernel_at_zero(run: Any) -> None:
    """A start that was never recorded, with an end that looks sound."""
    calls = [runtime(n, n + 500, correlation=c) for c, n in enumerate((4_999_990_000, 4_999_991_000, 4_999_992_000), 1)]
    kernels = [kernel(0, 500), kernel(5 * 10**9, 5 * 10**9 + 800_000, correlation=2)]
    kernels.append(kernel(5 * 10**9 + 800_000, 5 * 10**9 + 900_000, correlation=3))
    _, result = run({GPU: kernels, API: calls})
    assert windows(result) == [(0, 900_000, 900_000, 0)]
    assert ("TRC007", "low", 1) in health(result)


def test_secrets_of_the_recording_stay_out(run: Any) -> None:
    """An export holds the environment and the command line of the recorded program, and who ran it where."""
    secrets = {"PROCESS_0:ENVIRONMENT_VARIABLE": "TOKEN=s3cret;RANK=3", "PROCESS_0:ARGV": "train.py --key s3cret"}
    tables: Tables = {
        GPU: [kernel(), kernel(9000, 9500, correlation=2)],
        API: [runtime(), runtime(700, 800, correlation=2)],
    }
    tables |= facts("META_DATA_CAPTURE", **secrets) | facts(
        "TARGET_INFO_SYSTEM_ENV", Hostname="s3cret", UserName="s3cret"
    )
    catalog, result = run(tables)
    assert result.inputs[0].rank == 3
    assert "s3cret" not in json.dumps(dataclasses.asdict(result))
    assert b"s3cret" not in render_html(result, catalog)


def test_names_are_text_in_the_report(run: Any) -> None:
    """The text of an NVTX range must not end the page's script."""
    hostile = "</script><img src=x onerror=alert(1)>"
    kernels = [kernel(1000, 2000), kernel(905_000, 999_000, correlation=2)]
    calls = [runtime(), runtime(900_000, 901_000, correlation=2)]
    catalog, result = run({GPU: kernels, API: calls, "NVTX_EVENTS": [nvtx(3000, 890_000, hostile)]})
    assert any(hostile in json.dumps(dataclasses.asdict(finding)) for finding in result.findings)
    page = render_html(result, catalog)
    assert b"<img src=x" not in page and b"</script><img" not in page
