"""What set the end of a stretch of a GPU's timeline: the chain of work and waiting backwards from it, in recorded times.

An operation begins when the one before it is done, or, where the GPU was idle because the host had not launched yet, when it is
launched. The host launches when it comes to the call, and comes to that from its last wait for the GPU, which ended with an operation.
So the chain runs back along the GPU to the last operation that the host was late for, over its launch to the host, along that to the
end of its last wait, and from there along the GPU again: the path of greatest weight in max-plus algebra, which is the critical path
(Kelley, Walker: Critical-Path Planning and Scheduling, 1959), read off backwards from what was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from traceanalyzer.columns.frames import Flags
from traceanalyzer.derive.replay.replay import Timeline
from traceanalyzer.intervals import Array

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
    def of(cls, timeline: Timeline) -> Line:
        """The line of a GPU that waits for no other."""
        none = np.full(len(timeline.start), NONE)
        op = np.sort(timeline.wait_op)
        return cls(
            np.maximum(timeline.start, timeline.before),
            timeline.before,
            timeline.reach,
            timeline.call,
            timeline.late,
            none,
            timeline.reach[op],
            op,
            np.full(len(op), NONE),
        )


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


def chains(line: Line, ends: Ends) -> tuple[Pieces, Array, Array]:
    """The chains that set the ends of stays, each back to its least time or to an event from elsewhere; that event (`NONE` without
    one) and the time at which it was, by stay.

    All stays are followed at once: as many rounds as the longest chain has changes from the GPU to the host.
    """
    bound = (line.late | (line.join != NONE)).nonzero()[0]
    stops = np.append(bound, NONE)
    found = [Pieces(*(np.empty(0, np.int64) for _ in fields(Pieces)))]
    stay, least, time, op, on = ends.stay, ends.least, ends.time, ends.op, ends.on
    count = int(stay.max(initial=-1)) + 1
    came, since = np.full(count, NONE), np.zeros(count, np.int64)
    since[stay] = least

    def piece(rows: Flags, low: Array, high: Array, where: int) -> None:
        some = rows & (high > low)
        found.append(Pieces(stay[some], low[some], high[some], np.full(int(some.sum()), where), called[some]))

    while len(stay):
        # On the GPU, back to the last operation that waited for the host or for something from elsewhere.
        gpu = on == GPU
        at = np.where(gpu, stops[np.searchsorted(bound, op, side="right") - 1], op)
        start = gpu & (at == NONE)
        late = ~start & line.late[at] & (on != HOST)
        joined = ~start & ~late & (on != HOST)
        free, begin = np.minimum(line.free[at], time), np.minimum(line.begin[at], time)
        reached = np.maximum(np.where(start, least, np.where(joined, free, begin)), least)
        upto, time = time, np.where(gpu, reached, time)
        # Over the launch to the host, and along that to the end of its last wait.
        called = np.where(late, np.minimum(line.call[at], time), time)
        piece(gpu, reached, upto, GPU)
        idle = np.maximum(np.where(late, np.maximum(called, free), time), least)
        piece(late, idle, time, LAUNCH)
        by_host = late | (on == HOST)
        wait = np.searchsorted(line.until, called, side="right") - 1
        ended = np.append(line.until, 0)[wait]
        none = wait < 0
        back = np.where(by_host, np.maximum(np.where(none, least, ended), least), time)
        piece(by_host, back, idle, HOST)
        time = back
        event = np.where(joined, line.join[at], np.where(by_host & ~none, np.append(line.wait_join, NONE)[wait], NONE))
        over = (event != NONE) & (time > least)
        came[stay[over]], since[stay[over]] = event[over], time[over]
        # A wait ends with an operation before the one that follows it.
        op = np.minimum(np.append(line.wait_op, NONE)[wait], at - 1)
        go = by_host & ~none & (event == NONE) & (time > least) & (op >= 0)
        first = by_host & ~none & (event == NONE) & (time > least) & (op < 0)
        piece(first, least, time, HOST)
        stay, least, time, op = (column[go] for column in (stay, least, time, op))
        on = np.full(len(stay), GPU)
    return Pieces.joined(found), came, since
