"""The time that a host has for itself: a clock that stands still in the time that is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from traceanalyzer.columns.spill import Growing, forget
from traceanalyzer.intervals import EMPTY, Array, Spans, join, union
from traceanalyzer.records import dataclass

BLOCK = 1 << 15
"""So many times are looked at at once, so that what is in between does not leave the processor's cache."""


@dataclass(frozen=True)
class HostTime:
    """A clock that starts at `origin` and stands still in the time that is gone, which begins no sooner. All in ns.

    It stops at the times `stops`, and loses `lost` until the first of them, the second, ..., and in all. `shown` is what it shows at
    some times.
    """

    origin: int
    stops: Array
    lost: Array
    shown: Array

    @classmethod
    def at(cls, times: Iterable[Array], origin: int, gone: Spans) -> HostTime:
        """Of a clock that is asked at times that come in blocks, in any order."""
        lost = np.zeros(len(gone[0]) + 1, np.int64)
        np.subtract(gone[1], gone[0], out=lost[1:])
        np.cumsum(lost, out=lost)
        shown = Growing()
        shown.add(EMPTY[0])
        for block in times:
            shown.add(_slower(block, *_found(gone[0], block), gone[0], lost) - origin)
        return cls(origin, gone[0], lost, shown.array())

    def shows(self, times: Array) -> Array:
        """What it shows at other times."""
        if not len(self.stops):
            return times - self.origin
        return _slower(times, *_found(self.stops, times), self.stops, self.lost) - self.origin


class Without:
    """What clocks that were asked at the same times would show if these spans were gone too."""

    def __init__(self, hosts: Sequence[HostTime], spans: Spans) -> None:
        self._stops, count = spans[0], len(spans[0])
        self._clocks = list[tuple[Array, Array, Array]]()
        for host in hosts:
            stopped, lost, sum_ = Growing(), Growing(), 0
            stopped.add(EMPTY[0])
            lost.add(np.zeros(1, np.int64))
            for rows in blocks(count):
                begin = host.shows(spans[0][rows])
                sums = np.cumsum(host.shows(spans[1][rows]) - begin)
                sums += sum_
                sum_ = int(sums[-1])
                stopped.add(begin)
                lost.add(sums)
                forget()
            self._clocks.append((host.shown, stopped.array(), lost.array()))

    def shown(self, rows: slice, times: Array) -> list[Array]:
        """What each of them shows at these times, which are some of those that it was asked at: the `rows` of them."""
        if not len(self._stops):
            return [shown[rows] for shown, _, _ in self._clocks]
        found = _found(self._stops, times)
        return [_slower(shown[rows], *found, stopped, lost) for shown, stopped, lost in self._clocks]


def blocks(stop: int, first: int = 0) -> Iterator[slice]:
    """Some rows in blocks."""
    return (slice(at, min(at + BLOCK, stop)) for at in range(first, stop, BLOCK))


def _found(stops: Array, times: Array) -> tuple[slice, Array]:
    """Those of the stops that lie around some times, which are close together, and how many of these are not after each time."""
    if not len(times):
        return slice(0, 0), EMPTY[0]
    here = slice(*np.searchsorted(stops, (times.min(), times.max()), side="right").tolist())
    return here, np.searchsorted(stops[here], times, side="right")


def _slower(shown: Array, here: slice, place: Array, stopped: Array, lost: Array) -> Array:
    """What a clock that shows `shown` at some times would show if it stopped when it shows `stopped`, and lost `lost` until each of
    these stops and in all; `here` and `place` are as `_found` tells them."""
    first, stop = here.start, here.stop
    sums = lost[first : stop + 1]
    # It shows no less than at the last stop.
    least = np.empty(len(sums), np.int64)
    np.subtract(stopped[here], sums[:-1], out=least[1:])
    least[0] = stopped[first - 1] - lost[first - 1] if first else np.iinfo(np.int64).min
    slower = shown - sums.take(place)
    np.maximum(slower, least.take(place), out=slower)
    return slower


def within(spans: Spans, start: int, end: int) -> Spans:
    """As `intervals.clip`; where little or nothing is cut off it makes no new columns."""
    low, high = np.searchsorted(spans[1], start, side="right"), np.searchsorted(spans[0], end)
    if low >= high or start >= end:
        return EMPTY
    starts, ends = (side[low:high] for side in spans)
    starts = np.append(start, starts[1:]) if starts[0] < start else starts
    return starts, np.append(ends[:-1], end) if ends[-1] > end else ends


def with_few(many: Spans, few: Spans) -> Spans:
    """As `intervals.join`, where one of the sets is much larger than the other: only what the small one touches is looked at."""
    if len(many[0]) < 8 * len(few[0]):
        return join(many, few)
    if not len(few[0]):
        return many
    first, stop = np.searchsorted(many[1], few[0]), np.searchsorted(many[0], few[1], side="right")
    some = np.flatnonzero(stop > first)
    start, end = few[0].copy(), few[1].copy()
    start[some] = np.minimum(start[some], many[0][first[some]])
    end[some] = np.maximum(end[some], many[1][stop[some] - 1])
    start, end = union(start, end)
    # What is touched lies in these now.
    first, stop = np.searchsorted(many[0], start), np.searchsorted(many[0], end, side="right")
    left = np.ones(len(many[0]), bool)
    touched = np.repeat(first, stop - first)
    left[touched + np.arange(len(touched)) - np.repeat(np.cumsum(stop - first) - (stop - first), stop - first)] = False
    starts, ends = many[0][left], many[1][left]
    place = np.searchsorted(starts, start)
    return np.insert(starts, place, start), np.insert(ends, place, end)
