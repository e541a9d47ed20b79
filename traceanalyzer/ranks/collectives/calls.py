"""The host's calls for collectives: how long they take, and whether it is they that make a rank late."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.grouped import Groups
from traceanalyzer.derive.host.callers import Callers
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.collectives.collectives import lanes

CALLS = ("nccl", "c10d::", "record_param_comms", "torch/distributed/distributed_c10d.py")
"""How ranges begin that are calls for collectives."""
MANY = 50
"""So many collectives a step are one a tensor, or one a layer and direction: as in rule COM003."""


def call_spans(calls: pa.Table, host_ranges: pa.Table, callers: Callers) -> tuple[Array, Array]:
    """Start and end of the call for each collective, given the `calls` that launched their kernels (nulls where not recorded).

    That is the outermost range of the framework or of NCCL around the launch, else the launch itself; `NULL` where there is none. What
    a thread does between two calls belongs to the second one as long as it takes less than that: they are made in a loop.
    """
    known = np.flatnonzero(calls["start_ns"].is_valid().to_numpy())
    rank, process, thread, start, end = (
        frames.ints(calls, c)[known].copy() for c in ("rank", "process", "thread", "start_ns", "end_ns")
    )
    wanted = frames.where(host_ranges, "name", lambda name: name.lower().startswith(CALLS))
    row = callers.nearest(callers.around(rank, process, thread, start), wanted)
    above = np.append(callers.parent, -1)
    while len(some := np.flatnonzero(row >= 0)):
        start[some], end[some] = callers.start[row[some]], callers.end[row[some]]
        row = np.where(row >= 0, callers.nearest(above[row], wanted), -1)
    lane = frames.dense(rank, process, thread)
    order = np.lexsort((start, lane))
    before = np.append(order[:1], order)[:-1]
    pause = start[order] - end[before]
    looped = order[(np.diff(lane[order], prepend=-1) == 0) & (pause >= 0) & (pause < (end - start)[order])]
    spans = np.full((2, calls.num_rows), NULL)
    spans[:, known] = start, end
    spans[0, known[looped]] = end[before[np.isin(order, looped)]]
    return spans[0], spans[1]


def call_waits(kernels: pa.Table, transfer: Array, wait: Array, late: Array) -> Array:
    """The part of each kernel's `wait` in which the host of the rank that came last, with the kernel in row `late`, was at the call for
    it: only of collectives whose `transfer` takes less than the call, of which that rank asks for many a step. 0 where not known."""
    begun, call = frames.ints(kernels, "call_start_ns"), frames.ints(kernels, "call")
    start, end = begun[late], (begun + np.maximum(call, 0))[late]
    arrived = frames.ints(kernels, "start_ns")[late]
    spent = np.minimum(end, arrived) - np.maximum(start, arrived - wait)
    step = frames.ints(kernels, "step")
    small = (transfer != NULL) & (transfer < call) & (step != NULL) & ~frames.equals(kernels, "kind", "barrier")
    of = Groups(lanes(kernels))
    many = small & (of.count(small) >= MANY * np.maximum(of.distinct(step, small), 1))[of.of]
    return np.where(many[late] & (start != NULL), np.clip(spent, 0, wait), 0)
