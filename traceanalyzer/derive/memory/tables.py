"""Device memory."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, RANK, SPAN, count
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.needs import NO_MEMORY
from traceanalyzer.model.schema import NAME, Column, TableSpec

MEMORY_STATS = TableSpec(
    "memory_stats",
    "the memory of one GPU; the span is the moment when most of it was in use",
    (
        RANK,
        DEVICE,
        *SPAN,
        Column("capacity", pa.int64(), "bytes", "memory of the device; null when not recorded"),
        Column("peak_reserved", pa.int64(), "bytes", "most that was taken from the driver"),
        Column("peak_allocated", pa.int64(), "bytes", "most that was in use; null when only the driver was recorded"),
        Column("unused", pa.int64(), "bytes", "taken from the driver but not in use at that moment; null likewise"),
    ),
)

MEMORY_GROWTH = TableSpec(
    "memory_growth",
    "one step of the host and the memory of one GPU that it left in use",
    (
        RANK,
        DEVICE,
        Column("index", pa.int32(), None, "0-based order"),
        *SPAN,
        Column("allocated", pa.int64(), "bytes", "in use when the next step began"),
        Column("growth", pa.int64(), "bytes", "by how much more than when this one began"),
        Column("kept", pa.int64(), "bytes", "allocated in the step and not released as long as was recorded"),
        count(
            "steps_left",
            "how many more steps like it fit into the device; null when it does not grow or nobody said how large it is",
        ),
        Column(
            "place", NAME, None, "where most of what was kept was allocated; null when not known, or when nothing grows"
        ),
    ),
)

DERIVED = (
    Derived(
        "memory_stats",
        "traceanalyzer.derive.memory.memory:memory_stats",
        ("memory_events", "devices"),
        MEMORY_STATS,
        NO_MEMORY,
        label="{peak_reserved} reserved[, {peak_allocated} in use]",
        empty_without="memory_events",
    ),
    Derived(
        "memory_growth",
        "traceanalyzer.derive.memory.memory:memory_growth",
        ("memory_events", "devices", "host_steps", "callers"),
        MEMORY_GROWTH,
        Needs("memory_growth", "the trace holds no memory events within known steps", settings=("memory",)),
        label="step {index}: {growth} more in use, {kept} kept[, in {place}]",
        empty_without="memory_events",
    ),
)
