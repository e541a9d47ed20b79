"""What the tables themselves say about the health of the trace, added to what the importer met."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.busy import on_ledger
from traceanalyzer.model.schema import HEALTH

CAPTURE = ("StreamBeginCapture", "StreamEndCapture")
MISSING_SHARE = 0.2
"""Launches without an operation are normal at the edge of a capture; this many are not."""


def health(health: pa.Table, gpu_ops: pa.Table, api_calls: pa.Table, launches: pa.Table) -> pa.Table:
    """The importer's rows and TRC002 for each rank whose launches left no operations."""
    ops, calls = on_ledger(gpu_ops), _real_launches(api_calls)
    rows = []
    for rank in np.unique(frames.ints(calls, "rank")).tolist():
        launched = int((frames.ints(calls, "rank") == rank).sum())
        seen = _distinct_calls(launches, rank)
        if not (frames.ints(ops, "rank") == rank).any():
            message = "the trace has kernel launches but no GPU activity at all: the GPU side was not recorded"
            rows.append(_row(rank, "high", message, launched))
        elif launched - seen > MISSING_SHARE * launched:
            message = "kernel launches whose kernels are missing from the trace: GPU time may be under-counted"
            rows.append(_row(rank, "low", message, launched - seen))
    return pa.concat_tables([health, pa.Table.from_pylist(rows, schema=HEALTH.schema)]) if rows else health


def _real_launches(api_calls: pa.Table) -> pa.Table:
    """Launch calls that start work: not those that a stream capture only records into a CUDA graph."""
    name, names = frames.codes(api_calls, "name")
    begins, ends = (np.array([v is not None and v.endswith(e) for v in names])[name] for e in CAPTURE)
    start, rank = frames.ints(api_calls, "start_ns"), frames.ints(api_calls, "rank")
    keep = frames.equals(api_calls, "class", "launch")
    for one in np.unique(rank[begins]).tolist():
        opened, closed = np.sort(start[begins & (rank == one)]), np.sort(start[ends & (rank == one)])
        keep &= ~((rank == one) & (np.searchsorted(opened, start) > np.searchsorted(closed, start)))
    return api_calls.filter(pa.array(keep))


def _distinct_calls(launches: pa.Table, rank: int) -> int:
    """Launch calls of the rank that started at least one kernel or graph."""
    started = launches["first"].to_numpy() & (frames.ints(launches, "rank") == rank)
    kinds = frames.equals(launches, "op_kind", "kernel") | frames.equals(launches, "op_kind", "graph")
    return int((started & kinds).sum())


def _row(rank: int, severity: str, message: str, count: int) -> dict[str, object]:
    return {"rank": rank, "code": "TRC002", "severity": severity, "message": message, "count": count, "example": None}
