"""The stretches in which each GPU stands idle, and what is known of the operation that ends each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.in_blocks import taken
from traceanalyzer.derive.ledger.faults import faulting_threads
from traceanalyzer.derive.ledger.shared import Portion
from traceanalyzer.intervals import Array, Spans


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
        rank, device, process = (self._op[c][op] for c in ("rank", "device", "process"))
        call = _among(self._op["row"][op], self._call["op"])
        known = call >= 0
        thread, call_start, call_end = (
            np.where(known, column[call] if len(column) else NULL, NULL)
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
    at = np.searchsorted(near, values)
    found = np.append(near, NULL)[at] == values
    return np.where(found, at + first, -1)


@dataclass(frozen=True)
class _Gaps:
    """What is held of every gap: as `Idle`, rows as 32-bit numbers, -1 for none."""

    start: Array
    end: Array
    number: Array
    op: Array
    before: Array
    tail: frames.Flags
    same_stream: frames.Flags
    same_call: frames.Flags

    @classmethod
    def of(cls, ops: pa.Table, windows: pa.Table, portions: Mapping[frames.Key, Portion]) -> _Gaps:
        start, end, process, context, stream, call = (
            frames.ints(ops, c) for c in ("start_ns", "end_ns", "process", "context", "stream", "correlation")
        )
        keys = zip(*(windows[c].to_pylist() for c in ("rank", "device", "start_ns", "end_ns")), strict=True)
        window = {(rank, device): (first, until) for rank, device, first, until in keys}
        found: list[_Gaps] = []
        for key, rows in frames.groups(ops):
            over = end[rows]
            first, until = window[key]
            reach = np.maximum.accumulate(over)
            # What is done before each operation, and before the end of the window.
            done, following = np.append(first, reach), np.append(start[rows], until)
            at = np.flatnonzero(following > done)
            tail = at == len(reach)
            low, high = done[at], following[at]
            del done, following
            # Of all operations those that end no earlier than any before them; the last of them before each gap.
            latest = np.flatnonzero(over >= reach)
            behind = at - 1 if len(latest) == len(over) else np.searchsorted(latest, at) - 1
            before = np.where(behind >= 0, latest[behind] + rows.start, -1)
            op = at - tail + rows.start
            # Of operations that end at once each may be of the same stream or call.
            ended, gap = _ending_at(over[latest], low, behind)
            ended = latest[ended] + rows.start
            alike = taken(process, ended) == taken(process, op[gap])
            same_call = alike & (taken(call, ended) == taken(call, op[gap])) & (taken(call, ended) != NULL)
            alike &= (taken(stream, ended) == taken(stream, op[gap])) & (taken(stream, ended) != NULL)
            alike &= taken(context, ended) == taken(context, op[gap])
            raised = np.zeros(len(at), bool)
            if key in portions:
                begun = low
                low, high = _of_portion(low, high, portions[key].idle)
                raised = low > begun
            of_gap = [np.zeros(len(at), bool) for _ in range(2)]
            for flags, same in zip(of_gap, (alike, same_call), strict=True):
                flags[gap[same]] = True
            # The hardware hands over from one process to another as well.
            of_gap = [(of_gap[0] & ~raised | raised) & ~tail, of_gap[1] & ~raised & ~tail]
            some = high > low
            number = np.cumsum(some) - 1
            columns = (low, high, *(one.astype(np.int32) for one in (number, op, before)), tail, *of_gap)
            found.append(cls(*(column[some] for column in columns)))
        if not found:
            none, nowhere = np.empty(0, np.int64), np.empty(0, bool)
            return cls(none, none, none, none, none, nowhere, nowhere, nowhere)
        return cls(*(np.concatenate([getattr(one, field.name) for one in found]) for field in fields(cls)))

    def take(self, rows: slice) -> _Gaps:
        return _Gaps(*(getattr(self, field.name)[rows] for field in fields(self)))


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
