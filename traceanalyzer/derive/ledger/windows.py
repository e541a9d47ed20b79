"""The window of each GPU, which the ledger partitions: from its first operation to its last, and over all marked steps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import ascending, frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.launches.launch_calls import first_unfinished
from traceanalyzer.derive.ledger.shared import Portion
from traceanalyzer.derive.ledger.tables import LEDGER
from traceanalyzer.model.markers import bounds_window

Span = tuple[int, int]
_ENDLESS = np.iinfo(np.int64).max


def windows(
    ledger_ops: pa.Table,
    devices: pa.Table,
    steps: pa.Table,
    launch_calls: pa.Table,
    portions: Mapping[frames.Key, Portion],
) -> pa.Table:
    """rank, device, name, start_ns and end_ns of `ledger`, which are known before the rest of it.

    A loader or a preprocessing function before the first operation of the first step costs what it costs in the second: the window
    begins with the first marked step of the processes that use the GPU and ends with the last one that was recorded whole, where these
    reach beyond the operations. Only names that say so bound a window (`bounds_window`); steps that are found by repetition, which
    are not in the event table `steps`, move no border. A GPU of which the file has a portion has the window of all its users.
    """
    names = {(r["rank"], r["device"]): r["name"] for r in devices.to_pylist()}
    steps = steps.filter(pa.array(frames.where(steps, "name", bounds_window)))
    marked = _marked(steps, first_unfinished(launch_calls))
    rows = []
    for key, ops in frames.split(ledger_ops):
        low, high = int(frames.ints(ops, "start_ns").min()), int(frames.ints(ops, "end_ns").max())
        for process in ascending(frames.ints(ops, "process")).tolist():
            start, end = marked.get((key[0], process), (low, high))
            low, high = min(low, start), max(high, end)
        if key in portions:
            low, high = portions[key].window
        rows.append({"rank": key[0], "device": key[1], "name": names.get(key), "start_ns": low, "end_ns": high})
    return pa.Table.from_pylist(rows, schema=LEDGER.schema).select(["rank", "device", "name", "start_ns", "end_ns"])


def _marked(steps: pa.Table, unfinished: Mapping[tuple[int, ...], int]) -> dict[tuple[int, ...], Span]:
    """By (rank, process), from the start of the first marked step to the end of the last whole one, `NULL` without any.

    A step is not whole where operations that it launched were not recorded, nor one that was still open when the recording ended.
    """
    rank, process, start, end = (frames.ints(steps, c) for c in ("rank", "process", "start_ns", "end_ns"))
    still_open = frames.flags(steps, "open")
    found: dict[tuple[int, ...], Span] = {}
    for key, rows in frames.together(rank, process):
        whole = (end[rows] <= unfinished.get(key, _ENDLESS)) & ~still_open[rows]
        found[key] = int(start[rows].min()), int(end[rows][whole].max(initial=NULL))
    return found
