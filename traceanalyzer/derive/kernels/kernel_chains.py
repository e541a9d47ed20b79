"""Chains of kernels that a compiler could fuse: neighbours on one stream that only read and write memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.derive.kernels.kernels import by_name, is_compute
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
    start, end = frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns")
    stream = frames.streams(ops)
    order = np.argsort(stream, kind="stable")
    fusible = by_name(ops, lambda kernel: kernel.family in FUSIBLE and not kernel.compiler_fused, bool) & is_compute(
        ops
    )
    fusible, start, end, stream = fusible[order], start[order], end[order], stream[order]
    step = np.searchsorted(np.sort(steps), start, side="right")
    goes_on = fusible[1:] & fusible[:-1] & (stream[1:] == stream[:-1]) & (step[1:] == step[:-1])
    chain = np.cumsum(np.concatenate(([True], ~goes_on))) - 1
    rows = np.flatnonzero(fusible)
    _, chain, size = np.unique(chain[rows], return_inverse=True, return_counts=True)
    rows = rows[size[chain] > 1]
    if not len(rows):
        return KERNEL_CHAINS.empty()
    chain = frames.dense(chain[size[chain] > 1])
    length = end[rows] - start[rows]
    # The rows of a chain are neighbours: where each begins, and the order by length within it.
    first = np.flatnonzero(np.diff(chain, prepend=-1))
    size = np.diff(np.append(first, len(rows)))
    longest = length[np.lexsort((-length, chain))]
    name, names = frames.codes(ops, "name")
    name = name[order][rows]
    distinct = np.unique(chain * len(names) + name) // len(names)
    at = order[rows[first]]
    return frames.build(
        KERNEL_CHAINS,
        {
            "rank": np.full(len(first), key[0]),
            "device": np.full(len(first), key[1]),
            "process": ops["process"].take(pa.array(at)),
            "stream": ops["stream"].take(pa.array(at)),
            "start_ns": start[rows[first]],
            "end_ns": np.maximum.reduceat(end[rows], first),
            "kernels": size,
            "distinct": np.bincount(distinct),
            "busy": np.add.reduceat(length, first),
            "longest_two": longest[first] + longest[first + 1],
            "name": frames.names(name[_longest(chain, length)], names),
        },
    )


def _longest(chain: Array, length: Array) -> Array:
    """The position of the longest kernel of each chain, the earliest of equals."""
    order = np.lexsort((-length, chain))
    return order[np.flatnonzero(np.diff(chain[order], prepend=-1))]
