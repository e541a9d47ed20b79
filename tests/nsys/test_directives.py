"""Constructs of OpenACC and OpenMP, host functions of streams, and the names of NVTX domains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.nsys.nsys_export import STRINGS, Row, Tables, global_id, kernel, make_export, nvtx, read, runtime
from traceanalyzer.catalog.catalog import Catalog

US = 1000
NAMES = STRINGS | {
    30: "Enqueue Upload",
    31: "Wait",
    32: "/home/somebody/src/solve.f90",
    33: "solve",
    34: "field",
    35: "Enqueue Launch",
    36: "solve_42_gpu",
    37: "on_done(void*)",
    40: "NCCL",
    41: "ncclAllReduce",
}


def construct(name: int | None, start: int = 100, end: int | None = 200, **more: Any) -> Row:
    row = {"start": start * US, "end": end if end is None else end * US, "nameId": name, "globalTid": global_id(7, 8)}
    return row | {"eventKind": 5, "DeviceType": 4, "lineNo": 42, "srcFile": 32, "funcName": 33} | more


def region(start: int = 100, end: int = 200, kind: int | None = None, thread: int = 8) -> Row:
    return {"start": start * US, "end": end * US, "globalTid": global_id(7, thread), "nameId": 31, "kind": kind}


def program(**tables: list[Row]) -> Tables:
    """A gap from 10 to 1000 us, whose launch begins at 900, on thread 8."""
    ops = [kernel(0, 10 * US, correlation=1), kernel(1000 * US, 1010 * US, correlation=2)]
    calls = [runtime(-10 * US, -5 * US, correlation=1), runtime(900 * US, 905 * US, correlation=2)]
    return {"CUPTI_ACTIVITY_KIND_KERNEL": ops, "CUPTI_ACTIVITY_KIND_RUNTIME": calls, **tables}


def ranges(tmp_path: Path, tables: Tables) -> list[tuple[str, str]]:
    found = read(make_export(tmp_path / "a.sqlite", tables, NAMES))
    assert not [m for m in found.messages if m[0] == "TRC001"]
    rows = found.table("host_ranges").to_pylist()
    assert {(row["process"] & 0xFFFFFF, row["thread"]) for row in rows} <= {(7, 8)}
    return [(row["category"], row["name"]) for row in rows]


@pytest.mark.parametrize(
    ("table", "row", "name"),
    [
        ("CUPTI_ACTIVITY_KIND_OPENACC_DATA", construct(30, varName=34), "Enqueue Upload of field, solve.f90:42 in solve"),
        ("CUPTI_ACTIVITY_KIND_OPENACC_DATA", construct(30, varName=None), "Enqueue Upload, solve.f90:42 in solve"),
        ("CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", construct(35, kernelName=36), "Enqueue Launch of solve_42_gpu, solve.f90:42 in solve"),
        ("CUPTI_ACTIVITY_KIND_OPENACC_OTHER", construct(31, lineNo=0), "Wait, solve.f90 in solve"),
        ("OPENACC_OTHER_EVENTS", construct(31, srcFile=None, funcName=None), "Wait"),
        ("CUPTI_ACTIVITY_KIND_OPENACC_OTHER", {"start": 1, "end": 2, "globalTid": global_id(7, 8)}, "construct"),
    ],
)  # fmt: skip
def test_a_construct_of_openacc_says_what_it_is_and_where(tmp_path: Path, table: str, row: Row, name: str) -> None:
    assert ranges(tmp_path, program(**{table: [row]})) == [("openacc", f"OpenACC {name}")]


@pytest.mark.parametrize(
    ("table", "kind", "name"),
    [
        ("PARALLEL", None, "parallel region"),
        ("SYNC_REGION_WAIT", 2, "waiting at implicit barrier"),
        ("SYNC_REGION_WAIT", 99, "waiting at a barrier"),
        ("SYNC_REGION", 5, "taskwait"),
        ("MUTEX_WAIT", 5, "waiting for critical section"),
        ("WORKSHARE", 1, "loop"),
        ("TASK", 3, "explicit task"),
    ],
)
def test_a_region_of_openmp_is_told_by_its_table_and_kind(
    tmp_path: Path, table: str, kind: int | None, name: str
) -> None:
    rows = [region(kind=kind), region(thread=9, kind=kind)]
    # What other threads of the team do holds up no launch.
    assert ranges(tmp_path, program(**{f"OPENMP_EVENT_KIND_{table}": rows})) == [("openmp", f"OpenMP {name}")]


def test_the_task_that_is_the_program_is_no_region(tmp_path: Path) -> None:
    assert ranges(tmp_path, program(OPENMP_EVENT_KIND_TASK=[region(kind=1)])) == []


def test_without_a_thread_that_launches_all_regions_count(tmp_path: Path) -> None:
    found = read(make_export(tmp_path / "a.sqlite", {"OPENMP_EVENT_KIND_PARALLEL": [region(), region(thread=9)]}))
    assert found.column("host_ranges", "thread") == [8, 9]


def test_host_functions_of_streams(tmp_path: Path) -> None:
    rows = [construct(37), construct(None, 300, 310)]
    found = ranges(tmp_path, program(CUDA_HOST_CALLBACK=rows))
    assert found == [("callback", "on_done(void*)"), ("callback", "host function")]


def test_a_stream_that_waits_for_a_host_function_is_no_unknown_work(tmp_path: Path) -> None:
    row = {"start": 0, "end": 10, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 3}
    rows = program(CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH=[row])
    assert ranges(tmp_path, rows) == []


@pytest.mark.parametrize(
    "table", ["CUPTI_ACTIVITY_KIND_OPENACC_DATA", "OPENMP_EVENT_KIND_PARALLEL", "CUDA_HOST_CALLBACK"]
)
def test_a_table_without_threads_is_named(tmp_path: Path, table: str) -> None:
    row = {key: value for key, value in construct(30).items() if key != "globalTid"}
    found = read(make_export(tmp_path / "a.sqlite", program(**{table: [row]}), NAMES))
    assert (f"{table} without caller") in [message[4] for message in found.messages]


def test_idle_time_within_a_construct_is_work_of_the_host_with_its_name(tmp_path: Path) -> None:
    rows = [construct(31, 50, 890)]
    loaded = ta.load(make_export(tmp_path / "a.sqlite", program(CUPTI_ACTIVITY_KIND_OPENACC_OTHER=rows), NAMES))
    gaps = Catalog(loaded).table("gaps").to_pylist()
    named = {row["cause"]: row["range_name"] for row in gaps}
    assert named["host_work"] == "OpenACC Wait, solve.f90:42 in solve"


def domain_rows() -> list[Row]:
    """Ranges before the rows that name their domain and category."""
    more = [
        nvtx(100, 200, text_id=41) | {"domainId": 1},
        nvtx(210, 220, "tune") | {"domainId": 1, "category": 5},
        nvtx(230, 240, "mine"),
        nvtx(250, 260, "other") | {"domainId": 2},
        nvtx(270, 280, "sorted") | {"category": 6},
        nvtx(0, None, text_id=40, kind=75) | {"domainId": 1},
        nvtx(0, None, "tuning", kind=33) | {"domainId": 1, "category": 5},
        nvtx(0, None, "wrong", kind=75) | {"domainId": 2, "globalTid": global_id(9, 1)},
    ]
    return [{"category": None, **row} for row in more]


def test_domains_and_categories_have_their_names(tmp_path: Path) -> None:
    found = read(make_export(tmp_path / "a.sqlite", program(NVTX_EVENTS=domain_rows()), NAMES))
    assert found.column("host_ranges", "domain") == [
        *("NCCL", "NCCL / tuning", None, "domain 2", "default domain / category 6")
    ]


def test_exports_without_domains(tmp_path: Path) -> None:
    rows = [{k: v for k, v in nvtx(1, 2, "a").items() if k != "domainId"}]
    found = read(make_export(tmp_path / "a.sqlite", program(NVTX_EVENTS=rows), NAMES))
    assert found.column("host_ranges", "domain") == [None]
