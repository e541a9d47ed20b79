"""What recording cost the host: the time of its threads that a run without the profiler would not have had.

A profiler works at every begin and end that it records. It takes the time of a range last at its begin and first at its end, so that
what it does lies outside of the range, in what is around it; the work on a traced API call lies inside the call. And code between two
records runs slower than it would by itself, because the profiler's own has pushed it out of the caches. Between two neighbouring begins
or ends on a thread, a stretch, this takes

    taken = cost of what is recorded at its two ends + SLOWER * what is left of it, of REACH at most

and never more than `ROOM` of the stretch. What an operator costs the trace tells itself: two operators that begin one right after the
other, the second in the first, have little but the profiler between them, and so have two that end. The rest are constants, the same
for all programs; docs/savings.md tells how they were found and how well they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.intervals import EMPTY, Array, Spans, union
from traceanalyzer.model.trace import Input
from traceanalyzer.records import dataclass

PROFILERS = ("PyTorch profiler", "Nsight Systems")
"""The producers whose costs are known."""
FRAME_NS = 480
"""A Python frame. Measured on an H200's host: 6,177 of them in 3.0 ms beyond the run without; 44,084 in 22 ms on another."""
RANGE_NS = 1_000
"""An NVTX range under Nsight Systems. Measured there, 1,000 of them."""
CALL_NS = 500
"""An API call that starts nothing. Measured there: 0.65 us for each of 1,000 cudaStreamQuery."""
LAUNCH_NS = 2_000
"""A call that starts GPU work, which the driver has to make traceable. Fitted."""
SLOWER = 0.35
"""The share of the time between two records that is there only because of them. Fitted."""
REACH_NS = 50_000
"""After so long a time code runs as it would by itself; a sleep, a file or a collection of garbage is as long as it is."""
ROOM = 0.95
OPERATOR_NS = (1_000, 350)
"""Begin and end of an operator, where a trace has fewer than `FEW` pairs of them to tell it: what most traces say."""
FEW = 50
QUARTILE = 0.25
"""Of the times between such pairs, most have some work of the program in them; the lower ones have next to none."""
LEAST_EXTENT, MOST_EXTENT = 0.4, 1.3
NOISE = 0.1
"""For nine of ten programs recording took between so many times as long as is said here, and what a run takes changes by so much from
one to the next."""

_Kinds = npt.NDArray[np.uint8]
Prices = npt.NDArray[np.float64]
_OPERATOR, _FRAME, _RANGE, _CALL, _LAUNCH = range(5)
_KINDS = 5
_BLOCK = 1 << 16
_OFTEN = 8
"""What is so rare that one of so many has it is dealt with by itself."""
Block = tuple[Array, list[Array]]
"""Times in ascending order, the first of which is the last of the block before; and for each extent how much is taken from each on, at
most until the next."""


class ProfilerCost:
    """What recording cost on the threads of all ranks; `inputs` say which profilers they are of."""

    def __init__(self, host_ranges: pa.Table, api_calls: pa.Table, inputs: Sequence[Input]) -> None:
        self._known = {one.ordinal for one in inputs if one.producer.startswith(PROFILERS)}
        kind = np.full(host_ranges.num_rows, _OPERATOR, np.uint8)
        kind[frames.equals(host_ranges, "category", "python")] = _FRAME
        kind[frames.equals(host_ranges, "category", "nvtx")] = _RANGE
        launches = frames.equals(api_calls, "class", "launch", "copy")
        self._kinds = kind, np.where(launches, np.uint8(_LAUNCH), np.uint8(_CALL))
        self._rows = dict(frames.threads(host_ranges)), dict(frames.threads(api_calls))
        self._times = [
            tuple(frames.ints(table, c) for c in ("start_ns", "end_ns")) for table in (host_ranges, api_calls)
        ]

    def of(self, threads: Sequence[frames.ThreadKey], extent: float = 1.0) -> Spans | None:
        """The time that recording took of these threads of one rank; None where that is not known.

        `extent` is how many times as much it may have been.
        """
        recorded = self.recorded(threads)
        return None if recorded is None else recorded.taken(extent)

    def recorded(self, threads: Sequence[frames.ThreadKey]) -> Recorded | None:
        """What is recorded of these threads of one rank; None where its cost is not known."""
        lanes = [lane for lane in map(self._lane, threads) if len(lane)]
        return Recorded(lanes) if lanes and {rank for rank, _, _ in threads} <= self._known else None

    def frame_count(self, threads: Iterable[frames.ThreadKey], low: int, high: int) -> int:
        """How many Python frames of these threads begin within [low, high)."""
        start, count = self._times[0][0], 0
        for thread in threads:
            here = self._rows[0].get(thread, slice(0, 0)) if thread[0] in self._known else slice(0, 0)
            inside = (start[here] >= low) & (start[here] < high)
            count += int((inside & (self._kinds[0][here] == _FRAME)).sum())
        return count

    def _lane(self, thread: frames.ThreadKey) -> _Lane:
        parts = []
        for (start, end), own, rows in zip(self._times, self._kinds, self._rows, strict=True):
            here = rows.get(thread, slice(0, 0))
            parts += [_Part.of(start[here], own[here], _KINDS), _Part.of(end[here], own[here])]
        return _Lane(parts)


@dataclass(frozen=True)
class Recorded:
    """What is recorded on some threads, each a lane."""

    lanes: Sequence[_Lane]

    def taken(self, extent: float = 1.0) -> Spans:
        """The time that recording took, or so many times as much."""
        found = [EMPTY, *((time[:-1], time[:-1] + taken) for time, (taken,) in self.blocks([extent]))]
        return union(*(np.concatenate([one[side] for one in found]) for side in (0, 1)))

    def blocks(self, extents: Sequence[float]) -> Iterator[Block]:
        """The same for each extent, one block of time after the other."""
        prices = _prices(self.lanes)
        lanes = [lane.taken(prices, extents) for lane in self.lanes]
        return lanes[0] if len(lanes) == 1 else _side_by_side(lanes)


@dataclass(frozen=True)
class _Part:
    """Times in ascending order, and of what `kind` that is which begins or ends then: that of an end, and `more`."""

    time: Array
    kind: _Kinds
    more: int

    @classmethod
    def of(cls, time: Array, kind: _Kinds, more: int = 0) -> _Part:
        if (time[1:] < time[:-1]).any():
            order = np.argsort(time, kind="stable")
            time, kind = time[order], kind[order]
        return cls(time, kind, more)


@dataclass(frozen=True)
class _Lane:
    """What is recorded on one thread: each ends something of a `kind`, or begins something of the kind `_KINDS` less."""

    parts: Sequence[_Part]

    def __len__(self) -> int:
        return sum(len(part.time) for part in self.parts)

    def blocks(self) -> Iterator[tuple[Array, _Kinds]]:
        """Time and kind of all of it by time, of what happens at once that of an earlier part first; each block begins with the last of
        the one before."""
        # Between two of these times there are at most so many of each part, but for what happens at once.
        cuts = np.unique(np.concatenate([part.time[:: _BLOCK // len(self.parts)] for part in self.parts]))
        bounds = [[0, *np.searchsorted(part.time, cuts[1:]).tolist(), len(part.time)] for part in self.parts]
        last = np.empty(0, np.int64), np.empty(0, np.uint8)
        for at in range(len(cuts)):
            rows = [(part, slice(bound[at], bound[at + 1])) for part, bound in zip(self.parts, bounds, strict=True)]
            time = np.concatenate([last[0], *(part.time[here] for part, here in rows)])
            kind = np.concatenate([last[1], *(part.kind[here] + np.uint8(part.more) for part, here in rows)])
            order = np.argsort(time, kind="stable")
            time, kind = time.take(order), kind.take(order)
            last = time[-1:], kind[-1:]
            yield time, kind

    def apart(self) -> tuple[Array, Array]:
        """The times between two neighbours that both begin an operator, and between two that both end one."""
        found = [EMPTY]
        if any((part.kind == _OPERATOR).any() for part in self.parts):
            for time, kind in self.blocks():
                same = np.flatnonzero(kind[:-1] == kind[1:])
                of, length = kind.take(same), time.take(same + 1) - time.take(same)
                found.append((length[of == _KINDS + _OPERATOR], length[of == _OPERATOR]))
        begun, ended = zip(*found, strict=True)
        return np.concatenate(begun), np.concatenate(ended)

    def taken(self, prices: Prices, extents: Sequence[float]) -> Iterator[Block]:
        """The time that recording took, for each extent; `prices` by kind, of an end and of a begin."""
        tables = [_between(prices * extent) for extent in extents]
        for time, kind in self.blocks():
            length = np.diff(time).astype(np.float64)
            most = ROOM * length
            pair = (kind[:-1] * np.uint8(2 * _KINDS) + kind[1:]).astype(np.intp)
            taken = []
            for cost_of, extent in zip(tables, extents, strict=True):
                cost = np.minimum(cost_of.take(pair), length)
                left = np.minimum(length - cost, REACH_NS)
                left *= SLOWER * extent
                cost += left
                taken.append(np.minimum(cost, most, out=cost).astype(np.int64))
            yield time, taken


def _between(prices: Prices) -> Prices:
    """What a record of one kind and the next, of another, cost in the time between them, of all pairs; as `prices`."""
    kind, opens = np.arange(2 * _KINDS) % _KINDS, np.arange(2 * _KINDS) >= _KINDS
    price = prices[kind, opens.astype(np.int64)]
    # Outside of ranges, inside of calls.
    after, before = price * (opens == (kind >= _CALL)), price * (opens != (kind >= _CALL))
    pairs: Prices = (after[:, None] + before).reshape(-1)
    return pairs


def _side_by_side(lanes: Sequence[Iterator[Block]]) -> Iterator[Block]:
    """What is taken of any of several threads."""
    left = [(lane, *next(lane)) for lane in lanes]
    while left:
        # Up to a time that all have come to; what is taken of the last before it may go on behind it.
        cut = min(int(time[-1]) for _, time, _ in left)
        starts, takens, further = list[Array](), list[list[Array]](), []
        for lane, time, taken in left:
            stop = int(np.searchsorted(time[:-1], cut))
            starts.append(time[:stop])
            takens.append([one[:stop] for one in taken])
            if time[-1] > cut:
                last = slice(max(stop - 1, 0), stop)
                rest = [np.append(np.maximum(time[last] + one[last] - cut, 0).sum(), one[stop:]) for one in taken]
                further.append((lane, np.append(cut, time[stop:]), rest))
            elif block := next(lane, None):
                further.append((lane, *block))
        left = further
        every = np.concatenate(starts)
        order = np.argsort(every, kind="stable")
        time = np.append(every.take(order), cut)
        yield time, [_until_next(time, np.concatenate(one).take(order)) for one in zip(*takens, strict=True)]


def _until_next(time: Array, taken: Array) -> Array:
    """Of what is taken from each of these times on, by several threads, how much is before the next time; what goes on behind that is
    taken from there on. The last time is only an end."""
    over = np.flatnonzero(taken > np.diff(time))
    if not len(over):
        return taken
    reach = time[:-1] + taken
    if _OFTEN * len(over) > len(taken):
        np.maximum.accumulate(reach, out=reach)
        over = over[:0]
    # Mostly little goes on behind the next time, and not far.
    while len(over):
        following = over[over + 1 < len(reach)] + 1
        following = following[reach[following - 1] > reach[following]]
        reach[following] = reach[following - 1]
        over = following[reach[following] > time[following + 1]]
    until: Array = np.minimum(reach, time[1:]) - time[:-1]
    return until


def _prices(lanes: Sequence[_Lane]) -> Prices:
    """ns by kind, of an end and of a begin."""
    apart = zip(*(lane.apart() for lane in lanes), strict=True)
    begin, end = (_usual(times, usual) for times, usual in zip(apart, OPERATOR_NS, strict=True))
    halves = [(ns // 2, ns // 2) for ns in (FRAME_NS, RANGE_NS, CALL_NS, LAUNCH_NS)]
    return np.array([(end, begin), *halves], np.float64)


def _usual(parts: Sequence[Array], otherwise: int) -> int:
    times = np.concatenate(parts)
    return int(np.quantile(times, QUARTILE)) if len(times) >= FEW else otherwise
