"""The stretches in which each GPU stands idle, and what is known of the operation that ends each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.in_blocks import InBlocks, taken
from traceanalyzer.derive.ledger.faults import faulting_threads
from traceanalyzer.derive.ledger.shared import Portion
from traceanalyzer.intervals import Array, Spans
from traceanalyzer.records import dataclass

BLOCK = 1 << 16
"""So many operations at a time are looked at."""


@dataclass(frozen=True)
class Idle:
    """Gaps, sorted by (rank, device, start); `number` counts them on each GPU.

    `op` is the row in `ledger_ops` that ends a gap, `before` the one that ended last before it, `NULL` at the front of a window, and
    `call` the row in `launches` that launched `op`, -1 where none is known. `thread`, `call_start` and `call_end` are of that call.
    `same_stream` and `same_call` say that the gap began when what came before on the same stream, or from the same call, ended. No
    operation ends the gap at the `tail` of a window: it is judged through the thread that launched the last one, as if that
    launched another at the window's end. Nobody launches a migration of managed memory: `faulted` gaps end when a thread met a page
    that was elsewhere, as if it had launched the migration then.
    """

    rank: Array
    device: Array
    number: Array
    start: Array
    end: Array
    op: Array
    before: Array
    process: Array
    call: Array
    thread: Array
    call_start: Array
    call_end: Array
    same_stream: frames.Flags
    same_call: frames.Flags
    tail: frames.Flags
    faulted: frames.Flags


class IdleTimes:
    """The gaps of all GPUs, from which `Idle` is made for a block of them at a time."""

    def __init__(
        self,
        ops: pa.Table,
        launches: pa.Table,
        api_calls: pa.Table,
        page_faults: pa.Table,
        windows: pa.Table,
        portions: Mapping[frames.Key, Portion],
    ) -> None:
        self._gaps = _Gaps.of(ops, windows, portions)
        self._op = {c: frames.ints(ops, c) for c in ("rank", "device", "process", "row")}
        self._call = {c: frames.ints(launches, c) for c in ("op", "thread", "start_ns", "end_ns")}
        self._toucher = faulting_threads(ops, self._gaps.op, self._gaps.end, api_calls, page_faults)

    def __len__(self) -> int:
        return len(self._gaps.start)

    def block(self, rows: slice) -> Idle:
        """Some gaps in a row."""
        gaps = self._gaps.take(rows)
        op = gaps.op.astype(np.int64)
        rank, device, process = (taken(self._op[c], op) for c in ("rank", "device", "process"))
        call = _among(self._op["row"].take(op), self._call["op"])
        known = call >= 0
        thread, call_start, call_end = (
            taken(column, call) if known.all() else np.where(known, column[call] if len(column) else NULL, NULL)
            for column in (self._call[c] for c in ("thread", "start_ns", "end_ns"))
        )
        faulted = np.zeros(len(op), bool)
        if self._toucher is not None:
            toucher = self._toucher[rows]
            faulted = ~known & (toucher != NULL)
            thread = np.where(faulted, toucher, thread)
        at_end = gaps.tail | faulted
        return Idle(
            rank,
            device,
            gaps.number.astype(np.int64),
            gaps.start,
            gaps.end,
            op,
            np.where(gaps.before < 0, NULL, gaps.before.astype(np.int64)),
            process,
            call,
            thread,
            np.where(at_end, gaps.end, call_start),
            np.where(at_end, gaps.end, call_end),
            gaps.same_stream,
            gaps.same_call,
            gaps.tail,
            faulted,
        )


def _among(values: Array, numbers: Array) -> Array:
    """The positions of some values among numbers that ascend as they do, -1 for those that are not there."""
    if not len(values) or not len(numbers):
        return np.full(len(values), -1, np.int64)
    # All of them lie in a part of the numbers, which is quickly searched.
    first, last = np.searchsorted(numbers, values[[0, -1]])
    near = numbers[first : last + 1]
    if np.array_equal(near, values):  # as most are
        return np.arange(first, last + 1)
    at = np.searchsorted(near, values)
    found = np.append(near, NULL)[at] == values
    return np.where(found, at + first, -1)


@dataclass(frozen=True)
class _Gaps:
    """What is held of every gap: as `Idle`, rows as 32-bit numbers, -1 for none."""

    start: Array
    end: Array
    number: npt.NDArray[np.int32]
    op: npt.NDArray[np.int32]
    before: npt.NDArray[np.int32]
    tail: frames.Flags
    same_stream: frames.Flags
    same_call: frames.Flags

    @classmethod
    def of(cls, ops: pa.Table, windows: pa.Table, portions: Mapping[frames.Key, Portion]) -> _Gaps:
        operations, made = _Operations(ops), InBlocks()
        keys = zip(*(windows[c].to_pylist() for c in ("rank", "device", "start_ns", "end_ns")), strict=True)
        window = {(rank, device): (first, until) for rank, device, first, until in keys}
        for key, rows in frames.groups(ops):
            count = 0
            for found in operations.gaps(rows, *window[key]):
                own = found.of_portion(portions[key]) if key in portions else found
                some = own.end > own.start
                own = own.take(some)
                if len(own.start):
                    number = np.arange(count, count + len(own.start), dtype=np.int32)
                    count += len(number)
                    made.add({field.name: getattr(own, field.name) for field in fields(own)} | {"number": number})
        if "number" not in made:
            time, row, flag = (np.empty(0, kind) for kind in (np.int64, np.int32, bool))
            return cls(time, time, row, row, row, flag, flag, flag)
        return cls(*(made.take(field.name) for field in fields(cls)))

    def of_portion(self, portion: Portion) -> _Gaps:
        """What the file has of them."""
        start, end = _of_portion(self.start, self.end, portion.idle)
        raised = start > self.start
        # The hardware hands over from one process to another as well.
        same_stream = (self.same_stream | raised) & ~self.tail
        return replace(self, start=start, end=end, same_stream=same_stream, same_call=self.same_call & ~raised)

    def take(self, rows: slice | frames.Flags) -> _Gaps:
        return _Gaps(*(getattr(self, field.name)[rows] for field in fields(self)))


class _Operations:
    """What gaps lie between, on the GPUs of `ops`."""

    def __init__(self, ops: pa.Table) -> None:
        columns = ("start_ns", "end_ns", "process", "context", "stream", "correlation")
        self._start, self._end, self._process, self._context, self._stream, self._call = (
            frames.ints(ops, c) for c in columns
        )

    def gaps(self, rows: slice, first: int, until: int) -> Iterator[_Gaps]:
        """The stretches of a window, [first, until), in which none of the operations of one GPU runs: a block of them after the other,
        which are not numbered yet."""
        # When all of the blocks before were done, and those of their operations that ended then.
        reached, last = first, np.empty(0, np.int64)
        for begin in range(rows.start, rows.stop, BLOCK):
            stop = min(begin + BLOCK, rows.stop)
            over = self._end[begin:stop]
            reach = np.maximum.accumulate(over)
            if begin > rows.start:
                np.maximum(reach, reached, out=reach)
            # What is done before each operation, and before the end of the window.
            following, done = self._start[begin:stop], np.append(reached, reach)
            following, done = (following, done[:-1]) if stop < rows.stop else (np.append(following, until), done)
            at = np.flatnonzero(following > done)
            low, tail = done.take(at), at == len(over)
            op = at - tail + begin
            # Of all operations those that end no earlier than any before them; the last of them before each gap.
            own = np.flatnonzero(over >= reach)
            latest = np.append(last, own + begin)
            behind = len(last) - 1 + (at if len(own) == len(over) else np.searchsorted(own, at))
            before = np.append(latest, -1).take(behind)
            # Of operations that end at once each may be of the same stream or call.
            ended, gap = _ending_at(self._end.take(latest), low, behind)
            ended, ends = latest.take(ended), op.take(gap)
            alike = taken(self._process, ended) == taken(self._process, ends)
            call, stream = taken(self._call, ended), taken(self._stream, ended)
            same_call = alike & (call == taken(self._call, ends)) & (call != NULL)
            alike &= (stream == taken(self._stream, ends)) & (stream != NULL)
            alike &= taken(self._context, ended) == taken(self._context, ends)
            by_stream, by_call = (_marked(gap[same], len(at)) & ~tail for same in (alike, same_call))
            place, op, before = (one.astype(np.int32) for one in (at, op, before))
            yield _Gaps(low, following.take(at), place, op, before, tail, by_stream, by_call)
            reached = int(reach[-1])
            last = latest[self._end.take(latest) == reached]


def _marked(places: Array, count: int) -> frames.Flags:
    """Which of so many places are among these."""
    found = np.zeros(count, bool)
    found[places] = True
    return found


def _ending_at(ends: Array, start: Array, last: Array) -> tuple[Array, Array]:
    """All pairs of an end and a gap that starts there, as positions. The ends ascend, up to the `last` one that counts for each gap."""
    if (ends[1:] > ends[:-1]).all():
        gap = np.flatnonzero(last >= 0)
        return last[gap], gap
    first = np.searchsorted(ends, start, side="left")
    count = np.maximum(last + 1 - first, 0)
    gap = np.repeat(np.arange(len(start)), count)
    return np.arange(len(gap)) + np.repeat(first - np.cumsum(count) + count, count), gap


def _of_portion(start: Array, end: Array, idle: Spans) -> tuple[Array, Array]:
    """What the file has of its own gaps: of each, the stretch at its end in which nobody ran anything; nothing where others did."""
    at = np.searchsorted(idle[0], end, side="left") - 1
    low, high = (np.append(column, 0)[at] for column in idle)
    low, high = np.maximum(start, low), np.minimum(end, high)
    return np.where(at >= 0, low, start), np.where(at >= 0, high, start)
