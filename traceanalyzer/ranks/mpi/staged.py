"""Data of a GPU that goes to other ranks through the host: a copy down, calls of MPI, a copy up.

Traces hold no pointers, so this is told by the order, by times that are close, and by the sizes where calls have them. Copies that run
in calls of MPI are the library's own, which then takes pointers of the GPU already.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array, Spans, coverage, union
from traceanalyzer.ranks.mpi.tables import STAGED_MESSAGES
from traceanalyzer.ranks.waits.waited import IN_MPI

LEAST_BYTES = 4 << 10
"""Smaller copies are the results of reductions, whose cost is latency."""
CLOSE_NS = 500_000
"""Packing and unpacking on the host takes less, or no longer than the exchange itself."""
ALIKE = 2.0
"""Halos are copied a little wider than they are sent; with a factor beyond this it is other data."""
_DOWN, _CALL, _UP = 0, 1, 2


def staged_messages(copies: pa.Table, mpi_parts: pa.Table, own_intervals: pa.Table) -> pa.Table:
    """Every such exchange, by GPU. `own_intervals` are tiles without waiting for late ranks."""
    if not mpi_parts.num_rows or not copies.num_rows:
        return STAGED_MESSAGES.empty()
    tables = []
    rank = frames.ints(mpi_parts, "rank")
    tiles = frames.by_device(own_intervals)
    moves = frames.equals(copies, "copy_kind", "dtoh", "htod") & (frames.ints(copies, "bytes") >= LEAST_BYTES)
    for key, mine in frames.split(copies.filter(pa.array(moves))):
        calls = mpi_parts.filter(pa.array((rank == key[0]) & ~frames.equals(mpi_parts, "kind", "barrier")))
        calls = calls.filter(calls["kind"].is_valid())
        idle = tiles[key].filter(pa.array(frames.equals(tiles[key], "line", IN_MPI)))
        if calls.num_rows:
            tables.append(_of_gpu(key, mine, calls, (frames.ints(idle, "start_ns"), frames.ints(idle, "end_ns"))))
    return frames.stack(STAGED_MESSAGES, tables)


def _of_gpu(key: frames.Key, copies: pa.Table, calls: pa.Table, idle: Spans) -> pa.Table:
    begin, end = frames.ints(calls, "start_ns"), frames.ints(calls, "end_ns")
    start, stop = frames.ints(copies, "start_ns"), frames.ints(copies, "end_ns")
    copies = copies.filter(pa.array(coverage(start, stop, union(begin, end)) == 0))
    start, stop = frames.ints(copies, "start_ns"), frames.ints(copies, "end_ns")
    down = frames.equals(copies, "copy_kind", "dtoh")
    what = np.concatenate((np.where(down, _DOWN, _UP), np.full(len(begin), _CALL)))
    first, last = np.concatenate((start, begin)), np.concatenate((stop, end))
    row = np.concatenate((np.arange(len(start)), np.arange(len(begin))))
    order = np.lexsort((what, first))
    what, first, last, row = what[order], first[order], last[order], row[order]
    # Runs of what follows each other, and of those the three that make an exchange.
    head = np.flatnonzero(np.diff(what, prepend=-1))
    kind = what[head]
    at = np.flatnonzero((kind[:-2] == _DOWN) & (kind[1:-1] == _CALL) & (kind[2:] == _UP)) if len(kind) > 2 else head[:0]
    begins, ends = np.minimum.reduceat(first, head), np.maximum.reduceat(last, head)
    took = (ends - begins)[at] + (ends - begins)[at + 1] + (ends - begins)[at + 2]
    close = np.maximum(CLOSE_NS, took)
    at = at[(begins[at + 1] - ends[at] <= close) & (begins[at + 2] - ends[at + 1] <= close)]
    run = np.repeat(np.arange(len(head)), np.diff(np.append(head, len(what))))
    size, sent = frames.ints(copies, "bytes"), _sent(calls)
    is_call = what == _CALL

    def of_copies(values: Array) -> Array:
        return np.bincount(run[~is_call], values[row[~is_call]], len(head)).astype(np.int64)

    known = np.bincount(run[is_call], sent[row[is_call]] == NULL, len(head)) == 0
    total = np.bincount(run[is_call], np.maximum(sent, 0)[row[is_call]], len(head)).astype(np.int64)
    known &= total > 0
    length = np.where(is_call, last - first, -1)
    by_length = np.lexsort((length, run))
    longest = row[by_length[np.append(head[1:], len(what)) - 1]]
    bytes_, exposed, one = (
        of_copies(size),
        of_copies(frames.ints(copies, "exposed")),
        of_copies(np.ones(len(size), np.int64)),
    )
    here = total[at + 1]
    fits = (here <= ALIKE * bytes_[at]) & (bytes_[at] <= ALIKE * here)
    name, names = frames.codes(calls, "name")
    return frames.build(
        STAGED_MESSAGES,
        {"rank": np.full(len(at), key[0]), "device": np.full(len(at), key[1])}
        | {"start_ns": begins[at], "end_ns": ends[at + 2], "name": frames.names(name[longest[at + 1]], names)}
        | {"copies": one[at] + one[at + 2], "down": bytes_[at], "up": bytes_[at + 2]}
        | {"sent": pa.array(here, mask=~known[at + 1]), "fits": pa.array(fits, mask=~known[at + 1])}
        | {"exposed": exposed[at] + exposed[at + 2]}
        | {"in_mpi": coverage(begins[at + 1], ends[at + 1], idle)},
    )


def _sent(calls: pa.Table) -> Array:
    """What each call sends, in bytes: 0 for a receive, NULL where it is not known."""
    return np.where(frames.equals(calls, "kind", "receive"), 0, frames.ints(calls, "bytes"))
