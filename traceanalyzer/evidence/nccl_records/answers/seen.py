"""The small tables of one rank that what all ranks say together is made of."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.model.trace import Input

_KIND = "nccl_records"
_MOMENTS = ("created_ns", "started_ns", "completed_ns", "latest_ns")


def rank_calls(nccl_calls: pa.Table, placed_evidence: pa.Table, windows: pa.Table, inputs: Sequence[Input]) -> pa.Table:
    """With times since the epoch, and whether a call was made while the trace was recorded."""
    on_clock = _on_clock(placed_evidence)
    inside = pa.nulls(nccl_calls.num_rows, pa.bool_())
    if on_clock and windows.num_rows:
        start, end = pc.min(windows["start_ns"]), pc.max(windows["end_ns"])
        created = nccl_calls["created_ns"]
        inside = pc.and_(pc.greater_equal(created, start), pc.less_equal(created, end))
    return _since_epoch(nccl_calls, on_clock, inputs).append_column(pa.field("inside", pa.bool_()), inside)


def rank_groups(nccl_groups: pa.Table) -> pa.Table:
    return nccl_groups


def rank_dumps(nccl_dumps: pa.Table, placed_evidence: pa.Table, inputs: Sequence[Input]) -> pa.Table:
    """With times since the epoch."""
    return _since_epoch(nccl_dumps, _on_clock(placed_evidence), inputs)


def rank_links(nccl_link_tests: pa.Table) -> pa.Table:
    return nccl_link_tests


def _on_clock(placed_evidence: pa.Table) -> bool:
    """Whether the times of calls are on the trace's clock: results of nccl-tests, which have none, never are."""
    return any(row["kind"] == _KIND and row["on_clock"] for row in placed_evidence.to_pylist())


def _since_epoch(rows: pa.Table, on_clock: bool, inputs: Sequence[Input]) -> pa.Table:
    """A trace's clock counts from its own zero; files that are on it were moved there."""
    base = (inputs[0].clock_base_ns or 0) if on_clock and len(inputs) == 1 else 0
    for at, column in enumerate(rows.schema):
        if base and column.name in _MOMENTS:
            rows = rows.set_column(at, column, pc.add(rows[column.name], base))
    return rows
