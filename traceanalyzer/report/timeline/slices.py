"""Slices: what a row of events shows. Packing overlapping ones into rows, and merging small ones when there are too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.columns import Flags, Ints
from traceanalyzer.intervals import first_fit
from traceanalyzer.report.palette import SWATCHES

STRETCH = 1 << 15
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
    group: Ints = np.cumsum(opens)
    group -= 1
    colours, code = _colours(slices.colour)
    # A place for every colour of every group, as far as there is one: so nothing has to be sorted.
    place = group * len(colours) + code[slices.colour]
    used = np.zeros(len(first) * len(colours), np.bool_)
    used[place] = True
    holder: Ints = (np.cumsum(used) - 1)[place]
    places = np.flatnonzero(used)
    duration = np.bincount(holder, weights=slices.duration).astype(np.int64)
    count = np.bincount(holder, weights=slices.count).astype(np.uint32)
    longest = _longest(slices.duration, holder, len(places))
    owner = places // len(colours)
    begins = np.diff(owner, prepend=-1) > 0
    before = np.cumsum(duration) - duration  # laid end to end over the whole stretch ...
    within = before - before[begins][np.cumsum(begins) - 1]  # ... and then from the start of each group
    link = np.where(count == 1, slices.link[longest], 0).astype(np.uint32)
    start = slices.start[first[owner]] + within
    rough = (count > 1) | (start != slices.start[longest])
    return Slices(start, duration, slices.name[longest], slices.colour[longest], count, link, rough), holder


def _colours(colour: NDArray[np.uint8]) -> tuple[Ints, Ints]:
    """The colours of some slices, ascending, and for each swatch its place among them."""
    seen = np.zeros(len(SWATCHES), np.bool_)
    seen[colour] = True
    return np.flatnonzero(seen), np.cumsum(seen) - 1


def _longest(duration: Ints, holder: Ints, holders: int) -> Ints:
    """Of each holder the first of the longest slices that are in it."""
    most = np.zeros(holders, np.int64)
    np.maximum.at(most, holder, duration)
    candidates = np.flatnonzero(duration == most[holder])[::-1]
    longest = np.empty(holders, np.int64)
    longest[holder[candidates]] = candidates  # of several the one that is written last
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
        self._start, self._duration, self._keep, self._bits = slices.start, slices.duration, keep, bits[slices.colour]

    def __len__(self) -> int:
        return len(self._start)

    def size(self, quantum: int) -> int:
        """How many there are."""
        first = np.flatnonzero(_opens(self._start, self._duration, self._keep, quantum))
        if not len(first) or self._colours == 1:
            return len(first)
        groups = np.bitwise_or.reduceat(self._bits, first)
        return sum(int(np.count_nonzero(groups & (1 << code))) for code in range(self._colours))


def _opens(start: Ints, duration: Ints, keep: Flags, quantum: int) -> Flags:
    """Where a group begins of slices that may be merged."""
    opens = np.ones(len(start), dtype=np.bool_)
    for low in range(0, len(start), STRETCH):  # of so many all that is asked for stays close to the processor
        here = slice(low, low + STRETCH + 1)
        alone = duration[here] >= quantum
        alone |= keep[here]
        bucket = start[here] // quantum
        opens[low + 1 : low + len(bucket)] = (bucket[1:] != bucket[:-1]) | alone[1:] | alone[:-1]
    return opens
