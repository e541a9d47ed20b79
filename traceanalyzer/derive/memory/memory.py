"""Device memory over time: how full the device got, and what each step kept.

Allocators of frameworks record after each event what is allocated (in use) and what is reserved (taken from the driver). Nsight Systems
records the driver's allocations: their sum is what is reserved, and nobody says how much of it is in use.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames, most
from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.host.callers import Callers
from traceanalyzer.derive.memory.tables import MEMORY_GROWTH, MEMORY_STATS
from traceanalyzer.intervals import Array, latest
from traceanalyzer.places import place_text
from traceanalyzer.records import dataclass

MOST_BLOCKS = 1000
"""How many blocks are traced back to where they were allocated."""

_READ = ["rank", "device", "process", "thread", "time_ns", "bytes", "address", "total_allocated", "total_reserved"]


def memory_stats(memory_events: pa.Table, devices: pa.Table) -> pa.Table:
    """One row per (rank, device) with events of device memory."""
    rows = [_peak(events) for events in _by_device(memory_events, devices)]
    return pa.Table.from_pylist(rows, schema=MEMORY_STATS.schema)


def memory_growth(memory_events: pa.Table, devices: pa.Table, host_steps: pa.Table, callers: Callers) -> pa.Table:
    """One row per (rank, device, step of the host), sorted so."""
    tables = []
    for events in _by_device(memory_events, devices):
        steps = _steps_of(events, host_steps)
        if steps.num_rows:
            tables.append(_growth(events, steps, callers))
    return frames.stack(MEMORY_GROWTH, tables)


@dataclass(frozen=True)
class _Events:
    """The events of one device in order of time; `capacity` is its memory, None when not recorded."""

    key: frames.Key
    table: pa.Table
    capacity: int | None

    @cached_property
    def time(self) -> Array:
        return frames.ints(self.table, "time_ns")

    @cached_property
    def size(self) -> Array:
        return frames.ints(self.table, "bytes")

    @cached_property
    def allocated(self) -> Array | None:
        """In use after each event, None when not recorded."""
        return None if self.table["total_allocated"].null_count else frames.ints(self.table, "total_allocated")

    @cached_property
    def reserved(self) -> Array:
        """Taken from the driver after each event."""
        if self.table["total_reserved"].null_count:
            return np.cumsum(self.size)
        return frames.ints(self.table, "total_reserved")

    def level_at(self, time: Array) -> Array:
        """How much was in use just before each time; what is reserved where that is all that is known."""
        level = self.reserved if self.allocated is None else self.allocated
        before = np.concatenate(([level[0] - self.size[0]], level))
        return before[np.searchsorted(self.time, time, side="left")]

    @cached_property
    def kept(self) -> Array:
        """Rows of the allocations that no later event of their address releases."""
        address = frames.ints(self.table, "address")
        order = np.argsort(address, kind="stable")
        last = np.append(np.diff(address[order]) != 0, True)
        rows = order[last]
        return np.sort(rows[(self.size[rows] > 0) & (address[rows] != NULL)])


def _by_device(memory_events: pa.Table, devices: pa.Table) -> list[_Events]:
    table = memory_events.select(_READ)
    known = pc.and_(pc.is_valid(table["device"]), pc.is_valid(table["bytes"]))
    table = table if pc.all(known).as_py() else table.filter(known)
    # What was recorded as a 64-bit address wraps around to a signed number, which is as good a name for the block.
    address = pc.fill_null(table["address"], 0).to_numpy().view(np.int64)
    address = pa.array(address, mask=table["address"].is_null().to_numpy())
    table = table.set_column(table.schema.get_field_index("address"), "address", address)
    memory = {(row["rank"], row["device"]): row["memory"] for row in devices.to_pylist()}
    table = frames.sorted_by(table, "rank", "device", "time_ns")
    return [_Events(key, part, memory.get(key)) for key, part in frames.split(table)]


def _peak(events: _Events) -> dict[str, int | None]:
    used, reserved = events.allocated, events.reserved
    at = int(np.argmax(reserved if used is None else used))
    after = min(at + 1, len(reserved) - 1)
    return {
        "rank": events.key[0],
        "device": events.key[1],
        "start_ns": int(events.time[at]),
        "end_ns": int(events.time[after]),
        "capacity": events.capacity,
        "peak_reserved": int(reserved.max()),
        "peak_allocated": None if used is None else int(used[at]),
        "unused": None if used is None else int(reserved[at] - used[at]),
    }


def _steps_of(events: _Events, host_steps: pa.Table) -> pa.Table:
    """The steps of the process that allocates most often on the device."""
    owner = most.commonest(frames.ints(events.table, "process"))
    mine = (frames.ints(host_steps, "rank") == events.key[0]) & (frames.ints(host_steps, "process") == owner)
    return host_steps.filter(pa.array(mine)).sort_by("start_ns")


def _growth(events: _Events, steps: pa.Table, callers: Callers) -> pa.Table:
    start, end = frames.ints(steps, "start_ns"), frames.ints(steps, "end_ns")
    # What lies between two steps belongs to the first of them, as on the GPU.
    end = np.append(np.maximum(end[:-1], start[1:]), end[-1])
    level = events.level_at(np.append(start, end[-1]))
    growth = np.diff(level)
    kept = events.kept
    step = latest(start, end, events.time[kept])
    kept, step = kept[step >= 0], step[step >= 0]
    total = np.bincount(step, events.size[kept], len(start)).astype(np.int64)
    place: list[str | None] = [None] * len(start)
    if len(growth) > 1 and growth[1:].min() > 0:
        place = _places(events.table.take(pa.array(kept)), step, len(start), callers)
    return frames.build(
        MEMORY_GROWTH,
        {
            "rank": np.full(len(start), events.key[0]),
            "device": np.full(len(start), events.key[1]),
            "index": np.arange(len(start)),
            "start_ns": start,
            "end_ns": end,
            "allocated": level[1:],
            "growth": growth,
            "kept": total,
            "steps_left": _steps_left(level[1:], growth, events.capacity),
            "place": pa.array(place, pa.string()),
        },
    )


def _steps_left(level: Array, growth: Array, capacity: int | None) -> pa.Array:
    if capacity is None:
        return pa.nulls(len(level))
    return frames.numbers(np.where(growth > 0, np.maximum(capacity - level, 0) // np.maximum(growth, 1), NULL))


def _places(kept: pa.Table, step: Array, count: int, callers: Callers) -> list[str | None]:
    """For each step where the largest share of what it kept was allocated, as far as the largest blocks of all tell."""
    largest = np.sort(np.argsort(-frames.ints(kept, "bytes"), kind="stable")[:MOST_BLOCKS])
    kept, step = kept.take(pa.array(largest)), step[largest]
    row = callers.around(*(frames.ints(kept, c) for c in ("rank", "process", "thread", "time_ns")))
    what, source = callers.names(callers.outermost_operator(row)).to_pylist(), callers.sources(row).to_pylist()
    found: list[str | None] = [None] * count
    best: dict[tuple[int, str], int] = {}
    for at, operator, line, size in zip(step.tolist(), what, source, kept["bytes"].to_pylist(), strict=True):
        name = place_text(operator, line, None) if operator else line
        if name is not None:
            best[at, name] = best.get((at, name), 0) + size
    for at, name in sorted(best, key=lambda key: (best[key], key)):
        found[at] = name
    return found
