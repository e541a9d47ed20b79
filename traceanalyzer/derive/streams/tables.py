"""Work that the legacy default stream keeps in line."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, PROCESS, RANK, SPAN, STREAM, ns
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.needs import NO_LAUNCHES
from traceanalyzer.model.schema import NAME, Column, TableSpec

HELD_WORK = TableSpec(
    "held_work",
    "one GPU operation that was ready while another one of its process ran, on streams that the legacy default stream keeps in line",
    (
        RANK,
        DEVICE,
        PROCESS,
        STREAM,
        *SPAN,
        Column("name", NAME, None, "the operation"),
        ns("beside", "how much of it could have run beside what ran while it was ready"),
        Column("in_line", pa.bool_(), None, "it began only when that was over, though no event was waited for"),
        Column("default_op", NAME, None, "the operation on the default stream that parts the two, or is one of them"),
        Column("known", pa.bool_(), None, "the trace says what kind of stream each is; false: told by their numbers"),
    ),
)

DERIVED = (
    Derived(
        "held_work",
        "traceanalyzer.derive.streams.default_stream:held_work",
        ("ledger_ops", "launches", "stream_events", "api_calls", "devices", "program"),
        HELD_WORK,
        NO_LAUNCHES,
        empty_without="launches",
    ),
)
