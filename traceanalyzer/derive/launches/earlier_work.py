"""Work from before the recording: a profiler does not record what was launched before it began, however long that runs afterwards."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.in_blocks import in_blocks
from traceanalyzer.derive.launches.launches import call_of
from traceanalyzer.intervals import Array
from traceanalyzer.units import format_share
from traceanalyzer.vocabulary.health import TOO_LITTLE
from traceanalyzer.vocabulary.levels import LOW

WORTH_SAYING = 0.05
"""The rules begin to speak at a twentieth of the window: what hides or adds time matters from there on."""
START_UP = frozenset({"cuInit", "cuCtxCreate", "cuDevicePrimaryCtxRetain", "hipInit", "hipCtxCreate"})
"""Calls by which a program begins to use its GPUs: a process that was recorded from there on has no earlier work."""


def may_follow_earlier_work(ops: pa.Table, launches: pa.Table, api_calls: pa.Table) -> frames.Flags:
    """Which operations may have stood behind work from before the recording: no launch that it saw reached their stream before them.

    On a stream of which no launch at all was recorded nothing is known.
    """
    stream, launched = frames.streams(ops), call_of(frames.ints(ops, "row"), launches) >= 0
    # The first of each stream that was launched, as far as any was: soon after the start all are found.
    first = np.full(stream.max(initial=-1) + 1, -1)
    for block in in_blocks(len(stream)):
        own = stream[block]
        seen = np.flatnonzero(launched[block] & (first.take(own) < 0))[::-1]
        first[own[seen]] = seen + block.start
        if (first >= 0).all():
            break
    rows = np.arange(first.max(initial=-1) + 1)
    rows = rows[rows <= first.take(stream[: len(rows)])]
    rows = rows[frames.ints(ops, "stream")[rows] != NULL]
    may = np.zeros(len(stream), bool)
    may[rows] = ~_recorded_from_the_start(ops, rows, api_calls)
    return may


def _recorded_from_the_start(ops: pa.Table, rows: Array, api_calls: pa.Table) -> frames.Flags:
    """Which of some operations are of processes of which the first use of the GPU was recorded."""
    starts = np.flatnonzero(frames.equals(api_calls, "name", *START_UP))
    count, columns = len(starts), ("rank", "process")
    key = frames.packed(
        *(np.concatenate((frames.ints(api_calls, c)[starts], frames.ints(ops, c)[rows])) for c in columns)
    )
    own: frames.Flags = frames.among(key[count:], key[:count])
    return own


def earlier_work_notes(gaps: pa.Table, windows: pa.Table) -> list[dict[str, object]]:
    """Rows of `health`, TRC010 for each GPU that may have been at earlier work for a good part of its window."""
    parts = gaps.select(["rank", "device", "start_ns", "end_ns"]).filter(gaps["earlier_work"])
    hidden, rows = frames.by_device(parts), []
    for window in windows.to_pylist():
        parts = hidden[window["rank"], window["device"]]
        lost, length = int(frames.duration(parts).sum()), window["end_ns"] - window["start_ns"]
        if lost and lost >= WORTH_SAYING * length:
            message = (
                f"for {format_share(lost / length)} of the time of GPU {window['device']} work from before the recording may have been "
                "running, which it does not show: that part could not be judged"
            )
            rows.append(
                {
                    "rank": window["rank"],
                    "code": TOO_LITTLE,
                    "severity": LOW,
                    "message": message,
                    "count": 1,
                    "example": None,
                }
            )
    return rows
