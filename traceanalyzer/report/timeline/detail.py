"""Levels of detail: when there is more than a page should carry, what lies close together is merged."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.report.timeline.lanes import Group, extent
from traceanalyzer.report.timeline.name_index import Hidden, hidden_names
from traceanalyzer.report.timeline.places import Place
from traceanalyzer.report.timeline.points import Points, thin, thinned_size
from traceanalyzer.report.timeline.slices import Slices, merge, merged_size

PROTECTED_SHARE = 4
"""What lies in or next to the evidence stays as it is, unless that alone would fill one part in so many of what is allowed."""
FINEST = 22
"""The first quantum that is tried is the timeline's length over two to the power of this, which is far less than a pixel."""
STEPS = 8

Keep = NDArray[np.bool_]


@dataclass(frozen=True)
class Detail:
    """Groups with what of them is shown, and what was merged: events inside merged slices, samples left out, and how close together
    that was, in ns; 0 where all is shown. `hidden` are the names inside merged slices, for each row of slices in its order.
    """

    groups: list[Group]
    hidden: list[Hidden]
    merged_events: int = 0
    left_out: int = 0
    quantum_ns: int = 0

    @property
    def size(self) -> int:
        """How many slices and points there are."""
        return _size(self.groups)


def limit(groups: list[Group], places: list[Place], names: int, most: int) -> Detail:
    """The groups with small slices merged and counters thinned until at most `most` slices and points are left, or nothing merges.

    Times count from the timeline's origin; `names` is how many names there are.
    """
    slices = [row for group in groups for row in group.slices]
    points = [row for group in groups for row in group.points]
    if _size(groups) <= most:
        return Detail(groups, [Hidden(np.empty(0, np.int64), np.empty(0, np.int64)) for _ in slices])
    keeps = [_near(row, places) for row in slices]
    if sum(int(keep.sum()) for keep in keeps) > most // PROTECTED_SHARE:
        keeps = [np.zeros(len(row), dtype=np.bool_) for row in slices]
    low, high = extent([lane for group in groups for lane in group.lanes])
    quantum = _quantum(slices, keeps, points, high - min(low, 0), most)
    unused = iter(keeps)
    hidden: list[Hidden] = []

    def shown(row: Slices | Points) -> Slices | Points:
        if isinstance(row, Points):
            return thin(row, quantum)
        merged, holder = merge(row, quantum, next(unused))
        hidden.append(hidden_names(row, merged, holder, names))
        return merged

    fewer = [
        replace(group, lanes=[replace(lane, rows=[shown(row) for row in lane.rows]) for lane in group.lanes])
        for group in groups
    ]
    merged_events = sum(int(row.count[row.count > 1].sum()) for group in fewer for row in group.slices)
    left_out = sum(map(len, points)) - sum(len(row) for group in fewer for row in group.points)
    return Detail(fewer, hidden, merged_events, left_out, quantum)


def _size(groups: list[Group]) -> int:
    return sum(len(row) for group in groups for lane in group.lanes for row in lane.rows)


def _quantum(slices: list[Slices], keeps: list[Keep], points: list[Points], length: int, most: int) -> int:
    """The finest of the quanta, `STEPS` of them from one to its double, that leaves at most `most`.

    A coarser one hardly ever leaves more than a finer one does, so halving finds it; the one that is found was tried.
    """
    finest = max(length >> FINEST, STEPS)

    def quantum(step: int) -> int:
        octave, part = divmod(step, STEPS)
        return (finest << octave) * (STEPS + part) // STEPS

    def left(step: int) -> int:
        merged = sum(merged_size(row, quantum(step), keep) for row, keep in zip(slices, keeps, strict=True))
        return merged + sum(thinned_size(row, quantum(step)) for row in points)

    low, high = 0, max(length // finest, 1).bit_length() * STEPS
    while low < high:
        middle = (low + high) // 2
        if left(middle) <= most:
            high = middle
        else:
            low = middle + 1
    return quantum(low)


def _near(row: Slices, places: list[Place]) -> Keep:
    near = np.zeros(len(row), dtype=np.bool_)
    for place in places:
        margin = place.end - place.start
        low = np.searchsorted(row.end, place.start - margin, side="right")
        high = np.searchsorted(row.start, place.end + margin)
        near[low:high] = True
    return near
