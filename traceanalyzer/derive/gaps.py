"""Why each GPU stood idle: every gap is split, exactly, into parts with one cause each.

A gap is judged through the operation that ends it and the thread that launched that operation. The part before its launch call
starts is host time; the rest is the launch itself. If the launch call had returned before the gap began, the host is not to blame.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.frames import NULL
from traceanalyzer.derive.host import Host, Thread
from traceanalyzer.derive.tables import GAPS, IDLE_CAUSES
from traceanalyzer.intervals import Array, Spans, complement, join, pieces, union

CAUSE = {cause: index for index, cause in enumerate(IDLE_CAUSES)}
AFTER_WAIT_NS = 50_000
"""How long after a host wait returns the refilling of the GPU's queue still counts as its cost."""
MAX_TURNAROUND_NS = 50_000
"""The hardware hands over within microseconds; a longer pause on one stream waited for something else."""
MAX_LAUNCH_DELAY_NS = 1_000_000
"""A launch reaches an idle GPU within microseconds of its return; what lies beyond this waited for another stream or device."""


def gaps(ledger_ops: pa.Table, launches: pa.Table, host: Host) -> pa.Table:
    """The parts of all gaps, sorted by (rank, device, start); the parts of one gap tile it."""
    calls = _Calls.of(ledger_ops, launches)
    parts = [_device_gaps(key, ops, calls, host) for key, ops in frames.split(ledger_ops)]
    return frames.stack(GAPS, [p for p in parts if p.num_rows])


@dataclass(frozen=True)
class _Calls:
    """The launch call of each row of gpu_ops; `NULL` where there is none."""

    thread: Array
    start: Array
    end: Array
    name: Array
    names: list[str | None]

    @classmethod
    def of(cls, ledger_ops: pa.Table, launches: pa.Table) -> _Calls:
        count = ledger_ops["row"][-1].as_py() + 1 if ledger_ops.num_rows else 0
        name, names = frames.codes(launches, "api_name")
        columns = [frames.ints(launches, c) for c in ("thread", "start_ns", "end_ns")]
        filled = []
        for values in (*columns, name):
            full = np.full(count, NULL, np.int64)
            full[frames.ints(launches, "op")] = values
            filled.append(full)
        return cls(filled[0], filled[1], filled[2], np.where(filled[3] == NULL, len(names) - 1, filled[3]), names)


@dataclass(frozen=True)
class _Parts:
    """Parts of gaps: `gap` is the position of the gap, `cause` indexes IDLE_CAUSES, the names index the host's."""

    gap: Array
    start: Array
    end: Array
    cause: Array
    range: Array
    wait: Array
    phase: Array

    @classmethod
    def joined(cls, parts: list[_Parts]) -> _Parts:
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def take(self, rows: Array) -> _Parts:
        return _Parts(*(getattr(self, field.name)[rows] for field in fields(self)))


def _device_gaps(key: frames.Key, ops: pa.Table, calls: _Calls, host: Host) -> pa.Table:
    rank, device = key
    op_start, op_end = frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns")
    reach = np.maximum.accumulate(op_end)
    after = np.flatnonzero(op_start[1:] > reach[:-1]) + 1
    if not len(after):
        return GAPS.empty()
    start, end = reach[after - 1], op_start[after]
    last = np.maximum.accumulate(np.where(op_end >= reach, np.arange(len(op_end)), 0))[after - 1]
    op_row = frames.ints(ops, "row")[after]
    process, thread = frames.ints(ops, "process")[after], calls.thread[op_row]
    call_start, call_end = calls.start[op_row], calls.end[op_row]

    parts: list[_Parts] = []
    known = call_start != NULL
    parts.append(_whole(np.flatnonzero(~known), start, end, "unattributed"))

    same_stream = _latest_before(ops, op_end, ("process", "context", "stream"))[after] == start
    same_call = _latest_before(ops, op_end, ("process", "correlation"))[after] == start
    early = known & ((call_end <= start) | same_call)
    short = end - start <= MAX_TURNAROUND_NS
    handover = early & (same_call | (same_stream & short))
    parts.append(_whole(np.flatnonzero(handover), start, end, "turnaround"))
    parts.append(_whole(np.flatnonzero(early & ~handover), start, end, "dependency"))

    late = known & ~early
    host_end = np.clip(call_start, start, end)
    launch_end = np.clip(call_end + MAX_LAUNCH_DELAY_NS, host_end, end)
    for who in _threads(process, thread, late):
        mine = late & (process == who[0]) & (thread == who[1])
        lane = host.thread(rank, *who)
        parts.append(_host_parts(np.flatnonzero(mine), start, host_end, lane))
        parts.append(_launch_parts(np.flatnonzero(mine), host_end, launch_end, lane))
    parts.append(_cut(np.flatnonzero(late), launch_end, end, "dependency"))

    found = _Parts.joined(parts)
    found = found.take(np.argsort(found.start, kind="stable"))
    gap = found.gap
    op_name, op_names = frames.codes(ops, "name")
    op_kind, op_kinds = frames.codes(ops, "kind")
    following = after[gap]
    return frames.build(
        GAPS,
        {
            "rank": np.full(len(gap), rank),
            "device": np.full(len(gap), device),
            "start_ns": found.start,
            "end_ns": found.end,
            "cause": frames.names(found.cause, list(IDLE_CAUSES)),
            "gap": gap,
            "gap_duration": (end - start)[gap],
            "draining": np.isin(gap, gap[found.cause == CAUSE["synchronization"]]),
            "process": frames.numbers(process[gap]),
            "thread": frames.numbers(thread[gap]),
            "range_name": host.named(found.range),
            "phase": host.named(found.phase),
            "api_name": frames.names(calls.name[op_row][gap], calls.names),
            "wait_name": host.named(found.wait),
            "previous_op_name": frames.names(op_name[last[gap]], op_names),
            "next_op_name": frames.names(op_name[following], op_names),
            "next_op_kind": frames.names(op_kind[following], op_kinds),
            "next_op_duration": (op_end - op_start)[following],
        },
    )


def _threads(process: Array, thread: Array, which: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    pairs = np.unique(np.stack((process[which], thread[which]), axis=1), axis=0)
    return [(int(p), int(t)) for p, t in pairs]


def _latest_before(ops: pa.Table, op_end: Array, columns: tuple[str, ...]) -> Array:
    """For each operation the latest end among those before it (in start order) with the same columns, `NULL` for the first.

    Nulls in the last column belong to nothing: an operation without it has no predecessor.
    """
    before = frames.latest_before(frames.dense(*(frames.ints(ops, c) for c in columns)), op_end)
    return np.where(frames.ints(ops, columns[-1]) == NULL, NULL, before)


def _whole(gap: Array, start: Array, end: Array, cause: str) -> _Parts:
    nothing = np.full(len(gap), NULL, np.int64)
    return _Parts(gap, start[gap], end[gap], np.full(len(gap), CAUSE[cause]), nothing, nothing, nothing)


def _cut(gap: Array, start: Array, end: Array, cause: str) -> _Parts:
    """As `_whole`, without the empty ones."""
    return _whole(gap[end[gap] > start[gap]], start, end, cause)


def _launch_parts(gap: Array, start: Array, end: Array, thread: Thread) -> _Parts:
    part = _cut(gap, start, end, "launch_latency")
    phase = thread.phases.name_at(part.start)
    return replace(part, range=thread.work.name_at(part.start), phase=phase)


def _host_parts(gap: Array, start: Array, host_end: Array, thread: Thread) -> _Parts:
    """Split the host time [start, host_end) of the gaps that one thread ended. The first cause that applies takes the time."""
    low, high = start[gap], host_end[gap]
    keep = high > low
    gap, low, high = gap[keep], low[keep], high[keep]
    wait = thread.waits.around(low)
    waited = wait >= 0
    drain: Spans = union(low[waited], np.minimum(thread.waits.end[wait[waited]] + AFTER_WAIT_NS, high[waited]))
    # The profiler's overhead goes first: it is never blamed on the user.
    causes: list[tuple[str, Spans]] = [
        ("profiler", thread.profiler),
        ("input", thread.input.cover),
        ("memory_management", thread.memory),
        ("synchronization", drain),
        ("host_work", join(thread.work.cover, thread.calls)),
    ]
    found: list[_Parts] = []
    left = (np.arange(len(gap), dtype=np.int64), low, high)
    for cause, spans in causes:
        row, first, last = _pieces(left, spans)
        named = waits = np.full(len(row), NULL, np.int64)
        if cause == "synchronization":
            # What asked for the wait, not what the host did first after it.
            named = thread.work.name_at(thread.waits.start[wait[row]])
            waits = thread.waits.name[wait[row]]
        elif cause != "profiler":
            named = (thread.input if cause == "input" else thread.work).main_name(first, last)
        phase = thread.phases.main_name(first, last)
        found.append(_Parts(gap[row], first, last, np.full(len(row), CAUSE[cause]), named, waits, phase))
        left = _pieces(left, _outside(spans, low, high))
    row, first, last = left
    nothing = np.full(len(row), NULL, np.int64)
    found.append(_Parts(gap[row], first, last, np.full(len(row), CAUSE["host_untraced"]), nothing, nothing, nothing))
    return _Parts.joined(found)


def _pieces(parts: tuple[Array, Array, Array], spans: Spans) -> tuple[Array, Array, Array]:
    """Cut labelled parts by `spans`."""
    label, start, end = parts
    row, first, last = pieces(start, end, spans)
    return label[row], first, last


def _outside(spans: Spans, low: Array, high: Array) -> Spans:
    return complement(spans, int(low.min()), int(high.max())) if len(low) else spans
