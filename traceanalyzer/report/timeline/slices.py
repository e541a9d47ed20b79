"""Slices: what a row of events shows. Packing overlapping ones into rows, and merging small ones when there are too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.columns import Flags, Ints
from traceanalyzer.columns.in_blocks import computed, in_blocks, taken
from traceanalyzer.intervals import first_fit, nested_depth
from traceanalyzer.records import dataclass
from traceanalyzer.report.palette import SWATCHES
from traceanalyzer.report.timeline.name_table import looked_up

STRETCH = 1 << 16
"""Slices that are looked at together."""
KEPT = np.iinfo(np.int64).max
"""As if so long: what is left as it is."""


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

    @property
    def last(self) -> int:
        """The end of the last one to end; there is at least one."""
        return max(int((self.start[rows] + self.duration[rows]).max()) for rows in in_blocks(len(self)))

    @property
    def are_apart(self) -> bool:
        """Whether each begins when the one before it is over, or later."""
        return all(
            bool((self.start[rows.start + 1 : rows.stop + 1] >= (self.start[rows] + self.duration[rows])[:stop]).all())
            for rows in in_blocks(len(self))
            for stop in (len(self) - 1 - rows.start,)
        )

    @property
    def colours(self) -> Ints:
        """Those that occur, ascending."""
        seen = np.zeros(len(SWATCHES), np.bool_)
        for rows in in_blocks(len(self)):
            seen |= np.bincount(self.colour[rows], minlength=len(SWATCHES)) > 0
        return np.flatnonzero(seen)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Slices:
        columns = (getattr(self, one.name) for one in fields(self))
        if isinstance(rows, slice):
            return Slices(*(column[rows] for column in columns))
        at = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64, copy=False)
        return Slices(*(taken(column, at) for column in columns))

    def moved(self, by: int) -> Slices:
        return replace(self, start=computed(len(self), lambda rows: self.start[rows] + by))


def make_slices(
    start: Ints,
    end: Ints,
    name: NDArray[np.uint32],
    colour: NDArray[np.uint8],
    link: NDArray[np.uint32] | None = None,
) -> Slices:
    """Slices of single events, sorted: earlier first, and the longer first where two start together (a parent before its child)."""
    duration: Ints = computed(len(start), lambda rows: np.maximum(end[rows] - start[rows], 0))
    # What all of them have in common is one number in memory.
    alone = np.broadcast_to(np.uint32(1), len(start))
    links = np.broadcast_to(np.uint32(0), len(start)) if link is None else link
    slices = Slices(start, duration, name, colour, alone, links, np.broadcast_to(np.False_, len(start)))
    close = np.flatnonzero(start[1:] <= start[:-1])  # few, where they are in order already
    if bool(((start[close + 1] < start[close]) | (duration[close + 1] > duration[close])).any()):
        slices = slices.take(np.lexsort((-duration, start)))
    return slices


def pack(slices: Slices, limit: int) -> tuple[list[Slices], int]:
    """Spread slices over rows so that no two in a row overlap: first fit, so nested ranges land at their own depth.

    Returns at most `limit` rows, and the number of slices that found no place in them.
    """
    if not len(slices) or slices.are_apart:  # as most are
        return [slices] if len(slices) else [], 0
    depth = nested_depth(slices.start, slices.end)
    if depth is not None:  # Their rows are known at once.
        count = np.bincount(depth)[:limit]
        ends = np.cumsum(count)
        order = np.argsort(depth.astype(np.min_scalar_type(int(depth.max()))), kind="stable")
        return [slices.take(order[end - n : end]) for n, end in zip(count, ends, strict=True)], len(slices) - int(
            ends[-1]
        )
    rows: list[Slices] = []
    while len(slices) and len(rows) < limit:
        fits = first_fit(slices.start, slices.end)
        rows.append(slices.take(fits))
        slices = slices.take(~fits)
    return rows, len(slices)


def _places(colours: Ints) -> NDArray[np.uint8]:
    """For each swatch its place among some colours."""
    places = np.zeros(len(SWATCHES), np.uint8)
    places[colours] = np.arange(len(colours))
    return places


def _merged(slices: Slices, opens: Flags, places: NDArray[np.uint8]) -> tuple[Slices, Ints]:
    first = np.flatnonzero(opens)
    holder: Ints = np.cumsum(opens)
    holder -= 1
    owner = np.arange(len(first))
    colours = int(places.max()) + 1
    if colours > 1:
        # A place for every colour of every group, as far as there is one: so nothing has to be sorted.
        holder *= colours
        holder += places.take(slices.colour)
        used = np.zeros(len(first) * colours, np.bool_)
        used[holder] = True
        owner = np.flatnonzero(used) // colours
        holder = (np.cumsum(used) - 1).take(holder)
    duration = np.zeros(len(owner), np.int64)
    np.add.at(duration, holder, slices.duration)
    alone = 0 in slices.count.strides  # none of them was merged before
    count = np.bincount(holder, weights=None if alone else slices.count).astype(np.uint32)
    longest = _longest(slices.duration, holder, len(owner))
    begins = np.diff(owner, prepend=-1) > 0
    before = np.cumsum(duration) - duration  # laid end to end over the whole stretch ...
    within = before - before[begins].take(owner)  # ... and then from the start of each group
    link = np.where(count == 1, slices.link.take(longest), 0).astype(np.uint32)
    start = slices.start.take(first.take(owner)) + within
    rough = (count > 1) | (start != slices.start.take(longest))
    return Slices(start, duration, slices.name.take(longest), slices.colour.take(longest), count, link, rough), holder


def _longest(duration: Ints, holder: Ints, holders: int) -> Ints:
    """Of each holder the first of the longest slices that are in it."""
    most = np.zeros(holders, np.int64)
    np.maximum.at(most, holder, duration)
    candidates = np.flatnonzero(duration == most.take(holder))[::-1]
    longest = np.empty(holders, np.int64)
    longest[holder.take(candidates)] = candidates  # of several the one that is written last
    return longest


def joined(rows: Sequence[Slices]) -> Slices:
    """Slices one after another."""
    return Slices(*(np.concatenate([getattr(row, one.name) for row in rows]) for one in fields(Slices)))


class Merging:
    """A row of slices that is merged within one quantum after another. `keep` marks slices left as they are."""

    def __init__(self, slices: Slices, keep: Flags) -> None:
        self._slices, self._keep = slices, keep
        self._colours = slices.colours
        bits = np.zeros(len(SWATCHES), np.min_scalar_type((1 << len(self._colours)) - 1))
        bits[self._colours] = [1 << at for at in range(len(self._colours))]
        self._bits = looked_up(bits, slices.colour) if len(self._colours) > 1 else bits[:0]
        # In most stretches none is as long as the quanta that are tried, or is to be left as it is.
        self._longest = [
            KEPT if keep[rows].any() else int(slices.duration[rows].max()) for rows, _ in _stretches(len(slices))
        ]

    def __len__(self) -> int:
        return len(self._slices)

    def size(self, quantum: int, most: int) -> int:
        """How many there are, or as soon as there are more than `most`, so many."""
        found, opens = 0, []
        for here in self._opened(quantum):
            found += int(np.count_nonzero(here))
            if found > most:
                return found
            opens.append(here)
        if not opens or len(self._colours) == 1:
            return found
        groups = np.bitwise_or.reduceat(self._bits, np.flatnonzero(np.concatenate(opens)))
        return sum(int(np.count_nonzero(groups & (1 << code))) for code in range(len(self._colours)))

    def merged(self, quantum: int) -> Iterator[tuple[Slices, Slices, Ints]]:
        """Put slices shorter than `quantum` ns that lie in the same quantum together, one slice a colour, laid end to end.

        So every colour keeps its exact total; what is lost is the order within a quantum. The name is that of the longest event; the
        link is lost unless it stands for one event. Yields, stretch by stretch of the row, the slices that were in it, those that are
        in it now, and for each of the former the position of the one that it is in.
        """
        opens = np.concatenate([np.zeros(0, np.bool_), *self._opened(quantum)])
        places, low = _places(self._colours), 0
        while low < len(opens):
            high = low + STRETCH  # or where the next group begins
            high = high + int(opens[high:].argmax()) if opens[high:].any() else len(opens)
            here = self._slices.take(slice(low, high))
            yield here, *_merged(here, opens[low:high], places)
            low = high

    def _opened(self, quantum: int) -> Iterator[Flags]:
        """Where a group begins of slices that may be merged, stretch by stretch: of so many all that is asked for stays close to the
        processor."""
        for (rows, first), longest in zip(_stretches(len(self)), self._longest, strict=True):
            bucket = _buckets(self._slices.start[rows], quantum)
            opens = np.ones(len(bucket), np.bool_)
            np.not_equal(bucket[1:], bucket[:-1], out=opens[1:])
            if longest >= quantum:
                alone = self._slices.duration[rows] >= quantum
                alone |= self._keep[rows]
                opens[1:] |= alone[1:]
                opens[1:] |= alone[:-1]
            yield opens[first:]


def _stretches(count: int) -> Iterator[tuple[slice, int]]:
    """The rows of each stretch with the last one before it, from which its first may be apart; and how many are before it."""
    for low in range(0, count, STRETCH):
        before = min(low, 1)
        yield slice(low - before, low + STRETCH), before


def _buckets(start: Ints, quantum: int) -> NDArray[np.integer[Any]]:
    """In which quantum each of some ascending times lies, counted from any of them."""
    first = int(start[0]) // quantum * quantum
    if int(start[-1]) - first >= 1 << 32:
        return start // quantum
    # Numbers of half the width are divided in a fraction of the time.
    bucket = start.astype(np.uint32)
    bucket -= np.uint32(first % (1 << 32))
    if quantum < 1 << 32:
        bucket //= np.uint32(quantum)
        return bucket
    return np.zeros_like(bucket)
