"""A GPU's timeline cut at its collectives.

A line is what the GPU computes and copies, and the host that feeds it; the collectives of the GPU are taken out of it, for how long
they last is not its own doing. What is left of them on the line are events: an *issue* where the line hands its part over, a *join*
where the GPU went on only when the part was done, a *return* where the host waited for it. Between two events lies the line's own
work, a matrix of max-plus algebra (see `derive.replay`).

What an operation waited for is told by what ended last before it: the host's launch, the operation before it, or a part that filled the
pause. As it was, that one ended just so long before; the others have room, of which nothing is known but that they were over.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL, Flags
from traceanalyzer.derive.replay.host_time import HostTime
from traceanalyzer.derive.replay.replay import (
    HANDOVER_NS,
    LATENCY_NS,
    NOTHING,
    Change,
    Pace,
    Timeline,
    covered_rows,
)
from traceanalyzer.derive.replay.stretches import CUT, FELT, MET, NEVER, stretches
from traceanalyzer.intervals import Array, begun, coverage
from traceanalyzer.ranks.parallelism.parallelism_names import POINT_TO_POINT
from traceanalyzer.ranks.replay.tables import ISSUE, JOIN, LINE_EVENTS, MARK, RETURN
from traceanalyzer.records import dataclass

KINDS = (ISSUE, JOIN, RETURN, MARK)
_ISSUE, _JOIN, _RETURN, _MARK, _MET, _FELT = range(6)
_TURN = np.array([3, 2, 0, 4, 0, 1])
"""Of what happens at once, what ends comes before what begins."""


@dataclass(frozen=True)
class Parts:
    """The parts of matched collectives on one GPU, by start; `at` is their operation's place in the timeline, `previous` the part
    before on the same stream, -1 without one."""

    at: Array
    start: Array
    end: Array
    instance: Array
    transfer: Array
    free: Flags
    pair: Flags
    previous: Array

    def __len__(self) -> int:
        return len(self.at)

    @classmethod
    def of(cls, ops: pa.Table, kernels: pa.Table) -> Parts:
        place = np.flatnonzero(frames.equals(ops, "class", "communication"))
        instance, transfer = frames.ints(kernels, "instance"), frames.ints(kernels, "transfer")
        # Of a group with a rank that was not recorded nobody knows when all had come.
        whole = frames.ints(kernels, "missing") <= 0
        matched = np.flatnonzero(whole & (instance != NULL) & (transfer != NULL) & (frames.duration(kernels) > 0))
        start, end = (frames.ints(kernels, c)[matched] for c in ("start_ns", "end_ns"))
        stream = frames.dense(*(frames.ints(kernels, c)[matched] for c in ("process", "stream")))
        free = frames.ints(kernels, "spread")[matched] == NULL
        free &= frames.equals(kernels, "kind", "send")[matched]
        pair = frames.equals(kernels, "kind", *POINT_TO_POINT)[matched]
        return cls(place[matched], start, end, instance[matched], transfer[matched], free, pair, _previous(stream))


def _previous(stream: Array) -> Array:
    """For each row the one before it with the same number, -1 without one."""
    order = np.argsort(stream, kind="stable")
    same = np.append(False, np.diff(stream[order]) == 0)[: len(order)]
    before = np.full(len(order), -1, np.int64)
    before[order] = np.where(same, np.roll(order, 1), -1)
    return before


@dataclass(frozen=True)
class Line:
    """One GPU's line as it was, from which all is told that is asked of it: what its host and its GPU did, and how its parts began.

    `ended` is when each operation of the timeline did, `own` which are no parts. `happened` are its events, and what happens between
    two of them; of waits the `value` is their position in the pace.
    """

    key: frames.Key
    timeline: Timeline
    parts: Parts
    ended: Array
    own: Flags
    host: HostTime
    pace: Pace
    gpu: GpuLine
    issues: Issues
    happened: _Events

    @classmethod
    def of(cls, key: frames.Key, timeline: Timeline, ops: pa.Table, kernels: pa.Table, steps: pa.Table) -> Line:
        parts = Parts.of(ops, kernels)
        host = timeline.host_time()
        pace = timeline.pace(NOTHING, host)
        ended = frames.ints(ops, "end_ns")
        ended = np.append(ended, timeline.reach[len(ended) :])
        own = np.ones(len(ended), bool)
        own[parts.at] = False
        line = GpuLine.of(timeline, pace, ended, own, parts)
        issues = Issues.of(line, parts, timeline, pace)
        done, index = frames.ints(steps, "done_ns"), frames.ints(steps, "index")
        done, index = np.append(done, timeline.reach[-1]), np.append(index, NULL)

        last, met = last_ended(timeline, ended, parts, pace.wait_op)
        before = np.cumsum(own)
        waits_end = timeline.reach[pace.wait_op]
        back, on = np.flatnonzero(met >= 0), np.flatnonzero(met < 0)
        joined = np.flatnonzero(line.joins >= 0)
        happened = _Events.joined(
            _Events.of(_ISSUE, np.arange(len(parts)), issues.place, parts.start),
            _Events.of(_JOIN, line.joins[joined], joined, parts.end[line.joins[joined]]),
            _Events.of(_RETURN, met[back], before[pace.wait_op[back]], waits_end[back], back),
            _Events.of(_MARK, latest_part(parts, done), np.searchsorted(line.reach, done, side="right"), done, index),
            _Events.of(_MET, met[on], before[last[on]], waits_end[on], on),
            _felt(line, issues, parts, timeline, np.sort(waits_end)),
        )
        return cls(key, timeline, parts, ended, own, host, pace, line, issues, happened)

    def events(self, change: Change = NOTHING) -> pa.Table:
        """The events of the line, with the `change` taken out of its host's time, its own work and its pauses."""
        timeline, wait_time = self.timeline, self.pace.wait_time
        sooner = np.zeros(len(timeline.call), np.int64)
        if len(change.host[0]):
            (shown,) = timeline.shown([self.host], change.host)
            at_call, at_wait = np.split(self.host.shown - shown, [len(sooner)])
            sooner, wait_time = np.where(timeline.call == NULL, 0, at_call), wait_time - at_wait
        gpu = self.gpu.without(change, sooner[self.own])
        issues = self.issues.without(change, self.parts, sooner[self.parts.at])
        events = self.happened
        waits = np.isin(events.kind, (_RETURN, _MET))
        value = events.value.copy()
        value[waits] = wait_time[value[waits]]
        events = replace(events, value=value)
        of_line = np.array([CUT, CUT, CUT, CUT, MET, FELT])[events.kind]
        work = stretches(gpu.lead + gpu.own, gpu.arrival - gpu.lead, events.place, of_line, value)
        events = events.take(np.flatnonzero(of_line == CUT))
        return _table(self.key, timeline.origin, events, self.parts, issues, work)


def last_ended(timeline: Timeline, ended: Array, parts: Parts, wait_op: Array) -> tuple[Array, Array]:
    """What ended each wait of the host, the operation that the GPU was last busy with; and as a part, -1 where it is none."""
    newest = ended > timeline.before
    last = np.maximum.accumulate(np.where(newest, np.arange(len(ended)), 0))[wait_op]
    of_part = np.full(len(ended), -1)
    of_part[parts.at] = np.arange(len(parts))
    return last, of_part[last]


@dataclass(frozen=True)
class GpuLine:
    """The operations of a GPU that are no parts, by start.

    Each is done at `reach`, adds `own` after a pause of `lead` since `free`, and its launch makes it arrive (`NEVER` without one).
    `call` is the launch; `joins` is the part that filled the pause before it, -1 without one, and `late` that its launch ended that
    pause. `latency`: from a launch to its operation, as usual.
    """

    reach: Array
    call: Array
    free: Array
    lead: Array
    own: Array
    arrival: Array
    joins: Array
    late: Flags
    latency: int

    @classmethod
    def of(cls, timeline: Timeline, pace: Pace, ended: Array, own: Flags, parts: Parts) -> GpuLine:
        at = np.flatnonzero(own)
        start, call, back, arrival, was = (
            column.take(at) for column in (timeline.start, timeline.call, timeline.back, pace.arrival, timeline.latency)
        )
        blocked = timeline.blocked.take(at)
        reach = np.maximum.accumulate(ended.take(at)) if len(at) else np.empty(0, np.int64)
        before = np.concatenate(([timeline.origin], reach[:-1]))[: len(reach)]
        begin = np.maximum(start, before)
        joins = latest_part(parts, start)
        over = np.append(parts.end, NULL)[joins]
        joins = np.where((begin > before) & (over > before), joins, -1)
        again = np.append(False, call[1:] == call[:-1])[: len(call)]
        launched = (begin > before) & (call != NULL) & (back > before) & ~blocked & ~again
        latency = start - call
        usual = int(np.median(latency[launched & (joins < 0)])) if (launched & (joins < 0)).any() else LATENCY_NS
        late = launched & ((joins < 0) | (latency - usual < start - over))
        waited = np.where(joins < 0, before, over)
        lead = np.where(late, np.minimum(begin - waited, HANDOVER_NS), begin - waited)
        needed = np.where(blocked, was, np.where(late, latency, np.minimum(latency, usual)))
        arrival = np.where(call == NULL, NEVER, arrival - was + needed)
        return cls(reach, call, waited, lead, reach - begin, arrival, joins, late, usual)

    def without(self, change: Change, sooner: Array) -> GpuLine:
        """With launches so much `sooner`, and the work and the pauses of the `change` taken out."""
        begin, late = self.reach - self.own, self.late
        own = self.own - covered_rows(begin, self.reach, change.work)
        lead, arrival = self.lead, self.arrival - sooner
        if len(change.pauses[0]):
            pause = coverage(np.where(late, np.maximum(self.free, self.call), self.free), begin, change.pauses)
            lead, arrival = np.where(late, lead, lead - pause), np.where(late, arrival - pause, arrival)
        return replace(self, lead=lead, own=own, arrival=arrival)


@dataclass(frozen=True)
class Issues:
    """How each part began: after so many operations of the line (`place`), and after what; times in ns, `NEVER` where it cannot be.

    `bound` is what it began after: 0 what the GPU did before, which was over at `gpu`, 1 the part before on its stream, 2 its launch;
    that was over at `since`, or not yet when it began.
    """

    place: Array
    by_host: Array
    after_gpu: Array
    after_other: Array
    bound: Array
    gpu: Array
    since: Array

    @classmethod
    def of(cls, line: GpuLine, parts: Parts, timeline: Timeline, pace: Pace) -> Issues:
        call, arrival, was = (c[parts.at] for c in (timeline.call, pace.arrival, timeline.latency))
        place = np.searchsorted(line.reach, parts.start, side="right")
        # A part can only follow what was launched before it.
        launched = np.searchsorted(np.maximum.accumulate(line.call), call, side="right")
        place = np.maximum.accumulate(np.where(call == NULL, place, np.minimum(place, launched)))
        gpu = np.concatenate(([timeline.origin], line.reach))[place]
        join_place = np.flatnonzero(line.joins >= 0)
        join_end = parts.end[line.joins[join_place]]
        # Of joins at the same place only those that were over.
        at = _last_before(join_place, join_end, place, parts.start)
        gpu = np.maximum(gpu, np.append(join_end, NULL)[at])
        other = np.append(parts.end, NULL)[parts.previous]
        far = np.iinfo(np.int64).max
        latency = np.minimum(parts.start - call, line.latency)
        rooms = np.stack(
            (
                np.maximum(parts.start - gpu, 0),
                np.where(parts.previous < 0, far, np.maximum(parts.start - other, 0)),
                np.where(call == NULL, far, parts.start - call - latency),
            )
        )
        bound = np.argmin(rooms, axis=0)
        since = np.where(bound == 2, call, np.where(bound == 1, other, gpu))
        latency = np.where(bound == 2, parts.start - call, latency)
        return cls(
            place,
            np.where(call == NULL, NEVER, arrival - was + latency),
            np.where(bound == 0, rooms[0], 0),
            np.where(bound == 1, rooms[1], 0),
            bound,
            gpu,
            np.minimum(since, parts.start),
        )

    def without(self, change: Change, parts: Parts, sooner: Array) -> Issues:
        """With launches so much `sooner`, and the pauses of the `change` taken out."""
        pause = coverage(self.since, parts.start, change.pauses)
        after_gpu, after_other, more = (np.where(self.bound == bound, pause, 0) for bound in range(3))
        return replace(
            self,
            by_host=self.by_host - sooner - more,
            after_gpu=self.after_gpu - after_gpu,
            after_other=self.after_other - after_other,
        )


def _last_before(place: Array, end: Array, wanted: Array, time: Array) -> Array:
    """The last of (place, end), which ascend, that is not after each (wanted, time); -1 without one."""
    count = np.searchsorted(place, wanted, side="right")
    late = np.minimum(np.searchsorted(end, time, side="right"), count)
    return late - 1


@dataclass(frozen=True)
class _Events:
    """What happens on a line, each with its part (-1 without one), how many operations lie before it, when it happened, and of
    waits the host's own time, of marks the index of the step."""

    kind: Array
    part: Array
    place: Array
    time: Array
    value: Array

    @classmethod
    def of(cls, kind: int, part: Array, place: Array, time: Array, value: Array | None = None) -> _Events:
        return cls(
            np.full(len(part), kind), part, place, time, np.zeros(len(part), np.int64) if value is None else value
        )

    @classmethod
    def joined(cls, *several: _Events) -> _Events:
        """All of them by place and time."""
        every = cls(*(np.concatenate([getattr(one, c.name) for one in several]) for c in fields(cls)))
        return every.take(np.lexsort((_TURN[every.kind], every.time, every.place)))

    def take(self, rows: Array) -> _Events:
        return _Events(*(getattr(self, c.name)[rows] for c in fields(self)))


def latest_part(parts: Parts, time: Array) -> Array:
    """The part that ended last at each time or before it, -1 without one."""
    order = np.argsort(parts.end, kind="stable")
    return np.append(order, -1).take(begun(parts.end[order], time) - 1)


def _felt(line: GpuLine, issues: Issues, parts: Parts, timeline: Timeline, over: Array) -> _Events:
    """Where the host had been held up by one more wait."""
    # Parts come before the operation that follows them.
    order = np.lexsort((timeline.call[parts.at], issues.place))
    at = issues.place[order]
    place = np.insert(np.arange(len(line.call)), at, at)
    call = np.insert(line.call, at, timeline.call[parts.at[order]])
    count = np.maximum.accumulate(np.searchsorted(over, call, side="right"))
    felt = np.flatnonzero(np.diff(count, prepend=0) > 0)
    return _Events.of(_FELT, np.full(len(felt), -1), place[felt], call[felt])


def _table(key: frames.Key, origin: int, events: _Events, parts: Parts, issues: Issues, work: Array) -> pa.Table:
    kind, part = events.kind, events.part
    issue, mark = kind == _ISSUE, kind == _MARK

    def of(values: Array, which: Flags) -> pa.Array:
        found = np.append(values, NULL)[part]
        return frames.numbers(np.where(which & (found != NEVER), found, NULL))

    row = np.full(len(parts) + 1, NULL)
    row[part[issue]] = np.flatnonzero(issue)
    follows = np.where(mark, row[part], row[np.append(parts.previous, -1)[part]])
    behind = np.where((issue | mark) & (follows != NULL), np.arange(len(kind)) - follows, NULL)
    return frames.build(
        LINE_EVENTS,
        {"rank": np.full(len(kind), key[0]), "device": np.full(len(kind), key[1])}
        | {"kind": frames.names(kind, KINDS), "instance": of(parts.instance, ~mark)}
        | {"work": pa.FixedSizeListArray.from_arrays(pa.array(work.reshape(-1)), 9)}
        | {"by_host": of(issues.by_host, issue), "after_gpu": of(issues.after_gpu, issue)}
        | {"behind": frames.numbers(behind), "after_other": of(issues.after_other, issue)}
        | {"met": of(parts.end - parts.transfer - origin, ~mark), "transfer": of(parts.transfer, ~mark)}
        | {"free": pa.array(np.append(parts.free, False)[part]), "pair": pa.array(np.append(parts.pair, False)[part])}
        | {"host_time": frames.numbers(np.where(kind == _RETURN, events.value, NULL))}
        | {"step": frames.numbers(np.where(mark, events.value, NULL)), "time": events.time - origin}
        | {"origin": np.full(len(kind), origin)},
    )
