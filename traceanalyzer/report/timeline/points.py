"""Points: what a row of a counter shows. A value holds from its time to the next one's; after the last one nothing is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.columns import Ints
from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class Points:
    """The values of one counter in order of time, in ns."""

    time: Ints
    value: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.time)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Points:
        return Points(self.time[rows], self.value[rows])

    def moved(self, by: int) -> Points:
        return Points(self.time + by, self.value)


def make_points(time: Ints, value: NDArray[np.float64]) -> Points:
    """Points of samples in any order: those that are no numbers, or say the value before them again, are left out. The last one stays,
    as it tells how long was sampled."""
    order = np.argsort(time, kind="stable")
    points = Points(time[order], value[order])
    points = points.take(np.isfinite(points.value))
    news = np.ones(len(points), dtype=np.bool_)
    news[1:-1] = points.value[1:-1] != points.value[:-2]
    return points.take(news)


def within(points: Points, start: int, end: int) -> Points:
    """The points from `start` to `end`; what held at `start` begins there, if a later one says that it was still sampled."""
    first = max(int(np.searchsorted(points.time, start, side="right")) - 1, 0)
    last = int(np.searchsorted(points.time, end, side="right"))
    if last - first == 1 and points.time[first] < start:
        first = last
    return Points(np.maximum(points.time[first:last], start), points.value[first:last])


def thin(points: Points, quantum: int) -> Points:
    """Of the points in each `quantum` ns the first, the lowest, the highest and the last: extremes and what holds after stay exact."""
    return points.take(_kept(points, quantum))


def thinned_size(points: Points, quantum: int) -> int:
    """How many points `thin` would leave."""
    return int(np.count_nonzero(_kept(points, quantum)))


def _kept(points: Points, quantum: int) -> NDArray[np.bool_]:
    n = len(points)
    kept = np.zeros(n, dtype=np.bool_)
    if not n:
        return kept
    bucket = points.time // quantum
    first = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1]))
    length = np.diff(first, append=n)
    for extreme in (np.minimum, np.maximum):
        same = np.flatnonzero(points.value == np.repeat(extreme.reduceat(points.value, first), length))
        kept[same[np.append(True, bucket[same][1:] != bucket[same][:-1])]] = True  # the first that reaches it
    kept[first] = kept[first + length - 1] = True
    return kept
