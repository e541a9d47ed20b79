"""Where the host was in a GPU's idle time: the place that causes most of what a finding claimed, and what lies beside the claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.spill import forget, put_away
from traceanalyzer.intervals import EMPTY, Array, Spans, coverage, intersect, join, total, union
from traceanalyzer.model.replayed import MOSTLY, Beside, Place
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
_Codes = npt.NDArray[np.int32]


class IdlePlaces:
    """The idle time of all GPUs by where the host was: in a line of the program's own code, else in a range that it named."""

    def __init__(self, gaps: pa.Table) -> None:
        self._gaps = frames.by_device(gaps.select(["rank", "device", *_Pieces.COLUMNS]))
        self._known: dict[frames.Key, _Pieces] = {}

    def _pieces(self, key: frames.Key) -> _Pieces:
        if key not in self._known:
            self._known[key] = put_away(_Pieces.of(self._gaps[key]))
        return self._known[key]

    def of(self, key: frames.Key, claimed: Mapping[str, Spans]) -> Place | None:
        """The place with at least half of what was claimed on one GPU; None where there is none."""
        idle = {line: spans for line, spans in claimed.items() if is_idle(line)}
        if not idle:
            return None
        pieces = self._pieces(key)
        forget()  # What was read to play a timeline is not needed beside this.
        inside, own = np.zeros(len(pieces.start), np.int64), np.flatnonzero(pieces.own)
        inside[own] = coverage(pieces.start[own], pieces.end[own], join(EMPTY, *idle.values()))
        found = pieces.place_of(inside, pieces.own)
        if found is None or found.ns < MOSTLY * sum(map(total, claimed.values())):
            return None
        # Where in a piece the place was makes no difference to the launch that ends it; how long does.
        start, length = (column[found.pieces] for column in (pieces.start, pieces.length))
        spans = union(start, start + length)
        return Place(found.name, found.ns, {line: intersect(part, spans) for line, part in idle.items()})

    def beside(self, key: frames.Key, claimed: Mapping[str, Spans], start: int, end: int, ns: int) -> Beside:
        """In which of one GPU's idle time within [start, end) `ns` beyond the claim must lie."""
        pieces = self._pieces(key)
        low, high = np.clip(pieces.start, start, end), np.clip(pieces.end, start, end)
        left = high - low - coverage(low, high, join(EMPTY, *claimed.values()))
        sums = {cause: int(left[pieces.cause == at].sum()) for at, cause in enumerate(pieces.causes)}
        may = {cause: lost for cause, lost in sums.items() if cause not in NOT_THE_HOSTS and lost}
        # The place certainly holds what does not fit into all others.
        found = pieces.place_of(left, np.ones(len(left), bool))
        if found is not None and ns - (sum(may.values()) - found.ns) >= MOSTLY * ns:
            return Beside(found.name, ())
        largest = sorted(may, key=lambda cause: (-may[cause], cause))
        reach = np.cumsum([may[cause] for cause in largest])
        return Beside(
            None, tuple(largest[: int(np.searchsorted(reach, ALL_BUT * min(ns, reach[-1]))) + 1]) if largest else ()
        )


@dataclass(frozen=True)
class _Found:
    """A place, how much lies in it, and which of the pieces do."""

    name: str
    ns: int
    pieces: frames.Flags


@dataclass(frozen=True)
class _Pieces:
    """The pieces of one GPU's idle time. `nearest` is the code or range of the program around each, `place` what ran in it, and
    `length` how much of the piece that is; both index into their names, `NONE` without. `own`: what ran there is the doing of a place
    that is no phase of the program."""

    COLUMNS = (
        *("start_ns", "end_ns", "place_duration", "gap_duration"),
        *("cause", "operator", "source", "annotation", "place"),
    )

    start: Array
    end: Array
    length: Array
    own: frames.Flags
    cause: _Codes
    causes: list[str]
    nearest: _Codes
    nearest_names: list[str]
    place: _Codes
    place_names: list[str]

    @classmethod
    def of(cls, gaps: pa.Table) -> _Pieces:
        start, end, length = (frames.ints(gaps, c) for c in ("start_ns", "end_ns", "place_duration"))
        operator = gaps["operator"].is_valid().to_numpy()
        # An operator alone is no place in a program: it may be called from anywhere.
        number: dict[str, int] = {}
        nearest = np.full(len(start), NONE, np.int32)
        for column, rows in (("source", True), ("annotation", True), ("place", ~operator)):
            code, texts = frames.codes(gaps, column)
            known = [NONE if text is None else number.setdefault(text, len(number)) for text in texts]
            nearest = np.where((nearest == NONE) & rows, np.array(known, np.int32)[code], nearest)
        place, place_names = frames.codes(gaps, "place")
        cause, causes = frames.codes(gaps, "cause")
        # Operators that only get their kernels launched are the program's work, wherever they are called; so is what lies between two.
        between = frames.ints(gaps, "gap_duration") <= BETWEEN_LAUNCHES_NS
        launching = (operator | between) & frames.equals(gaps, "cause", HOST_WORK.cause)
        own = ~launching & ~frames.equals(gaps, "cause", *NOBODYS)
        launching |= frames.equals(gaps, "cause", LAUNCH_LATENCY.cause)
        some = nearest != NONE
        ns = np.where(launching, end - start, 0)
        launched, whole = (_sums(nearest[some], part[some], len(number)) for part in (ns, end - start))
        own[some] &= (launched < A_PHASE * whole)[nearest[some]]
        names = [text or "" for text in place_names]
        why: _Codes = cause.astype(np.int32)
        what: _Codes = place.astype(np.int32)
        return cls(start, end, length, own, why, [text or "" for text in causes], nearest, list(number), what, names)

    def place_of(self, ns: Array, which: frames.Flags) -> _Found | None:
        """The place with most of the `ns` of each piece, as far as it certainly lies there."""
        here = which & (ns > 0) & (self.nearest != NONE) & (self.length >= MOSTLY * (self.end - self.start))
        amount = np.minimum(ns, self.length)
        sums = _sums(self.nearest[here], amount[here], len(self.nearest_names))
        if not sums.any():
            return None
        most = int(np.argmax(sums))
        here &= self.nearest == most
        inner = _sums(self.place[here], amount[here], len(self.place_names))
        one = int(np.argmax(inner))
        name = self.place_names[one] if inner[one] >= ALL_BUT * sums[most] else ""
        return _Found(name or self.nearest_names[most], int(sums[most]), here)


def _sums(code: _Codes, amount: Array, count: int) -> Array:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, code, amount)
    return sums
