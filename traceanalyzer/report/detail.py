"""Levels of detail: when there is more than a page should carry, what lies close together is merged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.report.lanes import Group, extent
from traceanalyzer.report.places import Place
from traceanalyzer.report.points import Points, thin, thinned_size
from traceanalyzer.report.slices import Slices, merge, merged_size

PROTECTED_SHARE = 4
"""What lies in or next to the evidence stays as it is, unless that alone would fill one part in so many of what is allowed."""
FINEST = 22
"""The first quantum that is tried is the timeline's length over two to the power of this, which is far less than a pixel."""

Keep = NDArray[np.bool_]


@dataclass(frozen=True)
class Detail:
    """What was merged: events inside merged slices, samples left out, and how close together that was, in ns; 0 where all is shown."""

    merged_events: int
    left_out: int
    quantum_ns: int


def limit(groups: list[Group], places: list[Place], most: int) -> Detail:
    """Merge small slices and thin counters until at most `most` slices and points are left, or nothing is left to merge.

    Changes the rows of the groups' lanes, which count from the timeline's origin.
    """
    slices = [row for group in groups for row in group.slices]
    points = [row for group in groups for row in group.points]
    samples = sum(map(len, points))
    if sum(map(len, slices)) + samples <= most:
        return Detail(0, 0, 0)
    keeps = [_near(row, places) for row in slices]
    if sum(int(keep.sum()) for keep in keeps) > most // PROTECTED_SHARE:
        keeps = [np.zeros(len(row), dtype=np.bool_) for row in slices]
    low, high = extent([lane for group in groups for lane in group.lanes])
    quantum = _quantum(slices, keeps, points, high - min(low, 0), most)
    unused = iter(keeps)
    for lane in (lane for group in groups for lane in group.lanes):
        lane.rows = [
            merge(row, quantum, next(unused)) if isinstance(row, Slices) else thin(row, quantum) for row in lane.rows
        ]
    merged = sum(int(row.count[row.count > 1].sum()) for group in groups for row in group.slices)
    return Detail(merged, samples - sum(len(row) for group in groups for row in group.points), quantum)


def _quantum(slices: list[Slices], keeps: list[Keep], points: list[Points], length: int, most: int) -> int:
    """The finest of the quanta, each twice the one before, that leaves at most `most`.

    A coarser one merges all that a finer one does, so halving finds it.
    """
    finest = max(length >> FINEST, 1)

    def left(power: int) -> int:
        quantum = finest << power
        merged = sum(merged_size(row, quantum, keep) for row, keep in zip(slices, keeps, strict=True))
        return merged + sum(thinned_size(row, quantum) for row in points)

    low, high = 0, max(length // finest, 1).bit_length()
    while low < high:
        middle = (low + high) // 2
        if left(middle) <= most:
            high = middle
        else:
            low = middle + 1
    return finest << low


def _near(row: Slices, places: list[Place]) -> Keep:
    near = np.zeros(len(row), dtype=np.bool_)
    for place in places:
        margin = place.end - place.start
        low = np.searchsorted(row.end, place.start - margin, side="right")
        high = np.searchsorted(row.start, place.end + margin)
        near[low:high] = True
    return near
