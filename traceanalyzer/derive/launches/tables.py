"""Launches: which call started which operation, calls without theirs, and clocks of GPU and host that disagree."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, PROCESS, RANK, STREAM, THREAD, ns
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.needs import NO_LAUNCHES
from traceanalyzer.model.schema import NAME, Column, TableSpec

LAUNCHES = TableSpec(
    "launches",
    "one (API call, GPU operation) pair; a graph launch has many",
    (
        RANK,
        PROCESS,
        Column("thread", pa.int64(), None, "thread of the call"),
        ns("start_ns", "start of the call"),
        ns("end_ns", "return of the call"),
        Column("api_name", NAME, None, "name of the call"),
        Column("op", pa.int64(), None, "row of the operation in gpu_ops"),
        DEVICE,
        STREAM,
        ns("op_start_ns", "start of the operation on the GPU"),
        ns("op_end_ns", "end of the operation on the GPU"),
        Column("op_kind", NAME, None, "kernel, memcpy, memset or graph"),
        ns("queue_delay", "from the start of the call to the start of the operation"),
        Column("first", pa.bool_(), None, "true for the first operation of the call"),
    ),
)

LAUNCH_CALLS = TableSpec(
    "launch_calls",
    "one call that starts GPU work",
    (
        RANK,
        PROCESS,
        THREAD,
        ns("start_ns", "start of the call"),
        Column("answered", pa.bool_(), None, "the trace holds at least one operation that it started"),
        Column(
            "unfinished", pa.bool_(), None, "one of the last calls, and what it started is not there, or not all of it"
        ),
        Column("queued", pa.bool_(), None, "what it started still waited for its turn when the recording ended"),
    ),
)

CLOCKS = TableSpec(
    "clocks",
    "one rank whose GPU and host clocks disagree",
    (
        RANK,
        Column("early", pa.int64(), "count", "operations that begin before the call that launched them"),
        Column("most_early", pa.int64(), "ns", "by how much, at most"),
        Column("late", pa.int64(), "count", "waits for a device that return before what they waited for ends"),
        Column("most_late", pa.int64(), "ns", "by how much, at most"),
    ),
)

DERIVED = (
    # The launches before those that the clocks contradict are left out.
    Derived(
        "links", "traceanalyzer.derive.launches.launches:links", ("ledger_ops", "api_calls"), LAUNCHES, internal=True
    ),
    Derived(
        "launch_calls",
        "traceanalyzer.derive.launches.launch_calls:launch_calls",
        ("api_calls", "links", "ledger_ops"),
        LAUNCH_CALLS,
        internal=True,
    ),
    Derived("clocks", "traceanalyzer.derive.launches.clocks:clocks", ("links", "api_calls"), CLOCKS),
    Derived(
        "launches",
        "traceanalyzer.derive.launches.clocks:launches",
        ("links", "clocks"),
        LAUNCHES,
        NO_LAUNCHES,
        kept=True,
        label="{duration} in {api_name}[, queued {queue_delay}]",
    ),
)
