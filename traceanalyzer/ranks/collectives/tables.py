"""Communication kernels, and who waited for whom in them."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, PROCESS, RANK, SPAN, STREAM, count, ns
from traceanalyzer.model.derived import Derived, Sample
from traceanalyzer.model.needs import NO_COMMUNICATION, NO_GPU_WORK
from traceanalyzer.model.schema import GPU_OPS, NAME, Column, TableSpec
from traceanalyzer.vocabulary.lines import EXPOSED_COMMUNICATION

# What a collective's parts on all ranks tell of each of them.
MATCH = (
    Column("instance", pa.int64(), None, "number of the collective that this is one rank's part of; null unmatched"),
    count("ranks", "ranks whose parts of the collective were found; null unmatched"),
    count(
        "missing",
        "ranks of the group of which nothing was recorded: with any, wait is a lower and transfer an upper bound; null unmatched",
    ),
    Column("certainty", NAME, None, "medium: matched by size and by clocks; low: by clocks alone; null unmatched"),
    ns(
        "transfer",
        "shortest duration over the ranks: what the transfer itself takes; null unmatched, and of a rank's first collective that "
        "others recorded, to which a rank may only have begun to record late",
    ),
    ns("wait", "the rest of the duration: waiting for the last rank to arrive; null where transfer is"),
    ns(
        "call_wait",
        "part of the wait in which the last rank's host was at the call for it, one of many in a step that take longer than what they "
        "ask for; null where transfer is",
    ),
    ns("exposed_wait", "part of the wait that no compute covers; null where transfer is"),
    ns("exposed_call_wait", "that of the part in which the last rank's host was at the call"),
    ns(
        "spread",
        "between the first and the last rank's end after aligning the clocks; null where transfer is, and for a send that was buffered",
    ),
    Column("late_rank", pa.int32(), None, "rank that arrived last; null where transfer is"),
    Column("late_device", pa.int32(), None, "device of that rank"),
)

OUTSIDE = Column(
    "outside",
    pa.bool_(),
    None,
    "unmatched, because it lies outside the recording of another rank of its group, or that rank was not recorded at all",
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

LIKELY = (
    ns(
        "likely_wait",
        "unmatched in a pipeline, what it takes beyond the shortest of its size: mostly waiting for its neighbour; else null",
    ),
    ns("exposed_likely_wait", "part of that that no compute covers"),
)

LATE = (
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
    (
        RANK,
        DEVICE,
        *(column for column in MATCH if not column.name.startswith("exposed_")),
        *LATE,
        _SKEW,
        _LATE_EXPOSED,
        OUTSIDE,
    ),
)

LATE_WINDOWS = TableSpec(
    "late_windows",
    "one collective for which others waited; the span is the time in which they did, on the clock of the rank that came last",
    (RANK, DEVICE, *SPAN, Column("instance", pa.int64(), None, "number of the collective")),
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
        ns(
            "call_start_ns",
            "when the host began the call for it or, in a loop, ended the one before; null when not recorded",
        ),
        ns("call", "from there until that call returned"),
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
        *MATCH,
        *LIKELY,
        _SKEW,
        _LATE_EXPOSED,
        OUTSIDE,
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

DERIVED = (
    Derived(
        "gpu_ops",
        "traceanalyzer.ranks.collectives.classes:gpu_ops",
        ("recorded_ops", "host_ranges", "communication_patterns"),
        GPU_OPS,
        NO_GPU_WORK,
        kept=True,
    ),
    Derived(
        "communication_kernels",
        "traceanalyzer.ranks.collectives.communication:communication_kernels",
        (
            *("communication_ops", "ledger_ops", "busy", "collectives", "launches", "host_ranges", "host_steps"),
            *("callers", "api_calls"),
        ),
        COMMUNICATION,
        empty_without="communication_ops",
        internal=True,
    ),
    Derived(
        "matches",
        "traceanalyzer.ranks.collectives.matches:matches",
        ("communication_kernels", "windows", "inputs"),
        MATCHES,
        empty_without="communication_kernels",
        small=True,
        internal=True,
    ),
    Derived(
        "late_windows",
        "traceanalyzer.ranks.collectives.matches:late_windows",
        ("matches",),
        LATE_WINDOWS,
        empty_without="matches",
        internal=True,
    ),
    Derived(
        "communication",
        "traceanalyzer.ranks.collectives.communication:communication",
        ("communication_kernels", "matches", "busy", "devices"),
        COMMUNICATION,
        NO_COMMUNICATION,
        empty_without="communication_kernels",
        small=True,
        label="traceanalyzer.ranks.collectives.labels:communication",
        sample=Sample(
            {"exposed": ("duration",), "exposed_transfer": ("exposed", "exposed_wait")},
            lines=((EXPOSED_COMMUNICATION.name, ("exposed",)),),
        ),
    ),
)
