"""The recordings, and what lies outside of the windows that are judged."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import RANK, SPAN, ns
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import HEALTH, NAME, Column, TableSpec

RECORDINGS = TableSpec(
    "recordings",
    "one recording: all that one file holds, inside and outside of the windows of its GPUs",
    (
        RANK,
        *SPAN,
        ns("before", "from the start of the recording to the first window; null without GPU work"),
        ns("after", "from the end of the last window to the end of the recording; null without GPU work"),
        Column("bounded", pa.bool_(), None, "a capture range of the user's, or a cut made later, set the bounds"),
        Column("main", NAME, None, "what took most of the time outside, of what has a name; null when nothing does"),
        ns("main_duration", "how long that took; 0 when nothing has a name"),
    ),
)

OUTSIDE_WORK = TableSpec(
    "outside_work",
    "what the host did outside of the windows, by name; the rows of one recording may lie in one another",
    (
        RANK,
        Column("side", NAME, None, "before or after the windows"),
        Column("name", NAME, None, "name of the range or Python frame, or what the CUDA calls did"),
        Column(
            "in_calls",
            pa.bool_(),
            None,
            "it is the time of CUDA calls; false for a range, a frame or a function that CPU samples tell",
        ),
        ns("duration", "how long it took outside of the windows"),
    ),
)

DERIVED = (
    Derived(
        "health",
        "traceanalyzer.derive.recording.health:health",
        (
            *("recorded_health", "gpu_ops", "ledger_ops", "launch_calls", "clocks", "launches", "overheads", "steps"),
            *("gaps", "windows", "api_calls", "host_ranges", "inputs", "profiler_cost"),
        ),
        HEALTH,
        small=True,
        of_job=True,
    ),
    Derived(
        "outside_work",
        "traceanalyzer.derive.recording.outside:outside_work",
        ("windows", "launches", "api_calls", "host"),
        OUTSIDE_WORK,
        small=True,
        internal=True,
        empty_without="launches",
    ),
    Derived(
        "recordings",
        "traceanalyzer.derive.recording.outside:recordings",
        ("inputs", "windows", "outside_work", "ledger_ops", "api_calls", "host_ranges"),
        RECORDINGS,
        small=True,
        label="the whole recording: {duration}",
    ),
)
