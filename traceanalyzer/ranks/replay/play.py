"""The lines of a job played again together.

Every line goes on by itself but for its joins and returns. A collective happens when its last part is issued: each line tells how
much later than it did (the *delay* of the collective is the most that any of them says), and every part ends so much later, give or
take what its transfer changed by. So lines exchange delays and no times, and their clocks need not agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL, Flags
from traceanalyzer.derive.replay.stretches import NEVER
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.replay.tables import ISSUE, JOIN, MARK, RETURN
from traceanalyzer.records import dataclass

KINDS = (ISSUE, JOIN, RETURN, MARK)
ISSUES, JOINS, RETURNS, MARKS = range(4)
"""Their places in it, which stand for them in arrays."""
MOST_AT_ONCE = 400_000
"""Events that are played together."""


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


@dataclass(frozen=True)
class Scenario:
    """Lines to play, and what is to be different.

    Nobody waits for a line that is `absent` (one value a line), and lines do not wait for the parts whose joins are `hidden` (one value
    an event). `balanced`: a collective happens at the mean of the times at which its parts are issued, and each line goes on as if it
    had come to it then, as if all ranks had equal work.
    """

    lines: Lines
    absent: Flags | None = None
    hidden: Flags | None = None
    balanced: bool = False


def play(lines: Lines) -> Played | None:
    """Play all lines as they are."""
    return play_all([Scenario(lines)])[0]


def play_all(scenarios: Sequence[Scenario]) -> list[Played | None]:
    """Play each scenario, all at once; None for one whose lines wait for each other in a circle, which no program can have done."""
    found: list[Played | None] = []
    for some in _batches(scenarios):
        found += _Play(some).run()
    return found


def _batches(scenarios: Sequence[Scenario]) -> Iterator[list[Scenario]]:
    """Of so many events together that they take little memory, one scenario at least."""
    batch: list[Scenario] = []
    events = 0
    for one in scenarios:
        events += len(one.lines.kind)
        if batch and events > MOST_AT_ONCE:
            yield batch
            batch, events = [], len(one.lines.kind)
        batch.append(one)
    if batch:
        yield batch


def _stacked(several: Sequence[Lines]) -> Lines:
    """The lines of all, which share no collective and no row."""
    if len(several) == 1:
        return several[0]
    rows = np.cumsum([0, *(len(one.kind) for one in several[:-1])])
    meetings = np.cumsum([0, *(int(one.meeting.max(initial=-1)) + 1 for one in several[:-1])])
    lines = np.cumsum([0, *(len(one) for one in several[:-1])])
    columns = {c.name: np.concatenate([getattr(one, c.name) for one in several]) for c in fields(Lines)}
    for name, more in (("meeting", meetings), ("follows", rows), ("part", rows), ("line", lines)):
        own = [getattr(one, name) for one in several]
        columns[name] = np.concatenate([np.where(v >= 0, v + m, v) for v, m in zip(own, more.tolist(), strict=True)])
    firsts = [one.first[:-1] + row for one, row in zip(several, rows.tolist(), strict=True)]
    columns["first"] = np.append(np.concatenate(firsts), len(columns["kind"]))
    return Lines(**columns)


class _Play:
    """Every line goes on event by event, all that can at once; one that needs a collective waits until its last part is issued."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self._scenarios = scenarios
        lines = _stacked([one.lines for one in scenarios])
        absent = np.concatenate([_flags(one.absent, len(one.lines)) for one in scenarios])
        even = np.concatenate([np.full(len(one.lines), one.balanced) for one in scenarios])[lines.line]
        count, n = len(lines), len(lines.kind)
        meetings = int(lines.meeting.max(initial=-1)) + 1
        self._lines = lines
        self._counts = (lines.kind == ISSUES) & ~absent[lines.line]
        self._hidden = np.concatenate([_flags(one.hidden, len(one.lines.kind)) for one in scenarios])
        self._full = np.where(lines.met == NEVER, 0, lines.met) + np.where(lines.transfer == NEVER, 0, lines.transfer)
        # The part that each event needs, and the meeting that has to be whole before the event can happen; the last one always is.
        self._needs = np.where(lines.part >= 0, lines.part, lines.follows)
        self._needs = np.where(lines.kind == ISSUES, lines.follows, self._needs)
        asks = (self._needs >= 0) & ~self._hidden & ~lines.free[self._needs]
        self._asked = np.where(asks, lines.meeting[self._needs], -1)
        self._missing = np.append(np.bincount(lines.meeting[self._counts], minlength=meetings), 0)
        self._even = np.zeros(meetings, bool)
        self._even[lines.meeting[self._counts & ~lines.pair & even]] = True
        self._any_even = bool(self._even.any())
        self._parts = np.maximum(self._missing[:-1], 1)
        self._sum = np.zeros(meetings, np.int64)
        # Of each line the even meeting that it came to last, and how much later than it did: it goes on as if it had come with others.
        self._met, self._came = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        # There is always one, so that -1, which is none of them, can be asked for.
        self._delay, self._last = np.full(max(meetings, 1), NEVER), np.full(max(meetings, 1), -1, np.int64)
        self._time, self._done = np.full(n, NEVER), np.full(n, NEVER)
        self._state, self._before = np.full((n, 3), NEVER), np.full((n, 3), NEVER)
        self._now = np.zeros((count, 3), np.int64)

    def run(self) -> list[Played | None]:
        at, stop = self._lines.first[:-1].copy(), self._lines.first[1:]
        turn = np.flatnonzero(at < stop)
        while len(turn):
            ready = turn[(self._missing[self._asked[at[turn]]] == 0) & (self._missing[self._met[turn]] == 0)]
            if not len(ready):
                break
            self._happen(ready, at[ready])
            at[ready] += 1
            turn = turn[at[turn] < stop[turn]]
        return [*self._results(at == stop)]

    def _results(self, done: Flags) -> Iterator[Played | None]:
        """Of each scenario, where all of its lines are done."""
        every = np.where(self._lines.kind == ISSUES, np.arange(len(self._time)), -1)
        ends = self._ends(every)
        row = meeting = line = 0
        for one in self._scenarios:
            rows = slice(row, row + len(one.lines.kind))
            meetings = slice(meeting, meeting + int(one.lines.meeting.max(initial=-1)) + 1)
            lines = slice(line, line + len(one.lines))
            last = self._last[meetings]
            yield (
                Played(
                    self._time[rows],
                    ends[rows],
                    self._state[rows],
                    self._before[rows],
                    self._delay[meetings],
                    np.where(last >= 0, last - row, last),
                )
                if done[lines].all()
                else None
            )
            row, meeting, line = rows.stop, meetings.stop, lines.stop

    def _happen(self, line: Array, event: Array) -> None:
        """One event on each of some lines."""
        lines = self._lines
        if self._any_even:
            came = line[self._met[line] >= 0]
            self._now[came] += (self._delay[self._met[came]] - self._came[came])[:, None]
            self._met[came] = -1
        moved = np.maximum((lines.work[event] + self._now[line][:, None, :]).max(axis=2), NEVER)
        self._before[event] = moved
        end, kind = self._ends(self._needs[event]), lines.kind[event]
        join, back, issue = (kind == JOINS) & ~self._hidden[event], kind == RETURNS, kind == ISSUES
        if join.any():
            moved[join, 2] = np.maximum(moved[join, 2], end[join])
        if back.any():
            moved[back, 1] = np.maximum(moved[back, 1], end[back] - lines.host_time[event[back]])
        self._state[event] = self._now[line] = moved
        self._time[event] = np.where(back, end, np.where(kind == MARKS, np.maximum(moved[:, 2], end), moved[:, 2]))
        if issue.any():
            event, moved, end = event[issue], moved[issue], end[issue]
            begin = np.maximum(moved[:, 0] + lines.by_host[event], moved[:, 2] + np.maximum(lines.after_gpu[event], 0))
            begin = np.maximum(begin, end + np.maximum(lines.after_other[event], 0))
            self._time[event] = begin
            self._issue(event, begin)

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
        more = later > self._delay[meeting]
        if self._any_even:
            even = self._even[meeting]
            np.add.at(self._sum, meeting, later)
            line = lines.line[event][even]
            self._met[line], self._came[line] = meeting[even], later[even]
            whole = meeting[even & (self._missing[meeting] == 0)]
            more &= ~even
            self._delay[whole] = self._sum[whole] // self._parts[whole]
        event, later, meeting = event[more], later[more], meeting[more]
        np.maximum.at(self._delay, meeting, later)
        latest = self._delay[meeting] == later
        self._last[meeting[latest]] = event[latest]


def _flags(given: Flags | None, count: int) -> Flags:
    return np.zeros(count, bool) if given is None else given
