"""Copies, each with the time that no kernel hides."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.busy import Busy
from traceanalyzer.derive.host import Host
from traceanalyzer.derive.tables import COPIES
from traceanalyzer.derive.transfers import apart, exposed, on_compute_stream
from traceanalyzer.intervals import join

HOST_SIDE = {"htod": "src_memory", "dtoh": "dst_memory"}


def copies(ledger_ops: pa.Table, busy: dict[frames.Key, Busy], launches: pa.Table, host: Host) -> pa.Table:
    """Every copy on the ledger, in the order of gpu_ops."""
    names = _launching_ranges(ledger_ops, launches, host)
    tables = []
    for key, device in frames.split(ledger_ops):
        which = frames.equals(device, "kind", "memcpy")
        if not which.any():
            continue
        kernels = join(busy[key].compute, busy[key].communication)
        found = device.filter(pa.array(which))
        start, end = frames.ints(found, "start_ns"), frames.ints(found, "end_ns")
        size = frames.ints(found, "bytes")
        rate = np.where((size != frames.NULL) & (end > start), size / np.maximum(end - start, 1) * 1e9, np.nan)
        tables.append(
            frames.build(
                COPIES,
                {
                    **{c: found[c] for c in ("rank", "device", "process", "stream", "start_ns", "end_ns")},
                    **{c: found[c] for c in ("copy_kind", "bytes", "src_memory", "dst_memory")},
                    "pageable": pageable(found),
                    "exposed": exposed(*apart(start, end), kernels),
                    "bandwidth": pa.array(rate, mask=np.isnan(rate)),
                    "compute_stream": on_compute_stream(device)[which],
                    "range_name": names.take(found["row"].combine_chunks()),
                },
            )
        )
    return frames.stack(COPIES, tables)


def pageable(found: pa.Table) -> pa.Array:
    """For each copy, whether its host side is pageable memory; null where it has one and the trace does not say of what kind."""
    result, unknown = np.zeros((2, found.num_rows), bool)
    for kind, side in HOST_SIDE.items():
        here = frames.equals(found, "copy_kind", kind)
        memory, memories = frames.codes(found, side)
        result |= here & np.array([m == "pageable" for m in memories])[memory]
        unknown |= here & np.array([m in (None, "unknown") for m in memories])[memory]
    return pa.array(result, mask=unknown)


def _launching_ranges(ledger_ops: pa.Table, launches: pa.Table, host: Host) -> pa.DictionaryArray:
    """For each row of gpu_ops the innermost range around the call that started it; null where there is none."""
    name = np.full(ledger_ops["row"][-1].as_py() + 1 if ledger_ops.num_rows else 0, frames.NULL, np.int64)
    copies = launches.filter(pa.array(frames.equals(launches, "op_kind", "memcpy")))
    rank, process, thread, start, op = (frames.ints(copies, c) for c in ("rank", "process", "thread", "start_ns", "op"))
    for who in np.unique(np.stack((rank, process, thread), axis=1), axis=0).tolist():
        mine = (rank == who[0]) & (process == who[1]) & (thread == who[2])
        name[op[mine]] = host.thread(*who).work.name_at(start[mine])
    return host.named(name)
