"""What operators compute and move, by their shapes, beside what their GPU gives."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, PROCESS, RANK, SPAN, count, ns
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.schema import NAME, Column, TableSpec

_PRECISION = Column(
    "precision",
    NAME,
    None,
    "what it was multiplied in: fp32, tf32, bf16, fp16, fp8, fp64, ...; fp32_matrix and fp64_matrix on matrix units; null when the "
    "recorded types and the kernel's name do not tell",
)
_PEAK = Column("peak", pa.float64(), None, "what the GPU gives in that precision, in TFLOP/s; null when not known")
_INTENSITY = Column("intensity", pa.float64(), None, "FLOPs over bytes moved; null when the bytes are not known")
_SHARE = Column(
    "roof_share",
    pa.float64(),
    "share",
    "least time that the GPU needs for it, by its peak and by its memory, over the time taken; can exceed 1 by what caches and clocks "
    "give; null when the peak is not known",
)
_BOUND = Column(
    "bound",
    NAME,
    None,
    "compute or memory: which of both takes that time; null when the peak or the bytes are not known",
)

PRODUCT_OPS = TableSpec(
    "product_ops",
    "one compute kernel that an operator of known work launched",
    (
        RANK,
        DEVICE,
        Column("op", pa.int64(), None, "row of the kernel in gpu_ops"),
        Column("range", pa.int64(), None, "row of the operator in host_ranges"),
    ),
)

PRODUCTS = TableSpec(
    "products",
    "one operator that multiplies matrices (a product, a convolution, fused attention) whose inputs tell what it computes, with the "
    "compute kernels that it launched; the span is that of the operator on the host",
    (
        RANK,
        DEVICE,
        PROCESS,
        Column("thread", pa.int64(), None, "thread of the operator"),
        *SPAN,
        Column("range", pa.int64(), None, "row of the operator in host_ranges"),
        Column("operator", NAME, None, "name of the operator"),
        Column("kind", NAME, None, "matmul, convolution or attention"),
        Column("sizes", NAME, None, "shapes of what was multiplied"),
        Column("assumed", NAME, None, "what was not recorded and taken for granted; empty for nothing"),
        _PRECISION,
        Column("kernel", NAME, None, "its longest kernel, of those that do matrix work where there are such"),
        Column("op", pa.int64(), None, "row of that kernel in gpu_ops"),
        count("kernels", "compute kernels that it launched"),
        ns("kernel_time", "sum of their durations"),
        count("flops", "floating-point operations that its inputs take: a multiplication and an addition are two"),
        Column("moved", pa.int64(), "bytes", "its inputs and outputs once; null when their types are not known"),
        _PEAK,
        _INTENSITY,
        _SHARE,
        _BOUND,
        ns("peak_time", "least time by the peak of its precision alone; null when the peak is not known"),
        ns("roof_time", "least time by the peak and by the memory; null likewise"),
    ),
)

PRODUCT_STATS = TableSpec(
    "product_stats",
    "products of one operator, sizes, precision and kernel on one GPU, those with most time",
    (
        RANK,
        DEVICE,
        Column("operator", NAME, None, "name of the operator"),
        Column("kind", NAME, None, "matmul, convolution or attention"),
        Column("sizes", NAME, None, "shapes of what was multiplied"),
        Column("assumed", NAME, None, "what was not recorded and taken for granted; empty for nothing"),
        _PRECISION,
        Column("kernel", NAME, None, "their longest kernel"),
        count("count", "how many there are"),
        ns("kernel_time", "time of their kernels"),
        count("flops", "floating-point operations of one"),
        Column("moved", pa.int64(), "bytes", "inputs and outputs of one, once; null when their types are not known"),
        Column("tflops", pa.float64(), None, "10^12 floating-point operations per second of that time"),
        _PEAK,
        _INTENSITY,
        _SHARE,
        _BOUND,
    ),
)

ROOFLINE = TableSpec(
    "roofline",
    "what the matrix work of one GPU reaches of what the GPU gives, where operators were recorded with their shapes",
    (
        RANK,
        DEVICE,
        Column("gpu", NAME, None, "name of the GPU; null when not recorded"),
        Column("known_gpu", pa.bool_(), None, "the table of peaks has this GPU"),
        ns("compute_time", "time in which compute kernels run"),
        ns("matrix_time", "part of it in which kernels do matrix work, by their names or their operators"),
        ns("known_time", "part of that whose operators tell what they compute"),
        ns("unknown_time", "part of it whose launch was recorded, and whose operators do not tell what they compute"),
        ns("judged_time", "part of that whose precision has a known peak"),
        count("products", "operators that tell what they compute"),
        count("flops", "their floating-point operations"),
        ns("peak_time", "least time of those in `judged_time`, by the peaks of their precisions"),
        ns("roof_time", "the same by the peaks and by the memory"),
        ns("memory_time", "part of `judged_time` in which the memory takes longer than the peak"),
        Column("precision", NAME, None, "precision in which most of `judged_time` is spent"),
        Column("precision_share", pa.float64(), "share", "part of it in that precision"),
        Column("peak", pa.float64(), None, "what the GPU gives in that precision, in TFLOP/s"),
        Column("bandwidth", pa.float64(), None, "what its memory gives, in bytes a second; null when not known"),
        count("assumed", "products of which something was taken for granted"),
        count("steps", "steps that are compared with each other: whole ones after warm-up; 0 without"),
        ns("step_time", "time of these steps, or of the window without any"),
        count("step_flops", "floating-point operations launched in that time"),
        ns("step_peak_time", "least time that the peaks allow for them"),
    ),
)

_NO_PRODUCTS = Needs(
    "products",
    "the trace holds no input shapes of operators that multiply matrices",
    settings=("shapes",),
)

DERIVED = (
    Derived(
        "product_ops",
        "traceanalyzer.derive.roofline.products:product_ops",
        ("host_ranges", "callers", "ledger_ops", "launches"),
        PRODUCT_OPS,
        internal=True,
    ),
    Derived(
        "products",
        "traceanalyzer.derive.roofline.products:products",
        ("host_ranges", "product_ops", "ledger_ops", "devices"),
        PRODUCTS,
        Needs(
            "products",
            "the trace holds no input shapes of operators that multiply matrices",
            settings=("shapes",),
            events="host_ranges",
        ),
        label="{operator} of {sizes:text}: {kernel_time} in {kernel}",
    ),
    Derived(
        "product_stats",
        "traceanalyzer.derive.roofline.reached:product_stats",
        ("products",),
        PRODUCT_STATS,
        _NO_PRODUCTS,
        small=True,
        label="{operator} of {sizes:text}: {count} in {kernel_time}",
        empty_without="products",
    ),
    Derived(
        "roofline",
        "traceanalyzer.derive.roofline.reached:roofline",
        ("products", "product_ops", "ledger_ops", "launches", "devices", "windows", "step_ledger", "step_ops"),
        ROOFLINE,
        _NO_PRODUCTS,
        small=True,
        empty_without="products",
    ),
)
