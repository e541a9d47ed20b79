"""What set the end of a stretch of a GPU's timeline: the chain of work and waiting backwards from it, in recorded times.

An operation begins when the one before it is done, or, where the GPU was idle because the host had not launched yet, when it is
launched. The host launches when it comes to the call, and comes to that from its last wait for the GPU, which ended with an operation.
So the chain runs back along the GPU to the last operation that the host was late for, over its launch to the host, along that to the
end of its last wait, and from there along the GPU again: the path of greatest weight in max-plus algebra, which is the critical path
(Kelley, Walker: Critical-Path Planning and Scheduling, 1959), read off backwards from what was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from traceanalyzer.columns.frames import Flags
from traceanalyzer.derive.replay.replay import Timeline
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass

NONE = -1
"""No operation, no event."""
GPU, HOST, LAUNCH = range(3)
"""Where a piece of a chain lies: operations and pauses of the GPU; what the host did; or the idle GPU's time from a launch call to its
operation's start."""


@dataclass(frozen=True)
class Line:
    """What chains run along: one GPU's operations in order, and the host that feeds them. Times in ns.

    An operation begins at `begin`, and it and those before it are done at `reach`; the GPU was free for it at `free`. `late`: it waited
    for the host's `call`. `join` is the event from elsewhere (by number, `NONE` without one) that the GPU was not free before. The
    host's waits end at `until`, ascending, each with the operation `wait_op` or, where that is `NONE`, the event `wait_join`.
    """

    begin: Array
    free: Array
    reach: Array
    call: Array
    late: Flags
    join: Array
    until: Array
    wait_op: Array
    wait_join: Array

    @classmethod
    def of(cls, timeline: Timeline, since: int | None = None) -> Line:
        """The line of a GPU that waits for no other; without what was done before the last operation that was until `since`."""
        first = 0 if since is None else max(int(np.searchsorted(timeline.reach, since, side="right")) - 1, 0)
        start, before, reach, call = (
            column[first:] for column in (timeline.start, timeline.before, timeline.reach, timeline.call)
        )
        op = np.sort(timeline.wait_op[timeline.wait_op >= first]) - first
        none = np.full(len(op), NONE)
        late, join = timeline.late[first:], np.full(len(start), NONE)
        return cls(np.maximum(start, before), before, reach, call, late, join, reach[op], op, none)


@dataclass(frozen=True)
class Pieces:
    """Pieces of chains, sorted by (stay, start); those of one stay tile it. Times in ns.

    `stay` is the number of the stay, `where` one of GPU, HOST and LAUNCH, `call` the time of the call of a LAUNCH.
    """

    stay: Array
    start: Array
    end: Array
    where: Array
    call: Array

    @property
    def within(self) -> tuple[int, int]:
        """From the first start to the last end; (0, 0) without any."""
        return (int(self.start.min()), int(self.end.max())) if len(self.stay) else (0, 0)

    @classmethod
    def joined(cls, parts: Sequence[Pieces]) -> Pieces:
        columns = [np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)]
        order = np.lexsort((columns[1], columns[0]))
        return cls(*(column[order] for column in columns))


@dataclass(frozen=True)
class Ends:
    """Where stays end, and so where their chains begin: `on` is GPU at the operation `op` or before it, HOST, or LAUNCH in the pause
    before `op`, which came late. `stay` numbers them; a chain is not followed further back than to `least`."""

    stay: Array
    least: Array
    time: Array
    op: Array
    on: Array

    @classmethod
    def at(cls, line: Line, least: Array, time: Array) -> Ends:
        """Where the line was at these times; stays that are empty are left out."""
        # The operation that runs then or has just ended, else the one after the pause: at the window's end and beyond it, the last.
        op = np.minimum(np.searchsorted(line.reach, time), len(line.reach) - 1)
        pause = time <= line.begin[op]
        on = np.where(pause & line.late[op], LAUNCH, GPU)
        # Before an operation that waited for something else the GPU was at the one before.
        op = np.where(pause & ~line.late[op], np.maximum(op - 1, 0), op)
        some = np.flatnonzero(time > least)
        return cls(some, *(column[some] for column in (least, time, op, on)))


@dataclass(frozen=True)
class Chains:
    """The pieces of some chains and, by stay, where each of them ends: at `since`, which is its least time, or where it comes from the
    event `came` or goes on as that of the stay `meets` does (`NONE` without)."""

    pieces: Pieces
    since: Array
    came: Array
    meets: Array


def chains(line: Line, ends: Ends, *, once: bool = False) -> Chains:
    """The chains that set the ends of stays, each back to its least time, to an event from elsewhere or, with `once`, to where it meets
    another: then no time of the line is told twice. For that all have the same least time, and none ends in the pause before an
    operation that came late.

    All stays are followed at once: as many rounds as the longest chain has changes from the GPU to the host.
    """
    bound = (line.late | (line.join != NONE)).nonzero()[0]
    stops = np.append(bound, NONE)
    found = [Pieces(*(np.empty(0, np.int64) for _ in fields(Pieces)))]
    count = int(ends.stay.max(initial=-1)) + 1
    since, came, meets = np.zeros(count, np.int64), np.full(count, NONE), np.full(count, NONE)
    since[ends.stay] = ends.least
    on_gpu, on_host = _Met.of(len(line.begin)), _Met.of(len(line.until))

    def piece(stay: Array, low: Array, high: Array, where: int, call: Array) -> None:
        some = high > low
        found.append(Pieces(stay[some], low[some], high[some], np.full(int(some.sum()), where), call[some]))

    def meet(met: _Met, rows: Flags, key: Array, time: Array, stop: Array) -> tuple[Array, Flags]:
        """Until when each of the `rows` stays alone on its way to `stop`, and which meet nobody until then."""
        if not once:
            return stop, np.ones(len(rows), bool)
        other, at = met.meet(key[rows], time[rows], stay[rows])
        alone, until = np.ones(len(rows), bool), stop.copy()
        alone[rows], until[rows] = other == NONE, np.where(other == NONE, stop[rows], at)
        meets[stay[rows]] = other
        since[stay[rows & ~alone]] = until[rows & ~alone]
        return until, alone

    stay, least, time, op, on = ends.stay, ends.least, ends.time, ends.op, ends.on
    while len(stay):
        # On the GPU, back to the last operation that waited for the host or for something from elsewhere.
        gpu = on == GPU
        at = np.where(gpu, stops[np.searchsorted(bound, op, side="right") - 1], op)
        late = (at != NONE) & line.late[at] & (on != HOST)
        joined = (at != NONE) & ~late & (on != HOST)
        free, begin = np.minimum(line.free[at], time), np.minimum(line.begin[at], time)
        reached = np.maximum(np.where(at == NONE, least, np.where(joined, free, begin)), least)
        until, alone = meet(on_gpu, gpu, at, time, reached)
        piece(stay[gpu], until[gpu], time[gpu], GPU, time[gpu])
        time = np.where(gpu, reached, time)
        over = alone & joined & (time > least)
        came[stay[over]], since[stay[over]] = line.join[at[over]], time[over]
        # Over the launch to the host.
        go = alone & (late | (on == HOST)) & (time > least)
        stay, least, time, at, late, free = (column[go] for column in (stay, least, time, at, late, free))
        called = np.where(late, np.minimum(line.call[at], time), time)
        idle = np.maximum(np.where(late, np.maximum(called, free), time), least)
        piece(stay, idle, time, LAUNCH, called)
        # Along the host to the end of its last wait, for an operation before this one.
        wait = np.searchsorted(line.until, called, side="right") - 1
        op = np.append(line.wait_op, NONE)[wait]
        event = np.where(wait < 0, NONE, np.append(line.wait_join, NONE)[wait])
        op = np.where(wait < 0, NONE, np.minimum(op, at - 1))
        known = (op >= 0) | (event != NONE)
        back = np.maximum(np.where(known, np.append(line.until, 0)[wait], least), least)
        until, alone = meet(on_host, np.ones(len(stay), bool), wait, idle, back)
        piece(stay, until, idle, HOST, called)
        over = alone & (event != NONE) & (back > least)
        came[stay[over]], since[stay[over]] = event[over], back[over]
        go = alone & (event == NONE) & (op >= 0) & (back > least)
        stay, least, time, op = (column[go] for column in (stay, least, back, op))
        on = np.full(len(stay), GPU)
    return Chains(Pieces.joined(found), since, came, meets)


@dataclass(frozen=True)
class _Met:
    """Of the chains that have come to each place the one that did so at the latest time; places are numbered, the last is for none."""

    stay: Array
    time: Array

    @classmethod
    def of(cls, places: int) -> _Met:
        return cls(np.full(places + 1, NONE), np.full(places + 1, np.iinfo(np.int64).min))

    def meet(self, place: Array, time: Array, stay: Array) -> tuple[Array, Array]:
        """Some chains that come to places: which other one each meets, and when. That one may have met others before."""
        order = np.lexsort((stay, time, place))
        place, time, stay = place[order], time[order], stay[order]
        same = np.append(False, np.diff(place) == 0)[: len(order)]
        there, when = self.stay[place], self.time[place]
        # The one before it of these, where that is later than all that came in earlier rounds.
        before = same & (np.append(0, time[:-1])[: len(order)] >= when)
        other = np.where(before, np.append(NONE, stay[:-1])[: len(order)], there)
        until = np.minimum(np.where(before, np.append(0, time[:-1])[: len(order)], when), time)
        last = np.append(~same[1:], True)[: len(order)] & (time >= when)
        self.stay[place[last]], self.time[place[last]] = stay[last], time[last]
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return other[back], until[back]
