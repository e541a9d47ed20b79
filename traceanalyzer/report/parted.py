"""The tiles of the ledger with exposed communication as waiting for other ranks and transfer, where that is told of a GPU."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import integers
from traceanalyzer.columns.frames import equals, row_groups
from traceanalyzer.intervals import EMPTY, Spans, intersect, subtract
from traceanalyzer.vocabulary.lines import EXPOSED_COMMUNICATION, EXPOSED_TRANSFER, EXPOSED_WAIT

TABLES = ("exposed_waits", "exposed_parts")
"""What tells it."""


def told_gpus(parts: pa.Table | None) -> set[tuple[int, int]]:
    """The (rank, device) of GPUs of which it is told; `parts` are rows of `exposed_parts`."""
    if parts is None:
        return set()
    columns = [parts[name].to_pylist() for name in ("rank", "device", "parted")]
    return {(rank, device) for rank, device, parted in zip(*columns, strict=True) if parted}


def parted(intervals: pa.Table, waits: pa.Table | None, parts: pa.Table | None) -> pa.Table:
    """`ledger_intervals`, those of each GPU in order of time; `waits` are rows of `exposed_waits`."""
    told = told_gpus(parts)
    if not told:
        return intervals
    communicates = equals(intervals, "line", EXPOSED_COMMUNICATION.name)
    waited = {} if waits is None else _spans(waits)
    start, end = integers(intervals, "start_ns"), integers(intervals, "end_ns")
    tables = []
    for key, rows in row_groups(intervals, ("rank", "device")):
        mine = rows[communicates[rows]]
        if key not in told or not len(mine):
            tables.append(intervals.take(pa.array(rows)))
            continue
        spans = start[mine], end[mine]
        cut = [intervals.take(pa.array(rows[~communicates[rows]]))]
        for one, how in ((EXPOSED_WAIT, intersect), (EXPOSED_TRANSFER, subtract)):
            low, high = how(spans, waited.get(key, EMPTY))
            cut.append(_tiles(intervals.schema, key, one.name, (low, high)))
        whole = pa.concat_tables(cut)
        tables.append(whole.take(pa.array(np.argsort(integers(whole, "start_ns"), kind="stable"))))
    return pa.concat_tables(tables)


def _spans(waits: pa.Table) -> dict[tuple[int, int], Spans]:
    start, end = integers(waits, "start_ns"), integers(waits, "end_ns")
    return {(key[0], key[1]): (start[rows], end[rows]) for key, rows in row_groups(waits, ("rank", "device"))}


def _tiles(schema: pa.Schema, key: tuple[int, ...], line: str, spans: Spans) -> pa.Table:
    count = len(spans[0])
    columns = {
        "rank": np.full(count, key[0]),
        "device": np.full(count, key[1]),
        "line": [line] * count,
        "start_ns": spans[0],
        "end_ns": spans[1],
    }
    return pa.table([pa.array(columns[field.name]).cast(field.type) for field in schema], schema=schema)
