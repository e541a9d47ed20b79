"""Communication kernels, and who waited for whom in them."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.tables.columns import DEVICE, PROCESS, RANK, SPAN, STREAM, count, ns
from traceanalyzer.model.schema import NAME, Column, TableSpec

# What a collective's parts on all ranks tell of each of them.
_MATCH = (
    Column("instance", pa.int64(), None, "number of the collective that this is one rank's part of; null unmatched"),
    count("ranks", "ranks whose parts of the collective were found; null unmatched"),
    Column("certainty", NAME, None, "medium: matched by size and by clocks; low: by clocks alone; null unmatched"),
    ns("transfer", "shortest duration over the ranks: what the transfer itself takes; null unmatched"),
    ns("wait", "the rest of the duration: waiting for the last rank to arrive; null unmatched"),
    ns("exposed_wait", "part of the wait that no compute covers; null unmatched"),
    ns("spread", "between the first and the last rank's end after aligning the clocks; null unmatched"),
    Column("late_rank", pa.int32(), None, "rank that arrived last; null unmatched"),
    Column("late_device", pa.int32(), None, "device of that rank"),
)

COMMUNICATION = TableSpec(
    "communication",
    "one communication kernel on the ledger",
    (
        RANK,
        DEVICE,
        PROCESS,
        STREAM,
        *SPAN,
        Column("name", NAME, None, "kernel name"),
        Column("kind", NAME, None, "all-reduce, all-gather, reduce-scatter, all-to-all, send, ...; null when not told"),
        Column("group", NAME, None, "process group; null when not told"),
        Column("group_ranks", NAME, None, "ranks in the group as recorded (JSON); null when not told"),
        count("group_size", "ranks in the group; null when not told"),
        Column("sequence", pa.int64(), None, "sequence number within the group; null when the trace carries none"),
        Column("dtype", NAME, None, "element type as recorded"),
        Column("bytes", pa.int64(), "bytes", "size of the message: the larger of what goes in and what comes out"),
        Column("step", pa.int64(), None, "index of the step that launched it; null outside steps"),
        ns("exposed", "time of this kernel that no compute covers"),
        Column("compute_stream", pa.bool_(), None, "the program computes on the same stream"),
        Column(
            "serialized",
            pa.bool_(),
            None,
            "on a stream of its own, but compute ended just before the stretch of communication around it and went on just after it",
        ),
        *_MATCH,
        Column(
            "bus_bandwidth",
            pa.float64(),
            None,
            "GB/s over the busiest link: size times the factor of its kind over the transfer (the duration, where unmatched)",
        ),
        Column(
            "link_bandwidth", pa.float64(), None, "nominal GB/s of the GPU's links to its group; null when not known"
        ),
        Column("best_bandwidth", pa.float64(), None, "GB/s that the fastest tenth of its like reached; null for a few"),
    ),
)

COLLECTIVE_WAITS = TableSpec(
    "collective_waits",
    "one communication kernel as a rank's part of a collective; the span is its wait for the last rank, empty when not told apart",
    (
        RANK,
        DEVICE,
        *SPAN,
        Column("kind", NAME, None, "all-reduce, all-gather, ...; null when not told"),
        *_MATCH,
        Column("late", NAME, None, "name of that rank or, when the trace does not say ranks, of its GPU"),
        ns("late_start_ns", "from when on the others waited for it, on its own clock"),
        ns("late_end_ns", "when it arrived"),
        Column("late_line", NAME, None, "ledger line on which it spent most of that time"),
        Column(
            "late_doing", NAME, None, "kernel or host range that took most of such time on that rank; null when none"
        ),
        ns("imbalance", "part of the wait in which the last rank computed longer since the collective before"),
        Column(
            "score",
            pa.float64(),
            None,
            "how far the last rank's compute between collectives lies from the median rank's, in robust deviations",
        ),
        ns("job_window", "windows of all GPUs that communicate, added up"),
    ),
)
