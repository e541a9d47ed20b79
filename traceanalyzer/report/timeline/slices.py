"""Slices: what a row of events shows. Packing overlapping ones into rows, and merging small ones when there are too many."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.columns import Ints
from traceanalyzer.intervals import first_fit
from traceanalyzer.report.palette import SWATCHES


@dataclass(frozen=True)
class Slices:
    """Events of one row, by start, in ns. `count` is how many events each slice stands for, `link` the number of the launch call that
    it is or comes from, 0 for none. `rough` marks those that merging has moved: their start is not that of an event."""

    start: Ints
    duration: Ints
    name: NDArray[np.uint32]
    colour: NDArray[np.uint8]
    count: NDArray[np.uint32]
    link: NDArray[np.uint32]
    rough: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def end(self) -> Ints:
        end: Ints = self.start + self.duration
        return end

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Slices:
        return Slices(
            self.start[rows],
            self.duration[rows],
            self.name[rows],
            self.colour[rows],
            self.count[rows],
            self.link[rows],
            self.rough[rows],
        )

    def moved(self, by: int) -> Slices:
        return replace(self, start=self.start + by)


def make_slices(
    start: Ints,
    end: Ints,
    name: NDArray[np.uint32],
    colour: NDArray[np.uint8],
    link: NDArray[np.uint32] | None = None,
) -> Slices:
    """Slices of single events, sorted: earlier first, and the longer first where two start together (a parent before its child)."""
    duration = np.maximum(end - start, 0)
    alone = np.ones(len(start), dtype=np.uint32)
    links = 0 * alone if link is None else link
    slices = Slices(start, duration, name, colour, alone, links, np.zeros(len(start), np.bool_))
    after, longer = np.diff(start), np.diff(duration) > 0
    if bool(((after < 0) | ((after == 0) & longer)).any()):
        slices = slices.take(np.lexsort((-duration, start)))
    return slices


def pack(slices: Slices, limit: int) -> tuple[list[Slices], int]:
    """Spread slices over rows so that no two in a row overlap: first fit, so nested ranges land at their own depth.

    Returns at most `limit` rows, and the number of slices that found no place in them.
    """
    rows: list[Slices] = []
    while len(slices) and len(rows) < limit:
        fits = first_fit(slices.start, slices.end)
        rows.append(slices.take(fits))
        slices = slices.take(~fits)
    return rows, len(slices)


def merge(slices: Slices, quantum: int, keep: NDArray[np.bool_]) -> tuple[Slices, Ints]:
    """Put slices shorter than `quantum` ns that lie in the same quantum together, one slice a colour, laid end to end.

    So every colour keeps its exact total; what is lost is the order within a quantum. `keep` marks slices left as they are. The
    name is that of the longest event; the link is lost unless it stands for one event. Returns the merged slices, and for each of
    the slices given the number of the one that it is in.
    """
    group = _groups(slices, quantum, keep)
    key = group * len(SWATCHES) + slices.colour
    order = np.lexsort((-slices.duration, key))
    longest = order[np.append(True, key[order][1:] != key[order][:-1])]  # the first of each key, in key order
    dense = np.cumsum(np.append(False, key[order][1:] != key[order][:-1]))
    holder = np.empty(len(slices), dtype=np.int64)
    holder[order] = dense
    duration = np.bincount(dense, weights=slices.duration[order]).astype(np.int64)
    count = np.bincount(dense, weights=slices.count[order]).astype(np.uint32)
    owner = group[longest]
    opens = np.append(True, owner[1:] != owner[:-1])
    before = np.cumsum(duration) - duration  # laid end to end over the whole row ...
    within = before - before[opens][np.cumsum(opens) - 1]  # ... and then from the start of each group
    group_start = slices.start[np.searchsorted(group, owner)]
    link = np.where(count == 1, slices.link[longest], 0).astype(np.uint32)
    start = group_start + within
    rough = (count > 1) | (start != slices.start[longest])
    return Slices(start, duration, slices.name[longest], slices.colour[longest], count, link, rough), holder


def merged_size(slices: Slices, quantum: int, keep: NDArray[np.bool_]) -> int:
    """How many slices `merge` would leave."""
    if not len(slices):
        return 0
    first = np.flatnonzero(np.diff(_groups(slices, quantum, keep), prepend=-1))
    colours = np.bitwise_or.reduceat(np.int64(1) << slices.colour.astype(np.int64), first)
    return sum(int(np.count_nonzero(colours & (1 << code))) for code in range(len(SWATCHES)))


def _groups(slices: Slices, quantum: int, keep: NDArray[np.bool_]) -> Ints:
    """For each slice the number of the group in which it may be merged, counting up along the row."""
    alone = keep | (slices.duration >= quantum)
    bucket = slices.start // quantum
    opens = np.ones(len(slices), dtype=np.bool_)
    opens[1:] = (bucket[1:] != bucket[:-1]) | alone[1:] | alone[:-1]
    group: Ints = np.cumsum(opens) - 1
    return group
