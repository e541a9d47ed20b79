"""The tiles of the ledger with exposed communication as waiting for other ranks and transfer, where that is told of a GPU."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import integers, short_encoded
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
    code, lines = short_encoded(intervals, "line")
    lines = list(lines)
    start, end = integers(intervals, "start_ns"), integers(intervals, "end_ns")
    every = [(start[:0], end[:0], code[:0])]
    found = list(row_groups(intervals, ("rank", "device")))
    for key, rows in found:
        mine = rows[communicates[rows]]
        if key not in told or not len(mine):
            every.append((start[rows], end[rows], code[rows]))
            continue
        others = rows[~communicates[rows]]
        cut = [(start[others], end[others], code[others])]
        for one, how in ((EXPOSED_WAIT, intersect), (EXPOSED_TRANSFER, subtract)):
            low, high = how((start[mine], end[mine]), waited.get(key, EMPTY))
            if len(low) and one.name not in lines:
                lines.append(one.name)
            cut.append((low, high, np.full(len(low), lines.index(one.name) if len(low) else 0, np.int32)))
        whole = [np.concatenate(column) for column in zip(*cut, strict=True)]
        order = np.argsort(whole[0], kind="stable")
        every.append((whole[0].take(order), whole[1].take(order), whole[2].take(order)))
    counts = [len(low) for low, _, _ in every[1:]]
    low, high, line = (np.concatenate(column) for column in zip(*every, strict=True))
    columns = {
        **{name: np.repeat([key[at] for key, _ in found], counts) for at, name in enumerate(("rank", "device"))},
        "line": pa.DictionaryArray.from_arrays(pa.array(line, mask=line < 0), pa.array(lines, pa.string())),
        "start_ns": low,
        "end_ns": high,
    }
    arrays = [pa.array(columns[field.name]).cast(field.type) for field in intervals.schema]
    return pa.Table.from_arrays(arrays, schema=intervals.schema)


def _spans(waits: pa.Table) -> dict[tuple[int, int], Spans]:
    start, end = integers(waits, "start_ns"), integers(waits, "end_ns")
    return {(key[0], key[1]): (start[rows], end[rows]) for key, rows in row_groups(waits, ("rank", "device"))}
