"""Which host call started which GPU operation, and in which range.

A correlation id is a key only within a process, and one call can start many operations (CUDA graphs). Operations queued before the
capture, or whose records were dropped, have no call and no row here.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.launches.tables import LAUNCHES
from traceanalyzer.intervals import Array

MOST_GPUS = 64
"""More than any machine has. What a host thread did is told for each GPU that waited for it meanwhile, so with as many GPUs as one
likes there would be no end of it."""
_OF_OPS = ["rank", "process", "correlation", "row", "device", "stream", "start_ns", "end_ns", "kind"]
_OF_CALLS = ["rank", "process", "correlation", "thread", "start_ns", "end_ns", "name"]


def links(ledger_ops: pa.Table, api_calls: pa.Table) -> pa.Table:
    """Join on (rank, process, correlation), in the order of the operations, of which each has one row at most.

    Of several calls with one id (a runtime call and the driver call inside it) the first counts.
    """
    ops, calls = (
        table.select(columns).filter(pc.is_valid(table["correlation"]))
        for table, columns in ((ledger_ops, _OF_OPS), (api_calls, _OF_CALLS))
    )
    if not ops.num_rows or not calls.num_rows:
        return LAUNCHES.empty()

    key = frames.packed(
        *(np.concatenate((frames.ints(ops, c), frames.ints(calls, c))) for c in ("rank", "process", "correlation"))
    )
    op_key, call_key = key[: ops.num_rows], key[ops.num_rows :]
    order = np.lexsort((frames.ints(calls, "start_ns"), call_key))
    found = np.searchsorted(call_key[order], op_key)
    hit = found < len(order)
    hit[hit] = call_key[order[found[hit]]] == op_key[hit]
    ops, calls = ops.filter(pa.array(hit)), calls.take(pa.array(order[found[hit]]))

    start = frames.ints(ops, "start_ns")
    by_call = np.lexsort((start, op_key[hit]))
    first = np.ones(len(start), bool)
    first[by_call[1:]] = np.diff(op_key[hit][by_call]) != 0
    return frames.build(
        LAUNCHES,
        {
            "rank": ops["rank"],
            "process": ops["process"],
            "thread": calls["thread"],
            "start_ns": calls["start_ns"],
            "end_ns": calls["end_ns"],
            "api_name": calls["name"],
            "op": ops["row"],
            "device": ops["device"],
            "stream": ops["stream"],
            "op_start_ns": ops["start_ns"],
            "op_end_ns": ops["end_ns"],
            "op_kind": ops["kind"],
            "queue_delay": start - frames.ints(calls, "start_ns"),
            "first": first,
        },
    ).combine_chunks()


def call_of(op: Array, launches: pa.Table) -> Array:
    """For each operation, given by its row in gpu_ops, the row in `launches` of its call; -1 where there is none."""
    launched = frames.ints(launches, "op")
    at = np.searchsorted(launched, op)
    known = at < len(launched)
    known[known] = launched[at[known]] == op[known]
    return np.where(known, at, -1)


def crowded_launches(launches: pa.Table) -> frames.Flags:
    """The launches by threads that launch on more than `MOST_GPUS`."""
    if len(pc.unique(launches["device"])) <= MOST_GPUS:
        return np.zeros(launches.num_rows, bool)
    by_thread = frames.dense(*(frames.ints(launches, c) for c in ("rank", "process", "thread")))
    _, one_a_gpu = np.unique(frames.packed(by_thread, frames.ints(launches, "device")), return_index=True)
    return (np.bincount(by_thread[one_a_gpu]) > MOST_GPUS)[by_thread]


def launching_ranges(op: Array, launches: pa.Table, host: Host) -> pa.DictionaryArray:
    """For each operation, given by its row in gpu_ops, the innermost named range around the call that started it.

    Null where there is none; a CUDA graph's operations have the range of its launch.
    """
    at = call_of(op, launches)
    known = np.flatnonzero(at >= 0)
    calls = launches.take(pa.array(at[known]))
    name, start = np.full(len(op), frames.NULL, np.int64), frames.ints(calls, "start_ns")
    for who, rows in frames.together(*(frames.ints(calls, c) for c in ("rank", "process", "thread"))):
        name[known[rows]] = host.thread(*who).work.name_at(start[rows])
    return host.named(name)
