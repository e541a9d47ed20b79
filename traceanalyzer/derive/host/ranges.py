"""Ranges of one host thread, and which of their names holds most of an interval."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from traceanalyzer.columns.frames import NULL, Codes
from traceanalyzer.columns.in_blocks import alike, in_a_row, says_nothing
from traceanalyzer.intervals import EMPTY, Array, Spans, coverage, innermost, overlaps, union
from traceanalyzer.records import dataclass

# After so many ranges, or this share of all, it is written down which are not over.
_STEP, _MOST_STEPS = 1 << 12, 1 << 8


class Reaching:
    """Finds those of some ranges, sorted by start, that reach into a stretch of time, without looking at all of them."""

    def __init__(self, start: Array, end: Array) -> None:
        self._start, self._end = start, end
        self._step = max(_STEP, len(start) // _MOST_STEPS)

    @cached_property
    def _open(self) -> list[Array]:
        """Of every `_step`-th range those before it that are not over when it starts."""
        found = [np.empty(0, np.int64)]
        for at in range(self._step, len(self._start), self._step):
            rows = np.concatenate((found[-1], np.arange(at - self._step, at)))
            found.append(rows[self._end[rows] > self._start[at]])
        return found

    def rows(self, start: int, end: int) -> Array:
        """Those that are not over at `start` and start before `end`."""
        stop = int(np.searchsorted(self._start, end, side="left"))
        begun = max(int(np.searchsorted(self._start, start, side="right")) - 1, 0) // self._step
        rows = np.concatenate((self._open[begun], np.arange(begun * self._step, stop)))
        return rows[self._end[rows] > start]


@dataclass(frozen=True)
class Ranges:
    """Some ranges of one thread, sorted by (start, -end). `name` indexes into a list of names that its owner keeps."""

    start: Array
    end: Array
    name: Array | Codes

    @cached_property
    def cover(self) -> Spans:
        return union(self.start, self.end)

    def outside(self, spans: Spans) -> Ranges:
        """Those that do not lie in `spans`."""
        if not len(self.start):
            return self
        whole = coverage(self.start, self.end, spans) >= self.end - self.start
        return Ranges(self.start[~whole], self.end[~whole], self.name[~whole])

    @cached_property
    def _reaching(self) -> Reaching:
        return Reaching(self.start, self.end)

    @cached_property
    def _innermost(self) -> tuple[Array, Array, Array]:
        return innermost(self.start, self.end)

    def during(self, start: int, end: int) -> Ranges:
        """Those that reach into [start, end)."""
        rows = self._reaching.rows(start, end) if len(self.start) else self.start
        if len(rows) == len(self.start):
            return self
        some = in_a_row(rows)  # as calls mostly are, of which none is in another
        return Ranges(self.start[some], self.end[some], self.name[some])

    def main_name(self, start: Array, end: Array) -> tuple[Array, Array]:
        """For each interval the name of the innermost range that holds most of it, `NULL` where there is none, and how many ns."""
        if not len(start) or not len(self.start):
            return np.full(len(start), NULL, np.int64), np.zeros(len(start), np.int64)
        some = self.during(int(start.min()), int(end.max()))
        low, high, owner = some._innermost
        row, stretch, first, last = overlaps(start, end, (low, high))
        return heaviest(row, some.name.take(owner.take(stretch)).astype(np.int64), last - first, len(start))


NO_RANGES = Ranges(*EMPTY, np.empty(0, np.int64))


def heaviest(row: Array, name: Array, weight: Array, count: int) -> tuple[Array, Array]:
    """For each of `count` rows the name with the largest total weight, of equals the first, and that weight.

    `row` is sorted. `NULL` stands for no name; a row without any has `NULL` and 0.
    """
    if says_nothing(name):
        return alike(NULL, count), alike(0, count)
    names, weights = np.full(count, NULL, np.int64), np.zeros(count, np.int64)
    named = np.flatnonzero(name != NULL)
    if len(named) < len(name):
        row, name, weight = row.take(named), name.take(named), weight.take(named)
    same = row[1:] == row[:-1]
    if not same.any():  # one name each, at most
        names[row], weights[row] = name, weight
        return names, weights
    first = np.flatnonzero(np.append(True, ~same))
    # Most rows have one name only, and need no sorting.
    several = np.flatnonzero(same & (name[1:] != name[:-1]))
    rows = row.take(first)
    names[rows], weights[rows] = name.take(first), np.add.reduceat(weight, first)
    if len(several):
        mixed = np.zeros(len(first), bool)
        mixed[np.searchsorted(first, several, side="right") - 1] = True
        some = np.flatnonzero(mixed.repeat(np.diff(first, append=len(row))))
        _weigh(row.take(some), name.take(some), weight.take(some), names, weights)
    return names, weights


def mostly(name: Array, weight: Array, length: Array) -> Array:
    """The names that have at least half of the length, `NULL` for the others."""
    if says_nothing(name):
        return name
    return np.where(2 * weight >= length, name, NULL)


def _weigh(row: Array, name: Array, weight: Array, names: Array, weights: Array) -> None:
    """As `heaviest`, for rows of several names each; fills in `names` and `weights`."""
    # One key, which is nearly sorted already: much faster than sorting by two.
    key = row * (int(name.max()) + 1) + name
    order = np.argsort(key, kind="stable")
    key = key.take(order)
    run = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    sums = np.add.reduceat(weight.take(order), run)
    # The sort is stable, so a run begins with the earliest of its name.
    earliest = order.take(run)
    own = row.take(earliest)
    first = np.flatnonzero(np.append(True, own[1:] != own[:-1]))
    most = np.maximum.reduceat(sums, first)
    earliest[sums < most.repeat(np.diff(first, append=len(run)))] = len(order)
    rows = own.take(first)
    weights[rows] = most
    names[rows] = name.take(np.minimum.reduceat(earliest, first))
