"""Runs of copies one after another: many small ones, or the migrations of managed memory, with the idle time between them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.derive.copies.tables import COPY_BURSTS
from traceanalyzer.derive.streams.transfers import first_coverage
from traceanalyzer.intervals import Array, Spans, coverage
from traceanalyzer.vocabulary.lines import (
    COMPUTE,
    EXPOSED_COMMUNICATION,
    EXPOSED_MEMCPY,
    HOST_UNTRACED,
    HOST_WORK,
    LAUNCH_LATENCY,
    SYNCHRONIZATION,
    UNATTRIBUTED,
)

_LARGEST = 1 << 62
LARGE_BYTES = 1 << 20
"""From about this size on the link takes longer than the host does to issue a copy. Such a copy ends a run of small ones."""
MAX_BETWEEN = 2
"""Other operations between two copies of a run: a tensor is moved and converted, then the next one follows."""
MAX_PAUSE_NS = 200_000
"""Issuing a copy takes tens of microseconds, several times that under a profiler; in a longer pause the host did something else."""
MAX_SWEEP_PAUSE_NS = 1_000_000
"""A host that only reads or writes managed memory faults every 2 MiB at most, which take it less than this."""
PAUSE_LINES = (LAUNCH_LATENCY.name, SYNCHRONIZATION.name, HOST_WORK.name, HOST_UNTRACED.name)
KERNEL_LINES = (COMPUTE.name, EXPOSED_COMMUNICATION.name)
# Before a migration of which no thread is known the idle time has no cause.
SWEEP_LINES = (*PAUSE_LINES, UNATTRIBUTED.name)


def copy_bursts(ledger_ops: pa.Table, ledger_intervals: pa.Table, copies: pa.Table, api_calls: pa.Table) -> pa.Table:
    """Runs of two copies or more between host and device, sorted by (rank, device, start); see COPY_BURSTS.

    A host that works on managed memory makes no calls meanwhile, so its migrations are one run however long it works on each part.
    """
    calls = {key: frames.ints(of_rank, "start_ns") for key, of_rank in frames.by_rank(api_calls).items()}
    moved, tiles = frames.by_device(copies), frames.by_device(ledger_intervals)
    tables = []
    for key, device in frames.split(ledger_ops):
        if key in moved:
            place = np.flatnonzero(frames.equals(device, "kind", "memcpy"))
            called = calls.get(key[0], np.empty(0, np.int64))
            runs = [_runs(moved[key], place, tiles[key], called, managed) for managed in (False, True)]
            tables.append(frames.stack(COPY_BURSTS, runs).sort_by("start_ns"))
    return frames.stack(COPY_BURSTS, tables)


def _runs(copies: pa.Table, place: Array, tiles: pa.Table, called: Array, managed: bool) -> pa.Table:
    """The runs of one GPU's copies; `place` is the position of each copy among all operations of the GPU, in order of start, and
    `called` are the times at which API calls of the rank began."""
    prefix = "uvm_" if managed else ""
    if not {prefix + "htod", prefix + "dtoh"} & {*pc.unique(copies["copy_kind"]).to_pylist()}:
        return COPY_BURSTS.empty()
    to_device, to_host = (frames.equals(copies, "copy_kind", prefix + way) for way in ("htod", "dtoh"))
    size = frames.ints(copies, "bytes")
    # The driver chooses the size of a migration, so a large one is as much part of a run as a small one.
    large = (to_device | to_host) & (size >= LARGE_BYTES) & (not managed)
    on_demand = ~frames.equals(copies, "migration_cause", "asked")
    rows = np.flatnonzero((to_device | to_host) & ~large & (size != frames.NULL) & on_demand)
    if len(rows) < 2:
        return COPY_BURSTS.empty()
    start, end = frames.ints(copies, "start_ns")[rows], frames.ints(copies, "end_ns")[rows]
    done = np.maximum.accumulate(end)[:-1]
    long = start[1:] - done > (MAX_SWEEP_PAUSE_NS if managed else MAX_PAUSE_NS)
    far = np.flatnonzero(long)
    if managed and len(called) and len(far):
        long[far] = ~_at_one_task(done[far], start[1:][far], tiles, called)
    parted = long | (np.diff(place[rows]) > MAX_BETWEEN + 1) | (np.diff(np.cumsum(large)[rows]) > 0)
    first = np.concatenate(([0], np.flatnonzero(parted) + 1))
    count = np.diff(np.concatenate((first, [len(rows)])))

    # What the host did before the first copy is no pause between copies; the launch of the first one is part of their cost.
    begin, stop = _launch_start(start[first], tiles), np.maximum.reduceat(end, first)
    size = size[rows]
    median = _sorted_within(np.repeat(np.arange(len(first)), count), size)[first + (count - 1) // 2]
    inbound = np.add.reduceat(to_device[rows].astype(np.int64), first) * 2 >= count
    columns = {
        **{c: copies[c].take(pa.array(rows[first])) for c in ("rank", "device", "process", "range_name")},
        "start_ns": begin,
        "end_ns": stop,
        "managed": np.full(len(first), managed),
        "copy_kind": frames.names((~inbound).astype(np.int64), [prefix + "htod", prefix + "dtoh"]),
        "copies": count,
        "bytes": np.add.reduceat(size, first),
        "median_bytes": median,
        "exposed": coverage(begin, stop, _on(tiles, EXPOSED_MEMCPY.name)),
        "under_kernels": np.add.reduceat(coverage(*first_coverage(start, end), _on(tiles, *KERNEL_LINES)), first),
        "idle": coverage(begin, stop, _on(tiles, *(SWEEP_LINES if managed else PAUSE_LINES))),
    }
    return frames.build(COPY_BURSTS, columns).filter(pa.array(count > 1))


def _sorted_within(run: Array, size: Array) -> Array:
    """The sizes of each run in ascending order, run by run; `run` ascends from 0 on."""
    span = int(size.max()) + 1
    if (int(run[-1]) + 1) * span > _LARGEST:
        return size[np.lexsort((size, run))]
    # As one number they are sorted in a tenth of the time.
    return np.sort(run * span + size) % span


def _at_one_task(start: Array, end: Array, tiles: pa.Table, called: Array) -> frames.Flags:
    """In which pauses the GPU had nothing to do and no call was made: the host is still at what it faulted for."""
    called = np.sort(called, kind="stable")  # which leaves what is in order, as those of each thread are
    made = np.searchsorted(called, end) - np.searchsorted(called, start)
    kept: frames.Flags = (coverage(start, end, _on(tiles, *KERNEL_LINES)) == 0) & (made == 0)
    return kept


def _launch_start(start: Array, tiles: pa.Table) -> Array:
    """When the wait for the launch began that ends at `start`; `start` itself where no such wait does."""
    low, high = _on(tiles, LAUNCH_LATENCY.name)
    if not len(high):
        return start
    index = np.minimum(np.searchsorted(high, start), len(high) - 1)
    return np.where(high[index] == start, low[index], start)


def _on(tiles: pa.Table, *lines: str) -> Spans:
    """The stretches of one GPU's window on these lines, in order. They do not overlap, but may touch."""
    here = frames.equals(tiles, "line", *lines)
    return frames.ints(tiles, "start_ns")[here], frames.ints(tiles, "end_ns")[here]
