"""The tables of Nsight Compute's pages: launches with their counters, and what its own rules say of them.

Shares are fractions from 0 to 1 of what the GPU could do at the clocks that it ran at. Times are those of a kernel that runs alone, at
clocks and with caches that the profiler sets: they are compared with each other, never with a trace's.
"""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import count, number, share, text
from traceanalyzer.model.schema import Column, TableSpec

RANK = Column("rank", pa.int32(), None, "rank of the job, or the file's ordinal when the rank is unknown")
COUNTERS = (
    Column("profiled_time", pa.float64(), "ns", "how long the kernel took under the profiler"),
    share("sm", "throughput of the multiprocessors (Compute (SM) Throughput)"),
    share("memory", "throughput of the memory system (Memory Throughput)"),
    share("dram", "throughput of device memory"),
    share("l2", "throughput of the L2 cache"),
    share("l1", "throughput of the L1 cache while its multiprocessor was active"),
    number("dram_rate", "bytes a second from and to device memory"),
    number("dram_peak", "the most bytes a second that device memory gives at the clock it ran at"),
    share("l1_hits", "sectors that were found in the L1 cache"),
    share("l2_hits", "sectors that were found in the L2 cache"),
    share("issue_slots", "issue slots that were used, of all cycles"),
    share("issuing", "cycles in which a scheduler of an active multiprocessor issued an instruction"),
    number("warps", "active warps a scheduler"),
    number("cycles_per_issue", "cycles of a warp between two instructions that it issues"),
    share("occupancy_limit", "theoretical occupancy: warps that fit on a multiprocessor, of the most it holds"),
    share("occupancy", "achieved occupancy"),
    number("limit_registers", "blocks that fit on a multiprocessor by their registers"),
    number("limit_shared", "by their shared memory"),
    number("limit_warps", "by their warps"),
    number("limit_blocks", "by the number of blocks that it takes"),
    number("limit_barriers", "by their barriers"),
    number("waves", "waves of blocks: its grid over the blocks that run at once"),
    number("sms", "multiprocessors of the GPU"),
    number("registers", "registers of a thread"),
    number("shared_bytes", "shared memory of a block, in bytes"),
    number("spills", "requests for local memory that registers were spilled to"),
    number("sm_clock", "clock of the multiprocessors in Hz"),
    number("atomics", "atomic operations and reductions on global memory that reached the L2 cache"),
    number("l2_requests", "requests of the multiprocessors to the L2 cache"),
    share("atomic_slice", "use of the unit for atomics in the slice of the L2 cache that uses it most"),
    number("host_sectors", "sectors that were read from or written to the memory of the host"),
    number("flop_rate", "floating-point operations a second, of the precision or unit that did most"),
    number("flop_peak", "the most of these a second at the clock it ran at"),
    share("pipe_share", "use of the busiest pipeline"),
    number("stall_cycles", "of cycles_per_issue, those that a warp waits for the reason in stall"),
    share("stall_share", "these over cycles_per_issue"),
)
WORDS = (
    text("flop_kind", "what flop_rate counts: FP32, FP64, FP16 or tensor"),
    text("pipe", "the busiest pipeline, as Nsight Compute calls it: Tensor, FMA, ALU, LSU, FP64, ..."),
    text("stall", "what a warp waits for most: long_scoreboard, lg_throttle, barrier, ...; as its metrics are called"),
    text("gpu_name", "name of the GPU"),
)
AXES = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")

LAUNCHES = TableSpec(
    "counted_launches",
    "one launch of a kernel that Nsight Compute counted, on one page of it; null: not on that page",
    (
        RANK,
        Column("file", pa.int64(), None, "number that tells apart the files of one rank"),
        text("page", "what it was read from: details, raw, text, summary or report"),
        count("launch", "its number in the profile"),
        count("launches", "how many launches a row of a summary stands for; 1 of every other page"),
        Column("pid", pa.int64(), None, "process that was profiled"),
        Column("device", pa.int32(), None, "index of the GPU within its process"),
        text("name", "kernel name as printed, without unnamed namespaces"),
        text("function", "its function, without return type, namespaces, template arguments and parameters"),
        *(count(axis, f"{axis[-1]} of its {axis[:-2]}; null when not printed") for axis in AXES),
        count("blocks", "blocks of its grid"),
        count("threads", "threads of a block"),
        Column("compute_capability", pa.float64(), None, "of the GPU, such as 9.0"),
        *COUNTERS,
        *WORDS,
    ),
)

RULES = TableSpec(
    "counter_rules",
    "what one of Nsight Compute's own rules says of one launch",
    (
        RANK,
        Column("file", pa.int64(), None, "as in counted_launches"),
        count("launch", "as in counted_launches"),
        text("section", "section that the rule is of"),
        text("name", "name of the rule, such as SOLBottleneck; null on a page of text"),
        text("kind", "OPT (something to gain), INF or WRN"),
        text("message", "what it says"),
        text("scope", "what its estimate is of: global (the kernel) or local (its section)"),
        share("estimate", "estimated speedup; null without one"),
    ),
)

TABLES = (LAUNCHES, RULES)
