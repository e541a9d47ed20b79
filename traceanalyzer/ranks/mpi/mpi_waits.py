"""Who waited for whom in calls of MPI, and why the rank that came last did."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.model.trace import Input
from traceanalyzer.ranks.mpi.tables import MPI_WAITS
from traceanalyzer.ranks.waits.reasons import late_reasons, rows_of
from traceanalyzer.ranks.waits.waits import late_rank_names, roots


def mpi_waits(
    mpi_call_waits: pa.Table,
    late_work: pa.Table,
    late_names: pa.Table,
    extra_work: pa.Table,
    extra_ranges: pa.Table,
    excess: pa.Table,
    ledger: pa.Table,
    inputs: Sequence[Input],
) -> pa.Table:
    """Every call in the window of a GPU, of all ranks. Who was late because it waited itself is not to blame: the one waited for is."""
    calls = mpi_call_waits
    instance = frames.ints(calls, "instance")
    blamed = late_work.take(rows_of([frames.ints(late_work, "instance")], [roots(instance, late_work)]))
    late = {c: pc.coalesce(blamed[c], calls[f"late_{c}"]) for c in ("rank", "device")}
    gpu = [frames.ints(pa.table(late), c) for c in late]
    start, wait = frames.ints(calls, "start_ns"), frames.ints(calls, "wait")
    same = {c: calls[c] for c in calls.column_names}
    return frames.build(
        MPI_WAITS,
        same
        | {"end_ns": np.where(wait == NULL, frames.ints(calls, "end_ns"), start + wait)}
        | {f"late_{c}": values for c, values in late.items()}
        | {f"late_{c}": pc.coalesce(blamed[c], calls[f"late_{c}"]) for c in ("start_ns", "end_ns")}
        | {"late": late_rank_names(late, inputs), "late_line": blamed["line"]}
        | late_reasons(gpu, blamed["line"], late_work, late_names, extra_work, extra_ranges, excess, ledger.num_rows)
        | {"job_window": np.full(len(start), sum(ledger["duration"].to_pylist()))},
    )
