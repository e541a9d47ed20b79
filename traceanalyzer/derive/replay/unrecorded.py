"""The host's own time without what recording took of it: what was taken of millions of records is told in blocks, and never held."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceanalyzer.columns.spill import Growing, forget
from traceanalyzer.derive.replay.host_time import HostTime, blocks, with_few, within
from traceanalyzer.derive.replay.profiler_cost import Recorded
from traceanalyzer.derive.replay.replay import Timeline
from traceanalyzer.intervals import EMPTY, Array, Spans, clip, coverage, covered_before, overlaps, union

_FAR = 1 << 61
_OFTEN = 16
"""After so many blocks what was read is let go."""


def unrecorded_hosts(timeline: Timeline, recorded: Recorded, extents: Sequence[float], *, keep: bool) -> list[HostTime]:
    """As `Timeline.host_time` without what recording took, of which each extent is so many times as much. Of the clocks only the first
    can be asked for other times, and that only with `keep`."""
    clocks = _Clocks(timeline, len(extents), keeps=keep)
    for at, (time, taken) in enumerate(recorded.blocks(extents)):
        clocks.add(time[:-1], taken, int(time[-1]))
        if at % _OFTEN == _OFTEN - 1:
            forget()
    return clocks.hosts()


class _Clocks:
    """Clocks that stand still while the host waits, and in what is taken of its time, of which each loses its own."""

    def __init__(self, timeline: Timeline, count: int, *, keeps: bool) -> None:
        """The first of them `keeps` when it stops."""
        self._origin, self._end = timeline.origin, int(timeline.reach[-1])
        self._waited = within(union(timeline.wait_start, timeline.reach[timeline.wait_op]), self._origin, self._end)
        self._waited_sum = np.append(0, np.cumsum(self._waited[1] - self._waited[0]))
        call, over = timeline.call, timeline.reach[timeline.wait_op]
        self._asked = _Asked(call), _Asked(over)
        self._shown = [(self._asked[0].answers(), self._asked[1].answers()) for _ in range(count)]
        self._lost = [0] * count
        self._stops, self._sums, self._sum, self._keeps = Growing(), Growing(), 0, keeps
        self._until = -_FAR

    def hosts(self) -> list[HostTime]:
        """All of them; nothing is added any more."""
        self.add(EMPTY[0], [EMPTY[0]] * len(self._shown), _FAR)
        if self._keeps:
            self._sums.add(np.array([self._sum]))
            stops, sums = self._stops.array(), self._sums.array()
        else:
            stops, sums = EMPTY[0], np.zeros(1, np.int64)
        first, *others = (at_calls.all(behind=at_waits.all()) for at_calls, at_waits in self._shown)
        return [
            HostTime(self._origin, stops, sums, first),
            *(HostTime(self._origin, EMPTY[0], sums[:1], one) for one in others),
        ]

    def add(self, start: Array, taken: Sequence[Array], until: int) -> None:
        """For each clock what is taken from each start on, all of it over by `until`; what was added before is over at the first."""
        since, self._until = self._until, until
        first, stop = np.searchsorted(self._waited[1], since, side="right"), np.searchsorted(self._waited[0], until)
        waited = self._waited[0][first:stop], self._waited[1][first:stop]
        if len(start) and (start[0] < self._origin or until > self._end):
            low = np.clip(start, self._origin, self._end)
            taken = [np.clip(start + one, self._origin, self._end) - low for one in taken]
            start = low
        sums = [self._losing(number, start, one, waited) for number, one in enumerate(taken)]
        if self._keeps:
            self._keep(start, taken[0], clip(waited, since, until), sums[0])
        for number, asked in enumerate(self._asked):
            rows, times = asked.before(until)
            if not len(times):
                continue
            # What is taken from that time on is not lost until then; all of what is taken before a record is, and most are asked there.
            place = np.searchsorted(start, times)
            inside = np.flatnonzero(start.take(place, mode="clip") != times) if len(start) else EMPTY[0]
            inside = inside.compress(place.take(inside) > 0)
            without = times - (self._origin + self._waited_sum[first])
            if len(waited[0]):
                without -= covered_before(times, waited)
            at, last = times.take(inside), place.take(inside) - 1
            for one, lost, shown in zip(taken, sums, self._shown, strict=True):
                gone = lost.take(place)
                if len(last):
                    over = np.maximum(start.take(last) + one.take(last), at)
                    gone[inside] -= over - at - coverage(at, over, waited)
                shown[number].add(rows, without - gone)

    def _losing(self, number: int, start: Array, taken: Array, waited: Spans) -> Array:
        """What a clock has lost besides the waits after none, one, ... of what is taken."""
        lost = np.empty(len(start) + 1, np.int64)
        lost[0], lost[1:] = self._lost[number], taken
        if len(waited[0]):
            _, row, low, high = overlaps(*waited, (start, start + taken))
            np.subtract.at(lost, row + 1, high - low)
        np.cumsum(lost, out=lost)
        self._lost[number] = int(lost[-1])
        return lost

    def _keep(self, start: Array, taken: Array, waited: Spans, lost: Array) -> None:
        if not len(waited[0]):
            # Where nothing else stops the clock, what it loses is known already.
            self._stops.add(start)
            self._sums.add(lost[:-1] + (self._sum - int(lost[0])))
            self._sum += int(lost[-1] - lost[0])
            return
        some = np.flatnonzero(taken)
        low = start.take(some)
        spans = within(with_few((low, low + taken.take(some)), waited), self._origin, self._end)
        sums = np.append(self._sum, spans[1] - spans[0])
        np.cumsum(sums, out=sums)
        self._sum = int(sums[-1])
        self._stops.add(spans[0])
        self._sums.add(sums[:-1])


class _Asked:
    """Some of the times that a clock is asked at, to be asked for in their order."""

    def __init__(self, times: Array) -> None:
        self._times, self._done = times, 0
        self._order = None
        in_order = all((times[1:][rows] >= times[:-1][rows]).all() for rows in blocks(len(times) - 1))
        forget()
        if not in_order:
            self._order = np.argsort(times, kind="stable")
            self._times = times.take(self._order)

    def before(self, time: int) -> tuple[Array | None, Array]:
        """The next, up to a time: where they stand among all, None where they are in their order, and what they are."""
        here = slice(self._done, int(np.searchsorted(self._times, time)))
        self._done = here.stop
        return None if self._order is None else self._order[here], self._times[here]

    def answers(self) -> _Answers:
        return _Answers(None if self._order is None else len(self._order))


class _Answers:
    """What a clock shows at some times, so many of them unless they come in their order."""

    def __init__(self, count: int | None) -> None:
        self._grown, self._anywhere = Growing(), None if count is None else np.empty(count, np.int64)

    def add(self, rows: Array | None, shown: Array) -> None:
        if self._anywhere is None:
            self._grown.add(shown)
        else:
            self._anywhere[rows] = shown

    def all(self, behind: Array = EMPTY[0]) -> Array:
        """All of them, and some more `behind`."""
        if self._anywhere is not None:
            self._grown.add(self._anywhere)
        self._grown.add(behind)
        return self._grown.array()
