"""What each step leaves in use: a level that rises, and whose blocks make it rise."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.evidence.memory_snapshot.answers.history import BEFORE
from traceanalyzer.evidence.memory_snapshot.answers.judged import SETTLED_STEPS, Judged, capacities
from traceanalyzer.evidence.memory_snapshot.answers.owners import NOWHERE
from traceanalyzer.evidence.memory_snapshot.derived_tables import STEP_MEMORY
from traceanalyzer.intervals import Array

PIECES = 8
"""Without steps the history is cut into so many pieces of as many allocations; the second half of them is judged."""
USED_AGAIN = 0.5
"""Such a piece tells of a loop where at least this share of its blocks was given up; a program that loads keeps what it allocates."""
GROWTH_OF_LEVEL = 0.5
"""An owner explains a level that rises by at least this share of what he keeps."""


def step_memory(memory_growth: pa.Table, histories: list[Judged], devices: pa.Table) -> pa.Table:
    """One row per (rank, device, step), sorted so: of the GPUs that a snapshot tells of as it does, of others as the trace does."""
    capacity = capacities(devices)
    told = {one.history.key: _rows(one, capacity.get(one.history.key)) for one in histories}
    told = {key: table for key, table in told.items() if table.num_rows}
    for key, part in frames.split(memory_growth):
        told.setdefault(key, _of_trace(part))
    return frames.stack(STEP_MEMORY, [told[key] for key in sorted(told)])


def _of_trace(growth: pa.Table) -> pa.Table:
    count = growth.num_rows
    more = {
        "snapshot": pa.array([False] * count),
        "owned": pa.nulls(count),
        "held": pa.nulls(count),
        "stepwise": pa.array([True] * count),
        "lasting": pa.nulls(count, pa.bool_()),
    }
    return frames.build(STEP_MEMORY, {**{name: growth[name] for name in growth.schema.names}, **more})


def _rows(one: Judged, capacity: int | None) -> pa.Table:
    stepwise = one.knows_steps
    bounds = one.settled if stepwise else _pieces(one)
    # The first row is of a step that may warm up, as in the table of the trace.
    if stepwise and len(one.periods.bounds) > len(bounds):
        bounds = one.periods.bounds
    if len(bounds) < SETTLED_STEPS + 1:
        return STEP_MEMORY.empty()
    history, count = one.history, len(bounds) - 1
    level = history.allocated.before(bounds) if stepwise else _floor(one, bounds)
    growth = np.diff(level)
    step = np.searchsorted(bounds, history.born, side="right") - 1
    held = history.released >= history.after
    kept = held & (step >= 0) & (step < count) & (history.born != BEFORE)
    owned = kept_by_owner(one, bounds)
    owner = _grower(one, owned[:, 1:] if count > SETTLED_STEPS else owned)
    place = one.owners.names[owner][0] if owner is not None else None
    grown = np.diff(owned[owner]) if owner is not None else np.full(count, NULL)
    time = history.time_at(bounds)
    columns = {
        "rank": np.full(count, history.key[0]),
        "device": np.full(count, history.key[1]),
        "index": np.arange(count),
        "start_ns": time[:-1],
        "end_ns": time[1:],
        "allocated": level[1:],
        "growth": growth,
        "kept": np.bincount(step[kept], history.size[kept], count).astype(np.int64),
        "steps_left": _steps_left(level[1:], growth, capacity),
        "place": pa.array([place] * count, pa.string()),
        "snapshot": np.full(count, True),
        "owned": frames.numbers(grown),
        "held": np.full(count, int((held & (one.owners.number == owner)).sum()))
        if owner is not None
        else pa.nulls(count),
        "stepwise": np.full(count, stepwise),
        "lasting": np.full(count, owner is not None and _lasts(owned[owner], level)),
    }
    return frames.build(STEP_MEMORY, columns)


def kept_by_owner(one: Judged, bounds: Array) -> Array:
    """Bytes in use at each bound, a row per owner."""
    history, count = one.history, len(bounds)
    first = np.searchsorted(bounds, history.born, side="right")
    last = np.searchsorted(bounds, history.released, side="right")
    change = np.zeros(one.owners.count * (count + 1), np.int64)
    width = one.owners.number * (count + 1)
    np.add.at(change, width + first, history.size)
    np.add.at(change, width + last, -history.size)
    found: Array = np.cumsum(change.reshape(one.owners.count, count + 1), axis=1)[:, :count]
    return found


def _grower(one: Judged, owned: Array) -> int | None:
    """Who keeps most more, before all a line of the program."""
    grown = owned[:, -1] - owned[:, 0]
    if not len(grown) or grown.max() <= 0:
        return None
    named = np.array([place not in NOWHERE for place, _ in one.owners.names])
    best = int(np.argmax(np.where(named, grown, 0)))
    return best if 2 * grown[best] >= grown.max() else int(np.argmax(grown))


def _lasts(owned: Array, level: Array) -> bool:
    """Whether what an owner holds grows in at least SETTLED_STEPS steps after the first, one of them in the last third, never shrinks,
    and makes the level rise."""
    more = np.diff(owned[1:])
    third = -(-len(more) // 3)
    rises = int((more > 0).sum()) >= SETTLED_STEPS and bool((more[-third:] > 0).any()) and bool((more >= 0).all())
    return rises and int(level[-1] - level[1]) >= GROWTH_OF_LEVEL * int(more.sum())


def _pieces(one: Judged) -> Array:
    """Bounds of the pieces of the second half of the history, and of one before, where each is a loop's; empty elsewhere."""
    history = one.history
    rows = np.flatnonzero(history.born != BEFORE)
    rows = rows[np.argsort(history.born[rows], kind="stable")]
    if len(rows) < 8 * PIECES:
        return np.empty(0, np.int64)
    at = np.linspace(0, len(rows), PIECES + 1).astype(np.int64)[PIECES // 2 - 1 :]
    for a, b in zip(at[:-1].tolist(), at[1:].tolist(), strict=True):
        if (history.released[rows[a:b]] < history.after).mean() < USED_AGAIN:
            return np.empty(0, np.int64)
    return np.append(history.born[rows[at[:-1]]], history.after)


def _floor(one: Judged, bounds: Array) -> Array:
    """The least that is in use from each bound on to the next: where in a step it lies is not known."""
    curve = one.history.allocated
    at = np.maximum(np.searchsorted(curve.entry, bounds, side="left") - 1, 0)
    least = np.minimum.accumulate(curve.level[::-1])[::-1]
    return least[at]


def _steps_left(level: Array, growth: Array, capacity: int | None) -> pa.Array:
    if capacity is None:
        return pa.nulls(len(level), pa.int64())
    return frames.numbers(np.where(growth > 0, np.maximum(capacity - level, 0) // np.maximum(growth, 1), NULL))
