"""What real traces put on the timeline, decoded back: each event of each table that is shown, to the nanosecond, and nothing else."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import Row, decode

import traceanalyzer as ta
from traceanalyzer.analysis import ReportTables, analyze_parts, parts_of
from traceanalyzer.config import Config
from traceanalyzer.report.palette import CODES
from traceanalyzer.report.sections import gpu_names
from traceanalyzer.report.timeline.path_lane import JOB
from traceanalyzer.report.timeline.timeline import Timeline, build_timeline
from traceanalyzer.result.clocks import clock_offsets

FIXTURES = Path(__file__).parents[1] / "fixtures"
TRACES = (
    "kineto/dataloader.slow.pt.trace.json.gz",
    "kineto/gc_stack.slow.pt.trace.json.gz",
    "nsys/nvtx_dataloader.slow.sqlite",
    "nsys/launch_storm.fixed.graph-node.sqlite",
    "multirank/pipeline_bubble.slow",
    "multirank/gpu_straggler.slow",
)
CATEGORIES = {"annotations": "annotation", "NVTX": "nvtx", "operators": "operator", "Python": "python"}

Event = tuple[int, int, str]


@dataclass
class Shot:
    """A trace's tables, its timeline, and the decoded rows of that."""

    tables: ReportTables
    timeline: Timeline
    header: dict[str, Any]
    rows: list[Row]
    again: Any

    def events(self, row: Row) -> list[Event]:
        """Start and end on the file's own clock, and the name."""
        origin = int(self.header["groups"][row.group]["origin"])
        return [(origin + int(a), origin + int(b), n) for a, b, n in zip(row.start, row.end, row.name, strict=True)]

    def lanes(self, *labels: str) -> dict[tuple[int, int], list[Event]]:
        """Sorted events of the lanes of such labels, by (rank, device)."""
        found: dict[tuple[int, int], list[Event]] = defaultdict(list)
        for row in self.rows:
            group = self.timeline.groups[row.group]
            if row.lane.startswith(labels) and group.device is not None:
                found[group.rank, group.device] += self.events(row)
        return {key: sorted(events) for key, events in found.items()}


@pytest.fixture(scope="module", params=TRACES)
def shot(request: pytest.FixtureRequest) -> Iterator[Shot]:
    parts = parts_of(ta.load(FIXTURES / request.param))
    analysis = analyze_parts(parts)
    result, tables = analysis.result, ReportTables(parts, Config(), analysis.tables)

    def build(**limits: int) -> Timeline:
        every = [item for finding in result.findings for item in finding.evidence]
        offsets, claims = clock_offsets(result), gpu_names.rank_claims(result)
        return build_timeline(tables, gpu_names.rank_namer(result), every, offsets, claims=claims, **limits)

    timeline = build()
    yield Shot(tables, timeline, *decode(timeline.blob), build)


def by_gpu(table: pa.Table, name: str = "name") -> dict[tuple[int, int], list[Event]]:
    found: dict[tuple[int, int], list[Event]] = defaultdict(list)
    columns = [table[column].to_pylist() for column in ("rank", "device", "start_ns", "end_ns", name)]
    for rank, device, start, end, text in zip(*columns, strict=True):
        found[rank, device].append((start, end, text))
    return {key: sorted(events) for key, events in found.items()}


def by_thread(table: pa.Table) -> dict[tuple[int, int, int], list[Event]]:
    found: dict[tuple[int, int, int], list[Event]] = defaultdict(list)
    columns = [table[column].to_pylist() for column in ("rank", "process", "thread", "start_ns", "end_ns", "name")]
    for rank, process, thread, start, end, text in zip(*columns, strict=True):
        found[rank, process, thread].append((start, end, text))
    return {key: sorted(events) for key, events in found.items()}


def test_streams_are_the_operations(shot: Shot) -> None:
    ops = shot.tables.table("gpu_ops")
    good = pc.invert(ops["quarantined"])
    assert shot.lanes("stream") == by_gpu(ops.filter(good))


def test_steps_are_those_of_each_gpu(shot: Shot) -> None:
    assert shot.lanes("steps") == by_gpu(shot.tables.table("step_stats"))


def test_the_ledger_lane_is_the_ledger(shot: Shot) -> None:
    expected = by_gpu(shot.tables.table("ledger_intervals"), "line")
    found = {}
    for row in shot.rows:
        if row.kind == "ledger":
            group = shot.timeline.groups[row.group]
            keys = [next(key for key, code in CODES.items() if code == colour) for colour in row.colour]
            spans = [event[:2] for event in shot.events(row)]
            whole: list[Event] = []
            for (start, end), key in zip(spans, keys, strict=True):
                line = "exposed_communication" if key in ("exposed_wait", "exposed_transfer") else key
                follows = bool(whole) and whole[-1][1:] == (start, line) and line != key
                whole.append((whole.pop()[0] if follows else start, end, line))
            found[group.rank, group.device] = whole
    assert found == expected


def test_the_ledger_lane_parts_communication_where_the_ledger_does(shot: Shot) -> None:
    parts = shot.tables.table("exposed_parts")
    parted = {(row["rank"], row["device"]) for row in parts.to_pylist() if row["parted"]}
    waits = shot.tables.table("exposed_waits").to_pylist()
    found: dict[tuple[int, int], int] = defaultdict(int)
    for row in shot.rows:
        if row.kind == "ledger":
            group = shot.timeline.groups[row.group]
            for event, colour in zip(shot.events(row), row.colour, strict=True):
                found[group.rank, group.device] += (event[1] - event[0]) * (colour == CODES["exposed_wait"])
    told = dict.fromkeys(parted, 0)
    for row in waits:
        told[row["rank"], row["device"]] += row["end_ns"] - row["start_ns"]
    assert {key: ns for key, ns in found.items() if ns} == {key: ns for key, ns in told.items() if ns}


def test_communication_is_parted_into_wait_and_the_rest(shot: Shot) -> None:
    waits: dict[tuple[int, int], Counter[tuple[int, int]]] = defaultdict(Counter)
    rest: dict[tuple[int, int], Counter[tuple[int, int]]] = defaultdict(Counter)
    for kernel in shot.tables.table("communication").to_pylist():
        key, start, end = (kernel["rank"], kernel["device"]), kernel["start_ns"], kernel["end_ns"]
        arrived = start + max(kernel["wait"] or 0, kernel["likely_wait"] or 0)
        waits[key].update([(start, arrived)] if arrived > start else [])
        rest[key].update([(arrived, end)] if end > arrived else [])
    for (rank, device), events in shot.lanes("communication").items():
        found: dict[bool, Counter[tuple[int, int]]] = {True: Counter(), False: Counter()}
        for start, end, name in events:
            found["waiting" in name][start, end] += 1
        assert found == {True: waits.pop((rank, device)), False: rest.pop((rank, device))}
    assert not waits and not rest


def test_calls_and_ranges_are_those_of_the_threads_shown(shot: Shot) -> None:
    ranges, calls = shot.tables.table("host_ranges"), shot.tables.table("api_calls")
    tables = {
        label: by_thread(ranges.filter(pc.equal(ranges["category"].cast(pa.string()), category)))
        for label, category in CATEGORIES.items()
    } | {"runtime calls": by_thread(calls)}
    threads = {
        key: {label: of[key] for label, of in tables.items() if key in of} for of in tables.values() for key in of
    }
    shown = [number for number, group in enumerate(shot.timeline.groups) if group.device is None and group.label != JOB]
    for number in shown:
        found: dict[str, list[Event]] = defaultdict(list)
        for row in shot.rows:
            if row.group == number:
                found[row.lane] += shot.events(row)
        match = [key for key, events in threads.items() if events == {lane: sorted(e) for lane, e in found.items()}]
        assert match
        threads.pop(match[0])
    launching = set(by_thread(shot.tables.table("launches").rename_columns({"api_name": "name"})))
    assert launching.isdisjoint(threads)


def test_ranges_lie_at_their_depth(shot: Shot) -> None:
    """Below the ranges of their category that hold them."""
    depth = 0
    for before, row in zip([None, *shot.rows], shot.rows, strict=False):
        if row.lane not in CATEGORIES:
            continue
        nested = before is not None and (before.group, before.lane) == (row.group, row.lane)
        depth = depth + 1 if nested else 0
        if nested and before is not None:
            holder = np.searchsorted(before.start, row.start, side="right") - 1
            assert (holder >= 0).all() and (before.end[holder] > row.start).all()


def test_links_are_the_launches(shot: Shot) -> None:
    calls: dict[int, tuple[int, Event]] = {}
    ops: list[tuple[int, int, Event]] = []
    for row in shot.rows:
        rank = shot.timeline.groups[row.group].rank
        for link, event in zip(row.link, shot.events(row) if row.kind != "counter" else [], strict=True):
            if link and row.lane == "runtime calls":
                assert link not in calls
                calls[int(link)] = rank, event
            elif link:
                ops.append((rank, int(link), event))
    pairs = Counter((rank, calls[link][1], event[:2]) for rank, link, event in ops)
    assert all(calls[link][0] == rank for rank, link, _ in ops)
    assert pairs == Counter(
        (x["rank"], (x["start_ns"], x["end_ns"], x["api_name"]), (x["op_start_ns"], x["op_end_ns"]))
        for x in shot.tables.table("launches").to_pylist()
    )
    assert {link for _, link, _ in ops} == set(calls)


@pytest.mark.parametrize("most", [1500, 6000, 1_000_000])
def test_every_name_is_counted_and_has_its_places(shot: Shot, most: int) -> None:
    """The index says how often each name ran and how long, and each event is in a slice that has its name or is said to hold it."""
    header, rows = decode(shot.again(most=most).blob)
    count: Counter[tuple[str, str]] = Counter()
    time: Counter[tuple[str, str]] = Counter()
    for row in shot.rows if most < 1_000_000 else rows:
        kind = "streams" if row.lane.startswith("stream ") else row.lane
        for name, start, end in zip(row.name, row.start, row.end, strict=True) if row.kind != "counter" else ():
            count[name, kind] += 1
            time[name, kind] += int(end - start)
    left = count.keys() - header["index"]["counts"].keys()
    assert header["index"]["counts"] == {key: (count[key], time[key]) for key in count if key not in left}
    assert header["index"]["left"] == [len({name for name, _ in left}), sum(count[key] for key in left)]
    assert "places" not in header["index"] and (most < 2_000 or not left)
    unknown = {name for name, _ in left}
    for whole, row in zip(shot.rows, rows, strict=True):
        if row.kind == "counter":
            continue
        named = {(at, name) for at, name in enumerate(row.name)}
        assert named.isdisjoint(row.hidden) and all(row.count[at] > 1 for at, _ in row.hidden)
        assert {name for _, name in named | set(row.hidden)} == set(whole.name) - unknown
        spans = set(zip(whole.start, whole.end, whole.name, strict=True))
        exact = [at for at in range(len(row.start)) if not row.rough[at]]
        assert all((row.start[at], row.end[at], row.name[at]) in spans for at in exact)
        assert all(row.rough[row.count > 1])


@pytest.mark.parametrize("most", [1500, 6000])
def test_merged_lanes_keep_totals_and_counts(shot: Shot, most: int) -> None:
    small = shot.again(most=most)
    _, rows = decode(small.blob)
    assert sum(len(row.start) for row in rows) <= most
    assert [totals(rows), counts(rows)] == [totals(shot.rows), counts(shot.rows)]
    merged = sum(int(row.count[row.count > 1].sum()) for row in rows)
    assert small.merged_events == merged
    assert small.events == sum(counts(rows).values())
    assert all((row.link[row.count > 1] == 0).all() for row in rows)


def totals(rows: list[Row]) -> dict[tuple[int, str, int], int]:
    """Nanoseconds by group, lane and colour."""
    found: Counter[tuple[int, str, int]] = Counter()
    for row in rows:
        for colour in np.unique(row.colour):
            found[row.group, row.lane, int(colour)] += int((row.end - row.start)[row.colour == colour].sum())
    return found


def counts(rows: list[Row]) -> dict[tuple[int, str, int], int]:
    """Events by group, lane and colour."""
    found: Counter[tuple[int, str, int]] = Counter()
    for row in rows:
        for colour in np.unique(row.colour):
            found[row.group, row.lane, int(colour)] += int(row.count[row.colour == colour].sum())
    return found
