"""What a GPU's window would last without some cause: its timeline played again with that cause taken out.

The launching threads of a process act as one host, because the main thread waits while others launch for it. The host goes on by itself
but for its waits, which end when the GPU has done what they wait for. The GPU works through its operations in the order in which they
began; each begins when it has arrived and those before it are done. What overlaps them adds nothing:

    reach[k] = max(reach[k - 1] + lead[k], arrival[k]) + own[k]        own[k]: what operation k adds to the union of all before it
                                                                       lead[k]: the pause before it that the hardware makes

Between two waits this is one running maximum over cumulative sums, and a wait is a maximum of two sums: each stretch is a matrix in
max-plus algebra, and a timeline the product of its stretches (Baccelli, Cohen, Olsder, Quadrat: Synchronization and Linearity, 1992).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from traceanalyzer.arrow import give_back
from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.spill import Growing, forget
from traceanalyzer.derive.replay.host_time import HostTime, Without, blocks, with_few, within
from traceanalyzer.derive.replay.stretches import CUT, FELT, MET, NEVER, Stretches
from traceanalyzer.intervals import EMPTY, Array, Spans, coverage, near, overlaps, union
from traceanalyzer.records import dataclass

LATENCY_NS = 5_000
"""From a launch call to its operation on an idle GPU, where a trace shows none."""
HANDOVER_NS = 500
"""What is left of a pause whose cause is gone: the hardware's hand-over to the next operation of a graph or queue
(https://developer.nvidia.com/blog/cuda-graphs/: kernels of 2.9 us follow one another every 3.4 us)."""
LONG_CALL_NS = 1_000_000
"""A launch call that takes this long, while the GPU has `QUEUED` operations before it, waits for a free place in the queue."""
QUEUED = 500
"""The launch queue has about 1,024 places."""
FULL = 1_000
SLOW_CALL = 10
"""With so many operations before it, a call that takes so many times as long as the median one waits for a place in the queue too."""


@dataclass(frozen=True)
class Change:
    """What is taken out of a timeline: time of the host, its waits for the GPU, what the GPU ran in the stretches `work` but for the
    share `keep` of it, and the GPU's `pauses` before operations."""

    host: Spans = EMPTY
    waits: Spans = EMPTY
    work: Spans = EMPTY
    keep: float = 0.0
    pauses: Spans = EMPTY


NOTHING = Change()


@dataclass(frozen=True)
class Begun:
    """A timeline that is played up to some operations, `count` of them: the `state` then, as `Stretches` has it."""

    count: int
    state: Array


AT_START = Begun(0, np.zeros(3, np.int64))


@dataclass(frozen=True)
class Pace:
    """The numbers that a timeline is played from, in ns.

    Of each operation the pause `lead` before it, what it adds (`own`), when its launch makes it arrive if the host meets no delay
    (`NEVER` without one). Of each wait the operation `wait_op` that it is for, and the host's own time `wait_time` then.
    """

    lead: Array
    own: Array
    arrival: Array
    wait_op: Array
    wait_time: Array


@dataclass(frozen=True)
class Timeline:
    """The operations of one GPU in order of their start, and the host that feeds them. Times in ns.

    `origin` is where the window starts. Where it ends after all operations, its end is the last of them: one of no length, which the
    host comes to then. `call` and `back` are the start and the return of the launch call, `NULL` where the operation has none.
    `before` is the end of the union of all operations before each, `reach` that of all up to it. `late`: the GPU was idle because the
    host had not launched yet. `blocked`: the launch call itself waited for what was before. `latency`: from call to start, on an idle
    GPU; `copies`: memory copies. `wait_start`, `wait_end` and `wait_op` are the host's waits that the GPU ended, sorted by start, and
    the operation each waited for. `threads` are the (rank, process, thread) of the host.
    """

    threads: list[frames.ThreadKey]
    origin: int
    start: Array
    call: Array
    back: Array
    before: Array
    reach: Array
    late: frames.Flags
    blocked: frames.Flags
    latency: Array
    copies: frames.Flags
    wait_start: Array
    wait_end: Array
    wait_op: Array

    @property
    def length(self) -> int:
        """The window as it was."""
        return int(self.reach[-1]) - self.origin

    def replay(self, change: Change, marks: Array) -> Array:
        """When each of the operations `marks` (positions, ascending) and all before it are done, from the window's start, with
        `change` taken out."""
        (done,) = self.replays(change, marks, [self.host_time()])
        return done

    def replays(self, change: Change, marks: Array, hosts: Sequence[HostTime]) -> list[Array]:
        """As `replay`, of each of several hosts, which are as `host_time` tells them."""
        return [states[:, 2] for states in self.states(change, marks, hosts)]

    def states(self, change: Change, marks: Array, hosts: Sequence[HostTime], begun: Begun = AT_START) -> list[Array]:
        """As `replays`, all of the state then, (n, 3). What is `begun` is not played again: nothing of it is taken out."""
        play = _Play(self, change, hosts)
        events = _Events(self, play, marks, begun)
        sums = Stretches(events.place, events.kind, len(hosts))
        for done, since, ahead in play.sums(begun.count, int(marks[-1]) + 1):
            sums.add(done, since, ahead)
        played = []
        for number, wait_time in enumerate(play.wait_times()):
            states = [begun.state]
            for stretch in sums.matrices(np.append(wait_time, 0)[events.wait], number):
                states.append(np.maximum((stretch + states[-1]).max(axis=1), NEVER))
            played.append(np.array(states[1:], np.int64))
        return played

    @cached_property
    def plain(self) -> tuple[Array, Array]:
        """With nothing taken out, of each operation: what it and all before it add, with the pauses before them; and how much later it
        arrives than what was added before it, beside the host's time at its call (anything without one)."""
        sums, aheads, since = Growing(), Growing(), 0
        for rows in blocks(len(self.start)):
            done, ahead = _summed(*_changed(self, rows, NOTHING, EMPTY), since)
            sums.add(done)
            aheads.add(ahead)
            since = int(done[-1])
            forget()
        return sums.array(), aheads.array()

    @cached_property
    def knows_calls(self) -> bool:
        """Whether each operation has a launch call."""
        return all(bool((self.call[rows] != NULL).all()) for rows in blocks(len(self.call)))

    @cached_property
    def first_called(self) -> Array:
        """For each wait the first operation that was called when what it was for was done."""
        over = self.reach[self.wait_op]
        order = np.argsort(over, kind="stable")
        first = np.empty(len(over), np.int64)
        first[order] = _first_reaching(self.call, over[order])
        return first

    def ran_in(self, spans: Spans) -> Iterator[tuple[slice, Array]]:
        """The operations in blocks, and how much of the spans each adds to the GPU's busy time; none of a block that adds nothing."""
        if not len(spans[0]):
            return
        first, stop = np.searchsorted(self.reach, spans[0][0], side="right"), np.searchsorted(self.before, spans[1][-1])
        for rows in blocks(int(stop), int(first)):
            begin, reach = np.maximum(self.start[rows], self.before[rows]), self.reach[rows]
            some = near(spans, int(begin[0]), int(reach[-1]))
            if len(some[0]):
                yield rows, covered_rows(begin, reach, some)

    def pace(self, change: Change, host: HostTime) -> Pace:
        """What the timeline is made of, with `change` taken out."""
        play = _Play(self, change, [host])
        found = [(lead, own, arrival) for own, lead, (arrival,) in play.blocks(0, len(self.start))]
        lead, own, arrival = (np.concatenate(column) for column in zip(*found, strict=True))
        (wait_time,) = play.wait_times()
        return Pace(lead, own, arrival, play.op, wait_time)

    def host_time(self, gone: Spans = EMPTY) -> HostTime:
        """The host's own time, without what is `gone`, at the calls of operations and then at the ends of what waits were for."""
        return self._as_it_was if gone is EMPTY else self._host_time(gone)

    @cached_property
    def _as_it_was(self) -> HostTime:
        return self._host_time(EMPTY)

    def _host_time(self, gone: Spans) -> HostTime:
        # While the host only waits it does no work: that lasts as long as the GPU makes it.
        waited = union(self.wait_start, self.reach[self.wait_op])
        gone = within(with_few(gone, waited), self.origin, int(self.reach[-1]))
        return HostTime.at(self._asked(), self.origin, gone)

    def without(self, hosts: Sequence[HostTime], gone: Spans) -> Without:
        """Several hosts, if these spans were gone too."""
        return Without(hosts, within(gone, self.origin, int(self.reach[-1])))

    def shown(self, hosts: Sequence[HostTime], gone: Spans) -> list[Array]:
        """What the clocks of several hosts would show, if these spans were gone too."""
        without, at, found = self.without(hosts, gone), 0, []
        for times in self._asked():
            found.append(without.shown(slice(at, at + len(times)), times))
            at += len(times)
        return [np.concatenate(one) for one in zip(*found, strict=True)]

    def _asked(self) -> Iterator[Array]:
        """When the host's time is asked for: at the calls of operations, then at the ends of what waits were for."""
        yield from (self.call[rows] for rows in blocks(len(self.call)))
        yield self.reach[self.wait_op]


class _Play:
    """A timeline as it is played with a change taken out, by each of several hosts. `op` is what the waits that are `left` are for."""

    def __init__(self, timeline: Timeline, change: Change, hosts: Sequence[HostTime]) -> None:
        forget()  # What was read before is not needed beside this.
        give_back()
        self._timeline, self._change = timeline, change
        self.left = coverage(timeline.wait_start, timeline.wait_end, change.waits) == 0
        self._dropped = union(timeline.wait_start[~self.left], timeline.wait_end[~self.left])
        self.op = timeline.wait_op[self.left]
        self._clocks = timeline.without(hosts, with_few(change.host, self._dropped))

    def wait_times(self) -> list[Array]:
        """The time of each host at the end of what each wait was for."""
        count, op = len(self._timeline.call), self._timeline.wait_op
        shown = self._clocks.shown(slice(count, count + len(op)), self._timeline.reach[op])
        return [one[self.left] for one in shown]

    def blocks(self, first: int, stop: int) -> Iterator[tuple[Array, Array, list[Array]]]:
        """Of some operations what each adds, the pause before it, and when its launch makes it arrive by each of the hosts."""
        for rows in blocks(stop, first):
            own, lead, latency = _changed(self._timeline, rows, self._change, self._dropped)
            yield own, lead, self._after(rows, latency, NEVER)
            forget()

    def sums(self, first: int, stop: int) -> Iterator[tuple[Array, int, list[Array]]]:
        """Of some operations what `Stretches.add` is told of them."""
        for rows in blocks(stop, first):
            if self._touches(rows):
                since, (done, ahead) = 0, _summed(*_changed(self._timeline, rows, self._change, self._dropped), 0)
            else:
                plain = self._timeline.plain
                since = int(plain[0][rows.start - 1]) if rows.start else 0
                done, ahead = (column[rows] for column in plain)
            yield done, since, self._after(rows, ahead, 2 * NEVER)
            forget()

    def _after(self, rows: slice, late: Array, otherwise: int) -> list[Array]:
        """By each of the hosts, so much later than the calls of some operations; something else for those without one."""
        call = self._timeline.call[rows]
        if self._timeline.knows_calls:
            return [shown + late for shown in self._clocks.shown(rows, call)]
        unknown = call == NULL
        shown = self._clocks.shown(rows, np.where(unknown, call.max(), call))
        return [np.where(unknown, otherwise, one + late) for one in shown]

    def _touches(self, rows: slice) -> bool:
        """Whether anything is taken out of the GPU's time with these operations."""
        line = self._timeline
        low, high = int(line.before[rows.start]), int(line.reach[rows.stop - 1])
        some = (self._change.work, self._change.pauses)
        return any(len(near(spans, low, high)[0]) for spans in some) or bool(
            len(self._dropped[0]) and line.blocked[rows].any()
        )


def _changed(line: Timeline, rows: slice, change: Change, dropped: Spans) -> tuple[Array, Array, Array]:
    """What each of some operations adds, the pause before it, and its latency, with the change and the waits in `dropped` taken out."""
    before, reach, latency, late = line.before[rows], line.reach[rows], line.latency[rows], line.late[rows]
    begin = np.maximum(line.start[rows], before)
    own = reach - begin
    work = near(change.work, int(begin[0]), int(reach[-1]))
    if len(work[0]):
        removed = covered_rows(begin, reach, work)
        own -= removed
        own += np.round(removed * change.keep).astype(np.int64)
    gap = begin - before
    # A pause that the host made ends with the launch, or with the wait in its call; any other stays, but for what is taken out.
    made, short, blocked = late, np.minimum(gap, HANDOVER_NS), line.blocked[rows]
    if len(dropped[0]) and blocked.any():
        call = line.call[rows]
        made = late | (blocked & (coverage(call, call + 1, dropped) > 0))
    pauses = near(change.pauses, int(before[0]), int(begin[-1]))
    if len(pauses[0]):
        pause = covered_rows(before, begin, pauses)
        gap -= pause
        latency = np.where(late, latency - pause, latency)
    return own, np.where(made, short, gap), np.where(late, np.maximum(latency, 0), latency)


def _summed(own: Array, lead: Array, latency: Array, since: int) -> tuple[Array, Array]:
    """As `Timeline.plain`, of some operations before which so much was added."""
    done = own + lead
    np.cumsum(done, out=done)
    done += since
    ahead = latency + own
    ahead -= done
    return done, ahead


class _Events:
    """What happens between the operations, in its order: `place` tells how many of them lie before, `kind` is as in `Stretches`, and
    `wait` the wait that is met, -1 for all else. It ends with the last of the marks."""

    def __init__(self, timeline: Timeline, play: _Play, marks: Array, begun: Begun) -> None:
        # Of waits over at once, one is enough; after the last call nobody feels any.
        op, felt = play.op, np.unique(timeline.first_called[play.left])
        felt = felt[felt < len(timeline.call)]
        place = np.concatenate((op + 1, felt, marks + 1)) - begun.count
        kind = np.repeat((MET, FELT, CUT), (len(op), len(felt), len(marks)))
        order = np.argsort(place, kind="stable")
        order = order[: int(np.flatnonzero(order >= len(op) + len(felt))[-1]) + 1]
        if begun.count:
            order = order[place[order] > 0]
        self.place, self.kind = place[order], kind[order]
        self.wait = np.where(self.kind == MET, order, -1)


def _first_reaching(values: Array, bounds: Array) -> Array:
    """The first of the values that reaches each of these bounds, which ascend; how many there are where none does."""
    latest, done = NULL, 0
    first = np.full(len(bounds), len(values))
    for rows in blocks(len(values)):
        if done == len(bounds):
            break
        reached = np.maximum(np.maximum.accumulate(values[rows]), latest)
        latest = int(reached[-1])
        stop = int(np.searchsorted(bounds, latest, side="right"))
        first[done:stop] = rows.start + np.searchsorted(reached, bounds[done:stop])
        done = stop
    return first


def covered_rows(starts: Array, ends: Array, spans: Spans) -> Array:
    """As `coverage`, of stretches that do not overlap, in order."""
    if len(spans[0]) > 2 * len(starts) or not len(starts):
        return coverage(starts, ends, spans)
    covered = np.zeros(len(starts), np.int64)
    # So few spans are sooner found among the stretches than the other way round.
    spans = within(spans, int(starts[0]), int(ends[-1]))
    row = np.searchsorted(ends, spans[0], side="right")
    low, high = np.maximum(spans[0], starts.take(row)), spans[1]
    if (high > ends.take(row)).any():
        _, row, low, high = overlaps(*spans, (starts, ends))
    np.add.at(covered, row, np.maximum(high - low, 0))
    return covered
