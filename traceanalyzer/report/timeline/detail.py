"""Levels of detail: when there is more than a page should carry, what lies close together is merged."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import chain

import numpy as np

from traceanalyzer.columns import Flags
from traceanalyzer.columns.spill import forget
from traceanalyzer.intervals import union
from traceanalyzer.records import dataclass
from traceanalyzer.report.timeline.lanes import Group, extent
from traceanalyzer.report.timeline.name_index import Hidden, hidden_names
from traceanalyzer.report.timeline.places import Place
from traceanalyzer.report.timeline.points import Points, thin, thinned_size
from traceanalyzer.report.timeline.slices import Merging, Slices, joined

PROTECTED_SHARE = 4
"""What lies in or next to the evidence stays as it is, unless that alone would fill one part in so many of what is allowed."""
FINEST = 22
"""The first quantum that is tried is the timeline's length over two to the power of this, which is far less than a pixel."""
STEPS = 8


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


class Levels:
    """Groups that are merged and thinned to less and less: what tells how far is found out once for all of that.

    Times count from the timeline's origin. Evidence lies at `places`; `names` is how many names there are.
    """

    def __init__(self, groups: list[Group], places: list[Place], names: int) -> None:
        self._groups, self._names = groups, names
        self._slices = [row for group in groups for row in group.slices]
        self._points = [row for group in groups for row in group.points]
        self._places = places
        self._sizes: dict[bool, dict[int, int]] = {}
        self._rows: dict[bool, list[Merging]] = {}

    def limit(self, most: int) -> Detail:
        """The groups with small slices merged and counters thinned until at most `most` slices and points are left, or nothing
        merges."""
        if _size(self._groups) <= most:
            return Detail(self._groups, [Hidden(np.empty(0, np.int64), np.empty(0, np.int64)) for _ in self._slices])
        protects = self._protected <= most // PROTECTED_SHARE
        quantum = self._quantum(protects, most)
        forget()
        unused = iter(self._merging(protects))
        hidden: list[Hidden] = []

        def shown(row: Slices | Points) -> Slices | Points:
            if isinstance(row, Points):
                return thin(row, quantum)
            merged, names, count = [], [], 0
            for here, fewer, holder in next(unused).merged(quantum):
                names.append(hidden_names(here, fewer, holder, self._names).behind(count))
                merged.append(fewer)
                count += len(fewer)
            hidden.append(Hidden.joined(names))
            forget()
            return joined(merged)

        groups = [
            replace(group, lanes=[replace(lane, rows=[shown(row) for row in lane.rows]) for lane in group.lanes])
            for group in self._groups
        ]
        merged_events = sum(int(row.count[row.count > 1].sum()) for group in groups for row in group.slices)
        left_out = sum(map(len, self._points)) - sum(len(row) for group in groups for row in group.points)
        return Detail(groups, hidden, merged_events, left_out, quantum)

    @cached_property
    def _beside(self) -> list[Flags]:
        return [_near(row, self._places) for row in self._slices]

    @cached_property
    def _protected(self) -> int:
        return sum(int(np.count_nonzero(near)) for near in self._beside)

    def _merging(self, protects: bool) -> list[Merging]:
        """What can be merged of each row."""
        if protects not in self._rows:
            keeps = self._beside if protects else [np.zeros(len(row), np.bool_) for row in self._slices]
            self._rows[protects] = [Merging(row, keep) for row, keep in zip(self._slices, keeps, strict=True)]
        return self._rows[protects]

    def _quantum(self, protects: bool, most: int) -> int:
        """The finest of the quanta, `STEPS` of them from one to its double, that leaves at most `most`.

        A coarser one hardly ever leaves more than a finer one does, so halving finds it; the one that is found was tried.
        """
        first, last = extent([lane for group in self._groups for lane in group.lanes])
        length = last - min(first, 0)
        finest = max(length >> FINEST, STEPS)
        sizes = self._sizes.setdefault(protects, {})
        rows = sorted(self._merging(protects), key=len)

        def quantum(step: int) -> int:
            octave, part = divmod(step, STEPS)
            return (finest << octave) * (STEPS + part) // STEPS

        def left(step: int) -> int:
            """How many slices and points that leaves, or so many that they are too many."""
            if step in sizes:
                return sizes[step]
            found, at = 0, quantum(step)
            counts = chain(
                (row.size(at, most - found) for row in rows), (thinned_size(row, at) for row in self._points)
            )
            for size in counts:
                found += size
                if found > most:
                    return found
            sizes[step] = found
            return found

        low, high = 0, max(length // finest, 1).bit_length() * STEPS
        while low < high:
            middle = (low + high) // 2
            if left(middle) <= most:
                high = middle
            else:
                low = middle + 1
        return quantum(low)


def _size(groups: list[Group]) -> int:
    return sum(len(row) for group in groups for lane in group.lanes for row in lane.rows)


def _near(row: Slices, places: list[Place]) -> Flags:
    """What lies in or next to the places: as long before and after them as they are."""
    start, end = (np.array([getattr(place, side) for place in places], np.int64) for side in ("start", "end"))
    low = np.searchsorted(row.end, start - (end - start), side="right") if len(places) else start
    high = np.searchsorted(row.start, end + (end - start))
    near = np.zeros(len(row), np.bool_)
    for first, last in zip(*union(low, high), strict=True):
        near[first:last] = True
    return near
