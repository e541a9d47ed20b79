"""What the allocator took from the driver and nobody used, and whose allocations made it ask the driver."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.evidence.memory_snapshot.answers import words
from traceanalyzer.evidence.memory_snapshot.answers.calls import calls_of_allocators, event_of
from traceanalyzer.evidence.memory_snapshot.answers.history import GOT
from traceanalyzer.evidence.memory_snapshot.answers.judged import Judged, capacities
from traceanalyzer.evidence.memory_snapshot.answers.owners import NO_FRAME, NO_STACK
from traceanalyzer.evidence.memory_snapshot.answers.peaks import peak_allocated, peak_reserved, peak_span
from traceanalyzer.evidence.memory_snapshot.derived_tables import DEVICE_MEMORY, SNAPSHOT_TRAFFIC
from traceanalyzer.intervals import Array
from traceanalyzer.vocabulary.lines import MEMORY_MANAGEMENT


def device_memory(
    memory_stats: pa.Table, histories: list[Judged], snapshot_segments: pa.Table, devices: pa.Table
) -> pa.Table:
    """One row per (rank, device): of the GPUs that a snapshot tells of as it does, of others as the trace does."""
    capacity, segments = capacities(devices), by_gpu(snapshot_segments)
    told = {
        one.history.key: _device(one, segments[one.history.key], capacity.get(one.history.key))
        for one in histories
        if one.history.has_history
    }
    for row in memory_stats.to_pylist():
        told.setdefault(
            (row["rank"], row["device"]), {**dict.fromkeys(DEVICE_MEMORY.schema.names), **row, "snapshot": False}
        )
    return pa.Table.from_pylist([told[key] for key in sorted(told)], schema=DEVICE_MEMORY.schema)


def by_gpu(table: pa.Table) -> dict[frames.Key, pa.Table]:
    """The rows of each (rank, device), whatever their order."""
    order = np.lexsort((frames.ints(table, "device"), frames.ints(table, "rank")))
    return frames.by_device(table.take(pa.array(order)))


def _device(one: Judged, segments: pa.Table, capacity: int | None) -> dict[str, object]:
    history = one.history
    held = segments.filter(pc.is_null(segments["end_entry"]))
    size, active = frames.ints(held, "bytes"), np.maximum(frames.ints(held, "active_bytes"), 0)
    own = held["pool"].is_null().to_numpy() if held.num_rows else np.empty(0, bool)
    private = int((size - active)[~own].sum())
    allocated, at = peak_allocated(one), one.peak_entry
    start, end = peak_span(one)
    unused = int(history.reserved.at(np.array([at]))[0]) - allocated
    more = np.diff(one.reserves)
    whole, pieces = int(size[own & (active == 0)].sum()), int((size - active)[own & (active > 0)].sum())
    largest = int(np.maximum(frames.ints(held, "largest_free_bytes"), 0).max(initial=0))
    expandable, place = bool(frames.flags(held, "expandable").any()), _most_taken(one)
    grows = int(np.median(more)) if one.growing else None
    return {
        **dict(zip(("rank", "device"), history.key, strict=True)),
        "start_ns": start,
        "end_ns": end,
        "capacity": capacity,
        "peak_reserved": peak_reserved(one),
        "peak_allocated": allocated,
        "unused": max(unused - private, 0),
        "snapshot": True,
        "whole_segments": whole,
        "pieces": pieces,
        "largest_free": largest,
        "private": private,
        "grows": grows,
        "grown_steps": len(more) if grows else None,
        "expandable": expandable,
        "place": place,
        "lies": words.unused(whole, pieces, largest, expandable),
        "growing": words.growing(grows, len(more), place) if grows else None,
    }


def places_of(events: pa.Table, placed: bool) -> tuple[Array, list[str]]:
    """For each event the number of its place, and the places."""
    code, values = frames.codes(events, "place")
    return code, [value or (NO_FRAME if placed else NO_STACK) for value in values]


def _most_taken(one: Judged) -> str | None:
    """Whose allocations took most from the driver in the settled steps."""
    if not one.knows_steps:
        return None
    events = one.history.driver_events
    entry = frames.ints(events, "entry")
    inside = (entry >= one.settled[0]) & (entry < one.settled[-1]) & frames.equals(events, "kind", *GOT)
    if not inside.any():
        return None
    code, places = places_of(events, one.owners.placed)
    return places[int(np.bincount(code[inside], frames.ints(events, "bytes")[inside]).argmax())]


def snapshot_traffic(
    histories: list[Judged], gaps: pa.Table, api_calls: pa.Table, placed_evidence: pa.Table
) -> pa.Table:
    """One row per (rank, device, place) that made the allocator ask the driver."""
    pauses = frames.by_device(gaps.filter(pa.array(frames.equals(gaps, "cause", MEMORY_MANAGEMENT.cause))))
    calls = calls_of_allocators(api_calls, placed_evidence)
    return frames.stack(
        SNAPSHOT_TRAFFIC, [_traffic(one, pauses[one.history.key], calls[one.history.key[0]]) for one in histories]
    )


def _traffic(one: Judged, pauses: pa.Table, calls: pa.Table) -> pa.Table:
    events = one.history.driver_events
    entry, time = frames.ints(events, "entry"), frames.ints(events, "time_ns")
    code, places = places_of(events, one.owners.placed)
    number = frames.dense(code)
    count = int(number.max(initial=-1)) + 1
    step = np.searchsorted(one.settled, entry, side="right") - 1
    settled = (step >= 0) & (step < len(one.settled) - 1)
    steps = len(one.settled) - 1 if one.knows_steps else NULL
    busy = np.unique(number[settled] * max(len(one.settled), 1) + step[settled]) // max(len(one.settled), 1)
    got = frames.equals(events, "kind", *GOT)
    start, end = np.full(count, NULL), np.full(count, NULL)
    for rows in (np.flatnonzero(~settled)[::-1], np.flatnonzero(settled)[::-1]):
        start[number[rows]] = time[rows]
        end[number[rows[::-1]]] = time[rows[::-1]]
    first = np.unique(number, return_index=True)[1]
    idle = _idle(events, number, count, pauses, calls)
    columns = {
        "rank": np.full(count, one.history.key[0]),
        "device": np.full(count, one.history.key[1]),
        "start_ns": start,
        "end_ns": np.maximum(start, end),
        "place": pa.array([places[code[row]] for row in first.tolist()], pa.string()),
        "calls": np.bincount(number, minlength=count),
        "settled": frames.numbers(
            np.bincount(number[settled], minlength=count) if one.knows_steps else np.full(count, NULL)
        ),
        "settled_freed": frames.numbers(
            np.bincount(number[settled & ~got], minlength=count) if one.knows_steps else np.full(count, NULL)
        ),
        "settled_steps": frames.numbers(np.full(count, steps)),
        "busy_steps": frames.numbers(np.bincount(busy, minlength=count) if one.knows_steps else np.full(count, NULL)),
        "bytes": np.bincount(number[got], frames.ints(events, "bytes")[got], count).astype(np.int64),
        "idle": frames.numbers(idle),
        "waits": pa.array([words.waits(int(idle.sum())) if (idle > 0).any() else None] * count, pa.string()),
    }
    return frames.build(SNAPSHOT_TRAFFIC, columns)


def _idle(events: pa.Table, number: Array, count: int, pauses: pa.Table, calls: pa.Table) -> Array:
    """The pauses of which a call takes most, by place."""
    if not pauses.num_rows or not calls.num_rows:
        return np.full(count, NULL)
    event = event_of(pauses, events, calls)
    known = event >= 0
    return np.bincount(number[event[known]], frames.duration(pauses)[known], count).astype(np.int64)
