"""The calls that launch work, and whether what they launched is in the trace."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.in_blocks import are_alike, taken
from traceanalyzer.derive.launches.tables import LAUNCH_CALLS
from traceanalyzer.intervals import Array

GRAPH_LAUNCH = "GraphLaunch"
_ADDS_NODE = re.compile(r"GraphAdd\w*Node")
DEVICE_WAITS = ("DeviceSynchronize", "CtxSynchronize")


def launch_calls(api_calls: pa.Table, links: pa.Table, ledger_ops: pa.Table) -> pa.Table:
    """One row per call that starts work, in the order of `api_calls`."""
    calls = _real_launches(api_calls)
    answered = _answered(calls, links)
    unfinished = _unfinished(calls, answered)
    queued = ~answered & unfinished
    if queued.any():
        queued &= _at_work(calls, _ends(api_calls), ledger_ops)
    return frames.build(
        LAUNCH_CALLS,
        {column: calls[column] for column in ("rank", "process", "thread", "start_ns")}
        | {"answered": answered, "unfinished": unfinished, "queued": queued},
    )


def captured_launches(api_calls: pa.Table) -> Counter[int]:
    """By rank, how many calls only recorded a launch into a CUDA graph: in a stream capture, or one node at a time."""
    recorded, captured = np.zeros(api_calls.num_rows, bool), _in_capture(api_calls)
    if captured is not None:
        launched = _outermost_launches(api_calls)
        recorded[launched] = captured[launched]
    recorded |= frames.where(api_calls, "name", lambda name: _ADDS_NODE.search(name) is not None)
    return _by_rank(api_calls, recorded)


def graph_launches(api_calls: pa.Table) -> Counter[int]:
    """By rank, how many calls launched a CUDA graph."""
    launched = frames.where(api_calls, "name", lambda name: name.endswith(GRAPH_LAUNCH))
    return _by_rank(api_calls, launched)


def _by_rank(calls: pa.Table, counts: frames.Flags) -> Counter[int]:
    ranks, found = np.unique(frames.ints(calls, "rank")[counts], return_counts=True)
    return Counter(dict(zip(ranks.tolist(), found.tolist(), strict=True)))


def first_unfinished(launch_calls: pa.Table) -> dict[tuple[int, ...], int]:
    """By (rank, process), the start of the first call from which on operations are missing to the end of the recording."""
    unfinished = launch_calls.filter(launch_calls["unfinished"])
    start = frames.ints(unfinished, "start_ns")
    by_process = frames.together(*(frames.ints(unfinished, c) for c in ("rank", "process")))
    return {key: int(start[rows].min()) for key, rows in by_process}


def _real_launches(api_calls: pa.Table) -> pa.Table:
    """Launch calls that start work: not those that a stream capture only records into a CUDA graph, nor a driver call
    inside a runtime call."""
    rows = _outermost_launches(api_calls)
    captured = _in_capture(api_calls)
    rows = rows if captured is None else rows[~captured[rows]]
    return frames.taken(api_calls.select(["rank", "process", "thread", "start_ns", "name"]), rows)


def _outermost_launches(api_calls: pa.Table) -> Array:
    """Rows of launch calls that lie in no other one of their thread. The calls are sorted by thread and start."""
    rows = np.flatnonzero(frames.equals(api_calls, "class", "launch"))
    if not len(rows):
        return rows
    lane = [taken(frames.ints(api_calls, c), rows) for c in ("rank", "process", "thread")]
    start, end = (frames.ints(api_calls, c).take(rows) for c in ("start_ns", "end_ns"))
    new = np.zeros(len(rows) - 1, bool)
    for column in lane:
        if not are_alike(column):
            new |= column[1:] != column[:-1]
    if (end >= start).all() and (new | (start[1:] >= end[:-1])).all():  # as mostly none lies in another
        return rows
    reach = [np.maximum.accumulate(part) for part in np.split(end, np.flatnonzero(new) + 1)]
    before = np.append(np.where(new, frames.NULL, np.concatenate(reach)[:-1]), frames.NULL)
    return rows[start >= np.roll(before, 1)]


def _in_capture(api_calls: pa.Table) -> frames.Flags | None:
    """Which calls lie in a stream capture of their rank; None without captures. One that began before the recording shows its end
    only."""
    begins = frames.where(api_calls, "name", lambda name: name.endswith("StreamBeginCapture"))
    ends = frames.where(api_calls, "name", lambda name: name.endswith("StreamEndCapture"))
    if not begins.any() and not ends.any():
        return None
    start, rank = frames.ints(api_calls, "start_ns"), frames.ints(api_calls, "rank")
    inside = np.zeros(len(start), bool)
    for _, rows in frames.together(rank):
        opened, closed = np.sort(start[rows][begins[rows]]), np.sort(start[rows][ends[rows]])
        if len(closed) and (not len(opened) or closed[0] < opened[0]):
            opened = np.concatenate(([frames.NULL], opened))
        inside[rows] = np.searchsorted(opened, start[rows]) > np.searchsorted(closed, start[rows])
    return inside


def _answered(calls: pa.Table, links: pa.Table) -> frames.Flags:
    """Which calls started at least one operation, of whatever kind: a graph may begin with a copy."""
    answered = np.zeros(calls.num_rows, bool)
    start, launched = frames.ints(calls, "start_ns"), frames.ints(links, "start_ns")
    of_thread = frames.rows_by(links, "rank", "process", "thread")
    for who, rows in frames.threads(calls):
        if who in of_thread:
            answered[rows] = frames.among(start[rows], launched[of_thread[who]])
    return answered


def _unfinished(calls: pa.Table, answered: frames.Flags) -> frames.Flags:
    """Which calls may have started more than the trace holds: the last ones of their process, all unanswered, and a graph launch
    just before them, of which only the beginning may be there."""
    graph = frames.where(calls, "name", lambda name: name.endswith(GRAPH_LAUNCH))
    start: Array = frames.ints(calls, "start_ns")
    unfinished = ~answered
    for rows in frames.rows_by(calls, "rank", "process").values():
        last = start[rows].max(where=answered[rows], initial=frames.NULL)
        unfinished[rows] &= start[rows] > last
        if unfinished[rows].any():
            unfinished[rows] |= graph[rows] & (start[rows] == last)
    return unfinished


def _ends(api_calls: pa.Table) -> dict[tuple[int, ...], int]:
    """By (rank, process), how far the recording reaches at least: when the last call began, or a wait for the whole GPU was over."""
    waits = frames.where(api_calls, "name", lambda name: name.endswith(DEVICE_WAITS))
    start, end = (frames.ints(api_calls, c) for c in ("start_ns", "end_ns"))
    return {
        key: int(max(start[rows].max(), end[rows].max(where=waits[rows], initial=frames.NULL)))
        for key, rows in frames.rows_by(api_calls, "rank", "process").items()
    }


def _at_work(calls: pa.Table, ends: dict[tuple[int, ...], int], ledger_ops: pa.Table) -> frames.Flags:
    """Whether the GPU was at work to the end of the recording, as far as each call's process knows. Had it stopped earlier, what was
    launched last would have run, and its records would be lost."""
    ops = frames.rows_by(ledger_ops, "rank", "process")
    op_end, length = frames.ints(ledger_ops, "end_ns"), frames.duration(ledger_ops)
    busy = np.zeros(calls.num_rows, bool)
    for key, rows in frames.rows_by(calls, "rank", "process").items():
        busy[rows] = key in ops and ends[key] - op_end[ops[key]].max() <= length[ops[key]].max()
    return busy
