"""Compute kernels, alone and in patterns."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, PROCESS, RANK, SPAN, STREAM, count, ns
from traceanalyzer.model.derived import Derived, Needs, Sample
from traceanalyzer.model.needs import NO_KERNELS
from traceanalyzer.model.schema import NAME, Column, TableSpec

KERNEL_STATS = TableSpec(
    "kernel_stats",
    "one kernel name on one GPU",
    (
        RANK,
        DEVICE,
        Column("name", NAME, None, "kernel name"),
        Column("class", NAME, None, "compute or communication"),
        Column(
            "family",
            NAME,
            None,
            "what it does: matmul, convolution, attention, elementwise, ..., communication or other",
        ),
        count("count", "how often it ran"),
        ns("total", "sum of its durations"),
        ns("mean", "mean duration, rounded down"),
        ns("longest", "longest duration"),
        Column("share", pa.float64(), "share", "total over the window (sums can exceed 1 when kernels overlap)"),
    ),
)

KERNELS = TableSpec(
    "kernels",
    "one compute kernel on the ledger, with what its name says about it",
    (
        RANK,
        DEVICE,
        PROCESS,
        STREAM,
        *SPAN,
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
        count("blocks", "blocks of its grid; null when not recorded"),
        count("sm_count", "streaming multiprocessors of its GPU; null when not recorded"),
        Column("fill", pa.float64(), "share", "blocks over streaming multiprocessors, can exceed 1; null when unknown"),
        Column("block", NAME, None, "threads of a block in x, y, z, such as 16 × 16; null when not recorded"),
        count("threads", "threads of a block; null when not recorded"),
        count("warp", "threads of its GPU that run in step: a warp or wavefront; null when the vendor is not known"),
        Column(
            "lanes",
            pa.float64(),
            "share",
            "threads of a block over the lanes of the warps that it takes; null when unknown",
        ),
        count("runs", "compute kernels of this name on the GPU"),
        ns("alone", "time in which no other kernel ran on the GPU"),
        count("compute_capability", "of the GPU, times ten (90 for sm_90); null when not recorded"),
        Column("gpu_has_tensor_cores", pa.bool_(), None, "whether the GPU has tensor cores; null when nothing says"),
    ),
)

KERNEL_PACE = TableSpec(
    "kernel_pace",
    "a GPU on which the same kernels (name, grid and block) take longer in the later part of a run, where they are slowest, than "
    "before; the span is that part",
    (
        RANK,
        DEVICE,
        *SPAN,
        ns("before", "length of the part before it"),
        count("names", "kernel names that are compared: alone on the GPU, three times or more in either part"),
        count("slower_names", "of them those that take at least 1.1 times as long"),
        Column("ratio", pa.float64(), None, "how many times as long they take, the median by time"),
        Column(
            "slower", pa.float64(), "share", "part of the compared time that is of kernels at least 1.1 times as long"
        ),
        Column("alike", pa.float64(), "share", "part of it of kernels within 1.15 times of that median"),
        Column(
            "steady",
            pa.bool_(),
            None,
            "they get slower all the time, as work that grows does, and not from some moment on",
        ),
        Column(
            "larger",
            pa.float64(),
            "share",
            "part of the time of kernels, by name, whose grids are larger in the later part",
        ),
        ns("lost", "by how much the kernels of the later part would be shorter at the pace of before"),
        Column(
            "clock_before", pa.float64(), None, "mean sampled clock of the GPU before, in MHz; null when not sampled"
        ),
        Column("clock_after", pa.float64(), None, "and in the later part"),
    ),
)

KERNEL_TIMES = TableSpec(
    "kernel_times",
    "compute kernels of one name, grid and block that ran alone on a GPU",
    (
        RANK,
        DEVICE,
        Column("uuid", pa.string(), None, "unique id of the GPU; null when not recorded"),
        Column("gpu", NAME, None, "its model; null when not recorded"),
        Column("name", NAME, None, "kernel name"),
        count("blocks", "blocks of its grid; null when not recorded"),
        count("threads", "threads of a block; null when not recorded"),
        count("count", "how often it ran"),
        ns("time", "sum of its durations"),
        ns("computing", "sum of the durations of all compute kernels of the GPU"),
    ),
)

KERNEL_CHAINS = TableSpec(
    "kernel_chains",
    "neighbouring kernels on one stream, within a step, that only read and write memory and that no compiler has fused",
    (
        RANK,
        DEVICE,
        PROCESS,
        STREAM,
        *SPAN,
        count("kernels", "kernels of the chain"),
        count("distinct", "different kernel names among them"),
        ns("busy", "sum of their durations"),
        ns("longest_two", "durations of the two longest"),
        Column("name", NAME, None, "name of the longest"),
    ),
)

ATTENTION_BLOCKS = TableSpec(
    "attention_blocks",
    "one attention computed in pieces: from the first of its matrix products to the end of the last, on one stream",
    (
        RANK,
        DEVICE,
        PROCESS,
        STREAM,
        *SPAN,
        Column("direction", NAME, None, "forward or backward"),
        count("kernels", "operations of the block: matrix products, softmax and what lies between"),
        ns("matmul", "time of the matrix products among them"),
        Column("name", NAME, None, "name of the softmax kernel, or of the exponential where softmax is written out"),
    ),
)

DERIVED = (
    Derived(
        "kernel_stats",
        "traceanalyzer.derive.kernels.kernels:kernel_stats",
        ("ledger_ops",),
        KERNEL_STATS,
        Needs("kernel_stats", "the trace holds no kernels", settings=("graph_kernels",), always_recorded=True),
        small=True,
    ),
    Derived(
        "kernels",
        "traceanalyzer.derive.kernels.kernels:kernels",
        ("ledger_ops", "devices", "launches", "host", "program"),
        KERNELS,
        NO_KERNELS,
        sample=Sample({"alone": ("duration",)}),
    ),
    Derived(
        "kernel_pace",
        "traceanalyzer.derive.kernels.kernel_pace:kernel_pace",
        ("kernels", "counters"),
        KERNEL_PACE,
        NO_KERNELS,
        label="{duration} in which the same kernels take {ratio} times as long",
        empty_without="kernels",
    ),
    Derived(
        "kernel_times",
        "traceanalyzer.derive.kernels.kernel_times:kernel_times",
        ("kernels", "devices"),
        KERNEL_TIMES,
        internal=True,
    ),
    Derived(
        "kernel_chains",
        "traceanalyzer.derive.kernels.kernel_chains:kernel_chains",
        ("ledger_ops", "step_stats"),
        KERNEL_CHAINS,
        NO_KERNELS,
        label="{kernels} kernels, {busy}; the longest: {name}",
        sample=Sample({"busy": ("duration",)}),
    ),
    Derived(
        "attention_blocks",
        "traceanalyzer.derive.kernels.attention:attention_blocks",
        ("ledger_ops", "launches", "host", "step_stats"),
        ATTENTION_BLOCKS,
        NO_KERNELS,
        label="traceanalyzer.derive.kernels.labels:attention",
    ),
)
