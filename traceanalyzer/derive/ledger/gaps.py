"""Why each GPU stood idle: every gap is split, exactly, into parts with one cause each.

A gap is judged through the operation that ends it and the thread that launched that operation. The part before its launch call
starts is host time; the rest is the launch itself. If the launch call had returned before the gap began, the host is not to blame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.host import activity_times
from traceanalyzer.derive.host.host import Host, Thread
from traceanalyzer.derive.host.samples import OTHERS, THREAD
from traceanalyzer.derive.launches.earlier_work import may_follow_earlier_work
from traceanalyzer.derive.launches.launches import crowded_launches
from traceanalyzer.derive.ledger.gap_names import NAMES, NUMBERS, by_samples, part_names
from traceanalyzer.derive.ledger.idle import Idle
from traceanalyzer.derive.ledger.shared import Portion
from traceanalyzer.derive.ledger.tables import GAPS
from traceanalyzer.derive.steps.steps import steps_at
from traceanalyzer.derive.streams.event_waits import held_by_event
from traceanalyzer.derive.streams.handover import HANDOVER_NS
from traceanalyzer.derive.streams.partners import has_partner
from traceanalyzer.intervals import Array, Spans, complement, join, latest, pieces
from traceanalyzer.vocabulary.lines import (
    DEPENDENCY,
    HOST_UNTRACED,
    HOST_WORK,
    IDLE_CAUSES,
    INPUT,
    LAUNCH_LATENCY,
    MEMORY_MANAGEMENT,
    MPI,
    OS,
    PROFILER,
    QUEUED,
    SYNCHRONIZATION,
    TURNAROUND,
    UNATTRIBUTED,
)

CAUSE = {cause: index for index, cause in enumerate(IDLE_CAUSES)}
SAMPLED = (THREAD, OTHERS)
AFTER_WAIT_NS = 50_000
"""How long after a host wait returns the refilling of the GPU's queue still counts as its cost."""
MAX_LAUNCH_DELAY_NS = 1_000_000
"""A launch reaches an idle GPU within microseconds of its return; what lies beyond this waited for something else."""


def gaps(
    ledger_ops: pa.Table,
    launches: pa.Table,
    api_calls: pa.Table,
    stream_events: pa.Table,
    page_faults: pa.Table,
    host: Host,
    host_steps: pa.Table,
    windows: pa.Table,
    portions: Mapping[frames.Key, Portion],
) -> pa.Table:
    """The parts of all gaps, sorted by (rank, device, start); the parts of one gap tile it.

    On a GPU that other files used too, a gap begins where all of them had fallen idle, and those that one of them ended are its own.
    """
    idle = Idle.of(ledger_ops, launches, api_calls, page_faults, windows, portions)
    if not len(idle.start):
        return GAPS.empty()
    held = np.append(held_by_event(stream_events, launches, api_calls), False)[idle.call]
    parts, names, operator = _parts(idle, crowded_launches(launches), has_partner(ledger_ops, idle.op) | held, host)
    order = np.lexsort((parts.start, parts.gap))
    parts = parts.take(order)
    gap = parts.gap
    # A pause as short as the hardware's own hides nothing.
    long = idle.end - idle.start > HANDOVER_NS
    earlier = may_follow_earlier_work(ledger_ops, launches, api_calls)[idle.op] & ~idle.tail & long
    rank, process, before, call = (column[gap] for column in (idle.rank, idle.process, idle.before, idle.call))
    tail = idle.tail[gap]
    op = np.where(tail, NULL, idle.op[gap])
    op_name, op_names = frames.codes(ledger_ops, "name")
    op_kind, op_kinds = frames.codes(ledger_ops, "kind")
    return frames.build(
        GAPS,
        {
            "rank": rank,
            "device": idle.device[gap],
            "start_ns": parts.start,
            "end_ns": parts.end,
            "cause": frames.names(parts.cause, IDLE_CAUSES),
            "gap": idle.number[gap],
            "gap_duration": (idle.end - idle.start)[gap],
            "draining": np.isin(gap, gap[parts.cause == CAUSE[SYNCHRONIZATION.cause]]),
            "earlier_work": earlier[gap] & parts.is_cause(QUEUED.cause, UNATTRIBUTED.cause),
            "process": frames.numbers(process),
            "thread": frames.numbers(idle.thread[gap]),
            **{column: host.named(names[column][order]) for column in NAMES if column != "source"},
            "source": host.texts(names["source"][order]),
            "step": frames.numbers(steps_at(host_steps, rank, process, parts.start)),
            **{column: frames.numbers(names[column][order]) for column in NUMBERS},
            "sampled": frames.names(names["sampled"][order], SAMPLED),
            "activity": frames.names(parts.activity, activity_times.NAMES),
            "launch_ns": frames.numbers(np.where(tail, NULL, frames.ints_at(launches, "start_ns", call))),
            "api_name": launches["api_name"].take(pa.array(call, mask=(call < 0) | tail)),
            "launching_operator": host.named(np.where(tail, NULL, operator[gap])),
            "wait_name": host.named(parts.wait),
            "previous_op_name": frames.names(_at(op_name, before), op_names),
            "next_op_name": frames.names(_at(op_name, op), op_names),
            "next_op_kind": frames.names(_at(op_kind, op), op_kinds),
            "next_op_duration": frames.numbers(_at(frames.duration(ledger_ops), op)),
        },
    )


def _at(values: Array, index: Array) -> Array:
    """The values at these positions, `NULL` for `NULL`."""
    return np.append(values, NULL)[np.where(index == NULL, len(values), index)]


@dataclass(frozen=True)
class Parts:
    """Parts of gaps, or of other time of a thread: `gap` is the position of the gap, `cause` indexes IDLE_CAUSES, `activity` indexes
    activity_times.NAMES.

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
    def of(cls, gap: Array, start: Array, end: Array, cause: str, asked: Array | None = None) -> Parts:
        unknown = [np.full(len(gap), NULL, np.int64) for _ in range(3)]
        return cls(
            gap, start, end, np.full(len(gap), CAUSE[cause]), unknown[0] if asked is None else asked, *unknown[1:]
        )

    @classmethod
    def joined(cls, parts: list[Parts]) -> Parts:
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def take(self, rows: Array) -> Parts:
        return Parts(*(getattr(self, field.name)[rows] for field in fields(self)))

    def is_cause(self, *causes: str) -> frames.Flags:
        return np.isin(self.cause, [CAUSE[cause] for cause in causes])


def _parts(idle: Idle, crowd: frames.Flags, partner: frames.Flags, host: Host) -> tuple[Parts, dict[str, Array], Array]:
    """The parts of all gaps, in no particular order, their names, and for each gap the operator that launched what ends it.

    `partner` says of each gap that what ends it was seen to wait for another stream or GPU.
    """
    start, end = idle.start, idle.end
    parts: list[Parts] = []
    # As if they had no call: what so many GPUs waited for is not told (`launches.MOST_GPUS`).
    known = np.append(~crowd, False)[idle.call] | idle.faulted
    parts.append(_some(np.flatnonzero(~known), start, end, UNATTRIBUTED.cause))

    early = known & ((idle.call_end <= start) | idle.same_call)
    short = end - start <= HANDOVER_NS
    handover = early & (idle.same_call | (idle.same_stream & short))
    parts.append(_some(np.flatnonzero(handover), start, end, TURNAROUND.cause))
    in_time = early & ~handover
    late = known & ~early
    host_end = np.clip(idle.call_start, start, end)
    launch_end = np.clip(idle.call_end + MAX_LAUNCH_DELAY_NS, host_end, end)
    # When an operation that was launched could have begun, had nothing held it.
    free = np.where(late, launch_end, start)
    for cause, gap in ((DEPENDENCY.cause, partner), (QUEUED.cause, ~partner)):
        parts.append(_some(np.flatnonzero((in_time | late) & gap), free, end, cause))

    behind = np.flatnonzero(late)
    unnamed = sum(len(part.gap) for part in parts)
    names = {column: [values] for column, values in _no_names(unnamed).items()}
    operator = np.full(len(start), NULL, np.int64)
    # A thread may launch on many GPUs: what it did is looked at once for all of them.
    for who, rows in frames.together(*(column[behind] for column in (idle.rank, idle.process, idle.thread))):
        mine = behind[rows]
        lane = host.thread(*who)
        own = Parts.joined(
            [
                host_parts(mine, start, host_end, lane),
                _some(mine, host_end, launch_end, LAUNCH_LATENCY.cause, host_end),
            ]
        )
        own, found, operator[mine] = named_parts(own, idle.call_start[mine], lane, host)
        for column, values in found.items():
            names[column].append(values)
        parts.append(own)
    return Parts.joined(parts), {column: np.concatenate(found) for column, found in names.items()}, operator


def _no_names(count: int) -> dict[str, Array]:
    """The columns of names and their numbers, of parts of which nothing is known."""
    absent = {"place_duration": 0}
    return {column: np.full(count, absent.get(column, NULL), np.int64) for column in (*NAMES, *NUMBERS, "sampled")}


def named_parts(own: Parts, launched: Array, lane: Thread, host: Host) -> tuple[Parts, dict[str, Array], Array]:
    """The parts of one thread's time, cut so that each has one activity or none; their names, and the operators that launched at some
    times."""
    own = _by_activity(own, lane)
    found = _no_names(len(own.gap))
    some, of_some, operator = _names(own, launched, lane, host)
    for column, values in of_some.items():
        found[column][some] = values
    if lane.sampled is not None:
        found["sampled"][:] = SAMPLED.index(lane.sampled)
    by_samples(own.start, own.end, own.is_cause(HOST_UNTRACED.cause), own.is_cause(OS.cause), found, lane, host)
    return own, found, operator


def _some(gap: Array, start: Array, end: Array, cause: str, asked: Array | None = None) -> Parts:
    """The non-empty of the intervals [start, end) of some gaps."""
    gap = gap[end[gap] > start[gap]]
    return Parts.of(gap, start[gap], end[gap], cause, None if asked is None else asked[gap])


def host_parts(gap: Array, start: Array, host_end: Array, thread: Thread) -> Parts:
    """Split the host time [start, host_end) of the gaps that one thread ended, or of any other stretches of its time. The first cause
    that applies takes the time.

    Gaps of several GPUs may overlap.
    """
    low, high = start[gap], host_end[gap]
    keep = high > low
    gap, low, high = gap[keep], low[keep], high[keep]
    wait = thread.waits.around(low)
    waited = wait >= 0
    # Each gap drains on its own, from its start on.
    drained = low.copy()
    drained[waited] = np.minimum(thread.waits.end[wait[waited]] + AFTER_WAIT_NS, high[waited])
    # The profiler's overhead goes first: it is never blamed on the user.
    found: list[Parts] = []
    left = (np.arange(len(gap), dtype=np.int64), low, high)

    def take(cause: str, spans: Spans) -> None:
        nonlocal left
        row, first, last = _pieces(left, spans)
        found.append(Parts.of(gap[row], first, last, cause))
        left = _pieces(left, _outside(spans, low, high))

    take(PROFILER.cause, thread.profiler)
    take(INPUT.cause, thread.input.cover)
    take(MEMORY_MANAGEMENT.cause, thread.memory)
    row, first, last = left
    of, begin, until = _between(row, first, np.minimum(last, drained[row]))
    asked = Parts.of(gap[of], begin, until, SYNCHRONIZATION.cause)
    # What asked for the wait, not what the host did first after it.
    asked.asked[:] = thread.waits.start[wait[of]]
    asked.wait[:] = thread.waits.name[wait[of]]
    found.append(asked)
    left = _between(row, np.maximum(first, drained[row]), last)
    take(MPI.cause, thread.mpi.cover)
    take(OS.cause, thread.os.cover)
    take(HOST_WORK.cause, join(thread.work.cover, thread.calls.cover))
    row, first, last = left
    return Parts.joined([*found, Parts.of(gap[row], first, last, HOST_UNTRACED.cause)])


def _by_activity(parts: Parts, thread: Thread) -> Parts:
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


def _names(parts: Parts, launched: Array, thread: Thread, host: Host) -> tuple[Array, dict[str, Array], Array]:
    """Which parts of one thread have names of what was traced, these names, and those of the operators that launched at some times.

    Only samples may tell what is untraced, and what the profiler did is its own.
    """
    some = np.flatnonzero(~parts.is_cause(HOST_UNTRACED.cause, PROFILER.cause))
    one = parts.take(some)
    told = {INPUT.cause: thread.input, MPI.cause: thread.mpi, OS.cause: thread.os}
    by_range = [(one.is_cause(cause), ranges) for cause, ranges in told.items()]
    found, operators = part_names(one.start, one.end, one.asked, by_range, launched, thread, host)
    return some, found, operators


def _between(label: Array, start: Array, end: Array) -> tuple[Array, Array, Array]:
    """Those of labelled parts that are not empty."""
    some = end > start
    return label[some], start[some], end[some]


def _pieces(parts: tuple[Array, Array, Array], spans: Spans) -> tuple[Array, Array, Array]:
    """Cut labelled parts by `spans`."""
    label, start, end = parts
    row, first, last = pieces(start, end, spans)
    return label[row], first, last


def _outside(spans: Spans, low: Array, high: Array) -> Spans:
    return complement(spans, int(low.min()), int(high.max())) if len(low) else spans
