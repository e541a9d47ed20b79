"""Copies to the host that the host waits for, and the idle time of the GPU after each.

A host that waits for a copy has nothing queued when it goes on. Had it read the copy a step later, its work on the data would have run
beside the GPU's next work. So what can be hidden after a copy is at most as long as what the GPU had computed since the one before.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.derive.copies.copies import pageable
from traceanalyzer.derive.copies.tables import READBACKS
from traceanalyzer.derive.host.callers import Callers
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.launches.launches import call_of
from traceanalyzer.derive.ledger.busy import Busy
from traceanalyzer.derive.streams.transfers import exposed_time, first_coverage
from traceanalyzer.intervals import Array, Spans, coverage, covered_before, join, total
from traceanalyzer.vocabulary.lines import HOST_UNTRACED, HOST_WORK, LAUNCH_LATENCY, SYNCHRONIZATION

NEVER = np.iinfo(np.int64).max
HOST_CAUSES = (SYNCHRONIZATION.cause, HOST_WORK.cause, HOST_UNTRACED.cause, LAUNCH_LATENCY.cause)


def readbacks(
    ledger_ops: pa.Table,
    busy: dict[frames.Key, Busy],
    launches: pa.Table,
    gaps: pa.Table,
    host: Host,
    callers: Callers,
) -> pa.Table:
    """The copies to the host that stopped their thread, sorted by (rank, device, start); see READBACKS."""
    copies = _waited_for(launches, host, frames.equals(ledger_ops, "copy_kind", "dtoh"), frames.ints(ledger_ops, "row"))
    if not copies.num_rows:
        return READBACKS.empty()
    calls, pauses = frames.by_device(copies), frames.by_device(gaps)
    tables = []
    for key, ops in frames.split(ledger_ops):
        at = call_of(frames.ints(ops, "row"), calls[key])
        found = np.flatnonzero(at >= 0)
        if len(found):
            kernels = join(busy[key].compute, busy[key].communication)
            own = calls[key].take(pa.array(at[found]))
            tables.append(_readbacks(ops.take(pa.array(found)), own, kernels, pauses[key], callers))
    return frames.stack(READBACKS, tables)


def _readbacks(copies: pa.Table, calls: pa.Table, kernels: Spans, gaps: pa.Table, callers: Callers) -> pa.Table:
    start, end = frames.ints(copies, "start_ns"), frames.ints(copies, "end_ns")
    pause = _pause_after(end, gaps)
    stop = end + np.minimum(pause, _hideable(covered_before(start, kernels), pause))
    blamed = frames.equals(gaps, "cause", *HOST_CAUSES)
    idle = frames.ints(gaps, "start_ns")[blamed], frames.ints(gaps, "end_ns")[blamed]
    row = callers.around(*(frames.ints(calls, c) for c in ("rank", "process", "thread", "start_ns")))
    columns = {
        **{c: copies[c] for c in ("rank", "device", "process", "bytes")},
        "thread": calls["thread"],
        "start_ns": start,
        "end_ns": stop,
        "pageable": pageable(copies),
        "exposed": exposed_time(*first_coverage(start, end), kernels),
        "idle": coverage(end, stop, idle),
        "last": covered_before(end, kernels) == total(kernels),
        "operator": callers.names(callers.outermost_operator(row)),
        "source": callers.sources(row),
    }
    return frames.build(READBACKS, columns)


def _waited_for(launches: pa.Table, host: Host, to_host: frames.Flags, row: Array) -> pa.Table:
    """The launches of copies to the host after which their thread launched nothing else before it had waited for the copy."""
    copying = np.isin(frames.ints(launches, "op"), row[to_host])
    call = frames.ints(launches, "start_ns")
    stopped = np.zeros(launches.num_rows, bool)
    for who, mine in frames.together(*(frames.ints(launches, c) for c in ("rank", "process", "thread"))):
        here = mine[copying[mine]]
        if not len(here):
            continue
        other = np.append(np.sort(call[mine[~copying[mine]]]), NEVER)
        following = other[np.searchsorted(other, call[here], side="right")]
        waits = host.thread(*who).waits
        if len(waits.start):
            index = np.searchsorted(waits.start, following) - 1
            returned = np.maximum.accumulate(waits.end)[np.maximum(index, 0)]
            stopped[here] = (index >= 0) & (returned >= frames.ints(launches, "op_end_ns")[here])
    return launches.filter(pa.array(stopped))


def _pause_after(end: Array, gaps: pa.Table) -> Array:
    """How long the GPU was idle from each time on; 0 where it was not."""
    start, number = frames.ints(gaps, "start_ns"), frames.ints(gaps, "gap")
    first = np.flatnonzero(np.diff(number, prepend=-1))
    start, length = start[first], frames.ints(gaps, "gap_duration")[first]
    if not len(start):
        return np.zeros(len(end), np.int64)
    index = np.minimum(np.searchsorted(start, end), len(start) - 1)
    return np.where(start[index] == end, length[index], 0)


def _hideable(done: Array, pause: Array) -> Array:
    """How much of each pause the GPU's work could hide; `done` is what it had computed before each copy.

    Copies with no work between them share what came before the first of them.
    """
    work = np.diff(done, prepend=0)
    group = np.flatnonzero((work > 0) | (np.arange(len(work)) == 0))
    sizes = np.diff(np.append(group, len(work)))
    spent = np.cumsum(pause) - pause
    left: Array = np.repeat(work[group] + spent[group], sizes) - spent
    return np.maximum(left, 0)
