"""Host time by name: operators with what is their own and what they start on the GPU, and the calls that wait for the GPU."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames, most
from traceanalyzer.derive.operators.operators import GpuWork
from traceanalyzer.derive.operators.tables import OPERATOR_STATS, SYNC_STATS
from traceanalyzer.intervals import Array, coverage, innermost, latest, near, union

_WORK = ["rank", "process", "thread", "start_ns", "device", "op_start_ns", "op_end_ns"]
"""What is read of launches."""
_RANGES = ["rank", "process", "thread", "start_ns", "end_ns", "name", "category", "shapes"]
_BLOCK = 1 << 16
"""Stretches of time that are looked at together."""


def operator_stats(host_ranges: pa.Table, api_calls: pa.Table, launches: pa.Table) -> pa.Table:
    """One row per (rank, name, category) of operators, annotations, NVTX ranges and MPI calls, of each rank most own time first.

    Python frames are left out, as in the profiler's own table: what they do between two operators belongs to the operator around them.
    So does what the operating system does for it.
    The times of their own of all rows of a rank add up to the union of its ranges, thread by thread.
    """
    ranges = frames.filtered(host_ranges.select(_RANGES), ~frames.equals(host_ranges, "category", "python", "os"))
    if not ranges.num_rows:
        return OPERATOR_STATS.empty()
    rank, name, category = frames.ints(ranges, "rank"), *(frames.codes(ranges, c)[0] for c in ("name", "category"))
    start, end = frames.ints(ranges, "start_ns"), frames.ints(ranges, "end_ns")
    group = frames.dense(rank, name, category)
    first = np.flatnonzero(np.diff(np.maximum.accumulate(group), prepend=-1))
    threads = dict(frames.threads(ranges))
    thread = np.repeat(np.arange(len(threads)), [rows.stop - rows.start for rows in threads.values()])
    # What a range of one name adds to those of this name around it: nothing, where it lies in one.
    begin = np.minimum(np.maximum(start, frames.latest_before(frames.dense(thread, group), end)), end)
    own, called, launched, launched_within = np.zeros((4, len(start)), np.int64)
    calls, work = dict(frames.threads(api_calls)), _by_thread(launches.select(_WORK))
    call_start, call_end = (frames.ints(api_calls, c) for c in ("start_ns", "end_ns"))
    for key, rows in threads.items():
        low, high, owner = innermost(start[rows], end[rows])
        owner += rows.start
        np.add.at(own, owner, high - low)
        if key in calls:
            spans = union(call_start[calls[key]], call_end[calls[key]])
            for begun in range(0, len(low), _BLOCK):
                here = slice(begun, begun + _BLOCK)
                inside = coverage(low[here], high[here], near(spans, low[here][0], high[here][-1]))
                np.add.at(called, owner[here], inside)
        if key in work:
            gpu = GpuWork.of(work[key], np.zeros(work[key].num_rows, bool))
            launched_within[rows] = gpu.time(begin[rows], end[rows])
            at = latest(low, high, gpu.call)
            np.add.at(launched, owner[at[at >= 0]], np.diff(gpu.time_before)[at >= 0])

    def total(values: Array) -> Array:
        sums = np.zeros(len(first), np.int64)
        np.add.at(sums, group, values)
        return sums

    shapes, shape_calls, shape_count = _commonest_shapes(ranges["shapes"], group, len(first))
    found = frames.build(
        OPERATOR_STATS,
        {
            **{c: ranges[c].take(pa.array(first)) for c in ("rank", "name", "category")},
            "count": np.bincount(group),
            "total": total(end - begin),
            "self": total(own),
            "self_calls": total(called),
            "gpu_time": total(launched_within),
            "self_gpu_time": total(launched),
            "shapes": shapes,
            "shapes_count": shape_calls,
            "distinct_shapes": shape_count,
        },
    )
    return found.take(pa.array(np.lexsort((first, -frames.ints(found, "self"), rank[first])))).combine_chunks()


def _by_thread(table: pa.Table) -> dict[tuple[int, ...], pa.Table]:
    """The part of each (rank, process, thread)."""
    found = frames.together(*(frames.ints(table, c) for c in ("rank", "process", "thread")))
    # Of one thread it is all of it.
    return {key: table if len(rows) == table.num_rows else table.take(pa.array(rows)) for key, rows in found}


def _commonest_shapes(shapes: pa.ChunkedArray, group: Array, count: int) -> tuple[pa.Array, Array, Array]:
    """For each group its most frequent text (null without any), how often it has it, and how many different ones it has."""
    coded = shapes.combine_chunks().dictionary_encode()
    code = pc.fill_null(coded.indices, -1).to_numpy().astype(np.int64)
    known = code >= 0
    pairs, times = np.unique(group[known] * (len(coded.dictionary) + 1) + code[known], return_counts=True)
    which, text = np.divmod(pairs, len(coded.dictionary) + 1)
    best = np.lexsort((text, -times, which))
    best = best[np.diff(which[best], prepend=-1) != 0]
    found, often = np.full(count, -1), np.zeros(count, np.int64)
    found[which[best]], often[which[best]] = text[best], times[best]
    return coded.dictionary.take(pa.array(found, mask=found < 0)), often, np.bincount(which, minlength=count)


def sync_stats(api_calls: pa.Table, waits: frames.Flags, gaps: pa.Table) -> pa.Table:
    """One row per (rank, name) of the calls that wait for the GPU, the one that leaves it idle longest first within each rank.

    A driver call inside a runtime call is part of that one's wait and not counted again.
    """
    calls = api_calls.filter(pa.array(waits))
    start, end = frames.ints(calls, "start_ns"), frames.ints(calls, "end_ns")
    thread = frames.dense(*(frames.ints(calls, c) for c in ("rank", "process", "thread")))
    order = np.lexsort((-end, start, thread))
    outer = np.sort(order[start[order] >= frames.latest_before(thread[order], end[order])])
    calls, length = calls.take(pa.array(outer)), (end - start)[outer]
    blamed = gaps.select(["rank", "wait_name", "place", "start_ns", "end_ns"])
    blamed = blamed.filter(pc.is_valid(gaps["wait_name"])).combine_chunks()
    rows = []
    for (rank, name), at in _by_name(calls, "name").items():
        rows.append(
            {"rank": rank, "name": name, "count": len(at), "total": length[at].sum(), "longest": length[at].max()}
        )
    idle = _by_name(blamed, "wait_name")
    for row in rows:
        parts = blamed.take(pa.array(idle.get((row["rank"], row["name"]), np.empty(0, np.int64))))
        lost = frames.duration(parts)
        row |= {"idle": lost.sum(), "gap_count": len(lost), "place": most.top_name(parts, "place", lost)}
    rows.sort(key=lambda row: (row["rank"], -row["idle"], -row["total"], row["name"]))
    plain = pa.Table.from_pylist(rows, pa.schema([(c.name, _plain(c.type)) for c in SYNC_STATS.columns]))
    return plain.cast(SYNC_STATS.schema)


def _by_name(table: pa.Table, column: str) -> dict[tuple[int, str], Array]:
    """The rows of each (rank, name)."""
    code, names = frames.codes(table, column)
    return {(rank, names[at] or ""): rows for (rank, at), rows in frames.together(frames.ints(table, "rank"), code)}


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
