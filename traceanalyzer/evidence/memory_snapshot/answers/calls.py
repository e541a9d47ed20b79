"""Whose allocations the GPU waits for: the calls of the driver that the allocator made, found in the trace beside the snapshot.

The allocator records memory that it got just after its call has returned, and memory that it gives back just before it calls.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.evidence.memory_snapshot.answers.history import GOT
from traceanalyzer.evidence.memory_snapshot.answers.judged import Judged
from traceanalyzer.evidence.memory_snapshot.answers.owners import NOWHERE
from traceanalyzer.evidence.memory_snapshot.derived_tables import MEMORY_GAPS
from traceanalyzer.intervals import Array, overlaps
from traceanalyzer.vocabulary.lines import MEMORY_MANAGEMENT

APART = 20_000
"""A call and what the allocator recorded of it lie at most so many ns apart: 1 us is usual, and the thread may be stopped between."""
_HOSTS = re.compile(r"Host")
_GIVES_BACK = re.compile(r"Free|Release|Unmap")


def memory_gaps(gaps: pa.Table, histories: list[Judged], api_calls: pa.Table, placed_evidence: pa.Table) -> pa.Table:
    """The parts of gaps that the host spends on memory, each with whose allocations it was for."""
    pauses = gaps.filter(pa.array(frames.equals(gaps, "cause", MEMORY_MANAGEMENT.cause)))
    asked = np.full(pauses.num_rows, NULL)
    number: dict[str, int] = {}
    if histories and pauses.num_rows:
        rank, device = frames.ints(pauses, "rank"), frames.ints(pauses, "device")
        calls = calls_of_allocators(api_calls, placed_evidence)
        for one in histories:
            mine = np.flatnonzero((rank == one.history.key[0]) & (device == one.history.key[1]))
            events = one.history.driver_events
            code, places = frames.codes(events, "place")
            known = [number.setdefault(p, len(number)) if p and p not in NOWHERE else NULL for p in places]
            event = event_of(pauses.take(pa.array(mine)), events, calls[one.history.key[0]])
            asked[mine] = np.append(np.array(known, np.int64)[code], NULL)[event]
    return frames.build(
        MEMORY_GAPS,
        {**{name: pauses[name] for name in gaps.schema.names}, "asked_by": frames.names(asked, list(number))},
    )


def calls_of_allocators(api_calls: pa.Table, placed_evidence: pa.Table) -> dict[int, pa.Table]:
    """By rank the calls that get or give back memory of a GPU, of ranks on whose clock a snapshot is."""
    placed = placed_evidence.filter(
        pc.and_(pc.equal(placed_evidence["kind"], "memory_snapshot"), placed_evidence["on_clock"])
    )
    mine = pc.and_(
        pc.is_in(api_calls["rank"], placed["rank"].combine_chunks()),
        pa.array(frames.equals(api_calls, "class", "memory")),
    )
    calls = api_calls.filter(mine)
    return frames.by_rank(calls.filter(pa.array(frames.where(calls, "name", lambda name: not _HOSTS.search(name)))))


def event_of(pauses: pa.Table, events: pa.Table, calls: pa.Table) -> Array:
    """For each pause the row of the event whose call takes most of it, -1 where none is known to."""
    found = np.full(pauses.num_rows, -1)
    start, end = frames.ints(pauses, "start_ns"), frames.ints(pauses, "end_ns")
    event = event_of_call(events, calls)
    made = np.flatnonzero(event >= 0)
    event, calls = event[made], calls.take(pa.array(made))
    first, last = frames.ints(calls, "start_ns"), frames.ints(calls, "end_ns")
    of_thread = dict(frames.together(frames.ints(calls, "process"), frames.ints(calls, "thread")))
    for thread, mine in frames.together(frames.ints(pauses, "process"), frames.ints(pauses, "thread")):
        if (own := of_thread.get(thread)) is None:
            continue
        own = own[np.argsort(first[own], kind="stable")]
        row, call, low, high = overlaps(start[mine], end[mine], (first[own], last[own]))
        order = np.lexsort((low - high, row))
        # Of each pause the longest piece comes first.
        row, at = np.unique(row[order], return_index=True)
        found[mine[row]] = event[own[call[order[at]]]]
    return found


def event_of_call(events: pa.Table, calls: pa.Table) -> Array:
    """For each call the row of the event that tells of it, -1 for none."""
    found = np.full(calls.num_rows, -1)
    time, got = frames.ints(events, "time_ns"), frames.equals(events, "kind", *GOT)
    gives_back = frames.where(calls, "name", lambda name: bool(_GIVES_BACK.search(name)))
    for kind, ones, moment in ((got, ~gives_back, "end_ns"), (~got, gives_back, "start_ns")):
        rows, told = np.flatnonzero(ones), np.flatnonzero(kind & (time != NULL))
        if not len(rows) or not len(told):
            continue
        when = frames.ints(calls, moment)[rows]
        order = np.argsort(when, kind="stable")
        rows, when = rows[order], when[order]
        after = np.minimum(np.searchsorted(when, time[told]), len(when) - 1)
        before = np.maximum(after - 1, 0)
        nearest = np.where(np.abs(when[after] - time[told]) < np.abs(when[before] - time[told]), after, before)
        near = np.abs(when[nearest] - time[told]) <= APART
        found[rows[nearest[near]]] = told[near]
    return found
