"""The work of one unit, by which captures of two programs are compared."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, RANK, SPAN, count, ns
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import NAME, Column, TableSpec
from traceanalyzer.vocabulary.lines import LEDGER_LINES, column

WORK_UNITS = TableSpec(
    "work_units",
    "one unit of work of a GPU: a step, once through the sequence of kernels that repeats or, without either, all of the window",
    (
        RANK,
        DEVICE,
        Column("kind", NAME, None, "step, repetition or capture"),
        Column("method", NAME, None, "how steps were found: annotation, nvtx or repetition; null for other units"),
        Column("name", NAME, None, "name of the step; null for other units"),
        *SPAN,
        Column("timed", pa.bool_(), None, "false for a first step whose beginning was not recorded, or that warms up"),
        count("kernels", "kernels and graph launches of it"),
        *(ns(column(line), f"time of it on ledger line {line}") for line in LEDGER_LINES),
    ),
)

WORK_OPS = TableSpec(
    "work_ops",
    "one GPU operation of a timed unit",
    (
        RANK,
        DEVICE,
        Column("op", pa.int64(), None, "row of the operation in gpu_ops"),
        Column("unit", pa.int64(), None, "which of the timed units of its GPU, counted from 0"),
    ),
)

WORK_NAMES = TableSpec(
    "work_names",
    "operations of one name per timed unit of a GPU, by what the name is of",
    (
        RANK,
        DEVICE,
        Column(
            "group", NAME, None, "family (kernels by what they do, copies and memsets), kernel, operator or collective"
        ),
        Column("name", NAME, None, "the name, without what changes from run to run"),
        Column("count", pa.float64(), "count", "how many of them a unit"),
        ns("time", "their durations added up, a unit"),
        ns("deviation", "standard deviation of that from unit to unit; null for a single unit"),
    ),
)

WORK_SHAPES = TableSpec(
    "work_shapes",
    "input shapes of one operator that computes with weights",
    (
        RANK,
        Column("operator", NAME, None, "operator"),
        Column("shapes", pa.string(), None, "its input shapes as recorded (JSON)"),
        Column("count", pa.float64(), "count", "how often a step has them; over all of the recording without steps"),
    ),
)

DERIVED = (
    Derived(
        "work_units",
        "traceanalyzer.derive.work.work:work_units",
        ("step_ledger", "ledger_ops", "ledger_intervals", "step_ops"),
        WORK_UNITS,
        internal=True,
    ),
    Derived(
        "work_ops",
        "traceanalyzer.derive.work.work:work_ops",
        ("work_units", "ledger_ops", "step_ops", "step_ledger"),
        WORK_OPS,
        internal=True,
    ),
    Derived(
        "work_names",
        "traceanalyzer.derive.work.work:work_names",
        ("work_units", "work_ops", "ledger_ops", "launches", "host", "communication"),
        WORK_NAMES,
        internal=True,
    ),
    Derived(
        "work_shapes",
        "traceanalyzer.derive.work.work:work_shapes",
        ("host_ranges", "host_steps"),
        WORK_SHAPES,
        internal=True,
    ),
)
