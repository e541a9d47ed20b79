"""Operators of the framework, and what else takes host time by name."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import PROCESS, RANK, SPAN, count, ns
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.needs import NO_CALLS, NO_RANGES
from traceanalyzer.model.schema import NAME, Column, TableSpec

OPERATOR_SHAPES = TableSpec(
    "operator_shapes",
    "a rank whose operators were recorded with the shapes of their inputs",
    (RANK, count("count", "ranges with shapes")),
)

OPERATOR_STATS = TableSpec(
    "operator_stats",
    "one operator, annotation or NVTX range by name, on one rank",
    (
        RANK,
        Column("name", NAME, None, "name as recorded"),
        Column("category", NAME, None, "operator, annotation, nvtx or mpi"),
        count("count", "how often it ran"),
        ns("total", "time in it, what it calls included; counted once where it calls itself"),
        ns("self", "time in it and in no range that it contains, Python frames aside"),
        ns("self_calls", "part of that in calls of the CUDA or HIP API, waiting for the GPU included"),
        ns("gpu_time", "GPU time of the operations launched in it, what it calls included"),
        ns("self_gpu_time", "GPU time of the operations that it launched itself"),
        Column("shapes", NAME, None, "input shapes that it had most often, as recorded (JSON); null when not recorded"),
        count("shapes_count", "how often it had these"),
        count("distinct_shapes", "how many different ones it had; 0 when not recorded"),
    ),
)

SYNC_STATS = TableSpec(
    "sync_stats",
    "calls of one name on one rank that waited for the GPU",
    (
        RANK,
        Column("name", NAME, None, "name of the call"),
        count("count", "how many of them waited"),
        ns("total", "host time in them"),
        ns("longest", "the longest of them"),
        ns("idle", "idle time of the rank's GPUs that is put down to them"),
        count("gap_count", "parts of gaps that this idle time consists of"),
        Column("place", NAME, None, "what asked for most of that, as in `gaps`; null when there is none"),
    ),
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

DERIVED = (
    Derived(
        "operator_shapes",
        "traceanalyzer.derive.operators.patterns:operator_shapes",
        ("host_ranges",),
        OPERATOR_SHAPES,
        Needs(
            "operator_shapes",
            "the trace holds no input shapes of operators",
            settings=("shapes",),
        ),
    ),
    Derived(
        "operator_stats",
        "traceanalyzer.derive.operators.host_stats:operator_stats",
        ("host_ranges", "api_calls", "launches"),
        OPERATOR_STATS,
        NO_RANGES,
    ),
    Derived(
        "sync_stats",
        "traceanalyzer.derive.operators.host_stats:sync_stats",
        ("api_calls", "waits", "gaps"),
        SYNC_STATS,
        NO_CALLS,
    ),
    Derived(
        "patterns",
        "traceanalyzer.derive.operators.patterns:patterns",
        ("host_ranges", "callers", "launches", "ledger_ops"),
        PATTERNS,
        NO_RANGES,
        label="traceanalyzer.derive.operators.labels:pattern",
        empty_without="launches",
    ),
)
