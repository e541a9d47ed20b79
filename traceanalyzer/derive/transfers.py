"""Copies and communication kernels, each with the time that no compute hides."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.busy import Busy
from traceanalyzer.derive.host import Host
from traceanalyzer.derive.tables import COMMUNICATION, COPIES
from traceanalyzer.intervals import Array, Spans, covered, join

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
                    "pageable": _pageable(found),
                    "exposed": _exposed(start, end, kernels),
                    "bandwidth": pa.array(rate, mask=np.isnan(rate)),
                    "compute_stream": _on_compute_stream(device)[which],
                    "range_name": names.take(found["row"].combine_chunks()),
                },
            )
        )
    return frames.stack(COPIES, tables)


def communication(ledger_ops: pa.Table, busy: dict[frames.Key, Busy]) -> pa.Table:
    """Every communication kernel on the ledger, in the order of gpu_ops."""
    tables = []
    for key, device in frames.split(ledger_ops):
        which = frames.equals(device, "class", "communication")
        if not which.any():
            continue
        found = device.filter(pa.array(which))
        start, end = frames.ints(found, "start_ns"), frames.ints(found, "end_ns")
        columns = ("rank", "device", "process", "stream", "start_ns", "end_ns", "name")
        tables.append(
            frames.build(
                COMMUNICATION,
                {
                    **{c: found[c] for c in columns},
                    "exposed": _exposed(start, end, busy[key].compute),
                    "compute_stream": _on_compute_stream(device)[which],
                },
            )
        )
    return frames.stack(COMMUNICATION, tables)


def _exposed(start: Array, end: Array, cover: Spans) -> Array:
    return end - start - covered(start, end, cover)


def _pageable(found: pa.Table) -> npt.NDArray[np.bool_]:
    result = np.zeros(found.num_rows, bool)
    for kind, side in HOST_SIDE.items():
        result |= frames.equals(found, "copy_kind", kind) & frames.equals(found, side, "pageable")
    return result


def _on_compute_stream(device: pa.Table) -> npt.NDArray[np.bool_]:
    """For each operation of one GPU, whether compute kernels run on its stream too."""
    stream = frames.dense(*(frames.ints(device, c) for c in ("process", "context", "stream")))
    compute = frames.equals(device, "class", "compute") & (
        frames.equals(device, "kind", "kernel") | frames.equals(device, "kind", "graph")
    )
    return np.isin(stream, stream[compute])


def _launching_ranges(ledger_ops: pa.Table, launches: pa.Table, host: Host) -> pa.DictionaryArray:
    """For each row of gpu_ops the innermost range around the call that started it; null where there is none."""
    name = np.full(ledger_ops["row"][-1].as_py() + 1 if ledger_ops.num_rows else 0, frames.NULL, np.int64)
    copies = launches.filter(pa.array(frames.equals(launches, "op_kind", "memcpy")))
    rank, process, thread, start, op = (frames.ints(copies, c) for c in ("rank", "process", "thread", "start_ns", "op"))
    for who in np.unique(np.stack((rank, process, thread), axis=1), axis=0).tolist():
        mine = (rank == who[0]) & (process == who[1]) & (thread == who[2])
        name[op[mine]] = host.thread(*who).work.name_at(start[mine])
    return host.named(name)
