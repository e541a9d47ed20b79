"""Whether communication and computation go through one hardware queue, as with CUDA_DEVICE_MAX_CONNECTIONS=1.

Streams then run in the order in which their work was launched: the computation launched behind a collective waits for it, even
though it is on another stream, was queued long before and nothing asks it to wait.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.spill import forget
from traceanalyzer.derive.launches.launches import call_of
from traceanalyzer.derive.streams.handover import HANDOVER_NS
from traceanalyzer.derive.streams.transfers import computes
from traceanalyzer.intervals import Array

_WAITS = re.compile(r"StreamWaitEvent|StreamSynchronize|DeviceSynchronize|CtxSynchronize|EventSynchronize")


def one_queue(kernels: pa.Table, ledger_ops: pa.Table, launches: pa.Table, api_calls: pa.Table) -> pa.Array:
    """For each communication kernel, whether the computation launched next was held back until it ended, with no wait launched between
    them; null where that computation could not have run beside it anyway.
    """
    held = np.zeros(kernels.num_rows, bool)
    told = np.zeros(kernels.num_rows, bool)
    waits = api_calls.filter(pa.array(frames.where(api_calls, "name", lambda name: _WAITS.search(name) is not None)))
    waited = {
        key: np.sort(frames.ints(waits, "start_ns")[rows]) for key, rows in frames.groups(waits, "rank", "process")
    }
    called = frames.ints_at(launches, "start_ns", call_of(frames.ints(ledger_ops, "row"), launches))
    own_call = frames.ints_at(launches, "start_ns", call_of(frames.ints(kernels, "row"), launches))
    places = dict(frames.groups(kernels))
    for key, here in frames.groups(ledger_ops):
        if key in places:
            at = places[key]
            mine, ops = (
                table.slice(rows.start, rows.stop - rows.start) for table, rows in ((kernels, at), (ledger_ops, here))
            )
            told[at], held[at] = _of_gpu(mine, own_call[at], ops, called[here], waited)
            forget()
    return pa.array(held, mask=~told)


def _of_gpu(
    kernels: pa.Table, own_call: Array, ops: pa.Table, called: Array, waited: dict[frames.Key, Array]
) -> tuple[frames.Flags, frames.Flags]:
    """Of one GPU: which kernels tell anything, and which of them held the next computation back."""
    start, end = frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns")
    free = free_from(frames.streams(ops), start, end)
    compute = np.flatnonzero(computes(ops) & (called != frames.NULL))
    compute = compute[np.argsort(called[compute], kind="stable")]
    nothing = np.zeros(kernels.num_rows, bool)
    if not len(compute):
        return nothing, nothing
    place = np.searchsorted(called[compute], own_call, side="right")
    known = (own_call != frames.NULL) & (place < len(compute))
    following = compute[np.minimum(place, len(compute) - 1)]
    begun, ended = frames.ints(kernels, "start_ns"), frames.ints(kernels, "end_ns")
    elsewhere = frames.ints(kernels, "stream") != frames.ints(ops, "stream")[following]
    ready = np.maximum(called[following], free[following])
    told = known & elsewhere & (ready + HANDOVER_NS <= ended) & (free[following] <= begun + HANDOVER_NS)
    after = start[following] - ended
    held = told & (after >= 0) & (after <= HANDOVER_NS)
    process = frames.ints(kernels, "process")
    for key, calls in waited.items():
        mine = process == key[1]
        between = np.searchsorted(calls, called[following]) > np.searchsorted(calls, own_call)
        held &= ~(mine & between)
    return told, held


def free_from(stream: Array, start: Array, end: Array) -> Array:
    """For each operation the end of the one before it on its stream; for the first one a time before everything."""
    order = np.lexsort((start, stream))
    before = np.full(len(start), np.iinfo(np.int64).min // 2)
    same = stream[order][1:] == stream[order][:-1]
    before[order[1:][same]] = end[order[:-1][same]]
    return before
