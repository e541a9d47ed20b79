"""What is told of counters of kernels: the tables that rules and the section read."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import DEVICE, PROCESS, RANK, SPAN, STREAM, count, ns, share, text
from traceanalyzer.evidence.kernel_counters.tables import COUNTERS, WORDS
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.schema import NAME, Column, TableSpec

_HERE = "traceanalyzer.evidence.kernel_counters.answers"


_LIMIT = (
    text("name", "kernel name: the trace's where it was matched, else as Nsight Compute prints it"),
    text(
        "limiter",
        "what limits it: dram, l2 or l1 (bandwidth of memory), tensor, fp32, fp64, fp16 or pipe (computing), balanced (both), grid "
        "(too few blocks), tail (a partial last wave), occupancy, contention (warps wait for the same addresses), latency, or unknown",
    ),
    text("what", "the same as a sentence about the kernel, with its figures"),
    share(
        "used", "of the resource that limits it, or, where none does, of that which is used most: how much of its peak"
    ),
    Column("near_roof", pa.bool_(), None, "that is 80% or more"),
    share("gain", "of its time, what removing the limit would be expected to save"),
    share("least_gain", "the least of it"),
    share("most_gain", "the most of it: what is left of the resource that is used most"),
)

KERNEL_PROFILES = TableSpec(
    "kernel_profiles",
    "one kernel with one grid and block as Nsight Compute counted it: its launch of median time, each counted once however many pages "
    "show it",
    (
        RANK,
        DEVICE,
        text("name", "kernel name as printed"),
        text("function", "its function"),
        text("grid", "its grid, such as 2 × 66; null when not printed"),
        text("block", "its block"),
        count("blocks", "blocks of its grid; null when not printed"),
        count("threads", "threads of a block"),
        count("launches", "launches that were profiled"),
        Column("compute_capability", pa.float64(), None, "of the GPU, such as 9.0"),
        *COUNTERS,
        *WORDS,
        text(
            "rule",
            "of Nsight Compute's own rules, the one with the largest estimate for the kernel as a whole; else its bottleneck",
        ),
        text("rule_says", "what it says"),
        share("estimate", "speedup that it estimates; null without"),
        text("bottleneck", "what its rule SOLBottleneck says; null when not on the pages"),
        text("access", "of its rules about how memory is accessed, the one with the largest estimate; null without"),
        share("access_estimate", "speedup that this estimates"),
        share("tail_estimate", "speedup that its rule LaunchConfiguration estimates"),
        share("occupancy_estimate", "that of TheoreticalOccupancy"),
        share("stall_estimate", "that of CPIStall"),
    ),
)

KERNEL_LIMITS = TableSpec(
    "kernel_limits",
    "one kernel with one grid and block that Nsight Compute counted, and what limits it, on one GPU of the trace that ran it",
    (
        RANK,
        DEVICE,
        *_LIMIT,
        text("grid", "its grid, such as 2 × 66; null when not printed"),
        text("block", "its block"),
        count("blocks", "blocks of its grid"),
        count("profiled", "launches that were profiled"),
        count("matched", "launches of the trace that these stand for; null without a trace, 0 where it holds none"),
        ns("time", "sum of their durations in the trace"),
        ns("exposed", "of it, time in which no other kernel ran on the GPU"),
        share("share", "that over the exposed time of all compute kernels of the GPU"),
        Column(
            "weight",
            pa.float64(),
            None,
            "exposed time in ns; without a trace that under the profiler, which tells kernels apart and no more",
        ),
        share("sm", "throughput of the multiprocessors, of peak"),
        share("memory", "throughput of the memory system, of peak"),
        share("dram", "throughput of device memory, of peak"),
        share("occupancy", "achieved occupancy"),
        share("occupancy_limit", "theoretical occupancy"),
        Column("dram_rate", pa.float64(), None, "bytes a second from and to device memory"),
        Column("dram_peak", pa.float64(), None, "the most of it"),
        Column("flop_rate", pa.float64(), None, "floating-point operations a second"),
        Column("flop_peak", pa.float64(), None, "the most of it"),
        text("flop_kind", "what they are: FP32, FP64, FP16 or tensor"),
        text("gpu_name", "name of the GPU that was profiled"),
        text("rule", "Nsight Compute's own rule that estimates most"),
        share("estimate", "speedup that it estimates; null without"),
        text("bottleneck", "what its rule SOLBottleneck says"),
        count(
            "shared",
            "launches of the trace of the same function, grid and block that are of several kernels, so that none is matched",
        ),
    ),
)

LIMITED_KERNELS = TableSpec(
    "limited_kernels",
    "one launch in the trace of a kernel that was profiled, and what limits it; without a trace one kernel with an empty span",
    (
        RANK,
        DEVICE,
        PROCESS,
        STREAM,
        *SPAN,
        *_LIMIT,
        ns("alone", "time in which no other kernel ran on the GPU"),
        Column("weight", pa.float64(), None, "that in ns; without a trace the time under the profiler"),
        Column("traced", pa.bool_(), None, "whether it is a launch of a trace"),
        text(
            "occupancy_by",
            "what limits the occupancy: registers, shared memory, block size, ...; null when not printed",
        ),
        text("waits", "what warps wait for, as a sentence; null where unknown or of no matter"),
        Column("contended_by", NAME, None, "what they contend for: atomics or host; null when not counted"),
    ),
)

NO_COUNTERS = Needs("counted_launches", "there is no profile of Nsight Compute")

DERIVED = (
    Derived(
        "kernel_profiles",
        f"{_HERE}.profiles:kernel_profiles",
        ("counted_launches", "counter_rules"),
        KERNEL_PROFILES,
        NO_COUNTERS,
        small=True,
        empty_without="counted_launches",
    ),
    Derived(
        "kernel_matches",
        f"{_HERE}.matching:kernel_matches",
        ("kernel_profiles", "kernels"),
        internal=True,
    ),
    Derived(
        "kernel_limits",
        f"{_HERE}.limits:kernel_limits",
        ("kernel_profiles", "kernels", "kernel_matches"),
        KERNEL_LIMITS,
        NO_COUNTERS,
        small=True,
        label="{name}: {limiter}[, {exposed} exposed]",
        empty_without="kernel_profiles",
    ),
    Derived(
        "limited_kernels",
        f"{_HERE}.limits:limited_kernels",
        ("kernel_profiles", "kernels", "kernel_matches"),
        LIMITED_KERNELS,
        NO_COUNTERS,
        label="{name}: {limiter}",
    ),
)
