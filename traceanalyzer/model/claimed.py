"""What one finding claimed of a GPU's time, by ledger line: found once, and asked many times."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from traceanalyzer.columns.spill import Growing, forget
from traceanalyzer.intervals import EMPTY, Array, Spans, near, overlaps, total

Rows = npt.NDArray[np.int32]
Codes = npt.NDArray[np.int8]
_BLOCK = 1 << 15
"""So many stretches are looked at at once."""
_OFTEN = 8
"""Before each so many blocks what was read is let go."""


class Claimed:
    """Stretches of one GPU's ledger that do not overlap, each of one line."""

    def __init__(self, start: Array, end: Array, rows: Rows, line: Codes, lines: Sequence[str]) -> None:
        """`rows` are those of the stretches that are claimed, in order of time, and `line` is which of `lines` each of these is of."""
        self._start, self._end, self._rows, self._line = start, end, rows, line
        self.lines = tuple(lines)
        self._known: dict[tuple[str, ...], Spans] = {}

    @classmethod
    def of(cls, claimed: Mapping[str, Spans]) -> Claimed:
        """From what is claimed of each line."""
        start, end = (np.concatenate([EMPTY[0], *(spans[at] for spans in claimed.values())]) for at in (0, 1))
        line = np.repeat(np.arange(len(claimed), dtype=np.int8), [len(spans[0]) for spans in claimed.values()])
        rows = np.argsort(start, kind="stable").astype(np.int32)
        return cls(start, end, rows, line[rows], [*claimed])

    def on(self, lines: Container[str]) -> Spans:
        """What is claimed of some lines."""
        wanted = tuple(line for line in self.lines if line in lines)
        if not wanted:
            return EMPTY
        if wanted not in self._known:
            self._known[wanted] = _touching((start, end) for start, end, _ in self._blocks(wanted))
        return self._known[wanted]

    @property
    def whole(self) -> Spans:
        """What is claimed of all lines."""
        return self.on(self.lines)

    @cached_property
    def ns(self) -> int:
        """How much that is."""
        return total(self.whole)

    def within(self, spans: Spans, lines: Container[str]) -> Claimed:
        """What of some lines is claimed in some spans."""
        found: list[tuple[Array, Array, Codes]] = [(*EMPTY, self._line[:0])]
        for start, end, line in self._blocks(lines):
            _, at, low, high = overlaps(*near(spans, int(start[0]), int(end[-1])), (start, end))
            found.append((low, high, line.take(at)))
        low, high, line = (np.concatenate(column) for column in zip(*found, strict=True))
        return Claimed(low, high, np.arange(len(low), dtype=np.int32), line, self.lines)

    def _blocks(self, lines: Container[str]) -> Iterator[tuple[Array, Array, Codes]]:
        """The start, end and line of the stretches of some lines, in order of time; no block is empty."""
        wanted = np.array([line in lines for line in self.lines], bool)
        for number, at in enumerate(range(0, len(self._rows), _BLOCK)):
            if number % _OFTEN == 0:
                forget()
            rows, line = self._rows[at : at + _BLOCK], self._line[at : at + _BLOCK]
            if not wanted.all():
                some = np.flatnonzero(wanted.take(line))
                rows, line = rows.take(some), line.take(some)
            rows = rows.astype(np.intp)
            if len(rows):
                yield self._start.take(rows), self._end.take(rows), line


def _touching(blocks: Iterable[Spans]) -> Spans:
    """As `union`, of stretches in order of time that do not overlap."""
    starts, ends, last = Growing(), Growing(), EMPTY
    for block in blocks:
        # The last of a block may go on in the next.
        low, high = (np.concatenate(sides) for sides in zip(last, block, strict=True))
        apart = np.flatnonzero(low[1:] > high[:-1])
        first = np.concatenate(([0], apart + 1))
        starts.add(low.take(first[:-1]))
        ends.add(high.take(apart))
        last = low.take(first[-1:]), high[-1:]
    starts.add(last[0])
    ends.add(last[1])
    return starts.array(), ends.array()
