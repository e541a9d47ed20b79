"""The ranks' clocks against each other."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.derive.columns import RANK, count, ns
from traceanalyzer.model.schema import Column, TableSpec

CLOCK_OFFSETS = TableSpec(
    "clock_offsets",
    "one rank with communication kernels: what its collectives tell of its clock",
    (
        RANK,
        Column(
            "domain",
            pa.int64(),
            None,
            "lowest rank whose clock is known against this one's: its own where no other's is",
        ),
        ns("offset", "its clock ahead of the median of those in its domain"),
        count("matched", "its communication kernels that have counterparts on other ranks"),
        ns(
            "residual",
            "median distance of their ends from the mean over the ranks, once clocks are aligned; null unmatched",
        ),
        ns(
            "apart",
            "how far from other ranks' its ends lie where they do not fit; null where they do, or nothing was compared",
        ),
    ),
)
