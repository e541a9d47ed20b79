"""The ledger of one GPU, and which claim holds what of it.

Most claims take tiles whole, and then one number says whose each is. Others cut them, and what is left of those is kept by line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from traceanalyzer.columns import ascending
from traceanalyzer.columns.in_blocks import in_blocks
from traceanalyzer.columns.spill import Growing, Narrow
from traceanalyzer.intervals import EMPTY, Array, Spans, coverage, intersect, join, latest, subtract, total, union
from traceanalyzer.model.claimed import Claimed
from traceanalyzer.vocabulary.lines import is_idle

FREE, CUT = -1, -2
_MANY = 1 << 16
Rows = npt.NDArray[Any]
"""Positions or numbers, in as many bytes as they need."""
Flags = npt.NDArray[np.bool_]


class Intervals(NamedTuple):
    """Intervals that are asked for, sorted and disjoint."""

    starts: Array
    ends: Array


class Whole(NamedTuple):
    """Tiles that are asked for, each of them whole, and how long each is in ns."""

    tiles: Rows
    ns: Rows

    def some(self, rows: Rows | slice) -> Whole:
        """Those at these positions."""
        if isinstance(rows, slice):
            return Whole(self.tiles[rows], self.ns[rows])
        return Whole(self.tiles.take(rows), self.ns.take(rows))


Asked = Intervals | Whole


class Taken(NamedTuple):
    """What a claim got of one line: the number that its tiles have, how much in ns, and its parts of the tiles that are cut."""

    line: str
    number: int
    ns: int
    pieces: Spans


class _Overlaps(NamedTuple):
    """The parts that intervals and tiles have in common, and how long they are in ns. `row` is the position of the interval, None where
    each has one part; `spans` are their starts and ends, None where each is all of its tile."""

    row: Rows | None
    tile: Rows
    ns: Rows
    spans: tuple[Array, Array] | None


class Tiles:
    """The tiles, sorted and disjoint. `line` is an index to `lines`, `holder` the number of a claim, or `FREE`, or `CUT`."""

    def __init__(self, start: Array, end: Array, line: Rows, lines: Sequence[str | None]) -> None:
        self.start, self.end, self.line, self.lines = start, end, line, lines
        self.holder = np.full(len(start), FREE, np.int32)
        self._free: dict[str, Spans] = {}
        """What is left of the tiles that are cut."""
        self._numbers = 0
        self._cut: list[Rows] = []

    def unclaimed(self, asked: Asked, lines: Iterable[str]) -> Rows:
        """For each interval, how many ns of it on these lines are free. Here they may overlap, and come in any order."""
        wanted = self._of(lines)
        reach = None
        if isinstance(asked, Intervals):
            reach = self._reach(asked)
            if self._is_much(asked, reach):
                free = wanted.take(self.line) & (self.holder == FREE)
                whole = union(self.start[free], self.end[free])
                return coverage(asked.starts, asked.ends, join(whole, self._pieces(lines)))
        left: Rows = np.zeros(len(asked[0]), np.int64)
        for row, tile, ns, _ in self._overlaps(asked, reach):
            here, state = wanted.take(self.line.take(tile)), self.holder.take(tile)
            free = here & (state == FREE)
            if row is None:
                left = ns * free
            else:
                np.add.at(left, row, ns * free)
            cut = np.flatnonzero(here & (state == CUT))
            if len(cut):
                rows = cut if row is None else ascending(row[cut])
                left[rows] += coverage(*self._times(asked, rows), self._pieces(lines))
        return left

    def claim(self, asked: Iterable[Asked], lines: Iterable[str]) -> list[Taken]:
        """Give away what is left on these lines, and tell what that was of each of which there was any."""
        names = [*dict.fromkeys(lines)]
        first, self._numbers = self._numbers, self._numbers + len(names)
        number = np.array([names.index(line) if line in names else -1 for line in self.lines], np.int32)
        ns = np.zeros(len(names), np.int64)
        cut: list[tuple[Rows, Array, Array]] = []
        for _, tile, length, spans in chain.from_iterable(map(self._overlaps, asked)):
            mine, state = number.take(self.line.take(tile)), self.holder.take(tile)
            free = (mine >= 0) & (state == FREE)
            whole = free
            if spans is not None:
                whole = free & (spans[0] == self.start.take(tile)) & (spans[1] == self.end.take(tile))
            got = slice(None) if whole.all() else np.flatnonzero(whole)
            line = mine[got]
            self.holder[tile[got]] = first + line
            np.add.at(ns, line, length[got].astype(np.int64, copy=False))
            part = np.flatnonzero((free & ~whole) | ((mine >= 0) & (state == CUT)))
            if len(part):
                self._cut_up(ascending(tile[free & ~whole]))
                cut.append((mine[part], *(self._spans(tile[part]) if spans is None else (one[part] for one in spans))))
        pieces = [EMPTY] * len(names)
        if cut:
            line, low, high = (np.concatenate(column) for column in zip(*cut, strict=True))
            for at, name in enumerate(names):
                pieces[at] = self._taken(name, union(low[line == at], high[line == at]))
        found = [Taken(name, first + at, int(ns[at]) + total(pieces[at]), pieces[at]) for at, name in enumerate(names)]
        return [one for one in found if one.ns]

    def held(self, asked: Iterable[Asked], lines: Iterable[str], taken: Sequence[Taken]) -> list[int]:
        """How many ns of the intervals on these lines each of these, which are all that was taken so far, holds."""
        names = set(lines)
        wanted, ns = self._of(names), np.zeros(self._numbers, np.int64)
        cut = [one for one in taken if one.line in names and len(one.pieces[0])]
        for some in asked:
            for _, tile, length, _ in self._overlaps(some):
                mine = np.flatnonzero(wanted.take(self.line.take(tile)) & (self.holder.take(tile) >= 0))
                np.add.at(ns, self.holder.take(tile.take(mine)), length.take(mine).astype(np.int64, copy=False))
            for one in cut:
                ns[one.number] += total(intersect(one.pieces, union(*self._times(some))))
        return [int(ns[one.number]) for one in taken]

    def spans(self, one: Taken) -> Spans:
        """All that was taken."""
        tiles = np.flatnonzero(self.holder == one.number)
        return join(self._spans(tiles), one.pieces)

    def claimed(self, taken: Sequence[Taken]) -> Claimed:
        """All that was taken by these together."""
        if any(len(one.pieces[0]) for one in taken):
            spans: dict[str, Spans] = {}
            for one in taken:
                spans[one.line] = join(spans.get(one.line, EMPTY), self.spans(one))
            return Claimed.of(spans)
        lines = [*dict.fromkeys(one.line for one in taken)]
        # What is free or cut is of no line either.
        line_of = np.full(self._numbers + max(-FREE, -CUT), -1, np.int8)
        for one in taken:
            line_of[one.number] = lines.index(one.line)
        rows, line = Growing(), Growing()
        for first in range(0, len(self.holder), _MANY):
            code = line_of.take(self.holder[first : first + _MANY])
            mine = np.flatnonzero(code >= 0)
            rows.add((mine + first).astype(np.int32))
            line.add(code.take(mine))
        return Claimed(self.start, self.end, rows.array(), line.array(), lines)

    def holders(self, times: Array, taken: Sequence[Taken], tile: Rows | None = None) -> Rows:
        """The number of what holds each time, -1 for none; `taken` is all that was, `tile` where each is if that is known."""
        if tile is None:
            tile = np.searchsorted(self.start, times, side="right") - 1
            within = (tile >= 0) & (times < self.end[tile])
            found = np.where(within, self.holder[tile], FREE)
        else:
            found = self.holder.take(tile)
        cut = np.flatnonzero(found == CUT)
        if len(cut):
            number = np.concatenate(
                [np.full(len(one.pieces[0]), one.number) for one in taken] or [np.empty(0, np.int64)]
            )
            start, end = (np.concatenate([one.pieces[at] for one in taken] or [EMPTY[at]]) for at in (0, 1))
            order = np.argsort(start, kind="stable")
            at = latest(start[order], end[order], times[cut])
            found[cut] = np.append(number[order], FREE)[at]
        return found

    def idle_tiles(self, count: int, intervals: Iterable[Spans]) -> Whole | None:
        """The idle tiles, if these intervals, so many in some blocks, are just those, one for one."""
        idle = np.array([line is not None and is_idle(line) for line in self.lines])
        if self._counts[idle].sum() != count:
            return None
        found, ns, done = Growing(), Narrow(), 0
        for rows in in_blocks(len(self.line)):
            found.add((np.flatnonzero(idle.take(self.line[rows])) + rows.start).astype(np.int32))
        tiles = found.array()
        for starts, ends in intervals:
            here = tiles[done : done + len(starts)]
            if not (np.array_equal(self.start.take(here), starts) and np.array_equal(self.end.take(here), ends)):
                return None
            ns.add(ends - starts)
            done += len(starts)
        return Whole(tiles, ns.array())

    @cached_property
    def _counts(self) -> Array:
        """How many tiles are of each line."""
        counts = np.zeros(len(self.lines), np.int64)
        for first in range(0, len(self.line), _MANY):
            counts += np.bincount(self.line[first : first + _MANY], minlength=len(counts))
        return counts

    def mark(self) -> Callable[[], None]:
        """A function that takes back all that is claimed from now on."""
        numbers, free = self._numbers, dict(self._free)
        self._cut = []

        def restore() -> None:
            self.holder[self.holder >= numbers] = FREE
            for tiles in self._cut:
                self.holder[tiles] = FREE
            self._numbers, self._free, self._cut = numbers, free, []

        return restore

    def _of(self, lines: Iterable[str]) -> Flags:
        """For each entry of `lines` whether it is one of these."""
        names = set(lines)
        return np.array([line in names for line in self.lines], bool)

    def _pieces(self, lines: Iterable[str]) -> Spans:
        return join(EMPTY, *(self._free.get(line, EMPTY) for line in set(lines)))

    def _taken(self, line: str, asked: Spans) -> Spans:
        """Take what is left of the pieces of a line."""
        free = self._free.get(line, EMPTY)
        spans = intersect(free, asked)
        if len(spans[0]):
            self._free[line] = subtract(free, spans)
        return spans

    def _cut_up(self, tiles: Rows) -> None:
        if not len(tiles):
            return
        self.holder[tiles] = CUT
        self._cut.append(tiles)
        line = self.line[tiles]
        for at in ascending(line).tolist():
            name, own = self.lines[at], tiles[line == at]
            if name is not None:
                self._free[name] = join(self._free.get(name, EMPTY), self._spans(own))

    def _spans(self, tiles: Rows) -> Spans:
        return self.start.take(tiles), self.end.take(tiles)

    def _times(self, asked: Asked, rows: Rows | slice = slice(None)) -> tuple[Array, Array]:
        """The starts and ends of some of what is asked for."""
        return self._spans(asked.tiles[rows]) if isinstance(asked, Whole) else (asked.starts[rows], asked.ends[rows])

    def _is_much(self, asked: Intervals, reach: tuple[Rows, Rows]) -> bool:
        """Whether the intervals overlap so much, or are so odd, that cutting each by itself would take time without end."""
        much = reach[1].sum() > 2 * (len(self.start) + len(asked.starts))
        return bool(much or (asked.ends < asked.starts).any())

    def _reach(self, asked: Intervals) -> tuple[Rows, Rows]:
        """For each interval the first tile that it has a part of, and how many."""
        first = np.searchsorted(self.end, asked.starts, side="right")
        return first, np.maximum(np.searchsorted(self.start, asked.ends, side="left") - first, 0)

    def _overlaps(self, asked: Asked, reach: tuple[Rows, Rows] | None = None) -> Iterator[_Overlaps]:
        """The parts of some intervals after those of others, as many as are worked on at once; `reach` is theirs, if it is known."""
        if isinstance(asked, Whole):
            yield _Overlaps(None, *asked, None)
            return
        starts, ends = asked
        first, count = reach or self._reach(asked)
        if (count == 1).all():
            low, high = np.maximum(starts, self.start.take(first)), np.minimum(ends, self.end.take(first))
            yield _Overlaps(None, first, high - low, (low, high))
            return
        step = max(len(starts) * _MANY // max(int(count.sum()), 1), 1)
        for at in range(0, len(starts), step):
            some = slice(at, at + step)
            row = np.repeat(np.arange(at, at + len(count[some])), count[some])
            # Of each interval the first, and those that follow.
            before = np.cumsum(count[some]) - count[some]
            tile = np.arange(len(row)) + (first[some] - before).take(row - at)
            low, high = self._spans(tile)
            low, high = np.maximum(starts.take(row), low), np.minimum(ends.take(row), high)
            yield _Overlaps(row, tile, high - low, (low, high))
