"""How long each GPU is idle in calls of MPI, and in their waits for other ranks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import coverage
from traceanalyzer.ranks.mpi.tables import MPI_CALL_WAITS
from traceanalyzer.ranks.waits.waited import IN_MPI


def mpi_call_waits(mpi_matches: pa.Table, ledger_intervals: pa.Table) -> pa.Table:
    """The calls in which a GPU of their rank is idle, by GPU: a row of `mpi_matches` for each of them."""
    tables = []
    calls = frames.by_rank(_sorted(mpi_matches)) if mpi_matches.num_rows else {}
    for key, tiles in frames.split(ledger_intervals) if calls else ():
        idle = tiles.filter(pa.array(frames.equals(tiles, "line", IN_MPI)))
        own = calls[key[0]]
        gpu = frames.ints(own, "device")
        own = own.filter(pa.array((gpu == NULL) | (gpu == key[1])))
        spans = frames.ints(idle, "start_ns"), frames.ints(idle, "end_ns")
        start, end, wait = (frames.ints(own, c) for c in ("start_ns", "end_ns", "wait"))
        exposed = coverage(start, end, spans)
        waited = np.where(wait == NULL, NULL, coverage(start, start + np.maximum(wait, 0), spans))
        # Also calls in which nothing is lost: their GPUs are those of the job.
        low, high = frames.ints(tiles, "start_ns").min(), frames.ints(tiles, "end_ns").max()
        rows = np.flatnonzero((end > low) & (start < high))
        own = own.take(pa.array(rows))
        same = {c: own[c] for c in MPI_CALL_WAITS.schema.names if c in own.column_names and c != "device"}
        more = {"device": np.full(len(rows), key[1]), "exposed": exposed[rows]}
        tables.append(frames.build(MPI_CALL_WAITS, same | more | {"exposed_wait": frames.numbers(waited[rows])}))
    return frames.stack(MPI_CALL_WAITS, tables)


def _sorted(calls: pa.Table) -> pa.Table:
    return calls.take(pa.array(np.lexsort((frames.ints(calls, "start_ns"), frames.ints(calls, "rank")))))
