"""Calls of MPI and of the operating system: whose are read, and what of a gap they take."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.nsys.nsys_export import STRINGS, Row, Tables, global_id, kernel, make_export, nvtx, read, runtime
from traceanalyzer.catalog.catalog import Catalog

US = 1000
NAMES = STRINGS | {
    20: "getc",
    21: "poll",
    22: "MPI_Waitall",
    23: "pthread_cond_wait",
    24: "cudaMalloc_v3020",
    25: "MPI_Send",
}
MAIN, DRIVER = 8, 9


def os_call(start: int, end: int | None, name: int = 20, thread: int = MAIN, **more: Any) -> Row:
    row = {
        "start": start * US,
        "end": None if end is None else end * US,
        "eventClass": 27,
        "nameId": name,
        "nestingLevel": 0,
    }
    return row | {"globalTid": global_id(7, thread)} | more


def mpi_call(start: int, end: int, name: int = 22, thread: int = MAIN, **more: Any) -> Row:
    return {"start": start * US, "end": end * US, "globalTid": global_id(7, thread), "textId": name} | more


def two_kernels(**tables: list[Row]) -> Tables:
    """A gap from 10 to 1000 us, whose launch begins at 900."""
    ops = [kernel(0, 10 * US, correlation=1), kernel(1000 * US, 1010 * US, correlation=2)]
    calls = [runtime(-10 * US, -5 * US, correlation=1), runtime(900 * US, 905 * US, correlation=2)]
    more = tables.pop("calls", [])
    return {"CUPTI_ACTIVITY_KIND_KERNEL": ops, "CUPTI_ACTIVITY_KIND_RUNTIME": calls + more, **tables}


def gaps(tables: Tables, tmp_path: Path) -> list[dict[str, Any]]:
    loaded = ta.load(make_export(tmp_path / "a.sqlite", tables, NAMES))
    rows = Catalog(loaded).table("gaps").to_pylist()
    assert all(a["end_ns"] == b["start_ns"] for a, b in pairwise(rows))
    assert sum(row["end_ns"] - row["start_ns"] for row in rows) == 990 * US
    return rows


def causes(tables: Tables, tmp_path: Path) -> list[tuple[str, int, int]]:
    return [(r["cause"], r["start_ns"] // US, r["end_ns"] // US) for r in gaps(tables, tmp_path)]


def test_a_call_of_the_operating_system_is_the_cause(tmp_path):
    assert causes(two_kernels(OSRT_API=[os_call(100, 800)]), tmp_path) == [
        ("host_untraced", 10, 100),
        ("os", 100, 800),
        ("host_untraced", 800, 900),
        ("launch_latency", 900, 1000),
    ]


def test_it_is_named_with_the_range_around_it(tmp_path):
    tables = two_kernels(OSRT_API=[os_call(100, 800)], NVTX_EVENTS=[nvtx(50 * US, 850 * US, "load_mesh")])
    rows = gaps(tables, tmp_path)
    assert [r["cause"] for r in rows] == [
        *("host_untraced", "host_work", "os", "host_work", "host_untraced", "launch_latency")
    ]
    row = rows[2]
    assert (row["range_name"], row["annotation"], row["place"]) == ("getc", "load_mesh", "getc in load_mesh")
    assert row["place_duration"] == 700 * US


@pytest.mark.parametrize("name", ["load_batch", "data_loading"])
def test_in_a_data_loader_it_is_input(tmp_path, name):
    tables = two_kernels(OSRT_API=[os_call(100, 800)], NVTX_EVENTS=[nvtx(50 * US, 850 * US, name)])
    assert ("input", 50, 850) in causes(tables, tmp_path)


def test_what_a_wait_for_the_gpu_does_is_synchronization(tmp_path):
    tables = two_kernels(calls=[runtime(-2 * US, 500 * US, correlation=5, name=6)], OSRT_API=[os_call(-1, 499, 21)])
    assert causes(tables, tmp_path)[0] == ("synchronization", 10, 550)


def test_what_an_allocation_does_is_memory_management(tmp_path):
    tables = two_kernels(calls=[runtime(100 * US, 500 * US, correlation=5, name=24)], OSRT_API=[os_call(110, 490, 21)])
    assert ("memory_management", 100, 500) in causes(tables, tmp_path)


def test_what_the_driver_does_in_a_call_is_that_call(tmp_path):
    tables = two_kernels(calls=[runtime(100 * US, 500 * US, correlation=5, name=4)], OSRT_API=[os_call(110, 490, 21)])
    assert ("host_work", 100, 500) in causes(tables, tmp_path)


def test_the_waits_of_threads_that_launch_nothing_are_not_read(tmp_path):
    """The driver's own threads sit in poll for all of the recording."""
    tables = two_kernels(OSRT_API=[os_call(-100, 2000, 21, DRIVER), os_call(100, 200)])
    found = read(make_export(tmp_path / "b.sqlite", tables, NAMES)).table("host_ranges").to_pylist()
    assert [(r["category"], r["name"], r["thread"]) for r in found] == [("os", "getc", MAIN)]
    assert [cause for cause, *_ in causes(tables, tmp_path)].count("os") == 1


def test_mpi_is_the_cause_and_what_it_does_is_its_own(tmp_path):
    tables = two_kernels(MPI_START_WAIT_EVENTS=[mpi_call(100, 800)], OSRT_API=[os_call(200, 700, 21)])
    rows = gaps(tables, tmp_path)
    assert [r["cause"] for r in rows] == ["host_untraced", "mpi", "host_untraced", "launch_latency"]
    assert (rows[1]["range_name"], rows[1]["place"]) == ("MPI_Waitall", "MPI_Waitall")


@pytest.mark.parametrize("name", ["MPI_Allreduce", "PMPI_Wait", "mpi_barrier", "MPI_Send (dest 3)"])
def test_ranges_of_mpi_count_as_mpi(tmp_path, name):
    tables = two_kernels(NVTX_EVENTS=[nvtx(100 * US, 800 * US, name)])
    assert ("mpi", 100, 800) in causes(tables, tmp_path)


@pytest.mark.parametrize("name", ["MPI exchange", "halo_mpi_Wait", "MPIX"])
def test_other_ranges_do_not(tmp_path, name):
    tables = two_kernels(NVTX_EVENTS=[nvtx(100 * US, 800 * US, name)])
    assert ("host_work", 100, 800) in causes(tables, tmp_path)


def test_a_wait_for_several_requests_is_one_call(tmp_path):
    requests = [mpi_call(100, 800, requestHandle=n) for n in range(5)]
    other = mpi_call(100, 800, requestHandle=9, thread=DRIVER)
    tables = two_kernels(
        MPI_START_WAIT_EVENTS=[*requests, mpi_call(810, 820), other], MPI_P2P_EVENTS=[mpi_call(20, 30, 25)]
    )
    found = read(make_export(tmp_path / "c.sqlite", tables, NAMES)).table("host_ranges").to_pylist()
    assert [(r["name"], r["thread"], r["start_ns"] // US) for r in found] == [
        ("MPI_Send", MAIN, 20),
        ("MPI_Waitall", MAIN, 100),
        ("MPI_Waitall", MAIN, 810),
        ("MPI_Waitall", DRIVER, 100),
    ]


def test_every_table_of_mpi_is_read(tmp_path):
    kinds = ("P2P", "COLLECTIVES", "START_WAIT", "OTHER")
    tables = two_kernels(**{f"MPI_{kind}_EVENTS": [mpi_call(100 + n, 101 + n)] for n, kind in enumerate(kinds)})
    assert read(make_export(tmp_path / "d.sqlite", tables, NAMES)).column("host_ranges", "category") == ["mpi"] * 4


def test_tables_without_a_thread_are_said_to_be_unread(tmp_path):
    found = read(
        make_export(tmp_path / "e.sqlite", two_kernels(OSRT_API=[{"start": 1, "end": 2, "nameId": 20}]), NAMES)
    )
    assert found.table("host_ranges").num_rows == 0
    assert [m[4] for m in found.messages if m[0] == "TRC001"] == ["OSRT_API without caller"]


def test_a_call_still_open_at_the_end_ends_with_the_last_record(tmp_path):
    found = read(make_export(tmp_path / "f.sqlite", two_kernels(OSRT_API=[os_call(950, None)]), NAMES))
    assert found.column("host_ranges", "end_ns") == [1010 * US]


@pytest.mark.parametrize(("ranks", "rank"), [([3], 3), ([], None), ([3, 4], None), ([-1], None)])
def test_the_rank_in_mpi(tmp_path, ranks, rank):
    rows = [{"globalPid": global_id(7), "rank": one} for one in ranks] + [{"globalPid": global_id(70), "rank": 8}]
    facts = read(make_export(tmp_path / "g.sqlite", two_kernels(MPI_RANKS=rows), NAMES)).facts
    assert (facts.rank, facts.rank_source) == (rank, None if rank is None else "content")


def test_samples_that_are_not_read_are_not_said_to_be_absent(tmp_path):
    tables = two_kernels(COMPOSITE_EVENTS=[{"id": 1, "start": 5, "globalTid": global_id(7, MAIN)}])
    result = ta.analyze(ta.load(make_export(tmp_path / "h.sqlite", tables, NAMES)))
    assert "TRC009" in [note.code for note in result.health]
    said = " ".join([result.verdict.headline, *(finding.message for finding in result.findings)])
    assert "nothing was recorded" not in said
