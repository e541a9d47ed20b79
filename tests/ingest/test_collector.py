"""What the rows of a whole file say is the same however the rows are cut into blocks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer import intervals
from traceanalyzer.ingest.contract import FileFacts
from traceanalyzer.ingest.rows import external_sort
from traceanalyzer.ingest.rows.collector import Collector
from traceanalyzer.ingest.rows.gpu_rows import Extent

DAY = 86_400 * 10**9
MS = 10**6


def collected(folder, tables: dict[str, pa.Table], process: int | None = None) -> dict[str, pa.Table]:
    collector = Collector(folder)
    for name, rows in tables.items():
        collector.add(name, rows)
    return {
        name: pa.concat_tables(parts).combine_chunks() if (parts := list(blocks)) else None
        for name, blocks in collector.tables(FileFacts("test", process=process))
    }


@pytest.fixture(scope="module", params=[2, 3, 1000], autouse=True)
def block_rows(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(external_sort, "RUN_ROWS", request.param)
        yield


RANGE = st.tuples(st.integers(0, 1), st.integers(0, 30), st.integers(0, 12))


@given(rows=st.lists(RANGE, min_size=1, max_size=40))
def test_nesting_across_blocks(tmp_path_factory, rows):
    thread, start, length = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    given_ = pa.table(
        {
            "process": pa.repeat(pa.scalar(1, pa.int64()), len(rows)),
            "thread": thread,
            "start_ns": start,
            "end_ns": start + length,
            "name": pa.array(["r"] * len(rows)).dictionary_encode(),
            "category": pa.array(["nvtx"] * len(rows)).dictionary_encode(),
        }
    )
    found = collected(tmp_path_factory.mktemp("c"), {"host_ranges": given_})["host_ranges"]
    for one in np.unique(thread):
        here = np.flatnonzero(found["thread"].to_numpy() == one)
        starts, ends = (found[name].to_numpy()[here] for name in ("start_ns", "end_ns"))
        depth, parent = intervals.nesting(starts, ends)
        assert found["depth"].to_numpy()[here].tolist() == depth.tolist()
        assert found["parent"].to_pylist()[here[0] : here[-1] + 1] == [int(here[p]) if p >= 0 else None for p in parent]


def test_a_range_of_no_thread_lies_in_no_other(tmp_path):
    rows = {
        "process": [1, 1, 1],
        "thread": pa.array([None, None, 7], pa.int64()),
        "start_ns": [0, 1, 2],
        "end_ns": [9, 5, 3],
    }
    found = collected(
        tmp_path, {"host_ranges": pa.table({**rows, "name": pa.array(["a", "b", "c"]).dictionary_encode()})}
    )
    assert found["host_ranges"]["depth"].to_pylist() == [0, 0, 0]
    assert found["host_ranges"]["parent"].to_pylist() == [None, None, None]


def ops(rows: list[tuple[int, int]], **columns) -> pa.Table:
    start, end = zip(*rows, strict=True)
    return pa.table(
        {
            "device": pa.array([0] * len(rows), pa.int32()),
            "stream": [7] * len(rows),
            "start_ns": start,
            "end_ns": end,
            "name": pa.array([f"k{n}" for n in range(len(rows))]).dictionary_encode(),
            "correlation": list(range(1, len(rows) + 1)),
            **columns,
        }
    )


def calls(*rows: tuple[int, int, int]) -> pa.Table:
    process, correlation, start = zip(*rows, strict=True)
    return pa.table(
        {"process": process, "correlation": correlation, "start_ns": start, "end_ns": [s + 1 for s in start]}
    )


def quarantined(table: pa.Table) -> list[str]:
    return table.filter(table["quarantined"])["name"].to_pylist()


def test_a_swallower_is_found_across_blocks(tmp_path):
    """One that holds eight later ones of its stream; not one that holds seven."""
    seven = [(0, 100 * MS), *((n * MS, n * MS + 1) for n in range(1, 8))]
    eight = [(200 * MS, 300 * MS), *((n * MS, n * MS + 1) for n in range(201, 209))]
    tables = collected(tmp_path, {"gpu_ops": ops(seven + eight)})
    assert quarantined(tables["gpu_ops"]) == ["k8"]
    assert [(r["code"], r["count"], r["example"]) for r in tables["health"].to_pylist()] == [("TRC007", 1, "k8")]


def test_operations_far_from_the_recording(tmp_path):
    host = calls(*((1, n, DAY * 400 + n) for n in range(1, 20)))
    rows = [(DAY * 400 + n, DAY * 400 + n + 1) for n in range(6)]
    tables = collected(tmp_path, {"api_calls": host, "gpu_ops": ops([*rows, (0, 0), (5, 9), (DAY * 400, DAY * 900)])})
    assert sorted(quarantined(tables["gpu_ops"])) == ["k6", "k7", "k8"]


def test_where_most_operations_lie_outside_only_a_week_is_too_long(tmp_path):
    host = calls(*((1, n, n) for n in range(1, 20)))
    rows = [(DAY + n, DAY + n + 1) for n in range(6)]
    tables = collected(tmp_path, {"api_calls": host, "gpu_ops": ops([*rows, (DAY, 9 * DAY)])})
    assert quarantined(tables["gpu_ops"]) == ["k6"]


def test_the_importers_word_is_final(tmp_path):
    rows = [(1, 2), (0, 0), (3, 4)]
    tables = collected(tmp_path, {"gpu_ops": ops(rows, quarantined=[True, False, None])})
    assert quarantined(tables["gpu_ops"]) == ["k0"]
    assert tables["health"] is None or not tables["health"].num_rows


def test_whose_an_operation_is(tmp_path):
    """The only process with a call of its correlation id, nobody's where several have one, else the file's own."""
    host = calls((10, 1, 0), (10, 2, 5), (20, 2, 6), (20, 3, 7))
    found = collected(tmp_path, {"api_calls": host, "gpu_ops": ops([(1, 2), (3, 4), (5, 6), (7, 8)])}, process=10)
    assert found["gpu_ops"]["process"].to_pylist() == [10, None, 20, 10]
    assert found["health"].select(["code", "severity", "count"]).to_pylist() == [
        {"code": "TRC006", "severity": "low", "count": 1}
    ]


@given(far=st.lists(st.integers(-(2**60), 2**60), max_size=9), size=st.integers(1, 7))
def test_the_extent_leaves_out_what_lies_far_off(far, size):
    """Of 19 events within a second and fewer elsewhere: those within a week of the middle one."""
    middle = 1_700_000_000 * 10**9
    near = [middle + n for n in range(19)]
    starts = [s for s in far if abs(s - middle) > 8 * DAY]
    extent = Extent()
    everything = sorted(near + starts, key=lambda s: s % 7)
    for first in range(0, len(everything), size):
        part = everything[first : first + size]
        extent.add(pa.table({"start_ns": part, "end_ns": [s + 5 for s in part]}))
    assert extent.span() == (middle, middle + 23)


def test_no_events_no_extent():
    assert Extent().span() is None


def test_a_process_of_minus_one_and_none_have_steps_of_their_own(tmp_path):
    rows = {
        "process": pa.array([-1, None], pa.int64()),
        "thread": pa.array([1, 1], pa.int64()),
        "start_ns": [0, 5],
        "end_ns": [10, 15],
        "name": pa.array(["step 0", "step 1"]).dictionary_encode(),
        "category": pa.array(["annotation"] * 2).dictionary_encode(),
    }
    steps = collected(tmp_path, {"host_ranges": pa.table(rows)})["steps"]
    assert steps.select(["process", "index", "name"]).to_pylist() == [
        {"process": -1, "index": 0, "name": "step 0"},
        {"process": None, "index": 0, "name": "step 1"},
    ]
