"""The payload decoded back: every event of the tables is there, to the nanosecond, on its lane."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from conftest import Row, blob_of, decode
from report_sample import HOSTILE, ORIGIN, Sample, many_kernels, rows, sample

from traceanalyzer.catalog.declarations import declared, rule_tables
from traceanalyzer.report.html import render_html
from traceanalyzer.report.timeline.lane_groups import TABLES
from traceanalyzer.report.timeline.lanes import Source
from traceanalyzer.report.timeline.timeline import Timeline, build_timeline
from traceanalyzer.result.document import Evidence


def no_rank(_: int) -> str:
    return ""


def shown(tables: Sample, **limits: int) -> tuple[Timeline, dict[str, Any], list[Row]]:
    timeline = build_timeline(tables, no_rank, [], **limits)
    return timeline, *decode(timeline.blob)


def test_idle_tiles_are_named_after_what_the_host_did() -> None:
    _, _, decoded = shown(sample()[1])
    (row,) = [row for row in decoded if row.kind == "ledger"]
    assert any(name.startswith("Idle: input · enumerate(DataLoader)") for name in row.name)


def test_the_page_knows_where_the_evidence_is(page: bytes) -> None:
    found = re.search(r'id="page-data">([^<]*)<', page.decode())
    assert found
    places = json.loads(found[1])["evidence"]
    header, _ = decode(blob_of(page))
    origin = int(header["groups"][0]["origin"])
    for number, finding in enumerate(sample()[0].findings):
        assert [(p[0] + origin, p[1] + origin, p[2]) for p in places.get(str(number), [])] == [
            (e.start_ns, e.end_ns, 0) for e in finding.evidence
        ]


def test_long_gaps_need_wide_numbers() -> None:
    hour = 3_600_000_000_000
    ops = rows("gpu_ops", rank=0, process=1, device=0, context=1, stream=7, kind="kernel", name="k", quarantined=False,
               start_ns=[ORIGIN, ORIGIN + hour + 1], end_ns=[ORIGIN + 3, ORIGIN + 2 * hour])  # fmt: skip
    _, decoded = decode(build_timeline(Sample(gpu_ops=ops), no_rank, []).blob)
    assert decoded[0].start.tolist() == [0, hour + 1]
    assert decoded[0].end.tolist() == [3, 2 * hour]


def test_quarantined_operations_are_left_out_and_said_so() -> None:
    ops = rows("gpu_ops", rank=0, process=1, device=0, context=1, stream=7, kind="kernel", name=["good", "bad"],
               quarantined=[False, True], start_ns=[ORIGIN, 5], end_ns=[ORIGIN + 10, 6])  # fmt: skip
    timeline = build_timeline(Sample(gpu_ops=ops), no_rank, [])
    assert timeline.events == 1
    assert any("GPU operations with impossible times (1)" in note for note in timeline.notes)
    assert "bad" not in decode(timeline.blob)[0]["names"]


def test_ranks_with_unrelated_clocks_start_together() -> None:
    ops = rows("gpu_ops", rank=[0, 1], process=1, device=0, context=1, stream=7, kind="kernel", name="k", quarantined=False,
               start_ns=[1_000, ORIGIN], end_ns=[2_000, ORIGIN + 500])  # fmt: skip
    timeline = build_timeline(Sample(gpu_ops=ops), lambda rank: f"rank {rank}", [])
    header, decoded = decode(timeline.blob)
    assert [row.start.tolist() for row in decoded] == [[0], [0]]
    assert [group["label"] for group in header["groups"]] == ["rank 0 (GPU 0)", "rank 1 (GPU 0)"]
    place = timeline.place(Evidence(1, 0, ORIGIN + 100, ORIGIN + 200, "late"))
    assert place is not None
    assert (place.start, place.end, place.group) == (100, 200, 1)
    unknown = timeline.place(Evidence(None, 0, ORIGIN + 100, ORIGIN + 200, "late"))
    assert unknown == place
    assert timeline.place(Evidence(3, 0, 0, 1, "no such rank")) is None


def test_above_the_limit_slices_are_merged_and_totals_stay_exact() -> None:
    tables = many_kernels(20_000)
    start = tables.table("gpu_ops")["start_ns"].to_numpy()
    end = tables.table("gpu_ops")["end_ns"].to_numpy()
    proof = Evidence(None, 0, int(start[9_000]), int(end[9_010]), "here")
    timeline = build_timeline(tables, no_rank, [proof], most=2_000)
    header, decoded = decode(timeline.blob)
    assert timeline.merged_events > 10_000
    assert sum(len(row.start) for row in decoded) <= 2_000
    streams = [row for row in decoded if row.lane.startswith("stream")]
    assert sum(int((row.end - row.start).sum()) for row in streams) == int((end - start).sum())
    assert sum(int(row.count.sum()) for row in streams) == 20_000
    (ledger,) = [row for row in decoded if row.lane == "where time went"]
    idle = ledger.colour == header["colours"].index("idle-turnaround")
    assert int((ledger.end - ledger.start)[idle].sum()) == int(end[-1] - start[0] - (end - start).sum())
    # next to the evidence every kernel is still its own slice
    exact = {(int(a), int(b)) for row in streams for a, b in zip(row.start, row.end, strict=True)}
    origin = int(header["groups"][0]["origin"])
    assert all((int(start[i]) - origin, int(end[i]) - origin) in exact for i in range(9_000, 9_011))


def test_only_shown_names_are_in_the_page(page: bytes) -> None:
    header, _ = decode(blob_of(page))
    assert HOSTILE in header["names"]
    assert len(set(header["names"])) == len(header["names"]) < 40


def test_without_gpu_work_all_of_the_host_is_shown() -> None:
    host = rows("host_ranges", rank=0, process=1, thread=1, category="operator", name="op", depth=0,
                start_ns=[ORIGIN, ORIGIN + 500], end_ns=[ORIGIN + 10, ORIGIN + 1000])  # fmt: skip
    header, _ = decode(build_timeline(Sample(host_ranges=host), no_rank, []).blob)
    assert header["home"] == [0, 1010]


def test_empty_tables_give_an_empty_timeline() -> None:
    timeline = build_timeline(Sample(), no_rank, [])
    assert timeline.events == 0
    assert decode(timeline.blob)[1] == []


def memory(**columns: Any) -> Sample:
    ops = rows("gpu_ops", rank=0, process=1, device=0, context=1, stream=7, kind="kernel", name="k", quarantined=False,
               start_ns=[1000], end_ns=[2000])  # fmt: skip
    columns = {"rank": 0, "process": 1, "device": 0} | columns
    return Sample(gpu_ops=ops, memory_events=rows("memory_events", **columns))


def levels(decoded: list[Row]) -> dict[str, tuple[list[float], list[float]]]:
    return {row.lane: (row.start.tolist(), row.value.tolist()) for row in decoded if row.kind == "counter"}


def test_what_the_allocator_says_is_shown_as_it_is() -> None:
    tables = memory(time_ns=[1100, 1200, 1300, 1400], bytes=[8, 8, -8, 1], address=[1, 2, 1, 3],
                    total_allocated=[8, 16, 8, 9], total_reserved=[32, 32, 32, 32])  # fmt: skip
    timeline, header, decoded = shown(tables)
    assert levels(decoded) == {
        "memory allocated": ([100, 200, 300, 400, 1000], [8, 16, 8, 9, 9]),
        "memory reserved": ([100, 1000], [32, 32]),  # what says nothing new is left out, and the last value holds
    }
    assert {lane["unit"] for lane in header["groups"][0]["lanes"] if lane["kind"] == "counter"} == {"bytes"}
    assert timeline.events == 1


def test_what_the_driver_gave_out_is_added_up_only_if_it_balances() -> None:
    freed = {"time_ns": [0, 1200, 1300, 9000], "bytes": [8, 4, -4, 2], "address": [1, 2, 2, 4]}
    assert levels(shown(memory(**freed))[2]) == {"driver memory": ([0, 200, 300, 1000], [8, 12, 8, 8])}
    unknown = {"time_ns": [1100, 1200], "bytes": [8, -4], "address": [1, 2]}
    assert levels(shown(memory(**unknown))[2]) == {}
    nameless = {"time_ns": [1100, 1200], "bytes": [8, -4]}
    assert levels(shown(memory(**nameless))[2]) == {}


def test_counters_lie_with_their_gpu_and_those_of_the_host_apart() -> None:
    ops = rows("gpu_ops", rank=0, process=1, device=0, context=1, stream=7, kind="kernel", name="k", quarantined=False,
               start_ns=[1000], end_ns=[2000])  # fmt: skip
    values = [(0, "SM [%]", "%", 10.0), (0, "SM [%]", "%", float("nan")), (0, "off [%]", "%", 0.0), (0, "DRAM", "GB/s", 5.5),
              (None, "CPU", None, 3.0), (1, "SM [%]", "%", 7.0)]  # fmt: skip
    device, metric, unit, value = map(list, zip(*values, strict=True))
    counters = rows("counters", rank=0, process=1, device=device, metric=metric, unit=unit, value=value,
                    time_ns=[1500 + i for i in range(6)])  # fmt: skip
    timeline, header, decoded = shown(Sample(gpu_ops=ops, counters=counters))
    found = [[(x["label"], x["unit"]) for x in g["lanes"] if x["kind"] == "counter"] for g in header["groups"]]
    assert found == [[], [("CPU", "")], [("SM", "%"), ("DRAM", "GB/s")]]
    assert [(group["label"], group["device"]) for group in header["groups"]] == [
        ("GPU 0", True),
        ("counters", False),
        ("GPU 0 · counters", False),
    ]
    assert levels(decoded) == {"SM": ([500], [10.0]), "DRAM": ([503], [5.5]), "CPU": ([504], [3.0])}
    assert any("0 all the time (1)" in note for note in timeline.notes)
    assert any("nothing of this program ran (1)" in note for note in timeline.notes)


def test_however_many_counters_there_are_names_are_counted_where_they_ran() -> None:
    ops = rows("gpu_ops", rank=[0, 1], process=1, device=0, context=1, stream=7, kind="kernel", name="k",
               quarantined=False, start_ns=1000, end_ns=2000)  # fmt: skip
    counters = rows("counters", rank=0, process=1, metric=[f"counter {k}" for k in range(300)], value=1.0, time_ns=1500)
    ranges = rows("host_ranges", rank=1, process=1, thread=1, category="nvtx", name=["r"], start_ns=1000, end_ns=2000)
    _, header, _ = shown(Sample(gpu_ops=ops, counters=counters, host_ranges=ranges))
    assert header["index"]["kinds"] == ["streams", "NVTX"]
    assert header["index"]["counts"] == {("k", "streams"): (2, 2000), ("r", "NVTX"): (1, 1000)}


def test_counters_count_against_the_limit_and_keep_their_extremes() -> None:
    tables = many_kernels(2_000)
    start = tables.table("gpu_ops")["start_ns"].to_numpy()
    value = np.random.default_rng(5).normal(size=len(start))
    tables.tables["counters"] = rows(
        "counters", rank=0, process=1, device=0, metric="m", unit="W", value=value, time_ns=start
    )
    timeline, _, decoded = shown(tables, most=500)
    assert sum(len(row.start) for row in decoded) <= 500
    (row,) = [row for row in decoded if row.kind == "counter"]
    assert (row.value.min(), row.value.max(), row.value[-1]) == (value.min(), value.max(), value[-1])
    assert any(f"({2_000 - len(row.start):,})" in note for note in timeline.notes)


def test_threads_that_launch_or_tell_something_are_shown() -> None:
    launches = rows("launches", rank=0, process=1, thread=[1], start_ns=100, end_ns=110)
    names = ["op", "enumerate(DataLoader)#_Iter.__next__", "autograd::engine::evaluate_function: X", "forward", "op"]
    category = ["operator", "operator", "operator", "nvtx", "operator"]
    ranges = rows("host_ranges", rank=0, process=1, thread=[1, 2, 3, 4, 5], name=names, category=category, depth=0,
                  start_ns=100, end_ns=110)  # fmt: skip
    timeline, header, decoded = shown(Sample(launches=launches, host_ranges=ranges))
    assert [group["label"] for group in header["groups"]] == ["thread 1", "thread 2", "thread 3", "thread 4"]
    assert [row.lane for row in decoded] == ["operators", "operators", "operators", "NVTX"]
    assert any("launch no GPU work and mark no ranges (1)" in note for note in timeline.notes)


def test_only_the_busiest_threads_of_a_process_are_shown() -> None:
    threads = [thread for thread in range(12) for _ in range(thread + 1)]
    calls = rows("api_calls", rank=0, process=1, thread=threads, name="cudaLaunchKernel",
                 start_ns=[10 * i for i in range(len(threads))], end_ns=[10 * i + 5 for i in range(len(threads))])  # fmt: skip
    timeline, header, _ = shown(Sample(api_calls=calls))
    assert [group["label"] for group in header["groups"]] == [f"thread {n}" for n in range(4, 12)]
    assert any("the busiest 8 of a process (4)" in note for note in timeline.notes)


def two_files(second: int) -> Sample:
    """Two recordings of GPU 0, the other one from `second` on and under a number of its own."""
    begin = [1_000, 3_000, second, second + 2_003]
    return Sample(ledger_intervals=rows("ledger_intervals", rank=[1, 1, 7, 7], device=0, line="compute", start_ns=begin,
                                        end_ns=[time + 500 for time in begin]))  # fmt: skip


def test_evidence_of_a_rank_that_two_files_claim_lands_on_the_right_one_or_nowhere() -> None:
    def groups(tables: Sample, files: int, *starts: int) -> list[int | None]:
        timeline = build_timeline(tables, no_rank, [], claims={1: files})
        places = [timeline.place(Evidence(1, 0, start, start + 100, "")) for start in starts]
        return [place.group if place else None for place in places]

    assert groups(two_files(90_000), 2, 1_000, 90_000, 50_000) == [0, 1, None]
    assert groups(two_files(90_000), 2, 1_234, 90_001) == [0, 1]
    # Of a third file, which is not shown, may be what begins at no event of the others.
    assert groups(two_files(90_000), 3, 1_000, 1_234) == [0, None]
    # Recorded at the same time: the one on which something begins just then.
    assert groups(two_files(1_001), 2, 1_000, 1_001, 3_004, 1_200) == [0, 1, 1, None]
    # A file without a rank is no second one of a rank that one file claims.
    assert groups(two_files(90_000), 1, 1_000, 90_000) == [0, 0]


def test_a_communication_kernel_is_parted_where_the_last_rank_arrived() -> None:
    ops = rows("gpu_ops", rank=0, process=1, device=0, context=1, stream=7, kind="kernel", name="k", quarantined=False,
               start_ns=[0], end_ns=[1000])  # fmt: skip
    communication = rows("communication", rank=0, device=0, process=1, stream=7, name="nccl", group="3", late_rank=[2, None, None],
                         kind=["all-reduce", "receive", None], bytes=[32 << 20, 5, None], wait=[70, None, None],
                         likely_wait=[None, 30, None], start_ns=[0, 200, 400], end_ns=[100, 300, 500])  # fmt: skip
    collectives = rows("collectives", rank=[0], group="3", description="default_pg", start_ns=0, end_ns=100)
    tables = Sample(gpu_ops=ops, communication=communication, collectives=collectives)
    timeline = build_timeline(tables, lambda rank: f"rank {rank}", [])
    header, decoded = decode(timeline.blob)
    (row,) = [row for row in decoded if row.lane == "communication"]
    labels = [header["labels"][code] for code in row.colour]
    found = list(zip(row.start.tolist(), row.end.tolist(), row.name, labels, strict=True))
    wait, moving = "Waiting for other ranks", "Communication"
    assert found == [
        (0, 70, "all-reduce 32 MiB, group default_pg · waiting for rank 2", wait),
        (70, 100, "all-reduce 32 MiB, group default_pg", moving),
        (200, 230, "receive 5 B, group default_pg · likely waiting for another rank", wait),
        (230, 300, "receive 5 B, group default_pg", moving),
        (400, 500, "nccl, group default_pg", moving),
    ]


def test_lanes_read_tables_that_there_are() -> None:
    assert set(declared()) | set(rule_tables()) >= TABLES


def test_a_table_that_is_called_otherwise_removes_no_lane_in_silence() -> None:
    result, tables = sample()
    missing = Sample(**tables.tables)
    missing.table = lambda name: {}[name] if name == "step_stats" else tables.table(name)  # type: ignore[method-assign]
    with pytest.raises(KeyError, match="step_stats"):
        render_html(result, missing, redact=False)


def test_a_lane_reads_what_is_declared() -> None:
    with pytest.raises(KeyError, match="no lane declares that it reads 'gap'"):
        Source(sample()[1], lambda _: "", declared=TABLES).table("gap")
