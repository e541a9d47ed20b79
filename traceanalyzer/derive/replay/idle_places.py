"""Where the host was in a GPU's idle time: the place that causes most of what a finding claimed, and what lies beside the claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.spill import forget
from traceanalyzer.intervals import Array, Spans, coverage, near, union
from traceanalyzer.model.claimed import Claimed
from traceanalyzer.model.replayed import MOSTLY, Beside, Place
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.lines import (
    DEPENDENCY,
    HOST_WORK,
    LAUNCH_LATENCY,
    PROFILER,
    QUEUED,
    TURNAROUND,
    UNATTRIBUTED,
    is_idle,
)

ALL_BUT = 0.9
"""With this share of it in one thing that ran there, that is named rather than the code around it."""
A_PHASE = 0.2
"""A place in whose idle time launching takes this share is a phase of the program, such as its forward pass, and cannot be left out."""
BETWEEN_LAUNCHES_NS = 100_000
"""A longer gap is something that the host did, not the pace of its launches (LCH001)."""
NOBODYS = (TURNAROUND.cause, LAUNCH_LATENCY.cause, DEPENDENCY.cause, QUEUED.cause, PROFILER.cause)
"""Causes of idle time that are no doing of the place in the program where the host was."""
NOT_THE_HOSTS = (TURNAROUND.cause, DEPENDENCY.cause, QUEUED.cause, UNATTRIBUTED.cause, PROFILER.cause)
"""Causes of idle time that no change of the host's pace takes away."""

NONE = -1
_BLOCK = 1 << 15
"""So many pieces are looked at at once."""
_OFTEN = 8
"""After each so many blocks what was read is let go."""
_Codes = npt.NDArray[np.int32]


class IdlePlaces:
    """The idle time of all GPUs by where the host was: in a line of the program's own code, else in a range that it named."""

    def __init__(self, gaps: pa.Table) -> None:
        self._gaps = frames.by_device(gaps.select(["rank", "device", *_Gaps.COLUMNS]))
        self._known: dict[frames.Key, _Gaps] = {}

    def _of(self, key: frames.Key) -> _Gaps:
        if key not in self._known:
            self._known[key] = _Gaps(self._gaps[key])
        return self._known[key]

    def of(self, key: frames.Key, claimed: Claimed) -> Place | None:
        """The place with at least half of what was claimed on one GPU; None where there is none."""
        idle = [line for line in claimed.lines if is_idle(line)]
        if not idle:
            return None
        forget()  # What was read to play a timeline is not needed beside this.
        gaps, spans, least = self._of(key), claimed.on(idle), MOSTLY * claimed.ns

        def inside(pieces: _Pieces) -> Array:
            return _covered(pieces.start, pieces.end, spans)

        most, ns = gaps.largest(gaps.own(least), inside)
        if most == NONE or ns < least:
            return None
        name, start, length = gaps.within(gaps.own(least), inside, most, ns)
        # Where in a piece the place was makes no difference to the launch that ends it; how long does.
        return Place(name, ns, claimed.within(union(start, start + length), idle))

    def beside(self, key: frames.Key, claimed: Claimed, start: int, end: int, ns: int) -> Beside:
        """In which of one GPU's idle time within [start, end) `ns` beyond the claim must lie."""
        gaps, whole = self._of(key), claimed.whole

        def left(pieces: _Pieces) -> Array:
            low, high = np.clip(pieces.start, start, end), np.clip(pieces.end, start, end)
            return high - low - _covered(low, high, whole)

        lost = np.zeros(len(gaps.causes), np.int64)
        for pieces in gaps.pieces():
            np.add.at(lost, pieces.cause, left(pieces))
        sums = zip(gaps.causes, lost.tolist(), strict=True)
        may = {cause: lost for cause, lost in sums if cause not in NOT_THE_HOSTS and lost}
        # The place certainly holds what does not fit into all others.
        most, held = gaps.largest(gaps.pieces(), left)
        if most != NONE and ns - (sum(may.values()) - held) >= MOSTLY * ns:
            return Beside(gaps.within(gaps.pieces(), left, most, held)[0], ())
        largest = sorted(may, key=lambda cause: (-may[cause], cause))
        reach = np.cumsum([may[cause] for cause in largest])
        return Beside(
            None, tuple(largest[: int(np.searchsorted(reach, ALL_BUT * min(ns, reach[-1]))) + 1]) if largest else ()
        )


@dataclass(frozen=True)
class _Pieces:
    """Some pieces of one GPU's idle time, in order. `nearest` is the code or range of the program around each, `place` what ran in it,
    and `length` how much of the piece that is; both index into their names, `NONE` or the last without."""

    start: Array
    end: Array
    length: Array
    cause: _Codes
    nearest: _Codes
    place: _Codes

    def certain(self) -> frames.Flags:
        """Which of them mostly lie in a place that is known."""
        flags: frames.Flags = (self.nearest != NONE) & (self.length >= MOSTLY * (self.end - self.start))
        return flags

    def take(self, rows: Array) -> _Pieces:
        """Some of them."""
        return _Pieces(*(getattr(self, field.name).take(rows) for field in fields(self)))


Ns = Callable[[_Pieces], Array]
"""How much of each piece is asked for."""


class _Gaps:
    """The idle time of one GPU, read in blocks."""

    COLUMNS = (
        *("start_ns", "end_ns", "place_duration", "gap_duration"),
        *("cause", "operator", "source", "annotation", "place"),
    )

    def __init__(self, table: pa.Table) -> None:
        self._operator = table["operator"]
        self._start, self._end, self._length, self._gap = (frames.ints(table, c) for c in self.COLUMNS[:4])
        self._cause, source, annotation, self._place = (
            _Texts(table[c]) for c in ("cause", "source", "annotation", "place")
        )
        # What is around a piece: the line of the program, else the range, else what ran there.
        number: dict[str, int] = {}
        self._around = [
            (column, column.numbered(number)) for column in (source, annotation, self._place) if not column.is_empty
        ]
        self._names = list(number)
        self.causes = [text or "" for text in self._cause.texts]

    def pieces(self) -> Iterator[_Pieces]:
        """All of it."""
        return map(self._pieces, _blocks(len(self._start)))

    def own(self, least: float) -> Iterator[_Pieces]:
        """The pieces that are the doing of a place in which at least so much may lie, as far as they certainly lie there."""
        flags, sums = self._own
        enough = (sums >= least) & (sums > 0)
        for rows in _blocks(len(flags)) if enough.any() else ():
            pieces = self._pieces(rows)
            some = np.flatnonzero(flags[rows] & enough.take(pieces.nearest))
            if len(some):
                yield pieces.take(some)

    @cached_property
    def _own(self) -> tuple[frames.Flags, Array]:
        """The pieces that are the doing of a place which is no phase of the program, and how long each place was in them."""
        launched, whole, sums = (np.zeros(len(self._names), np.int64) for _ in range(3))
        nobodys, launch, work = (
            self._cause.among(*causes) for causes in (NOBODYS, [LAUNCH_LATENCY.cause], [HOST_WORK.cause])
        )
        found = np.zeros(len(self._start), bool)
        for rows in _blocks(len(found)) if self._names else ():
            pieces = self._pieces(rows)
            # Operators that only get their kernels launched are the program's work, wherever they are called; so is what lies between
            # two.
            launching = self._is_operator(rows) | (self._gap[rows] <= BETWEEN_LAUNCHES_NS)
            launching &= work.take(pieces.cause)
            own = ~launching & ~nobodys.take(pieces.cause)
            launching |= launch.take(pieces.cause)
            known, ns = pieces.nearest != NONE, pieces.end - pieces.start
            for which, sum_ in ((known, whole), (known & launching, launched)):
                some = np.flatnonzero(which)
                np.add.at(sum_, pieces.nearest.take(some), ns.take(some))
            found[rows] = own & pieces.certain()
            some = np.flatnonzero(found[rows])
            np.add.at(sums, pieces.nearest.take(some), pieces.length.take(some))
        sums[launched >= A_PHASE * whole] = 0
        return found, sums

    def _pieces(self, rows: slice) -> _Pieces:
        place = self._place.codes(rows)
        nearest = np.full(len(place), NONE, np.int32)
        for column, number in self._around:
            found = number.take(place if column is self._place else column.codes(rows))
            if column is self._place:
                # An operator alone is no place in a program: it may be called from anywhere.
                found[self._is_operator(rows)] = NONE
            nearest = np.where(nearest == NONE, found, nearest)
        cause = self._cause.codes(rows)
        return _Pieces(self._start[rows], self._end[rows], self._length[rows], cause, nearest, place)

    def _is_operator(self, rows: slice) -> frames.Flags:
        valid: frames.Flags = self._operator[rows].is_valid().to_numpy()
        return valid

    def largest(self, pieces: Iterable[_Pieces], ns: Ns) -> tuple[int, int]:
        """The place with most of what is asked for, as far as it certainly lies there, and how much that is; `NONE` without."""
        sums = np.zeros(len(self._names), np.int64)
        for some, amount in _certain(pieces, ns):
            np.add.at(sums, some.nearest, amount)
        return (int(np.argmax(sums)), int(sums.max())) if sums.any() else (NONE, 0)

    def within(self, pieces: Iterable[_Pieces], ns: Ns, place: int, most: int) -> tuple[str, Array, Array]:
        """Of a place that holds so much its name, or that of the one thing that ran there; and where it was, as starts and lengths."""
        inner, found = np.zeros(len(self._place.texts), np.int64), []
        for some, amount in _certain(pieces, ns):
            here = np.flatnonzero(some.nearest == place)
            np.add.at(inner, some.place.take(here), amount.take(here))
            found.append((some.start.take(here), some.length.take(here)))
        one = int(np.argmax(inner))
        name = self._place.texts[one] if inner[one] >= ALL_BUT * most else None
        start, length = (np.concatenate(column) for column in zip(*found, strict=True))
        return name or self._names[place], start, length


class _Texts:
    """A column of names, read in blocks. `texts` are all of them, and one more for null."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column.unify_dictionaries()
        self.is_empty = column.null_count == len(column)
        self.texts: list[str | None] = [*([] if self.is_empty else self._column.chunk(0).dictionary.to_pylist()), None]

    def codes(self, rows: slice) -> _Codes:
        """The place of each row in `texts`."""
        if self.is_empty:
            return np.zeros(rows.stop - rows.start, np.int32)
        part = pa.chunked_array([chunk.indices for chunk in self._column[rows].chunks])
        codes: _Codes = (part.fill_null(len(self.texts) - 1) if part.null_count else part).to_numpy()
        return codes.astype(np.int32, copy=False)

    def numbered(self, number: dict[str, int]) -> _Codes:
        """The number of each text; those that have none get the next."""
        return np.array([NONE if one is None else number.setdefault(one, len(number)) for one in self.texts], np.int32)

    def among(self, *wanted: str) -> frames.Flags:
        """Which of the texts are wanted."""
        return np.array([one in wanted for one in self.texts], bool)


def _blocks(count: int) -> Iterator[slice]:
    for number, at in enumerate(range(0, count, _BLOCK)):
        yield slice(at, min(at + _BLOCK, count))
        if number % _OFTEN == 0:
            forget()


def _covered(start: Array, end: Array, spans: Spans) -> Array:
    """As `coverage`, of pieces that are close together."""
    return coverage(start, end, near(spans, int(start.min()), int(end.max())))


def _certain(pieces: Iterable[_Pieces], ns: Ns) -> Iterator[tuple[_Pieces, Array]]:
    """The pieces of which some certainly lies in a place, and how much."""
    for some in pieces:
        amount = np.minimum(ns(some), some.length)
        here = np.flatnonzero((amount > 0) & some.certain())
        yield some.take(here), amount.take(here)
