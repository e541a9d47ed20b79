"""Slices: what a row of events shows. Packing overlapping ones into rows, and merging small ones when there are too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.columns import Flags, Ints
from traceanalyzer.intervals import first_fit
from traceanalyzer.report.palette import SWATCHES

STRETCH = 1 << 16
"""Slices that are looked at together."""


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

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Slices:
        return Slices(*(getattr(self, one.name)[rows] for one in fields(self)))

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
    duration: Ints = end - start
    np.maximum(duration, 0, out=duration)
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
    rows: list[Slices] = []
    while len(slices) and len(rows) < limit:
        fits = first_fit(slices.start, slices.end)
        rows.append(slices if fits.all() else slices.take(fits))
        slices = slices.take(~fits)
    return rows, len(slices)


def merge(slices: Slices, quantum: int, keep: Flags) -> Iterator[tuple[Slices, Slices, Ints]]:
    """Put slices shorter than `quantum` ns that lie in the same quantum together, one slice a colour, laid end to end.

    So every colour keeps its exact total; what is lost is the order within a quantum. `keep` marks slices left as they are. The
    name is that of the longest event; the link is lost unless it stands for one event. Yields, stretch by stretch of the row, the
    slices that were in it, those that are in it now, and for each of the former the position of the one that it is in.
    """
    opens = _opens(slices.start, slices.duration, keep, quantum)
    low = 0
    while low < len(slices):
        high = low + STRETCH  # or where the next group begins
        high = high + int(opens[high:].argmax()) if opens[high:].any() else len(slices)
        here = slices.take(slice(low, high))
        yield here, *_merged(here, opens[low:high])
        low = high


def _merged(slices: Slices, opens: Flags) -> tuple[Slices, Ints]:
    first = np.flatnonzero(opens)
    holder: Ints = np.cumsum(opens)
    holder -= 1
    owner = np.arange(len(first))
    colours, code = _colours(slices.colour)
    if len(colours) > 1:
        # A place for every colour of every group, as far as there is one: so nothing has to be sorted.
        holder *= len(colours)
        holder += code.take(slices.colour)
        used = np.zeros(len(first) * len(colours), np.bool_)
        used[holder] = True
        owner = np.flatnonzero(used) // len(colours)
        holder = (np.cumsum(used) - 1).take(holder)
    duration = np.bincount(holder, weights=slices.duration).astype(np.int64)
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


def _colours(colour: NDArray[np.uint8]) -> tuple[Ints, Ints]:
    """The colours of some slices, ascending, and for each swatch its place among them."""
    seen = np.bincount(colour, minlength=len(SWATCHES)) > 0
    return np.flatnonzero(seen), np.cumsum(seen) - 1


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
    """How many slices `merge` leaves of a row, for one quantum after another."""

    def __init__(self, slices: Slices, keep: Flags) -> None:
        colours = _colours(slices.colour)[0]
        bits = np.zeros(len(SWATCHES), np.min_scalar_type((1 << len(colours)) - 1))
        bits[colours] = [1 << at for at in range(len(colours))]
        self._colours = len(colours)
        self._start, self._duration, self._keep = slices.start, slices.duration, keep
        self._bits = bits[slices.colour] if len(colours) > 1 else bits[:0]

    def __len__(self) -> int:
        return len(self._start)

    def size(self, quantum: int, most: int) -> int:
        """How many there are, or as soon as there are more than `most`, so many."""
        found, opens = 0, []
        for here in _opened(self._start, self._duration, self._keep, quantum):
            found += int(np.count_nonzero(here))
            if found > most:
                return found
            opens.append(here)
        if not opens or self._colours == 1:
            return found
        groups = np.bitwise_or.reduceat(self._bits, np.flatnonzero(np.concatenate(opens)))
        return sum(int(np.count_nonzero(groups & (1 << code))) for code in range(self._colours))


def _opens(start: Ints, duration: Ints, keep: Flags, quantum: int) -> Flags:
    """Where a group begins of slices that may be merged."""
    return np.concatenate([np.zeros(0, np.bool_), *_opened(start, duration, keep, quantum)])


def _opened(start: Ints, duration: Ints, keep: Flags, quantum: int) -> Iterator[Flags]:
    """The same stretch by stretch: of so many all that is asked for stays close to the processor."""
    for low in range(0, len(start), STRETCH):
        # With the last one before, from which the first of them may be apart.
        here = slice(max(low - 1, 0), low + STRETCH)
        bucket = _buckets(start[here], quantum)
        alone = duration[here] >= quantum
        alone |= keep[here]
        opens = np.ones(len(bucket), np.bool_)
        np.not_equal(bucket[1:], bucket[:-1], out=opens[1:])
        opens[1:] |= alone[1:]
        opens[1:] |= alone[:-1]
        yield opens[1:] if low else opens


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
