"""The time that a host has for itself: a clock that stands still in the time that is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from traceanalyzer.intervals import Array, Spans, covered_before

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
