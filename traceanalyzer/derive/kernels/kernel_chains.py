"""Chains of kernels that a compiler could fuse: neighbours on one stream that only read and write memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.derive.kernels.kernel_names import kernel_of
from traceanalyzer.derive.kernels.kernels import UNNAMED, is_compute
from traceanalyzer.derive.kernels.lanes import by_stream
from traceanalyzer.derive.kernels.tables import KERNEL_CHAINS
from traceanalyzer.intervals import Array

# What a compiler fuses with its neighbours: a value of the result needs one value, or one row, of each input.
FUSIBLE = ("elementwise", "reduction", "normalization", "softmax", "copy", "random")


def kernel_chains(ledger_ops: pa.Table, step_stats: pa.Table) -> pa.Table:
    """One row per chain of at least two kernels, sorted by (rank, device, stream, start); no chain crosses into another step."""
    steps = {key: frames.ints(rows, "start_ns") for key, rows in frames.split(step_stats)}
    tables = [
        _device_chains(key, device, steps.get(key, np.empty(0, np.int64))) for key, device in frames.split(ledger_ops)
    ]
    return frames.stack(KERNEL_CHAINS, [table for table in tables if table.num_rows])


def _device_chains(key: frames.Key, ops: pa.Table, steps: Array) -> pa.Table:
    code, names = frames.codes(ops, "name")
    told = [kernel_of(name) if name else UNNAMED for name in names]
    fuses = np.array([kernel.family in FUSIBLE and not kernel.compiler_fused for kernel in told], bool)
    fusible = fuses[code] & is_compute(ops)
    if not fusible.any():
        return KERNEL_CHAINS.empty()
    stream, order = by_stream(ops)
    place = np.flatnonzero(fusible[order])
    rows = order[place]
    start, end = frames.ints(ops, "start_ns")[rows], frames.ints(ops, "end_ns")[rows]
    # Neighbours in `rows` are so on their stream if nothing stands between them.
    step, stream = np.searchsorted(np.sort(steps), start, side="right"), stream[rows]
    begins = (np.diff(place) > 1) | (np.diff(stream) != 0) | (np.diff(step) != 0)
    first = np.flatnonzero(np.append(True, begins))
    size = np.diff(np.append(first, len(rows)))
    kept = np.repeat(size > 1, size)
    rows, start, end, size = rows[kept], start[kept], end[kept], size[size > 1]
    if not len(rows):
        return KERNEL_CHAINS.empty()
    first, chain = np.cumsum(size) - size, np.repeat(np.arange(len(size)), size)
    length, name = end - start, code[rows]
    longest = np.maximum.reduceat(length, first)
    # The earliest of equals.
    top = np.flatnonzero(length == longest[chain])
    top = top[np.flatnonzero(np.diff(chain[top], prepend=-1))]
    others = length.copy()
    others[top] = -1
    pairs = np.sort(chain * len(names) + name)
    distinct = pairs[np.append(True, pairs[1:] != pairs[:-1])] // len(names)
    at = pa.array(rows[first])
    return frames.build(
        KERNEL_CHAINS,
        {
            "rank": np.full(len(first), key[0]),
            "device": np.full(len(first), key[1]),
            "process": ops["process"].take(at),
            "stream": ops["stream"].take(at),
            "start_ns": start[first],
            "end_ns": np.maximum.reduceat(end, first),
            "kernels": size,
            "distinct": np.bincount(distinct),
            "busy": np.add.reduceat(length, first),
            "longest_two": longest + np.maximum.reduceat(others, first),
            "name": frames.names(name[top], names),
        },
    )
