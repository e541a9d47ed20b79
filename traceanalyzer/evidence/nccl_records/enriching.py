"""What the records add to the trace that they are beside: numbers, sizes and names of groups of its collectives."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from traceanalyzer.model.tables import Tables


def fits(own: Tables, trace: Tables) -> bool | None:
    """Results of nccl-tests are of no run, and stand beside any."""
    if own.table("nccl_link_tests").num_rows and not own.table("nccl_calls").num_rows:
        return True
    return None


def enrich(own: Tables, trace: Tables, on_clock: bool) -> Mapping[str, pa.Table]:
    return {}
