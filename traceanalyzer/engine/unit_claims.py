"""What rules claimed within the units of work by which captures are compared."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.intervals import coverage

UNIT_CLAIMS = pa.schema(
    [
        ("rule", pa.string()),
        ("rank", pa.int32()),
        ("device", pa.int32()),
        ("claimed", pa.int64()),
        ("inside", pa.int64()),
    ]
)


def unit_claims(claims: pa.Table, work_units: pa.Table) -> pa.Table:
    """By rule, rank and device the ns `claimed` in all, and those of them `inside` timed units; `claims` as of CLAIMS_SCHEMA."""
    units = frames.by_device(work_units.filter(work_units["timed"]))
    code, rules = frames.codes(claims, "rule")
    start, end = frames.ints(claims, "start_ns"), frames.ints(claims, "end_ns")
    rows = []
    for (rule, rank, device), at in frames.together(code, frames.ints(claims, "rank"), frames.ints(claims, "device")):
        own = units[rank, device]
        spans = frames.ints(own, "start_ns"), frames.ints(own, "end_ns")
        inside = int(np.sum(coverage(start[at], end[at], spans)))
        claimed = int((end - start)[at].sum())
        rows.append({"rule": rules[rule], "rank": rank, "device": device, "claimed": claimed, "inside": inside})
    return pa.Table.from_pylist(rows, UNIT_CLAIMS)
