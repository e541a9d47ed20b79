"""Steps as the GPU saw them. The GPU runs behind its host, so an operation belongs to the step in which it was launched."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.tables import STEP_STATS


def step_stats(steps: pa.Table, launches: pa.Table) -> pa.Table:
    """One row per (rank, device, step) that launched something.

    A step lasts from its first operation to the first operation of the next step; the last one to the end of its last operation.
    """
    if not steps.num_rows or not launches.num_rows:
        return STEP_STATS.empty()
    tables = []
    launches = launches.sort_by([("rank", "ascending"), ("device", "ascending"), ("op_start_ns", "ascending")])
    for key, rows in frames.groups(launches):
        table = _device_steps(key, steps, launches.slice(rows.start, rows.stop - rows.start))
        if table is not None:
            tables.append(table)
    return frames.stack(STEP_STATS, tables)


def _device_steps(key: frames.Key, steps: pa.Table, launches: pa.Table) -> pa.Table | None:
    mine = steps.filter(pa.array(frames.ints(steps, "rank") == key[0]))
    # A device shared by processes is counted in the steps of the process that launches most on it.
    process = frames.ints(launches, "process")
    counts = {int(p): int((process == p).sum()) for p in np.unique(frames.ints(mine, "process"))}
    if not counts or not max(counts.values()):
        return None
    leader = max(sorted(counts), key=lambda p: counts[p])
    mine = mine.filter(pa.array(frames.ints(mine, "process") == leader))
    launches = launches.filter(pa.array(process == leader))

    start, end = frames.ints(mine, "start_ns"), frames.ints(mine, "end_ns")
    called = frames.ints(launches, "start_ns")
    step = np.searchsorted(start, called, side="right") - 1
    inside = (step >= 0) & (called < end[np.maximum(step, 0)])
    step, launches = step[inside], launches.filter(pa.array(inside))
    if not len(step):
        return None
    op_start, op_end = frames.ints(launches, "op_start_ns"), frames.ints(launches, "op_end_ns")
    first, last = np.full(len(start), np.iinfo(np.int64).max), np.full(len(start), frames.NULL)
    np.minimum.at(first, step, op_start)
    np.maximum.at(last, step, op_end)
    ops = np.bincount(step, minlength=len(start))
    kernels = np.bincount(step[frames.equals(launches, "op_kind", "kernel")], minlength=len(start))
    seen = np.flatnonzero(ops)
    seen = seen[np.argsort(first[seen], kind="stable")]
    begin = first[seen]
    return frames.build(
        STEP_STATS,
        {
            "rank": np.full(len(seen), key[0]),
            "device": np.full(len(seen), key[1]),
            "index": np.arange(len(seen)),
            "name": mine["name"].take(pa.array(seen)),
            "method": mine["method"].take(pa.array(seen)),
            "start_ns": begin,
            "end_ns": np.concatenate((begin[1:], [max(int(last[seen[-1]]), int(begin[-1]))])),
            "complete": np.arange(len(seen)) < len(seen) - 1,
            "gpu_op_count": ops[seen],
            "kernel_count": kernels[seen],
        },
    )
