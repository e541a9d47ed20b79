"""What set the end of a stretch of a GPU's timeline: the chain of work and waiting backwards from it, in recorded times.

An operation begins when the one before it is done, or, where the GPU was idle because the host had not launched yet, when it is
launched. The host launches when it comes to the call, and comes to that from its last wait for the GPU, which ended with an operation.
So the chain runs back along the GPU to the last operation that the host was late for, over its launch to the host, along that to the
end of its last wait, and from there along the GPU again: the path of greatest weight in max-plus algebra, which is the critical path
(Kelley, Walker: Critical-Path Planning and Scheduling, 1959), read off backwards from what was recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceanalyzer.derive.replay.replay import Timeline
from traceanalyzer.intervals import Array

NONE = -1
GPU, HOST, LAUNCH = range(3)
"""Where a piece of a chain lies: operations and pauses of the GPU; what the host did; or the idle GPU's time from a launch call to its
operation's start."""


@dataclass(frozen=True)
class Pieces:
    """Pieces of chains, sorted by (stay, start); those of one stay tile it. Times in ns.

    `stay` is the position of the stay, `where` one of GPU, HOST and LAUNCH. `op` is the position of the last operation of a piece on
    the GPU, of any other that of the operation that is launched.
    """

    stay: Array
    start: Array
    end: Array
    where: Array
    op: Array


def chains(timeline: Timeline, start: Array, end: Array) -> Pieces:
    """The chains that set `end`, each back to its `start`. Stays may overlap and come in any order; empty ones have no pieces.

    All stays are followed at once: as many rounds as the longest chain has changes from the GPU to the host.
    """
    late = np.where(timeline.late, np.arange(len(timeline.late)), NONE)
    last_late = np.maximum.accumulate(late)
    ended = np.sort(timeline.wait_op)
    until = timeline.reach[ended]
    found: list[tuple[Array, ...]] = []

    def piece(stay: Array, low: Array, high: Array, where: int, op: Array) -> None:
        low = np.maximum(low, start[stay])
        some = high > low
        found.append((stay[some], low[some], high[some], np.full(int(some.sum()), where), op[some]))

    stay = np.flatnonzero(end > start)
    time = end[stay]
    # The operation that runs then or has just ended, else the one after the pause: at the window's end and beyond it, the last.
    op = np.minimum(np.searchsorted(timeline.reach, time), len(timeline.reach) - 1)
    begin = np.maximum(timeline.start, timeline.before)
    waiting = (time <= begin[op]) & timeline.late[op]
    while len(stay):
        # On the GPU, back to the last operation that came late; or in the pause before such a one.
        at = np.where(waiting, op, last_late[np.where((time <= begin[op]) & ~waiting, np.maximum(op - 1, 0), op)])
        none = at == NONE
        began = np.where(none, np.minimum(start[stay], time), np.minimum(begin[at], time))
        piece(stay, began, time, GPU, op)
        stay, began, at = (column[~none] for column in (stay, began, at))
        on = began > start[stay]
        stay, began, at = stay[on], began[on], at[on]
        # Over the launch to the host, and along that to the end of its last wait, for an operation before this one.
        called = np.minimum(timeline.call[at], began)
        idle = np.maximum(called, np.minimum(timeline.before[at], began))
        piece(stay, idle, began, LAUNCH, at)
        wait = np.minimum(np.searchsorted(until, called, side="right"), np.searchsorted(ended, at)) - 1
        none = wait < 0
        before = np.where(none, start[stay], np.append(until, 0)[wait])
        piece(stay, before, idle, HOST, at)
        on = ~none & (before > start[stay])
        stay, time, op = stay[on], before[on], np.append(ended, 0)[wait][on]
        waiting = np.zeros(len(stay), bool)
    columns = [np.concatenate([one[at] for one in found] or [np.empty(0, np.int64)]) for at in range(5)]
    order = np.lexsort((columns[1], columns[0]))
    return Pieces(*(column[order] for column in columns))
