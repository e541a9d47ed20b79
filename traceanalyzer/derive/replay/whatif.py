"""How long a step would take without a cause: what a finding claimed of the ledger, taken out of the replayed timeline.

The ledger tells what a cause costs now; a fix takes away the whole of it. A batch loaded in another process costs the launching thread
nothing, also where the GPU was still busy; so the host loses the whole ranges and calls behind the claimed idle time, a wait goes with
the operator that asked for it, and a copy with the time in which its call was held up.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.derive.host.activity_times import NAMES
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.ledger.gaps import AFTER_WAIT_NS
from traceanalyzer.derive.replay.host_time import HostTime, with_few
from traceanalyzer.derive.replay.profiler_cost import LEAST_EXTENT, MOST_EXTENT, NOISE, ProfilerCost
from traceanalyzer.derive.replay.replay import NOTHING, Change, Timeline
from traceanalyzer.derive.replay.unrecorded import unrecorded_hosts
from traceanalyzer.intervals import (
    EMPTY,
    Array,
    Spans,
    clip,
    coverage,
    innermost,
    join,
    latest,
    subtract,
    total,
    total_within,
    union,
)
from traceanalyzer.model.claimed import Claimed
from traceanalyzer.model.replayed import MOST_WRONG, Prediction
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.lines import (
    BUSY_LINES,
    DEPENDENCY,
    EXPOSED_MEMCPY,
    HOST_UNTRACED,
    HOST_WORK,
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

MOSTLY = 0.5
"""An operator that spends this share of its time in what is taken out exists for it, and goes with it. So it is with a wait."""
HARDLY = 0.1
"""A cause with less than this share of its time between the ends of the first and the last step says nothing of steps."""
WORK_LINES = BUSY_LINES
HOST_LINES = (
    LAUNCH_LATENCY.name,
    INPUT.name,
    MEMORY_MANAGEMENT.name,
    MPI.name,
    OS.name,
    HOST_WORK.name,
    HOST_UNTRACED.name,
    PROFILER.name,
)
PAUSE_LINES = (LAUNCH_LATENCY.name, DEPENDENCY.name, QUEUED.name, UNATTRIBUTED.name, TURNAROUND.name)
PAUSES = [NAMES.index(name) for name in ("garbage_collection", "first_use")]
DETOURS = [NAMES.index(name) for name in ("compilation", "checkpoint")]
"""Activities that a fix takes away as a whole; detours with the GPU work that they launch."""


@dataclass(frozen=True)
class Unprofiled:
    """A step as it is, and as it would be without what recording cost: about `then`, from `least` to `most`; in ns."""

    now: int
    then: int
    least: int
    most: int


class WhatIf:
    """The timelines of all GPUs, to be played again."""

    def __init__(
        self,
        timelines: Mapping[frames.Key, Timeline],
        step_stats: pa.Table,
        host: Host,
        host_ranges: pa.Table,
        profiler_cost: ProfilerCost,
    ) -> None:
        self._timelines = timelines
        self._cost = profiler_cost
        self._unprofiled: dict[frames.Key, Unprofiled | None] = {}
        self._hosts: dict[frames.Key, HostTime] = {}
        self._ends = {key: frames.ints(steps, "done_ns") for key, steps in frames.split(step_stats)}
        self._true: dict[frames.Key, bool] = {}
        self._host = host
        columns = host_ranges.select(["rank", "process", "thread", "start_ns", "end_ns"])
        operators = columns.filter(pa.array(frames.equals(host_ranges, "category", "operator")))
        self._operator_rows = dict(frames.threads(operators))
        self._operator_times = frames.ints(operators, "start_ns"), frames.ints(operators, "end_ns")

    def without(self, key: frames.Key, claimed: Claimed, keep: float) -> Prediction | None:
        """The prediction for one GPU, without what `claimed` holds of each ledger line; `keep` of its GPU time stays.

        None where the timeline cannot be played again truly, so that nothing can be said.
        """
        timeline = self._believed(key)
        if timeline is None:
            return None
        whole = claimed.whole
        marks = self._marks(key, timeline, whole)
        change, further = self._change(timeline, claimed, keep)
        per_step = len(marks) > 1
        # Of a whole window nobody asks how long it would be without the profiler.
        hosts = [timeline.host_time(), self._unrecorded(key) if per_step else None]
        then, *bare = timeline.replays(change, marks[[0, -1]] if per_step else marks, [one for one in hosts if one])
        start, end = int(timeline.reach[marks[0]]), int(timeline.reach[marks[-1]])
        if not per_step:
            start = timeline.origin
        left = _length(then, end - start)
        steps = max(len(marks) - 1, 1)
        unprofiled = _length(bare[0], left) // steps if bare else None
        own = round(total_within(whole, start, end) * (1 - keep))
        asked = clip(subtract(further, whole), start, end)
        work = int(sum(int(ns.sum()) for _, ns in timeline.ran_in(asked)) * (1 - keep))
        now, left, own, work = (ns // steps for ns in (end - start, left, own, work))
        return Prediction(now, left, own, work, start, end, steps, per_step, unprofiled)

    def unprofiled(self, key: frames.Key) -> Unprofiled | None:
        """A step of one GPU without the profiler; None without two steps, and where that cannot be told."""
        if key not in self._unprofiled:
            self._unprofiled[key] = self._find_unprofiled(key)
        return self._unprofiled[key]

    def _find_unprofiled(self, key: frames.Key) -> Unprofiled | None:
        timeline, ends = self._believed(key), self._ends.get(key, EMPTY[0])
        recorded = self._cost.recorded(timeline.threads) if timeline is not None and len(ends) >= 2 else None
        if timeline is None or recorded is None:
            return None
        marks = _marks(timeline, ends)
        now, steps = int(timeline.reach[marks[-1]] - timeline.reach[marks[0]]), len(marks) - 1
        if not steps:
            return None
        hosts = unrecorded_hosts(timeline, recorded, (1.0, MOST_EXTENT, LEAST_EXTENT), keep=True)
        self._hosts[key] = hosts[0]
        then, least, most = (_length(one, now) // steps for one in timeline.replays(NOTHING, marks[[0, -1]], hosts))
        return Unprofiled(now // steps, then, round(least * (1 - NOISE)), round(most * (1 + NOISE)))

    def believes(self, key: frames.Key) -> bool:
        """Whether the timeline of a GPU can be played again truly."""
        return self._believed(key) is not None

    def _unrecorded(self, key: frames.Key) -> HostTime | None:
        """The host's time without what recording cost, which a step without the profiler is told from; None where that is not known."""
        self.unprofiled(key)
        return self._hosts.get(key)

    def _believed(self, key: frames.Key) -> Timeline | None:
        """The timeline, where it can be played again truly."""
        timeline = self._timelines[key]
        if key not in self._true:
            self._true[key] = _replays_as_itself(timeline)
        return timeline if self._true[key] else None

    def _marks(self, key: frames.Key, timeline: Timeline, claimed: Spans) -> Array:
        """The operations with which the steps end; the last one alone without two steps, or if the claim lies outside them."""
        ends = self._ends.get(key, EMPTY[0])
        if len(ends) >= 2 and total_within(claimed, int(ends[0]), int(ends[-1])) >= HARDLY * total(claimed):
            return _marks(timeline, ends)
        return np.array([len(timeline.reach) - 1])

    def _change(self, timeline: Timeline, claimed: Claimed, keep: float) -> tuple[Change, Spans]:
        """What goes with the claim, and what of the GPU's work that is not claimed may be."""
        copies = ran_in(timeline, claimed.on((EXPOSED_MEMCPY.name,)))
        waits = copies[timeline.wait_op]
        # A finding that claims a little idle time after waits is not about these.
        drained = claimed.on((SYNCHRONIZATION.name,))
        if total(drained) >= MOSTLY * (claimed.ns - total(claimed.on(WORK_LINES))):
            waits |= _drained(timeline, drained)
        waits |= np.isin(timeline.wait_start, timeline.call[copies])
        host = [held(timeline, copies)]
        asking: list[Spans] = []
        detours: list[Spans] = []
        for thread in timeline.threads:
            lane = self._host.thread(*thread)
            memory = _whole(lane.memory, claimed.on((MEMORY_MANAGEMENT.name,)))
            host += [_whole(lane.input.cover, claimed.on((INPUT.name,))), self._existing_for(thread, memory)]
            asking.append(self._existing_for(thread, self._innermost(thread, timeline.wait_start[waits])))
            start, end, activity = lane.activities
            for names, parts in ((PAUSES, host), (DETOURS, detours)):
                of_kind = np.isin(activity, names)
                if of_kind.any():
                    work = claimed.on((HOST_WORK.name, HOST_UNTRACED.name))
                    parts.append(_whole((start[of_kind], end[of_kind]), work))
        # Detours go with all that they ran on the GPU. Operators that asked for a wait leave their copies, which are still needed, and
        # the time in which those hold up the host.
        asked = join(EMPTY, *asking)
        if len(asked[0]):
            asked = subtract(asked, held(timeline, timeline.copies & ~copies))
        further = join(
            _launched_in(timeline, join(EMPTY, *detours), copies=True), _launched_in(timeline, asked, copies=False)
        )
        dropped = union(timeline.wait_start[waits], timeline.wait_end[waits])
        host_time = with_few(claimed.on(HOST_LINES), join(*host, asked, *detours))
        work = with_few(claimed.on(WORK_LINES), further)
        return Change(host_time, dropped, work, keep, claimed.on(PAUSE_LINES)), further

    def _operators(self, thread: frames.ThreadKey, times: Array) -> Spans:
        """The operators of a thread that hold one of `times` (sorted); they may lie in one another, and are sorted by (start, -end)."""
        rows = self._operator_rows.get(thread, slice(0, 0))
        if not len(times):
            return EMPTY
        start, end = (column[rows] for column in self._operator_times)
        hold = np.searchsorted(times, end) > np.searchsorted(times, start)
        return start[hold], end[hold]

    def _innermost(self, thread: frames.ThreadKey, times: Array) -> Spans:
        start, end = self._operators(thread, times)
        low, high, owner = innermost(start, end)
        at = latest(low, high, times)
        found = np.unique(owner[at[at >= 0]])
        return union(start[found], end[found])

    def _existing_for(self, thread: frames.ThreadKey, spans: Spans) -> Spans:
        """The spans, and the operators that spend most of their time in them: `aten::index` in the `aten::nonzero` inside it."""
        start, end = self._operators(thread, spans[0])
        most = coverage(start, end, spans) >= MOSTLY * (end - start)
        return join(spans, (start[most], end[most]))


def _replays_as_itself(timeline: Timeline) -> bool:
    """Whether the timeline lasts as long as it did, half of it and all of it, when it is played again with nothing taken out."""
    marks = np.array([len(timeline.reach) // 2, len(timeline.reach) - 1])
    was = timeline.reach[marks] - timeline.origin
    return bool(np.abs(timeline.replay(NOTHING, marks) - was).max() <= MOST_WRONG * was[-1])


def _marks(timeline: Timeline, ends: Array) -> Array:
    """The last operations that are done at these times, of several that end at once the first."""
    last = np.searchsorted(timeline.reach, ends, side="right") - 1
    return np.unique(np.searchsorted(timeline.reach, timeline.reach[np.maximum(last, 0)]))


def _length(done: Array, most: int) -> int:
    """From the first mark to the last, or from the window's start to the only one. What is taken out before the first step's end
    lengthens nothing after it."""
    return min(int(done[-1] - done[0]) if len(done) > 1 else int(done[0]), most)


def _whole(spans: Spans, claimed: Spans) -> Spans:
    """Those of the spans that the claim touches."""
    touched = coverage(*spans, claimed) > 0
    return spans[0][touched], spans[1][touched]


def _drained(timeline: Timeline, claimed: Spans) -> frames.Flags:
    """The waits whose idle time was mostly claimed: from the end of what the host waited for, as long as the wait counts."""
    following = timeline.start.take(np.minimum(timeline.wait_op + 1, len(timeline.start) - 1))
    following[timeline.wait_op + 1 == len(timeline.start)] = timeline.reach[-1]
    begin = timeline.reach[timeline.wait_op]
    idle = np.clip(timeline.wait_end + AFTER_WAIT_NS, begin, np.maximum(following, begin)) - begin
    return (idle > 0) & (coverage(begin, begin + idle, claimed) >= MOSTLY * idle)


def ran_in(timeline: Timeline, spans: Spans) -> frames.Flags:
    """The operations that added to the GPU's busy time in these spans."""
    found = np.zeros(len(timeline.start), bool)
    for rows, ns in timeline.ran_in(spans):
        found[rows] = ns > 0
    return found


def _launched_in(timeline: Timeline, spans: Spans, *, copies: bool) -> Spans:
    """What the operations that were launched in these spans added to the GPU's busy time; with or without `copies`."""
    if not len(spans[0]):
        return EMPTY
    called = coverage(timeline.call, timeline.call + 1, spans) > 0
    if not copies:
        called &= ~timeline.copies
    return union(np.maximum(timeline.start, timeline.before)[called], timeline.reach[called])


def held(timeline: Timeline, copies: frames.Flags | Array) -> Spans:
    """When the calls that started these copies, flags or positions, did not return because the copies were running."""
    start, call, reach, back = (
        column[copies] for column in (timeline.start, timeline.call, timeline.reach, timeline.back)
    )
    return union(np.maximum(start, call), np.minimum(reach, back))
