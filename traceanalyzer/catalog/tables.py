"""The derived tables: what the rules read beside the event tables. Declared here by family; each is computed in one module of `derive`.

A table with `start_ns` and `end_ns` also has a virtual column `duration` (ns) in rule expressions.
"""

from __future__ import annotations

from traceanalyzer.derive.copies.tables import COPIES, COPY_BURSTS, READBACKS
from traceanalyzer.derive.host.tables import OTHER_THREADS
from traceanalyzer.derive.kernels.metric_tables import GPU_METRICS
from traceanalyzer.derive.kernels.tables import ATTENTION_BLOCKS, KERNEL_CHAINS, KERNEL_PACE, KERNEL_STATS, KERNELS
from traceanalyzer.derive.ledger.tables import CLOCKS, GAPS, LAUNCHES, LEDGER, LEDGER_INTERVALS
from traceanalyzer.derive.memory.tables import MEMORY_GROWTH, MEMORY_STATS
from traceanalyzer.derive.operators.tables import OPERATOR_SHAPES, OPERATOR_STATS, PATTERNS, SYNC_STATS
from traceanalyzer.derive.recording.program_tables import PROGRAM
from traceanalyzer.derive.recording.tables import RECORDINGS
from traceanalyzer.derive.steps.tables import STEP_GROWTH, STEP_LEDGER, STEP_STATS
from traceanalyzer.derive.streams.tables import HELD_WORK
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.ranks.collectives.tables import COLLECTIVE_WAITS, COMMUNICATION, PROCESS_GROUPS
from traceanalyzer.ranks.mpi.tables import MPI_WAITS, STAGED_MESSAGES

DERIVED_TABLES: dict[str, TableSpec] = {
    spec.name: spec
    for spec in (
        LEDGER,
        LEDGER_INTERVALS,
        LAUNCHES,
        CLOCKS,
        GAPS,
        COPIES,
        COPY_BURSTS,
        READBACKS,
        HELD_WORK,
        OTHER_THREADS,
        OPERATOR_SHAPES,
        OPERATOR_STATS,
        SYNC_STATS,
        PATTERNS,
        COMMUNICATION,
        PROCESS_GROUPS,
        COLLECTIVE_WAITS,
        MPI_WAITS,
        STAGED_MESSAGES,
        KERNEL_STATS,
        KERNELS,
        KERNEL_PACE,
        KERNEL_CHAINS,
        ATTENTION_BLOCKS,
        STEP_STATS,
        STEP_LEDGER,
        STEP_GROWTH,
        RECORDINGS,
        MEMORY_STATS,
        MEMORY_GROWTH,
        GPU_METRICS,
        PROGRAM,
    )
}
