"""Device memory in use over time, from the events of one process on one GPU."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import Ints, integers

Level = Literal["allocated", "reserved", "driver"]
COLUMNS: dict[Level, str] = {"allocated": "total_allocated", "reserved": "total_reserved"}


def memory_levels(events: pa.Table) -> dict[Level, Ints]:
    """What each event leaves in use, in bytes; events are in order of time, and their sizes are known.

    That is what the allocator says is allocated and reserved or, without that, what the driver has given out. Empty when it cannot be
    told.
    """
    told = {level: integers(events, column) for level, column in COLUMNS.items() if not events[column].null_count}
    if told:
        return told
    size = integers(events, "bytes")
    return {"driver": np.cumsum(size)} if _balances(events, size) else {}


def _balances(events: pa.Table, size: Ints) -> bool:
    """Whether every release gives back what was recorded as allocated, so that the running sum is what is in use."""
    if events["address"].null_count:
        return False
    address = events["address"].to_numpy()
    order = np.argsort(address, kind="stable")
    opens = np.append(True, address[order][1:] != address[order][:-1])
    total = np.cumsum(size[order])
    before = (total - size[order])[opens][np.cumsum(opens) - 1]
    return bool((total >= before).all())
