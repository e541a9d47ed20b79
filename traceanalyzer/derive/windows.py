"""The window of each GPU, which the ledger partitions: from its first operation to its last, and over all marked steps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.frames import NULL
from traceanalyzer.derive.launch_calls import first_unfinished
from traceanalyzer.derive.tables.ledger import LEDGER
from traceanalyzer.model.markers import bounds_window, is_step_name

Span = tuple[int, int]
_ENDLESS = np.iinfo(np.int64).max


def windows(
    ledger_ops: pa.Table,
    devices: pa.Table,
    steps: pa.Table,
    launch_calls: pa.Table,
    api_calls: pa.Table,
    host_ranges: pa.Table,
) -> pa.Table:
    """rank, device, name, start_ns and end_ns of `ledger`, which are known before the rest of it.

    A loader or a preprocessing function before the first operation of the first step costs what it costs in the second: the window
    begins with the first marked step of the processes that use the GPU and ends with the last one that was recorded whole, where these
    reach beyond the operations. Only names that say so bound a window (`bounds_window`); steps that are found by repetition, which
    are not in the event table `steps`, move no border.
    """
    names = {(r["rank"], r["device"]): r["name"] for r in devices.to_pylist()}
    steps = steps.filter(pa.array(frames.where(steps, "name", bounds_window)))
    last = _last_event(ledger_ops, api_calls, host_ranges) if steps.num_rows else {}
    marked = _marked(steps, first_unfinished(launch_calls), last)
    rows = []
    for key, ops in frames.split(ledger_ops):
        low, high = int(frames.ints(ops, "start_ns").min()), int(frames.ints(ops, "end_ns").max())
        for process in np.unique(frames.ints(ops, "process")).tolist():
            start, end = marked.get((key[0], process), (low, high))
            low, high = min(low, start), max(high, end)
        rows.append({"rank": key[0], "device": key[1], "name": names.get(key), "start_ns": low, "end_ns": high})
    return pa.Table.from_pylist(rows, schema=LEDGER.schema).select(["rank", "device", "name", "start_ns", "end_ns"])


def _marked(
    steps: pa.Table, unfinished: Mapping[tuple[int, ...], int], last_event: Mapping[int, int]
) -> dict[tuple[int, ...], Span]:
    """By (rank, process), from the start of the first marked step to the end of the last whole one, `NULL` without any.

    A step is not whole where operations that it launched were not recorded, nor one that was still open when the recording ended:
    importers end such a range with the last event of the file.
    """
    rank, process, start, end = (frames.ints(steps, c) for c in ("rank", "process", "start_ns", "end_ns"))
    found: dict[tuple[int, ...], Span] = {}
    for key, rows in frames.together(rank, process):
        whole = (end[rows] <= unfinished.get(key, _ENDLESS)) & (end[rows] != last_event.get(key[0]))
        found[key] = int(start[rows].min()), int(end[rows][whole].max(initial=NULL))
    return found


def _last_event(ledger_ops: pa.Table, api_calls: pa.Table, host_ranges: pa.Table) -> dict[int, int]:
    """By rank, the end of the last event that marks no step."""
    others = host_ranges.filter(pa.array(~frames.where(host_ranges, "name", is_step_name)))
    last: dict[int, int] = {}
    for table in (ledger_ops, api_calls, others):
        for (rank, _), part in frames.split(table, "rank", "rank"):
            last[rank] = max(last.get(rank, NULL), int(frames.ints(part, "end_ns").max()))
    return last
