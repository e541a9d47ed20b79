"""Why each GPU stood idle: every gap is split, exactly, into parts with one cause each.

A gap is judged through the operation that ends it and the thread that launched that operation. The part before its launch call
starts is host time; the rest is the launch itself. If the launch call had returned before the gap began, the host is not to blame.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.derive import activity_times, frames
from traceanalyzer.derive.frames import NULL
from traceanalyzer.derive.gap_names import NAMES, part_names
from traceanalyzer.derive.host import Host, Thread
from traceanalyzer.derive.launches import call_of
from traceanalyzer.derive.steps import steps_at
from traceanalyzer.derive.tables.ledger import GAPS, IDLE_CAUSES
from traceanalyzer.intervals import Array, Spans, complement, join, latest, pieces, union

CAUSE = {cause: index for index, cause in enumerate(IDLE_CAUSES)}
AFTER_WAIT_NS = 50_000
"""How long after a host wait returns the refilling of the GPU's queue still counts as its cost."""
MAX_TURNAROUND_NS = 50_000
"""The hardware hands over within microseconds; a longer pause on one stream waited for something else."""
MAX_LAUNCH_DELAY_NS = 1_000_000
"""A launch reaches an idle GPU within microseconds of its return; what lies beyond this waited for another stream or device."""


def gaps(ledger_ops: pa.Table, launches: pa.Table, host: Host, host_steps: pa.Table) -> pa.Table:
    """The parts of all gaps, sorted by (rank, device, start); the parts of one gap tile it."""
    calls = frames.by_device(launches)
    parts = [_device_gaps(key, ops, calls[key], host, host_steps) for key, ops in frames.split(ledger_ops)]
    return frames.stack(GAPS, [p for p in parts if p.num_rows])


@dataclass(frozen=True)
class _Parts:
    """Parts of gaps: `gap` is the position of the gap, `cause` indexes IDLE_CAUSES, `activity` indexes activity_times.NAMES.

    `asked` is the time at which to look for names, `NULL` for those that hold most of the part. `wait` indexes the host's names.
    """

    gap: Array
    start: Array
    end: Array
    cause: Array
    asked: Array
    wait: Array
    activity: Array

    @classmethod
    def of(cls, gap: Array, start: Array, end: Array, cause: str, asked: Array | None = None) -> _Parts:
        unknown = [np.full(len(gap), NULL, np.int64) for _ in range(3)]
        return cls(
            gap, start, end, np.full(len(gap), CAUSE[cause]), unknown[0] if asked is None else asked, *unknown[1:]
        )

    @classmethod
    def joined(cls, parts: list[_Parts]) -> _Parts:
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def take(self, rows: Array) -> _Parts:
        return _Parts(*(getattr(self, field.name)[rows] for field in fields(self)))

    def is_cause(self, *causes: str) -> frames.Flags:
        return np.isin(self.cause, [CAUSE[cause] for cause in causes])


def _device_gaps(key: frames.Key, ops: pa.Table, launches: pa.Table, host: Host, host_steps: pa.Table) -> pa.Table:
    rank, device = key
    op_start, op_end = frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns")
    reach = np.maximum.accumulate(op_end)
    after = np.flatnonzero(op_start[1:] > reach[:-1]) + 1
    if not len(after):
        return GAPS.empty()
    start, end = reach[after - 1], op_start[after]
    last = np.maximum.accumulate(np.where(op_end >= reach, np.arange(len(op_end)), 0))[after - 1]
    process, call = frames.ints(ops, "process")[after], call_of(frames.ints(ops, "row")[after], launches)
    thread, call_start, call_end = (frames.ints_at(launches, c, call) for c in ("thread", "start_ns", "end_ns"))

    parts: list[_Parts] = []
    known = call >= 0
    parts.append(_some(np.flatnonzero(~known), start, end, "unattributed"))

    same_stream = _latest_before(ops, op_end, ("process", "context", "stream"))[after] == start
    same_call = _latest_before(ops, op_end, ("process", "correlation"))[after] == start
    early = known & ((call_end <= start) | same_call)
    short = end - start <= MAX_TURNAROUND_NS
    handover = early & (same_call | (same_stream & short))
    parts.append(_some(np.flatnonzero(handover), start, end, "turnaround"))
    parts.append(_some(np.flatnonzero(early & ~handover), start, end, "dependency"))

    late = known & ~early
    host_end = np.clip(call_start, start, end)
    launch_end = np.clip(call_end + MAX_LAUNCH_DELAY_NS, host_end, end)
    parts.append(_some(np.flatnonzero(late), launch_end, end, "dependency"))
    names: list[tuple[Array, dict[str, Array]]] = []
    operator = np.full(len(start), NULL, np.int64)
    for (one, launching), rows in frames.together(process[late], thread[late]):
        mine = np.flatnonzero(late)[rows]
        lane = host.thread(rank, one, launching)
        own = _Parts.joined(
            [_host_parts(mine, start, host_end, lane), _some(mine, host_end, launch_end, "launch_latency", host_end)]
        )
        own = _by_activity(own, lane)
        some, of_some, operator[mine] = _names(own, call_start[mine], lane, host)
        names.append((some + sum(len(part.gap) for part in parts), of_some))
        parts.append(own)

    found = _Parts.joined(parts)
    parts.clear()
    order = np.argsort(found.start, kind="stable")
    found = found.take(order)
    gap = found.gap
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    placed = [(place[rows], of_rows) for rows, of_rows in names]

    def named(column: str) -> Array:
        values = np.full(len(order), 0 if column == "place_duration" else NULL)
        for rows, of_rows in placed:
            values[rows] = of_rows[column]
        return values

    steps = host_steps.filter(pc.equal(host_steps["rank"], rank))
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
            "cause": frames.names(found.cause, IDLE_CAUSES),
            "gap": gap,
            "gap_duration": (end - start)[gap],
            "draining": np.isin(gap, gap[found.cause == CAUSE["synchronization"]]),
            "process": frames.numbers(process[gap]),
            "thread": frames.numbers(thread[gap]),
            **{column: host.named(named(column)) for column in NAMES if column != "source"},
            "source": host.texts(named("source")),
            "step": frames.numbers(steps_at(steps, np.full(len(gap), rank), process[gap], found.start)),
            "place_duration": named("place_duration"),
            "activity": frames.names(found.activity, activity_times.NAMES),
            "api_name": launches["api_name"].take(pa.array(call[gap], mask=call[gap] < 0)),
            "launching_operator": host.named(operator[gap]),
            "wait_name": host.named(found.wait),
            "previous_op_name": frames.names(op_name[last[gap]], op_names),
            "next_op_name": frames.names(op_name[following], op_names),
            "next_op_kind": frames.names(op_kind[following], op_kinds),
            "next_op_duration": (op_end - op_start)[following],
        },
    )


def _latest_before(ops: pa.Table, op_end: Array, columns: tuple[str, ...]) -> Array:
    """For each operation the latest end among those before it (in start order) with the same columns, `NULL` for the first.

    Nulls in the last column belong to nothing: an operation without it has no predecessor.
    """
    before = frames.latest_before(frames.dense(*(frames.ints(ops, c) for c in columns)), op_end)
    return np.where(frames.ints(ops, columns[-1]) == NULL, NULL, before)


def _some(gap: Array, start: Array, end: Array, cause: str, asked: Array | None = None) -> _Parts:
    """The non-empty of the intervals [start, end) of some gaps."""
    gap = gap[end[gap] > start[gap]]
    return _Parts.of(gap, start[gap], end[gap], cause, None if asked is None else asked[gap])


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
        ("host_work", join(thread.work.cover, thread.calls.cover)),
    ]
    found: list[_Parts] = []
    left = (np.arange(len(gap), dtype=np.int64), low, high)
    for cause, spans in causes:
        row, first, last = _pieces(left, spans)
        part = _Parts.of(gap[row], first, last, cause)
        if cause == "synchronization":
            # What asked for the wait, not what the host did first after it.
            part.asked[:] = thread.waits.start[wait[row]]
            part.wait[:] = thread.waits.name[wait[row]]
        found.append(part)
        left = _pieces(left, _outside(spans, low, high))
    row, first, last = left
    return _Parts.joined([*found, _Parts.of(gap[row], first, last, "host_untraced")])


def _by_activity(parts: _Parts, thread: Thread) -> _Parts:
    """Cut the parts so that each has one activity, or none."""
    low, high, activity = thread.activities
    if not len(low) or not len(parts.gap):
        return parts
    # What lies between the activities is a tile as well.
    bounds = np.unique(np.concatenate((low, high, [parts.start.min(), parts.end.max()])))
    row, first, last = pieces(parts.start, parts.end, (bounds[:-1], bounds[1:]))
    cut = replace(parts.take(row), start=first, end=last) if len(row) > len(parts.gap) else parts
    cut.activity[:] = np.append(activity, NULL)[latest(low, high, first)]
    return cut


def _names(parts: _Parts, launched: Array, thread: Thread, host: Host) -> tuple[Array, dict[str, Array], Array]:
    """Which parts of one thread have names, these names, and those of the operators that launched at some times.

    Nothing was recorded where it is untraced, and what the profiler did is its own.
    """
    some = np.flatnonzero(~parts.is_cause("host_untraced", "profiler"))
    one = parts.take(some)
    found, operators = part_names(one.start, one.end, one.asked, one.is_cause("input"), launched, thread, host)
    return some, found, operators


def _pieces(parts: tuple[Array, Array, Array], spans: Spans) -> tuple[Array, Array, Array]:
    """Cut labelled parts by `spans`."""
    label, start, end = parts
    row, first, last = pieces(start, end, spans)
    return label[row], first, last


def _outside(spans: Spans, low: Array, high: Array) -> Spans:
    return complement(spans, int(low.min()), int(high.max())) if len(low) else spans
