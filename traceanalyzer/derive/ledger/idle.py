"""The stretches in which each GPU stands idle, and what is known of the operation that ends each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.launches.launches import call_of
from traceanalyzer.derive.ledger.faults import faulting_threads
from traceanalyzer.derive.ledger.shared import Portion
from traceanalyzer.intervals import Array, Spans


@dataclass(frozen=True)
class Idle:
    """The gaps of all GPUs, sorted by (rank, device, start); `number` counts them on each.

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

    @classmethod
    def of(
        cls,
        ops: pa.Table,
        launches: pa.Table,
        api_calls: pa.Table,
        page_faults: pa.Table,
        windows: pa.Table,
        portions: Mapping[frames.Key, Portion],
    ) -> Idle:
        start, end, op, before, tail, behind_others = _spans(ops, windows, portions)
        rank, device, process = (frames.ints(ops, c)[op] for c in ("rank", "device", "process"))
        call = call_of(frames.ints(ops, "row")[op], launches)
        thread, call_start, call_end = (frames.ints_at(launches, c, call) for c in ("thread", "start_ns", "end_ns"))
        toucher = faulting_threads(ops, op, end, api_calls, page_faults)
        faulted = (call < 0) & (toucher != NULL)
        at_end = tail | faulted
        new = np.flatnonzero(
            np.concatenate((np.ones(min(len(op), 1), bool), (np.diff(rank) != 0) | (np.diff(device) != 0)))
        )
        number = np.arange(len(op)) - np.repeat(new, np.diff(new, append=len(op)))
        op_end = frames.ints(ops, "end_ns")
        same_stream, same_call = (
            (_latest_before(ops, op_end, columns)[op] == start) & ~tail
            for columns in (("process", "context", "stream"), ("process", "correlation"))
        )
        # The hardware hands over from one process to another as well.
        same_stream |= behind_others & ~tail
        return cls(
            rank,
            device,
            number,
            start,
            end,
            op,
            before,
            process,
            call,
            np.where(faulted, toucher, thread),
            np.where(at_end, end, call_start),
            np.where(at_end, end, call_end),
            same_stream,
            same_call,
            tail,
            faulted,
        )


def _spans(
    ops: pa.Table, windows: pa.Table, portions: Mapping[frames.Key, Portion]
) -> tuple[Array, Array, Array, Array, frames.Flags, frames.Flags]:
    """The idle stretches of all windows: start, end, `op`, `before` and `tail` of `Idle`, whether others' work came before."""
    op_start, op_end = frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns")
    keys = zip(*(windows[c].to_pylist() for c in ("rank", "device", "start_ns", "end_ns")), strict=True)
    window = {(rank, device): (start, end) for rank, device, start, end in keys}
    found = [np.empty((6, 0), np.int64)]
    for key, rows in frames.groups(ops):
        first, until = window[key]
        reach = np.maximum.accumulate(op_end[rows])
        rising = np.where(op_end[rows] >= reach, np.arange(rows.start, rows.stop), 0)
        # What is done before each operation, and before the end of the window.
        done = np.concatenate(([first], reach))
        last = np.concatenate(([NULL], np.maximum.accumulate(rising)))
        next_start = np.append(op_start[rows], until)
        at = np.flatnonzero(next_start > done)
        tail = at == len(reach)
        begin, until_then = done[at], next_start[at]
        if key in portions:
            begin, until_then = _of_portion(begin, until_then, portions[key].idle)
        some = until_then > begin
        columns = (begin, until_then, rows.start + at - tail, last[at], tail, begin > done[at])
        found.append(np.stack([column[some] for column in columns]))
    start, end, op, before, tail, raised = np.concatenate(found, axis=1)
    return start, end, op, before, tail.astype(bool), raised.astype(bool)


def _of_portion(start: Array, end: Array, idle: Spans) -> tuple[Array, Array]:
    """What the file has of its own gaps: of each, the stretch at its end in which nobody ran anything; nothing where others did."""
    at = np.searchsorted(idle[0], end, side="left") - 1
    low, high = (np.append(column, 0)[at] for column in idle)
    low, high = np.maximum(start, low), np.minimum(end, high)
    return np.where(at >= 0, low, start), np.where(at >= 0, high, start)


def _latest_before(ops: pa.Table, op_end: Array, columns: tuple[str, ...]) -> Array:
    """For each operation the latest end among those of its GPU before it with the same columns, `NULL` for the first.

    Nulls in the last column belong to nothing: an operation without it has no predecessor.
    """
    before = frames.latest_before(frames.dense(*(frames.ints(ops, c) for c in ("rank", "device", *columns))), op_end)
    return np.where(frames.ints(ops, columns[-1]) == NULL, NULL, before)
