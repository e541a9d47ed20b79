"""CPU samples, scheduling and page faults of exports: what is read of them, in any order, and what they say of idle time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.nsys.nsys_export import (
    Row,
    Tables,
    global_id,
    kernel,
    make_export,
    memcpy,
    process_id,
    read,
    runtime,
)
from tests.nsys.test_host_calls import NAMES as CALL_NAMES
from tests.nsys.test_host_calls import US, os_call, two_kernels
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.ingest.rows import external_sort

MAIN, OTHER = 8, 9
NAMES = CALL_NAMES | {
    100: "main",
    101: "load_mesh(char const*, Mesh&)",
    102: "__isoc99_fscanf",
    103: "__vfscanf_internal",
    104: "0x7f00001234",
    105: "/usr/lib64/libcuda.so.575",
    106: "/opt/app/solver",
    107: "[Broken backtraces]",
    108: "a;b",
    109: "_start",
    110: "worker",
    111: "getc",
}
LOAD = (103, 102, 101, 100, 109)
"""The innermost first, as stored."""


def sample(number: int, time: int, thread: int = MAIN, pid: int = 7) -> Row:
    row = {"id": number, "start": time * US, "cpu": 3, "threadState": 1, "globalTid": global_id(pid, thread)}
    return row | {"cpuCycles": 10}


def chain(number: int, symbols: tuple[int, ...], module: int = 106, **more: Any) -> list[Row]:
    row = {"id": number, "module": module, "kernelMode": None, "unresolved": None, "specialEntry": None}
    return [row | {"symbol": symbol, "stackDepth": depth} | more for depth, symbol in enumerate(symbols)]


def switch(time: int, on: bool, thread: int = MAIN, pid: int = 7, cpu: int = 1) -> Row:
    return {"start": time * US, "cpu": cpu, "isSchedIn": int(on), "globalTid": global_id(pid, thread)}


def sampled(times: list[int], symbols: tuple[int, ...] = LOAD, first: int = 1, **more: Any) -> Tables:
    numbers = range(first, first + len(times))
    return {
        "COMPOSITE_EVENTS": [sample(number, time, **more) for number, time in zip(numbers, times, strict=True)],
        "SAMPLING_CALLCHAINS": [row for number in numbers for row in chain(number, symbols)],
    }


def stacks(tables: Tables, tmp_path: Path) -> list[tuple[int, int, str | None]]:
    found = read(make_export(tmp_path / "a.sqlite", two_kernels(**tables), NAMES)).table("cpu_samples").to_pylist()
    return [(row["thread"], row["time_ns"] // US, row["stack"]) for row in found]


def idle(tables: Tables, tmp_path: Path) -> list[dict[str, Any]]:
    rows = Catalog(ta.load(make_export(tmp_path / "b.sqlite", tables, NAMES))).table("gaps").to_pylist()
    return [row for row in rows if row["cause"] in ("host_untraced", "os")]


def test_a_stack_goes_from_the_outermost_function_inwards(tmp_path):
    tables = sampled([50])
    expected = "_start;main;load_mesh(char const*, Mesh&);__isoc99_fscanf;__vfscanf_internal"
    assert stacks(tables, tmp_path) == [(MAIN, 50, expected)]


def test_frames_without_a_name_are_their_module_once_and_made_up_ones_are_left_out(tmp_path):
    rows = [*chain(1, (104, 104), 105, unresolved=1), *chain(1, (108,), stackDepth=2), *chain(1, (107,), stackDepth=3)]
    rows += [*chain(1, (100,), stackDepth=4, specialEntry=1), *chain(1, (9999,), 105, stackDepth=5)]
    tables = {"COMPOSITE_EVENTS": [sample(1, 5)], "SAMPLING_CALLCHAINS": rows}
    assert stacks(tables, tmp_path) == [(MAIN, 5, "[libcuda.so.575];a,b;[libcuda.so.575]")]


def test_samples_without_a_stack_are_kept_and_health_says_what_to_record(tmp_path):
    tables = two_kernels(COMPOSITE_EVENTS=[sample(1, 5), sample(2, 6, OTHER)])
    found = read(make_export(tmp_path / "a.sqlite", tables, NAMES))
    assert [row["stack"] for row in found.table("cpu_samples").to_pylist()] == [None, None]
    assert ("TRC009", "info", 2) in found.said()
    assert "--backtrace" in found.messages[0][2]


def test_samples_of_all_threads_of_processes_that_use_a_gpu_are_read_and_no_others(tmp_path):
    tables = sampled([50, 60], thread=OTHER)
    tables["COMPOSITE_EVENTS"] += [sample(9, 70, pid=77)]
    assert [(thread, time) for thread, time, _ in stacks(tables, tmp_path)] == [(OTHER, 50), (OTHER, 60)]
    foreign = two_kernels(**sampled([50, 60], pid=77))
    found = read(make_export(tmp_path / "c.sqlite", foreign, NAMES))
    assert found.table("cpu_samples").num_rows == 0
    assert found.said() == [("TRC009", "info", 2)]


@pytest.mark.parametrize("table", ["COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS", "SCHED_EVENTS"])
def test_a_table_that_lacks_a_column_is_named(tmp_path, table):
    tables = two_kernels(**sampled([50]), SCHED_EVENTS=[switch(1, True)])
    tables[table] = [{"cpu": 1, "symbol": 100}]
    found = read(make_export(tmp_path / "a.sqlite", tables, NAMES))
    assert any(code == "TRC001" and table in (example or "") for code, _, _, _, example in found.messages)


def runs(rows: list[Row], tmp_path: Path) -> list[tuple[int, int, int, int]]:
    found = read(make_export(tmp_path / "a.sqlite", two_kernels(SCHED_EVENTS=rows), NAMES)).table("thread_runs")
    return [(r["thread"], r["start_ns"] // US, r["end_ns"] // US, r["cpu"]) for r in found.to_pylist()]


def test_a_thread_runs_from_being_put_on_a_cpu_until_it_is_taken_off(tmp_path):
    rows = [switch(10, True), switch(30, False), switch(50, True, cpu=2), switch(70, False, cpu=2)]
    assert runs(rows, tmp_path) == [(MAIN, 10, 30, 1), (MAIN, 50, 70, 2)]


def test_what_was_running_at_either_end_counts_to_the_first_and_last_record_of_all(tmp_path):
    rows = [switch(30, False), switch(50, True), switch(5, True, OTHER), switch(90, False, OTHER)]
    assert runs(rows, tmp_path) == [(MAIN, 5, 30, 1), (MAIN, 50, 90, 1), (OTHER, 5, 90, 1)]


def test_where_a_record_was_lost_the_thread_is_not_said_to_be_off(tmp_path):
    rows = [
        switch(10, True),
        switch(20, True),
        switch(30, False),
        switch(60, False),
        switch(80, True),
        switch(90, False),
    ]
    assert [(start, end) for _, start, end, _ in runs(rows, tmp_path)] == [(10, 20), (20, 30), (30, 60), (80, 90)]


def test_many_switches_pair_across_blocks(tmp_path):
    """More than are sorted at once."""
    count = 40_000
    rows = [switch(2 * at + part, not part, MAIN + at % 3) for at in range(count) for part in (0, 1)]
    random.Random(1).shuffle(rows)
    found = runs(rows, tmp_path)
    assert len(found) == count
    assert all(end - start == 1 for _, start, end, _ in found)


def test_page_faults_of_host_and_gpu(tmp_path):
    pid = global_id(7)
    host = {"start": 5 * US, "globalPid": pid, "address": -8, "CpuInstruction": 100}
    gpu = {"start": 6 * US, "end": 9 * US, "globalPid": pid, "deviceId": 0, "address": 4096}
    tables = two_kernels(
        CUDA_UM_CPU_PAGE_FAULT_EVENTS=[host],
        CUDA_UM_GPU_PAGE_FAULT_EVENTS=[gpu | {"numberOfPageFaults": 12, "faultAccessType": 2}],
    )
    found = read(make_export(tmp_path / "a.sqlite", tables, NAMES)).table("page_faults").to_pylist()
    assert sorted(found, key=lambda row: row["start_ns"]) == [
        {"process": process_id(7), "thread": None, "start_ns": 5 * US, "end_ns": 5 * US, "device": None}
        | {"address": (1 << 64) - 8, "count": 1, "access": None},
        {"process": process_id(7), "thread": None, "start_ns": 6 * US, "end_ns": 9 * US, "device": 0}
        | {"address": 4096, "count": 12, "access": "write"},
    ]


def test_the_thread_that_faulted_is_the_one_that_is_looked_at(tmp_path):
    ops = [kernel(0, 10 * US, correlation=1)]
    moved = memcpy(1000 * US, 1010 * US, 12, 4, 0, correlationId=0)
    calls = [runtime(-10 * US, -5 * US, correlation=1)]
    fault = {"start": 999 * US, "globalTid": global_id(7, OTHER), "address": 64}
    tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": ops,
        "CUPTI_ACTIVITY_KIND_MEMCPY": [moved],
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
    }
    assert [row["thread"] for row in idle(tables, tmp_path)] == [MAIN]
    (tmp_path / "b.sqlite").unlink()
    told = tables | {"CUDA_UM_CPU_PAGE_FAULT_EVENTS": [fault]}
    assert [row["thread"] for row in idle(told, tmp_path)] == [OTHER]


def everything() -> Tables:
    tables = sampled([*range(20, 800, 20)])
    more = sampled([*range(25, 800, 50)], (111, 110), first=500, thread=OTHER)
    tables = {name: rows + more[name] for name, rows in tables.items()}
    tables["SCHED_EVENTS"] = [
        switch(t, bool(t // 10 % 2), thread) for t in range(10, 900, 10) for thread in (MAIN, OTHER)
    ]
    tables["OSRT_API"] = [os_call(810, 880, 111, callchainId=3)]
    tables["OSRT_CALLCHAINS"] = chain(3, (111, 101, 100))
    fault = {"start": 3, "globalPid": global_id(7), "address": 1}
    tables["CUDA_UM_CPU_PAGE_FAULT_EVENTS"] = [fault, fault | {"address": 2}, fault | {"start": 1}]
    tables["CUDA_UM_GPU_PAGE_FAULT_EVENTS"] = [fault | {"end": 5, "deviceId": 0}, fault | {"end": 7, "deviceId": 0}]
    return two_kernels(**tables)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_makes_no_difference(tmp_path, seed):
    tables = everything()
    expected = read(make_export(tmp_path / "a.sqlite", tables, NAMES))
    for rows in tables.values():
        random.Random(seed).shuffle(rows)
    found = read(make_export(tmp_path / "b.sqlite", tables, NAMES))
    for table in ("cpu_samples", "thread_runs", "page_faults", "host_ranges"):
        assert found.table(table).num_rows > 0
        assert found.table(table).equals(expected.table(table)), table


def test_samples_name_untraced_time(tmp_path):
    """The gap is from 10 to 1000 us, its launch begins at 900."""
    (row,) = idle(two_kernels(**sampled([*range(20, 890, 10)])), tmp_path)
    assert (row["cause"], row["sampled"], row["samples"], row["off_cpu"]) == ("host_untraced", "thread", 87, None)
    assert (row["place"], row["source"]) == ("fscanf called from load_mesh", "load_mesh")
    assert row["place_duration"] == 870 * US


def test_a_few_samples_name_nothing(tmp_path):
    (row,) = idle(two_kernels(**sampled([20, 30, 40, 50])), tmp_path)
    assert (row["sampled"], row["samples"], row["place"], row["place_duration"]) == ("thread", 4, None, 0)


def test_samples_stand_for_the_time_in_which_the_thread_ran(tmp_path):
    off = [switch(-100, True), switch(110, False), switch(810, True), switch(2000, False)]
    (row,) = idle(two_kernels(**sampled([*range(20, 100, 10)]), SCHED_EVENTS=off), tmp_path)
    assert (row["off_cpu"], row["place_duration"]) == (700 * US, 190 * US)


def test_samples_of_another_thread_name_nothing(tmp_path):
    (row,) = idle(two_kernels(**sampled([*range(20, 890, 10)], thread=OTHER)), tmp_path)
    assert (row["sampled"], row["samples"], row["place"]) == ("others", None, None)


def test_the_stack_of_a_call_of_the_system_tells_who_made_it(tmp_path):
    tables = two_kernels(OSRT_API=[os_call(100, 800, 111, callchainId=3)], OSRT_CALLCHAINS=chain(3, (111, 101, 100)))
    rows = idle(tables, tmp_path)
    assert [row["cause"] for row in rows] == ["host_untraced", "os", "host_untraced"]
    assert (rows[1]["place"], rows[1]["source"]) == ("getc called from load_mesh", "load_mesh")
    # One stack that was asked for is no sampling.
    assert [(row["sampled"], row["samples"]) for row in rows] == [(None, None)] * 3


def test_the_first_sentence_names_what_the_samples_tell(tmp_path):
    path = make_export(tmp_path / "a.sqlite", two_kernels(**sampled([*range(20, 890, 10)])), NAMES)
    result = ta.analyze(ta.load(path))
    assert "fscanf" in result.verdict.headline or "load_mesh" in result.verdict.headline
    (finding,) = [one for one in result.findings if one.rule == "HST001"]
    assert "87 CPU samples put" in finding.message
    assert "fscanf called from load_mesh" in finding.message


def test_samples_name_what_lies_before_the_gpu_work(tmp_path):
    times = [*range(-100_000, -90_000, 1000)]
    tables = two_kernels(**sampled(times))
    tables["COMPOSITE_EVENTS"].append(sample(99, 2000))
    catalog = Catalog(ta.load(make_export(tmp_path / "a.sqlite", tables, NAMES)))
    (row,) = catalog.table("outside_work").to_pylist()
    assert (row["side"], row["name"], row["duration"], row["in_calls"]) == ("before", "load_mesh", 10_000 * US, False)


def test_many_samples_are_sorted_in_few_blocks(tmp_path, monkeypatch):
    """A block for each id would take for ever."""
    count, written = 6000, []
    tables = sampled([*range(count)])
    monkeypatch.setattr(
        external_sort,
        "_write",
        lambda path, table, cuts, write=external_sort._write: written.append(len(cuts)) or write(path, table, cuts),
    )
    assert len(stacks(tables, tmp_path)) == count
    assert 0 < max(written) < 10
