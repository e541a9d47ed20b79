"""The time that a host has for itself: a clock that stands still in the time that is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from traceanalyzer.intervals import EMPTY, Array, Spans, covered_before, join, union

_LONG_AGO = -(1 << 60)


@dataclass(frozen=True)
class HostTime:
    """A clock that starts at `origin` and stands still in the spans `gone`, which begin no sooner; `shown` is what it shows at some
    times. All in ns."""

    origin: int
    gone: Spans
    shown: Array

    @classmethod
    def at(cls, times: Array, origin: int, gone: Spans) -> HostTime:
        """Of a clock that is asked at these times, in any order."""
        place = np.searchsorted(gone[0], times, side="right")
        return cls(origin, gone, _slower(times - origin, place, gone[0] - origin, gone[1] - origin))

    def shows(self, times: Array) -> Array:
        """What it shows at other times."""
        return times - self.origin - covered_before(times, self.gone)


def without(hosts: Iterable[HostTime], times: Array, spans: Spans) -> Iterator[Array]:
    """What each of several clocks that were asked at the same `times` would show then if these spans were gone too."""
    place = np.searchsorted(spans[0], times, side="right") if len(spans[0]) else None
    for host in hosts:
        yield host.shown if place is None else _slower(host.shown, place, host.shows(spans[0]), host.shows(spans[1]))


def _slower(shown: Array, place: Array, begin: Array, end: Array) -> Array:
    """What a clock that shows `shown` would show if it stood still whenever it shows a time in one of the spans from `begin` to `end`,
    so many of which have begun by then (`place`)."""
    over, gone = np.append(_LONG_AGO, end), np.append(0, np.cumsum(end - begin))
    slower: Array = np.maximum(shown, over[place])
    slower -= gone[place]
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
