"""Which host thread met a page of managed memory that was not with it, so that the page moved.

A migration has no launch record. With no kernel running it is the host that faulted. Where its fault was recorded with its thread, that
is the one; else, of the threads of the process, the one that last had to do with CUDA is the likeliest: it waited for the results, or
is about to launch what needs the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array

Places = npt.NDArray[np.integer[Any]]
SOON_NS = 1_000_000
"""A page moves within microseconds of the fault; one that moves later than this has another reason."""


def faulting_threads(
    ops: pa.Table, op: Places, time: Array, api_calls: pa.Table, page_faults: pa.Table
) -> Array | None:
    """For each of some operations, by position in `ops`, the thread that faulted before a time, else the one of its process that made
    the last call before it.

    `NULL` for operations that are no migrations, and where neither was recorded; None where none is a migration.
    """
    moved = frames.where(ops, "copy_kind", lambda kind: kind.startswith("uvm"))[op]
    if not moved.any():
        return None
    result = np.full(len(op), NULL, np.int64)
    at, before = op[moved], time[moved]
    found, _ = _last(ops, at, before, api_calls)
    if page_faults.num_rows:
        told = page_faults.filter(pc.and_(pc.is_valid(page_faults["thread"]), pc.is_null(page_faults["device"])))
        thread, when = _last(ops, at, before, told)
        # When is NULL, the lowest of all numbers, for those that no fault came before.
        found = np.where((when != NULL) & (before - np.maximum(when, -(1 << 62)) <= SOON_NS), thread, found)
    result[moved] = found
    return result


def _last(ops: pa.Table, at: Places, time: Array, events: pa.Table) -> tuple[Array, Array]:
    """The thread and the start of the last of some events that the process of each operation had before a time, else `NULL`."""
    nothing = np.full(len(at), NULL, np.int64)
    if not events.num_rows:
        return nothing, nothing
    key = frames.packed(
        *(np.concatenate((frames.ints(events, c), frames.ints(ops, c)[at])) for c in ("rank", "process"))
    )
    start = frames.ints(events, "start_ns")
    count = len(start)
    when = np.concatenate((start, time))
    order = np.lexsort((np.arange(len(when)) >= count, when, key))
    # The last call before each, in order of time within a process.
    last = np.maximum.accumulate(np.where(order < count, np.arange(len(order)), -1))
    before = np.where(last >= 0, order[np.maximum(last, 0)], 0)
    asking = order >= count
    own = (last[asking] >= 0) & (key[before[asking]] == key[order[asking]])
    found, when = nothing.copy(), nothing.copy()
    found[order[asking] - count] = np.where(own, frames.ints(events, "thread")[before[asking]], NULL)
    when[order[asking] - count] = np.where(own, start[np.minimum(before[asking], count - 1)], NULL)
    return found, when
