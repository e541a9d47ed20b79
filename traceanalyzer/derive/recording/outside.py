"""What was recorded outside of the windows that are judged: how much, and what the host did there, by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.in_blocks import in_blocks
from traceanalyzer.columns.spill import forget
from traceanalyzer.derive.host.host import Host, Thread
from traceanalyzer.derive.host.start_up import context_calls
from traceanalyzer.derive.recording.tables import OUTSIDE_WORK, RECORDINGS
from traceanalyzer.intervals import Array, clip, join, total
from traceanalyzer.model.trace import Input
from traceanalyzer.vocabulary.copies import CONTEXT, MODULES

MOST_NAMES = 8
"""So many names of each side are kept, those of most time."""
LEAST_SHARE = 0.02
"""What takes less of its side explains nothing."""
_WEEK = 7 * 24 * 3600 * 10**9
_CALLS = {
    CONTEXT: re.compile(r"CtxCreate|PrimaryCtx|^cuInit|cudaSetDevice|cudaInitDevice"),
    MODULES: re.compile(r"Module(Load|Get|EnumerateFunctions)|Library(Load|Get)|^cuLink|FuncLoad"),
    "allocating memory": re.compile(r"Malloc|MemAlloc|HostAlloc|HostRegister|MemCreate|MemMap|MemPool"),
}
"""What the calls of start-up do."""
_PROFILER = {"before": "starting the profiler", "after": "writing the profiler's records"}
Row = dict[str, Any]


def recordings(
    inputs: Sequence[Input],
    windows: pa.Table,
    outside_work: pa.Table,
    ledger_ops: pa.Table,
    api_calls: pa.Table,
    host_ranges: pa.Table,
) -> pa.Table:
    """One row per input, in their order, with the rank of the tables; none for an input without any event."""
    events, judged = _extents(ledger_ops, api_calls, host_ranges), _extents(windows)
    named = {rank: part.slice(0, 1).to_pylist()[0] for rank, part in _by_rank(outside_work)}
    rows = []
    for one in inputs:
        spans = [span for span in (_sound(one.recorded_ns, events.get(one.ordinal)), events.get(one.ordinal)) if span]
        if not spans:
            continue
        start, end = min(span[0] for span in spans), max(span[1] for span in spans)
        row: Row = {"rank": one.ordinal, "start_ns": start, "end_ns": end, "bounded": one.bounded}
        if window := judged.get(one.ordinal):
            row |= {"before": max(window[0] - start, 0), "after": max(end - window[1], 0)}
        main = named.get(one.ordinal, {"name": None, "duration": 0})
        rows.append(row | {"main": main["name"], "main_duration": main["duration"]})
    return pa.Table.from_pylist(rows, schema=RECORDINGS.schema)


def outside_work(windows: pa.Table, launches: pa.Table, api_calls: pa.Table, host: Host) -> pa.Table:
    """What the thread that launched first did before the windows, and the one that launched last after them; for each rank sorted by
    time, the most first."""
    rows: list[Row] = []
    calls = dict(_by_rank(launches.select(["rank", "process", "thread", "op_start_ns", "op_end_ns"])))
    contexts = api_calls.select(["rank", "process", "thread", "start_ns"]).take(pa.array(context_calls(api_calls)))
    for rank, (start, end) in _extents(windows).items():
        own = calls.get(rank)
        if own is None:
            continue
        first = int(frames.ints(own, "op_start_ns").argmin())
        last = int(frames.ints(own, "op_end_ns").argmax())
        forget()
        found = [
            *_side(rank, "before", first, own, host, (start - _WEEK, start), contexts),
            *_side(rank, "after", last, own, host, (end, end + _WEEK), contexts),
        ]
        rows += sorted(found, key=lambda row: -row["duration"])
    return pa.Table.from_pylist(rows, schema=OUTSIDE_WORK.schema)


def _side(
    rank: int, side: str, at: int, launches: pa.Table, host: Host, span: tuple[int, int], contexts: pa.Table
) -> list[Row]:
    process, thread = (int(frames.ints(launches, column)[at]) for column in ("process", "thread"))
    lane = host.thread(rank, process, thread)
    own = np.logical_and.reduce(
        [
            frames.ints(contexts, column) == value
            for column, value in (("rank", rank), ("process", process), ("thread", thread))
        ]
    )
    named = [(name, ns, False) for name, ns in _ranges(lane, host, *span)]
    named += [(name, ns, True) for name, ns in _calls(lane, host, *span, frames.ints(contexts, "start_ns")[own])]
    if profiler := int(total(clip(lane.profiler, *span))):
        named.append((_PROFILER[side], profiler, True))
    named += [(name, ns, False) for name, ns in _samples(lane, host, *span)]
    reach = max((ns for _, ns, _ in named), default=0)
    kept = [one for one in named if one[1] >= LEAST_SHARE * reach]
    return [
        {"rank": rank, "side": side, "name": name, "in_calls": in_calls, "duration": ns}
        for name, ns, in_calls in sorted(kept, key=lambda one: -one[1])[:MOST_NAMES]
    ]


def _ranges(lane: Thread, host: Host, low: int, high: int) -> Iterator[tuple[str, int]]:
    name, ns = lane.stack.within(np.array([low]), np.array([high])).phases(low, high)
    yield from zip(host.texts(name).to_pylist(), ns.tolist(), strict=True)


def _samples(lane: Thread, host: Host, low: int, high: int) -> Iterator[tuple[str, int]]:
    """The functions that CPU samples tell where neither a range nor a call does."""
    if not lane.samples.sampled:
        return
    name, ns = lane.samples.spent((low, high), join(join(lane.work.cover, lane.calls.cover), lane.profiler))
    yield from zip(host.texts(name).to_pylist(), ns.tolist(), strict=True)


def _calls(lane: Thread, host: Host, low: int, high: int, contexts: Array) -> Iterator[tuple[str, int]]:
    """The time of CUDA calls by what they do, each once: a driver call inside a runtime call is no other time. Those that begin at
    `contexts` created one."""
    calls = lane.calls
    here = _meeting(calls.start, calls.end, low, high)
    start, end, named = calls.start[here], calls.end[here], host.named(calls.name[here])
    kinds = [*_CALLS]
    told = [
        next((at for at, kind in enumerate(kinds) if _CALLS[kind].search(name)), -1)
        for name in named.dictionary.to_pylist()
    ]
    kind = np.array([*told, -1])[named.indices.fill_null(len(told)).to_numpy(zero_copy_only=False)]
    kind[np.isin(start, contexts)] = kinds.index(CONTEXT)
    times = np.clip(end, low, high) - np.clip(start, low, high)
    some = np.flatnonzero((kind >= 0) & (times > 0))
    # In the order in which they come first.
    for (at,), rows in frames.together(kind[some]):
        yield kinds[at], int(times[some][rows].sum())


def _meeting(start: Array, end: Array, low: int, high: int) -> Array:
    """Which of some intervals have a part of [low, high)."""
    found = [np.empty(0, np.int64)]
    for rows in in_blocks(len(start)):
        found.append(np.flatnonzero((start[rows] < high) & (end[rows] > low)) + rows.start)
        forget()
    return np.concatenate(found)


def _by_rank(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    return ((rank, part) for (rank, _), part in frames.split(table, "rank", "rank"))


def _extents(*tables: pa.Table) -> dict[int, tuple[int, int]]:
    """By rank, the first start and the last end in these tables."""
    found: dict[int, tuple[int, int]] = {}
    for table in tables:
        for rank, part in _by_rank(table):
            start = int(frames.ints(part, "start_ns").min())
            end = int(frames.ints(part, "end_ns").max())
            forget()
            low, high = found.get(rank, (start, end))
            found[rank] = min(low, start), max(high, end)
    return found


def _sound(told: tuple[int, int] | None, events: tuple[int, int] | None) -> tuple[int, int] | None:
    """What the file says of its bounds, unless its events lie elsewhere: then one of the clocks is another."""
    if told is None or events is None or told[0] >= told[1] or told[1] - told[0] > _WEEK:
        return None
    return told if told[0] <= events[1] and events[0] <= told[1] else None
