"""Steps as the GPU saw them."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, RANK, SPAN, count, ns
from traceanalyzer.derive.launches.tables import LAUNCHES
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.needs import NO_STEPS
from traceanalyzer.model.schema import NAME, STEPS, Column, TableSpec
from traceanalyzer.vocabulary.lines import LEDGER_LINES, column

_STEP = (
    RANK,
    DEVICE,
    Column("index", pa.int32(), None, "0-based order"),
    Column("name", NAME, None, "name of the range that marks the step on the host; null when found by repetition"),
    Column("method", NAME, None, "how the steps were found: annotation, nvtx or repetition"),
    *SPAN,
    Column(
        "complete",
        pa.bool_(),
        None,
        "all of it was recorded; false where something that it launched is missing, and for a first one without a mark, whose "
        "beginning is cut off",
    ),
    count("gpu_op_count", "GPU operations launched in the step"),
)

STEP_STATS = TableSpec(
    "step_stats",
    "one step as the GPU saw it: the operations launched in the host's step",
    (
        *_STEP,
        ns("done_ns", "when its operations and those of all steps before it had ended: `end_ns` or before"),
        count("kernel_count", "kernels among them"),
    ),
)

STEP_OPS = TableSpec(
    "step_ops",
    "one operation of a step",
    (
        RANK,
        DEVICE,
        Column("op", pa.int64(), None, "row of the operation in gpu_ops"),
        Column("step", pa.int64(), None, "index of the step in step_stats"),
    ),
)

STEP_LEDGER = TableSpec(
    "step_ledger",
    "one step as the GPU saw it, line by line, compared with the other steps of that GPU",
    (
        *_STEP,
        *(ns(column(line), f"time of the step on ledger line {line}") for line in LEDGER_LINES),
        ns("typical", "median duration of the steps that are compared: complete ones after warm-up; null when none"),
        ns("excess", "duration beyond the typical one; null for steps that are not compared"),
        Column("slow", pa.bool_(), None, "an outlier: much longer than the typical step"),
        Column(
            "line", NAME, None, "ledger line on which a slow step has most time beyond the median step; null for others"
        ),
        ns("line_excess", "that time"),
        Column(
            "place", NAME, None, "where the host was for most of a slow step's time on that line; null when not known"
        ),
        Column("reason", NAME, None, "line and place in words; null for steps that are not slow"),
        Column("rhythm", NAME, None, "at what rhythm slow steps come, such as: every 10th; null when at none"),
    ),
)

STEP_GROWTH = TableSpec(
    "step_growth",
    "how the steps of one GPU get longer or shorter from the first to the last; the span is that of the steps that are compared",
    (
        RANK,
        DEVICE,
        *SPAN,
        count("steps", "steps that are compared: complete ones after warm-up"),
        ns("slope", "by how much a step is longer than the one before it, by a robust line through all"),
        ns("first", "length of the first step on that line"),
        ns("last", "length of the last step on that line"),
        Column("chance", pa.float64(), "share", "probability of so clear a trend among steps in no particular order"),
        Column("steady", pa.bool_(), None, "the trend holds in the first half and in the second one"),
        Column(
            "line",
            NAME,
            None,
            "ledger line of which the last steps have most more than the first ones; null where steps do not grow",
        ),
        Column(
            "reason", NAME, None, "that in words, with the kernel, the copies or the place that grows; null likewise"
        ),
        Column("larger", pa.bool_(), None, "kernels have larger grids, about as the steps got longer; null likewise"),
    ),
)

DERIVED = (
    Derived(
        "step_calls",
        "traceanalyzer.derive.steps.steps:step_calls",
        ("steps", "launches", "ledger_ops"),
        LAUNCHES,
        internal=True,
    ),
    Derived(
        "host_steps",
        "traceanalyzer.derive.steps.steps:host_steps",
        ("steps", "step_calls", "ledger_ops"),
        STEPS,
        internal=True,
    ),
    Derived(
        "step_ops", "traceanalyzer.derive.steps.steps:step_ops", ("host_steps", "step_calls"), STEP_OPS, internal=True
    ),
    Derived(
        "step_stats",
        "traceanalyzer.derive.steps.steps:step_stats",
        ("host_steps", "step_calls", "launch_calls", "ledger_ops", "links", "windows"),
        STEP_STATS,
        NO_STEPS,
        small=True,
    ),
    Derived(
        "step_ledger",
        "traceanalyzer.derive.steps.step_ledger:step_ledger",
        ("step_stats", "ledger_intervals", "gaps"),
        STEP_LEDGER,
        NO_STEPS,
        small=True,
        label="step {index}: {duration}[, {excess} more, mostly {reason:text}]",
    ),
    Derived(
        "step_growth",
        "traceanalyzer.derive.steps.step_growth:step_growth",
        ("step_ledger", "ledger_ops", "step_ops", "gaps"),
        STEP_GROWTH,
        NO_STEPS,
        label="{steps} steps, from {first} to {last}",
        empty_without="step_ledger",
    ),
)
