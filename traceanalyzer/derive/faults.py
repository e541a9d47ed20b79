"""Which host thread met a page of managed memory that was not with it, so that the page moved.

A migration has no launch record. With no kernel running it is the host that faulted, and of its threads the one that last had to do
with CUDA is the likeliest: it waited for the results, or is about to launch what needs the data.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.frames import NULL
from traceanalyzer.intervals import Array


def faulting_threads(ops: pa.Table, op: Array, time: Array, api_calls: pa.Table) -> Array:
    """For each of some operations, by position in `ops`, the thread of its process that made the last call before a time.

    `NULL` for operations that are no migrations, and where no call was recorded.
    """
    moved = frames.where(ops, "copy_kind", lambda kind: kind.startswith("uvm"))[op]
    result = np.full(len(op), NULL, np.int64)
    if not moved.any() or not api_calls.num_rows:
        return result
    at = op[moved]
    key = frames.packed(
        *(np.concatenate((frames.ints(api_calls, c), frames.ints(ops, c)[at])) for c in ("rank", "process"))
    )
    start = frames.ints(api_calls, "start_ns")
    count = len(start)
    when = np.concatenate((start, time[moved]))
    order = np.lexsort((np.arange(len(when)) >= count, when, key))
    # The last call before each, in order of time within a process.
    last = np.maximum.accumulate(np.where(order < count, np.arange(len(order)), -1))
    before = np.where(last >= 0, order[np.maximum(last, 0)], 0)
    asking = order >= count
    own = (last[asking] >= 0) & (key[before[asking]] == key[order[asking]])
    found = np.full(len(at), NULL, np.int64)
    found[order[asking] - count] = np.where(own, frames.ints(api_calls, "thread")[before[asking]], NULL)
    result[moved] = found
    return result
