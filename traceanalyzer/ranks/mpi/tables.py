"""Calls of MPI as parts of what ranks do together, and who waited for whom in them."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, PROCESS, RANK, SPAN, count, ns
from traceanalyzer.model.derived import Derived, Needs, Sample
from traceanalyzer.model.schema import NAME, Column, TableSpec
from traceanalyzer.ranks.collectives.tables import LATE_WINDOWS
from traceanalyzer.ranks.waits.tables import LATE_NAMES, LATE_REASONS, LATE_WORK, WAIT_FILLS
from traceanalyzer.vocabulary.lines import EXPOSED_MEMCPY, MPI

_THREAD = Column("thread", pa.int64(), None, "host thread")
_NAME = Column("name", NAME, None, "function name")
_NO_MPI = "the trace holds no calls of MPI"

MPI_PARTS = TableSpec(
    "mpi_parts",
    "one message or collective on one rank, with the call in which it is waited for; where nothing is told of a call, the call itself",
    (
        RANK,
        PROCESS,
        _THREAD,
        *SPAN,
        _NAME,
        ns("posted_ns", "when the rank took part: the call's start, or that of the call that returned at once"),
        Column("kind", NAME, None, "all-reduce, broadcast, ..., send or receive; null for others"),
        Column(
            "group",
            NAME,
            None,
            "communicator: the same on all ranks where it is recorded; else # and its place in the order in which the rank used them",
        ),
        count("group_size", "ranks in it; null when not recorded"),
        Column("group_rank", pa.int64(), None, "rank of the caller in it; null when not recorded"),
        Column("peer", pa.int64(), None, "rank in it on the other side of a send or receive"),
        Column("tag", pa.int64(), None, "tag of a send or receive"),
        Column("root", pa.int64(), None, "rank in it that a collective starts from or ends at"),
        Column("bytes", pa.int64(), "bytes", "size; null when not recorded"),
        Column("world_rank", pa.int32(), None, "rank of the caller in MPI_COMM_WORLD; null when not recorded"),
        Column(
            "device",
            pa.int32(),
            None,
            "first GPU that its process uses; null where it shares that one with others, or uses none",
        ),
        Column("whole", pa.bool_(), None, "all calls of the process were recorded, from the first one on"),
    ),
)

_WAIT = (
    Column(
        "instance", pa.int64(), None, "number of the message or collective that it waits for longest; null unmatched"
    ),
    Column("certainty", NAME, None, "medium: the communicator is recorded; low: told by order alone; null unmatched"),
    ns("wait", "until the rank that comes last took part: not longer than the call; null unmatched"),
    ns("transfer", "the rest of the call; null unmatched"),
    ns("spread", "how far apart ranks leave such collectives after aligning the clocks; null where nothing tells"),
    Column("late_rank", pa.int32(), None, "rank that came last; null unmatched"),
    Column("late_device", pa.int32(), None, "its GPU"),
    ns("late_start_ns", "from when on others waited for that rank, on its own clock; null unmatched"),
    ns("late_end_ns", "when it came"),
)

MPI_MATCHES = TableSpec(
    "mpi_matches",
    "one call of MPI: what only the calls of other ranks tell of it; the span is the call",
    (
        RANK,
        PROCESS,
        Column("device", pa.int32(), None, "GPU of the process where the file holds several processes; else null"),
        *SPAN,
        _NAME,
        Column("kind", NAME, None, "what it waits for longest"),
        *_WAIT,
    ),
)

MPI_CALL_WAITS = TableSpec(
    "mpi_call_waits",
    "one call of MPI and one GPU of its process; the span is the call",
    (
        RANK,
        DEVICE,
        *(column for column in MPI_MATCHES.columns if column.name not in ("rank", "process", "device")),
        ns("exposed", "idle time of the GPU that lies in the call"),
        ns("exposed_wait", "part of that in which it waits; null unmatched"),
    ),
)

MPI_WAITS = TableSpec(
    "mpi_waits",
    "one call of MPI within the window of a GPU; the span is its wait for the last rank or, where that is unknown, all of it",
    (
        *MPI_CALL_WAITS.columns,
        *LATE_REASONS,
        ns("job_window", "windows of all GPUs, added up"),
    ),
)

STAGED_MESSAGES = TableSpec(
    "staged_messages",
    "one exchange of data of a GPU through the host: copies down, calls of MPI, copies up; the span is all of it",
    (
        RANK,
        DEVICE,
        *SPAN,
        Column("name", NAME, None, "call of MPI that takes longest in it"),
        count("copies", "copies down and up"),
        Column("down", pa.int64(), "bytes", "copied to the host"),
        Column("up", pa.int64(), "bytes", "copied to the GPU"),
        Column("sent", pa.int64(), "bytes", "sent in the calls; null where not all sizes were recorded"),
        Column("fits", pa.bool_(), None, "about as much is sent as came down; null where what is sent is not known"),
        ns("exposed", "time of the copies that no kernel covers"),
        ns("in_mpi", "idle time of the GPU in the calls that is not waiting for a late rank"),
    ),
)

DERIVED = (
    Derived(
        "mpi_parts",
        "traceanalyzer.ranks.mpi.mpi_parts:mpi_parts",
        ("mpi_calls", "host_ranges", "ledger_ops"),
        MPI_PARTS,
        internal=True,
    ),
    Derived(
        "mpi_matches",
        "traceanalyzer.ranks.mpi.mpi_matches:mpi_matches",
        ("mpi_parts", "inputs"),
        MPI_MATCHES,
        empty_without="mpi_parts",
        internal=True,
    ),
    Derived(
        "mpi_late_windows",
        "traceanalyzer.ranks.mpi.mpi_matches:late_windows",
        ("mpi_matches",),
        LATE_WINDOWS,
        empty_without="mpi_matches",
        internal=True,
    ),
    Derived(
        "mpi_call_waits",
        "traceanalyzer.ranks.mpi.mpi_exposed:mpi_call_waits",
        ("mpi_matches", "ledger_intervals"),
        MPI_CALL_WAITS,
        small=True,
        internal=True,
        empty_without="mpi_matches",
    ),
    Derived(
        "mpi_late_work",
        "traceanalyzer.ranks.waits.late:late_work",
        ("mpi_late_windows", "ledger_intervals", "mpi_call_waits"),
        LATE_WORK,
        small=True,
        internal=True,
        empty_without="mpi_late_windows",
    ),
    Derived(
        "mpi_late_names",
        "traceanalyzer.ranks.waits.late:late_names",
        ("mpi_late_windows", "ledger_intervals", "ledger_ops", "gaps"),
        LATE_NAMES,
        small=True,
        internal=True,
        empty_without="mpi_late_windows",
    ),
    Derived(
        "mpi_waits",
        "traceanalyzer.ranks.mpi.mpi_waits:mpi_waits",
        (
            *("mpi_call_waits", "mpi_late_work", "mpi_late_names", "extra_work", "extra_ranges", "excess"),
            *("ledger", "inputs"),
        ),
        MPI_WAITS,
        Needs("mpi_call_waits", _NO_MPI, settings=("mpi",)),
        empty_without="mpi_call_waits",
        of_job=True,
        label="traceanalyzer.ranks.mpi.labels:wait",
        sample=Sample({"exposed": ("duration",)}, ("late", WAIT_FILLS), lines=((MPI.name, ("exposed_wait",)),)),
    ),
    Derived(
        "staged_messages",
        "traceanalyzer.ranks.mpi.staged:staged_messages",
        ("copies", "mpi_parts", "own_intervals"),
        STAGED_MESSAGES,
        Needs("mpi_parts", _NO_MPI, settings=("mpi",)),
        label="{duration}: {down} to the host, {name}, {up} to the GPU",
        sample=Sample(
            {"in_mpi": 0, "exposed": ("duration", "in_mpi")},
            lines=((EXPOSED_MEMCPY.name, ("exposed",)), (MPI.name, ("in_mpi",))),
        ),
    ),
)
