"""Which host call started which GPU operation.

A correlation id is a key only within a process, and one call can start many operations (CUDA graphs). Operations queued before the
capture, or whose records were dropped, have no call and no row here.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.derive import frames
from traceanalyzer.derive.tables import LAUNCHES


def links(ledger_ops: pa.Table, api_calls: pa.Table) -> pa.Table:
    """Join on (rank, process, correlation). Of several calls with one id (a runtime call and the driver call inside it) the first."""
    ops, calls = (table.filter(pc.is_valid(table["correlation"])) for table in (ledger_ops, api_calls))
    if not ops.num_rows or not calls.num_rows:
        return LAUNCHES.empty()

    key = frames.dense(
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
