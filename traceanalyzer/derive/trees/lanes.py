"""One host thread: in which range or call it was at which time.

Most calls are short, and nothing begins or ends in them. Such calls lie on top of all else: they need no sorting and no nesting, and
those of one name within one range are as good as one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from traceanalyzer.columns.frames import Flags
from traceanalyzer.columns.uniques import unique
from traceanalyzer.intervals import Array, Spans, latest, overlaps, union
from traceanalyzer.records import dataclass

BLOCK = 1 << 16
"""So many rows are looked at at once: what is made of them stays close to the processor."""


class Within(NamedTuple):
    """What lies in some intervals of a thread: the position of the interval, that of the range or call, and how many ns."""

    row: Array
    item: Array
    ns: Array


@dataclass(frozen=True)
class Lane:
    """The time of a thread by the positions of ranges and calls.

    `low`, `high` and `owner` are stretches in which nothing changes, sorted and disjoint, with what each belongs to; `start`, `end` and
    `call` the same of the calls that lie on top of these, and `under` the stretch below each, -1 where there is none.
    """

    low: Array
    high: Array
    owner: Array
    start: Array
    end: Array
    call: Array
    under: Array

    def moved(self, by: int) -> Lane:
        """The same where so many positions come before."""
        return replace(self, owner=self.owner + by, call=self.call + self.call.dtype.type(by))

    def covered(self) -> Spans:
        """When it was in anything."""
        return union(np.concatenate((self.low, self.start)), np.concatenate((self.high, self.end)))

    def cut(self, low: int, high: int) -> Array:
        """Times from `low` to `high` between which there are not too many calls on top; each but the last is the start of one."""
        inner = self.start[::BLOCK]
        return np.concatenate(([low], inner[(inner > low) & (inner < high)], [high]))

    def within(self, start: Array, end: Array) -> Within:
        """What lies in these intervals, which may overlap."""
        here = self.near(start, end)
        row, call, first, last = overlaps(start, end, (here.start, here.end))
        under, stretch, low, high = overlaps(start, end, (here.low, here.high))
        left = high - low
        # What calls take of an interval they take of the stretch that they lie in.
        some = np.flatnonzero(here.under[call] >= 0)
        if len(some):
            count = np.bincount(under, minlength=len(start))
            before = np.cumsum(count) - count
            offset = before - np.append(stretch, 0)[before]
            taken = np.bincount(offset[row[some]] + here.under[call[some]], (last - first)[some], len(left))
            left -= taken.astype(np.int64)
        return Within(
            np.concatenate((row, under)),
            np.concatenate((here.call[call], here.owner[stretch])),
            np.concatenate((last - first, left)),
        )

    def at(self, time: Array) -> Array:
        """The position of what it was in at each time, -1 where in nothing."""
        here = self.near(time, time)
        found = np.append(here.owner, -1)[latest(here.low, here.high, time)]
        call = latest(here.start, here.end, time)
        on_top = call >= 0
        found[on_top] = here.call[call[on_top]]
        return found

    def near(self, start: Array, end: Array) -> Lane:
        """All that is of use from the first start to the last end: what has to be searched is short."""
        first, last = (int(start.min()), int(end.max())) if len(start) else (0, 0)
        stretches, calls = (
            slice(np.searchsorted(ends, first, side="right"), np.searchsorted(starts, last, side="right"))
            for starts, ends in ((self.low, self.high), (self.start, self.end))
        )
        # A call that reaches into this time lies in a stretch that does, or in none.
        under = self.under[calls] - self.under.dtype.type(stretches.start)
        low, high, owner = self.low[stretches], self.high[stretches], self.owner[stretches]
        return Lane(low, high, owner, self.start[calls], self.end[calls], self.call[calls], under)


def on_top(start: Array, end: Array, low: Array, high: Array) -> Flags:
    """In which calls of a thread, sorted by (start, -end), neither another call nor one of its ranges (low, high) begins or ends."""
    # An empty one ends where it starts and must not close itself.
    until = np.maximum(end, start + 1)
    free = np.ones(len(start), bool)
    free[:-1] = start[1:] >= until[:-1]
    if not len(start):
        return free
    # Whatever else a time lies in, if it is in a call it is in the last that began before it, or a call began in that.
    at = np.searchsorted(start, low, side="right") - 1
    around = (low == start[at]) & (high >= end[at])
    free[at[(at >= 0) & (low < until[at]) & ~around]] = False
    others = np.flatnonzero(~free)
    ends = np.concatenate((np.maximum(high, low + 1), until[others]))
    at = np.searchsorted(start, ends) - 1
    free[at[(at >= 0) & (ends < until[at])]] = False
    return free


def lane_of(
    stretches: tuple[Array, Array, Array], start: Array, end: Array, name: Array, count: int
) -> tuple[Lane, tuple[Array, Array]]:
    """A lane of stretches and of the calls on top of them, given by start, end and number of the name.

    `count` is how many ranges and calls the stretches are of. Behind those come the kinds of the calls on top, of which it returns what
    is around each (-1 at the top), and its name.
    """
    low, high, owner = stretches
    width = int(name.max(initial=0)) + 1
    keys, codes, under, met = [np.empty(0, np.int64)], [np.empty(0, np.int32)], [np.empty(0, np.int32)], 0
    for first in range(0, len(start), BLOCK):
        here = slice(first, first + BLOCK)
        at = latest(low, high, start[here])
        under.append(at.astype(np.int32))
        key, code = unique((np.append(owner, -1)[at] + 1) * width + name[here])
        keys.append(key)
        codes.append((code + met).astype(np.int32))
        met += len(key)
    kinds, place = unique(np.concatenate(keys))
    call = (place.astype(np.int32) + np.int32(count))[np.concatenate(codes)]
    return Lane(low, high, owner, start, end, call, np.concatenate(under)), (kinds // width - 1, kinds % width)
