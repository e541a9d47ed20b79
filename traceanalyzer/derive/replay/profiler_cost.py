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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.intervals import EMPTY, Array, Spans, join
from traceanalyzer.model.trace import Input

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
        lanes = [lane for lane in map(self._lane, threads) if len(lane.time)]
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
        time, kind = [], []
        for (start, end), own, rows in zip(self._times, self._kinds, self._rows, strict=True):
            here = rows.get(thread, slice(0, 0))
            time += [start[here], end[here]]
            kind += [own[here] + np.uint8(_KINDS), own[here]]
        every = np.concatenate(time)
        order = np.argsort(every, kind="stable")
        return _Lane(every[order], np.concatenate(kind)[order])


@dataclass(frozen=True)
class Recorded:
    """What is recorded on some threads, each a lane."""

    lanes: Sequence[_Lane]

    def taken(self, extent: float = 1.0) -> Spans:
        """The time that recording took, or so many times as much."""
        prices = _prices(self.lanes) * extent
        taken = [lane.taken(prices, SLOWER * extent) for lane in self.lanes]
        return taken[0] if len(taken) == 1 else join(EMPTY, *taken)


@dataclass(frozen=True)
class _Lane:
    """What is recorded on one thread, by time: each ends something of a `kind`, or begins something of the kind `_KINDS` less."""

    time: Array
    kind: _Kinds

    def apart(self, opens: bool) -> Array:
        """The times between two neighbours that both begin, or both end, an operator."""
        fits = self.kind == (_KINDS if opens else 0) + _OPERATOR
        at = np.flatnonzero(fits[:-1] & fits[1:])
        times: Array = self.time[at + 1] - self.time[at]
        return times

    def taken(self, prices: Prices, slower: float) -> Spans:
        """The time that recording took; `prices` by kind, of an end and of a begin."""
        kind, opens = np.arange(2 * _KINDS) % _KINDS, np.arange(2 * _KINDS) >= _KINDS
        price = prices[kind, opens.astype(np.int64)]
        # Outside of ranges, inside of calls.
        after, before = price * (opens == (kind >= _CALL)), price * (opens != (kind >= _CALL))
        # What a neighbour costs another, of all pairs of them.
        cost_of = (after[:, None] + before).reshape(-1)
        taken = np.empty(max(len(self.time) - 1, 0), np.int64)
        for at in range(0, len(taken), _BLOCK):
            stop = min(at + _BLOCK, len(taken))
            length = np.diff(self.time[at : stop + 1]).astype(np.float64)
            cost = cost_of[self.kind[at:stop] * np.uint8(2 * _KINDS) + self.kind[at + 1 : stop + 1]]
            cost = np.minimum(cost, length)
            cost += slower * np.minimum(length - cost, REACH_NS)
            taken[at:stop] = np.minimum(cost, ROOM * length)
        # Less than the time to the next, so that no two touch.
        some = taken > 0
        start = self.time[:-1][some]
        return start, start + taken[some]


def _prices(lanes: Sequence[_Lane]) -> Prices:
    """ns by kind, of an end and of a begin."""
    begin, end = (
        _usual([lane.apart(opens) for lane in lanes], usual)
        for opens, usual in zip((True, False), OPERATOR_NS, strict=True)
    )
    halves = [(ns // 2, ns // 2) for ns in (FRAME_NS, RANGE_NS, CALL_NS, LAUNCH_NS)]
    return np.array([(end, begin), *halves], np.float64)


def _usual(parts: list[Array], otherwise: int) -> int:
    times = np.concatenate(parts)
    return int(np.quantile(times, QUARTILE)) if len(times) >= FEW else otherwise
