"""Why each GPU stood idle: every gap is split, exactly, into parts with one cause each.

A gap is judged through the operation that ends it and the thread that launched that operation. The part before its launch call
starts is host time; the rest is the launch itself. If the launch call had returned before the gap began, the host is not to blame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.in_blocks import alike, are_alike, in_a_row, joined, taken
from traceanalyzer.derive.host.host import Host, Thread
from traceanalyzer.derive.host.samples import OTHERS, THREAD
from traceanalyzer.derive.host.stack import PlaceOf
from traceanalyzer.derive.ledger.gap_names import NAMES, NUMBERS, by_samples, part_names
from traceanalyzer.derive.ledger.idle import Idle
from traceanalyzer.derive.streams.handover import HANDOVER_NS
from traceanalyzer.intervals import Array, Spans, join, latest, near, parted, pieces
from traceanalyzer.records import dataclass
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
# In this order the parts of what one thread did are made.
_TURNS = (PROFILER, INPUT, MEMORY_MANAGEMENT, SYNCHRONIZATION, MPI, OS, HOST_WORK, HOST_UNTRACED, LAUNCH_LATENCY)
_TURN = np.zeros(len(IDLE_CAUSES), np.int64)
_TURN[[CAUSE[line.cause] for line in _TURNS]] = np.arange(len(_TURNS))
AFTER_WAIT_NS = 50_000
"""How long after a host wait returns the refilling of the GPU's queue still counts as its cost."""
MAX_LAUNCH_DELAY_NS = 1_000_000
"""A launch reaches an idle GPU within microseconds of its return; what lies beyond this waited for something else."""

PartnerOf = Callable[[Array], frames.Flags]
"""Of some gaps, by position, whether what ends each was seen to wait for another stream or GPU."""


@dataclass(frozen=True)
class Parts:
    """Parts of gaps, or of other time of a thread: `gap` is the position of the gap, `cause` indexes IDLE_CAUSES, `activity` indexes
    activity_times.NAMES.

    `asked` is the time at which to look for names, `NULL` for those that hold most of the part. `wait` indexes the host's names.
    """

    gap: Array
    start: Array
    end: Array
    cause: npt.NDArray[np.int8]
    asked: Array
    wait: Array
    activity: Array

    @classmethod
    def of(cls, gap: Array, start: Array, end: Array, cause: str, asked: Array | None = None) -> Parts:
        unknown = alike(NULL, len(gap))
        return cls(
            gap,
            start,
            end,
            np.full(len(gap), CAUSE[cause], np.int8),
            unknown if asked is None else asked,
            unknown,
            unknown,
        )

    @classmethod
    def joined(cls, parts: list[Parts]) -> Parts:
        return cls(*(joined([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def take(self, rows: Array | slice) -> Parts:
        columns = (getattr(self, field.name) for field in fields(self))
        return Parts(*(one[rows] if isinstance(rows, slice) else taken(one, rows) for one in columns))

    def is_cause(self, *causes: str) -> frames.Flags:
        found: frames.Flags = np.logical_or.reduce([self.cause == CAUSE[cause] for cause in causes])
        return found


def gap_parts(idle: Idle, known: frames.Flags, partner: PartnerOf) -> tuple[list[Parts], Array, Array, Array]:
    """The parts of some gaps of which no thread tells what it did, and what is left to be asked of those that launched too late: the
    gaps, where the launch call begins in each of all, and from where on it could have taken effect.

    `known` says of each gap that its call is to be believed.
    """
    start, end = idle.start, idle.end
    early = known & ((idle.call_end <= start) | idle.same_call)
    handover = early & (idle.same_call | (idle.same_stream & (end - start <= HANDOVER_NS)))
    late = known & ~early
    host_end = np.clip(idle.call_start, start, end)
    launch_end = np.clip(idle.call_end + MAX_LAUNCH_DELAY_NS, host_end, end)
    # When an operation that was launched could have begun, had nothing held it.
    free = np.where(late, launch_end, start)
    held = np.flatnonzero(known & ~handover & (free < end))
    for_partner = partner(held) if len(held) else np.empty(0, bool)
    parts = [
        _some(np.flatnonzero(~known), start, end, UNATTRIBUTED.cause),
        _some(np.flatnonzero(handover), start, end, TURNAROUND.cause),
        _some(held[for_partner], free, end, DEPENDENCY.cause),
        _some(held[~for_partner], free, end, QUEUED.cause),
    ]
    return parts, np.flatnonzero(late), host_end, launch_end


def host_and_launch(gap: Array, start: Array, host_end: Array, launch_end: Array, lane: Thread) -> Parts:
    """The parts of gaps that one thread launched too late for: up to its call, and from there on. What needs no names comes last."""
    launch = _some(gap, host_end, launch_end, LAUNCH_LATENCY.cause, host_end)
    profiler, *named, untraced = _host_parts(gap, start, host_end, lane)
    return Parts.joined([*named, launch, profiler, untraced])


def no_names(count: int) -> dict[str, Array]:
    """The columns of names and their numbers, of parts of which nothing is known."""
    absent = {"place_duration": 0}
    return {column: alike(absent.get(column, NULL), count) for column in (*NAMES, *NUMBERS, "sampled")}


def named_parts(own: Parts, launched: Array, lane: Thread, host: Host) -> tuple[Parts, dict[str, Array], Array]:
    """The parts of one thread's time, cut so that each has one activity or none; their names, and the operators that launched at some
    times."""
    own = by_activity(own, lane)
    found, operator = traced_names(own, launched, lane, lambda _: host.place)
    if lane.samples.tells:
        found = {column: np.array(values) for column, values in found.items()}
        add_samples(own, found, lane, host)
    return own, found, operator


def add_samples(own: Parts, found: dict[str, Array], lane: Thread, host: Host) -> None:
    """Fill in what CPU samples and the scheduler tell of all parts of one thread's time in gaps."""
    by_samples(own.start, own.end, own.is_cause(HOST_UNTRACED.cause), own.is_cause(OS.cause), found, lane, host)


def traced_names(
    own: Parts, launched: Array, lane: Thread, places: Callable[[Array], PlaceOf]
) -> tuple[dict[str, Array], Array]:
    """As `named_parts`, of parts that are cut, what the trace tells without samples. `places` is given the turn of each part of which
    places will be asked.

    Only samples may tell what is untraced, and what the profiler did is its own.
    """
    found = no_names(len(own.gap))
    some = in_a_row(np.flatnonzero(~own.is_cause(HOST_UNTRACED.cause, PROFILER.cause)))
    one = own.take(some)
    told = {INPUT.cause: lane.input, MPI.cause: lane.mpi, OS.cause: lane.os}
    by_range = [(one.is_cause(cause), ranges) for cause, ranges in told.items()]
    names, operators = part_names(one.start, one.end, one.asked, by_range, launched, lane, places(_TURN[one.cause]))
    for column, values in names.items():
        if len(values) and (not are_alike(values) or values[0] != found[column][0]):
            found[column] = np.array(found[column])
            found[column][some] = values
    if lane.sampled is not None:
        found["sampled"] = alike(SAMPLED.index(lane.sampled), len(own.gap))
    return found, operators


def _some(gap: Array, start: Array, end: Array, cause: str, asked: Array | None = None) -> Parts:
    """The non-empty of the intervals [start, end) of some gaps."""
    gap = gap.compress(end.take(gap) > start.take(gap))
    return Parts.of(gap, start.take(gap), end.take(gap), cause, None if asked is None else asked.take(gap))


def host_parts(gap: Array, start: Array, host_end: Array, thread: Thread) -> Parts:
    """Split the host time [start, host_end) of the gaps that one thread ended, or of any other stretches of its time. The first cause
    that applies takes the time.

    Gaps of several GPUs may overlap.
    """
    return Parts.joined(_host_parts(gap, start, host_end, thread))


def _host_parts(gap: Array, start: Array, host_end: Array, thread: Thread) -> list[Parts]:
    """As `host_parts`, cause by cause: that of the profiler first, what is untraced last."""
    low, high = start.take(gap), host_end.take(gap)
    gap, low, high = _between(gap, low, high)
    if not len(gap):
        return [Parts.of(gap, low, high, cause) for cause in (PROFILER.cause, HOST_UNTRACED.cause)]
    first, last = int(low.min()), int(high.max())
    wait = thread.waits.around(low)
    waited = wait >= 0
    # Each gap drains on its own, from its start on.
    drained = low.copy()
    drained[waited] = np.minimum(thread.waits.end[wait[waited]] + AFTER_WAIT_NS, high[waited])
    # The profiler's overhead goes first: it is never blamed on the user.
    found: list[Parts] = []
    left: tuple[Array, Array, Array] = (np.arange(len(gap), dtype=np.int64), low, high)

    def take(cause: str, *spans: Spans) -> None:
        nonlocal left
        here = [some for some in (near(one, first, last) for one in spans) if len(some[0])]
        row, begin, until = left
        inside, outside = parted(begin, until, here[0] if len(here) == 1 else join(*here))
        found.append(Parts.of(gap.take(row.take(inside[0])), *inside[1:], cause))
        left = (row.take(outside[0]), *outside[1:]) if here else left

    take(PROFILER.cause, thread.profiler)
    take(INPUT.cause, thread.input.cover)
    take(MEMORY_MANAGEMENT.cause, thread.memory)
    row, begin, until = left
    if waited.any():
        of, low, high = _between(row, begin, np.minimum(until, drained[row]))
        # What asked for the wait, not what the host did first after it.
        asked = Parts.of(gap[of], low, high, SYNCHRONIZATION.cause, thread.waits.start[wait[of]])
        found.append(replace(asked, wait=thread.waits.name[wait[of]]))
        left = _between(row, np.maximum(begin, drained[row]), until)
    take(MPI.cause, thread.mpi.cover)
    take(OS.cause, thread.os.cover)
    take(HOST_WORK.cause, thread.work.cover, thread.calls.cover)
    row, begin, until = left
    return [*found, Parts.of(gap.take(row), begin, until, HOST_UNTRACED.cause)]


def by_activity(parts: Parts, thread: Thread) -> Parts:
    """Cut the parts so that each has one activity, or none."""
    low, high, activity = thread.activities
    if not len(low) or not len(parts.gap):
        return parts
    rows = slice(np.searchsorted(high, parts.start.min(), side="right"), np.searchsorted(low, parts.end.max()))
    low, high, activity = low[rows], high[rows], activity[rows]
    if not len(low):
        return parts
    # What lies between the activities is a tile as well.
    bounds = np.unique(np.concatenate((low, high, [parts.start.min(), parts.end.max()])))
    row, first, last = pieces(parts.start, parts.end, (bounds[:-1], bounds[1:]))
    cut = replace(parts.take(row), start=first, end=last) if len(row) > len(parts.gap) else parts
    return replace(cut, activity=np.append(activity, NULL)[latest(low, high, first)])


def _between(label: Array, start: Array, end: Array) -> tuple[Array, Array, Array]:
    """Those of labelled parts that are not empty."""
    some = end > start
    return (label, start, end) if some.all() else (label.compress(some), start.compress(some), end.compress(some))
