"""The time that a host has for itself: a clock that stands still in the time that is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from traceanalyzer.intervals import EMPTY, Array, Spans, join, union

_BLOCK = 1 << 15


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
    def at(cls, times: Array, origin: int, gone: Spans) -> HostTime:
        """Of a clock that is asked at these times, in any order."""
        lost = _sums(*gone)
        return cls(origin, gone[0], lost, _slower(times, times, gone[0], gone[0], lost) - origin)

    def shows(self, times: Array) -> Array:
        """What it shows at other times."""
        return _slower(times, times, self.stops, self.stops, self.lost) - self.origin


def without(hosts: Iterable[HostTime], times: Array, spans: Spans) -> Iterator[Array]:
    """What each of several clocks that were asked at the same `times` would show then if these spans were gone too."""
    for host in hosts:
        if len(spans[0]):
            begin = host.shows(spans[0])
            yield _slower(host.shown, times, spans[0], begin, _sums(begin, host.shows(spans[1])))
        else:
            yield host.shown


def _sums(begin: Array, end: Array) -> Array:
    sums = np.zeros(len(begin) + 1, np.int64)
    np.subtract(end, begin, out=sums[1:])
    return np.cumsum(sums, out=sums)


def _slower(shown: Array, times: Array, stops: Array, stopped: Array, lost: Array) -> Array:
    """What a clock that shows `shown` at some times would show if it stopped at `stops`, when it shows `stopped`, and lost `lost` until
    each of them and in all."""
    slower = np.empty(len(times), np.int64)
    # In blocks, so that what is in between does not leave the processor's cache.
    for at in range(0, len(times), _BLOCK):
        block = slice(at, at + _BLOCK)
        place = np.searchsorted(stops, times[block], side="right")
        slower[block] = shown[block] - lost[place]
        last = np.flatnonzero(place)
        place = place[last] - 1
        slower[at + last] = np.maximum(slower[at + last], stopped[place] - lost[place])
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
