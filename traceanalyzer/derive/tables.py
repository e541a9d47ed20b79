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
            "operator", NAME, None, "innermost operator that covers at least half of this part; null when none does"
        ),
        Column("annotation", NAME, None, "as operator, of annotations and NVTX ranges that mark no step"),
        Column("frame", NAME, None, "as operator, of Python frames"),
        Column("source", NAME, None, "as frame, of the user's own code: train.py:41 (train_step)"),
        Column(
            "place",
            NAME,
            None,
            "what ran and where it was called from: aten::item called from train.py:41 (train_step); an API call when nothing "
            "else is known",
        ),
        _ns("place_duration", "how much of this part lies in its place"),
        Column(
            "activity",
            NAME,
            None,
            "what the host was at: compilation, garbage_collection, first_use, checkpoint, optimizer, evaluation or null",
        ),
        Column("phase", NAME, None, "as annotation, the outermost instead of the innermost"),
        Column("step", pa.int64(), None, "index of the host step in which it begins; null outside steps"),
        Column(
            "call_name", NAME, None, "outermost API call that covers at least half of this part; null when none does"
        ),
        Column(
            "api_name", NAME, None, "call that launched the operation that ends the gap; null without a launch record"
        ),
        Column(
            "launching_operator",
            NAME,
            None,
            "outermost operator around that call; null when there is none or the call had returned before the gap",
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
        _ns("exposed", "time of this copy that neither compute, communication nor an earlier copy covers"),
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

COPY_BURSTS = TableSpec(
    "copy_bursts",
    "a run of two or more copies between host and device, hardly anything between them: small ones, or migrations of managed memory",
    (
        _RANK,
        _DEVICE,
        _PROCESS,
        *_SPAN,
        Column("managed", pa.bool_(), None, "true: migrations of managed memory; false: copies, each under 1 MiB"),
        Column("copy_kind", NAME, None, "htod or dtoh, with uvm_ before it for migrations: what most of them are"),
        _count("copies", "copies in the run"),
        Column("bytes", pa.int64(), "bytes", "bytes moved"),
        Column("median_bytes", pa.int64(), "bytes", "size of the middle one of the run"),
        _ns("exposed", "time of the run in which only copies ran"),
        _ns("idle", "time between the copies in which the GPU waited for the host"),
        Column(
            "range_name", NAME, None, "innermost named range around the call that started the first; null when none"
        ),
    ),
)

READBACKS = TableSpec(
    "readbacks",
    "a copy to the host that the host waited for, with the idle time after it that the GPU's own work could hide",
    (
        _RANK,
        _DEVICE,
        _PROCESS,
        _THREAD,
        *_SPAN,
        Column("bytes", pa.int64(), "bytes", "bytes moved"),
        Column("pageable", pa.bool_(), None, "the host side is pageable memory"),
        _ns("exposed", "time of the copy that neither compute, communication nor an earlier one covers"),
        _ns(
            "idle",
            "time after it in which the GPU waited for the host, as far as the work before the copy could hide it",
        ),
        Column("last", pa.bool_(), None, "no kernel ran on the GPU after it"),
        Column("operator", NAME, None, "outermost operator around the call; null when none was recorded"),
        Column("source", NAME, None, "innermost line of the program's own code around the call; null without stacks"),
    ),
)

OPERATOR_SHAPES = TableSpec(
    "operator_shapes",
    "a rank whose operators were recorded with the shapes of their inputs",
    (_RANK, _count("count", "ranges with shapes")),
)

PATTERNS = TableSpec(
    "patterns",
    "one place where operators follow a pattern that is known to waste work",
    (
        _RANK,
        Column("device", pa.int32(), None, "GPU of the first operation launched there"),
        _PROCESS,
        Column("thread", pa.int64(), None, "thread of the operators"),
        *_SPAN,
        Column(
            "pattern",
            NAME,
            None,
            "extra_device_copy, loop_indexing, gradients_zeroed, bias_before_batch_norm or matmul_alignment",
        ),
        Column("operator", NAME, None, "the operator that shows it"),
        _count("count", "how often it repeats there: rounds of a loop, gradients zeroed; else 1"),
        _ns("gpu_time", "GPU time of the operations launched there"),
        Column("detail", NAME, None, "shape of what was copied, indexed or multiplied; null where it does not matter"),
        Column("source", NAME, None, "innermost line of the program's own code around it; null without stacks"),
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
        Column("kind", NAME, None, "all-reduce, all-gather, reduce-scatter, all-to-all, send, ...; null when not told"),
        Column("group", NAME, None, "process group; null when not told"),
        Column("group_ranks", NAME, None, "ranks in the group as recorded (JSON); null when not told"),
        _count("group_size", "ranks in the group; null when not told"),
        Column("sequence", pa.int64(), None, "sequence number within the group; null when the trace carries none"),
        Column("dtype", NAME, None, "element type as recorded"),
        Column("bytes", pa.int64(), "bytes", "size of the message: the larger of what goes in and what comes out"),
        Column("step", pa.int64(), None, "index of the step that launched it; null outside steps"),
        _ns("exposed", "time of this kernel that no compute covers"),
        Column("compute_stream", pa.bool_(), None, "the program computes on the same stream"),
        Column(
            "serialized",
            pa.bool_(),
            None,
            "on a stream of its own, but compute ended just before the stretch of communication around it and went on just after it",
        ),
        Column(
            "instance", pa.int64(), None, "number of the collective that this is one rank's part of; null unmatched"
        ),
        _count("ranks", "ranks whose parts of the collective were found; null unmatched"),
        Column("certainty", NAME, None, "medium: matched by size and by clocks; low: by clocks alone; null unmatched"),
        _ns("transfer", "shortest duration over the ranks: what the transfer itself takes; null unmatched"),
        _ns("wait", "the rest of the duration: waiting for the last rank to arrive; null unmatched"),
        _ns("exposed_wait", "part of the wait that no compute covers; null unmatched"),
        _ns("spread", "between the first and the last rank's end after aligning the clocks; null unmatched"),
        Column("late_rank", pa.int32(), None, "rank that arrived last; null unmatched"),
        Column("late_device", pa.int32(), None, "device of that rank"),
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
        _RANK,
        _DEVICE,
        *_SPAN,
        Column("kind", NAME, None, "all-reduce, all-gather, ...; null when not told"),
        Column("instance", pa.int64(), None, "number of the collective; null when it was not found on other ranks"),
        _count("ranks", "ranks whose parts of the collective were found; null when unmatched"),
        Column("certainty", NAME, None, "medium: matched by size and by clocks; low: by clocks alone; null unmatched"),
        _ns("wait", "waiting for the last rank to arrive; null when unmatched"),
        _ns("exposed_wait", "part of the wait that no compute covers; null when unmatched"),
        _ns("transfer", "what the transfer itself takes; null when unmatched"),
        _ns("spread", "between the first and the last rank's end after aligning the clocks; null when unmatched"),
        Column("late_rank", pa.int32(), None, "rank that arrived last; null when unmatched"),
        Column("late_device", pa.int32(), None, "device of that rank"),
        Column("late", NAME, None, "name of that rank or, when the trace does not say ranks, of its GPU"),
        _ns("late_start_ns", "from when on the others waited for it, on its own clock"),
        _ns("late_end_ns", "when it arrived"),
        Column("late_line", NAME, None, "ledger line on which it spent most of that time"),
        Column(
            "late_doing", NAME, None, "kernel or host range that took most of such time on that rank; null when none"
        ),
        _ns("imbalance", "part of the wait in which the last rank computed longer since the collective before"),
        Column(
            "score",
            pa.float64(),
            None,
            "how far the last rank's compute between collectives lies from the median rank's, in robust deviations",
        ),
        _ns("job_window", "windows of all GPUs that communicate, added up"),
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
        Column(
            "family",
            NAME,
            None,
            "what it does: matmul, convolution, attention, elementwise, ..., communication or other",
        ),
        _count("count", "how often it ran"),
        _ns("total", "sum of its durations"),
        _ns("mean", "mean duration, rounded down"),
        _ns("longest", "longest duration"),
        Column("share", pa.float64(), "share", "total over the window (sums can exceed 1 when kernels overlap)"),
    ),
)

KERNELS = TableSpec(
    "kernels",
    "one compute kernel on the ledger, with what its name says about it",
    (
        _RANK,
        _DEVICE,
        _PROCESS,
        _STREAM,
        *_SPAN,
        Column("name", NAME, None, "kernel name"),
        Column("family", NAME, None, "what it does: matmul, convolution, attention, elementwise, ... or other"),
        Column(
            "tensor_cores",
            pa.bool_(),
            None,
            "matrix work on tensor cores; null when the name does not say or it is none",
        ),
        Column(
            "precision", NAME, None, "type of a matrix kernel's inputs: fp32, tf32, bf16, fp16, ...; null when unknown"
        ),
        Column("compiler_fused", pa.bool_(), None, "made by a compiler that fuses operators"),
        Column("converts", pa.bool_(), None, "only converts a tensor between NCHW and NHWC"),
        Column(
            "operator", NAME, None, "innermost range around its launch, for matrix work and conversions; null when none"
        ),
        _count("blocks", "blocks of its grid; null when not recorded"),
        _count("sm_count", "streaming multiprocessors of its GPU; null when not recorded"),
        Column("fill", pa.float64(), "share", "blocks over streaming multiprocessors, can exceed 1; null when unknown"),
        _ns("alone", "time in which no other kernel ran on the GPU"),
        _count("compute_capability", "of the GPU, times ten (90 for sm_90); null when not recorded"),
        Column("gpu_has_tensor_cores", pa.bool_(), None, "whether the GPU has tensor cores; null when nothing says"),
    ),
)

KERNEL_CHAINS = TableSpec(
    "kernel_chains",
    "neighbouring kernels on one stream, within a step, that only read and write memory and that no compiler has fused",
    (
        _RANK,
        _DEVICE,
        _PROCESS,
        _STREAM,
        *_SPAN,
        _count("kernels", "kernels of the chain"),
        _count("distinct", "different kernel names among them"),
        _ns("busy", "sum of their durations"),
        _ns("longest_two", "durations of the two longest"),
        Column("name", NAME, None, "name of the longest"),
    ),
)

ATTENTION_BLOCKS = TableSpec(
    "attention_blocks",
    "one attention computed in pieces: from the first of its matrix products to the end of the last, on one stream",
    (
        _RANK,
        _DEVICE,
        _PROCESS,
        _STREAM,
        *_SPAN,
        Column("direction", NAME, None, "forward or backward"),
        _count("kernels", "operations of the block: matrix products, softmax and what lies between"),
        _ns("matmul", "time of the matrix products among them"),
        Column("name", NAME, None, "name of the softmax kernel, or of the exponential where softmax is written out"),
    ),
)

STEP_STATS = TableSpec(
    "step_stats",
    "one step as the GPU saw it: the operations launched in the host's step",
    (
        _RANK,
        _DEVICE,
        Column("index", pa.int32(), None, "0-based order"),
        Column("name", NAME, None, "name of the range that marks the step on the host; null when found by repetition"),
        Column("method", NAME, None, "how the steps were found: annotation, nvtx or repetition"),
        *_SPAN,
        Column(
            "complete", pa.bool_(), None, "it has a step before it; false for the first one, whose beginning is cut off"
        ),
        _count("gpu_op_count", "GPU operations launched in the step"),
        _count("kernel_count", "kernels among them"),
    ),
)

STEP_LEDGER = TableSpec(
    "step_ledger",
    "one step as the GPU saw it, line by line, compared with the other steps of that GPU",
    (
        _RANK,
        _DEVICE,
        Column("index", pa.int32(), None, "0-based order"),
        Column("name", NAME, None, "name of the range that marks the step on the host; null when found by repetition"),
        Column("method", NAME, None, "how the steps were found: annotation, nvtx or repetition"),
        *_SPAN,
        Column(
            "complete", pa.bool_(), None, "it has a step before it; false for the first one, whose beginning is cut off"
        ),
        _count("gpu_op_count", "GPU operations launched in the step"),
        *(_ns(line.replace(".", "_"), f"time of the step on ledger line {line}") for line in LEDGER_LINES),
        _ns("typical", "median duration of the steps that are compared: complete ones after warm-up; null when none"),
        _ns("excess", "duration beyond the typical one; null for steps that are not compared"),
        Column("slow", pa.bool_(), None, "an outlier: much longer than the typical step"),
        Column(
            "line", NAME, None, "ledger line on which a slow step has most time beyond the median step; null for others"
        ),
        _ns("line_excess", "that time"),
        Column(
            "place", NAME, None, "where the host was for most of a slow step's time on that line; null when not known"
        ),
        Column("reason", NAME, None, "line and place in words; null for steps that are not slow"),
        Column("rhythm", NAME, None, "at what rhythm slow steps come, such as: every 10th; null when at none"),
    ),
)

MEMORY_STATS = TableSpec(
    "memory_stats",
    "the memory of one GPU; the span is the moment when most of it was in use",
    (
        _RANK,
        _DEVICE,
        *_SPAN,
        Column("capacity", pa.int64(), "bytes", "memory of the device; null when not recorded"),
        Column("peak_reserved", pa.int64(), "bytes", "most that was taken from the driver"),
        Column("peak_allocated", pa.int64(), "bytes", "most that was in use; null when only the driver was recorded"),
        Column("unused", pa.int64(), "bytes", "taken from the driver but not in use at that moment; null likewise"),
    ),
)

MEMORY_GROWTH = TableSpec(
    "memory_growth",
    "one step of the host and the memory of one GPU that it left in use",
    (
        _RANK,
        _DEVICE,
        Column("index", pa.int32(), None, "0-based order"),
        *_SPAN,
        Column("allocated", pa.int64(), "bytes", "in use when the next step began"),
        Column("growth", pa.int64(), "bytes", "by how much more than when this one began"),
        Column("kept", pa.int64(), "bytes", "allocated in the step and not released as long as was recorded"),
        _count(
            "steps_left",
            "how many more steps like it fit into the device; null when it does not grow or nobody said how large it is",
        ),
        Column(
            "place", NAME, None, "where most of what was kept was allocated; null when not known, or when nothing grows"
        ),
    ),
)

DERIVED_TABLES: dict[str, TableSpec] = {
    spec.name: spec
    for spec in (
        LEDGER,
        LEDGER_INTERVALS,
        LAUNCHES,
        CLOCKS,
        GAPS,
        COPIES,
        COPY_BURSTS,
        READBACKS,
        OPERATOR_SHAPES,
        PATTERNS,
        COMMUNICATION,
        COLLECTIVE_WAITS,
        KERNEL_STATS,
        KERNELS,
        KERNEL_CHAINS,
        ATTENTION_BLOCKS,
        STEP_STATS,
        STEP_LEDGER,
        MEMORY_STATS,
        MEMORY_GROWTH,
    )
}
