"""Process groups, and what each serves."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, RANK, count, ns
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.needs import NO_COMMUNICATION
from traceanalyzer.model.schema import NAME, Column, TableSpec

PROCESS_GROUPS = TableSpec(
    "process_groups",
    "what one GPU sends in one process group for one kind of parallelism",
    (
        RANK,
        DEVICE,
        Column("group", NAME, None, "process group; null when not told"),
        Column("group_ranks", NAME, None, "ranks in the group as recorded (JSON); null when not told"),
        count("group_size", "ranks in the group; null when not told"),
        Column("parallelism", NAME, None, "what they serve, as in `communication`; null when that cannot be told"),
        Column("kinds", NAME, None, "kinds of collectives, comma-separated"),
        count("collectives", "communication kernels"),
        count("steps", "steps that launched any of them"),
        Column("per_step", pa.float64(), "count", "kernels a step, over those steps; null without steps"),
        Column("bytes_per_step", pa.int64(), "bytes", "size of their messages a step; null without steps or sizes"),
        ns("time", "their duration"),
        ns("exposed", "the part of it that no compute covers"),
        ns("exposed_wait", "the part of that in which they waited for the last rank; null unmatched"),
    ),
)

DERIVED = (
    Derived(
        "process_groups",
        "traceanalyzer.ranks.parallelism.parallel_groups:process_groups",
        ("communication",),
        PROCESS_GROUPS,
        NO_COMMUNICATION,
        empty_without="communication",
    ),
)
