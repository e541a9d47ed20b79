"""Operators of the framework."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.tables.columns import PROCESS, RANK, SPAN, count, ns
from traceanalyzer.model.schema import NAME, Column, TableSpec

OPERATOR_SHAPES = TableSpec(
    "operator_shapes",
    "a rank whose operators were recorded with the shapes of their inputs",
    (RANK, count("count", "ranges with shapes")),
)

PATTERNS = TableSpec(
    "patterns",
    "one place where operators follow a pattern that is known to waste work",
    (
        RANK,
        Column("device", pa.int32(), None, "GPU of the first operation launched there"),
        PROCESS,
        Column("thread", pa.int64(), None, "thread of the operators"),
        *SPAN,
        Column(
            "pattern",
            NAME,
            None,
            "extra_device_copy, loop_indexing, gradients_zeroed, bias_before_batch_norm or matmul_alignment",
        ),
        Column("operator", NAME, None, "the operator that shows it"),
        count("count", "how often it repeats there: rounds of a loop, gradients zeroed; else 1"),
        ns("gpu_time", "GPU time of the operations launched there"),
        Column("detail", NAME, None, "shape of what was copied, indexed or multiplied; null where it does not matter"),
        Column("source", NAME, None, "innermost line of the program's own code around it; null without stacks"),
    ),
)
