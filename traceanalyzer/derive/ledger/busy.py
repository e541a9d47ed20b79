"""What each GPU was busy with: the operations on the ledger and the part of each ledger line that nothing above it covers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.spill import stored
from traceanalyzer.intervals import Spans, join, subtract, union
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.lines import COMPUTE, EXPOSED_COMMUNICATION, EXPOSED_MEMCPY, EXPOSED_MEMSET


def ledger_ops(gpu_ops: pa.Table) -> pa.Table:
    """The operations that count, with their row in `gpu_ops` as column `row`; contiguous by (rank, device), sorted by start."""
    rows = gpu_ops.append_column("row", pa.array(np.arange(gpu_ops.num_rows), pa.int64()))
    counts = pc.and_(pc.invert(rows["quarantined"]), pc.is_valid(rows["device"]))
    # Nearly always all of them do.
    return rows if pc.all(counts).as_py() else rows.filter(counts).combine_chunks()


def communication_ops(ledger_ops: pa.Table) -> pa.Table:
    """Those of communication libraries."""
    return ledger_ops.filter(pa.array(frames.equals(ledger_ops, "class", "communication"))).combine_chunks()


def by_line(ops: pa.Table) -> dict[str, frames.Flags]:
    """Which operations each busy line of the ledger is made of, in the order of precedence."""
    memcpy, memset = frames.equals(ops, "kind", "memcpy"), frames.equals(ops, "kind", "memset")
    communication = frames.equals(ops, "class", "communication") & ~memcpy & ~memset
    return {
        COMPUTE.name: ~(memcpy | memset | communication),
        EXPOSED_COMMUNICATION.name: communication,
        EXPOSED_MEMCPY.name: memcpy,
        EXPOSED_MEMSET.name: memset,
    }


@dataclass(frozen=True)
class Busy:
    """Unions of one GPU's operations by kind. Precedence: compute, communication, memcpy, memset."""

    compute: Spans
    communication: Spans
    memcpy: Spans
    memset: Spans

    @classmethod
    def of(cls, ops: pa.Table) -> Busy:
        """From the operations of one (rank, device)."""
        start, end = frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns")

        def spans(kind: frames.Flags) -> Spans:
            low, high = (start, end) if kind.all() else (start[kind], end[kind])
            low, high = union(low, high)
            return stored(low), stored(high)

        return cls(*map(spans, by_line(ops).values()))

    @property
    def everything(self) -> Spans:
        return join(self.compute, self.communication, self.memcpy, self.memset)

    def exposed(self) -> dict[str, Spans]:
        """The busy lines of the ledger: each kind without what precedes it."""
        kernels = join(self.compute, self.communication)
        return {
            COMPUTE.name: self.compute,
            EXPOSED_COMMUNICATION.name: subtract(self.communication, self.compute),
            EXPOSED_MEMCPY.name: subtract(self.memcpy, kernels),
            EXPOSED_MEMSET.name: subtract(self.memset, join(kernels, self.memcpy)),
        }


def busy(ledger_ops: pa.Table) -> dict[frames.Key, Busy]:
    """The unions of every (rank, device), in the order of the operations."""
    return {key: Busy.of(ops) for key, ops in frames.split(ledger_ops)}
