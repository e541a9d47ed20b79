"""Who else uses a GPU: use where the trace ran nothing, and kernels that now and then take many times as long as their like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.evidence.gpu_log.answers.gpus import Judged
from traceanalyzer.intervals import coverage, union
from traceanalyzer.records import dataclass

_MEAN_NS = 1_200_000_000
"""Use is the mean of at most a second before its sample, and the clocks of both agree to some tens of ms."""
_USED = 0.2
"""Less than this a log shows of a GPU on which a screen is drawn, or a monitor asks."""
_LIKE, _OFTEN = 5, 8
"""A kernel stands out that takes so many times as long as the median of its like, of which there are at least so many."""
_SLICE_NS = 500_000
"""What it takes longer is at least a good part of a time slice, which is about 2 ms."""


@dataclass(frozen=True)
class Foreign:
    """`judged` samples tell whether others use the GPU, because nothing of the trace ran before them; of these, `samples` say so, with
    a mean of `use`. `ours` are processes of the trace on it; None without a trace."""

    ours: int | None = None
    judged: int | None = None
    samples: int | None = None
    use: float | None = None


def foreign_use(one: Judged, gpu_ops: pa.Table) -> Foreign:
    """What the log says of use while nothing of the trace ran on the GPU."""
    if one.window is None or one.log is None:
        return Foreign()
    mine = gpu_ops.filter(
        pa.array((frames.ints(gpu_ops, "rank") == one.rank) & (frames.ints(gpu_ops, "device") == one.device))
    )
    ours = max(len(np.unique(frames.ints(mine, "process"))), 1)
    log = one.log
    if not log.on_clock or not log.timed or not log.has("utilization"):
        return Foreign(ours)
    busy = union(frames.ints(mine, "start_ns"), frames.ints(mine, "end_ns"))
    before = log.time - max(_MEAN_NS, log.interval)
    after = log.time + log.interval // 2
    inside = (before >= one.window[0]) & (after <= one.window[1])
    quiet = np.flatnonzero(inside & np.isfinite(log.of("utilization")))
    quiet = quiet[coverage(before[quiet], after[quiet], busy) == 0]
    used = log.of("utilization")[quiet]
    foreign = used >= _USED
    return Foreign(ours, len(quiet), int(foreign.sum()), float(used[foreign].mean()) if foreign.any() else None)


def slow_kernels(kernels: pa.Table, one: Judged) -> dict[str, Any]:
    """How many kernels take many times as long as those of the same name, grid and block, and what they take longer in all."""
    nothing = {"slow_kernels": None, "slow_time": None, "slow_ratio": None}
    if one.window is None:
        return nothing
    mine = kernels.filter(
        pa.array((frames.ints(kernels, "rank") == one.rank) & (frames.ints(kernels, "device") == one.device))
    )
    if mine.num_rows < _OFTEN:
        return nothing
    length = frames.duration(mine)
    same = frames.dense(frames.codes(mine, "name")[0], *(frames.ints(mine, name) for name in ("blocks", "threads")))
    order = np.lexsort((length, same))
    size = np.bincount(same)
    first = np.cumsum(size) - size
    median = length[order][first + size // 2][same]
    slow = (size[same] >= _OFTEN) & (length >= _LIKE * median) & (length - median >= _SLICE_NS)
    ratio = length[slow] / np.maximum(median[slow], 1)
    return {
        "slow_kernels": int(slow.sum()),
        "slow_time": int((length - median)[slow].sum()),
        "slow_ratio": float(np.median(ratio)) if len(ratio) else None,
    }
