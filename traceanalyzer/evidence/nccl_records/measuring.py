"""Figures of NCCL's records for comparisons and budgets: of several groups or ranks the worst."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.compute as pc

from traceanalyzer.model.tables import Tables


def measure(tables: Tables) -> Mapping[str, int | float]:
    """As far as they are known. Lateness of records of one rank is not."""
    groups = tables.table("nccl_group_stats").to_pylist()
    if not any(row["judged"] > 1 for row in groups):
        return {}
    late = tables.table("nccl_lateness")
    missing = tables.table("nccl_missing")
    differ = tables.table("nccl_mismatches")
    return {
        "missing": pc.sum(missing["missing"]).as_py() or 0,
        "mismatched": differ.num_rows + (pc.sum(differ["later"]).as_py() or 0),
        "late": pc.max(late["lost"]).as_py() or 0,
        "late_share": pc.max(late["share"]).as_py() or 0.0,
    }
