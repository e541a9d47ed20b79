"""Kernel statistics by name."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.tables import KERNEL_STATS


def kernel_stats(ledger_ops: pa.Table) -> pa.Table:
    """One row per (rank, device, kernel name), the largest total first within each device; ties by name."""
    tables = []
    for key, device in frames.split(ledger_ops):
        window = int(frames.ints(device, "end_ns").max() - frames.ints(device, "start_ns").min())
        kernels = device.filter(pa.array(frames.equals(device, "kind", "kernel")))
        if kernels.num_rows:
            tables.append(_device_stats(key, kernels, window))
    return frames.stack(KERNEL_STATS, tables)


def _device_stats(key: frames.Key, kernels: pa.Table, window: int) -> pa.Table:
    name, names = frames.codes(kernels, "name")
    length = frames.ints(kernels, "end_ns") - frames.ints(kernels, "start_ns")
    used, first, code = np.unique(name, return_index=True, return_inverse=True)
    count = np.bincount(code)
    total, longest = np.zeros(len(used), np.int64), np.zeros(len(used), np.int64)
    np.add.at(total, code, length)
    np.maximum.at(longest, code, length)
    order = np.array(sorted(range(len(used)), key=lambda i: (-total[i], names[used[i]] or "")), np.int64)
    return frames.build(
        KERNEL_STATS,
        {
            "rank": np.full(len(order), key[0]),
            "device": np.full(len(order), key[1]),
            "name": frames.names(used[order], names),
            "class": kernels["class"].take(pa.array(first[order])),
            "count": count[order],
            "total": total[order],
            "mean": total[order] // count[order],
            "longest": longest[order],
            "share": total[order] / max(window, 1),
        },
    )
