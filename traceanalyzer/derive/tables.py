"""The derived tables: what the rules read beside the event tables. Declared once, here; each is computed in one module of this room.

A table with `start_ns` and `end_ns` also has a virtual column `duration` (ns) in rule expressions.
"""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.model.schema import NAME, Column, TableSpec

IDLE_CAUSES = (
    "turnaround",
    "dependency",
    "launch_latency",
    "input",
    "memory_management",
    "synchronization",
    "host_work",
    "host_untraced",
    "profiler",
    "unattributed",
)
LEDGER_LINES = (
    "compute",
    "exposed_communication",
    "exposed_memcpy",
    "exposed_memset",
    *(f"idle.{cause}" for cause in IDLE_CAUSES),
)


def _ns(name: str, doc: str) -> Column:
    return Column(name, pa.int64(), "ns", doc)


def _count(name: str, doc: str) -> Column:
    return Column(name, pa.int64(), "count", doc)


_RANK = Column("rank", pa.int32(), None, "rank of the job, or the file's ordinal when the rank is unknown")
_DEVICE = Column("device", pa.int32(), None, "index of the physical GPU on its host")
_PROCESS = Column("process", pa.int64(), None, "process within its file")
_THREAD = Column("thread", pa.int64(), None, "launching host thread; null when there is no launch record")
_STREAM = Column("stream", pa.int64(), None, "stream within (process, device, context)")
_SPAN = (_ns("start_ns", "start"), _ns("end_ns", "end, exclusive"))

LEDGER = TableSpec(
    "ledger",
    "one GPU's window, every nanosecond on exactly one line; rules read it as `window`",
    (
        _RANK,
        _DEVICE,
        Column("name", pa.string(), None, "marketing name of the GPU; null when not recorded"),
        *_SPAN,
        _ns("duration", "length of the window: first GPU operation start to last GPU operation end"),
        _ns("busy", "union of all GPU operations"),
        _ns("compute", "union of compute kernels and graph-level executions"),
        _ns("communication", "union of communication kernels"),
        _ns("exposed_communication", "communication that no compute covers"),
        _ns("memcpy", "union of copies"),
        _ns("exposed_memcpy", "copies that neither compute nor communication covers"),
        _ns("exposed_memset", "memsets that nothing else covers"),
        _ns("idle", "nothing running"),
        _ns("max_gap", "longest single idle stretch"),
        *(_ns(f"idle_{cause}", f"idle time with cause {cause}") for cause in IDLE_CAUSES),
        _count("gpu_op_count", "GPU operations on the ledger"),
        _count("kernel_count", "kernels among them"),
        _count("launch_count", "host calls that started GPU operations in the window (a graph launch counts once)"),
        _count("step_count", "steps seen; 0 when none were found"),
        Column("kernels_per_step", pa.float64(), "count", "kernels per step; null without steps"),
        Column("launches_per_step", pa.float64(), "count", "launching calls per step; null without steps"),
    ),
)

LEDGER_INTERVALS = TableSpec(
    "ledger_intervals",
    "one stretch of a GPU's window on one ledger line; together they tile the window",
    (_RANK, _DEVICE, Column("line", NAME, None, "ledger line, e.g. compute or idle.input"), *_SPAN),
)

LAUNCHES = TableSpec(
    "launches",
    "one (API call, GPU operation) pair; a graph launch has many",
    (
        _RANK,
        _PROCESS,
        Column("thread", pa.int64(), None, "thread of the call"),
        _ns("start_ns", "start of the call"),
        _ns("end_ns", "return of the call"),
        Column("api_name", NAME, None, "name of the call"),
        Column("op", pa.int64(), None, "row of the operation in gpu_ops"),
        _DEVICE,
        _STREAM,
        _ns("op_start_ns", "start of the operation on the GPU"),
        _ns("op_end_ns", "end of the operation on the GPU"),
        Column("op_kind", NAME, None, "kernel, memcpy, memset or graph"),
        _ns("queue_delay", "from the start of the call to the start of the operation"),
        Column("first", pa.bool_(), None, "true for the first operation of the call"),
    ),
)

CLOCKS = TableSpec(
    "clocks",
    "one rank whose GPU and host clocks disagree",
    (
        _RANK,
        Column("early", pa.int64(), "count", "operations that begin before the call that launched them"),
        Column("most_early", pa.int64(), "ns", "by how much, at most"),
        Column("late", pa.int64(), "count", "waits for a device that return before what they waited for ends"),
        Column("most_late", pa.int64(), "ns", "by how much, at most"),
    ),
)

GAPS = TableSpec(
    "gaps",
    "one part of an idle stretch of a GPU with a single cause; the rows of one `gap` tile that stretch",
    (
        _RANK,
        _DEVICE,
        *_SPAN,
        Column("cause", NAME, None, "one of the idle causes of the ledger"),
        Column("gap", pa.int64(), None, "number of the idle stretch within the GPU's window"),
        _ns("gap_duration", "length of the whole idle stretch"),
        Column("draining", pa.bool_(), None, "a host wait drained the GPU: nothing was queued when it returned"),
        _PROCESS,
        _THREAD,
        Column(
            "range_name",
            NAME,
            None,
            "innermost named range on the launching thread that covers most of this part; null when none",
        ),
        Column(
            "phase", NAME, None, "outermost annotation or NVTX range on that thread, step markers aside; null when none"
        ),
        Column(
            "api_name", NAME, None, "call that launched the operation that ends the gap; null without a launch record"
        ),
        Column("wait_name", NAME, None, "host call that waited for the GPU, where the cause is synchronization"),
        Column("previous_op_name", NAME, None, "operation that ended last before the gap"),
        Column("next_op_name", NAME, None, "operation that ends the gap"),
        Column("next_op_kind", NAME, None, "kernel, memcpy, memset or graph"),
        _ns("next_op_duration", "length of the operation that ends the gap"),
    ),
)

COPIES = TableSpec(
    "copies",
    "one memory copy on the ledger",
    (
        _RANK,
        _DEVICE,
        _PROCESS,
        _STREAM,
        *_SPAN,
        Column("copy_kind", NAME, None, "htod, dtoh, dtod, ptop, uvm_htod, ..."),
        Column("bytes", pa.int64(), "bytes", "bytes moved"),
        Column("src_memory", NAME, None, "pageable, pinned, device, managed, array or unknown"),
        Column("dst_memory", NAME, None, "as src_memory, for the destination"),
        Column("pageable", pa.bool_(), None, "the host side is pageable memory"),
        _ns("exposed", "time of this copy that neither compute nor communication covers"),
        Column("bandwidth", pa.float64(), None, "bytes per second"),
        Column(
            "compute_stream",
            pa.bool_(),
            None,
            "compute kernels run on the same stream, so this copy can never overlap them",
        ),
        Column("range_name", NAME, None, "innermost named range around the call that started it; null when none"),
    ),
)

COMMUNICATION = TableSpec(
    "communication",
    "one communication kernel on the ledger",
    (
        _RANK,
        _DEVICE,
        _PROCESS,
        _STREAM,
        *_SPAN,
        Column("name", NAME, None, "kernel name"),
        _ns("exposed", "time of this kernel that no compute covers"),
        Column("compute_stream", pa.bool_(), None, "compute kernels run on the same stream"),
    ),
)

KERNEL_STATS = TableSpec(
    "kernel_stats",
    "one kernel name on one GPU",
    (
        _RANK,
        _DEVICE,
        Column("name", NAME, None, "kernel name"),
        Column("class", NAME, None, "compute or communication"),
        _count("count", "how often it ran"),
        _ns("total", "sum of its durations"),
        _ns("mean", "mean duration, rounded down"),
        _ns("longest", "longest duration"),
        Column("share", pa.float64(), "share", "total over the window (sums can exceed 1 when kernels overlap)"),
    ),
)

STEP_STATS = TableSpec(
    "step_stats",
    "one step as the GPU saw it: the operations launched in the host's step",
    (
        _RANK,
        _DEVICE,
        Column("index", pa.int32(), None, "0-based order"),
        Column("name", NAME, None, "name of the range that marks the step on the host"),
        Column("method", NAME, None, "how the steps were found: annotation, nvtx or repetition"),
        *_SPAN,
        Column("complete", pa.bool_(), None, "a next step ends it; false for the last step, whose end is cut off"),
        _count("gpu_op_count", "GPU operations launched in the step"),
        _count("kernel_count", "kernels among them"),
    ),
)

DERIVED_TABLES: dict[str, TableSpec] = {
    spec.name: spec
    for spec in (LEDGER, LEDGER_INTERVALS, LAUNCHES, CLOCKS, GAPS, COPIES, COMMUNICATION, KERNEL_STATS, STEP_STATS)
}
