"""The timeline of each GPU, made in blocks of its operations and of the calls that launched them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames, most
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.in_blocks import in_blocks
from traceanalyzer.columns.spill import Growing, forget
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.launches.launches import call_of
from traceanalyzer.derive.replay.replay import FULL, LATENCY_NS, LONG_CALL_NS, QUEUED, SLOW_CALL, Timeline
from traceanalyzer.intervals import EMPTY, Array, Spans


def timelines(ledger_ops: pa.Table, launches: pa.Table, host: Host, windows: pa.Table) -> dict[frames.Key, Timeline]:
    """The timeline of every GPU."""
    calls = frames.by_device(launches)
    window = {
        (rank, device): (start, end)
        for rank, device, start, end in zip(
            *(frames.ints(windows, c).tolist() for c in ("rank", "device", "start_ns", "end_ns")), strict=True
        )
    }
    return {key: timeline(ops, calls[key], host, window[key]) for key, ops in frames.split(ledger_ops)}


def timeline(ops: pa.Table, launches: pa.Table, host: Host, window: tuple[int, int]) -> Timeline:
    """From the operations of one (rank, device) and their launches; the process that launches most of them is the host."""
    origin, stop = window
    own, threads = led(launches)
    start, end, row = (frames.ints(ops, c) for c in ("start_ns", "end_ns", "row"))
    launched, latest = frames.ints(own, "op"), latest_of_call(ops, end)
    made: dict[str, Growing] = defaultdict(Growing)
    # What is before an operation is the reach of the last.
    made["edges"].add(np.array([origin]))
    edge, reached = origin, NULL
    lates, lasts = list[Array](), list[Array]()
    for rows in in_blocks(len(start)):
        begin = start[rows]
        call, back = _calls(row[rows], own, launched)
        reach = np.maximum(np.maximum.accumulate(end[rows]), reached)
        before = np.append(edge, reach[:-1])
        edge = reached = int(reach[-1])
        known = call != NULL
        behind = (begin > before) & known & (back > before) & (latest[rows] != before)
        kinds = ops.slice(rows.start, len(begin)).select(["kind"])
        # A call that moves memory may wait itself: it began while the GPU was busy, and returned when its own operation had begun.
        blocked = behind & (call < before) & (back > begin) & frames.equals(kinds, "kind", "memcpy", "memset")
        late = behind & ~blocked
        # The first of a window may have much to set up.
        some = late.copy()
        some[0] &= rows.start > 0
        lates.append(_narrow((begin - call)[some]))
        lasts.append(_narrow((back - call)[known]))
        columns = {"start": begin, "call": call, "back": back, "edges": reach, "late": late, "blocked": blocked}
        for name, values in columns.items():
            made[name].add(values)
        made["copies"].add(frames.equals(kinds, "kind", "memcpy"))
        forget()
    count, last = len(start), reached
    if stop > last:
        called = stop if threads else NULL
        ends = {"start": stop, "call": called, "back": called, "edges": stop, "late": bool(threads)}
        for name, value in {**ends, "blocked": False, "copies": False}.items():
            made[name].add(np.array([value]))
    columns = {name: column.array() for name, column in made.items()}
    start, call, back, late, blocked = (columns[name] for name in ("start", "call", "back", "late", "blocked"))
    before, reach = columns["edges"][:-1], columns["edges"][1:]

    usual, slow = int(_median(lates, LATENCY_NS)), SLOW_CALL * _median(lasts, 0)
    latency, full = Growing(), [EMPTY[0]]
    for rows in in_blocks(count):
        took, lasted = start[rows] - call[rows], back[rows] - call[rows]
        short = np.where(blocked[rows], start[rows] - before[rows], np.minimum(took, usual))
        latency.add(np.where(late[rows], took, short))
        long = (lasted > min(slow, LONG_CALL_NS)) & (call[rows] != NULL) & (latest[rows] != before[rows])
        full.append(_waits_for_a_place(start[:count], call, rows.start + np.flatnonzero(long), lasted[long], slow))
        forget()
    latency.add(np.zeros(len(start) - count, np.int64))

    filled, held = np.concatenate(full), np.flatnonzero(blocked)
    waits = _waits(host, threads, (call[filled], back[filled]), (call[held], before[held]), reach[:count])
    gpu = before, reach, late, blocked, latency.array(), columns["copies"]
    return Timeline(threads, origin, start, call, back, *gpu, *waits)


def _waits(
    host: Host, threads: Sequence[frames.ThreadKey], filled: Spans, held: Spans, reach: Array
) -> tuple[Array, Array, Array]:
    """The host's waits that the GPU ended, by start: from when to when, and the operation that each was for.

    They are those that are known, the calls that a full launch queue held up, and those that `held` until what was before was done.
    """
    known = [host.thread(*thread).waits for thread in threads]
    # Of such a call that no wait is known of, what was before it ended the wait.
    unknown = ~np.isin(held[0], np.concatenate([EMPTY[0], *(one.start for one in known)]))
    start = np.concatenate([*(one.start for one in known), filled[0], held[0][unknown]])
    end = np.concatenate([*(one.end for one in known), filled[1], held[1][unknown]])
    op = np.searchsorted(reach, end, side="right") - 1
    ended = (op >= 0) & (reach[op] > start)
    order = np.flatnonzero(ended)[np.argsort(start[ended], kind="stable")]
    return start[order], end[order], op[order]


def _calls(op: Array, launches: pa.Table, launched: Array) -> tuple[Array, Array]:
    """Start and return of the launch call of each operation, given by its row in gpu_ops, ascending; `NULL` where there is none.
    `launched` are the operations of all launches."""
    first, stop = np.searchsorted(launched, (op[0], op[-1] + 1))
    near = launches.slice(first, stop - first)
    start, end = frames.ints(near, "start_ns"), frames.ints(near, "end_ns")
    if np.array_equal(launched[first:stop], op):
        return start, end
    at = call_of(op, near)
    return np.append(start, NULL)[at], np.append(end, NULL)[at]


def _waits_for_a_place(start: Array, call: Array, rows: Array, lasted: Array, slow: float) -> Array:
    """Those of the operations whose call lasted so long because the launch queue was full."""
    queued = rows - np.searchsorted(start, call[rows])
    full: Array = rows[(lasted > LONG_CALL_NS) & (queued > QUEUED) | (lasted > slow) & (queued >= FULL)]
    return full


def _narrow(values: Array) -> Array:
    """The values, in half of the bytes where they fit."""
    most = np.iinfo(np.int32)
    fits = not len(values) or (values.min() >= most.min and values.max() <= most.max)
    return values.astype(np.int32) if fits else values


def _median(blocks: Sequence[Array], otherwise: int) -> float:
    values = np.concatenate(blocks)
    return float(np.median(values, overwrite_input=True)) if len(values) else otherwise


def latest_of_call(ops: pa.Table, end: Array) -> Array:
    """For each operation the latest end of those before it that the same call started, `NULL` without one."""
    correlation = frames.ints(ops, "correlation")
    # Most calls start one, in the order of their numbers.
    if (correlation[1:] > correlation[:-1]).all():
        return np.broadcast_to(np.int64(NULL), len(end))
    call = frames.packed(frames.ints(ops, "process"), correlation)
    latest = np.full(len(call), NULL)
    # In the order of their start they are nearly sorted.
    order = np.sort(call, kind="stable")
    again = order[1:][order[1:] == order[:-1]]
    several = np.flatnonzero(frames.among(call, again)) if len(again) else again
    latest[several] = frames.latest_before(frames.dense(call[several]), end[several])
    return latest


def led(launches: pa.Table) -> tuple[pa.Table, list[frames.ThreadKey]]:
    """The launches of the process that has most of them, and its launching threads."""
    own = launches.select(["rank", "process", "thread", "start_ns", "end_ns", "op"])
    if not own.num_rows:
        return own, []
    process = frames.ints(own, "process")
    if (process != process[0]).any():
        own = own.filter(pa.array(process == most.commonest(process)))
    keys = [frames.ints(own, c) for c in ("rank", "process", "thread")]
    changed = np.zeros(own.num_rows, bool)
    changed[0] = True
    for key in keys:
        if key.strides != (0,):
            changed[1:] |= key[1:] != key[:-1]
    runs = [key[changed] for key in keys]
    first = frames.firsts(frames.dense(*runs))
    threads = zip(*(column[first].tolist() for column in runs), strict=True)
    return own, sorted(key for key in threads if key[2] != NULL)
