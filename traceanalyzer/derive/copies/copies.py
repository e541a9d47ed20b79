"""Copies, each with the time that no kernel hides."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.spill import forget
from traceanalyzer.derive.copies.pinned import pinned_time
from traceanalyzer.derive.copies.round_trips import round_trips
from traceanalyzer.derive.copies.tables import COPIES
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.launches.launches import launching_ranges
from traceanalyzer.derive.ledger.busy import Busy
from traceanalyzer.derive.streams.default_stream import OTHER, kept_in_line, roles
from traceanalyzer.derive.streams.transfers import exposed_time, first_coverage, on_compute_stream
from traceanalyzer.intervals import join

HOST_SIDE = {"htod": "src_memory", "dtoh": "dst_memory"}
_OF_OPS = (
    *("rank", "device", "process", "stream", "start_ns", "end_ns"),
    *("copy_kind", "migration_cause", "bytes", "src_memory", "dst_memory"),
)


def copies(
    ledger_ops: pa.Table,
    busy: dict[frames.Key, Busy],
    launches: pa.Table,
    host: Host,
    devices: pa.Table,
    host_ranges: pa.Table,
    stream_events: pa.Table,
    program: pa.Table,
) -> pa.Table:
    """Every copy on the ledger, in the order of gpu_ops."""
    which = frames.equals(ledger_ops, "kind", "memcpy")
    if not which.any():
        return COPIES.empty()
    found = frames.filtered(ledger_ops.select([*_OF_OPS, "row"]), which)
    start, end = frames.ints(found, "start_ns"), frames.ints(found, "end_ns")
    uncovered = np.empty(len(start), np.int64)
    for key, rows in frames.groups(found):
        kernels = join(busy[key].compute, busy[key].communication)
        uncovered[rows] = exposed_time(*first_coverage(start[rows], end[rows]), kernels)
    forget()
    size = frames.ints(found, "bytes")
    rate = np.where((size != frames.NULL) & (end > start), size / np.maximum(end - start, 1) * 1e9, np.nan)
    from_pageable = pageable(found)
    role, known = roles(ledger_ops, stream_events, program)
    in_line = kept_in_line(ledger_ops, np.where(known, role, OTHER))[which]
    forget()
    table = frames.build(
        COPIES,
        {
            **{c: found[c] for c in _OF_OPS},
            "pageable": from_pageable,
            "pinned": frames.numbers(pinned_time(found, from_pageable, devices)),
            "exposed": uncovered,
            "bandwidth": pa.array(rate, mask=np.isnan(rate)),
            "compute_stream": on_compute_stream(ledger_ops)[which],
            "kept_in_line": in_line,
            "round_trip": round_trips(found, host_ranges),
            "range_name": launching_ranges(frames.ints(found, "row"), launches, host),
        },
    )
    return frames.concatenated([table])


def pageable(found: pa.Table) -> pa.Array:
    """For each copy, whether its host side is pageable memory; null where it has one and the trace does not say of what kind."""
    result, unknown = np.zeros((2, found.num_rows), bool)
    for kind, side in HOST_SIDE.items():
        if kind not in pc.unique(found["copy_kind"]).to_pylist():
            continue
        here = frames.equals(found, "copy_kind", kind)
        result |= here & frames.equals(found, side, "pageable")
        unknown |= here & ~frames.where(found, side, lambda memory: memory != "unknown")
    return pa.array(result, mask=unknown)
