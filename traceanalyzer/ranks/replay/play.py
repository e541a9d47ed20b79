"""The lines of a job played again together.

Every line goes on by itself but for its joins and returns. A collective happens when its last part is issued: each line tells how
much later than it did (the *delay* of the collective is the most that any of them says), and every part ends so much later, give or
take what its transfer changed by. So lines exchange delays and no times, and their clocks need not agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL, Flags
from traceanalyzer.derive.replay.replay import NEVER
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.replay.tables import ISSUE, JOIN, MARK, RETURN

KINDS = (ISSUE, JOIN, RETURN, MARK)
ISSUES, JOINS, RETURNS, MARKS = range(4)
"""Their places in it, which stand for them in arrays."""


@dataclass(frozen=True)
class Lines:
    """The events of all lines, in the order of each; one value an event, ns, `NEVER` for what cannot be.

    `first` is where each line's events begin, and at last their number; `rank`, `device` and `origin`
    are of the lines. `work` are (n, 3, 3) matrices; `meeting` numbers collectives,
    -1 for marks; `follows` is the row of the issue that an issue or mark follows, and `part` that of the issue whose part a join or
    return is for, -1 without one. The rest is as in `line_events`.
    """

    rank: Array
    device: Array
    origin: Array
    first: Array
    line: Array
    kind: Array
    work: Array
    meeting: Array
    follows: Array
    part: Array
    by_host: Array
    after_gpu: Array
    after_other: Array
    met: Array
    transfer: Array
    free: Flags
    pair: Flags
    host_time: Array
    instance: Array
    step: Array
    time: Array

    @classmethod
    def of(cls, table: pa.Table) -> Lines:
        """From `line_events` of all ranks. Parts whose collective has none on another line end as they did."""
        rank, device = (frames.ints(table, c) for c in ("rank", "device"))
        first = np.flatnonzero(np.diff(rank, prepend=NULL) | np.diff(device, prepend=NULL))
        code, names = frames.codes(table, "kind")
        kind = np.array([KINDS.index(name) if name in KINDS else MARKS for name in names], np.int64)[code]
        instance, behind = frames.ints(table, "instance"), frames.ints(table, "behind")
        row = np.arange(len(kind))
        line = np.searchsorted(first, row, side="right")
        own = frames.dense(line, instance)
        issue = np.flatnonzero(kind == ISSUES)
        of = np.full(int(own.max(initial=0)) + 1, -1, np.int64)
        of[own[issue]] = issue
        meeting = np.where(instance == NULL, -1, frames.dense(instance))
        numbers = {
            c: frames.ints(table, c) for c in ("by_host", "after_gpu", "after_other", "met", "transfer", "host_time")
        }
        work = table["work"].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(-1, 3, 3)
        return cls(
            rank[first],
            device[first],
            frames.ints(table, "origin")[first],
            np.append(first, len(kind)),
            line - 1,
            kind,
            work,
            meeting,
            np.where(behind == NULL, -1, row - behind),
            np.where(kind == MARKS, -1, of[own]),
            free=frames.flags(table, "free"),
            pair=frames.flags(table, "pair"),
            **{c: frames.ints(table, c) for c in ("instance", "step", "time")},
            **{c: np.where(values == NULL, NEVER, values) for c, values in numbers.items()},
        )

    def __len__(self) -> int:
        return len(self.first) - 1


@dataclass(frozen=True)
class Played:
    """What happens when a job is played, ns from the start of each line's window.

    `time` is when each event happens, for an issue when the part could begin; `ends` is when the part of an issue ends. `state` is the
    line's after each event, `before` the same as its work alone makes it. `delay` is that of each meeting, `NEVER` of one that nobody
    waits for, and `last` the row of the issue that made it, -1 without one.
    """

    time: Array
    ends: Array
    state: Array
    before: Array
    delay: Array
    last: Array


def play(
    lines: Lines, *, absent: Flags | None = None, hidden: Flags | None = None, balanced: bool = False
) -> Played | None:
    """Play all lines; None where they wait for each other in a circle, which no program can have done.

    Nobody waits for a line that is `absent` (one value a line), and lines do not wait for the parts whose joins are `hidden` (one value
    an event). `balanced`: a collective happens at the mean of the times at which its parts are issued, as if all ranks had equal work.
    """
    return _Play(lines, absent, hidden, balanced).run()


class _Play:
    """Every line goes on event by event, all that can at once; one that needs a collective waits until its last part is issued."""

    def __init__(self, lines: Lines, absent: Flags | None, hidden: Flags | None, balanced: bool) -> None:
        count, n = len(lines), len(lines.kind)
        meetings = int(lines.meeting.max(initial=-1)) + 1
        self._lines = lines
        self._counts = lines.kind == ISSUES
        if absent is not None:
            self._counts &= ~absent[lines.line]
        self._hidden = np.zeros(n, bool) if hidden is None else hidden
        self._full = np.where(lines.met == NEVER, 0, lines.met) + np.where(lines.transfer == NEVER, 0, lines.transfer)
        # The part that each event needs, and the meeting that has to be whole before the event can happen; the last one always is.
        self._needs = np.where(lines.part >= 0, lines.part, lines.follows)
        self._needs = np.where(lines.kind == ISSUES, lines.follows, self._needs)
        asks = (self._needs >= 0) & ~self._hidden & ~lines.free[self._needs]
        self._asked = np.where(asks, lines.meeting[self._needs], -1)
        self._missing = np.append(np.bincount(lines.meeting[self._counts], minlength=meetings), 0)
        self._even = np.zeros(meetings, bool)
        if balanced:
            self._even[lines.meeting[self._counts & ~lines.pair]] = True
        self._parts = np.maximum(self._missing[:-1], 1)
        self._sum = np.zeros(meetings, np.int64)
        # Of each line the even meeting that it came to last, and how much later than it did: it goes on as if it had come with others.
        self._met, self._came = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        # There is always one, so that -1, which is none of them, can be asked for.
        self._delay, self._last = np.full(max(meetings, 1), NEVER), np.full(max(meetings, 1), -1, np.int64)
        self._meetings = meetings
        self._time, self._done = np.full(n, NEVER), np.full(n, NEVER)
        self._state, self._before = np.full((n, 3), NEVER), np.full((n, 3), NEVER)
        self._now = np.zeros((count, 3), np.int64)

    def run(self) -> Played | None:
        at, stop = self._lines.first[:-1].copy(), self._lines.first[1:]
        turn = np.flatnonzero(at < stop)
        while len(turn):
            ready = turn[(self._missing[self._asked[at[turn]]] == 0) & (self._missing[self._met[turn]] == 0)]
            if not len(ready):
                return None
            self._happen(ready, at[ready])
            at[ready] += 1
            turn = turn[at[turn] < stop[turn]]
        every = np.where(self._lines.kind == ISSUES, np.arange(len(self._time)), -1)
        ends, meetings = self._ends(every), self._meetings
        return Played(self._time, ends, self._state, self._before, self._delay[:meetings], self._last[:meetings])

    def _happen(self, line: Array, event: Array) -> None:
        """One event on each of some lines."""
        lines = self._lines
        even = self._met[line] >= 0
        self._now[line[even]] += (self._delay[self._met[line[even]]] - self._came[line[even]])[:, None]
        self._met[line] = -1
        moved = np.maximum((lines.work[event] + self._now[line][:, None, :]).max(axis=2), NEVER)
        self._before[event] = moved
        moved = moved.copy()
        end = self._ends(self._needs[event])
        kind = lines.kind[event]
        join, back = (kind == JOINS) & ~self._hidden[event], kind == RETURNS
        moved[join, 2] = np.maximum(moved[join, 2], end[join])
        moved[back, 1] = np.maximum(moved[back, 1], end[back] - lines.host_time[event[back]])
        self._state[event] = self._now[line] = moved
        begin = np.maximum(moved[:, 0] + lines.by_host[event], moved[:, 2] + np.maximum(lines.after_gpu[event], 0))
        begin = np.maximum(begin, end + np.maximum(lines.after_other[event], 0))
        reached = np.where(back, end, np.where(kind == MARKS, np.maximum(moved[:, 2], end), moved[:, 2]))
        issue = kind == ISSUES
        self._time[event] = np.where(issue, begin, reached)
        self._issue(event[issue], begin[issue])

    def _ends(self, issue: Array) -> Array:
        """When the parts of these issues end; `NEVER` without one."""
        lines = self._lines
        meeting = np.where(issue >= 0, lines.meeting[issue], -1)
        held = (issue >= 0) & ~lines.free[issue] & (self._delay[meeting] > NEVER)
        return np.where(held, self._full[issue] + self._delay[meeting], np.where(issue >= 0, self._done[issue], NEVER))

    def _issue(self, event: Array, begin: Array) -> None:
        lines = self._lines
        self._done[event] = begin + lines.transfer[event]
        later = begin - lines.met[event]
        counted = np.flatnonzero(self._counts[event])
        counted = counted[np.argsort(later[counted], kind="stable")]
        event, later = event[counted], later[counted]
        meeting = lines.meeting[event]
        np.subtract.at(self._missing, meeting, 1)
        np.add.at(self._sum, meeting, later)
        line = lines.line[event][self._even[meeting]]
        self._met[line], self._came[line] = meeting[self._even[meeting]], later[self._even[meeting]]
        even = meeting[self._even[meeting] & (self._missing[meeting] == 0)]
        more = ~self._even[meeting] & (later > self._delay[meeting])
        event, later, meeting = event[more], later[more], meeting[more]
        np.maximum.at(self._delay, meeting, later)
        self._delay[even] = self._sum[even] // self._parts[even]
        latest = self._delay[meeting] == later
        self._last[meeting[latest]] = event[latest]
