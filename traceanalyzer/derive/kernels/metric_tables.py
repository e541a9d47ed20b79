"""Sampled values."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, RANK, SPAN, count, ns
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.schema import NAME, Column, TableSpec

GPU_METRICS = TableSpec(
    "gpu_metrics",
    "what the samples of one metric of a GPU say while something ran; the span is that of the longest such stretch",
    (
        RANK,
        DEVICE,
        *SPAN,
        Column(
            "metric",
            NAME,
            None,
            "sms_active, sm_issue, tensor_active, warps_in_flight, dram, pcie_in, pcie_out, nvlink_in or nvlink_out",
        ),
        Column("recorded", NAME, None, "what the file calls it; the first of its parts"),
        Column(
            "ran",
            NAME,
            None,
            "what ran: window (anything or nothing), compute (any compute kernels), or kernel, communication or memcpy of one name",
        ),
        Column("name", NAME, None, "that name; null for window and compute"),
        ns("ran_time", "how long it ran, beside other work or alone"),
        count("samples", "samples of which it ran for nearly all of the time; for window all of them"),
        ns("time", "time of these samples"),
        Column("mean", pa.float64(), "share", "their mean, of the most there can be"),
        Column("median", pa.float64(), "share", "their median"),
        ns("near", "time of those near the most there can be: at least three quarters of it"),
        ns("interval", "usual time from one sample to the next"),
    ),
)

DERIVED = (
    Derived(
        "gpu_metrics",
        "traceanalyzer.derive.kernels.gpu_metrics:gpu_metrics",
        ("counters", "ledger_ops", "windows"),
        GPU_METRICS,
        Needs(
            "gpu_metrics",
            "the trace holds no samples of the GPU's own metrics (SMs, memory, links)",
            settings=("counters",),
        ),
        label="traceanalyzer.derive.kernels.labels:metric",
        empty_without="counters",
    ),
)
