"""How the times of a profile meet those of the trace that it is beside."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames as columns
from traceanalyzer.evidence.cpu_profile.answers.stacks import Flags, Frames
from traceanalyzer.evidence.cpu_profile.derived_tables import CPU_CLOCK
from traceanalyzer.intervals import Array

_KIND = "cpu_profile"
_STARTING = ("prepare_trace", "start_trace", "_prepare_profiler", "_enable_profiler")
"""What torch.profiler runs before it records; nothing that it records lies within."""
_STOPPING, _FILE = "stop_trace", "torch/profiler/profiler.py"
_TAIL = 3


def cpu_clock(
    profile_about: pa.Table,
    profile_frames: pa.Table,
    profile_stacks: pa.Table,
    profile_samples: pa.Table,
    placed_evidence: pa.Table,
    windows: pa.Table,
    gaps: pa.Table,
    cpu_samples: pa.Table,
) -> pa.Table:
    """As CPU_CLOCK: one row a profile."""
    rows = []
    for rank in sorted(pc.unique(profile_samples["rank"]).to_pylist()):
        about, frames, stacks, samples, placed, window, idle, taken = (
            table.filter(pc.equal(table["rank"], rank))
            for table in (
                profile_about,
                profile_frames,
                profile_stacks,
                profile_samples,
                placed_evidence,
                windows,
                gaps,
                cpu_samples,
            )
        )
        mine = [row for row in placed.to_pylist() if row["kind"] == _KIND and row["placed_by"] is not None]
        beside, on_clock = bool(mine), any(row["on_clock"] for row in mine)
        told = _overlap(samples, window, idle, taken) if on_clock else {}
        ordered = about["ordered"][0].as_py()
        row = {
            "rank": rank,
            "beside": beside,
            "on_clock": on_clock,
            "clock_error": mine[0]["clock_error"] if mine else None,
            "inside": 0,
            "idle": int(columns.duration(idle).sum()),
            "sampled_idle": 0,
            "gap": None,
            "ends_in_start": beside and not on_clock and ordered and _ends_in_start(frames, stacks, samples),
        }
        rows.append(row | told)
    return pa.Table.from_pylist(rows, CPU_CLOCK.schema)


def _overlap(samples: pa.Table, windows: pa.Table, gaps: pa.Table, taken: pa.Table) -> dict[str, int | None]:
    """What samples of launching threads stand for of the idle time, and how far the profile is from the windows."""
    if not windows.num_rows or not samples.num_rows or samples["time_ns"].null_count:
        return {}
    time, weight = columns.ints(samples, "time_ns"), columns.ints(samples, "weight")
    low, high = int(columns.ints(windows, "start_ns").min()), int(columns.ints(windows, "end_ns").max())
    first, last = int(time.min()), int((time + weight).max())
    if last <= low or first >= high:
        return {"gap": low - last if last <= low else -(first - high) or -1}
    inside = idle = 0
    told = set()
    keys = (columns.ints(gaps, name) for name in ("device", "process", "thread"))
    for (_, process, thread), rows in columns.together(*keys):
        at = _times(taken, process, thread)
        if (process, thread) not in told:
            told.add((process, thread))
            inside += int(((at >= low) & (at < high)).sum())
        if len(at) > 1:
            idle += _stands_for(at, columns.ints(gaps, "start_ns")[rows], columns.ints(gaps, "end_ns")[rows])
    return {"inside": inside, "sampled_idle": idle}


def _times(taken: pa.Table, process: int, thread: int) -> Array:
    own = (columns.ints(taken, "process") == process) & (columns.ints(taken, "thread") == thread)
    return np.unique(columns.ints(taken, "time_ns")[own])


def _stands_for(time: Array, start: Array, end: Array) -> int:
    """For how many ns of some intervals the samples within them stand, as in the call stacks of idle time.

    Each stands for the time up to half way to its neighbours, within its interval, but for no more than ten usual distances.
    """
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    apart = np.diff(time)
    most = 10 * int(np.median(apart) + 1) // 2
    before, behind = np.minimum(apart // 2, most), np.minimum((apart + 1) // 2, most)
    low = time - np.concatenate((before[:1], before))
    high = time + np.concatenate((behind, behind[-1:]))
    at = np.maximum(np.searchsorted(start, time, side="right") - 1, 0)
    some = (time >= start[at]) & (time < end[at])
    at = at[some]
    return int((np.minimum(high[some], end[at]) - np.maximum(low[some], start[at])).sum())


def _ends_in_start(frames: pa.Table, stacks: pa.Table, samples: pa.Table) -> bool:
    """Whether the last samples of a thread lie in the only start of torch.profiler, and so before anything that it recorded.

    Where it was started or stopped before, the trace may be of that time.
    """
    names = Frames(frames)
    of_torch = [
        name.rpartition(".")[2] if (file or "").endswith(_FILE) else None
        for name, file in zip(names.name, names.file, strict=True)
    ]
    starting = np.array([name in _STARTING for name in of_torch], bool)
    if not starting.any() or _STOPPING in of_torch:
        return False
    order = stacks.sort_by("stack")
    parent, frame = columns.ints(order, "parent"), columns.ints(order, "frame")
    within = np.append(inside(starting[frame], np.where(parent == columns.NULL, -1, parent)), False)
    thread, stack = columns.ints(samples, "thread"), columns.ints(samples, "stack")
    stack = np.where(stack == columns.NULL, -1, stack)
    for one in np.unique(thread).tolist():
        in_start = within[stack[thread == one]]
        first = int(in_start.argmax())
        if in_start[first:].all() and len(in_start) - first >= _TAIL:
            return True
    return False


def inside(marked: Flags, parent: Array) -> Flags:
    """Which stacks have a marked frame anywhere; `parent` is -1 at the top."""
    found = marked.copy()
    while True:
        more = found | np.append(found, False)[parent]
        if (more == found).all():
            return found
        found = more
