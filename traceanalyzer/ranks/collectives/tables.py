"""Communication kernels, and who waited for whom in them."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, PROCESS, RANK, SPAN, STREAM, count, ns
from traceanalyzer.model.schema import NAME, Column, TableSpec

# What a collective's parts on all ranks tell of each of them.
_MATCH = (
    Column("instance", pa.int64(), None, "number of the collective that this is one rank's part of; null unmatched"),
    count("ranks", "ranks whose parts of the collective were found; null unmatched"),
    Column("certainty", NAME, None, "medium: matched by size and by clocks; low: by clocks alone; null unmatched"),
    ns("transfer", "shortest duration over the ranks: what the transfer itself takes; null unmatched"),
    ns("wait", "the rest of the duration: waiting for the last rank to arrive; null unmatched"),
    ns("exposed_wait", "part of the wait that no compute covers; null unmatched"),
    ns(
        "spread",
        "between the first and the last rank's end after aligning the clocks; null unmatched, and for a send that was buffered",
    ),
    Column("late_rank", pa.int32(), None, "rank that arrived last; null unmatched"),
    Column("late_device", pa.int32(), None, "device of that rank"),
)

_LATE_EXPOSED = ns(
    "late_exposed", "time of it that no compute covers on the rank that came last, which sets the pace; null unmatched"
)

_SKEW = Column(
    "skew",
    pa.float64(),
    None,
    "most bytes that come out on one rank over the mean of all: 1 for an even collective; null unmatched",
)

_LIKELY = (
    ns(
        "likely_wait",
        "unmatched in a pipeline, what it takes beyond the shortest of its size: mostly waiting for its neighbour; else null",
    ),
    ns("exposed_likely_wait", "part of that that no compute covers"),
)

LATE_REASONS = (
    Column("late", NAME, None, "name of the rank that came last or, when the trace does not say ranks, of its GPU"),
    Column("late_line", NAME, None, "ledger line on which it spent most of the time in which others waited"),
    Column(
        "late_doing", NAME, None, "kernel or place on the host that took most of its time on that line; null when none"
    ),
    Column(
        "late_cause",
        NAME,
        None,
        "ledger line on which it spends most time a step beyond the median rank, else late_line",
    ),
    Column("late_why", NAME, None, "that in words: how much, and on what; null when nothing stands out"),
)
_LATE = (
    ns("late_start_ns", "from when on the others waited for that rank, on its own clock; null unmatched"),
    ns("late_end_ns", "when it arrived"),
    ns("imbalance", "part of the wait in which the last rank computed longer since the collective before"),
    Column(
        "score",
        pa.float64(),
        None,
        "how far the last rank's compute between collectives lies from the median rank's, in robust deviations",
    ),
)

MATCHES = TableSpec(
    "matches",
    "one communication kernel, in the order of `communication`: what only its counterparts on all ranks tell of it",
    (RANK, DEVICE, *(column for column in _MATCH if column.name != "exposed_wait"), *_LATE, _SKEW, _LATE_EXPOSED),
)

RANK_WORK = TableSpec(
    "rank_work",
    "operations of one name on one GPU, communication aside, per complete step",
    (
        RANK,
        DEVICE,
        Column("name", NAME, None, "name of the operation"),
        Column("count", pa.float64(), "count", "how many there are a step"),
        ns("time", "how much time they take a step, added up"),
    ),
)

EXTRA_WORK = TableSpec(
    "extra_work",
    "one GPU of a job, and the operation of which it has most time a step beyond the median GPU",
    (
        *RANK_WORK.columns,
        Column(
            "longer",
            pa.float64(),
            None,
            "its operations take so many times as long as the median GPU's, which runs as many; else null",
        ),
    ),
)

LATE_WINDOWS = TableSpec(
    "late_windows",
    "one collective for which others waited; the span is the time in which they did, on the clock of the rank that came last",
    (RANK, DEVICE, *SPAN, Column("instance", pa.int64(), None, "number of the collective")),
)

LATE_WORK = TableSpec(
    "late_work",
    "one collective for which others waited, under the rank that came last; the span is the time in which they did, on its clock",
    (
        *LATE_WINDOWS.columns,
        Column("line", NAME, None, "ledger line on which it spent most of that time"),
        Column(
            "via",
            pa.int64(),
            None,
            "collective in which it spent most of that time waiting itself; null when there is none",
        ),
    ),
)

LATE_NAMES = TableSpec(
    "late_names",
    "one ledger line of a GPU that others waited for",
    (
        RANK,
        DEVICE,
        Column("line", NAME, None, "ledger line"),
        Column(
            "name",
            NAME,
            None,
            "what took most of the time on it while others waited: an operation, or a place on the host",
        ),
    ),
)

EXCESS = TableSpec(
    "excess",
    "one GPU of a job, and the ledger line on which it spends most time a step beyond the median GPU",
    (RANK, DEVICE, Column("line", NAME, None, "ledger line"), ns("time", "that time, a step")),
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
        Column(
            "peer",
            pa.int64(),
            None,
            "rank of the job on the other side of a send or receive, the one received from where it is both; null for others",
        ),
        Column(
            "sends", NAME, None, "ranks that a kernel of grouped sends and receives sends to (JSON); null for others"
        ),
        Column("receives", NAME, None, "ranks that it receives from"),
        Column("bytes", pa.int64(), "bytes", "size of the message: the larger of what goes in and what comes out"),
        Column("in_bytes", pa.int64(), "bytes", "what this rank puts in; null when not told"),
        Column("out_bytes", pa.int64(), "bytes", "what this rank gets out; null when not told"),
        Column("step", pa.int64(), None, "index of the step that launched it; null outside steps"),
        Column(
            "parallelism",
            NAME,
            None,
            "what it serves: data, sharded data, tensor, pipeline, expert or context parallel, embedding exchange or "
            "synchronization; null when that cannot be told",
        ),
        ns("exposed", "time of this kernel that no compute covers"),
        ns("computed", "compute on its GPU from the window's start to its end"),
        Column("compute_stream", pa.bool_(), None, "the program computes on the same stream"),
        Column(
            "serialized",
            pa.bool_(),
            None,
            "on a stream of its own, but compute ended just before the stretch of communication around it and went on just after it",
        ),
        Column(
            "one_queue",
            pa.bool_(),
            None,
            "the computation launched next on another stream was free to run beside it, began only when it ended, and no recorded wait "
            "asks for that; null where it could not have run beside it",
        ),
        ns(
            "exposed_transfer",
            "exposed time that is not waiting for others; unmatched at most the longest transfer of matched kernels of its name",
        ),
        *_MATCH,
        *_LIKELY,
        _SKEW,
        _LATE_EXPOSED,
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

COLLECTIVE_WAITS = TableSpec(
    "collective_waits",
    "one communication kernel as a rank's part of a collective; the span is its wait for the last rank or, where that is not told, "
    "its likely wait, else empty",
    (
        RANK,
        DEVICE,
        *SPAN,
        Column("kind", NAME, None, "all-reduce, all-gather, ...; null when not told"),
        *_MATCH,
        *_LIKELY,
        *LATE_REASONS,
        *_LATE,
        ns("sooner", "part of its exposed wait that would be gone had the last rank come with the one before it"),
        Column("parallelism", NAME, None, "what it serves, as in `communication`; null when that cannot be told"),
        Column(
            "bubble",
            pa.bool_(),
            None,
            "a pipeline stage waits for another one: to receive or send, or elsewhere for a stage that is still at that",
        ),
        count("stages", "ranks in the pipeline that the job runs; null without one"),
        count("micro_batches", "micro-batches a step of that pipeline; null when not told"),
        Column("schedule", NAME, None, "both in words; null when not told"),
        ns("job_window", "windows of all GPUs that communicate, added up"),
    ),
)
