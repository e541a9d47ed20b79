"""The payload decoded back: every event of the tables is there, to the nanosecond, on its lane."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from conftest import blob_of, decode
from report_sample import HOSTILE, ORIGIN, Sample, many_kernels, rows, sample

from traceanalyzer.report import timeline as module
from traceanalyzer.report.timeline import build_timeline
from traceanalyzer.result.document import Evidence


def no_rank(_: int) -> str:
    return ""


def test_streams_hold_every_operation(page: bytes) -> None:
    header, decoded = decode(blob_of(page))
    _, tables = sample()
    ops = tables.table("gpu_ops").to_pylist()
    origin = int(header["groups"][0]["origin"])
    for stream in (7, 13, 20):
        expected = sorted((op["start_ns"], op["end_ns"], op["name"]) for op in ops if op["stream"] == stream)
        found = [
            (origin + int(a), origin + int(b), name)
            for row in decoded
            if row.lane == f"stream {stream}"
            for a, b, name in zip(row.start, row.end, row.name, strict=True)
        ]
        assert sorted(found) == expected


def test_the_ledger_lane_is_the_ledger(page: bytes) -> None:
    header, decoded = decode(blob_of(page))
    _, tables = sample()
    expected = tables.table("ledger_intervals").to_pylist()
    (row,) = [row for row in decoded if row.lane == "where time went"]
    assert np.array_equal(row.end - row.start, [x["end_ns"] - x["start_ns"] for x in expected])
    assert [header["colours"][c] for c in row.colour] == [
        x["line"].replace(".", "-").replace("_", "-") for x in expected
    ]
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
    assert any("1 GPU operations with impossible times" in note for note in timeline.notes)
    assert "bad" not in decode(timeline.blob)[0]["names"]


def test_ranks_with_unrelated_clocks_start_together() -> None:
    ops = rows("gpu_ops", rank=[0, 1], process=1, device=0, context=1, stream=7, kind="kernel", name="k", quarantined=False,
               start_ns=[1_000, ORIGIN], end_ns=[2_000, ORIGIN + 500])  # fmt: skip
    timeline = build_timeline(Sample(gpu_ops=ops), lambda rank: f"rank {rank} · ", [])
    header, decoded = decode(timeline.blob)
    assert [row.start.tolist() for row in decoded] == [[0], [0]]
    assert [group["label"] for group in header["groups"]] == ["rank 0 · GPU 0", "rank 1 · GPU 0"]
    place = timeline.place(Evidence(1, 0, ORIGIN + 100, ORIGIN + 200, "late"))
    assert place is not None
    assert (place.start, place.end, place.group) == (100, 200, 1)
    unknown = timeline.place(Evidence(None, 0, ORIGIN + 100, ORIGIN + 200, "late"))
    assert unknown == place
    assert timeline.place(Evidence(3, 0, 0, 1, "no such rank")) is None


def test_above_the_limit_slices_are_merged_and_totals_stay_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SLICES", 2_000)
    tables = many_kernels(20_000)
    start = tables.table("gpu_ops")["start_ns"].to_numpy()
    end = tables.table("gpu_ops")["end_ns"].to_numpy()
    proof = Evidence(None, 0, int(start[9_000]), int(end[9_010]), "here")
    timeline = build_timeline(tables, no_rank, [proof])
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
