"""Memory copies, alone and in runs."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, PROCESS, RANK, SPAN, STREAM, THREAD, count, ns
from traceanalyzer.model.derived import Derived, Sample
from traceanalyzer.model.needs import NO_COPIES
from traceanalyzer.model.schema import NAME, Column, TableSpec
from traceanalyzer.vocabulary.lines import EXPOSED_MEMCPY, HOST_WORK

COPIES = TableSpec(
    "copies",
    "one memory copy on the ledger",
    (
        RANK,
        DEVICE,
        PROCESS,
        STREAM,
        *SPAN,
        Column("copy_kind", NAME, None, "htod, dtoh, dtod, ptop, uvm_htod, ..."),
        Column("migration_cause", NAME, None, "why managed memory moved: asked, fault, ...; null where not recorded"),
        Column("bytes", pa.int64(), "bytes", "bytes moved"),
        Column("src_memory", NAME, None, "pageable, pinned, device, managed, array or unknown"),
        Column("dst_memory", NAME, None, "as src_memory, for the destination"),
        Column("pageable", pa.bool_(), None, "the host side is pageable memory"),
        ns(
            "pinned",
            "what it would take with pinned memory on the host: at the bandwidth of the GPU's own pinned copies, else the usual one of "
            "its link; null for copies within a GPU and of unknown size",
        ),
        ns("exposed", "time of this copy that neither compute, communication nor an earlier copy covers"),
        Column("bandwidth", pa.float64(), None, "bytes per second"),
        Column(
            "compute_stream",
            pa.bool_(),
            None,
            "compute kernels run on the same stream, so this copy can never overlap them",
        ),
        Column(
            "kept_in_line",
            pa.bool_(),
            None,
            "it or the compute kernels are on the legacy default stream, the others on one that waits for it: they never overlap",
        ),
        Column(
            "round_trip",
            pa.bool_(),
            None,
            "it takes data to the host or brings back as many bytes, with no time between for the host to read them",
        ),
        Column("range_name", NAME, None, "innermost named range around the call that started it; null when none"),
    ),
)

COPY_BURSTS = TableSpec(
    "copy_bursts",
    "a run of two or more copies between host and device, hardly anything between them: small ones, or migrations on demand",
    (
        RANK,
        DEVICE,
        PROCESS,
        *SPAN,
        Column(
            "managed",
            pa.bool_(),
            None,
            "true: migrations of managed memory that nobody asked for; false: copies, each under 1 MiB",
        ),
        Column("copy_kind", NAME, None, "htod or dtoh, with uvm_ before it for migrations: what most of them are"),
        count("copies", "copies in the run"),
        Column("bytes", pa.int64(), "bytes", "bytes moved"),
        Column("median_bytes", pa.int64(), "bytes", "size of the middle one of the run"),
        ns("exposed", "time of the run in which only copies ran"),
        ns("under_kernels", "time of the run in which copies and kernels ran together"),
        ns("idle", "time between the copies in which the GPU waited for the host"),
        Column(
            "range_name", NAME, None, "innermost named range around the call that started the first; null when none"
        ),
    ),
)

READBACKS = TableSpec(
    "readbacks",
    "a copy to the host that the host waited for, with the idle time after it that the GPU's own work could hide",
    (
        RANK,
        DEVICE,
        PROCESS,
        THREAD,
        *SPAN,
        Column("bytes", pa.int64(), "bytes", "bytes moved"),
        Column("pageable", pa.bool_(), None, "the host side is pageable memory"),
        ns("exposed", "time of the copy that neither compute, communication nor an earlier one covers"),
        ns(
            "idle",
            "time after it in which the GPU waited for the host, as far as the work before the copy could hide it",
        ),
        Column("last", pa.bool_(), None, "no kernel ran on the GPU after it"),
        Column("operator", NAME, None, "outermost operator around the call; null when none was recorded"),
        Column("source", NAME, None, "innermost line of the program's own code around the call; null without stacks"),
    ),
)

_COPIES_AND_IDLE = Sample(
    {"idle": 0, "exposed": ("duration", "idle")},
    lines=((EXPOSED_MEMCPY.name, ("exposed",)), (HOST_WORK.name, ("idle",))),
)

DERIVED = (
    Derived(
        "copies",
        "traceanalyzer.derive.copies.copies:copies",
        ("ledger_ops", "busy", "launches", "host", "devices", "host_ranges", "stream_events", "program"),
        COPIES,
        NO_COPIES,
        kept=True,
        label="[{bytes} ]{copy_kind:way}[{pageable?}, pageable], [{exposed} exposed|{duration}][, in {range_name}]",
        sample=Sample({"exposed": ("duration",)}, lines=((EXPOSED_MEMCPY.name, ("exposed",)),)),
    ),
    Derived(
        "copy_bursts",
        "traceanalyzer.derive.copies.copy_bursts:copy_bursts",
        ("ledger_ops", "ledger_intervals", "copies", "api_calls"),
        COPY_BURSTS,
        NO_COPIES,
        label="{copies} [{managed?}migrations|copies] in {duration}, {bytes}[{idle?}, {idle} idle between them][, in {range_name}]",
        sample=_COPIES_AND_IDLE,
        empty_without="copies",
    ),
    Derived(
        "readbacks",
        "traceanalyzer.derive.copies.readbacks:readbacks",
        ("ledger_ops", "busy", "launches", "gaps", "host", "callers"),
        READBACKS,
        NO_COPIES,
        label="[{bytes} ]to the host[{pageable?}, pageable], {exposed} exposed[{idle?}, {idle} idle after it]"
        "[, in {operator}][ at {source}]",
        sample=_COPIES_AND_IDLE,
        empty_without="launches",
    ),
)
