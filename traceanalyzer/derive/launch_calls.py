"""The calls that launch work, and whether what they launched is in the trace."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.tables.ledger import LAUNCH_CALLS
from traceanalyzer.intervals import Array


def launch_calls(api_calls: pa.Table, links: pa.Table, ledger_ops: pa.Table) -> pa.Table:
    """One row per call that starts work, in the order of `api_calls`."""
    calls = _real_launches(api_calls)
    answered = _answered(calls, links)
    return frames.build(
        LAUNCH_CALLS,
        {column: calls[column] for column in ("rank", "process", "thread", "start_ns")}
        | {"answered": answered, "queued": _queued(calls, answered, _ends(api_calls), ledger_ops)},
    )


def _real_launches(api_calls: pa.Table) -> pa.Table:
    """Launch calls that start work: not those that a stream capture only records into a CUDA graph, nor a driver call
    inside a runtime call."""
    begins = frames.where(api_calls, "name", lambda name: name.endswith("StreamBeginCapture"))
    ends = frames.where(api_calls, "name", lambda name: name.endswith("StreamEndCapture"))
    start, rank = frames.ints(api_calls, "start_ns"), frames.ints(api_calls, "rank")
    keep = frames.equals(api_calls, "class", "launch")
    keep[keep] = ~_nested(api_calls.filter(pa.array(keep)))
    for _, rows in frames.together(rank) if begins.any() else ():
        opened, closed = np.sort(start[rows][begins[rows]]), np.sort(start[rows][ends[rows]])
        keep[rows] &= np.searchsorted(opened, start[rows]) <= np.searchsorted(closed, start[rows])
    return api_calls.filter(pa.array(keep))


def _nested(calls: pa.Table) -> frames.Flags:
    """Which calls lie inside another one of their thread. The calls are sorted by thread and start."""
    thread = frames.dense(*(frames.ints(calls, c) for c in ("rank", "process", "thread")))
    return frames.ints(calls, "start_ns") < frames.latest_before(thread, frames.ints(calls, "end_ns"))


def _answered(calls: pa.Table, links: pa.Table) -> frames.Flags:
    """Which calls started at least one operation, of whatever kind: a graph may begin with a copy."""
    columns = ("rank", "process", "thread", "start_ns")
    key = frames.packed(*(np.concatenate((frames.ints(calls, c), frames.ints(links, c))) for c in columns))
    return frames.among(key[: calls.num_rows], key[calls.num_rows :])


def _ends(api_calls: pa.Table) -> dict[tuple[int, ...], int]:
    """By (rank, process), when the last call began: the recording reaches at least as far."""
    start = frames.ints(api_calls, "start_ns")
    by_process = frames.together(*(frames.ints(api_calls, c) for c in ("rank", "process")))
    return {key: int(start[rows].max()) for key, rows in by_process}


def _queued(
    calls: pa.Table, answered: frames.Flags, ends: dict[tuple[int, ...], int], ledger_ops: pa.Table
) -> frames.Flags:
    """Which unanswered calls had launched what still waited for its turn when the recording ended.

    These are the last ones of their process, all of them, and the GPU was at work to the end: had it stopped earlier, the rest of its
    records would be lost.
    """
    ops = dict(frames.together(*(frames.ints(ledger_ops, c) for c in ("rank", "process"))))
    op_end, length = frames.ints(ledger_ops, "end_ns"), frames.duration(ledger_ops)
    start: Array = frames.ints(calls, "start_ns")
    queued = np.zeros(len(start), bool)
    for key, rows in frames.together(*(frames.ints(calls, c) for c in ("rank", "process"))):
        if key in ops and ends[key] - op_end[ops[key]].max() <= length[ops[key]].max():
            last = start[rows][answered[rows]].max(initial=frames.NULL)
            queued[rows] = ~answered[rows] & (start[rows] > last)
    return queued
