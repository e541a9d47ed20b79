"""Who owns the peak, what is in use between steps, and what is there only for a moment."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import Flags
from traceanalyzer.evidence.memory_snapshot.answers import words
from traceanalyzer.evidence.memory_snapshot.answers.judged import Judged, capacities
from traceanalyzer.evidence.memory_snapshot.answers.owners import NOWHERE, OPTIMIZER, PARAMETERS
from traceanalyzer.evidence.memory_snapshot.derived_tables import SNAPSHOT_MEMORY, SNAPSHOT_MOMENTS, SNAPSHOT_OWNERS
from traceanalyzer.intervals import Array

LARGE = 0.10
"""A block of this share of the peak is looked at on its own: ten of them would be all of it."""
NEAR = 0.10
"""A block that is freed before the level is back to what it was, up to this share of the rise, belongs to the peak."""
MOST_OWNERS = 1000
"""So many of the owners, those with most, are listed."""


def snapshot_memory(histories: list[Judged], devices: pa.Table) -> pa.Table:
    """One row a GPU."""
    capacity = capacities(devices)
    rows = [_memory(one, capacity.get(one.history.key)) for one in histories]
    return pa.Table.from_pylist(rows, schema=SNAPSHOT_MEMORY.schema)


def _memory(one: Judged, capacity: int | None) -> dict[str, object]:
    history = one.history
    start, end = peak_span(one)
    steady = _steady(one)
    row: dict[str, object] = {
        **dict(zip(("rank", "device"), history.key, strict=True)),
        "start_ns": start,
        "end_ns": end,
        "method": one.periods.method,
        "steps": one.periods.count,
        "step_time": step_time(one),
        "peak_allocated": peak_allocated(one),
        "steady": int(np.median(one.levels)) if one.knows_steps else None,
        "allocated": int(history.allocated.level[-1]),
        "peak_reserved": peak_reserved(one),
        "reserved": int(history.reserved.level[-1]),
        "capacity": capacity,
        "growth": int(np.median(np.diff(one.levels))) if one.knows_steps else None,
        "rising": one.rising,
        "flat": one.flat,
        "growing": one.growing,
        "recorded": history.has_history,
        "whole": one.whole,
        "placed": one.owners.placed,
    }
    stays: dict[str, tuple[int, str]] = {}
    for what, column in ((OPTIMIZER, "optimizer"), (PARAMETERS, "parameters")):
        mine = [i for i, (_, purpose) in enumerate(one.owners.names) if purpose == what]
        size = steady[mine]
        row[column] = int(size.sum())
        if size.sum():
            stays[what] = int(size.sum()), one.owners.names[mine[int(size.argmax())]][0]
    peak = history.alive(one.peak_entry)
    holders = words.at_peak(
        one.owners, one.owners.bytes_of(peak, history.size), lambda number: _alike(one, peak, number)
    )
    row["lead"], row["rest"] = words.memory(
        words.Levels(
            flat=one.flat,
            whole=one.whole,
            history=history.has_history,
            peak=peak_allocated(one),
            reserved=peak_reserved(one),
            steady=int(np.median(one.levels)) if one.knows_steps else 0,
            end=int(history.allocated.level[-1]),
        ),
        stays,
        holders,
    )
    return row


def step_time(one: Judged) -> int | None:
    """The median length of a step in ns, None where none are known."""
    return int(np.median(np.diff(one.history.time_at(one.periods.bounds)))) if one.periods.count else None


def peak_allocated(one: Judged) -> int:
    """The allocator's own figure where it is known."""
    recorded = one.history.totals.get("allocated_peak_bytes")
    return max(recorded if isinstance(recorded, int) else 0, one.history.allocated.peak)


def peak_reserved(one: Judged) -> int:
    """As `peak_allocated`."""
    recorded = one.history.totals.get("reserved_peak_bytes")
    return max(recorded if isinstance(recorded, int) else 0, one.history.reserved.peak)


def peak_span(one: Judged) -> tuple[int, int]:
    """From when to when most is in use, in ns."""
    curve, at = one.history.allocated, one.history.allocated.peak_at
    nearby = np.array([curve.entry[at], curve.entry[at + 1] if at + 1 < len(curve.entry) else one.history.after])
    start, end = one.history.time_at(nearby).tolist()
    return start, max(end, start)


def _steady(one: Judged) -> Array:
    """Bytes in use by owner where the last step ends; at the snapshot where no steps are known."""
    entry = int(one.periods.bounds[-1]) - 1 if one.periods.count else one.history.after - 1
    return one.owners.bytes_of(one.history.alive(entry), one.history.size)


def snapshot_owners(histories: list[Judged]) -> pa.Table:
    """The owners of each GPU, those with most at the peak first."""
    return frames.stack(SNAPSHOT_OWNERS, [_owners(one) for one in histories if one.owners.count])


def _owners(one: Judged) -> pa.Table:
    history, owners = one.history, one.owners
    peak, end = history.alive(one.peak_entry), history.alive(history.after - 1)
    at_peak, at_end, steady = owners.bytes_of(peak, history.size), owners.bytes_of(end, history.size), _steady(one)
    order = np.lexsort((-at_end, -steady, -at_peak))
    order = order[(at_peak[order] > 0) | (steady[order] > 0) | (at_end[order] > 0)][:MOST_OWNERS]
    start, stop = peak_span(one)
    alike = [_alike(one, peak, number) for number in order.tolist()]
    steady_column = pa.array(steady[order]) if one.periods.count else pa.nulls(len(order), pa.int64())
    names = [owners.names[number] for number in order.tolist()]
    columns = {
        "rank": np.full(len(order), history.key[0]),
        "device": np.full(len(order), history.key[1]),
        "start_ns": np.full(len(order), start),
        "end_ns": np.full(len(order), stop),
        "order": np.arange(len(order)),
        "place": pa.array([place for place, _ in names], pa.string()),
        "what": pa.array([what for _, what in names], pa.string()),
        "peak_bytes": at_peak[order],
        "peak_blocks": owners.blocks_of(peak)[order],
        "share": at_peak[order] / max(int(at_peak.sum()), 1),
        "steady_bytes": steady_column,
        "end_bytes": at_end[order],
        "end_blocks": owners.blocks_of(end)[order],
        "alike": pa.array(alike, pa.string()),
    }
    return frames.build(SNAPSHOT_OWNERS, columns)


def _alike(one: Judged, peak: Flags, number: int) -> str | None:
    """Whose blocks are as large as most of what this owner, of no known place, has in use at the peak."""
    if one.owners.names[number][0] not in NOWHERE:
        return None
    mine = peak & (one.owners.number == number)
    sizes = one.history.requested
    if not mine.any():
        return None
    values, at = np.unique(sizes[mine], return_inverse=True)
    weight = np.bincount(at, one.history.size[mine])
    size = int(values[weight.argmax()])
    known = np.array([place not in NOWHERE for place, _ in one.owners.names])[one.owners.number]
    same = peak & known & (sizes == size)
    if 2 * weight.max() < weight.sum() or size < 1 << 16 or not same.any():
        return None
    # What is as large as parameters is as a rule their gradients.
    often = np.bincount(one.owners.number[same], minlength=one.owners.count)
    best = max(range(one.owners.count), key=lambda i: (often[i] > 0, one.owners.names[i][1] == PARAMETERS, often[i]))
    return one.owners.names[best][0]


def snapshot_moments(histories: list[Judged]) -> pa.Table:
    """The large blocks that are in use at the peak of each GPU and in no calm moment before and after it, by size."""
    rows = [row for one in histories for row in _moments(one)]
    return pa.Table.from_pylist(rows, schema=SNAPSHOT_MOMENTS.schema)


def _moments(one: Judged) -> list[dict[str, object]]:
    history, peak = one.history, one.history.allocated.peak
    around = _calm(one)
    if around is None:
        return []
    before, after = around
    alive = history.alive(one.peak_entry)
    brief = alive & (history.born > before) & (history.released <= after)
    large = brief & (history.size >= LARGE * peak)
    sizes, group = np.unique(history.requested[large], return_inverse=True)
    rows = np.flatnonzero(large)
    found = [_moment(one, brief, rows[group == i], int(size)) for i, size in enumerate(sizes.tolist())]
    found.sort(key=lambda row: -int(str(row["bytes"])))
    return [{**row, "order": i} for i, row in enumerate(found)]


def _calm(one: Judged) -> tuple[int, int] | None:
    """The entries before and after the peak between which more is in use than when nothing happens: those of its step where it is
    known, else where the level is down again. None where the history begins or ends before that."""
    step = one.periods.step_of(one.peak_entry)
    if step is not None:
        return int(one.periods.bounds[step]) - 1, int(one.periods.bounds[step + 1])
    curve, at = one.history.allocated, one.history.allocated.peak_at
    low = int(np.quantile(curve.level, NEAR))
    calm = curve.level <= low + NEAR * (curve.peak - low)
    before, after = np.flatnonzero(calm[:at]), np.flatnonzero(calm[at:])
    if not len(before) or not len(after):
        return None
    return int(curve.entry[before[-1]]), int(curve.entry[at + after[0]])


def _moment(one: Judged, brief: Flags, rows: Array, size: int) -> dict[str, object]:
    history, owners = one.history, one.owners
    rows = rows[np.argsort(history.born[rows], kind="stable")]
    times = history.time_at(np.array([history.born[rows].min(), history.released[rows].max()])).tolist()
    half = brief & (2 * history.requested == size) & (history.born < history.born[rows[0]])
    places = [owners.names[number][0] for number in owners.number[rows].tolist()]
    half &= history.size >= LARGE / 2 * history.allocated.peak
    half &= np.array([place not in NOWHERE for place, _ in owners.names])[owners.number]
    doubled = owners.names[int(owners.number[np.flatnonzero(half)[-1]])][0] if half.any() else None
    stack, stacks = history.stack[rows], one.stacks
    return {
        **dict(zip(("rank", "device"), history.key, strict=True)),
        "start_ns": times[0],
        "end_ns": times[1],
        "peak": peak_allocated(one),
        "steady": int(np.median(one.levels)) if one.knows_steps else None,
        "step_time": step_time(one),
        "places": words.places(places),
        "blocks": len(rows),
        "size": size,
        "bytes": int(history.size[rows].sum()),
        "unplaced": sum(place in NOWHERE for place in places),
        "doubled": doubled,
        "half": size // 2 if doubled else None,
        "twice": words.twice(size // 2, doubled) if doubled else None,
        "loss": bool(stacks is not None and stacks.of(stacks.loss, stack).any()),
        "gather": bool(stacks is not None and stacks.of(stacks.gather, stack).any()),
    }
