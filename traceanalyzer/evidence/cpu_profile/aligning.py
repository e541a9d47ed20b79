"""Where the clock of a profile meets that of a trace, by what both recorded: the start and the end of torch.profiler itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames as columns
from traceanalyzer.evidence.cpu_profile.answers.clock import inside
from traceanalyzer.intervals import Array
from traceanalyzer.model.tables import Tables

_STARTS, _STOPS = ("prepare_trace", "start_trace"), ("stop_trace",)
"""What torch.profiler runs before it records and after it: all that a trace holds lies between."""
_FILE = "torch/profiler/profiler.py"
_SMALL = 0.25
"""An error that is small against the pauses that samples are to name: a quarter of the pause that half of the idle time lies in."""
_TIMED = ("host_ranges", "api_calls", "gpu_ops")


def shift(tables: Tables, trace: Tables) -> tuple[int, int | None] | None:
    """What to add to the profile's times, and how far that may be off, in ns.

    None unless exactly one stretch between a start and an end of torch.profiler is as long as the trace, and what remains is small
    against the pauses of the GPU.
    """
    about = tables.table("profile_about")
    if not about.num_rows or not about["timed"][0].as_py():
        return None
    names = _marked(tables.table("profile_frames"))
    if not (names[0].any() and names[1].any()):
        return None
    span = _span(trace)
    if span is None:
        return None
    low, high = span
    stretches = list(_stretches(tables, *names))
    errors = [abs((end - start) - (high - low)) + 2 * period for start, end, period in stretches]
    most = _SMALL * _usual_pause(trace)
    fitting = [at for at, error in enumerate(errors) if error <= most]
    if len(fitting) != 1:
        return None
    start, end, _ = stretches[fitting[0]]
    return (low - start + high - end) // 2, errors[fitting[0]]


def _marked(frames: pa.Table) -> tuple[Array, Array]:
    """The numbers of the frames that start torch.profiler, and of those that end it."""
    rows = [row for row in frames.to_pylist() if (row["file"] or "").endswith(_FILE)]
    return tuple(  # type: ignore[return-value]
        np.array([row["frame"] for row in rows if row["name"].rpartition(".")[2] in names], np.int64)
        for names in (_STARTS, _STOPS)
    )


def _stretches(tables: Tables, starts: Array, stops: Array) -> Iterator[tuple[int, int, int]]:
    """From the end of each start of torch.profiler to the beginning of its end, on one thread; and how far its samples are apart."""
    stacks = tables.table("profile_stacks").sort_by("stack")
    frame = columns.ints(stacks, "frame")
    parent = columns.ints(stacks, "parent")
    parent = np.where(parent == columns.NULL, -1, parent)
    starting, stopping = (inside(np.isin(frame, one), parent) for one in (starts, stops))
    samples = tables.table("profile_samples")
    thread, time, weight, stack = (columns.ints(samples, name) for name in ("thread", "time_ns", "weight", "stack"))
    for one in np.unique(thread).tolist():
        mine = np.flatnonzero((thread == one) & (stack != columns.NULL))
        mine = mine[np.argsort(time[mine], kind="stable")]
        first, last = starting[stack[mine]], stopping[stack[mine]]
        if not (first.any() and last.any()):
            continue
        end = (time + weight)[mine]
        period = int(np.median(weight[mine]))
        for at in np.flatnonzero(last & ~np.concatenate(([False], last[:-1]))).tolist():
            before = np.flatnonzero(first[:at] & ~last[:at])
            if len(before) and not last[before[-1] : at].any():
                yield int(end[before[-1]]), int(time[mine[at]]), period


def _span(trace: Tables) -> tuple[int, int] | None:
    """From the first moment in a trace to the last."""
    spans = [
        (pc.min(table["start_ns"]).as_py(), pc.max(table["end_ns"]).as_py())
        for table in map(trace.table, _TIMED)
        if table.num_rows
    ]
    known = [(low, high) for low, high in spans if low is not None and high is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def _usual_pause(trace: Tables) -> int:
    """The length of the pause of the GPU that half of its idle time lies in shorter ones of, in ns; 0 without any."""
    length = np.sort(columns.duration(trace.table("gaps")))
    if not len(length):
        return 0
    total = np.cumsum(length)
    return int(length[int(np.searchsorted(total, total[-1] / 2))])
