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
from traceanalyzer.intervals import EMPTY, Array, Spans, join, union
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

Prices = npt.NDArray[np.float64]
_OPERATOR, _FRAME, _RANGE, _CALL, _LAUNCH = range(5)


class ProfilerCost:
    """What recording cost on the threads of all ranks; `inputs` say which profilers they are of."""

    def __init__(self, host_ranges: pa.Table, api_calls: pa.Table, inputs: Sequence[Input]) -> None:
        self._known = {one.ordinal for one in inputs if one.producer.startswith(PROFILERS)}
        kind = np.full(host_ranges.num_rows, _OPERATOR)
        kind[frames.equals(host_ranges, "category", "python")] = _FRAME
        kind[frames.equals(host_ranges, "category", "nvtx")] = _RANGE
        launches = frames.equals(api_calls, "class", "launch", "copy")
        self._kinds = kind, np.where(launches, _LAUNCH, _CALL)
        self._rows = dict(frames.threads(host_ranges)), dict(frames.threads(api_calls))
        self._times = [
            tuple(frames.ints(table, c) for c in ("start_ns", "end_ns")) for table in (host_ranges, api_calls)
        ]

    def of(self, threads: Sequence[frames.ThreadKey], extent: float = 1.0) -> Spans | None:
        """The time that recording took of these threads of one rank; None where that is not known.

        `extent` is how many times as much it may have been.
        """
        lanes = [lane for lane in map(self._lane, threads) if len(lane.time)]
        if not lanes or not {rank for rank, _, _ in threads} <= self._known:
            return None
        prices = _prices(lanes) * extent
        return join(EMPTY, *(lane.taken(prices, SLOWER * extent) for lane in lanes))

    def frame_count(self, threads: Iterable[frames.ThreadKey], low: int, high: int) -> int:
        """How many Python frames of these threads begin within [low, high)."""
        start, count = self._times[0][0], 0
        for thread in threads:
            here = self._rows[0].get(thread, slice(0, 0)) if thread[0] in self._known else slice(0, 0)
            inside = (start[here] >= low) & (start[here] < high)
            count += int((inside & (self._kinds[0][here] == _FRAME)).sum())
        return count

    def _lane(self, thread: frames.ThreadKey) -> _Lane:
        time, kind, opens = [], [], []
        for (start, end), own, rows in zip(self._times, self._kinds, self._rows, strict=True):
            here = rows.get(thread, slice(0, 0))
            count = len(own[here])
            time += [start[here], end[here]]
            kind += [own[here], own[here]]
            opens += [np.ones(count, bool), np.zeros(count, bool)]
        order = np.argsort(np.concatenate(time), kind="stable")
        return _Lane(*(np.concatenate(column)[order] for column in (time, kind, opens)))


@dataclass(frozen=True)
class _Lane:
    """What is recorded on one thread, by time: each begins (`opens`) or ends something of a kind."""

    time: Array
    kind: Array
    opens: frames.Flags

    def apart(self, opens: bool) -> Array:
        """The times between two neighbours that both begin, or both end, an operator."""
        fits = (self.kind == _OPERATOR) & (self.opens == opens)
        times: Array = np.diff(self.time)[fits[:-1] & fits[1:]]
        return times

    def taken(self, prices: Prices, slower: float) -> Spans:
        """The time that recording took; `prices` by kind, of an end and of a begin."""
        price, call = prices[self.kind, self.opens.astype(np.int64)], self.kind >= _CALL
        # Outside of ranges, inside of calls.
        after, before = price[:-1] * (self.opens == call)[:-1], price[1:] * (self.opens != call)[1:]
        length = np.diff(self.time)
        cost = np.minimum(after + before, length)
        cost = cost + slower * np.minimum(length - cost, REACH_NS)
        taken = np.minimum(cost, ROOM * length).astype(np.int64)
        return union(self.time[:-1], self.time[:-1] + taken)


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
