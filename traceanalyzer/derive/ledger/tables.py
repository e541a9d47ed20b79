"""The ledger, and the gaps behind its idle lines."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, PROCESS, RANK, SPAN, THREAD, count, ns
from traceanalyzer.model.derived import Derived, Sample
from traceanalyzer.model.needs import NO_GPU_WORK
from traceanalyzer.model.schema import GPU_OPS, NAME, Column, TableSpec
from traceanalyzer.vocabulary.lines import (
    COMPUTE,
    EXPOSED_COMMUNICATION,
    EXPOSED_MEMCPY,
    EXPOSED_MEMSET,
    IDLE,
    IDLE_PREFIX,
)

LEDGER = TableSpec(
    "ledger",
    "one GPU's window, every nanosecond on exactly one line; rules read it as `window`",
    (
        RANK,
        DEVICE,
        Column("name", pa.string(), None, "marketing name of the GPU; null when not recorded"),
        *SPAN,
        ns(
            "duration",
            "length of the window: from the first GPU operation or, if earlier, the start of the first marked step, to the last one "
            "or, if later, the end of the last marked step that was recorded whole",
        ),
        ns("busy", "union of all GPU operations"),
        ns(COMPUTE.column, "union of compute kernels and graph-level executions"),
        ns("communication", "union of communication kernels"),
        ns(EXPOSED_COMMUNICATION.column, "communication that no compute covers"),
        ns("memcpy", "union of copies"),
        ns(EXPOSED_MEMCPY.column, "copies that neither compute nor communication covers"),
        ns(EXPOSED_MEMSET.column, "memsets that nothing else covers"),
        ns("idle", "nothing running"),
        ns("max_gap", "longest single idle stretch"),
        *(ns(line.column, f"idle time with cause {line.cause}") for line in IDLE.values()),
        ns("earlier_work", "idle time in which work from before the recording may have been running"),
        count("gpu_op_count", "GPU operations on the ledger"),
        count("kernel_count", "kernels among them"),
        ns("step_time", "mean time of the complete steps, from one step's end to the next's; null without any"),
        count("launch_count", "host calls that started GPU operations in the window (a graph launch counts once)"),
        count("step_count", "steps seen; 0 when none were found"),
        Column("kernels_per_step", pa.float64(), "count", "kernels per step; null without steps"),
        Column("launches_per_step", pa.float64(), "count", "launching calls per step; null without steps"),
    ),
)

LEDGER_INTERVALS = TableSpec(
    "ledger_intervals",
    "one stretch of a GPU's window on one ledger line; together they tile the window",
    (RANK, DEVICE, Column("line", NAME, None, "ledger line, e.g. compute or idle.input"), *SPAN),
)

GAPS = TableSpec(
    "gaps",
    "one part of an idle stretch of a GPU with a single cause; the rows of one `gap` tile that stretch",
    (
        RANK,
        DEVICE,
        *SPAN,
        Column("cause", NAME, None, "one of the idle causes of the ledger"),
        Column("gap", pa.int64(), None, "number of the idle stretch within the GPU's window"),
        ns("gap_duration", "length of the whole idle stretch"),
        Column("draining", pa.bool_(), None, "a host wait drained the GPU: nothing was queued when it returned"),
        Column(
            "earlier_work",
            pa.bool_(),
            None,
            "not known to be idle: nothing that the recording saw launched had run on the stream of the next operation, so work from "
            "before the recording may have been running",
        ),
        PROCESS,
        THREAD,
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
        Column(
            "source",
            NAME,
            None,
            "as frame, of the user's own code: train.py:41 (train_step); a function, where CPU samples tell it",
        ),
        Column(
            "place",
            NAME,
            None,
            "what ran and where it was called from: aten::item called from train.py:41 (train_step); an API call when nothing "
            "else is known; the function that ran, where nothing but CPU samples tells it",
        ),
        ns("place_duration", "how much of this part lies in its place; where CPU samples tell it, their share of it"),
        count(
            "samples",
            "CPU samples of the launching thread in this part, where it is untraced; null where none were recorded",
        ),
        Column(
            "sampled",
            NAME,
            None,
            "whose CPU samples the trace holds: thread (the launching one), others (of its process) or null",
        ),
        ns(
            "off_cpu",
            "how long the system did not run the launching thread, where this part is untraced; null where not recorded",
        ),
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
        ns(
            "launch_ns",
            "start of the call that launched the operation that ends the gap; null at the end of the window or without a launch record",
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
        Column(
            "previous_op_name", NAME, None, "operation that ended last before the gap; null at the front of the window"
        ),
        Column("next_op_name", NAME, None, "operation that ends the gap; null at the end of the window"),
        Column("next_op_kind", NAME, None, "kernel, memcpy, memset or graph"),
        ns("next_op_duration", "length of the operation that ends the gap"),
    ),
)

LEDGER_OPS = TableSpec(
    "ledger_ops",
    "one GPU operation on the ledger: its times can be, and its GPU is known",
    (*GPU_OPS.columns, Column("row", pa.int64(), None, "row of the operation in gpu_ops")),
)

WINDOWS = TableSpec(
    "windows",
    "the window of one GPU, which its ledger is of",
    tuple(column for column in LEDGER.columns if column.name in ("rank", "device", "name", "start_ns", "end_ns")),
)

GAP_SAMPLE = Sample(
    {"gap_duration": ("duration",), "gap": ("number",), "earlier_work": False},
    lines=((f"{IDLE_PREFIX}{{cause}}", ("duration",)),),
)
"""Also of tables whose rows are parts of gaps."""

DERIVED = (
    Derived("ledger_ops", "traceanalyzer.derive.ledger.busy:ledger_ops", ("gpu_ops",), LEDGER_OPS, internal=True),
    Derived("busy", "traceanalyzer.derive.ledger.busy:busy", ("ledger_ops",), kept=True),
    Derived(
        "communication_ops",
        "traceanalyzer.derive.ledger.busy:communication_ops",
        ("ledger_ops",),
        LEDGER_OPS,
        internal=True,
    ),
    Derived(
        "windows",
        "traceanalyzer.derive.ledger.windows:windows",
        ("ledger_ops", "devices", "steps", "launch_calls", "portions"),
        WINDOWS,
        kept=True,
        internal=True,
    ),
    Derived(
        "gaps",
        "traceanalyzer.derive.ledger.gap_table:gaps",
        (
            *("ledger_ops", "launches", "api_calls", "stream_events", "page_faults", "host", "host_steps", "windows"),
            "portions",
        ),
        GAPS,
        NO_GPU_WORK,
        kept=True,
        label="traceanalyzer.derive.ledger.labels:gap",
        sample=GAP_SAMPLE,
    ),
    Derived(
        "ledger_intervals",
        "traceanalyzer.derive.ledger.ledger:ledger_intervals",
        ("busy", "gaps", "portions"),
        LEDGER_INTERVALS,
        NO_GPU_WORK,
        kept=True,
    ),
    Derived(
        "ledger",
        "traceanalyzer.derive.ledger.ledger:ledger",
        ("ledger_ops", "busy", "ledger_intervals", "gaps", "launches", "step_stats", "windows", "portions"),
        LEDGER,
        NO_GPU_WORK,
        small=True,
    ),
)
