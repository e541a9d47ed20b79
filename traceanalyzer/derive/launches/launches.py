"""Which host call started which GPU operation, and in which range.

A correlation id is a key only within a process, and one call can start many operations (CUDA graphs). Operations queued before the
capture, or whose records were dropped, have no call and no row here.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.spill import forget
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.launches.tables import LAUNCHES
from traceanalyzer.intervals import Array

BLOCK = 1 << 16
"""So many operations at a time are looked for."""
MOST_GPUS = 64
"""More than any machine has. What a host thread did is told for each GPU that waited for it meanwhile, so with as many GPUs as one
likes there would be no end of it."""


def links(ledger_ops: pa.Table, api_calls: pa.Table) -> pa.Table:
    """Join on (rank, process, correlation), in the order of the operations, of which each has one row at most.

    Of several calls with one id (a runtime call and the driver call inside it) the first counts.
    """
    call = _calls_of(ledger_ops, api_calls)
    forget()
    rows = np.flatnonzero(call >= 0)
    if not len(rows):
        return LAUNCHES.empty()
    # Nearly always all of them have one; then their columns are used as they are.
    whole = len(rows) == len(call)
    ops = ledger_ops.select(["rank", "process", "row", "device", "stream", "start_ns", "end_ns", "kind"])
    ops, call = (ops, call) if whole else (frames.taken(ops, rows), call.take(rows))
    start, called = frames.ints(ops, "start_ns"), frames.ints(api_calls, "start_ns").take(call)
    columns = frames.taken(api_calls.select(["thread", "end_ns", "name"]), call)
    return frames.build(
        LAUNCHES,
        {
            "rank": ops["rank"],
            "process": ops["process"],
            "thread": columns["thread"],
            "start_ns": called,
            "end_ns": columns["end_ns"],
            "api_name": columns["name"],
            "op": ops["row"],
            "device": ops["device"],
            "stream": ops["stream"],
            "op_start_ns": ops["start_ns"],
            "op_end_ns": ops["end_ns"],
            "op_kind": ops["kind"],
            "queue_delay": start - called,
            "first": _first_of_call(call, start),
        },
    )


def _calls_of(ops: pa.Table, calls: pa.Table) -> Array:
    """For each operation the row of the call that launched it, -1 where there is none."""
    found = np.full(ops.num_rows, -1, np.int64)
    wanted, known = (frames.ints(table, "correlation") for table in (ops, calls))
    start = frames.ints(calls, "start_ns")
    of_calls = frames.rows_by(calls, "rank", "process")
    for who, mine in frames.rows_by(ops, "rank", "process").items():
        if who not in of_calls:
            continue
        own = of_calls[who]
        numbers, begun = known[own], start[own]
        # Where each of them is, counted from `begin`; None where they are one after the other.
        rows, begin = (None, own.start) if isinstance(own, slice) else (own, 0)

        def select(some: Array) -> None:
            nonlocal rows, numbers, begun
            rows = some if rows is None else rows.take(some)
            numbers, begun = numbers.take(some), begun.take(some)

        if (numbers == NULL).any():
            select(np.flatnonzero(numbers != NULL))
        # Nearly in order, as the ids are given in the order of the calls. Of one thread the calls are sorted by start.
        if (numbers[1:] < numbers[:-1]).any():
            select(np.argsort(numbers, kind="stable"))
        if ((numbers[1:] == numbers[:-1]) & (begun[1:] < begun[:-1])).any():
            select(np.lexsort((begun, numbers)))
        at = _places(wanted[mine], numbers)
        at = at if rows is None else np.append(rows, -1).take(at)
        found[mine] = np.where(at < 0, at, at + begin) if begin else at
    return found


def _places(wanted: Array, numbers: Array) -> Array:
    """For each number the first of its places among numbers that ascend, -1 where it is not there."""
    found = np.full(len(wanted), -1, np.int64)
    for first in range(0, len(wanted) if len(numbers) else 0, BLOCK):
        some = wanted[first : first + BLOCK]
        # They are nearly in order, so that all of a block lie in a part of the numbers, which is quickly searched.
        low = int(np.searchsorted(numbers, some.min()))
        near = numbers[low : int(np.searchsorted(numbers, some.max(), side="right"))]
        if np.array_equal(near, some):  # as mostly each is there
            found[first : first + BLOCK] = np.arange(low, low + len(near))
        elif len(near):
            at = np.searchsorted(near, some)
            there = near.take(at, mode="clip") == some
            found[first : first + BLOCK] = np.where(there, at + low, -1)
    return found


def _first_of_call(call: Array, start: Array) -> frames.Flags:
    """Which operations are the first of their call: of those that start at once the first in their order."""
    launches = np.zeros(int(call.max()) + 1, bool)
    launches[call] = True
    if np.count_nonzero(launches) == len(call):  # as mostly each has one operation
        return np.ones(len(call), bool)
    earliest = np.full(len(launches), np.iinfo(np.int64).max)
    np.minimum.at(earliest, call, start)
    rows = np.flatnonzero(start == earliest[call])[::-1]
    first = np.empty(len(earliest), np.int64)
    first[call[rows]] = rows
    found: frames.Flags = first[call] == np.arange(len(call))
    return found


def call_of(op: Array, launches: pa.Table) -> Array:
    """For each operation, given by its row in gpu_ops, the row in `launches` of its call; -1 where there is none."""
    return _places(op, frames.ints(launches, "op"))


def crowded_launches(launches: pa.Table) -> frames.Flags:
    """The launches by threads that launch on more than `MOST_GPUS`."""
    if len(pc.unique(launches["device"])) <= MOST_GPUS:
        return np.broadcast_to(np.False_, launches.num_rows)
    by_thread = frames.dense(*(frames.ints(launches, c) for c in ("rank", "process", "thread")))
    _, one_a_gpu = np.unique(frames.packed(by_thread, frames.ints(launches, "device")), return_index=True)
    return (np.bincount(by_thread[one_a_gpu]) > MOST_GPUS)[by_thread]


def launching_ranges(op: Array, launches: pa.Table, host: Host) -> pa.DictionaryArray:
    """For each operation, given by its row in gpu_ops, the innermost named range around the call that started it.

    Null where there is none; a CUDA graph's operations have the range of its launch.
    """
    at = call_of(op, launches)
    known = np.flatnonzero(at >= 0)
    calls = frames.taken(launches.select(["rank", "process", "thread", "start_ns"]), at.take(known))
    name = np.full(len(op), frames.NULL, np.int64)
    name[known] = host.range_at(*(frames.ints(calls, c) for c in ("rank", "process", "thread", "start_ns")))
    return host.named(name)
